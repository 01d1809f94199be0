"""Compress: keep the points whose flag is true, in C order.

The number of kept points depends on data, so the plan is cut in two: a first pass over blocks of the space counts, the
counts are summed up, arrays of just that size are made, and a second pass evaluates the body again and fills them, each
block from its own place. Checks are made by the first pass.

Flags are seldom predictable, and a mispredicted branch costs more than a cheap body. So such a body's values are stored
whether the point is kept or not: where the next kept one belongs, which overwrites them. A block that has all its
points stops, since the place after them is the next block's.
"""

from __future__ import annotations

from parakeet_py.imp.builder import Lowering
from parakeet_py.imp.counting import count, in_bytes
from parakeet_py.imp.ir import Break, Cell
from parakeet_py.imp.loops import axes_of, order_of, split_space, walk_range
from parakeet_py.imp.schedule import static_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Compress, Const, Operand, Var
from parakeet_py.typed_ir.types import BOOL, INT64, Array

BLOCKS = 512
BLOCK = 8192
BRANCH_COST = 20  # bodies up to this cost are cheaper than a mispredicted branch


def lower_compress(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    lo.need_host()
    found = study(op.body)
    axes = axes_of(op.indices, lo.operands(op.extents))
    if not axes:
        _point(lo, outs, op)
        return
    split = split_space(lo, axes)
    enough = lo.floor_div(Const(BLOCK, INT64), lo.maximum(split.size, ONE))
    share = lo.maximum(lo.maximum(lo.ceil_div(split.extent, Const(BLOCKS, INT64)), enough), ONE)
    blocks = lo.ceil_div(split.extent, share)
    places = lo.stack_array("place", "int64", BLOCKS + 1)
    eager = found.simple and static_cost(op.body) <= BRANCH_COST
    amount = work(lo, found.block, (split.size, lo.minimum(share, split.extent)))

    def blocks_of_points(counting: bool, arrays: list[Var]) -> None:
        def ranges(low: Operand, high: Operand) -> None:
            block = lo.index("block")

            def one() -> None:
                start = lo.multiply(block, share)
                place = lo.declare("place", INT64, ZERO if counting else lo.load(places, block))
                end = lo.load(places, lo.add(block, ONE)) if eager and not counting else None

                def inner(first: Operand, last: Operand) -> None:
                    if counting and in_bytes(found, op.body.results[0]) and found.simple and not found.has_check:
                        count(lo, place, op.body, op.body.results[0], axes[-1].index, first, last)
                        return
                    kind = "vector" if counting and found.simple and not found.has_check else "serial"
                    lo.loop(lo.bind(axes[-1].index), first, last, lambda: point(place, end), kind)

                walk_range(lo, axes, split, start, lo.minimum(lo.add(start, share), split.extent), inner)
                if counting:
                    lo.store(places, (block,), lo.read(place))

            lo.loop(block, low, high, one, "independent")

        def point(place: Cell, end: Operand | None) -> None:
            if end is not None:
                lo.when(lo.prim("eq", lo.read(place), end, type_=BOOL), lambda: lo.emit(Break()))
            keep, *values = lo.lower_block(op.body)
            if counting:
                one_more = lo.prim("select", keep, ONE, ZERO)
                lo.write(place, lo.prim("add", lo.read(place), one_more))
                return

            def fill() -> None:
                here = lo.read(place)
                for array, value in zip(arrays, values, strict=True):
                    lo.store(array, (here,), value)
                lo.write(place, lo.add(here, lo.prim("select", keep, ONE, ZERO) if eager else ONE))

            if eager:
                fill()
            else:
                lo.when(keep, fill)

        lo.region(blocks, ONE, amount, ranges, order_of(lo, axes), "count" if counting else "compress")

    blocks_of_points(True, [])
    total = lo.declare("count", INT64, ZERO)
    block = lo.index("block")

    def prefix() -> None:
        count, before = lo.load(places, block), lo.read(total)
        lo.store(places, (block,), before)
        lo.write(total, lo.add(before, count))

    lo.loop(block, ZERO, blocks, prefix)
    lo.store(places, (blocks,), lo.read(total))
    kept = lo.bind(outs[0])
    lo.emit_read(kept, total)
    if len(outs) == 1:
        return
    arrays = []
    for out in outs[1:]:
        assert isinstance(out.type, Array)
        arrays.append(lo.new_array(out.name, out.type, (kept,), lo.bind(out)))
    checking, lo.checking = lo.checking, False
    try:
        blocks_of_points(False, arrays)
    finally:
        lo.checking = checking


def _point(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    """An index space of one point."""
    keep, *values = lo.lower_block(op.body)
    count = lo.prim("select", keep, ONE, ZERO, type_=outs[0].type)
    lo.alias(outs[0], count)
    for out, value in zip(outs[1:], values, strict=True):
        assert isinstance(out.type, Array)
        array = lo.new_array(out.name, out.type, (count,), lo.bind(out))
        lo.when(keep, lambda array=array, value=value: lo.store(array, (ZERO,), value))  # type: ignore[misc]
