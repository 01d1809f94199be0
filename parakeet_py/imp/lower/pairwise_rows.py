"""Sums of many short rows, eight rows at a time.

A leaf of the tree of `pairwise_sums` has eight accumulators, one vector, whose numbers are added at its end: seven
additions of single numbers that wait for each other, which takes longer than two vectors of contributions. Of eight
rows, the accumulators are put side by side, and neighbours are added: 64 numbers become 32, 16 and 8, the sums of the
rows, by seven additions of vectors. These are the additions of one row's tree, so that not a bit is different.

    a0 a1 .. a7 b0 .. b7 ..  ->  a0+a1 a2+a3 a4+a5 a6+a7 b0+b1 ..  ->  (a0+a1)+(a2+a3) (a4+a5)+(a6+a7) ..  ->  a b ..

The last eight rows of a range may overlap those before them, and are computed again. Rows of less than a unit and of
more than a leaf are left to `pairwise_sums`, and so are ranges of fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from parakeet_py.base.types import BOOL, INT64
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.pairwise_leaves import (
    LEAF,
    Runs,
    Values,
    combined,
    computed,
    load,
    narrowed,
    rest,
    stack,
    store,
    widened,
)
from parakeet_py.imp.schedule.loop_order import static_cost
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, Load, Operand, Var

ROWS = 8
MOST = 16  # scalar operations of a body that is written eight times
_TWO = Const(2, INT64)


def serves(runs: Runs) -> bool:
    """Whether rows can be summed so: their contributions are added as they are computed, in one tree."""
    length = runs.axes[0].extent if runs.axes else ZERO
    fits = not isinstance(length, Const) or runs.unit <= length.whole <= LEAF * runs.unit
    one_tree = all(not isinstance(size, Const) or size == ZERO for size in (runs.row, runs.chunk))
    computed_first = any(not isinstance(let.op, Load) for let in runs.body.statements)  # else memory is what takes time
    little = static_cost(runs.body) <= MOST
    return runs.direct and not runs.sequential and runs.unit == ROWS and one_tree and fits and computed_first and little


def sums_of_rows(
    lo: Lowering,
    runs: Runs,
    row: Var,
    start: Operand,
    stop: Operand,
    take: Callable[[Operand, Values], None],
    alone: Callable[[], None],
) -> None:
    """Sum the rows `row` of [start, stop); `take` gets the results of one, and `alone` does all in the usual way."""
    length, eight = runs.axes[0].extent, Const(ROWS, INT64)
    limits = [lo.compare("ge", lo.subtract(stop, start), eight)]
    if not isinstance(length, Const):
        limits += [lo.compare("ge", length, eight), lo.compare("le", length, Const(LEAF * ROWS, INT64))]
    limits += [lo.compare("eq", size, ZERO) for size in (runs.row, runs.chunk) if size != ZERO]
    enough = reduce(lambda one, other: lo.prim("and", one, other, type_=BOOL), limits)
    group, last = lo.index("rows"), lo.subtract(stop, eight)

    def groups() -> None:
        lo.loop(group, start, stop, lambda: _eight(lo, runs, row, lo.minimum(group, last), take), "independent", eight)

    lo.when(enough, groups, alone)


def _eight(lo: Lowering, runs: Runs, row: Var, first: Operand, take: Callable[[Operand, Values], None]) -> None:
    length, width = runs.axes[0].extent, Const(ROWS, INT64)
    units = lo.floor_div(length, width)
    sums = stack(lo, runs.parts, ROWS * ROWS)
    number, lane, empty = lo.index("unit"), lo.index("lane"), lo.index("lane")

    def begin() -> None:
        for at in range(ROWS):
            store(lo, sums, lo.add(Const(ROWS * at, INT64), empty), [part.neutral for part in runs.parts])

    def accumulate() -> None:
        place = lo.add(lo.multiply(number, width), lane)
        for at in range(ROWS):
            lo.alias(row, lo.add(first, Const(at, INT64)))
            own = lo.add(Const(ROWS * at, INT64), lane)
            store(lo, sums, own, combined(lo, runs.parts, load(lo, sums, own), computed(lo, runs, place)))

    lo.loop(empty, ZERO, width, begin, "lanes")
    lo.loop(number, ZERO, units, lambda: lo.loop(lane, ZERO, width, accumulate, "lanes"), "serial")
    size = ROWS * ROWS
    while size > ROWS:
        size //= 2
        sums = _neighbours(lo, runs, sums, size)
    whole = lo.multiply(units, width)
    if whole != length:
        lo.when(lo.compare("ne", whole, length), lambda: _add_rests(lo, runs, row, first, whole, sums))
    place = lo.index("row")

    def finish() -> None:
        inits = [widened(lo, part, init) for part, init in zip(runs.parts, runs.with_.inits, strict=True)]
        values = combined(lo, runs.parts, inits, load(lo, sums, place))
        take(lo.add(first, place), [narrowed(lo, *each) for each in zip(values, runs.with_.types, strict=True)])

    lo.loop(place, ZERO, width, finish, "lanes")


def _add_rests(lo: Lowering, runs: Runs, row: Var, first: Operand, whole: Operand, sums: list[Var]) -> None:
    """Add to the sums of the rows what comes after their whole units."""
    place, length = lo.index("row"), runs.axes[0].extent

    def one() -> None:
        lo.alias(row, lo.add(first, place))
        found = load(lo, sums, place)
        store(lo, sums, place, rest(lo, runs, whole, length, found, lambda at: computed(lo, runs, at)))

    lo.loop(place, ZERO, Const(ROWS, INT64), one, "serial")


def _neighbours(lo: Lowering, runs: Runs, sums: list[Var], size: int) -> list[Var]:
    """Of twice as many numbers, the sums of two and two."""
    found, index = stack(lo, runs.parts, size), lo.index("pair")

    def pair() -> None:
        left = lo.multiply(index, _TWO)
        both = combined(lo, runs.parts, load(lo, sums, left), load(lo, sums, lo.add(left, ONE)))
        store(lo, found, index, both)

    lo.loop(index, ZERO, Const(size, INT64), pair, "lanes")
    return found
