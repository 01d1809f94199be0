"""Scatter: combine values into elements whose indices are computed.

Two points may meet in one element, so in general the points are visited in order on one thread. Where the combine is an
addition of integers (or `or`, `xor`), and there are many more points than elements, as for a histogram, the points are
cut into blocks which count into arrays of their own, in parallel; these are combined into the target afterwards. The
result is the same, since these primitives do not round. Sums of chunks of the points, of whatever dtype, are such
blocks, too, which are added to the target in their order (`Scatter.chunk`).

Updates wait for one another, and so would a body that takes long to find out where they go. Such a body is a vector
loop of its own: for so many points at a time it leaves their places and values on the stack, and the updates follow.

As for a Map, a body with checks is run twice, first for its checks alone: a scatter that fails has changed nothing.
Where nothing sees what it has changed (`unescaped_arrays`), it is run once; the checks of a batch are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base.types import BOOL, INT64, Array, Scalar, is_complex, is_float
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.lower.loops import Axis, axes_of, nest, order_of, split_space, walk_range
from parakeet_py.imp.lower.map import check_then_store, map_nest
from parakeet_py.imp.schedule import late_checks
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, Operand, Prim, Scatter, Var, dtype_of

BLOCKS = 16
POINTS = 32768  # fewer are not worth sharing
POINTS_PER_ELEMENT = 4  # of all the blocks' arrays
COPY_COST = 100  # bodies up to this cost are written twice
BATCH = 256  # points whose places are found in one go
TOGETHER = 4  # updates of an iteration, whose places are loaded before the first
BATCH_COST = 10  # in bodies of more than this cost


def lower_scatter(lo: Lowering, outs: tuple[Var, ...], op: Scatter) -> None:
    found = study(op)
    axes = axes_of(op.indices, lo.operands(op.extents))
    target = lo.array(op.target)

    def alone(write: Callable[[], None]) -> None:
        """Loops that one thread runs are a region of their own, as they are worth optimising (`host_loops`)."""
        if axes:
            lo.region(ONE, ONE, ONE, lambda low, high: write(), order_of(lo, axes), "scatter")
        else:
            write()

    def write(storing: bool) -> None:
        hidden = lo.hidden is not None and not lo.hidden(op.target)
        if not storing and axes:
            map_nest(lo, axes, found, True, lambda: _check(lo, op))
        elif not storing:
            _check(lo, op)
        elif _privatised(lo, op, axes, found) and not hidden:
            _blocks(lo, op, axes, found, target)
        elif hidden or not _apart(lo, found, axes):
            alone(lambda: nest(lo, axes, lambda: _update(lo, op, None if hidden else target), "serial"))
        else:
            last = axes[-1]
            alone(
                lambda: nest(lo, axes[:-1], lambda: _batches(lo, op, found, last, ZERO, last.extent, target), "serial")
            )

    check_then_store(lo, found, write, stores=op.target not in lo.private or found.visible_stores(lo.private))


def _check(lo: Lowering, op: Scatter) -> None:
    lo.lower_block(op.body)


def _update(lo: Lowering, op: Scatter, target: Var | None, first: Sequence[Operand] = ()) -> None:
    """One point: combine its value into `target[first, index]`."""
    keep, *indices, value = lo.lower_block(op.body)
    if target is not None:
        _combine(lo, op, target, keep, (*first, *indices), value)


def _combine(lo: Lowering, op: Scatter, target: Var, keep: Operand, place: Sequence[Operand], value: Operand) -> None:
    def update() -> None:
        old, new = op.combine.params
        lo.alias(old, lo.load(target, *place))
        lo.alias(new, value)
        lo.store(target, place, lo.lower_block(op.combine.body)[0])

    lo.when(keep, update)


def _apart(lo: Lowering, found: Study, axes: Sequence[Axis]) -> bool:
    """Whether it pays to find places in a loop of their own."""
    checked = found.has_check and lo.checking
    free = found.simple and not found.visible_stores() and (not checked or late_checks.can_wait(found, lo.private))
    return bool(axes) and not lo.in_region and free and static_cost(found.block) > BATCH_COST


def _batches(
    lo: Lowering,
    op: Scatter,
    found: Study,
    axis: Axis,
    start: Operand,
    stop: Operand,
    target: Var,
    first: Sequence[Operand] = (),
) -> None:
    """Points [start, stop) of an axis: where some go, and then their updates."""
    size = Const(BATCH, INT64)
    arrays = {
        result: lo.stack_array("waiting", dtype_of(result), BATCH)
        for result in op.body.results
        if isinstance(result, Var)
    }
    batch = lo.index("batch")

    def one() -> None:
        end = lo.minimum(lo.add(batch, size), stop)

        def find() -> None:
            values = lo.lower_block(op.body)
            place = lo.subtract(lo.operand(axis.index), batch)
            for result, value in zip(op.body.results, values, strict=True):
                if isinstance(result, Var):
                    lo.store(arrays[result], (place,), value)

        if found.has_check and lo.checking:
            late_checks.loop(lo, axis.index, batch, end, find)
        else:
            lo.loop(lo.bind(axis.index), batch, end, find, "vector")
        point, single = lo.index("point"), lo.index("point")

        def update(points: Sequence[Operand]) -> None:
            given = [
                [lo.load(arrays[result], place) if isinstance(result, Var) else result for result in op.body.results]
                for place in points
            ]
            for keep, *indices, value in given:
                _combine(lo, op, target, keep, (*first, *indices), value)

        count = lo.subtract(end, batch)
        whole = lo.prim("and", count, Const(-TOGETHER, INT64))
        several = [Const(number, INT64) for number in range(TOGETHER)]
        lo.loop(
            point,
            ZERO,
            whole,
            lambda: update([lo.add(point, one) for one in several]),
            "serial",
            Const(TOGETHER, INT64),
        )
        lo.loop(single, whole, count, lambda: update([single]), "serial")

    lo.loop(batch, start, stop, one, "serial", size)


def _privatised(lo: Lowering, op: Scatter, axes: Sequence[Axis], found: Study) -> bool:
    """Whether blocks may count on their own (if there are enough points)."""
    dtype = dtype_of(op.target)
    exact = not is_float(dtype) and not is_complex(dtype) and primitives(op.combine) in (("add",), ("or",), ("xor",))
    ordered = found.visible_stores() or found.has_opaque
    if op.chunk:
        return not ordered
    return exact and not ordered and bool(axes) and not lo.in_region and static_cost(op.body) <= COPY_COST


def _blocks(lo: Lowering, op: Scatter, axes: list[Axis], found: Study, target: Var) -> None:
    kind = target.type
    assert isinstance(kind, Array)
    points = lo.product(axis.extent for axis in axes)
    extents = [lo.extent(target, axis) for axis in range(kind.rank)]
    most = Const(BLOCKS, INT64)
    apart = _apart(lo, found, axes)

    def private(blocks: Operand, chunk: Operand | None = None) -> None:
        """Blocks in arrays of their own; of chunks, the first `blocks` at a time."""
        split = split_space(lo, axes)
        share = chunk or lo.ceil_div(split.extent, lo.maximum(blocks, ONE))
        own = lo.new_array("own", Array(kind.dtype, kind.rank + 1, "C"), (blocks, *extents))
        zero = Const(False if kind.dtype == "bool" else 0.0 if is_float(kind.dtype) else 0, Scalar(kind.dtype))

        def some(first: Operand, count: Operand) -> None:
            block = lo.index("block")

            def one() -> None:
                whole = [Axis(Var("j", INT64), extent) for extent in extents]
                nest(lo, whole, lambda: lo.store(own, (block, *(lo.operand(axis.index) for axis in whole)), zero))
                start = lo.multiply(lo.add(first, block), share)

                def inner(low: Operand, high: Operand) -> None:
                    if apart:
                        _batches(lo, op, found, axes[-1], low, high, own, (block,))
                        return
                    index = lo.bind(axes[-1].index)
                    lo.loop(index, low, high, lambda: _update(lo, op, own, (block,)), "serial")

                walk_range(lo, axes, split, start, lo.minimum(lo.add(start, share), split.extent), inner)

            lo.region(
                count,
                ONE,
                work(lo, found, (split.size, share)),
                lambda low, high: lo.loop(block, low, high, one, "independent"),
                order_of(lo, axes),
                "scatter",
            )
            _gather(lo, op, target, own, count, extents)

        if chunk is None:
            some(ZERO, blocks)
            return
        first = lo.index("first")
        chunks = lo.ceil_div(split.extent, chunk)
        lo.loop(first, ZERO, chunks, lambda: some(first, lo.minimum(lo.subtract(chunks, first), most)), "serial", most)

    def together() -> None:
        if apart:
            nest(lo, axes[:-1], lambda: _batches(lo, op, found, axes[-1], ZERO, axes[-1].extent, target), "serial")
        else:
            nest(lo, axes, lambda: _update(lo, op, target), "serial")

    if op.chunk:
        chunk = Const(op.chunk, INT64)
        private(lo.minimum(lo.ceil_div(points, chunk), most), chunk)
        return
    size = lo.maximum(lo.product(extents), ONE)
    useful = lo.floor_div(points, lo.multiply(size, Const(POINTS_PER_ELEMENT, INT64)))
    blocks = lo.minimum(useful, most)
    many = lo.compare("ge", points, Const(POINTS, INT64))
    several = lo.prim("and", many, lo.compare("gt", blocks, ONE), type_=BOOL)
    lo.when(several, lambda: private(blocks), together)


def _gather(lo: Lowering, op: Scatter, target: Var, own: Var, blocks: Operand, extents: Sequence[Operand]) -> None:
    """Combine the blocks' arrays into the target."""
    (name,) = primitives(op.combine) or ("add",)
    block = lo.index("block")
    axes = [Axis(Var("j", INT64), extent) for extent in extents]

    def element() -> None:
        point = [lo.operand(axis.index) for axis in axes]
        old, new = lo.load(target, *point), lo.load(own, block, *point)
        lo.store(target, point, lo.let("t", old.type, Prim(name, (old, new))))

    lo.loop(block, ZERO, blocks, lambda: nest(lo, axes, element))
