"""A PTX module as records: what the parser gives and everything else reads.

Registers are resolved while parsing (a name means another register in another `{ }` scope), so that a `Register` is
unique within its function. Names of variables, functions and labels stay names: their addresses are known when a
module is loaded on a device. A predicated instruction carries its guard; a label is the index of the instruction that
follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register; `number` is unique in its function."""

    number: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as `%tid` with its component ("x" or "")."""

    name: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant: an integer, or the bits of a float of `float_bits` (32 or 64) bits."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function, plus an offset; or a label."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand `_`: a result that is unused."""


@dataclass(frozen=True, slots=True)
class Not:
    """A negated predicate operand, `!%p`."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace-enclosed operand, `{a, b}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations, `p|q`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`."""

    base: Register | Symbol | Immediate | Special
    offset: int


@dataclass(frozen=True, slots=True)
class Coordinates:
    """`[map, {x, y}]`: a place in the array of a tensor map."""

    address: Address
    at: Vector


Operand = Register | Special | Immediate | Symbol | Sink | Not | Vector | Pair | Address | Coordinates


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p` before an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Call:
    """The operands of a call: result and argument operands, the callee, and a prototype or target list by name."""

    results: tuple[Operand, ...]
    target: Operand
    arguments: tuple[Operand, ...]
    prototype: str | None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `modifiers` are without their dots."""

    line: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    call: Call | None = None

    @property
    def name(self) -> str:
        """The opcode with its modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Initialiser:
    """A word of initialised memory that holds the address of something."""

    offset: int
    size: int
    symbol: str
    addend: int
    generic: bool
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable: memory of a state space, or a parameter.

    `size` is None for an array of unknown extent (dynamic shared memory). `data` is the initial memory, `relocations`
    the addresses in it. `array`: a parameter passed as bytes, not a scalar.
    """

    name: str
    space: str
    type: str
    align: int
    size: int | None
    array: bool = False
    data: bytes | None = None
    relocations: tuple[Initialiser, ...] = ()
    external: bool = False
    register: Register | None = None


@dataclass(frozen=True, slots=True)
class Prototype:
    """The shape of a function called through a register."""

    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]


@dataclass(slots=True)
class Function:
    """A kernel (`entry`) or a device function with its body.

    `value_registers` are the numbers of the registers that stand for parameters passed by value in a body.
    """

    name: str
    entry: bool
    line: int
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    defined: bool = False
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    registers: list[Register] = field(default_factory=list)
    value_registers: set[int] = field(default_factory=set)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class ModuleText:
    """A parsed module."""

    text: str
    lines: list[str]
    version: str = ""
    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)

    def source(self, line: int) -> str:
        """The text of a line."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""
