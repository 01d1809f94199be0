"""Reductions that keep some axes, see `reductions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import BOOL, INT64
from parakeet_py.imp import ir as imp
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.loops import Axis, axes_of
from parakeet_py.imp.schedule.axis_merging import merge, merged_outs
from parakeet_py.imp.schedule.loop_order import Study, static_cost, stride_cost
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.ptx.kernels.combining import (
    across_block,
    across_rows,
    across_warp,
    ahead,
    any_order,
    cells_of,
    combine_of,
    gather,
    memory,
    store_cells,
    stride,
    take,
    take_partial,
)
from parakeet_py.ptx.kernels.regions import THREADS, WARP, grid, grid_of_blocks, index_of, split32, unravel, walked
from parakeet_py.ptx.skeletons.tiled_maps import Shape
from parakeet_py.typed_ir.ir import Const, Operand, Reduce, Var

PER_THREAD = 16  # contributions that a thread takes before there are more blocks
MAX_BLOCKS = 1024  # that several blocks for each point may make
WARP_ROW, BLOCK_ROW = 16, 1024  # contributions of one kept point from which a warp, a block works on it
FEW_ROWS, LONG_ROW = 256, 1 << 15  # fewer points than that of at least so many contributions get several blocks each

Gather = Callable[[Sequence[Cell], Operand, Operand], None]  # (cells, kept point, contribution): takes it


def by_axis(lo: Lowering, arrays: Outs, op: Reduce, found: Study) -> None:
    """A reduction that keeps axes, as GPU regions that fill arrays."""
    work = _Work(lo, arrays, op, found)
    if work.side_by_side:
        long = lambda: lo.when(work.few_and_long(), work.rows_by_blocks, work.rows_by_block)  # noqa: E731
        short = lambda: lo.when(lo.compare("ge", work.size, Const(WARP_ROW, INT64)), work.rows_by_warp, work.rows)  # noqa: E731
        lo.when(lo.compare("ge", work.size, Const(BLOCK_ROW, INT64)), long, short)
    elif any_order(work.with_):
        work.columns()
    else:
        few = lo.compare("lt", lo.multiply(work.points, Const(4, INT64)), work.size)
        lo.when(few, work.rows_by_block, work.rows)
    lo.merged = work.merged


def _side_by_side(found: Study, kept: Sequence[Axis], reduced: Sequence[Axis]) -> bool:
    """Whether the contributions of one point lie closer together than those of neighbouring points."""
    return stride_cost(found, reduced[-1].mover) <= stride_cost(found, kept[-1].mover)


class _Work:
    """One reduction, and the ways to share it out."""

    def __init__(self, lo: Lowering, arrays: Outs, op: Reduce, found: Study) -> None:
        self.lo, self.op = lo, op
        extents = lo.operands(op.extents)
        self.with_ = combine_of(lo, op.combine, op.inits)
        self.cost = static_cost(op.body)
        self.ahead = ahead(found)
        self.merged = lo.merged
        space, inner = axes_of(op.indices, extents), axes_of(op.reduced_indices, lo.operands(op.reduced_extents))
        self.every, reduced = merge(lo, found, space, inner)
        self.targets = merged_outs(lo, arrays, space, self.every)
        self.side_by_side = _side_by_side(found, self.every, reduced)
        self.kept, self.reduced = walked(lo, self.every), walked(lo, reduced)
        self.points, self.size = (lo.product(axis.extent for axis in axes) for axes in (self.kept, self.reduced))

    def take(self, cells: Sequence[Cell], number: Operand) -> None:
        """Take a contribution of the present kept point."""
        unravel(self.lo, self.reduced, number)
        take(self.lo, self.with_, cells, self.lo.lower_block(self.op.body), number)

    def leave(self, cells: Sequence[Cell]) -> None:
        store_cells(self.lo, self.targets, [self.lo.operand(axis.index) for axis in self.every], cells)

    def few_and_long(self) -> Operand:
        lo = self.lo
        few = lo.compare("lt", self.points, Const(FEW_ROWS, INT64))
        return lo.prim("and", few, lo.compare("ge", self.size, Const(LONG_ROW, INT64)), type_=BOOL)

    def parts(self, each: Operand, blocks: Operand) -> Operand:
        """Into how many parts of at least `each` contributions the reduced axes are cut, for so many blocks of each."""
        lo = self.lo
        most = lo.maximum(lo.floor_div(Const(MAX_BLOCKS, INT64), lo.maximum(blocks, ONE)), ONE)
        return lo.minimum(lo.maximum(lo.floor_div(self.size, each), ONE), most)

    # ---- contributions of a point side by side -----------------------------------------------------------------------

    def rows(self) -> None:
        """A thread for each point."""
        lo = self.lo

        def point(number: Var) -> None:
            unravel(lo, self.kept, number)
            cells = cells_of(lo, self.with_)
            self.all_of(cells)
            self.leave(cells)

        grid(lo, self.points, "reduce rows", point)

    def all_of(self, cells: Sequence[Cell]) -> None:
        """Take all contributions in order: loops, no division."""
        lo = self.lo
        number = lo.declare("number", INT64, ZERO)

        def one() -> None:
            here = lo.read(number)
            take(lo, self.with_, cells, lo.lower_block(self.op.body), here)
            lo.write(number, lo.add(here, ONE))

        def nest(position: int) -> None:
            if position == len(self.reduced):
                one()
                return
            axis = self.reduced[position]
            index = lo.index("k")
            lo.alias(axis.index, index)
            lo.loop(index, ZERO, axis.extent, lambda: nest(position + 1))

        nest(0)

    def rows_by_warp(self) -> None:
        lo = self.lo

        def some(block: Var, thread: Var) -> None:
            lane = lo.let("lane", INT64, imp.Lane("lane"))
            number = lo.floor_div(index_of(lo, block, thread), Const(WARP, INT64))

            def point() -> None:
                unravel(lo, self.kept, number)
                cells = cells_of(lo, self.with_)
                team = lane, Const(WARP, INT64)
                gather(lo, self.with_, self.size, team, self.cost, lambda place: self.take(cells, place), self.ahead)
                across_warp(lo, self.with_, cells)
                lo.when(lo.compare("eq", lane, ZERO), lambda: self.leave(cells))

            lo.when(lo.compare("lt", number, self.points), point)

        grid_of_blocks(lo, lo.ceil_div(self.points, Const(THREADS // WARP, INT64)), "reduce rows by warp", some)

    def rows_by_block(self) -> None:
        lo = self.lo

        def some(block: Var, thread: Var) -> None:
            unravel(lo, self.kept, block, True)
            cells = cells_of(lo, self.with_)
            team = thread, Const(THREADS, INT64)
            gather(lo, self.with_, self.size, team, self.cost, lambda place: self.take(cells, place), self.ahead)
            across_block(lo, self.with_, cells, thread)
            lo.when(lo.compare("eq", thread, ZERO), lambda: self.leave(cells))

        grid_of_blocks(lo, self.points, "reduce rows by block", some)

    def rows_by_blocks(self) -> None:
        """Several blocks for each point, then one."""
        lo = self.lo
        parts = self.parts(Const(THREADS * PER_THREAD, INT64), self.points)
        partial = memory(lo, self.with_, (self.points, parts))
        whole = Const(THREADS, INT64)

        def some(block: Var, thread: Var) -> None:
            point, part = split32(lo, block, parts)
            unravel(lo, self.kept, point, True)
            cells = cells_of(lo, self.with_)
            team = lo.add(lo.multiply(part, whole), thread), lo.multiply(parts, whole)
            gather(lo, self.with_, self.size, team, self.cost, lambda place: self.take(cells, place), self.ahead)
            across_block(lo, self.with_, cells, thread)
            lo.when(lo.compare("eq", thread, ZERO), lambda: store_cells(lo, partial, (point, part), cells))

        def last(block: Var, thread: Var) -> None:
            unravel(lo, self.kept, block, True)
            cells = cells_of(lo, self.with_)
            visit = lambda part: take_partial(lo, self.with_, cells, partial, block, part)  # noqa: E731
            gather(lo, self.with_, parts, (thread, whole), 1, visit)
            across_block(lo, self.with_, cells, thread)
            lo.when(lo.compare("eq", thread, ZERO), lambda: self.leave(cells))

        grid_of_blocks(lo, lo.multiply(self.points, parts), "reduce parts of rows", some)
        grid_of_blocks(lo, self.points, "reduce last", last)

    # ---- neighbouring points side by side ----------------------------------------------------------------------------

    def columns(self) -> None:
        lo = self.lo
        shape = Shape.fitting(lo, self.points, self.size, 1)
        tiles = lo.prim("shr", lo.add(self.points, lo.subtract(shape.width, ONE)), shape.across)
        parts = self.parts(lo.multiply(shape.height, Const(PER_THREAD, INT64)), tiles)

        def contribution(cells: Sequence[Cell], point: Operand, number: Operand) -> None:
            self.take(cells, number)

        def leave(cells: Sequence[Cell], part: Operand, point: Operand) -> None:
            unravel(lo, self.kept, point)
            self.leave(cells)

        def direct() -> None:
            self.blocks_of_columns("reduce columns", shape, tiles, ONE, (self.size, contribution), leave)

        def in_parts() -> None:
            partial = memory(lo, self.with_, (parts, self.points))

            def keep(cells: Sequence[Cell], part: Operand, point: Operand) -> None:
                store_cells(lo, partial, (part, point), cells)

            def given(cells: Sequence[Cell], point: Operand, number: Operand) -> None:
                take_partial(lo, self.with_, cells, partial, number, point)

            self.blocks_of_columns("reduce parts of columns", shape, tiles, parts, (self.size, contribution), keep)
            self.blocks_of_columns("reduce last", shape, tiles, ONE, (parts, given), leave)

        lo.when(lo.compare("gt", parts, ONE), in_parts, direct)

    def blocks_of_columns(
        self,
        name: str,
        shape: Shape,
        tiles: Operand,
        parts: Operand,
        source: tuple[Operand, Gather],
        leave: Gather,
    ) -> None:
        """Blocks of `shape` over (points, contributions), `parts` of them for the same points."""
        lo = self.lo
        size, get = source

        def some(block: Var, thread: Var) -> None:
            part, tile = (ZERO, block) if parts is ONE else split32(lo, block, tiles)
            left = lo.multiply(tile, shape.width)
            point = lo.add(left, lo.prim("and", thread, lo.subtract(shape.width, ONE)))
            row = lo.add(lo.multiply(part, shape.height), lo.prim("shr", thread, shape.across))
            cells = cells_of(lo, self.with_)

            def column() -> None:
                unravel(lo, self.kept, point)
                step = lo.multiply(parts, shape.height)
                stride(lo, row, size, step, self.cost, lambda number: get(cells, point, number), self.ahead)

            inside = lo.compare("lt", point, self.points)
            lo.when(inside, column)
            across_rows(lo, self.with_, cells, thread, shape.width)
            first = lo.prim("and", inside, lo.compare("lt", thread, shape.width), type_=BOOL)
            lo.when(first, lambda: leave(cells, part, point))

        grid_of_blocks(lo, lo.multiply(tiles, parts), name, some)
