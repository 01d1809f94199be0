"""The meaning of the typed IR: an interpreter that executes a function on NumPy data, one element at a time.

Plain and slow on purpose. Scalars are NumPy scalars, arrays are NumPy arrays (a `View` is one too, sharing memory).
New memory is filled with a pattern no program expects, and every index is tested, so that a pass which reads what was
never written, or reads out of range, is found out. With `order` the points of `Map`s run in a shuffled order: a result
that changes with it shows iterations that were not independent.

    run_function(function, [x, y])  ->  [result leaf, ...]

raises what the function raises: the builtin exception a failed `Check` names, OverflowError of checked arithmetic.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from parakeet_py.base import routines
from parakeet_py.base.errors import DeoptimizedError, UnusualExtentsError, exception_named, exception_with
from parakeet_py.base.types import Array, Scalar, Type
from parakeet_py.frontend.evaluate.frames import deep_recursion
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Function, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.semantics import TOO_DEEP, convert, evaluate_quietly, pairwise, scalar, strided

OpaqueCallback = Callable[[int, list[Any]], Sequence[Any]]


class BrokenInvariant(AssertionError):
    """The program did what the IR promises never to happen: its maker is wrong, not its input."""


def run_function(
    function: Function,
    args: Sequence[Any],
    opaque: OpaqueCallback | None = None,
    order: random.Random | None = None,
) -> list[Any]:
    """Execute `function` on leaf arguments (arrays are not copied, so stores are seen by the caller).

    Parameters
    ----------
    opaque
        Called as ``opaque(site, args)`` for an `Opaque`; gives the leaves of its result.
    order
        Shuffles the order of the points of every `Map`.
    """
    if len(args) != len(function.params):
        raise BrokenInvariant(f"{function.name} has {len(function.params)} leaf parameters, not {len(args)}")
    machine = _Machine(opaque and with_warnings_as_now(opaque), order, {one.name: one for one in function.procedures})
    for param, arg in zip(function.params, args, strict=True):
        machine.values[param] = enter(arg, param.type)
    with deep_recursion(bool(function.procedures)), np.errstate(all="ignore"):
        results = machine.block(function.body)
    return [leave(value, operand.type) for value, operand in zip(results, function.body.results, strict=True)]


def with_warnings_as_now(opaque: OpaqueCallback) -> OpaqueCallback:
    """What is handed back to Python warns as the caller has asked; the interpreter itself is quiet."""
    asked = np.geterr()

    def call(site: int, args: list[Any]) -> Sequence[Any]:
        with np.errstate(**asked):
            return opaque(site, args)

    return call


def format_failure(failure: ir.Failure, args: Sequence[Any]) -> Exception:
    """The exception a failed check raises."""
    if failure.exception == "Deoptimize":
        return DeoptimizedError(failure.message)
    if failure == GENERAL:
        return UnusualExtentsError()
    kind = exception_named(failure.exception)
    return exception_with(kind, failure.message, [arg.item() for arg in args])


def enter(value: Any, type_: Type) -> Any:
    """An argument as interpreters have it."""
    match type_:
        case Scalar(dtype):
            return scalar(value, dtype)
        case Array(dtype, rank):
            array = np.asarray(value)
            if array.dtype != dtype or array.ndim != rank:
                raise BrokenInvariant(f"expected {type_!r}, not {array.dtype}[{array.ndim}]")
            return array
        case _:
            return value


def leave(value: Any, type_: Type) -> Any:
    """A result as the caller gets it."""
    return value.item() if isinstance(type_, Scalar) and type_.python else value


class _Machine:
    def __init__(
        self,
        opaque: OpaqueCallback | None,
        order: random.Random | None,
        procedures: Mapping[str, Function],
    ) -> None:
        self.values: dict[Var, Any] = {}
        self.opaque = opaque
        self.order = order
        self.procedures = procedures
        self.levels = sys.getrecursionlimit()  # how much deeper calls may go

    def value(self, operand: Operand) -> Any:
        if isinstance(operand, Var):
            return self.values[operand]
        return scalar(operand.value, operand.type.dtype)

    def all(self, operands: Sequence[Operand]) -> list[Any]:
        return [self.value(operand) for operand in operands]

    def numbers(self, operands: Sequence[Operand]) -> tuple[int, ...]:
        return tuple(int(self.value(operand)) for operand in operands)

    def bind(self, variables: Sequence[Var], values: Sequence[Any]) -> None:
        for var, value in zip(variables, values, strict=True):
            self.values[var] = value

    def block(self, block: Block) -> list[Any]:
        for let in block.statements:
            self.bind(let.outs, self.run(let.op, let.outs))
        return self.all(block.results)

    def apply(self, function: ir.Lambda, values: Sequence[Any]) -> list[Any]:
        self.bind(function.params, values)
        return self.block(function.body)

    def points(self, extents: tuple[int, ...], indices: Sequence[Var]) -> Iterator[tuple[int, ...]]:
        """The points of an index space in C order, each bound to `indices`."""
        return self.visit(itertools.product(*map(range, extents)), indices)

    def visit(self, points: Any, indices: Sequence[Var]) -> Iterator[tuple[int, ...]]:
        for point in points:
            self.bind(indices, [np.int64(index) for index in point])
            yield point

    # ---- one statement -----------------------------------------------------------------------------------------------

    def run(self, op: Op, outs: tuple[Var, ...]) -> Sequence[Any]:
        match op:
            case ir.Prim(name, args):
                return [evaluate_quietly(name, self.all(args))]
            case ir.Cast(arg):
                return [convert(self.value(arg), dtype_of(outs[0]))]
            case ir.Dim(array, axis):
                return [np.int64(self.values[array].shape[axis])]
            case ir.Stride(array, axis):
                return [np.int64(self.values[array].strides[axis])]
            case ir.Load(array, indices):
                return [self.values[array][self.element(array, indices)]]
            case ir.Store(array, indices, value):
                self.values[array][self.element(array, indices)] = self.value(value)
                return []
            case ir.Alloc(extents):
                return [_new(self.numbers(extents), outs[0].type)]
            case ir.AnyView(base):
                return [view_of(op, self.values[base], self.numbers, dtype_of(outs[0]))]
            case ir.If(condition, then, orelse):
                return self.block(then if self.value(condition) else orelse)
            case ir.For() | ir.While():
                return self.loop(op)
            case ir.Check(condition, failure, args):
                if not self.value(condition):
                    raise format_failure(failure, self.all(args))
                return []
            case ir.Map():
                return self.map(op, outs)
            case ir.Reduce():
                return self.reduce(op, outs)
            case ir.Scan():
                return self.scan(op, outs)
            case ir.Compress(extents, indices, body):
                kept: list[list[Any]] = []
                for _ in self.points(self.numbers(extents), indices):
                    keep, *values = self.block(body)
                    if keep:
                        kept.append(values)
                columns = [
                    np.array([values[position] for values in kept], dtype_of(out))
                    for position, out in enumerate(outs[1:])
                ]
                return [np.int64(len(kept)), *columns]
            case ir.Scatter(target, extents, indices, body, combine, chunk):
                array = self.values[target]
                sums = np.zeros_like(array) if chunk else array
                number = 0
                for number, _ in enumerate(self.points(self.numbers(extents), indices), 1):
                    if chunk and number > 1 and number % chunk == 1:
                        array += sums
                        sums[...] = 0
                    keep, *position, value = self.block(body)
                    if keep:
                        where = _checked(target, array, tuple(map(int, position)))
                        (sums[where],) = self.apply(combine, [sums[where], value])
                if chunk and number:
                    array += sums
                return []
            case ir.Matmul(out, left, right):
                target = self.values[out]
                product = np.matmul(self.values[left], self.values[right])
                if product.shape != target.shape:
                    raise BrokenInvariant(f"matmul gives {product.shape} for {out!r} of shape {target.shape}")
                target[...] = product
                return []
            case ir.Routine(name, targets, inputs):
                failed = routines.run(name, [self.values[out] for out in targets], [self.values[one] for one in inputs])
                return [np.bool_(failed)] if outs else []
            case ir.Call(name, args, _, levels):
                return self.call(self.procedures[name], self.all(args), levels)
            case ir.Interrupted():
                return [np.bool_(False)]
            case ir.Opaque(site, args):
                if self.opaque is None:
                    raise BrokenInvariant("the function calls back into Python; pass `opaque`")
                leaves = self.opaque(site, [leave(self.value(arg), arg.type) for arg in args])
                return [enter(leaf, out.type) for leaf, out in zip(leaves, outs, strict=True)]

    def call(self, procedure: Function, args: Sequence[Any], levels: int) -> Sequence[Any]:
        if self.levels < levels:
            raise RecursionError(TOO_DEEP)
        outer, self.values = self.values, {}
        self.levels -= levels
        self.bind(procedure.params, args)
        results = self.block(procedure.body)
        self.values = outer
        self.levels += levels
        return results

    def element(self, array: Var, indices: tuple[Operand, ...]) -> tuple[int, ...]:
        return _checked(array, self.values[array], self.numbers(indices))

    def loop(self, op: ir.For | ir.While) -> Sequence[Any]:
        current = self.all(op.inits)
        stopped = False
        if isinstance(op, ir.For):
            start, stop, step = self.numbers((op.start, op.stop, op.step))
            counter: Iterator[int] = iter(range(start, stop, step))
        while not stopped:
            if isinstance(op, ir.For):
                index = next(counter, None)
                if index is None:
                    break
                self.values[op.index] = np.int64(index)
            self.bind(op.params, current)
            if isinstance(op, ir.While) and not self.block(op.condition)[0]:
                break
            current = self.block(op.body)
            if op.stoppable:
                stopped, *current = current
        return [np.bool_(stopped), *current] if op.stoppable else current

    def map(self, op: ir.Map, outs: tuple[Var, ...]) -> Sequence[Any]:
        extents = self.numbers(op.extents)
        arrays = [_new(extents, out.type) for out in outs]
        points = list(itertools.product(*map(range, extents)))
        if self.order is not None:
            self.order.shuffle(points)
        for point in self.visit(points, op.indices):
            for array, value in zip(arrays, self.block(op.body), strict=True):
                array[point] = value
        return arrays

    def reduce(self, op: ir.Reduce, outs: tuple[Var, ...]) -> Sequence[Any]:
        extents, reduced = self.numbers(op.extents), self.numbers(op.reduced_extents)
        results = [np.empty(extents, dtype_of(out)) for out in outs]
        for kept in itertools.product(*map(range, extents)):
            self.bind(op.indices, [np.int64(index) for index in kept])
            accumulators: Sequence[Any] = self.all(op.inits)
            contributions = (self.block(op.body) for _ in self.points(reduced, op.reduced_indices))
            if op.runs:
                accumulators = self.in_runs(op, list(contributions), accumulators)
            else:
                for values in contributions:
                    accumulators = self.apply(op.combine, [*accumulators, *values])
            for result, accumulator in zip(results, accumulators, strict=True):
                result[kept] = accumulator
        return results if extents or any(isinstance(out.type, Array) for out in outs) else [r[()] for r in results]

    def in_runs(self, op: ir.Reduce, contributions: list[Sequence[Any]], accumulators: Sequence[Any]) -> Sequence[Any]:
        """Combine contributions in NumPy's order."""
        row, chunk = self.numbers(op.runs)
        row = row or max(len(contributions), 1)
        for start in range(0, len(contributions), row):
            for first in range(start, start + row, chunk or row):
                values = contributions[first : min(first + (chunk or row), start + row)]
                accumulators = self.pairwise(op, accumulators, values)
        return accumulators

    def pairwise(self, op: ir.Reduce, accumulators: Sequence[Any], values: list[Sequence[Any]]) -> Sequence[Any]:
        """Add the pairwise sums of values to accumulators; half precision is added in single."""
        kinds = [dtype_of(init) for init in op.inits]

        def widened(values: Sequence[Any]) -> Sequence[Any]:
            return [np.float32(x) if kind == "float16" else x for kind, x in zip(kinds, values, strict=True)]

        def combined(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
            if "float16" in kinds:
                return [x + y for x, y in zip(left, right, strict=True)]
            return self.apply(op.combine, [*left, *right])

        if not values:
            return accumulators
        unit = 4 if any(kind.startswith("complex") for kind in kinds) else 8
        total = combined(widened(accumulators), pairwise([widened(value) for value in values], combined, unit))
        return [np.dtype(kind).type(x) for kind, x in zip(kinds, total, strict=True)]

    def scan(self, op: ir.Scan, outs: tuple[Var, ...]) -> Sequence[Any]:
        extents = self.numbers(op.extents)
        results = [np.empty(extents, dtype_of(out)) for out in outs]
        along = op.axis
        for line in itertools.product(*(range(1 if axis == along else n) for axis, n in enumerate(extents))):
            accumulators = self.all(op.inits)
            for step in range(extents[along]):
                point = (*line[:along], step, *line[along + 1 :])
                self.bind(op.indices, [np.int64(index) for index in point])
                after = self.apply(op.combine, [*accumulators, *self.block(op.body)])
                for result, value in zip(results, after if op.inclusive else accumulators, strict=True):
                    result[point] = value
                accumulators = after
        return results


def view_of(
    op: ir.AnyView, base: Any, numbers: Callable[[Sequence[Operand]], tuple[int, ...]], dtype: str
) -> np.ndarray[Any, Any]:
    """What a view shows of an array; `numbers` gives the values of operands."""
    shape = numbers(op.extents)
    match op:
        case ir.Reshape():
            if not base.flags.c_contiguous:
                raise BrokenInvariant(f"{op.base!r} is reshaped but is not contiguous")
            return base.reshape(shape)  # type: ignore[no-any-return]
        case ir.Strided(_, offset, _, strides):
            return strided(base, numbers((offset,))[0], shape, numbers(strides), dtype)
    assert isinstance(op, ir.View)
    starts, steps = numbers(op.starts), numbers([axis.step for axis in op.axes])
    sources = [axis.source for axis in op.axes]
    by = [0 if s is None else base.strides[s] * step for s, step in zip(sources, steps, strict=True)]
    if 0 in shape:
        return as_strided(base[tuple(slice(0, 0) for _ in starts)], shape, by)
    last = list(starts)
    for source, extent, step in zip(sources, shape, steps, strict=True):
        if source is not None:
            last[source] += (extent - 1) * step
    _checked(op.base, base, starts)
    _checked(op.base, base, tuple(last))
    return as_strided(base[(*(slice(start, start + 1) for start in starts), ...)], shape, by)


def _checked(array: Var, value: Any, point: tuple[int, ...]) -> tuple[int, ...]:
    if len(point) != value.ndim or not all(0 <= index < n for index, n in zip(point, value.shape, strict=True)):
        raise BrokenInvariant(f"index {point} of {array!r} with shape {value.shape}")
    return point


def _new(extents: tuple[int, ...], type_: Type) -> Any:
    """New memory; what it holds looks like nothing a program would compute."""
    assert isinstance(type_, Array)
    array = np.empty(extents, type_.dtype, order="F" if type_.layout == "F" else "C")
    array.fill(True if type_.dtype == "bool" else 0x5B)
    return array
