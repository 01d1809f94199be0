"""Scan: prefix combinations along one axis.

The lines along the axis are independent and run in parallel; along a line contributions are combined strictly in order,
which is also how NumPy rounds its cumulative sums. Where the last axis is not the scanned one and moves by unit stride,
whole rows are combined with the row before (a vector loop), in tiles of columns.

A single long line of an exact combine (integers, minimum, maximum) is cut into blocks: each block is combined to one
value in parallel, the values are scanned, and each block is scanned again from its start.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INT64
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, combination, combine, declare, fold, fold_in_order
from parakeet_py.imp.lower.loops import Axis, axes_of, nest, order_of
from parakeet_py.imp.lower.map import map_nest
from parakeet_py.imp.schedule.loop_order import Study, stride_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.typed_ir.ir import Const, Operand, Scan, Var

TILE = 512
BLOCKS = 512
BLOCK = 8192


def lower_scan(lo: Lowering, outs: tuple[Var, ...], op: Scan) -> None:
    extents = lo.operands(op.extents)
    # The outs hold the rows that the next are combined with: every one needs its memory, read later or not.
    arrays = [lo.new_array(out.name, array_type(out), extents, lo.bind(out)) for out in outs]
    with_ = combination(lo, op.combine, op.inits)
    found = study(op)
    axes = axes_of(op.indices, extents)
    along = axes[op.axis]
    others = [axis for axis in axes if axis is not along]
    exact = with_.names is not None and not with_.inexact
    if not others:
        if exact and found.simple and not found.has_check and not lo.in_region:
            _blocks(lo, op, with_, along, arrays, found)
        else:
            _line(lo, op, with_, axes, along, arrays, ZERO, along.extent, declare(lo, with_))
    elif (
        along is not axes[-1]
        and found.simple
        and not found.has_check
        and stride_cost(found, axes[-1].index) < stride_cost(found, along.index)
    ):
        _rows(lo, op, with_, axes, along, arrays, found)
    else:
        map_nest(
            lo,
            others,
            found,
            True,
            lambda: _line(lo, op, with_, axes, along, arrays, ZERO, along.extent, declare(lo, with_)),
            along.extent if not lo.in_region else ONE,
        )


def _line(
    lo: Lowering,
    op: Scan,
    with_: Combination,
    axes: Sequence[Axis],
    along: Axis,
    arrays: Sequence[Var],
    start: Operand,
    stop: Operand,
    cells: Sequence[Cell],
) -> None:
    """Scan one line from what the cells hold."""

    def step() -> None:
        values = lo.lower_block(op.body)
        point = [lo.operand(axis.index) for axis in axes]
        before = [lo.read(cell) for cell in cells]
        if with_.taken is not None:  # see `fold_in_order`
            if not op.inclusive:
                for array, old in zip(arrays, before, strict=True):
                    lo.store(array, point, old)
            fold_in_order(lo, with_, cells, values)
            if op.inclusive:
                for array, cell in zip(arrays, cells, strict=True):
                    lo.store(array, point, lo.read(cell))
            return
        after = combine(lo, with_, before, values)
        for array, value in zip(arrays, after if op.inclusive else before, strict=True):
            lo.store(array, point, value)
        lo.write_all(list(zip(cells, after, strict=True)))

    lo.loop(lo.bind(along.index), start, stop, step, "serial")


def _rows(
    lo: Lowering,
    op: Scan,
    with_: Combination,
    axes: list[Axis],
    along: Axis,
    arrays: Sequence[Var],
    found: Study,
) -> None:
    """Each row combined with the row before, in tiles of the last axis."""
    column = axes[-1]
    tile = Const(TILE, INT64)
    lead = [axis for axis in axes[:-1] if axis is not along]
    tiles = lo.ceil_div(column.extent, tile)
    count = lo.multiply(lo.product(axis.extent for axis in lead), tiles)
    kind = "vector" if with_.names is not None else "independent"

    def point(row: Operand) -> list[Operand]:
        return [row if axis is along else lo.operand(axis.index) for axis in axes]

    def strip(start: Operand, stop: Operand) -> None:
        def first() -> None:
            if op.inclusive:
                lo.alias(along.index, ZERO)
                values = combine(lo, with_, with_.inits, lo.lower_block(op.body))
            else:
                values = with_.inits
            for array, value in zip(arrays, values, strict=True):
                lo.store(array, point(ZERO), value)

        def following() -> None:
            row = lo.bind(along.index)

            def element() -> None:
                # Exclusive: the contribution of this row belongs to the next one.
                target = row if op.inclusive else lo.add(row, ONE)
                source = lo.subtract(row, ONE) if op.inclusive else row
                values = lo.lower_block(op.body)
                before = [lo.load(array, *point(source)) for array in arrays]
                for array, value in zip(arrays, combine(lo, with_, before, values), strict=True):
                    lo.store(array, point(target), value)

            low, high = (ONE, along.extent) if op.inclusive else (ZERO, lo.subtract(along.extent, ONE))
            inner = lambda: lo.loop(lo.bind(column.index), start, stop, element, kind)  # noqa: E731
            lo.loop(row, low, high, inner, "serial")

        some = lo.compare("gt", along.extent, ZERO)
        lo.when(some, lambda: lo.loop(lo.bind(column.index), start, stop, first, kind))
        following()

    def ranges(low: Operand, high: Operand) -> None:
        piece = lo.index("piece")

        def one() -> None:
            left = lo.floor_div(piece, tiles)
            start = lo.multiply(lo.subtract(piece, lo.multiply(left, tiles)), tile)
            for axis in reversed(lead):
                rest = lo.floor_div(left, axis.extent)
                lo.alias(axis.index, lo.subtract(left, lo.multiply(rest, axis.extent)))
                left = rest
            strip(start, lo.minimum(lo.add(start, tile), column.extent))

        lo.loop(piece, low, high, one, "independent")

    if lo.in_region:
        nest(lo, lead, lambda: strip(ZERO, column.extent))
        return
    amount = work(lo, found, (lo.minimum(column.extent, tile), along.extent))
    lo.region(count, ONE, amount, ranges, lambda: ZERO, "scan rows")


def _blocks(lo: Lowering, op: Scan, with_: Combination, along: Axis, arrays: Sequence[Var], found: Study) -> None:
    """Two passes over blocks of one line."""
    size = along.extent
    chunk = Const(BLOCK, INT64)
    share = lo.multiply(lo.maximum(lo.ceil_div(lo.ceil_div(size, chunk), Const(BLOCKS, INT64)), ONE), chunk)
    count = lo.ceil_div(size, share)
    totals = [lo.stack_array("total", dtype, BLOCKS) for dtype in with_.types]
    amount = work(lo, found, (lo.minimum(share, size),))
    axes = [along]

    def bounds(block: Operand) -> tuple[Operand, Operand]:
        start = lo.multiply(block, share)
        return start, lo.minimum(lo.add(start, share), size)

    def total(low: Operand, high: Operand) -> None:
        block = lo.index("block")

        def one() -> None:
            start, stop = bounds(block)
            cells = declare(lo, with_)
            body = lambda: fold(lo, with_, cells, lo.lower_block(op.body))  # noqa: E731
            lo.loop(lo.bind(along.index), start, stop, body, "vector")
            for array, cell in zip(totals, cells, strict=True):
                lo.store(array, (block,), lo.read(cell))

        lo.loop(block, low, high, one, "independent")

    def scan(low: Operand, high: Operand) -> None:
        block = lo.index("block")

        def one() -> None:
            start, stop = bounds(block)
            cells = [
                lo.declare("acc", init.type, lo.load(array, block))
                for array, init in zip(totals, with_.inits, strict=True)
            ]
            _line(lo, op, with_, axes, along, arrays, start, stop, cells)

        lo.loop(block, low, high, one, "independent")

    # One block needs no totals of others: its prefix is the identity.
    several = lo.compare("gt", count, ONE)
    lo.when(several, lambda: lo.region(count, ONE, amount, total, order_of(lo, axes), "scan totals"))
    cells = declare(lo, with_)
    block = lo.index("block")

    def prefix() -> None:
        before = [lo.read(cell) for cell in cells]
        values = [lo.load(array, block) for array in totals]
        for array, value in zip(totals, before, strict=True):
            lo.store(array, (block,), value)
        lo.write_all(list(zip(cells, combine(lo, with_, before, values), strict=True)))

    lo.loop(block, ZERO, count, prefix)
    lo.region(count, ONE, amount, scan, order_of(lo, axes), "scan")
