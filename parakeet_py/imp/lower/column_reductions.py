"""Reductions whose inner loop runs over kept columns: sum(axis=0) of a C-contiguous array and the like.

A tile of `TILE` columns stays in the first-level cache while row after row is combined into it, in order (the order of
NumPy for such axes). Where there are too few tiles to share between threads the rows are cut into blocks, each with
partial results of its own, which are combined in order afterwards; how many depends on the extents only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import BOOL, INT64, Array, itemsize
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, combine
from parakeet_py.imp.lower.loops import Axis, nest
from parakeet_py.imp.schedule.loop_order import Study, static_cost, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Block, Const, Operand, Reshape, Var

TILE = 2048
TILES = 4  # wanted of sums in order, whose rows cannot be cut into blocks
NARROW = 64  # columns of such a tile, at least
UNROLL = 4  # rows combined at once, so that the tile is read and written once for all of them
UNROLL_COST = 12  # in bodies up to this cost
CACHE_LINE = 64  # bytes
PIECES = 64  # pieces of work wanted
BLOCK_ROWS = 64  # rows of a block, at least


def reduce_columns(
    lo: Lowering,
    with_: Combination,
    found: Study,
    body: Block,
    kept: list[Axis],
    reduced: list[Axis],
    outs: Sequence[Var],
    in_order: bool,
) -> None:
    """Combine rows into `outs` (new arrays of the kept extents); `in_order`: one after the other."""
    *lead, column = kept
    lead_size = lo.product(axis.extent for axis in lead)
    rows = reduced[0]
    kind = "vector" if with_.names is not None else "independent"
    if lo.in_region:
        targets = [_rank3(lo, out, ONE, lead_size, column.extent) for out in outs]
        _tiles(lo, with_, body, kept, reduced, targets, kind, None)
        return
    width: Operand = Const(TILE, INT64)
    if in_order:  # threads share the columns alone
        part = lo.ceil_div(column.extent, Const(TILES * NARROW, INT64))
        width = lo.minimum(lo.maximum(lo.multiply(part, Const(NARROW, INT64)), Const(NARROW, INT64)), width)
    tiles = lo.maximum(lo.ceil_div(column.extent, width), ONE)
    strips = lo.multiply(lead_size, tiles)
    wanted = lo.floor_div(Const(PIECES, INT64), lo.maximum(strips, ONE))
    possible = lo.floor_div(rows.extent, Const(BLOCK_ROWS, INT64))
    blocks = ONE if in_order else lo.maximum(lo.minimum(wanted, possible), ONE)
    share = lo.ceil_div(rows.extent, blocks)
    several = Const(False, BOOL) if blocks is ONE else lo.compare("gt", blocks, ONE)

    targets = []
    for out in outs:
        assert isinstance(out.type, Array)
        kind3 = Array(out.type.dtype, 3, "C")
        cell = lo.declare("partial", kind3)

        def own(cell: Cell = cell, kind3: Array = kind3) -> None:
            lo.write(cell, lo.new_array("partial", kind3, (blocks, lead_size, column.extent)))

        def shared(cell: Cell = cell, out: Var = out) -> None:
            lo.write(cell, _rank3(lo, out, ONE, lead_size, column.extent))

        lo.when(several, own, shared)
        targets.append(lo.read(cell))

    def ranges(low: Operand, high: Operand) -> None:
        piece = lo.index("piece")

        def one() -> None:
            strip, block = _divide(lo, piece, blocks)
            point, tile = _divide(lo, strip, tiles)
            start = lo.multiply(tile, width)
            stop = lo.minimum(lo.add(start, width), column.extent)
            first = lo.multiply(block, share)
            last = lo.minimum(lo.add(first, share), rows.extent)
            _tiles(lo, with_, body, kept, reduced, targets, kind, (point, block, start, stop, first, last))

        lo.loop(piece, low, high, one, "independent")

    inner = [axis.extent for axis in reduced[1:]]
    amount = work(lo, found, (lo.minimum(column.extent, width), share, *inner))
    lo.region(lo.multiply(strips, blocks), ONE, amount, ranges, lambda: ZERO, "reduce columns")
    lo.when(several, lambda: _combine_blocks(lo, with_, targets, outs, blocks, lead_size, column.extent, kind))


def _tiles(
    lo: Lowering,
    with_: Combination,
    body: Block,
    kept: list[Axis],
    reduced: list[Axis],
    targets: Sequence[Var],
    kind: str,
    piece: tuple[Operand, Operand, Operand, Operand, Operand, Operand] | None,
) -> None:
    """One tile of columns of one block of rows of one leading point (`piece`), or everything."""
    *lead, column = kept

    def strip(point: Operand, block: Operand, start: Operand, stop: Operand, first: Operand, last: Operand) -> None:
        index = lo.index("j")

        def identity() -> None:
            for target, init in zip(targets, with_.inits, strict=True):
                lo.store(target, (block, point, index), init)

        lo.loop(index, start, stop, identity, "vector")

        def row(count: int) -> None:
            j = lo.bind(column.index)
            base = lo.operand(inmost.index)

            def element() -> None:
                accumulators: Sequence[Operand] = [lo.load(target, block, point, j) for target in targets]
                for number in range(count):
                    lo.alias(inmost.index, lo.add(base, Const(number, INT64)))
                    accumulators = combine(lo, with_, accumulators, lo.lower_block(body))
                for target, value in zip(targets, accumulators, strict=True):
                    lo.store(target, (block, point, j), value)

            lo.loop(j, start, stop, element, kind)

        def rows(low: Operand, high: Operand, count: int, each: str = "serial") -> None:
            lo.loop(lo.bind(inmost.index), low, high, lambda: row(count), each, Const(count, INT64))

        def all_rows(low: Operand, high: Operand) -> None:
            length = lo.subtract(high, low)
            if static_cost(body) > UNROLL_COST or (outer and not isinstance(length, Const)):
                rows(low, high, 1)
                return
            several = lo.multiply(lo.floor_div(length, Const(UNROLL, INT64)), Const(UNROLL, INT64))
            middle = lo.add(low, several)
            if several != ZERO:
                rows(low, middle, UNROLL)
            if several == length:
                return
            left = lo.subtract(length, several)
            rows(middle, high, left.whole if isinstance(left, Const) else 1, "few")

        *outer, inmost = reduced
        if not outer:
            all_rows(first, last)
            return

        def inner_rows() -> None:
            nest(lo, outer[1:], lambda: all_rows(ZERO, inmost.extent), "serial")

        lo.loop(lo.bind(outer[0].index), first, last, inner_rows, "serial")

    if piece is not None:
        point, *rest = piece
        left = point
        for axis in reversed(lead):
            if axis is lead[0]:
                lo.alias(axis.index, left)
            else:
                left, own = _divide(lo, left, axis.extent)
                lo.alias(axis.index, own)
        strip(point, *rest)
        return

    def everything() -> None:
        point: Operand = ZERO
        for axis in lead:
            point = lo.add(lo.multiply(point, axis.extent), lo.operand(axis.index))
        done: Operand = ZERO
        if len(reduced) > 1 and kind == "vector" and static_cost(body) <= UNROLL_COST:  # a window, most likely
            done = _registers(lo, with_, body, column, reduced, targets, point)
        strip(point, ZERO, done, column.extent, ZERO, reduced[0].extent)

    nest(lo, lead, everything)


def _registers(
    lo: Lowering,
    with_: Combination,
    body: Block,
    column: Axis,
    reduced: list[Axis],
    targets: Sequence[Var],
    point: Operand,
) -> Operand:
    """Combine the rows of as many columns at a time as fill a register; gives the first column that is left."""
    count = CACHE_LINE // max(itemsize(dtype) for dtype in with_.types)
    width = Const(count, INT64)
    whole = lo.multiply(lo.floor_div(column.extent, width), width)
    lanes = [lo.stack_array("acc", dtype, count) for dtype in with_.types]
    first = lo.index("columns")

    def each_lane(step: Callable[[Var], None]) -> None:
        lane = lo.index("lane")
        lo.loop(lane, ZERO, width, lambda: step(lane), "lanes")

    def row(lane: Var) -> None:
        lo.alias(column.index, lo.add(first, lane))
        before = [lo.load(array, lane) for array in lanes]
        for array, value in zip(lanes, combine(lo, with_, before, lo.lower_block(body)), strict=True):
            lo.store(array, (lane,), value)

    def result(lane: Var) -> None:
        for array, target in zip(lanes, targets, strict=True):
            lo.store(target, (ZERO, point, lo.add(first, lane)), lo.load(array, lane))

    def columns() -> None:
        for array, init in zip(lanes, with_.inits, strict=True):
            for lane in range(count):
                lo.store(array, (Const(lane, INT64),), init)
        nest(lo, reduced, lambda: each_lane(row), "serial")
        each_lane(result)

    lo.loop(first, ZERO, whole, columns, "serial", width)
    return whole


def _combine_blocks(
    lo: Lowering,
    with_: Combination,
    targets: Sequence[Var],
    outs: Sequence[Var],
    blocks: Operand,
    lead_size: Operand,
    columns: Operand,
    kind: str,
) -> None:
    """Combine the blocks' results in order into the outs."""
    results = [_rank3(lo, out, ONE, lead_size, columns) for out in outs]
    point, block, j = lo.index("point"), lo.index("block"), lo.index("j")

    def copy() -> None:
        for target, result in zip(targets, results, strict=True):
            lo.store(result, (ZERO, point, j), lo.load(target, ZERO, point, j))

    def add() -> None:
        accumulators = [lo.load(result, ZERO, point, k) for result in results]
        values = [lo.load(target, block, point, k) for target in targets]
        for result, value in zip(results, combine(lo, with_, accumulators, values), strict=True):
            lo.store(result, (ZERO, point, k), value)

    k = lo.index("j")

    def strip() -> None:
        lo.loop(j, ZERO, columns, copy, "vector")
        lo.loop(block, ONE, blocks, lambda: lo.loop(k, ZERO, columns, add, kind), "serial")

    lo.loop(point, ZERO, lead_size, strip, "independent")


def _rank3(lo: Lowering, array: Var, *extents: Operand) -> Var:
    assert isinstance(array.type, Array)
    shaped = lo.let(array.name, Array(array.type.dtype, 3, "C"), Reshape(array, extents))
    lo.shapes.define(shaped, extents)
    return shaped


def _divide(lo: Lowering, number: Operand, by: Operand) -> tuple[Operand, Operand]:
    """Quotient and remainder of number >= 0 by `by` > 0."""
    if by is ONE:
        return number, ZERO
    quotient = lo.floor_div(number, by)
    return quotient, lo.subtract(number, lo.multiply(quotient, by))
