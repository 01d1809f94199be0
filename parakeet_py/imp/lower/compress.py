"""Compress: keep the points whose flag is true, in C order.

The number of kept points depends on data, so the plan is cut in two: a first pass over blocks of the space counts, the
counts are summed up, arrays of just that size are made, and a second pass evaluates the body again and fills them, each
block from its own place. Checks are made by the first pass.

Flags that cost more than a look at bytes are kept by the first pass, in an array of them: the second one reads nothing
else of what they are made of.

Flags are seldom predictable, and a mispredicted branch costs more than a cheap body. So such a body is evaluated
whether the point is kept or not, by a vector loop that leaves so many points' flags and values on the stack, and a
`Pack` takes those that are kept. Where no point of a `GROUP` is kept, which is predictable where few are, none of its
values are made. Values that are elements of arrays are packed from where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from parakeet_py.base.types import INT64, Array, Scalar, itemsize
from parakeet_py.imp.ir import Cell, Pack
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.count_flags import count, in_bytes
from parakeet_py.imp.lower.loops import Axis, axes_of, order_of, split_space, walk_range
from parakeet_py.imp.schedule.axis_merging import merge
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.typed_ir.ir import Cast, Compress, Const, Load, Operand, Var, View, ViewAxis, dtype_of

BLOCKS = 512
BLOCK = 8192
BRANCH_COST = 20  # bodies up to this cost are cheaper than a mispredicted branch
BATCH = 512  # more points than these are packed in one go, and at most twice as many
FEW = 8  # points that are looked at one by one, here
GROUP = 64  # points whose flags are looked at together

_BYTE = Scalar("uint8")


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
    small = all(isinstance(out.type, Array) and itemsize(out.type.dtype) <= 16 for out in outs[1:])
    extent, size = split.extent, split.size
    few = isinstance(extent, Const) and isinstance(size, Const) and extent.whole * size.whole <= FEW
    vectors = not (lo.special or few)  # a thread of a GPU has none, and no stack to speak of
    packed = vectors and found.simple and static_cost(op.body) <= BRANCH_COST and small
    flags = None
    if vectors and found.simple and len(axes) == 1 and len(outs) > 1 and not in_bytes(found, op.body.results[0]):
        flags = lo.new_array("flags", Array("bool", 1, "C"), (axes[0].extent,))
    direct = _sources(lo, op, axes, flags) if packed else None
    bytes_ = in_bytes(found, op.body.results[0]) or flags is not None
    in_runs = bytes_ and found.simple and not found.has_check
    amount = work(lo, found, (split.size, lo.minimum(share, split.extent)))

    def blocks_of_points(counting: bool, arrays: list[Var]) -> None:
        def ranges(low: Operand, high: Operand) -> None:
            block = lo.index("block")

            def one() -> None:
                start = lo.multiply(block, share)
                stop = lo.minimum(lo.add(start, share), split.extent)
                place = lo.declare("place", INT64, ZERO if counting else lo.load(places, block))
                if packed and not counting:
                    end = lo.load(places, lo.add(block, ONE))
                    batches = _Batches(lo, op, flags, axes[-1].index, arrays, place, end)
                    if direct is not None:
                        start = batches.pack_from(direct, start, stop)
                    walk_range(lo, axes, split, start, stop, batches.run)
                    batches.pack()
                    return

                def inner(first: Operand, last: Operand) -> None:
                    if counting and in_runs:
                        count(lo, place, op.body, op.body.results[0], axes[-1].index, first, last, flags)
                        return
                    kind = "vector" if counting and found.simple and not found.has_check else "serial"
                    lo.loop(lo.bind(axes[-1].index), first, last, lambda: point(place), kind)

                walk_range(lo, axes, split, start, stop, inner)
                if counting:
                    lo.store(places, (block,), lo.read(place))

            lo.loop(block, low, high, one, "independent")

        def point(place: Cell) -> None:
            keep, *values = lo.lower_block(op.body)
            here = lo.operand(axes[-1].index)
            if counting:
                if flags is not None:
                    lo.store(flags, (here,), keep)
                one_more = lo.prim("select", keep, ONE, ZERO)
                lo.write(place, lo.prim("add", lo.read(place), one_more))
                return

            def fill() -> None:
                here = lo.read(place)
                for array, value in zip(arrays, values, strict=True):
                    lo.store(array, (here,), value)
                lo.write(place, lo.add(here, ONE))

            lo.when(keep if flags is None else lo.load(flags, here), fill)

        if few and not lo.special and not found.has_check:
            ranges(ZERO, blocks)
        else:
            lo.region(blocks, ONE, amount, ranges, order_of(lo, axes), "count" if counting else "compress")

    blocks_of_points(True, [])
    total = lo.declare("count", INT64, ZERO)
    block = lo.index("block")

    def prefix() -> None:
        count, before = lo.load(places, block), lo.read(total)
        lo.store(places, (block,), before)
        lo.write(total, lo.add(before, count))

    lo.loop(block, ZERO, blocks, prefix, "few")
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


def _sources(lo: Lowering, op: Compress, axes: Sequence[Axis], flags: Var | None) -> list[Var] | None:
    """The arrays of flags and values of which a body takes one element each, from runs of memory, and nothing else."""
    loads = {let.outs[0]: let.op for let in op.body.statements if isinstance(let.op, Load)}
    found = [] if flags is None else [flags]
    for result in op.body.results[len(found) :]:
        load = loads.get(result) if isinstance(result, Var) else None
        if load is None or len(axes) > 1:
            return None
        array, indices = lo.element(load.array, load.indices)
        if indices != (lo.operand(axes[0].index),) or array_type(array).layout == "A":
            return None
        found.append(array)
    return found


class _Batches:
    """Points that have been evaluated, all of them, and of which those with a flag are packed when there are many."""

    def __init__(
        self,
        lo: Lowering,
        op: Compress,
        known: Var | None,
        index: Var,
        arrays: Sequence[Var],
        place: Cell,
        end: Operand,
    ) -> None:
        self.lo, self.op, self.index, self.arrays, self.place, self.end = lo, op, index, arrays, place, end
        self.known = known  # the flags, if they have been kept
        self.flags = lo.stack_array("flag", "bool", 2 * BATCH)
        self.values = [lo.stack_array("value", dtype_of(array), 2 * BATCH) for array in arrays]
        self.waiting = lo.declare("waiting", INT64, ZERO)

    def run(self, first: Operand, last: Operand) -> None:
        """Points of the innermost axis."""
        lo, group, size = self.lo, self.lo.index("group"), Const(GROUP, INT64)

        def one() -> None:
            end = lo.minimum(lo.add(group, size), last)
            kept = lo.declare("kept", _BYTE, Const(0, _BYTE))

            def look() -> None:
                lo.write(kept, lo.prim("add", lo.read(kept), lo.let("t", _BYTE, Cast(self.flag())), type_=_BYTE))

            lo.loop(lo.bind(self.index), group, end, look, "vector")
            lo.when(lo.compare("ne", lo.read(kept), Const(0, _BYTE)), partial(self.evaluate, group, end))

        lo.loop(group, first, last, one, "serial", size)

    def pack_from(self, sources: list[Var], start: Operand, stop: Operand) -> Operand:
        """Pack whole groups from the arrays they are in, flags first; gives the first point that is left."""
        lo, place = self.lo, self.lo.read(self.place)
        size = Const(GROUP, INT64)
        count = lo.multiply(lo.floor_div(lo.maximum(lo.subtract(stop, start), ZERO), size), size)
        axes = (ViewAxis(0, count, ONE),)
        flags, *values = [lo.let(one.name, Array(dtype_of(one), 1, "C"), View(one, (start,), axes)) for one in sources]
        for array, one in zip(self.arrays, values, strict=True):
            after = lo.let("place", INT64, Pack(array, place, self.end, one, flags, count))
        lo.write(self.place, after)
        return lo.add(start, count)

    def flag(self) -> Operand:
        """The flag of a point."""
        if self.known is not None:
            return self.lo.load(self.known, self.lo.operand(self.index))
        (keep,) = self.lo.lower_block(replace(self.op.body, results=self.op.body.results[:1]))
        return keep

    def evaluate(self, group: Operand, end: Operand) -> None:
        """Leave the flags and values of a group of points on the stack."""
        lo = self.lo
        lo.when(lo.compare("gt", lo.read(self.waiting), Const(BATCH, INT64)), self.pack)
        index, waiting = lo.bind(self.index), lo.read(self.waiting)

        def point() -> None:
            here = lo.add(waiting, lo.subtract(index, group))
            keep, *values = lo.lower_block(self.op.body)
            lo.store(self.flags, (here,), keep if self.known is None else lo.load(self.known, index))
            for array, value in zip(self.values, values, strict=True):
                lo.store(array, (here,), value)

        lo.loop(index, group, end, point, "vector")
        lo.write(self.waiting, lo.add(waiting, lo.subtract(end, group)))

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
