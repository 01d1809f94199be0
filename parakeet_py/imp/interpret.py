"""The meaning of Imp: an interpreter that executes a function on NumPy data, one element at a time.

Plain and slow on purpose. An array is a NumPy array (a view shares memory) with the block that owns its memory; blocks
count their references, and the interpreter raises `BrokenInvariant` when one is used after it was freed, released too
often, or still held when the function has returned. Fresh memory holds a pattern no program expects; every index is
tested. `Parallel` regions run as several ranges, with bounds at multiples of the grain, the last range first: a result
that changes with their number shows that ranges were not independent.

    run_function(function, [x, y], ranges=3)  ->  [result leaf, ...]
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base import routines
from parakeet_py.base.types import Array, Scalar, Type
from parakeet_py.frontend.evaluate.frames import deep_recursion
from parakeet_py.imp.ir import (
    Block,
    Break,
    Call,
    Cell,
    Check,
    Clock,
    Declare,
    For,
    Function,
    If,
    Let,
    Matmul,
    NewArray,
    Opaque,
    Pack,
    Pairwise,
    Parallel,
    Read,
    Release,
    Retain,
    Rhs,
    Routine,
    Store,
    While,
    Write,
)
from parakeet_py.typed_ir.interpret import (
    BrokenInvariant,
    OpaqueCallback,
    enter,
    format_failure,
    leave,
    view_of,
    with_warnings_as_now,
)
from parakeet_py.typed_ir.ir import (
    AnyView,
    Cast,
    Const,
    Dim,
    Interrupted,
    Load,
    Operand,
    Prim,
    Stride,
    Var,
    dtype_of,
)
from parakeet_py.typed_ir.semantics import convert, evaluate_quietly, pairwise, scalar


class Memory:
    """A counted block of heap memory."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 1


class Descriptor:
    """An array and the block that owns its memory (None for what Python or the stack owns)."""

    __slots__ = ("array", "memory")

    def __init__(self, array: Any, memory: Memory | None = None) -> None:
        self.array = array
        self.memory = memory


class _Break(Exception):
    """Leaves a loop."""


class _Failed(Exception):
    """A failed check, with its iteration number."""

    def __init__(self, order: int | None, error: Exception) -> None:
        self.order = order
        self.error = error


def run_function(
    function: Function, args: Sequence[Any], opaque: OpaqueCallback | None = None, ranges: int = 1
) -> list[Any]:
    """Execute `function` on leaf arguments (arrays are not copied, so stores are seen by the caller).

    Parameters
    ----------
    opaque
        Called as ``opaque(site, args)`` for an `Opaque`; gives the leaves of its result.
    ranges
        How many ranges a `Parallel` is cut into, at most.
    """
    if len(args) != len(function.params):
        raise BrokenInvariant(f"{function.name} has {len(function.params)} leaf parameters, not {len(args)}")
    machine = _Machine(function, opaque and with_warnings_as_now(opaque), ranges)
    for param, arg in zip(function.params, args, strict=True):
        machine.values[param] = _enter(arg, param.type)
    try:
        with deep_recursion(bool(function.procedures)), np.errstate(all="ignore"):
            machine.block(function.body)
    except _Failed as failed:
        raise failed.error from None
    results = [machine.value(result) for result in function.results]
    for result in results:
        if isinstance(result, Descriptor):
            machine.release(result)
    held = [memory.name for memory in machine.memories if memory.count]
    if held:
        raise BrokenInvariant(f"{function.name} returned but still holds {', '.join(held)}")
    return [_leave(value, result.type) for value, result in zip(results, function.results, strict=True)]


def _enter(value: Any, kind: Type) -> Any:
    given = enter(value, kind)
    return Descriptor(given) if isinstance(kind, Array) else given


def _leave(value: Any, kind: Type) -> Any:
    return leave(value.array if isinstance(value, Descriptor) else value, kind)


class _Machine:
    def __init__(self, function: Function, opaque: OpaqueCallback | None, ranges: int) -> None:
        self.function = function
        self.opaque = opaque
        self.ranges = ranges
        self.values: dict[Var | Cell, Any] = {}
        self.memories: list[Memory] = []
        self.in_region = False
        self.procedures = {one.name: one for one in function.procedures}
        self.levels = sys.getrecursionlimit()  # how much deeper calls may go

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, operand: Operand) -> Any:
        if isinstance(operand, Const):
            return scalar(operand.value, operand.type.dtype)
        return self.values[operand]

    def all(self, operands: Sequence[Operand]) -> list[Any]:
        return [self.value(operand) for operand in operands]

    def number(self, operand: Operand) -> int:
        return operand.whole if isinstance(operand, Const) else int(self.values[operand])

    def numbers(self, operands: Sequence[Operand]) -> tuple[int, ...]:
        return tuple([self.number(operand) for operand in operands])

    def array(self, var: Var) -> Any:
        """The NumPy array of a descriptor whose memory is alive."""
        descriptor = self.values[var]
        if descriptor is None:
            raise BrokenInvariant(f"{var!r} is null")
        if descriptor.memory is not None and not descriptor.memory.count:
            raise BrokenInvariant(f"{var!r} is used after its memory {descriptor.memory.name} was freed")
        return descriptor.array

    def element(self, var: Var, indices: tuple[Operand, ...]) -> tuple[Any, tuple[int, ...]]:
        array, point = self.array(var), self.numbers(indices)
        _in_range(var, array, point)
        return array, point

    # ---- memory ------------------------------------------------------------------------------------------------------

    def new(self, out: Var, extents: tuple[int, ...], space: str) -> Descriptor:
        assert isinstance(out.type, Array)
        if any(extent < 0 for extent in extents):
            raise BrokenInvariant(f"{out!r} is made with extents {extents}")
        array = np.empty(extents, out.type.dtype, order="F" if out.type.layout == "F" else "C")
        array.fill(True if out.type.dtype == "bool" else 0x5B)
        if space == "stack":
            return Descriptor(array)
        if self.in_region:
            raise BrokenInvariant(f"{out!r} is made on the heap inside a region")
        memory = Memory(repr(out))
        self.memories.append(memory)
        return Descriptor(array, memory)

    def retain(self, descriptor: Any) -> None:
        if isinstance(descriptor, Descriptor) and descriptor.memory is not None:
            if not descriptor.memory.count:
                raise BrokenInvariant(f"{descriptor.memory.name} is retained after it was freed")
            descriptor.memory.count += 1

    def release(self, descriptor: Any) -> None:
        if isinstance(descriptor, Descriptor) and descriptor.memory is not None:
            if not descriptor.memory.count:
                raise BrokenInvariant(f"{descriptor.memory.name} is released too often")
            descriptor.memory.count -= 1

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for statement in block.statements:
            _STATEMENTS[type(statement)](self, statement)

    def let(self, statement: Let) -> None:
        self.values[statement.out] = self.rhs(statement.rhs, statement.out)

    def rhs(self, rhs: Rhs, out: Var) -> Any:
        match rhs:
            case Prim(name, args):
                try:
                    return evaluate_quietly(name, self.all(args))
                except OverflowError as error:
                    raise _Failed(None, error) from None
            case Read(cell):
                value = self.values[cell]
                if value is None and isinstance(cell.type, Scalar):
                    raise BrokenInvariant(f"{cell!r} is read before it is written")
                return value
            case Load(array, indices):
                elements, point = self.element(array, indices)
                return elements[point]
            case Cast(arg):
                return convert(self.value(arg), dtype_of(out))
            case Dim(array, axis):
                return np.int64(self.values[array].array.shape[axis])
            case Stride(array, axis):
                return np.int64(self.values[array].array.strides[axis])
            case Interrupted():
                return np.bool_(False)
            case NewArray(extents, space):
                return self.new(out, self.numbers(extents), space)
            case AnyView(base):
                view = view_of(rhs, self.array(base), self.numbers, dtype_of(out))
                return Descriptor(view, self.values[base].memory)
            case Pack(array, begin, end, values, flags, count):
                length, first = int(self.value(count)), int(self.value(begin))
                kept = self.array(values)[:length][self.array(flags)[:length]]
                if first + len(kept) > min(int(self.value(end)), len(self.array(array))):
                    raise BrokenInvariant(f"{array!r} is packed beyond its end")
                self.array(array)[first : first + len(kept)] = kept
                return np.int64(first + len(kept))

            case Pairwise(name, array, start, count):
                memory, length = self.array(array), int(self.value(count))
                place = tuple(int(self.value(index)) for index in start)
                axis = 0 if isinstance(array.type, Array) and array.type.layout == "F" else memory.ndim - 1
                line = memory[(*place[:axis], slice(place[axis], place[axis] + length), *place[axis + 1 :])]
                if len(line) != length:
                    raise BrokenInvariant(f"a sum of {length} elements of {array!r} goes beyond its end")
                if length == 0:
                    return line.dtype.type(-0.0 if name == "add" else 1.0)
                unit = 4 if line.dtype.kind == "c" else 8
                return pairwise(line, operator.add if name == "add" else operator.mul, unit)

    def declare(self, statement: Declare) -> None:
        self.values[statement.cell] = None if statement.init is None else self.value(statement.init)

    def write(self, statement: Write) -> None:
        if statement.cell not in self.values:
            raise BrokenInvariant(f"{statement.cell!r} is written before it is declared")
        self.values[statement.cell] = self.value(statement.value)

    def store(self, statement: Store) -> None:
        elements, point = self.element(statement.array, statement.indices)
        elements[point] = self.value(statement.value)

    def if_(self, statement: If) -> None:
        self.block(statement.then if self.value(statement.condition) else statement.orelse)

    def for_(self, statement: For) -> None:
        start, stop, step = self.numbers((statement.start, statement.stop, statement.step))
        try:
            for index in range(start, stop, step):
                self.values[statement.index] = np.int64(index)
                self.block(statement.body)
        except _Break:
            pass

    def while_(self, statement: While) -> None:
        try:
            while True:
                self.block(statement.head)
                if not self.value(statement.condition):
                    return
                self.block(statement.body)
        except _Break:
            pass

    def break_(self, statement: Break) -> None:
        raise _Break

    def parallel(self, statement: Parallel) -> None:
        if self.in_region:
            raise BrokenInvariant("a region inside a region")
        extent, grain = self.number(statement.extent), max(1, self.number(statement.grain))
        self.number(statement.work)
        grains = -(-extent // grain)
        parts = max(1, min(self.ranges, grains))
        bounds = [min(grains * part // parts * grain, extent) for part in range(parts + 1)]
        failures: list[_Failed] = []
        self.in_region = True
        for low, high in reversed(list(itertools.pairwise(bounds))):
            self.values[statement.lo], self.values[statement.hi] = np.int64(low), np.int64(high)
            try:
                self.block(statement.body)
            except _Failed as failed:
                failures.append(failed)
        self.in_region = False
        if failures:
            # Overflow has no number of its own: it counts as the first iteration of its range.
            raise min(reversed(failures), key=lambda failed: -1 if failed.order is None else failed.order)

    def check(self, statement: Check) -> None:
        if not self.value(statement.condition):
            site = self.function.failures[statement.failure]
            order = None if statement.order is None else self.number(statement.order)
            raise _Failed(order, format_failure(site.failure, self.all(statement.args)))

    def matmul(self, statement: Matmul) -> None:
        target = self.array(statement.out)
        target[...] = np.matmul(self.array(statement.left), self.array(statement.right))

    def routine(self, statement: Routine) -> None:
        outs, ins = ([self.array(var) for var in side] for side in (statement.outs, statement.ins))
        failed = routines.run(statement.name, outs, ins)
        if statement.failed is not None:
            self.values[statement.failed] = np.bool_(failed)

    def call(self, statement: Call) -> None:
        if self.levels < statement.levels:
            raise _Failed(None, format_failure(self.function.failures[statement.failure].failure, []))
        procedure = self.procedures[statement.procedure]
        args = self.all(statement.args)
        outer, self.values = self.values, dict(zip(procedure.params, args, strict=True))
        caller = self.function
        if procedure.library:
            self.function = procedure
        self.levels -= statement.levels
        self.block(procedure.body)
        results = self.all(procedure.results)
        self.values, self.function = outer, caller
        self.levels += statement.levels
        self.values.update(zip(statement.outs, results, strict=True))

    def opaque_call(self, statement: Opaque) -> None:
        if self.opaque is None:
            raise BrokenInvariant("the function calls back into Python; pass `opaque`")
        args = [_leave(self.value(arg), arg.type) for arg in statement.args]
        leaves = self.opaque(statement.site, args)
        for out, leaf in zip(statement.outs, leaves, strict=True):
            value = _enter(leaf, out.type)
            if isinstance(value, Descriptor):
                value.memory = Memory(repr(out))
                self.memories.append(value.memory)
            self.values[out] = value


def _in_range(var: Var, array: Any, point: tuple[int, ...]) -> None:
    shape = array.shape
    if len(point) == len(shape):
        for i, n in zip(point, shape):  # noqa: B905 - the hottest line of the interpreter
            if not 0 <= i < n:
                break
        else:
            return
    raise BrokenInvariant(f"index {point} of {var!r} with shape {shape}")


_STATEMENTS: dict[type, Callable[[_Machine, Any], None]] = {
    Let: _Machine.let,
    Declare: _Machine.declare,
    Write: _Machine.write,
    Store: _Machine.store,
    If: _Machine.if_,
    For: _Machine.for_,
    While: _Machine.while_,
    Break: _Machine.break_,
    Parallel: _Machine.parallel,
    Check: _Machine.check,
    Clock: lambda machine, statement: None,
    Retain: lambda machine, statement: machine.retain(machine.values[statement.array]),
    Release: lambda machine, statement: machine.release(machine.values[statement.array]),
    Matmul: _Machine.matmul,
    Routine: _Machine.routine,
    Opaque: _Machine.opaque_call,
    Call: _Machine.call,
}
