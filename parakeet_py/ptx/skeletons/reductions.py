"""Reductions on a GPU.

Contributions are combined in registers, then between threads (`combining`); blocks leave partial results that a second
launch combines, unless there is one block. Which threads share a result depends on the shape, chosen when the call
runs:

* no kept axes: all threads on one result, each taking 16 bytes at a time where they lie side by side;
* the contributions of a kept point lie side by side: a block for each point, or a warp, or a thread, if they are fewer;
  several blocks for each if there are few points with many contributions;
* otherwise: blocks of 32 neighbouring points and 8 threads for each; where points are few, several blocks for each.

The number of blocks and what each thread takes depend on the extents alone: a sum has the same bits each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INT64, itemsize
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower import reductions as on_cpu
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import combination, declare, fold
from parakeet_py.imp.lower.loops import Axis, axes_of
from parakeet_py.imp.schedule.axis_merging import merge
from parakeet_py.imp.schedule.loop_order import Study, access_cost, static_cost, stride_cost, study
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.ptx.kernels.combining import (
    Combine,
    Placed,
    across_block,
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
from parakeet_py.ptx.kernels.regions import THREADS, grid_of_blocks, index_of, split32, unravel, walked
from parakeet_py.ptx.skeletons.product_operands import of_reduction
from parakeet_py.ptx.skeletons.reductions_by_axis import by_axis
from parakeet_py.ptx.skeletons.tensor_core_products import lower_product
from parakeet_py.ptx.skeletons.tiled_maps import Shape
from parakeet_py.typed_ir.ir import Const, Operand, Reduce, Var, dtype_of

PER_THREAD = 16  # contributions that a thread takes before there are more blocks
MAX_BLOCKS = 1024  # partial results that the last block combines
VECTOR_BYTES = 16
WIDE = 16  # the least extent of products of matrices that are computed by tiles
MAX_UNROLLED = 64  # operations of the contributions that a thread takes with one load


def lower_reduce(lo: Lowering, outs: tuple[Var, ...], op: Reduce) -> None:
    """A reduction as GPU regions; inside of others, and where it may fail, as on the CPU."""
    found = study(op)
    if lo.in_region and not op.extents and not found.has_opaque:
        _serial(lo, outs, op)
    elif lo.in_region or found.has_check or found.has_opaque or found.has_array:
        on_cpu.lower_reduce(lo, outs, op)
    elif op.extents:
        _by_axis(lo, outs, op, found)
    else:
        _whole(lo, outs, op, found)


def _by_axis(lo: Lowering, outs: tuple[Var, ...], op: Reduce, found: Study) -> None:
    """A reduction that keeps axes; one that is a product of matrices, and not a slim one, is computed by tiles."""
    arrays = lo.new_outs(outs, lo.operands(op.extents))
    product = of_reduction(lo, op, arrays[0]) if len(outs) == 1 and arrays[0] is not None else None
    if product is None:
        by_axis(lo, arrays, op, found)
        return
    least = lo.minimum(product.rows, lo.minimum(product.columns, product.depth))
    wide = lo.compare("ge", least, Const(WIDE, INT64))
    lo.when(wide, lambda: lower_product(lo, product, False), lambda: by_axis(lo, arrays, op, found))


def _serial(lo: Lowering, outs: tuple[Var, ...], op: Reduce) -> None:
    """Inside a thread: loops, one contribution after the other. (A CPU sums blocks, to use its vectors.)"""
    with_ = combination(lo, op.combine, op.inits)
    cells = declare(lo, with_)

    def nest(position: int) -> None:
        if position == len(op.reduced_indices):
            fold(lo, with_, cells, lo.lower_block(op.body))
            return
        index = lo.bind(op.reduced_indices[position])
        lo.loop(index, ZERO, lo.operand(op.reduced_extents[position]), lambda: nest(position + 1))

    nest(0)
    for out, cell in zip(outs, cells, strict=True):
        lo.alias(out, lo.read(cell))


def _whole(lo: Lowering, outs: tuple[Var, ...], op: Reduce, found: Study) -> None:
    with_ = combine_of(lo, op.combine, op.inits)
    merged = lo.merged
    (merged_axes,) = merge(lo, found, axes_of(op.reduced_indices, lo.operands(op.reduced_extents)))
    axes = walked(lo, merged_axes)
    space = (
        _Nest(lo, op, found, with_, axes) if len(axes) > 1 and any_order(with_) else _Line(lo, op, found, with_, axes)
    )
    partial = memory(lo, with_, (space.blocks,))

    def some(block: Var, thread: Var) -> None:
        cells = cells_of(lo, with_)
        space.gather(cells, block, thread)
        across_block(lo, with_, cells, thread)
        lo.when(lo.compare("eq", thread, ZERO), lambda: store_cells(lo, partial, (block,), cells))

    grid_of_blocks(lo, space.blocks, "reduce", some)
    lo.merged = merged

    def last(block: Var, thread: Var) -> None:
        cells = cells_of(lo, with_)
        visit = lambda number: take_partial(lo, with_, cells, partial, number)  # noqa: E731
        gather(lo, with_, space.blocks, (thread, Const(THREADS, INT64)), 1, visit)
        across_block(lo, with_, cells, thread)
        lo.when(lo.compare("eq", thread, ZERO), lambda: store_cells(lo, partial, (ZERO,), cells))

    several = lo.compare("gt", space.blocks, ONE)
    lo.when(several, lambda: grid_of_blocks(lo, ONE, "reduce last", last))
    for out, array in zip(outs, partial, strict=False):
        if out in lo.used:
            lo.alias(out, lo.load(array, ZERO))


class _Line:
    """A space as a line of points; neighbouring threads take neighbouring points."""

    def __init__(self, lo: Lowering, op: Reduce, found: Study, with_: Combine, axes: Sequence[Axis]) -> None:
        self.lo, self.op, self.with_, self.axes = lo, op, with_, axes
        self.cost = static_cost(op.body)
        self.ahead = ahead(found)
        self.size = lo.product(axis.extent for axis in axes)
        wanted = lo.ceil_div(self.size, Const(THREADS * PER_THREAD, INT64))
        self.blocks = lo.minimum(lo.maximum(wanted, ONE), Const(MAX_BLOCKS, INT64))
        self.threads = lo.multiply(self.blocks, Const(THREADS, INT64))
        self.width = _width(found, self.cost, axes[0]) if len(axes) == 1 and any_order(with_) else 1

    def gather(self, cells: Sequence[imp.Cell], block: Var, thread: Var) -> None:
        lo, width = self.lo, self.width
        me = index_of(lo, block, thread)

        def one(number: Operand) -> None:
            unravel(lo, self.axes, number)
            take(lo, self.with_, cells, lo.lower_block(self.op.body), number)

        if width == 1:
            gather(lo, self.with_, self.size, (me, self.threads), self.cost, one, self.ahead)
            return
        each = Const(width, INT64)
        chunks = lo.floor_div(self.size, each)

        def chunk(number: Operand) -> None:
            start = lo.multiply(number, each)
            for position in range(width):
                one(lo.add(start, Const(position, INT64)))

        stride(lo, me, chunks, self.threads, self.cost * width, chunk)
        rest = lo.add(lo.multiply(chunks, each), me)
        lo.when(lo.compare("lt", rest, self.size), lambda: one(rest))


class _Nest:
    """A space of several axes: lanes lie along the one in which accesses move least, and no point is divided."""

    def __init__(self, lo: Lowering, op: Reduce, found: Study, with_: Combine, axes: Sequence[Axis]) -> None:
        self.lo, self.op, self.with_, self.axes = lo, op, with_, axes
        self.cost = static_cost(op.body)
        self.ahead = ahead(found)
        self.inner = min(reversed(axes), key=lambda axis: stride_cost(found, axis.mover))
        self.outer = [axis for axis in axes if axis is not self.inner]
        self.rows = lo.product(axis.extent for axis in self.outer)
        self.shape = Shape.fitting(lo, self.inner.extent, self.rows, 1)
        most, one_row = Const(MAX_BLOCKS, INT64), lo.multiply(self.shape.width, Const(PER_THREAD, INT64))
        groups = lo.ceil_div(self.rows, lo.maximum(self.shape.height, ONE))
        self.groups = lo.minimum(lo.maximum(groups, ONE), most)
        wanted = lo.ceil_div(self.inner.extent, one_row)
        self.parts = lo.minimum(lo.maximum(wanted, ONE), lo.floor_div(most, self.groups))
        self.blocks = lo.multiply(self.groups, self.parts)

    def gather(self, cells: Sequence[imp.Cell], block: Var, thread: Var) -> None:
        lo, shape = self.lo, self.shape
        part, group = split32(lo, block, self.groups)
        column = lo.add(lo.multiply(part, shape.width), lo.prim("and", thread, lo.subtract(shape.width, ONE)))
        first = lo.add(lo.multiply(group, shape.height), lo.prim("shr", thread, shape.across))
        step = lo.multiply(self.parts, shape.width)

        def row(number: Operand) -> None:
            unravel(lo, self.outer, number)
            stride(lo, column, self.inner.extent, step, self.cost, one, self.ahead)

        def one(place: Operand) -> None:
            lo.alias(self.inner.index, place)
            number: Operand = ZERO
            if isinstance(self.with_, Placed):
                for axis in self.axes:
                    number = lo.add(lo.multiply(number, axis.extent), lo.operand(axis.index))
            take(lo, self.with_, cells, lo.lower_block(self.op.body), number)

        stride(lo, first, self.rows, lo.multiply(self.groups, shape.height), MAX_UNROLLED, row)


def _width(found: Study, cost: int, axis: Axis) -> int:
    """Neighbouring contributions that a thread takes with one load."""
    if (
        not found.simple
        or not found.accesses
        or any(access_cost(found, access, axis.mover) > 1 for access in found.accesses)
    ):
        return 1
    size = max(itemsize(dtype_of(access.array)) for access in found.accesses)
    width = VECTOR_BYTES // size
    return width if width > 1 and width * cost <= MAX_UNROLLED else 1
