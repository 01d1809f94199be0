"""Compress: keep the points whose flag is true, in C order.

The number of kept points depends on data, so the plan is cut in two: a first pass over blocks of the space counts, the
counts are summed up, arrays of just that size are made, and a second pass evaluates the body again and fills them, each
block from its own place. Checks are made by the first pass.

Flags are seldom predictable, and a mispredicted branch costs more than a cheap body. So such a body is evaluated
whether the point is kept or not, by a vector loop that leaves so many points' flags and values on the stack, and a
`Pack` takes those that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parakeet_py.base.types import INT64, Array, itemsize
from parakeet_py.imp.ir import Cell, Pack
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.count_flags import count, in_bytes
from parakeet_py.imp.lower.loops import Axis, axes_of, order_of, split_space, walk_range
from parakeet_py.imp.schedule.axis_merging import merge
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Compress, Const, Operand, Var, dtype_of

BLOCKS = 512
BLOCK = 8192
BRANCH_COST = 20  # bodies up to this cost are cheaper than a mispredicted branch
BATCH = 512  # more points than these are packed in one go, and at most twice as many


def lower_compress(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    lo.need_host()
    space = axes_of(op.indices, lo.operands(op.extents))
    if not space:
        _point(lo, outs, op)
        return
    found, merged = study(op), lo.merged
    (axes,) = merge(lo, found, space)
    _lower(lo, outs, op, found, axes)
    lo.merged = merged


def _lower(lo: Lowering, outs: tuple[Var, ...], op: Compress, found: Study, axes: list[Axis]) -> None:
    split = split_space(lo, axes)
    enough = lo.floor_div(Const(BLOCK, INT64), lo.maximum(split.size, ONE))
    share = lo.maximum(lo.maximum(lo.ceil_div(split.extent, Const(BLOCKS, INT64)), enough), ONE)
    blocks = lo.ceil_div(split.extent, share)
    places = lo.stack_array("place", "int64", BLOCKS + 1)
    small = all(isinstance(out.type, Array) and itemsize(out.type.dtype) <= 8 for out in outs[1:])
    vectors = not lo.special  # a thread of a GPU has none, and no stack to speak of
    packed = vectors and found.simple and static_cost(op.body) <= BRANCH_COST and small
    amount = work(lo, found, (split.size, lo.minimum(share, split.extent)))

    def blocks_of_points(counting: bool, arrays: list[Var]) -> None:
        def ranges(low: Operand, high: Operand) -> None:
            block = lo.index("block")

            def one() -> None:
                start = lo.multiply(block, share)
                place = lo.declare("place", INT64, ZERO if counting else lo.load(places, block))
                if packed and not counting:
                    end = lo.load(places, lo.add(block, ONE))
                    batches = _Batches(lo, op, axes[-1].index, arrays, place, end)
                    walk_range(lo, axes, split, start, lo.minimum(lo.add(start, share), split.extent), batches.run)
                    batches.pack()
                    return

                def inner(first: Operand, last: Operand) -> None:
                    if counting and in_bytes(found, op.body.results[0]) and found.simple and not found.has_check:
                        count(lo, place, op.body, op.body.results[0], axes[-1].index, first, last)
                        return
                    kind = "vector" if counting and found.simple and not found.has_check else "serial"
                    lo.loop(lo.bind(axes[-1].index), first, last, lambda: point(place), kind)

                walk_range(lo, axes, split, start, lo.minimum(lo.add(start, share), split.extent), inner)
                if counting:
                    lo.store(places, (block,), lo.read(place))

            lo.loop(block, low, high, one, "independent")

        def point(place: Cell) -> None:
            keep, *values = lo.lower_block(op.body)
            if counting:
                one_more = lo.prim("select", keep, ONE, ZERO)
                lo.write(place, lo.prim("add", lo.read(place), one_more))
                return

            def fill() -> None:
                here = lo.read(place)
                for array, value in zip(arrays, values, strict=True):
                    lo.store(array, (here,), value)
                lo.write(place, lo.add(here, ONE))

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


class _Batches:
    """Points that have been evaluated, all of them, and of which those with a flag are packed when there are many."""

    def __init__(
        self, lo: Lowering, op: Compress, index: Var, arrays: Sequence[Var], place: Cell, end: Operand
    ) -> None:
        self.lo, self.op, self.index, self.arrays, self.place, self.end = lo, op, index, arrays, place, end
        self.flags = lo.stack_array("flag", "bool", 2 * BATCH)
        self.values = [lo.stack_array("value", dtype_of(array), 2 * BATCH) for array in arrays]
        self.waiting = lo.declare("waiting", INT64, ZERO)

    def run(self, first: Operand, last: Operand) -> None:
        """Points of the innermost axis."""
        lo, batch, size = self.lo, self.lo.index("batch"), Const(BATCH, INT64)

        def one() -> None:
            lo.when(lo.compare("gt", lo.read(self.waiting), size), self.pack)
            index, waiting = lo.bind(self.index), lo.read(self.waiting)
            end = lo.minimum(lo.add(batch, size), last)

            def evaluate() -> None:
                here = lo.add(waiting, lo.subtract(index, batch))
                for array, value in zip((self.flags, *self.values), lo.lower_block(self.op.body), strict=True):
                    lo.store(array, (here,), value)

            lo.loop(index, batch, end, evaluate, "vector")
            lo.write(self.waiting, lo.add(waiting, lo.subtract(end, batch)))

        lo.loop(batch, first, last, one, "serial", size)

    def pack(self) -> None:
        """Those that wait."""
        lo, place, count = self.lo, self.lo.read(self.place), self.lo.read(self.waiting)
        for array, values in zip(self.arrays, self.values, strict=True):
            after = lo.let("place", INT64, Pack(array, place, self.end, values, self.flags, count))
        lo.write(self.place, after)
        lo.write(self.waiting, ZERO)


def _point(lo: Lowering, outs: tuple[Var, ...], op: Compress) -> None:
    """An index space of one point."""
    keep, *values = lo.lower_block(op.body)
    count = lo.prim("select", keep, ONE, ZERO, type_=outs[0].type)
    lo.alias(outs[0], count)
    for out, value in zip(outs[1:], values, strict=True):
        assert isinstance(out.type, Array)
        array = lo.new_array(out.name, out.type, (count,), lo.bind(out))
        lo.when(keep, partial(lo.store, array, (ZERO,), value))
