"""Writing LLVM IR text: a module's tables and one function's lines.

`ModuleText` collects what a module has once: declarations, helper functions, attribute groups, metadata nodes and the
external symbols it needs. `FunctionText` collects one function: allocas and loads that belong to its entry block, the
lines of its body in order, and the blocks of failing checks, which are written last so that the hot path is straight.

Text is what LLVM reads fastest from Python: no object is made for an instruction. A value is the string that names it
(`%t12`, or a literal such as `8`, `null`, `0x3FF0000000000000`); a complex number is a pair of values.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Literal

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.positions import Pos
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.runtime.blas import Finding, of_numpy
from parakeet_py.llvm.safety.sites import Checks
from parakeet_py.typed_ir.ir import Const
from parakeet_py.typed_ir.places import Place

Value = str | tuple[str, str]

LLVM_TYPE = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "half",
    "float32": "float",
    "float64": "double",
}
MEMORY_TYPE = {**LLVM_TYPE, "bool": "i8"}
SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}  # of overloaded intrinsics; integers are their own

# Calls of mathematical functions: no memory, no exceptions, so they may move and be widened.
PURE = "nounwind willreturn memory(none)"


def float_literal(value: float, kind: str) -> str:
    """The exact literal of a value representable in `kind` (half, float or double)."""
    if kind == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def literal(value: bool | int | float, dtype: str) -> str:
    """The literal of a real scalar."""
    kind = LLVM_TYPE[dtype]
    if kind in SUFFIX:
        return float_literal(float(value), kind)
    if kind == "i1":
        return "true" if value else "false"
    return str(int(value))


def constant(operand: Const) -> Value:
    """The value of a constant operand."""
    dtype = operand.type.dtype
    if dtype in ("complex64", "complex128"):
        part = "float32" if dtype == "complex64" else "float64"
        value = complex(operand.value)
        return literal(value.real, part), literal(value.imag, part)
    assert not isinstance(operand.value, complex)
    return literal(operand.value, dtype)


@record(frozen=False)
class ModuleText:
    """What a module has once.

    Attributes
    ----------
    host : the machine the text is for
    flags : fast-math flags of every float operation, with a trailing blank ("" is strict IEEE 754)
    symbols : external functions that the loader must supply, in order of first use
    elementary : who calls elementary functions of a GPU's library, given a function's text, name, dtype and arguments;
        gives None where our own are to be called
    checks : what is checked, if the text is that of checked machine code
    locations : where in the source instructions come from, if the text is to be read beside it
    blas : finds the library that matrix products call; gives None where they are to be loops
    clocks : where `clock_gettime` is, in this process, the number of the clock, and where the table of timed kernels is
    unaligned : elements may lie at any address, as columns of packed records do
    """

    host: HostInfo
    flags: str = ""
    elementary: Callable[[FunctionText, str, str, list[str]], str | None] | None = None
    checks: Checks | None = None
    locations: Locations | None = None
    blas: Finding = of_numpy
    clocks: tuple[int, int, int] | None = None
    unaligned: bool = False
    symbols: dict[str, None] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    _declarations: dict[str, str] = field(default_factory=dict)
    _attributes: dict[str, str] = field(default_factory=dict)
    _metadata: list[str] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)
    _kept: dict[str, None] = field(default_factory=dict)
    _defined: set[str] = field(default_factory=set)
    _same: dict[str, str] = field(default_factory=dict)

    def declare(self, result: str, name: str, parameters: str, attributes: str = "nounwind") -> str:
        """Declare an external function or intrinsic once; gives `@name`."""
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} @{name}({parameters}) {attributes}".rstrip()
            if not name.startswith("llvm."):
                self.symbols[name] = None
        return f"@{name}"

    def declare_procedure(self, result: str, name: str, parameters: str) -> None:
        """Declare a procedure that another module defines, which is loaded with this one."""
        text = f"declare fastcc {result} {global_name(name)}({parameters}) nounwind"
        self._declarations[name] = text

    def declare_late(self, result: str, name: str, parameters: str, attributes: str) -> None:
        """Declare a function of `engine.late_functions`, which is there when the passes are through."""
        self._declarations[name] = f"declare {result} @{name}({parameters}) {attributes}"

    def is_new(self, name: str) -> bool:
        """Whether a helper function is asked for the first time (its text then has to be added to `functions`)."""
        if name in self._defined:
            return False
        self._defined.add(name)
        return True

    def keep(self, name: str) -> None:
        """Keep a function that only attributes mention."""
        self._kept[f"@{name}"] = None

    def attributes(self, text: str) -> str:
        """The group `#n` with these attributes."""
        return self._attributes.setdefault(text, f"#{len(self._attributes)}")

    def node(self, text: str) -> str:
        """A new metadata node; `self` in the text names the node itself."""
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = {text.replace('self', name)}")
        return name

    def define(self, f: FunctionText, signature: str, attributes: str, name: Callable[[], str]) -> str:
        """Add a finished function (`signature` has `@` for its name); gives the name.

        A function with the very text of an earlier one is that one.
        """
        located = f" !dbg {f.subprogram}" if f.subprogram else ""
        text = f.text(f"{signature} {self.attributes(attributes)}{located}")
        key = "\n".join([text, *f.nodes])
        if key not in self._same:
            self._same[key] = name()
            first = len(self._metadata)

            def global_node(match: re.Match[str]) -> str:
                return f"!{first + int(match[1])}"

            for node in f.nodes:
                self.node(_LOCAL_NODE.sub(global_node, node))
            self.functions.append(_LOCAL_NODE.sub(global_node, text.replace("@", self._same[key], 1)))
        return self._same[key]

    def shared_node(self, text: str) -> str:
        """The metadata node with this text, made once."""
        if text not in self._named:
            self._named[text] = self.node(text)
        return self._named[text]

    def text(self) -> str:
        """The module."""
        parts = list(self._declarations.values())
        if self._kept:
            names = ", ".join(f"ptr {name}" for name in self._kept)
            parts.append(
                f'@llvm.compiler.used = appending global [{len(self._kept)} x ptr] [{names}], section "llvm.metadata"'
            )
        parts += self.functions
        parts += [f"attributes {group} = {{ {text} }}" for text, group in self._attributes.items()]
        parts += self._metadata
        parts += self.locations.named_metadata() if self.locations is not None else []
        return "\n".join(parts) + "\n"


_LOCAL_NODE = re.compile(r"!<(\d+)>")
_IMPURE = ("load ", "call ", "alloca ", "phi ")


@record(frozen=False)
class FunctionText:
    """The lines of one function.

    `block` is the label of the block being written; `dead` says that it has been left (by a break or a failed
    check), so that what follows cannot run. `widened` says that the loop being written is meant for vectors.
    `bounds` are numbers that integer values are known not to be below, `remainders` what they are remainders of: a
    number and a known positive one. `spaces` are the address spaces of pointers that
    do not point into the general one (but into a GPU's shared memory). `nodes` are metadata of this function alone,
    named `!<0>`, `!<1>`... until the function is added to the module, so that equal functions have equal texts.
    `zones` are the arrays on the stack that lie between red zones, and their sizes, in checked code. `subprogram` is
    the node that debug locations name, if there are any.
    """

    module: ModuleText
    block: str = "entry"
    dead: bool = False
    widened: bool = False
    calls_vector_functions: bool = False
    bounds: dict[str, int] = field(default_factory=dict)
    remainders: dict[str, tuple[str, str]] = field(default_factory=dict)
    spaces: dict[str, int] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    zones: list[tuple[str, int]] = field(default_factory=list)
    subprogram: str = ""
    _entry: list[str] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _cold: list[str] = field(default_factory=list)
    _exits: dict[tuple[str, ...], str] = field(default_factory=dict)
    _known: list[dict[str, str]] = field(default_factory=lambda: [{}])
    _steady: set[str] = field(default_factory=set)
    _count: int = 0

    def fresh(self, stem: str = "t") -> str:
        """A new value name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def label(self, stem: str) -> str:
        """A new label name, without the `%`."""
        self._count += 1
        return f"{stem}{self._count}"

    def value(self, instruction: str) -> str:
        """Write an instruction with a result, unless the same value is already known here."""
        pure = not instruction.startswith(_IMPURE) or (instruction.startswith("call ") and "@llvm." in instruction)
        if pure:
            for known in self._known:
                if instruction in known:
                    return known[instruction]
        name = self.fresh()
        self._lines.append(f"  {name} = {instruction}")
        if pure:
            self._known[-1][instruction] = name
        return name

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Blocks that do not dominate what is written after them: values computed there are not known later."""
        self._known.append({})
        yield
        self._known.pop()

    def remembered(self, what: str, make: Callable[[], str]) -> str:
        """What has been made under this name in a block that dominates this one; else it is made now."""
        for known in self._known:
            if what in known:
                return known[what]
        made = self._known[-1][what] = make()
        return made

    def node(self, text: str) -> str:
        """A metadata node of this function; a text that says `distinct` makes a new one each time."""
        if text in self.nodes and not text.startswith("distinct"):
            return f"!<{self.nodes.index(text)}>"
        self.nodes.append(text)
        return f"!<{len(self.nodes) - 1}>"

    def effect(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def entry_value(self, instruction: str) -> str:
        """Write an instruction with a result in the entry block, before the body."""
        name = self.fresh()
        self._entry.append(f"  {name} = {instruction}")
        self._steady.add(name)
        return name

    def entry_effect(self, instruction: str) -> None:
        """Write an instruction without a result in the entry block."""
        self._entry.append(f"  {instruction}")

    def steady_value(self, instruction: str) -> str:
        """The value of an instruction on values of the entry block that neither touches memory nor traps, made once."""
        outermost = self._known[0]
        if instruction not in outermost:
            outermost[instruction] = self.entry_value(instruction)
        return outermost[instruction]

    def is_steady(self, value: str) -> bool:
        """Whether a value is made in the entry block, so that it is the same in all iterations of all loops."""
        return value in self._steady

    def alloca(self, kind: str, align: int | None = None) -> str:
        """Stack memory for the whole call of the function."""
        return self.entry_value(f"alloca {kind}" + (f", align {align}" if align else ""))

    def begin(self, label: str) -> None:
        """Start a block."""
        self._lines.append(f"{label}:")
        self.block = label
        self.dead = False

    def branch(self, label: str) -> None:
        """Leave the block for another."""
        self._lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then: str, orelse: str, metadata: str = "") -> None:
        self._lines.append(f"  br i1 {condition}, label %{then}, label %{orelse}{metadata}")

    def cold(self, label: str, lines: list[str]) -> None:
        """Add a block that is seldom reached; its last line leaves it."""
        self._cold.append(f"{label}:")
        self._cold += [f"  {line}" for line in lines]

    def exit(self, stem: str, lines: list[str]) -> str:
        """The label of a block that leaves the function; blocks of the same lines are one, as what they name is known
        wherever they are asked for."""
        key = tuple(lines)
        if key not in self._exits:
            self._exits[key] = self.label(stem)
            self.cold(self._exits[key], lines)
        return self._exits[key]

    def reserve(self) -> int:
        """A line to be filled in later with `fill` (a phi whose last operand is not known yet)."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill(self, line: int, text: str) -> None:
        self._lines[line] = f"  {text}"

    @property
    def written(self) -> int:
        """How many lines the body has so far."""
        return len(self._lines)

    def attach(self, first: int, metadata: str) -> None:
        """Attach metadata to the instructions from line `first` on that have none of its kind."""
        kind = f" {metadata.partition(' ')[0]} "
        for number in range(first, len(self._lines)):
            line = self._lines[number]
            if line.startswith("  ") and kind not in line:
                self._lines[number] = f"{line}, {metadata}"

    def text(self, header: str) -> str:
        """The function, given its header without the brace."""
        return "\n".join([f"{header} {{", "entry:", *self._entry, *self._lines, *self._cold, "}"])

    def bound(self, value: str) -> int | None:
        """A number that an integer value is known not to be below."""
        return int(value) if is_literal(value) else self.bounds.get(value)

    def pointer(self, place: str) -> str:
        """A pointer with its type."""
        space = self.spaces.get(place)
        return f"ptr {place}" if space is None else f"ptr addrspace({space}) {place}"

    def moved(self, place: str, kind: str, index: str) -> str:
        """The address of an element, in bounds."""
        result = self.value(f"getelementptr inbounds {kind}, {self.pointer(place)}, i64 {index}")
        if place in self.spaces:
            self.spaces[result] = self.spaces[place]
        return result

    # ---- arithmetic on values that may be literals --------------------------------------------------------------

    def binary(self, operation: str, kind: str, left: str, right: str) -> str:
        return self.value(f"{operation} {kind} {left}, {right}")

    def multiply(self, left: str, right: str) -> str:
        """i64 product of sizes and indices that cannot overflow."""
        if left == "0" or right == "0":
            return "0"
        if left == "1":
            return right
        if right == "1":
            return left
        if is_literal(left) and is_literal(right):
            return str(int(left) * int(right))
        return self.value(f"mul nsw i64 {left}, {right}")

    def add(self, left: str, right: str) -> str:
        """i64 sum of sizes and indices that cannot overflow."""
        if left == "0":
            return right
        if right == "0":
            return left
        if is_literal(left) and is_literal(right):
            return str(int(left) + int(right))
        return self.value(f"add nsw i64 {left}, {right}")

    def intrinsic(self, name: str, kind: str, *arguments: str, flags: str = "") -> str:
        """Call `llvm.name.kind(kind...) -> kind`."""
        suffix = SUFFIX.get(kind, kind)
        parameters = ", ".join([kind] * len(arguments))
        function = self.module.declare(kind, f"llvm.{name}.{suffix}", parameters, "")
        return self.value(f"call {flags}{kind} {function}({', '.join(f'{kind} {a}' for a in arguments)})")

    def select(self, condition: str, kind: str, then: str, orelse: str) -> str:
        if then == orelse:
            return then
        return self.value(f"select i1 {condition}, {kind} {then}, {kind} {orelse}")


@record(frozen=False)
class Locations:
    """Debug locations: the place in the user's source that an instruction is made from, as the metadata that LLVM keeps
    up to assembly text (there `.loc`, the directive that makes DWARF's line table). `engine.line_tables` reads them.

    Only text that is made to be read, and code for debuggers, has them. The function that is compiled is in the file
    `filename`; what is inlined from another is in a lexical block of that file. Statements without a place of their own
    (loops, branches) have that of the statement before; instructions that belong to no statement, such as those of the
    entry, have none. `emission` is what LLVM makes of them: directives in assembly text, or DWARF in objects.
    """

    filename: str
    emission: Literal["DebugDirectivesOnly", "FullDebug"] = "DebugDirectivesOnly"
    unit: str = ""
    version: str = ""
    pos: Pos | None = None  # of the statement that was written last

    def locate(self, f: FunctionText, first: int) -> None:
        """Locate the lines of `f` from number `first` on that have no location yet."""
        if not isinstance(self.pos, Place):
            return
        file = self._file(f.module, self.filename)
        if not self.unit:
            kind = f"emissionKind: {self.emission}"
            self.unit = f.module.node(f"distinct !DICompileUnit(language: DW_LANG_Python, file: {file}, {kind})")
            self.version = f.module.node('!{i32 2, !"Debug Info Version", i32 3}')
        if not f.subprogram:
            name, kind = _quoted(self.pos.name), "!DISubroutineType(types: !{})"
            where = f"file: {file}, unit: {self.unit}, spFlags: DISPFlagDefinition"
            f.subprogram = f.node(f'distinct !DISubprogram(name: "{name}", type: {kind}, {where})')
        scope = f.subprogram
        if self.pos.filename != self.filename:
            other = self._file(f.module, self.pos.filename)
            scope = f.node(f"!DILexicalBlockFile(scope: {scope}, file: {other}, discriminator: 0)")
        node = f.node(f"!DILocation(line: {self.pos.line}, column: {self.pos.column + 1}, scope: {scope})")
        f.attach(first, f"!dbg {node}")

    def named_metadata(self) -> list[str]:
        named = {"dbg.cu": self.unit, "module.flags": self.version}
        return [f"!llvm.{name} = !{{{node}}}" for name, node in named.items() if node]

    def _file(self, module: ModuleText, filename: str) -> str:
        return module.shared_node(f'!DIFile(filename: "{_quoted(filename)}", directory: "")')


def _quoted(text: str) -> str:
    """A text within quotes; `self` stands for a node's own name in the text of a node."""
    safe = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())
    return safe.replace("self", "\\73elf")


def global_name(name: str) -> str:
    """`@name`, quoted where LLVM's syntax needs it."""
    return f"@{name}" if re.fullmatch(r"[A-Za-z_$.][\w$.]*", name, re.ASCII) else f'@"{name}"'


def is_literal(value: str) -> bool:
    """Whether a value is written out rather than computed."""
    return not value.startswith("%")
