"""Where an extremum is, in one go.

The keys of a chunk lie side by side, and each lane of the chunks keeps the best key that it has met and the number of
the chunk it is from. Then the best of the lanes is taken, the first of equal ones. What the lanes keep lies on the
stack, from where LLVM puts it into vector registers. The last chunk may begin in the middle of the one before: keys
that are met twice change nothing.

Where keys are only read, chunks of long runs are several keys deep: each lane takes the best of its keys in a chunk
before it is compared with what the lane keeps. The place is looked for in the first chunk that has the best key.

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

    def lanes(self, depth: int) -> int:
        return (LANE_BYTES if depth == 1 else LINE) // itemsize(self.dtype)

    def step(self, depth: int) -> int:
        """Contributions of a chunk."""
        return depth * self.lanes(depth)

    def take(self, lo: Lowering, place: Operand) -> None:
        """The contribution at a place is the result."""
        lo.alias(self.axis.index, place)
        lo.write_all(list(zip(self.cells, lo.lower_block(self.body), strict=True)))


def in_lanes(lo: Lowering, run: Run, depth: int) -> Operand | None:
    """Combine a run of at least `run.step(depth)` contributions; gives whether there may be a NaN, in which case it has
    not been done (None for keys that are never NaN). `depth`: chunks of which each lane takes the best key first."""
    dtype, kind = run.dtype, Scalar(run.dtype)
    number_kind = INT64 if itemsize(dtype) == 8 else Scalar("int32")
    count = run.lanes(depth)
    lanes, step = Const(count, INT64), Const(run.step(depth), INT64)
    last = lo.subtract(run.stop, step)
    best = lo.stack_array("best", dtype, count)
    chunks = lo.stack_array("chunk", number_kind.dtype, count)
    lane, chunk = lo.index("lane"), lo.index("chunk")
    sums = lo.stack_array("sum", dtype, count) if is_float(dtype) else None
    beats = "lt" if run.found.name == "minimum" else "gt"

    def start_of(chunk: Operand) -> Operand:
        return lo.minimum(lo.add(run.start, lo.multiply(chunk, step)), last)

    def key(place: Operand) -> Operand:
        lo.alias(run.axis.index, place)
        return lo.lower_block(run.body)[run.found.key]

    def better(old: Operand, new: Operand) -> Operand:
        return lo.prim("select", lo.compare(beats, new, old), new, old, type_=kind)

    def keys(chunk: Operand) -> tuple[Operand, Operand]:
        """The best of a lane's keys in a chunk, and their sum."""
        first = lo.add(start_of(chunk), lane)
        found = [key(lo.add(first, Const(place * count, INT64))) for place in range(depth)]
        total = found
        while len(found) > 1:
            found = [better(*found[place : place + 2]) for place in range(0, len(found), 2)]
            if sums is not None:
                total = [lo.prim("add", *total[place : place + 2], type_=kind) for place in range(0, len(total), 2)]
        return found[0], total[0]

    def begin() -> None:
        first, total = keys(ZERO)
        lo.store(best, (lane,), first)
        lo.store(chunks, (lane,), Const(0, number_kind))
        if sums is not None:
            lo.store(sums, (lane,), total)

    def go_on() -> None:
        old, (new, total) = lo.load(best, lane), keys(chunk)
        if sums is not None:
            lo.store(sums, (lane,), lo.prim("add", lo.load(sums, lane), total, type_=kind))
        found = lo.compare(beats, new, old)
        number = chunk if number_kind == INT64 else lo.let("chunk", number_kind, Cast(chunk))
        lo.store(best, (lane,), lo.prim("select", found, new, old, type_=kind))
        lo.store(chunks, (lane,), lo.prim("select", found, number, lo.load(chunks, lane), type_=number_kind))

    def take() -> None:
        highest = _best_of_lanes(lo, run, best, lane, lanes)

        def holder() -> tuple[Operand, Operand]:
            number = lo.let("chunk", INT64, Cast(lo.load(chunks, lane)))
            same = lo.compare("eq", lo.load(best, lane), highest)
            return same, lo.add(start_of(number), lane) if depth == 1 else number

        first: Operand = _least(lo, lane, lanes, holder)
        if depth > 1:
            start = start_of(first)

            def here() -> tuple[Operand, Operand]:
                place = lo.add(start, lane)
                return lo.compare("eq", key(place), highest), place

            first = _least(lo, lane, step, here)
        old: list[Operand] = [lo.read(cell) for cell in run.cells]
        new = [*old]
        new[run.found.key] = highest
        lo.when(takes(lo, run.with_, run.found.taken, old, new), lambda: run.take(lo, first))

    lo.loop(lane, ZERO, lanes, begin, "lanes")
    many = lo.ceil_div(lo.subtract(run.stop, run.start), step)
    lo.loop(chunk, ONE, many, lambda: lo.loop(lane, ZERO, lanes, go_on, "lanes"), "serial")
    if sums is None:
        take()
        return None
    met = lo.declare("met", BOOL, Const(False, BOOL))

    def look() -> None:
        nan = lo.prim("isnan", lo.load(sums, lane), type_=BOOL)
        lo.write(met, lo.prim("or", lo.read(met), nan, type_=BOOL))

    lo.loop(lane, ZERO, lanes, look, "lanes")
    lo.when(lo.prim("not", lo.read(met), type_=BOOL), take)
    return lo.read(met)


def _best_of_lanes(lo: Lowering, run: Run, best: Var, lane: Var, lanes: Operand) -> Operand:
    name = run.found.name
    low, high = integer_bounds("int64") if is_float(run.dtype) else integer_bounds(run.dtype)
    loser: float = low if name == "maximum" else high
    if is_float(run.dtype):
        loser = float("-inf") if name == "maximum" else float("inf")
    cell = lo.declare("best", Scalar(run.dtype), Const(loser, Scalar(run.dtype)))

    def top() -> None:
        operands = lo.read(cell), lo.load(best, lane)
        lo.write(cell, lo.let("acc", cell.type, Prim(name, operands), reassoc=True))

    lo.loop(lane, ZERO, lanes, top, "lanes")
    return lo.read(cell)


def _least(lo: Lowering, lane: Var, lanes: Operand, look: Callable[[], tuple[Operand, Operand]]) -> Operand:
    """The least of the numbers of lanes of which a condition holds."""
    never = Const(integer_bounds("int64")[1], INT64)
    least = lo.declare("first", INT64, never)

    def one() -> None:
        counts, number = look()
        number = lo.prim("select", counts, number, never)
        lo.write(least, lo.let("first", INT64, Prim("minimum", (lo.read(least), number)), reassoc=True))

    lo.loop(lane, ZERO, lanes, one, "lanes")
    return lo.read(least)


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
