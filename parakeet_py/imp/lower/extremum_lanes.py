"""Where an extremum is, in one go: for short runs, and for keys that would be computed anew.

The keys of a chunk lie side by side, and each lane of the chunks keeps the best key that it has met and the number of
the chunk it is from. Then the best of the lanes is taken, the first of equal ones. What the lanes keep lies on the
stack, from where LLVM puts it into vector registers. The last chunk may begin in the middle of the one before: keys
that are met twice change nothing.

A NaN would have to be looked for with every key; so each lane adds up its keys, which a NaN would not leave a number,
and then nothing is done. Infinities of both signs are taken for one, and cost time only.

Where many points have a run each that is shorter than the lanes, these are points: `short_runs` combines the first
contributions of as many points as fill a register, then the second ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, INT64, Scalar, is_float, itemsize
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, Conditions, combine, declare, fold_in_order, takes
from parakeet_py.imp.lower.loops import Axis
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Block, Cast, Const, Operand, Prim, Var
from parakeet_py.typed_ir.semantics import integer_bounds

LANE_BYTES = 128  # of keys that are looked at side by side
LINE = 64  # bytes of keys of points side by side


Store = Callable[[Operand, Sequence[Operand]], None]  # what a point gives


@record
class ArgExtremum:
    """What a combine amounts to: it takes a contribution whose `key`-th part is a new minimum or maximum."""

    name: str
    key: int
    taken: Conditions


@record
class Run:
    """The contributions of [start, stop) of an axis, to be combined into cells."""

    with_: Combination
    found: ArgExtremum
    cells: Sequence[Cell]
    body: Block
    axis: Axis
    start: Operand
    stop: Operand

    @property
    def dtype(self) -> str:
        """Of the keys."""
        return self.with_.types[self.found.key]

    @property
    def lanes(self) -> int:
        return LANE_BYTES // itemsize(self.dtype)

    def take(self, lo: Lowering, place: Operand) -> None:
        """The contribution at a place is the result."""
        lo.alias(self.axis.index, place)
        lo.write_all(list(zip(self.cells, lo.lower_block(self.body), strict=True)))


def in_lanes(lo: Lowering, run: Run) -> Operand | None:
    """Combine a run of at least as many contributions as there are lanes; gives whether there may be a NaN, in which
    case it has not been done (None for keys that are never NaN)."""
    dtype, kind = run.dtype, Scalar(run.dtype)
    number_kind = INT64 if itemsize(dtype) == 8 else Scalar("int32")
    lanes = Const(run.lanes, INT64)
    last = lo.subtract(run.stop, lanes)
    best = lo.stack_array("best", dtype, run.lanes)
    chunks = lo.stack_array("chunk", number_kind.dtype, run.lanes)
    lane, chunk = lo.index("lane"), lo.index("chunk")
    sums = lo.stack_array("sum", dtype, run.lanes) if is_float(dtype) else None

    def place(chunk: Operand, lane: Operand) -> Operand:
        return lo.add(lo.minimum(lo.add(run.start, lo.multiply(chunk, lanes)), last), lane)

    def key(chunk: Operand) -> Operand:
        lo.alias(run.axis.index, place(chunk, lane))
        return lo.lower_block(run.body)[run.found.key]

    def begin() -> None:
        first = key(ZERO)
        lo.store(best, (lane,), first)
        lo.store(chunks, (lane,), Const(0, number_kind))
        if sums is not None:
            lo.store(sums, (lane,), first)

    def step() -> None:
        old, new = lo.load(best, lane), key(chunk)
        if sums is not None:
            lo.store(sums, (lane,), lo.prim("add", lo.load(sums, lane), new, type_=kind))
        better = lo.compare("lt" if run.found.name == "minimum" else "gt", new, old)
        number = chunk if number_kind == INT64 else lo.let("chunk", number_kind, Cast(chunk))
        lo.store(best, (lane,), lo.prim("select", better, new, old, type_=kind))
        lo.store(chunks, (lane,), lo.prim("select", better, number, lo.load(chunks, lane), type_=number_kind))

    lo.loop(lane, ZERO, lanes, begin, "lanes")
    many = lo.ceil_div(lo.subtract(run.stop, run.start), lanes)
    lo.loop(chunk, ONE, many, lambda: lo.loop(lane, ZERO, lanes, step, "lanes"), "serial")
    if sums is None:
        _first_of_best(lo, run, best, chunks, place)
        return None
    met = lo.declare("met", BOOL, Const(False, BOOL))

    def look() -> None:
        nan = lo.prim("isnan", lo.load(sums, lane), type_=BOOL)
        lo.write(met, lo.prim("or", lo.read(met), nan, type_=BOOL))

    lo.loop(lane, ZERO, lanes, look, "lanes")
    clear = lo.prim("not", lo.read(met), type_=BOOL)
    lo.when(clear, lambda: _first_of_best(lo, run, best, chunks, place))
    return lo.read(met)


def _first_of_best(
    lo: Lowering, run: Run, best: Var, chunks: Var, place: Callable[[Operand, Operand], Operand]
) -> None:
    """Take the first of the best keys of the lanes, if it beats what the cells hold."""
    name, lane, lanes = run.found.name, lo.index("lane"), Const(run.lanes, INT64)
    low, high = integer_bounds("int64") if is_float(run.dtype) else integer_bounds(run.dtype)
    loser: float = low if name == "maximum" else high
    if is_float(run.dtype):
        loser = float("-inf") if name == "maximum" else float("inf")
    cell = lo.declare("best", Scalar(run.dtype), Const(loser, Scalar(run.dtype)))

    def top() -> None:
        operands = lo.read(cell), lo.load(best, lane)
        lo.write(cell, lo.let("acc", cell.type, Prim(name, operands), reassoc=True))

    lo.loop(lane, ZERO, lanes, top, "lanes")
    highest = lo.read(cell)
    never = Const(integer_bounds("int64")[1], INT64)
    first = lo.declare("first", INT64, never)

    def look() -> None:
        same = lo.compare("eq", lo.load(best, lane), highest)
        here = place(lo.let("chunk", INT64, Cast(lo.load(chunks, lane))), lane)
        here = lo.prim("select", same, here, never)
        lo.write(first, lo.let("first", INT64, Prim("minimum", (lo.read(first), here)), reassoc=True))

    lo.loop(lane, ZERO, lanes, look, "lanes")
    old = [lo.read(cell) for cell in run.cells]
    new = [*old]
    new[run.found.key] = highest
    lo.when(takes(lo, run.with_, run.found.taken, old, new), lambda: run.take(lo, lo.read(first)))


def short_runs(
    lo: Lowering, with_: Combination, body: Block, point: Axis, run: Axis, start: Operand, stop: Operand, store: Store
) -> None:
    """Combine a run for each point of [start, stop), in order."""
    count = LINE // max(map(itemsize, with_.types))
    first, width = lo.index("points"), Const(count, INT64)
    middle = lo.add(start, lo.prim("and", lo.subtract(stop, start), Const(-count, INT64)))

    def each_lane(step: Callable[[Var], None]) -> None:
        lane = lo.index("lane")
        lo.loop(lane, ZERO, width, lambda: step(lane), "lanes")

    def side_by_side() -> None:
        lanes = [lo.stack_array("acc", dtype, count) for dtype in with_.types]

        def begin(lane: Var) -> None:
            for array, init in zip(lanes, with_.inits, strict=True):
                lo.store(array, (lane,), init)

        def contribute(lane: Var) -> None:
            lo.alias(point.index, lo.add(first, lane))
            before = [lo.load(array, lane) for array in lanes]
            for array, value in zip(lanes, combine(lo, with_, before, lo.lower_block(body)), strict=True):
                lo.store(array, (lane,), value)

        each_lane(begin)
        lo.loop(lo.bind(run.index), ZERO, run.extent, lambda: each_lane(contribute), "serial")
        each_lane(lambda lane: store(lo.add(first, lane), [lo.load(array, lane) for array in lanes]))

    def alone() -> None:
        cells = declare(lo, with_)
        step = lambda: fold_in_order(lo, with_, cells, lo.lower_block(body))  # noqa: E731
        lo.loop(lo.bind(run.index), ZERO, run.extent, step, "serial")
        store(lo.operand(point.index), [lo.read(cell) for cell in cells])

    lo.loop(first, start, middle, side_by_side, "independent", width)
    lo.loop(lo.bind(point.index), middle, stop, alone, "independent")
