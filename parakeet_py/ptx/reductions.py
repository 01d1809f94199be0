"""Reductions on a GPU.

Contributions are combined in registers, then between the lanes of a warp by shuffles, then between the warps of a block
through shared memory; blocks leave partial results that one more block combines. Which threads share a result depends
on the shape, chosen when the call runs:

* no kept axes: all threads on one result, two launches;
* many contributions for each kept point, lying side by side: a block for each point (or a warp, if they are fewer);
* otherwise a thread for each kept point, which reads what its neighbours' neighbours are.

A combine of known primitives (sum, minimum, any...) may take contributions in any order, so neighbouring threads read
neighbouring elements. For any other combine, every thread takes a run of its own and all trees keep the order.

The number of blocks and what each thread takes depend on the extents alone: a sum has the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.imp import ir as imp
from parakeet_py.imp import reductions as on_cpu
from parakeet_py.imp.builder import Lowering, Outs
from parakeet_py.imp.combine import Combination, combination, combine, declare, fold
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.loops import Axis, axes_of
from parakeet_py.imp.merge import merge, merged_outs
from parakeet_py.imp.schedule import Study, stride_cost, study
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.ptx.regions import THREADS, WARP, grid, grid_of_blocks, index_of, unravel
from parakeet_py.typed_ir.ir import Const, Operand, Reduce, Var
from parakeet_py.typed_ir.types import INT64, Array

PER_THREAD = 8  # contributions that a thread takes before there are more blocks
MAX_BLOCKS = 1024  # partial results that the last block combines
WARP_ROW, BLOCK_ROW = 16, 1024  # contributions of one kept point from which a warp, a block works on it


def lower_reduce(lo: Lowering, outs: tuple[Var, ...], op: Reduce) -> None:
    """A reduction as GPU regions; inside of others, and where it may fail, as on the CPU."""
    found = study(op.body)
    if lo.in_region or found.has_check or found.has_opaque or not found.simple:
        on_cpu.lower_reduce(lo, outs, op)
    elif op.extents:
        _by_axis(lo, outs, op, found)
    else:
        _whole(lo, outs, op, found)


# ---- the whole space -------------------------------------------------------------------------------------------------


def _whole(lo: Lowering, outs: tuple[Var, ...], op: Reduce, found: Study) -> None:
    with_ = combination(lo, op.combine, op.inits)
    merged = lo.merged
    (axes,) = merge(lo, found, axes_of(op.reduced_indices, lo.operands(op.reduced_extents)))
    size = lo.product(axis.extent for axis in axes)
    wanted = lo.ceil_div(size, Const(THREADS * PER_THREAD, INT64))
    blocks = lo.minimum(lo.maximum(wanted, ONE), Const(MAX_BLOCKS, INT64))
    partial = _memory(lo, with_, blocks)

    def contribution(number: Operand) -> Sequence[Operand]:
        unravel(lo, axes, number)
        return lo.lower_block(op.body)

    def some(block: Var, thread: Var) -> None:
        cells = declare(lo, with_)
        _run(
            lo,
            with_,
            cells,
            size,
            lo.multiply(blocks, Const(THREADS, INT64)),
            index_of(lo, block, thread),
            contribution,
        )
        across_block(lo, with_, cells, thread)
        _store_first(lo, thread, partial, block, cells)

    grid_of_blocks(lo, blocks, "reduce", some)
    lo.merged = merged
    result = _memory(lo, with_, ONE)

    def last(block: Var, thread: Var) -> None:
        cells = declare(lo, with_)
        _run(
            lo,
            with_,
            cells,
            blocks,
            Const(THREADS, INT64),
            thread,
            lambda number: [lo.load(array, number) for array in partial],
        )
        across_block(lo, with_, cells, thread)
        _store_first(lo, thread, result, ZERO, cells)

    grid_of_blocks(lo, ONE, "reduce last", last)
    for out, array in zip(outs, result, strict=True):
        if out in lo.used:
            lo.alias(out, lo.load(array, ZERO))


def _memory(lo: Lowering, with_: Combination, count: Operand) -> list[Var]:
    return [lo.new_array("partial", Array(dtype, 1, "C"), (count,)) for dtype in with_.types]


def _run(
    lo: Lowering,
    with_: Combination,
    cells: Sequence[Cell],
    size: Operand,
    threads: Operand,
    thread: Operand,
    contribution: Callable[[Operand], Sequence[Operand]],
) -> None:
    """What thread number `thread` of `threads` takes of `size` contributions, combined into its cells."""
    number = lo.index("k")
    body = lambda: fold(lo, with_, cells, contribution(number))  # noqa: E731
    if with_.names is not None:
        lo.loop(number, thread, size, body, "serial", threads)
        return
    share = lo.ceil_div(size, threads)
    start = lo.multiply(thread, share)
    lo.loop(number, start, lo.minimum(lo.add(start, share), size), body)


# ---- with kept axes --------------------------------------------------------------------------------------------------


def _by_axis(lo: Lowering, outs: tuple[Var, ...], op: Reduce, found: Study) -> None:
    extents = lo.operands(op.extents)
    arrays = lo.new_outs(outs, extents)
    with_ = combination(lo, op.combine, op.inits)
    merged = lo.merged
    space, inner = axes_of(op.indices, extents), axes_of(op.reduced_indices, lo.operands(op.reduced_extents))
    kept, reduced = merge(lo, found, space, inner)
    targets = merged_outs(lo, arrays, space, kept)
    points, size = (lo.product(axis.extent for axis in axes) for axes in (kept, reduced))

    def contribution(number: Operand) -> Sequence[Operand]:
        unravel(lo, reduced, number)
        return lo.lower_block(op.body)

    def leave(cells: Sequence[Cell]) -> None:
        lo.store_outs(targets, [lo.operand(axis.index) for axis in kept], [lo.read(cell) for cell in cells])

    def by_thread() -> None:
        def point(number: Var) -> None:
            unravel(lo, kept, number)
            cells = declare(lo, with_)
            _run(lo, with_, cells, size, ONE, ZERO, contribution)
            leave(cells)

        grid(lo, points, "reduce rows", point)

    def by_warp() -> None:
        def some(block: Var, thread: Var) -> None:
            lane = lo.let("lane", INT64, imp.Lane("lane"))
            number = lo.floor_div(index_of(lo, block, thread), Const(WARP, INT64))

            def point() -> None:
                unravel(lo, kept, number)
                cells = declare(lo, with_)
                _run(lo, with_, cells, size, Const(WARP, INT64), lane, contribution)
                across_warp(lo, with_, cells)
                lo.when(lo.compare("eq", lane, ZERO), lambda: leave(cells))

            lo.when(lo.compare("lt", number, points), point)

        grid_of_blocks(lo, lo.ceil_div(points, Const(THREADS // WARP, INT64)), "reduce rows by warp", some)

    def by_block() -> None:
        def some(block: Var, thread: Var) -> None:
            unravel(lo, kept, block)
            cells = declare(lo, with_)
            _run(lo, with_, cells, size, Const(THREADS, INT64), thread, contribution)
            across_block(lo, with_, cells, thread)
            lo.when(lo.compare("eq", thread, ZERO), lambda: leave(cells))

        grid_of_blocks(lo, points, "reduce rows by block", some)

    if _side_by_side(found, kept, reduced):
        lo.when(
            lo.compare("ge", size, Const(BLOCK_ROW, INT64)),
            by_block,
            lambda: lo.when(lo.compare("ge", size, Const(WARP_ROW, INT64)), by_warp, by_thread),
        )
    else:
        few = lo.compare("lt", lo.multiply(points, Const(4, INT64)), size)
        lo.when(few, by_block, by_thread)
    lo.merged = merged


def _side_by_side(found: Study, kept: Sequence[Axis], reduced: Sequence[Axis]) -> bool:
    """Whether the contributions of one point lie closer together than those of neighbouring points."""
    return stride_cost(found, reduced[-1].mover) <= stride_cost(found, kept[-1].mover)


# ---- between threads -------------------------------------------------------------------------------------------------


def across_warp(lo: Lowering, with_: Combination, cells: Sequence[Cell], lanes: int = WARP) -> None:
    """Combine the cells of a warp's lanes, in order; lane 0 has the result."""
    distance = 1
    while distance < lanes:
        own = [lo.read(cell) for cell in cells]
        others = [lo.let("other", value.type, imp.Shuffle("down", value, Const(distance, INT64))) for value in own]
        lo.write_all(list(zip(cells, combine(lo, with_, own, others), strict=True)))
        distance *= 2


def across_block(lo: Lowering, with_: Combination, cells: Sequence[Cell], thread: Var) -> None:
    """Combine the cells of a block's threads, in order; thread 0 has the result."""
    warps = THREADS // WARP
    across_warp(lo, with_, cells)
    lane = lo.let("lane", INT64, imp.Lane("lane"))
    warp = lo.floor_div(thread, Const(WARP, INT64))
    shared = [
        lo.let("shared", Array(dtype, 1, "C"), imp.NewArray((Const(warps, INT64),), "shared")) for dtype in with_.types
    ]

    def put() -> None:
        for array, cell in zip(shared, cells, strict=True):
            lo.store(array, (warp,), lo.read(cell))

    lo.when(lo.compare("eq", lane, ZERO), put)
    lo.emit(imp.Barrier("block"))

    def finish() -> None:
        def take() -> None:
            lo.write_all([(cell, lo.load(array, lane)) for array, cell in zip(shared, cells, strict=True)])

        lo.when(lo.compare("lt", lane, Const(warps, INT64)), take)
        across_warp(lo, with_, cells, warps)

    lo.when(lo.compare("eq", warp, ZERO), finish)


def _store_first(lo: Lowering, thread: Var, arrays: Outs, place: Operand, cells: Sequence[Cell]) -> None:
    """Let thread 0 leave its cells in memory."""
    lo.when(lo.compare("eq", thread, ZERO), lambda: lo.store_outs(arrays, (place,), [lo.read(cell) for cell in cells]))
