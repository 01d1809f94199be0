"""From one PTX instruction to Python over NumPy arrays: what every opcode's translation is written with.

A translation (an *emitter*, see the `emit_*` modules) reads operands as Python expressions of a wanted kind, and writes
destinations or effects. It sees neither blocks nor liveness: it leaves `Step`s, whose texts hold marks for the
registers read. `assemble.py` turns the marks into names, adding a reinterpretation (`view`) only where a register is
wanted in another kind than it has.

An emitter takes the modifiers it understands off a list. What is left in the end is refused by name, so an unknown
modifier can never be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import PtxSyntaxError, UnsupportedPtx
from parakeet_py.ptx.emulator.execute.special_registers import CLOCKS, TABLES
from parakeet_py.ptx.emulator.front.ir import (
    Function,
    Immediate,
    Instruction,
    ModuleText,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from parakeet_py.ptx.emulator.front.kinds import DTYPES, KIND_OF_TYPE, constant, size_of
from parakeet_py.ptx.emulator.front.sites import Site


@dataclass(slots=True)
class Step:
    """A piece of generated Python: an expression assigned to `targets`, or a statement when there are none.

    `computed` says that the value comes from arithmetic of float32 or float16, whose NaN has one pattern on a device
    and any pattern in NumPy: it is given the device's when its bits are looked at.
    """

    text: str
    reads: list[tuple[int, str]]
    targets: list[tuple[Register, str]]
    line: int
    effect: bool
    computed: bool = False


@dataclass(slots=True)
class Constants:
    """The global names of the generated code."""

    values: dict[str, object] = field(default_factory=dict)
    _numbers: dict[tuple[int, str], str] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)

    def number(self, value: int, kind: str) -> str:
        """The name of a constant array of one element."""
        array = constant(value, kind)
        key = (int.from_bytes(array.tobytes(), "little"), kind)
        name = self._numbers.get(key)
        if name is None:
            name = self._numbers[key] = f"K{len(self._numbers)}"
            array.flags.writeable = False
            self.values[name] = array
        return name

    def site(self, site: Site) -> str:
        """The name of a site."""
        self.sites.append(site)
        name = f"S{len(self.sites)}"
        self.values[name] = site
        return name


EmitterFunction = Callable[["Emitter"], None]
EMITTERS: dict[str, EmitterFunction] = {}


def emits(*opcodes: str) -> Callable[[EmitterFunction], EmitterFunction]:
    """Register the translation of opcodes."""

    def register(function: EmitterFunction) -> EmitterFunction:
        for opcode in opcodes:
            assert opcode not in EMITTERS, opcode
            EMITTERS[opcode] = function
        return function

    return register


class Emitter:
    """Translates the instructions of one function, one at a time."""

    def __init__(self, module: ModuleText, function: Function, constants: Constants) -> None:
        self.module = module
        self.function = function
        self.constants = constants
        self.steps: list[Step] = []
        self.instruction: Instruction
        self.modifiers: list[str] = []
        self.guard: str | None = None
        registers = function.registers
        self.frame = Register(len(registers), "%frame", "b64")
        self.top = Register(len(registers) + 1, "%top", "b64")
        self.carry = Register(len(registers) + 2, "%carry", "pred")
        registers.extend((self.frame, self.top, self.carry))
        self.frame_size, self.local_offsets = _frame_layout(function)
        self.addressed = _addressed_parameters(function)

    # -- an instruction -------------------------------------------------------------------------------------------

    def emit(self, instruction: Instruction) -> None:
        """Translate an instruction into steps.

        Raises
        ------
        UnsupportedPtx
            If the emulator does not know the opcode or a modifier.
        """
        self.instruction = instruction
        self.modifiers = list(instruction.modifiers)
        emitter = EMITTERS.get(instruction.opcode)
        if emitter is None:
            raise self.unsupported(f"instruction {instruction.name}")
        self.guard = None
        try:
            emitter(self)
        except (IndexError, KeyError, ValueError) as error:
            raise self.unsupported(f"this form of {instruction.name}") from error
        if self.modifiers:
            raise self.unsupported(f"modifier .{self.modifiers[0]} of {instruction.name}")

    def unsupported(self, what: str) -> UnsupportedPtx:
        """A refusal of the current instruction."""
        line = self.instruction.line
        return UnsupportedPtx(f"{what} is not supported by the emulator", line, self.module.source(line))

    def invalid(self, message: str) -> PtxSyntaxError:
        """The current instruction is not PTX."""
        line = self.instruction.line
        return PtxSyntaxError(message, line, self.module.source(line))

    # -- modifiers ------------------------------------------------------------------------------------------------

    def take(self, modifier: str) -> bool:
        """Take a modifier off the list if it is there."""
        if modifier in self.modifiers:
            self.modifiers.remove(modifier)
            return True
        return False

    def take_any(self, choices: Iterable[str], default: str = "") -> str:
        """Take the first modifier that is one of `choices`."""
        for modifier in self.modifiers:
            if modifier in choices:
                self.modifiers.remove(modifier)
                return modifier
        return default

    def type(self) -> str:
        """Take the last modifier, which must be a type."""
        if not self.modifiers or self.modifiers[-1] not in KIND_OF_TYPE:
            raise self.unsupported(f"the type of {self.instruction.name}")
        return self.modifiers.pop()

    # -- operands -------------------------------------------------------------------------------------------------

    @property
    def operands(self) -> Sequence[Operand]:
        """The operands of the current instruction."""
        return self.instruction.operands

    def mark(self, register: Register, kind: str) -> str:
        return f"\x01{register.number}:{kind}\x02"

    def read(self, operand: Operand, kind: str) -> str:
        """An operand's value as an expression of a kind."""
        match operand:
            case Register():
                if operand.type.startswith("bytes:"):
                    raise self.unsupported("an aggregate as an operand")
                return self.mark(operand, kind)
            case Not(register):
                return f"~{self.mark(register, 'p')}"
            case Immediate(value, bits):
                return self.constants.number(self._immediate(value, bits, kind), kind)
            case Special(name, component):
                return self._special(name, component, kind)
            case Symbol(name, offset):
                return self._symbol(name, offset, kind)
            case _:
                raise self.invalid("an operand of another form was expected")

    def _immediate(self, value: int, bits: int, kind: str) -> int:
        """The bits of a constant used as a kind."""
        if kind[0] == "f" and (bits == 0 or bits != 8 * size_of(kind)):
            # A plain number where a float is wanted, or a constant of the other width: converted by value.
            source = float(value) if bits == 0 else constant(value, f"f{bits // 8}")[0]
            array = np.array([source]).astype(DTYPES[kind])
            return int(array.view(DTYPES[f"u{size_of(kind)}"])[0])
        return value

    def _special(self, name: str, component: str, kind: str) -> str:
        if name == "WARP_SZ":
            return self.constants.number(32, kind)
        register = name[1:] + (f"_{component}" if component else "")
        if register in CLOCKS:
            expression, own = f"M.read_clock({register!r})", "u8"
        elif register in TABLES:
            expression, own = f"L.table({register!r})", "u4"
        else:
            raise self.unsupported(f"special register {name}{'.' + component if component else ''}")
        if kind == "p":
            return expression
        return expression if kind == own else f"{expression}.astype({kind.upper()})"

    def _symbol(self, name: str, offset: int, kind: str) -> str:
        local = self.local_offsets.get(name)
        if local is not None:
            address = f"({self.mark(self.frame, 'u8')} + {self.constants.number(local + offset, 'u8')})"
        else:
            known = (
                name in self.function.variables
                or name in self.module.variables
                or name in self.module.functions
                or any(name == p.name for p in self.function.parameters)
            )
            if not known:
                raise self.invalid(f"{name} is not declared")
            address = f"M.symbols[{name!r}]"
            if offset:
                address = f"({address} + {self.constants.number(offset, 'u8')})"
        return address if kind == "u8" else f"{address}.astype({kind.upper()})"

    def source(self, index: int, kind: str) -> str:
        """The operand at a place, read."""
        return self.read(self.operands[index], kind)

    def sources(self, first: int, count: int, kind: str) -> list[str]:
        """Several operands in a row, read."""
        return [self.read(self.operands[first + k], kind) for k in range(count)]

    # -- results --------------------------------------------------------------------------------------------------

    def mask(self) -> str:
        """The guard as an expression over lanes, or "None"."""
        guard = self.instruction.guard
        if guard is None:
            return "None"
        mark = self.mark(guard.register, "p")
        return f"~{mark}" if guard.negated else mark

    def write(self, operand: Operand, expression: str, kind: str, *, computed: bool = False) -> None:
        """Assign an expression of a kind to a destination."""
        computed = computed and kind in ("f2", "f4")
        if computed and (self.instruction.guard is not None or size_of(kind) != _size_of_destination(operand)):
            expression, computed = f"floats.quiet({expression})", False
        self.write_all([(operand, kind)], expression)
        self.steps[-1].computed = computed

    def write_all(self, destinations: Sequence[tuple[Operand, str]], expression: str, *, effect: bool = False) -> None:
        """Assign a tuple (or, for one destination, a value) to destinations."""
        targets: list[tuple[Register, str]] = []
        for number, (operand, kind) in enumerate(destinations):
            if isinstance(operand, Sink):
                targets.append((Register(-1 - number, "_", "b64"), kind))
            elif isinstance(operand, Register):
                targets.append((operand, kind))
            else:
                raise self.invalid("the destination is not a register")
        if any(kind == "bytes" for _, kind in targets):
            if self.instruction.guard is not None:
                raise self.unsupported("a guarded store to an aggregate parameter")
        elif self.instruction.guard is not None:
            if len(targets) == 1:
                register, kind = targets[0]
                expression = self._widened(expression, register, kind)
                kind = targets[0][1] if size_of(kind) == _register_size(register) else _container(register)
                if register.number >= 0:
                    expression = f"where({self.mask()}, {expression}, {self.mark(register, kind)})"
                targets = [(register, kind)]
            else:
                olds = [self.mark(r, k) if r.number >= 0 else "None" for r, k in targets]
                expression = f"merge({self.mask()}, {expression}, ({', '.join(olds)},))"
        elif len(targets) == 1:
            register, kind = targets[0]
            if register.number >= 0 and size_of(kind) != _register_size(register):
                expression = self._widened(expression, register, kind)
                targets = [(register, _container(register))]
        self._step(expression, targets, effect)

    def _widened(self, expression: str, register: Register, kind: str) -> str:
        """An expression in the width of the register that takes it (signed values keep their sign)."""
        size = _register_size(register)
        if register.number < 0 or size_of(kind) == size or kind == "p":
            return expression
        if size_of(kind) > size:
            raise self.invalid(f"{register.name} is too narrow for its value")
        if kind[0] == "f":
            expression = f"({expression}).view(U{kind[1]})"
            kind = f"u{kind[1]}"
        if kind[0] == "i":
            return f"({expression}).astype(I{size}).view(U{size})"
        return f"({expression}).astype(U{size})"

    def effect(self, text: str) -> None:
        """A statement that is executed for what it does."""
        self._step(text, [], True)

    def define(self, register: Register, expression: str, kind: str) -> None:
        """Assign to a register of the emulator's own, under the guard."""
        self.write_all([(register, kind)], expression)

    def _step(self, text: str, targets: list[tuple[Register, str]], effect: bool) -> None:
        self.steps.append(Step(text, marks_in(text), targets, self.instruction.line, effect))

    def site(self, *, strong: bool = False, acquire: bool = False, release: bool = False) -> str:
        """The name by which generated code passes the current instruction to the machine."""
        source = self.module.source(self.instruction.line)
        read_only = "nc" in self.instruction.modifiers
        return self.constants.site(Site(self.instruction, source, strong, acquire, release, read_only))

    def temporary(self, expression: str) -> str:
        """Compute something once and give it a name for the steps of this instruction."""
        name = f"t{len(self.steps)}"
        self._step(f"{name} = {expression}", [], False)
        return name

    def vector(self, operand: Operand) -> tuple[Operand, ...]:
        """The elements of a vector operand, or the operand alone."""
        return operand.items if isinstance(operand, Vector) else (operand,)

    def pair(self, operand: Operand) -> tuple[Operand, Operand]:
        """Both halves of `p|q`; a lone destination gets a sink as its second."""
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())


MARK = re.compile("\x01(\\d+):(\\w+)\x02")


def marks_in(text: str) -> list[tuple[int, str]]:
    """The registers, with kinds, that a text reads."""
    return [(int(number), kind) for number, kind in MARK.findall(text)]


def _register_size(register: Register) -> int:
    return size_of(KIND_OF_TYPE[register.type])


def _size_of_destination(operand: Operand) -> int:
    return _register_size(operand) if isinstance(operand, Register) else 0


def _container(register: Register) -> str:
    return f"u{_register_size(register)}"


def _addressed_parameters(function: Function) -> list[Register]:
    """The parameters of a device function whose address it takes: they are copied to its frame on entry."""
    formal = {v.register.number for v in function.parameters if v.register is not None}
    found: dict[int, Register] = {}
    for instruction in function.body:
        if instruction.opcode == "mov":
            for operand in instruction.operands[1:]:
                if isinstance(operand, Register) and operand.number in formal:
                    found[operand.number] = operand
    return list(found.values())


def _frame_layout(function: Function) -> tuple[int, dict[str, int]]:
    """Size of a function's local frame and the offsets of its variables (and addressed parameters) in it."""
    offsets: dict[str, int] = {}
    size = 0
    addressed = {r.name for r in _addressed_parameters(function)}
    for variable in (*function.parameters, *function.variables.values()):
        if variable.space == "local" or variable.name in addressed:
            size = -(-size // variable.align) * variable.align
            offsets[variable.name] = size
            size += variable.size or 0
    return -(-size // 16) * 16, offsets
