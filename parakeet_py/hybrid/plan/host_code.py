"""The host part of a function as Python code.

What stands between launches is little: sizes, checks, loops, choices. It is written out as a Python function of the
same shape, which asks a `Memory` for what concerns arrays. Integers of 64 bits and bools are Python's own there, any
other scalar is a NumPy scalar of exactly its dtype; arithmetic that is not on sizes goes through the interpreters'
`semantics`, elementary functions are compiled (`host_scalars`).

    def host(rt, x, y):
        n = x.shape[0]
        if not n == y.shape[0]:
            raise rt.failure(1, (n, y.shape[0]))
        out = rt.new('float64', (n,), 'C')
        rt.launch(0, (n + 255) >> 8, (x, y, n, out))
        return (out,)

Where kernels are launched in loops, rounds may be asked for again without going through them (`plan.rounds`):

        found = rt.again(0, (n, x.seen()), (x,))
        if found is None:
            rt.launch(0, (n + 255) >> 8, (x, n))
            rt.gone(0, ())

In steps it is a generator of the same statements, which stops wherever it has to wait for the device: before it loads a
number. Others can be asked for something meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any, Protocol

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.types import FLOATS, Array, Scalar, Type
from parakeet_py.hybrid.plan.host_scalars import elementary
from parakeet_py.hybrid.plan.rounds import Round, Rounds
from parakeet_py.imp import ir
from parakeet_py.typed_ir.ir import (
    ELEMENTARY,
    Cast,
    Const,
    Dim,
    Interrupted,
    Load,
    Operand,
    Prim,
    Reshape,
    Stride,
    Strided,
    Var,
    View,
    dtype_of,
)
from parakeet_py.typed_ir.semantics import OVERFLOW, convert, evaluate, scalar


class Memory(Protocol):
    """What host code asks of the memory that its arrays are in: a device's, a team's, or none at all in a dry run."""

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> Any: ...
    def view(self, base: Any, starts: Sequence[int], axes: Sequence[tuple[int | None, int, int]]) -> Any: ...
    def reshape(self, base: Any, shape: tuple[int, ...]) -> Any: ...
    def stride(self, array: Any, axis: int) -> int: ...
    def strided(self, base: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Any: ...
    def load(self, array: Any, indices: tuple[int, ...]) -> Any: ...
    def store(self, array: Any, indices: tuple[int, ...], value: Any) -> None: ...
    def offered(self, left: Any, right: Any, out: Any) -> bool: ...
    def launch(self, kernel: int, blocks: int, args: tuple[Any, ...]) -> None: ...
    def opaque(self, site: int, args: tuple[Any, ...]) -> Sequence[Any]: ...
    def failure(self, code: int, args: tuple[Any, ...]) -> Exception: ...
    def again(self, number: int, key: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...] | None: ...
    def gone(self, number: int, given: tuple[Any, ...]) -> None: ...


HostFunction = Callable[..., tuple[Any, ...]]
HostSteps = Callable[..., Generator[None, None, tuple[Any, ...]]]

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_LOW, _SPAN = -(1 << 63), 1 << 64
AGAIN = "rt.again("
TO_KERNELS = "rt.launch(", f"found = {AGAIN}"  # how lines begin in which a number is for kernels only


def host_function(function: ir.Function) -> tuple[HostFunction, str]:
    """The Python function of a host part, and its text; called with the runtime and the leaf arguments."""
    writer = _Writer(function)
    text = writer.text()
    made: HostFunction = hidden(_made(writer, text))
    return made, text


def host_steps(function: ir.Function) -> HostSteps:
    """A host part in steps; elements of arrays that nothing but the caller needs are given as views, so that the device
    need not be waited for."""
    writer = _Writer(function, last_loads(function), steps=True)
    made: HostSteps = _made(writer, writer.text())
    return made


def _made(writer: _Writer, text: str) -> Any:
    scope: dict[str, Any] = dict(writer.constants)
    scope |= {
        "__name__": __name__,  # whose frames are the package's own
        "wrap": _wrap,
        "evaluate": evaluate,
        "convert": convert,
        "scalar": scalar,
        "checked": _checked,
        "elementary": elementary,
    }
    exec(compile(text, f"<host part of {writer.function.name}>", "exec"), scope)
    return scope["host"]


def last_loads(function: ir.Function) -> list[Var]:
    """What a host part loads at its end to give it, in order."""
    found: list[Var] = []
    for statement in reversed(function.body.statements):
        match statement:
            case ir.Let(out, Load()) if out in function.results:
                found.insert(0, out)
            case ir.Release():
                pass
            case _:
                break
    return found


def given_loads(function: ir.Function) -> list[Var]:
    """What a host part loads for nothing but to give it, in order."""
    uses = (statement for statement in ir.walk(function.body) if not isinstance(statement, ir.Release))
    used = {operand for statement in uses for operand in ir.operands_in(statement)}
    found = [one.out for one in function.body.statements if isinstance(one, ir.Let) and isinstance(one.rhs, Load)]
    return [var for var in found if var in function.results and var not in used]


def _wrap(value: int) -> int:
    """An int64 result, modulo its width."""
    return value if _LOW <= value < -_LOW else (value - _LOW) % _SPAN + _LOW


def _checked(value: int) -> int:
    if not _LOW <= value < -_LOW:
        raise OverflowError(OVERFLOW)
    return value


def _native(kind: Type) -> bool:
    """Whether values of this type are Python's own in host code."""
    return isinstance(kind, Scalar) and kind.dtype in ("int64", "bool")


class _Writer:
    def __init__(self, function: ir.Function, viewed: Collection[Var] = (), steps: bool = False) -> None:
        self.function = function
        self.viewed = viewed
        self.steps = steps
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Var | ir.Cell, str] = {}
        self.constants: dict[str, Any] = {}
        self.loops = self.rounds = 0  # around a statement; so far
        launches = any(isinstance(one, ir.Launch) for one in ir.walk(function.body))
        self.found = Rounds(function) if launches and not steps else None

    def text(self) -> str:
        params = ", ".join(["rt", *(self.name(param) for param in self.function.params)])
        if self.steps:
            self.line("if False: yield")  # a generator, even where nothing is waited for
        self.block(self.function.body)
        results = "".join(f"{self.operand(result)}, " for result in self.function.results)
        self.line(f"return ({results})")
        return "\n".join([f"def host({params}):", *self.lines, ""])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, place: Var | ir.Cell) -> str:
        if place not in self.names:
            stem = "".join(c if c.isalnum() and c.isascii() else "_" for c in place.name)
            self.names[place] = f"{'c' if isinstance(place, ir.Cell) else 'v'}_{stem}_{len(self.names)}"
        return self.names[place]

    # ---- operands ----------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> str:
        """The text of a value as host code keeps it."""
        if isinstance(operand, Var):
            return self.name(operand)
        if _native(operand.type):
            return (
                f"({operand.value!r})" if isinstance(operand.value, int) and operand.value < 0 else repr(operand.value)
            )
        return self.constant(operand)

    def constant(self, operand: Const) -> str:
        name = f"k_{len(self.constants)}"
        self.constants[name] = scalar(operand.value, operand.type.dtype)
        return name

    def scalar(self, operand: Operand) -> str:
        """The text of a NumPy scalar of the operand's dtype."""
        if isinstance(operand, Const):
            return self.constant(operand)
        return f"scalar({self.name(operand)}, {dtype_of(operand)!r})" if _native(operand.type) else self.name(operand)

    def tuple_of(self, operands: Sequence[Operand]) -> str:
        return "(" + "".join(f"{self.operand(operand)}, " for operand in operands) + ")"

    def kept(self, text: str, kind: Type) -> str:
        """A NumPy scalar as host code keeps values of its type."""
        if not isinstance(kind, Scalar) or not _native(kind):
            return text
        return f"int({text})" if kind.dtype == "int64" else f"bool({text})"

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> None:
        if not block.statements:
            self.line("pass")
        for statement in self.found.of(block) if self.found and self.loops else block.statements:
            if isinstance(statement, Round):
                self.round(statement)
            else:
                self.statement(statement)

    def round(self, found: Round) -> None:
        number, self.rounds = self.rounds, self.rounds + 1
        self.line(f"found = {AGAIN}{number}, ({self.key(found)}), ({self.names_of(found.reads, arrays=True)}))")
        gives = self.names_of(found.gives)
        loops, self.loops = self.loops, 0
        self.line("if found is None:")
        self.depth += 1
        self.block(found.asks)
        self.line(f"rt.gone({number}, ({gives}))")
        self.depth -= 1
        self.line("else:")
        self.depth += 1
        if gives:
            self.line(f"{gives}= found")
        self.line("found = None")  # its arrays are given up where the others are
        self.depth -= 1
        if found.drops:
            self.line(f"{' = '.join(map(self.name, found.drops))} = None")
        self.loops = loops
        for statement in found.behind:
            self.statement(statement)

    def key(self, found: Round) -> str:
        """What a round is known by: of floats their bits, so that zeros of both signs are not the same."""
        parts = []
        for one in found.reads:
            name = self.name(one)
            if not isinstance(one.type, Scalar):
                parts.append(f"{name} and {name}.seen(), ")
            else:
                parts.append(f"{name}, " if _native(one.type) else f"{name}.tobytes(), ")
        return "".join(parts)

    def names_of(self, places: Sequence[Var | ir.Cell], arrays: bool = False) -> str:
        return "".join(f"{self.name(one)}, " for one in places if not (arrays and isinstance(one.type, Scalar)))

    def inside(self, header: str, *blocks: ir.Block) -> None:
        self.line(header)
        self.depth += 1
        for block in blocks:
            self.block(block)
        self.depth -= 1

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Let(out, rhs):
                if self.steps and isinstance(rhs, Load) and out not in self.viewed:
                    self.line("yield")
                self.line(f"{self.name(out)} = {self.rhs(out, rhs)}")
            case ir.Declare(cell, init):
                self.line(f"{self.name(cell)} = {self.unset(cell.type) if init is None else self.operand(init)}")
            case ir.Write(cell, value):
                self.line(f"{self.name(cell)} = {self.operand(value)}")
            case ir.Store(array, indices, value):
                self.line(f"rt.store({self.name(array)}, {self.tuple_of(indices)}, {self.operand(value)})")
            case ir.If(condition, then, orelse):
                self.inside(f"if {self.operand(condition)}:", then)
                if orelse.statements:
                    self.inside("else:", orelse)
            case ir.For(index, start, stop, step, body):
                bounds = ", ".join(self.operand(bound) for bound in (start, stop, step))
                self.loops += 1
                self.inside(f"for {self.name(index)} in range({bounds}):", body)
                self.loops -= 1
            case ir.While(head, condition, body):
                self.line("while True:")
                self.depth, self.loops = self.depth + 1, self.loops + 1
                self.block(head)
                self.line(f"if not {self.operand(condition)}: break")
                self.block(body)
                self.depth, self.loops = self.depth - 1, self.loops - 1
            case ir.Break():
                self.line("break")
            case ir.Check(condition, failure, args):
                self.line(f"if not {self.operand(condition)}: raise rt.failure({failure}, {self.tuple_of(args)})")
            case ir.Release(place):
                self.line(f"{self.name(place)} = None")
            case ir.Retain():
                pass  # Python counts references itself
            case ir.Launch(kernel, blocks, args):
                self.line(f"rt.launch({kernel}, {self.operand(blocks)}, {self.tuple_of(args)})")
            case ir.Opaque(outs, site, args):
                names = "".join(f"{self.name(out)}, " for out in outs)
                self.line((f"{names}= " if outs else "") + f"rt.opaque({site}, {self.tuple_of(args)})")
            case _:
                raise AssertionError(f"{statement!r} in a host part")

    def unset(self, kind: Type) -> str:
        """What a cell holds before it is written."""
        if not isinstance(kind, Scalar):
            return "None"
        if _native(kind):
            return "0" if kind.dtype == "int64" else "False"
        return self.constant(Const(0j if kind.dtype.startswith("complex") else 0, kind))

    def rhs(self, out: Var, rhs: ir.Rhs) -> str:
        match rhs:
            case Prim(name, args):
                return self.prim(out, name, args)
            case Cast(arg) if _native(arg.type) and dtype_of(out) == "float64":
                return f"scalar({self.operand(arg)}, 'float64')"  # rounded once, as integers are
            case Cast(arg):
                return self.kept(f"convert({self.scalar(arg)}, {dtype_of(out)!r})", out.type)
            case ir.Read(cell):
                return self.name(cell)
            case Load(array, indices) if out in self.viewed:
                return f"rt.view({self.name(array)}, {self.tuple_of(indices)}, ())"
            case Load(array, indices):
                return self.kept(f"rt.load({self.name(array)}, {self.tuple_of(indices)})", out.type)
            case Dim(array, axis):
                return f"{self.name(array)}.shape[{axis}]"
            case ir.NewArray(extents):
                assert isinstance(out.type, Array)
                return f"rt.new({out.type.dtype!r}, {self.tuple_of(extents)}, {out.type.layout!r})"
            case ir.Offered(left, right, result):
                return f"rt.offered({', '.join(map(self.name, (left, right, result)))})"
            case View(base, starts, axes):
                shown = "".join(f"({a.source}, {self.operand(a.extent)}, {self.operand(a.step)}), " for a in axes)
                return f"rt.view({self.name(base)}, {self.tuple_of(starts)}, ({shown}))"
            case Reshape(base, extents):
                return f"rt.reshape({self.name(base)}, {self.tuple_of(extents)})"
            case Interrupted():
                return "False"  # signals are not looked at
            case Stride(array, axis):
                return f"rt.stride({self.name(array)}, {axis})"
            case Strided(base, offset, extents, strides):
                place = f"{self.operand(offset)}, {self.tuple_of(extents)}, {self.tuple_of(strides)}"
                return f"rt.strided({self.name(base)}, {place}, {dtype_of(out)!r})"
        raise AssertionError(f"{rhs!r} in a host part")

    def prim(self, out: Var, name: str, args: tuple[Operand, ...]) -> str:
        if name == "select":
            condition, then, orelse = (self.operand(arg) for arg in args)
            return f"({then} if {condition} else {orelse})"
        kinds = {dtype_of(arg) for arg in args}
        texts = [self.operand(arg) for arg in args]
        if kinds == {"int64"}:
            if name in _ARITHMETIC:
                return f"wrap({texts[0]} {_ARITHMETIC[name]} {texts[1]})"
            if name.removesuffix("_checked") in _ARITHMETIC:
                return f"checked({texts[0]} {_ARITHMETIC[name.removesuffix('_checked')]} {texts[1]})"
            if name in ("minimum", "maximum"):
                return f"{name[:3]}({', '.join(texts)})"
            if name == "shr" and isinstance(args[1], Const) and 0 <= args[1].whole < 64:
                return f"({texts[0]} >> {texts[1]})"
            if name in _COMPARE:
                return f"({texts[0]} {_COMPARE[name]} {texts[1]})"
        if name in _COMPARE and kinds.issubset(FLOATS) and len(kinds) == 1:
            return f"bool({' '.join((self.scalar(args[0]), _COMPARE[name], self.scalar(args[1])))})"
        if kinds == {"bool"}:
            if name in _BITS:
                return f"({texts[0]} {_BITS[name]} {texts[1]})"
            if name == "not":
                return f"(not {texts[0]})"
        given = "".join(f"{self.scalar(arg)}, " for arg in args)
        how = "elementary" if name in ELEMENTARY and kinds.issubset(FLOATS) else "evaluate"
        return self.kept(f"{how}({name!r}, ({given}))", out.type)
