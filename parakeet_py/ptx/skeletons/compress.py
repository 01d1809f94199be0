"""Compressions on a GPU: points that are kept, in the order of the space.

Their number is known only when they have been counted, and memory for the results is made by the host. So there are
two passes over the points: the first counts those that each tile keeps, the second fills. Between them one block scans
the counts of all tiles, which gives each tile its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INT64, Array, Scalar
from parakeet_py.imp import ir as imp
from parakeet_py.imp.lower import compress as on_cpu
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import Combination, combination, declare, fold
from parakeet_py.imp.lower.loops import axes_of
from parakeet_py.imp.schedule.loop_order import static_cost, study
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.combining import across_block, stride
from parakeet_py.ptx.kernels.regions import THREADS, grid_of_blocks, unravel
from parakeet_py.ptx.skeletons.scan_tiles import Tile, rounds_of
from parakeet_py.typed_ir.ir import Block, Cast, Compress, Const, Lambda, Let, Operand, Prim, Var

_INT32 = Scalar("int32")  # places inside a tile


def lower_compress(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    """Keep points in order: count those of each tile, scan the counts, fill."""
    found = study(op)
    axes = axes_of(op.indices, lo.operands(op.extents))
    if lo.in_region or not axes or found.has_check or found.has_opaque or found.has_array:
        on_cpu.lower_compress(lo, outs, op)
        return
    size = lo.product(axis.extent for axis in axes)
    cost = static_cost(op.body)
    inside, across = _sums(lo, _INT32), _sums(lo, INT64)
    length = THREADS * rounds_of(inside)
    tiles = lo.ceil_div(size, Const(length, INT64))
    counts = lo.new_array("counts", Array("int32", 1, "C"), (tiles,))

    def kept(place: Operand) -> Operand:
        unravel(lo, axes, place)
        return lo.prim("select", lo.lower_block(op.body)[0], *(Const(bit, _INT32) for bit in (1, 0)), type_=_INT32)

    def count(block: Var, thread: Var) -> None:
        start = lo.add(lo.multiply(block, Const(length, INT64)), thread)
        stop = lo.minimum(lo.multiply(lo.add(block, ONE), Const(length, INT64)), size)
        cells = declare(lo, inside)
        step = Const(THREADS, INT64)
        stride(lo, start, stop, step, cost, lambda number: fold(lo, inside, cells, [kept(number)]))
        across_block(lo, inside, cells, thread)
        lo.when(lo.compare("eq", thread, ZERO), lambda: lo.store(counts, (block,), lo.read(cells[0])))

    grid_of_blocks(lo, tiles, "count", count)
    places = lo.new_array("places", Array("int64", 1, "C"), (tiles,))
    whole = lo.new_array("whole", Array("int64", 1, "C"), (ONE,))

    def offsets(block: Var, thread: Var) -> None:
        carry = lo.declare("carry", INT64, ZERO)
        part = lo.index("part")
        long = Const(THREADS * rounds_of(across), INT64)

        def given(place: Operand) -> list[Operand]:
            return [lo.let("count", INT64, Cast(lo.load(counts, place)))]

        def step() -> None:
            tile = Tile(lo, across, thread, lo.multiply(part, long), tiles, given)
            before = lo.read(carry)
            tile.finish([before], lambda place, results: lo.store(places, (place,), results[0]), False)
            lo.write(carry, lo.add(before, tile.total()[0]))
            lo.emit(imp.Barrier("block"))  # the shared memory is written again

        lo.loop(part, ZERO, lo.ceil_div(tiles, long), step)
        lo.when(lo.compare("eq", thread, ZERO), lambda: lo.store(whole, (ZERO,), lo.read(carry)))

    grid_of_blocks(lo, ONE, "offsets", offsets)
    total = lo.load(whole, ZERO)
    lo.alias(outs[0], total)
    if len(outs) == 1:
        return
    arrays = [lo.new_array(out.name, array_type(out), (total,), lo.bind(out)) for out in outs[1:]]

    def fill(block: Var, thread: Var) -> None:
        tile = Tile(lo, inside, thread, lo.multiply(block, Const(length, INT64)), size, lambda place: [kept(place)])
        start = lo.load(places, block)

        def keep(place: Operand, results: Sequence[Operand]) -> None:
            unravel(lo, axes, place)
            wanted, *given = lo.lower_block(op.body)
            target = lo.add(start, lo.let("place", INT64, Cast(results[0])))
            lo.when(wanted, lambda: lo.store_outs(arrays, (target,), given))

        tile.finish([Const(0, _INT32)], keep, False)

    grid_of_blocks(lo, tiles, "compress", fill)


def _sums(lo: Lowering, kind: Scalar) -> Combination:
    """Sums of integers."""
    left, right, out = (Var(name, kind) for name in ("left", "right", "sum"))
    add = Let((out,), Prim("add", (left, right)), lo.pos)
    return combination(lo, Lambda((left, right), Block((add,), (out,))), (Const(0, kind),))
