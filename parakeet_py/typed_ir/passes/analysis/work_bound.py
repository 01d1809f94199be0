"""How much one call does: a bound on the operators that it runs, from its arguments.

`Ranges` gives the intervals of what loops are bounded by. Here they begin with the arguments of a call: ints, extents
of arrays, integers in small arrays. The bound decides how well code is optimised that is about to run: it may be far
above what is run, and is infinite for loops that end by a condition and for recursion, unless these look up for
signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any

import numpy as np

from parakeet_py.base.types import Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Let, Operand, Var
from parakeet_py.typed_ir.passes.analysis.facts import LARGEST_EXTENT, Facts
from parakeet_py.typed_ir.passes.analysis.intervals import FULL, Interval, hull
from parakeet_py.typed_ir.passes.analysis.ranges import Ranges

MOST_STEPS = 10_000
"""Operators that are looked at: nested loops are gone through several times."""
MOST_ELEMENTS = 10_000
"""Of an array that is looked into."""
_ANY = 0, LARGEST_EXTENT
_SCALARS = int | np.integer

Extents = tuple[Interval, ...]


def work_bound(function: ir.Function, values: Mapping[Var, Any], least: int = 0, polls: bool = False) -> float:
    """The operators on scalars that a call runs at most, about; infinite where that is not known.

    Parameters
    ----------
    values : of the parameters: numbers, and whatever has the `shape` of an array
    least : ints and extents that are smaller may be as large in the calls that are bounded
    polls : loops of unknown length and recursion look up, and end if they take long: what comes between two iterations
        or calls is bounded
    """
    if not polls and any(isinstance(let.op, ir.While) for let in function.statements()):
        return inf
    intervals: dict[Var, Interval] = {}
    extents: dict[Var, Extents] = {}
    contents: dict[Var, Interval] = {}
    for param, value in values.items():
        if isinstance(param.type, Array):
            extents[param] = tuple((0, max(least, extent)) for extent in value.shape)
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and 0 < value.size <= MOST_ELEMENTS:
                contents[param] = int(value.min()), int(value.max())
        elif isinstance(param.type, Scalar) and isinstance(value, _SCALARS):
            intervals[param] = min(-least, int(value)), max(least, int(value))
    try:
        return _Work(function, intervals, extents, contents, polls).whole()
    except _Unbounded:
        return inf


class _Unbounded(Exception):
    """A loop or recursion is of unknown length, and does not look up, or there is too much to look at."""


class _Work(Ranges):
    """The bound of a function, or of one call of a procedure by its `caller`."""

    def __init__(
        self,
        function: ir.Function,
        intervals: Mapping[Var, Interval],
        extents: dict[Var, Extents],
        contents: Mapping[Var, Interval],
        polls: bool,
        caller: _Work | None = None,
    ) -> None:
        super().__init__(Facts({}), lambda operand: operand, intervals)
        self.function, self.caller = function, caller
        self.extents, self.polls = extents, polls
        self.steps: list[Let] = [] if caller is None else caller.steps
        stored = {array for let in function.statements() for array in ir.arrays_written(let.op)}
        self.contents = {array: found for array, found in contents.items() if array not in stored}
        own = {one.name: one for one in function.procedures}
        self.procedures: dict[str, ir.Function] = own if caller is None else caller.procedures
        self.work: float = 0
        self.settled: dict[int, dict[int, Interval]] = {}  # what loops have settled on, by `id`

    def whole(self) -> float:
        self.block(self.function.body)
        return self.work

    def statement(self, let: Let) -> None:
        self.work += 1
        self.steps.append(let)
        if len(self.steps) > MOST_STEPS:
            raise _Unbounded
        out = let.outs[0] if let.outs else None
        match let.op:
            case ir.Dim(array, axis):
                assert out is not None
                self.interval[out] = self.shape_of(array)[axis]
            case ir.Load(array) if array in self.contents:
                assert out is not None
                self.interval[out] = self.contents[array]
            case ir.If(_, then, orelse) as op:
                super().statement(let)
                self.either_shape(let.outs, then.results, orelse.results)
            case ir.Map(extents, indices, body) | ir.Scatter(_, extents, indices, body) as op:
                self.parallel(extents, indices, [body, *_combined(op)])
                self.made(let.outs, extents)
            case ir.Scan(extents, indices, _, body) as op:
                self.parallel(extents, indices, [body, *_combined(op)])
                self.made(let.outs, extents)
            case ir.Compress(extents, indices, body):
                self.parallel(extents, indices, [body])
                most = prod(self.of(extent)[1] for extent in extents)
                self.interval[let.outs[0]] = 0, most
                self.extents.update(dict.fromkeys(let.outs[1:], ((0, most),)))
            case ir.Reduce(extents, indices, reduced, reduced_indices, body) as op:
                self.parallel((*extents, *reduced), (*indices, *reduced_indices), [body, *_combined(op)])
                self.made(let.outs, extents)
            case ir.Alloc(extents=extents) | ir.View(extents=extents) | ir.Reshape(extents=extents):
                self.made(let.outs, extents)
            case ir.Strided(extents=extents):
                self.made(let.outs, extents)
            case ir.Call(name, args):
                super().statement(let)
                self.work += self.of_call(self.procedures[name], args)
            case _:
                super().statement(let)

    def of_call(self, callee: ir.Function, args: Sequence[Operand]) -> float:
        if callee.library:  # it has code of its own, whatever becomes of this function's
            return 1
        shapes = {param: self.shape_of(arg) for param, arg in zip(callee.params, args, strict=True) if _is_array(arg)}
        above: _Work | None = self
        while above is not None:
            if above.function is callee:
                if self.polls:  # recursion looks up, too: what comes between two calls is bounded
                    return 1
                raise _Unbounded
            above = above.caller
        given = zip(callee.params, args, strict=True)
        intervals = {param: self.of(arg) for param, arg in given if getattr(param.type, "dtype", "") == "int64"}
        numbers = {param: interval for param, interval in intervals.items() if not _is_array(param)}
        return _Work(callee, numbers, shapes, {}, self.polls, self).whole()

    # ---- loops -------------------------------------------------------------------------------------------------------

    def loop(self, outs: Sequence[Var], op: ir.For | ir.While) -> None:
        if isinstance(op, ir.While) and not self.polls:
            raise _Unbounded
        before, results = self.work, op.body.results[1:] if op.stoppable else op.body.results
        outs_ = outs[1:] if op.stoppable else outs
        arrays = [place for place, param in enumerate(op.params) if _is_array(param)]
        for place in arrays:
            self.extents[op.params[place]] = self.shape_of(op.inits[place])
        super().loop(outs, op)
        changing = [place for place in arrays if not self.stays(op.params[place], results[place])]
        if changing:
            for place in changing:
                self.extents.pop(op.params[place])
            super().loop(outs, op)
        for place in arrays:
            self.extents[outs_[place]] = self.shape_of(op.params[place])
        self.work = before + self.counted(self.turns(op) if isinstance(op, ir.For) else None) * self.work

    def guessed(self, op: ir.For | ir.While, start: dict[int, Interval]) -> dict[int, Interval]:
        """Loops in loops are evaluated again and again, each time for more: what held before is held again at once."""
        before = self.settled.get(id(op), start)
        guess = self.settled[id(op)] = {place: hull(begins, before[place]) for place, begins in start.items()}
        return guess

    def counted(self, turns: int | None) -> int:
        """The iterations of a loop that count."""
        if turns is not None and turns < LARGEST_EXTENT:
            return turns
        if not self.polls:
            raise _Unbounded
        return 1

    def turn(self, op: ir.For | ir.While) -> None:
        self.work = 1  # of the last iteration that is evaluated
        super().turn(op)

    def parallel(self, extents: Iterable[Operand], indices: Iterable[Var], blocks: Sequence[Block]) -> None:
        before, self.work = self.work, 1
        turns = 1
        for extent, index in zip(extents, indices, strict=True):
            most = self.of(extent)[1]
            turns *= self.counted(max(0, most))
            self.interval[index] = 0, max(0, most - 1)
        for block in blocks:
            self.block(block)
        self.work = before + turns * self.work

    # ---- values ------------------------------------------------------------------------------------------------------

    def of(self, operand: Operand) -> Interval:
        known = self.interval.get(operand) if isinstance(operand, Var) else None
        if known is None and isinstance(operand, Var):
            return FULL
        return super().of(operand) if known is None else known

    def converted(self, arg: Operand) -> Interval:
        known = self.interval.get(arg) if isinstance(arg, Var) else None
        return super().converted(arg) if known is None else known

    def shape_of(self, array: Operand) -> Extents:
        """Intervals of the extents of an array."""
        found = self.extents.get(array) if isinstance(array, Var) else None
        return found or (_ANY,) * getattr(array.type, "rank", 0)

    def made(self, outs: Iterable[Var], extents: Sequence[Operand]) -> None:
        shape = tuple((0, max(0, self.of(extent)[1])) for extent in extents)
        self.extents.update(dict.fromkeys(filter(_is_array, outs), shape))

    def either_shape(self, outs: Sequence[Var], left: Sequence[Operand], right: Sequence[Operand]) -> None:
        for out, one, other in zip(outs, left, right, strict=True):
            if _is_array(out):
                self.extents[out] = tuple(map(hull, self.shape_of(one), self.shape_of(other)))

    def stays(self, param: Var, result: Operand) -> bool:
        """Does a loop hand on an array that is no larger?"""
        return all(new[1] <= old[1] for new, old in zip(self.shape_of(result), self.shape_of(param), strict=True))


def _combined(op: ir.Op) -> list[Block]:
    combine = getattr(op, "combine", None)
    return [] if combine is None else [combine.body]


def _is_array(operand: Operand) -> bool:
    return isinstance(operand.type, Array)
