"""Sums whose contributions may be grouped in any way: `dot`, `@` within loops, `einsum`.

NumPy leaves these to BLAS, which promises no order. The tree of `pairwise_sums` is dear for them: it has one vector of
accumulators, so that each addition waits for the one before, and a buffer for what is longer than a leaf. Here there
are `VECTORS` vectors of accumulators, enough to hide how long an addition takes:

    lanes 0 .. 31 of float64      += contributions 32 k .. 32 k + 31, for every whole block of them
    lanes 0 .. 7, the sum of      += contributions of the whole vectors that are left
    their quarters
    one number, their sum         += what is left, one by one

What is long is cut into equal pieces that threads share out; their sums are added in order. Pieces depend on the number
of contributions alone, and so does the result. In a piece, vector code adds as LLVM groups it: what comes before and
behind it does not count there, and one loop is compiled in an eighth of the time of these.

Only what vector code can compute straight from memory is summed so: one index, no check, no elementary function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parakeet_py.base.types import INT64
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import declare
from parakeet_py.imp.lower.loops import order_of
from parakeet_py.imp.lower.pairwise_leaves import Part, Runs, Values, combined, load, stack, store, widened
from parakeet_py.imp.schedule.loop_order import work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Cast, Const, Operand, Var

VECTORS = 4
VECTOR = 64  # bytes
LEAST = 8  # accumulators, but of wide ones, of which a vector has fewer
PIECE = 16384  # contributions, at least, of what a thread takes
PIECES = 512


def is_free(runs: Runs, given: Sequence[Operand]) -> bool:
    """Whether sums can be grouped as here; `given` is what the operator says of their order."""
    sums = all(part.name == "add" for part in runs.parts)  # NumPy multiplies one by one
    return sums and not given and runs.direct and not runs.sequential


def here(lo: Lowering, runs: Runs) -> list[Cell]:
    """Combine everything on one thread."""
    cells = declare(lo, runs.with_)
    piece = _long_piece if lo.seldom else _piece
    _add(lo, runs, cells, piece(lo, runs, ZERO, runs.axes[0].extent))
    return cells


def in_parallel(lo: Lowering, runs: Runs) -> list[Cell]:
    """Combine everything, threads taking pieces of what is long."""
    length = runs.axes[0].extent
    if lo.seldom or (isinstance(length, Const) and length.whole <= PIECE):
        return here(lo, runs)
    cells = declare(lo, runs.with_)

    def short() -> None:
        _add(lo, runs, cells, _piece(lo, runs, ZERO, length))

    def long() -> None:
        least = Const(PIECE, INT64)
        share = lo.multiply(lo.ceil_div(lo.ceil_div(length, least), Const(PIECES, INT64)), least)
        count = lo.ceil_div(length, share)
        sums = stack(lo, runs.parts, PIECES)
        number = lo.index("piece")

        def one() -> None:
            start = lo.multiply(number, share)
            stop = lo.minimum(lo.add(start, share), length)
            store(lo, sums, number, _long_piece(lo, runs, start, stop))

        def region(low: Operand, high: Operand) -> None:
            lo.loop(number, low, high, one, "independent")

        lo.region(count, ONE, work(lo, runs.found, (share,)), region, order_of(lo, runs.axes), "reduce")
        place = lo.index("place")
        lo.loop(place, ZERO, count, lambda: _add(lo, runs, cells, load(lo, sums, place)), "few")

    lo.when(lo.compare("le", length, Const(PIECE, INT64)), short, long)
    return cells


def _add(lo: Lowering, runs: Runs, cells: Sequence[Cell], values: Values) -> None:
    """Combine values into the cells of results."""
    before = [widened(lo, part, lo.read(cell)) for part, cell in zip(runs.parts, cells, strict=True)]
    after = combined(lo, runs.parts, before, values)
    narrowed = [
        value if cell.type == part.kind else lo.let("x", cell.type, Cast(value))
        for part, cell, value in zip(runs.parts, cells, after, strict=True)
    ]
    lo.write_all(list(zip(cells, narrowed, strict=True)))


def _piece(lo: Lowering, runs: Runs, start: Operand, stop: Operand) -> Values:
    """Combine the contributions [start, stop) of the only axis."""
    parts = runs.parts
    place = lo.declare("place", INT64, start)
    cells = [
        lo.declare("sum", part.kind, value) for part, value in zip(parts, _vectors(lo, runs, place, stop), strict=True)
    ]
    last = lo.index("place")

    def one() -> None:
        after = combined(lo, parts, [lo.read(cell) for cell in cells], _at(lo, runs, last))
        lo.write_all(list(zip(cells, after, strict=True)))

    lo.loop(last, lo.read(place), stop, one, "few")
    return [lo.read(cell) for cell in cells]


def _long_piece(lo: Lowering, runs: Runs, start: Operand, stop: Operand) -> Values:
    """Combine the contributions [start, stop), thousands of them, or where little code is wanted."""
    parts = runs.parts
    cells = [lo.declare("sum", part.kind, part.neutral) for part in parts]
    place = lo.index("place")

    def one() -> None:
        before = [lo.read(cell) for cell in cells]
        after = combined(lo, parts, before, _at(lo, runs, place), reassoc=True)
        lo.write_all(list(zip(cells, after, strict=True)))

    lo.loop(place, start, stop, one, "vector")
    return [lo.read(cell) for cell in cells]


def _vectors(lo: Lowering, runs: Runs, place: Cell, stop: Operand) -> Values:
    """Combine whole vectors of contributions from `place` on, which is moved behind them."""
    parts = runs.parts
    unit = VECTOR // max(np.dtype(part.kind.dtype).itemsize for part in parts)
    width, least = unit * VECTORS, min(unit, LEAST)
    if isinstance(stop, Const):
        while width > stop.whole and width >= least:
            width //= 2
        if width < least:
            return [part.neutral for part in parts]
    lanes = stack(lo, parts, width)
    lane = lo.index("lane")
    lo.loop(lane, ZERO, Const(width, INT64), lambda: store(lo, lanes, lane, [part.neutral for part in parts]), "lanes")
    _blocks(lo, runs, lanes, width, place, stop)

    def shrink(count: int) -> None:
        """Add the lanes behind the first `count` to these."""
        index = lo.index("lane")

        def step() -> None:
            found = [lo.add(index, Const(first, INT64)) for first in range(0, width, count)]
            store(lo, lanes, index, _halved(lo, parts, [load(lo, lanes, one) for one in found]))

        lo.loop(index, ZERO, Const(count, INT64), step, "lanes")

    while width > least:
        count = min(unit, width // 2)
        shrink(count)
        width = count
        _blocks(lo, runs, lanes, width, place, stop)
    return _halved(lo, parts, [load(lo, lanes, Const(number, INT64)) for number in range(width)])


def _halved(lo: Lowering, parts: Sequence[Part], sums: list[Values]) -> Values:
    """Add the second half to the first until one is left."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [combined(lo, parts, one, other) for one, other in zip(sums[:half], sums[half:], strict=True)]
    return sums[0]


def _blocks(lo: Lowering, runs: Runs, lanes: Sequence[Var], width: int, place: Cell, stop: Operand) -> None:
    """Add whole blocks of `width` contributions to as many lanes, from `place` on, which is moved behind them."""
    size = Const(width, INT64)
    start = lo.read(place)
    count = lo.floor_div(lo.maximum(lo.subtract(stop, start), ZERO), size)
    block, lane = lo.index("block"), lo.index("lane")

    def step() -> None:
        values = _at(lo, runs, lo.add(lo.add(start, lo.multiply(block, size)), lane))
        store(lo, lanes, lane, combined(lo, runs.parts, load(lo, lanes, lane), values))

    lo.loop(block, ZERO, count, lambda: lo.loop(lane, ZERO, size, step, "lanes"), "serial")
    lo.write(place, lo.add(start, lo.multiply(count, size)))


def _at(lo: Lowering, runs: Runs, place: Operand) -> Values:
    """The contributions of a place."""
    lo.alias(runs.axes[0].index, place)
    return [widened(lo, part, value) for part, value in zip(runs.parts, lo.lower_block(runs.body), strict=True)]
