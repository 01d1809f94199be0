"""Scatter: combine values into elements whose indices are computed.

Two points may meet in one element, so in general the points are visited in order on one thread. Where the combine is an
addition of integers (or `or`, `xor`), and there are many more points than elements, as for a histogram, the points are
cut into blocks which count into arrays of their own, in parallel; these are combined into the target afterwards. The
result is the same, since these primitives do not round. Sums of chunks of the points, of whatever dtype, are such
blocks, too, which are added to the target in their order (`Scatter.chunk`).

Several scatters may be one (`joined_scatters`): their values for a point are found together, and so are their blocks.

Updates wait for one another, and so would a body that takes long to find out where they go. Such a body is a vector
loop of its own: for so many points at a time it leaves their places and values on the stack, and the updates follow
(where a value is an element at a place that is known before, the array itself is read).

As for a Map, a body with checks is run twice, first for its checks alone: a scatter that fails has changed nothing.
Where nothing sees what it has changed (`unescaped_arrays`), it is run once; the checks of a batch are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from parakeet_py.base.types import BOOL, INT64, Array, Scalar, is_float
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.lower.loops import Axis, axes_of, nest, order_of, split_space, walk_range
from parakeet_py.imp.lower.map import check_then_store, map_nest
from parakeet_py.imp.schedule import late_checks
from parakeet_py.imp.schedule.joined_scatters import Scatters, adds_exactly
from parakeet_py.imp.schedule.loop_order import Study, static_cost, study, work
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Block, Const, Lambda, Let, Load, Operand, Prim, Scatter, Var, dtype_of

BLOCKS = 16
POINTS = 32768  # fewer are not worth sharing
POINTS_PER_ELEMENT = 4  # of all the blocks' arrays
COPY_COST = 100  # bodies up to this cost are written twice
BATCH = 256  # points whose places are found in one go
TOGETHER = 4  # updates of an iteration, whose places are loaded before the first
BATCH_COST = 10  # in bodies of more than this cost


def lower_scatter(lo: Lowering, outs: tuple[Var, ...], op: Scatter) -> None:
    lower_scatters(lo, outs, Scatters.of(op))


def lower_scatters(lo: Lowering, outs: tuple[Var, ...], op: Scatters) -> None:
    found = study(op)
    axes = axes_of(op.indices, lo.operands(op.extents))
    targets = [lo.array(target) for target in op.targets]

    def alone(write: Callable[[], None]) -> None:
        """Loops that one thread runs are a region of their own, as they are worth optimising (`host_loops`)."""
        if axes:
            lo.region(ONE, ONE, ONE, lambda low, high: write(), order_of(lo, axes), "scatter")
        else:
            write()

    def write(storing: bool) -> None:
        hidden = lo.hidden is not None and not any(map(lo.hidden, op.targets))
        if not storing and axes:
            map_nest(lo, axes, found, True, lambda: _check(lo, op))
        elif not storing:
            _check(lo, op)
        elif _privatised(lo, op, axes, found) and not hidden:
            _blocks(lo, op, axes, found, targets)
        elif hidden or not _apart(lo, found, axes):
            alone(lambda: nest(lo, axes, lambda: _update(lo, op, [] if hidden else targets), "serial"))
        else:
            last = axes[-1]
            alone(
                lambda: nest(lo, axes[:-1], lambda: _batches(lo, op, found, last, ZERO, last.extent, targets), "serial")
            )

    private = all(target in lo.private for target in op.targets)
    check_then_store(lo, found, write, stores=not private or found.visible_stores(lo.private))


def _check(lo: Lowering, op: Scatters) -> None:
    lo.lower_block(op.body)


def _update(lo: Lowering, op: Scatters, targets: Sequence[Var], first: Sequence[Operand] = ()) -> None:
    """One point: combine its values into `target[first, index]`."""
    values = lo.lower_block(op.body)
    if targets:
        _combine(lo, op, targets, values, first)


def _combine(
    lo: Lowering, op: Scatters, targets: Sequence[Var], values: Sequence[Operand], first: Sequence[Operand]
) -> None:
    for target, given, combine in zip(op.targets, targets, op.combines, strict=True):
        assert isinstance(target.type, Array)
        (keep, *indices, value), values = values[: target.type.rank + 2], values[target.type.rank + 2 :]
        place = (*first, *indices)

        def update(
            given: Var = given, combine: Lambda = combine, place: Sequence[Operand] = place, value: Operand = value
        ) -> None:
            old, new = combine.params
            lo.alias(old, lo.load(given, *place))
            lo.alias(new, value)
            lo.store(given, place, lo.lower_block(combine.body)[0])

        lo.when(keep, update)


def _apart(lo: Lowering, found: Study, axes: Sequence[Axis]) -> bool:
    """Whether it pays to find places in a loop of their own."""
    checked = found.has_check and lo.checking
    free = found.simple and not found.visible_stores() and (not checked or late_checks.can_wait(found, lo.private))
    return bool(axes) and not lo.in_region and free and static_cost(found.block) > BATCH_COST


def _batches(
    lo: Lowering,
    op: Scatters,
    found: Study,
    axis: Axis,
    start: Operand,
    stop: Operand,
    targets: Sequence[Var],
    first: Sequence[Operand] = (),
) -> None:
    """Points [start, stop) of an axis: where some go, and then their updates."""
    size = Const(BATCH, INT64)
    loads: dict[Operand, Let] = {
        let.outs[0]: let
        for let in op.body.statements
        if isinstance(let.op, Load) and found.inside.isdisjoint((let.op.array, *let.op.indices))
    }
    arrays: dict[Operand, Var] = {
        result: lo.stack_array("waiting", dtype_of(result), BATCH)
        for result in op.body.results
        if isinstance(result, Var) and result not in loads
    }
    batch = lo.index("batch")

    def one() -> None:
        end = lo.minimum(lo.add(batch, size), stop)

        def find() -> None:
            values = lo.lower_block(op.body)
            place = lo.subtract(lo.operand(axis.index), batch)
            for result, value in zip(op.body.results, values, strict=True):
                if result in arrays:
                    lo.store(arrays[result], (place,), value)

        if found.has_check and lo.checking:
            late_checks.loop(lo, axis.index, batch, end, find)
        else:
            lo.loop(lo.bind(axis.index), batch, end, find, "vector")
        point, single = lo.index("point"), lo.index("point")

        def value(result: Operand, place: Operand) -> Operand:
            if result in arrays:
                return lo.load(arrays[result], place)
            if result in loads:
                lo.alias(axis.index, lo.add(batch, place))
                return lo.lower_block(Block((loads[result],), (result,)))[0]
            return lo.operand(result)

        def update(points: Sequence[Operand]) -> None:
            given = [[value(result, place) for result in op.body.results] for place in points]
            for values in given:
                _combine(lo, op, targets, values, first)

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


def _privatised(lo: Lowering, op: Scatters, axes: Sequence[Axis], found: Study) -> bool:
    """Whether blocks may count on their own (if there are enough points)."""
    ordered = found.visible_stores() or found.has_opaque
    if op.chunk:
        return not ordered
    exact = all(map(adds_exactly, op.targets, op.combines))
    return exact and not ordered and bool(axes) and not lo.in_region and static_cost(op.body) <= COPY_COST


def _blocks(lo: Lowering, op: Scatters, axes: list[Axis], found: Study, targets: Sequence[Var]) -> None:
    kinds = [target.type for target in op.targets if isinstance(target.type, Array)]
    points = lo.product(axis.extent for axis in axes)
    extents = [
        [lo.extent(target, axis) for axis in range(kind.rank)] for target, kind in zip(targets, kinds, strict=True)
    ]
    most = Const(BLOCKS, INT64)
    apart = _apart(lo, found, axes)

    def private(blocks: Operand, chunk: Operand | None = None) -> None:
        """Blocks in arrays of their own; of chunks, the first `blocks` at a time."""
        split = split_space(lo, axes)
        share = chunk or lo.ceil_div(split.extent, lo.maximum(blocks, ONE))
        own = [
            lo.new_array("own", Array(kind.dtype, kind.rank + 1, "C"), (blocks, *sizes))
            for kind, sizes in zip(kinds, extents, strict=True)
        ]

        def some(first: Operand, count: Operand) -> None:
            block = lo.index("block")

            def one() -> None:
                for array, kind, sizes in zip(own, kinds, extents, strict=True):
                    _clear(lo, array, block, kind, sizes)
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
            for target, array, combine, sizes in zip(targets, own, op.combines, extents, strict=True):
                _gather(lo, combine, target, array, count, sizes)

        if chunk is None:
            some(ZERO, blocks)
            return
        first = lo.index("first")
        chunks = lo.ceil_div(split.extent, chunk)
        lo.loop(first, ZERO, chunks, lambda: some(first, lo.minimum(lo.subtract(chunks, first), most)), "serial", most)

    def together() -> None:
        if apart:
            nest(lo, axes[:-1], lambda: _batches(lo, op, found, axes[-1], ZERO, axes[-1].extent, targets), "serial")
        else:
            nest(lo, axes, lambda: _update(lo, op, targets), "serial")

    if op.chunk:
        chunk = Const(op.chunk, INT64)
        private(lo.minimum(lo.ceil_div(points, chunk), most), chunk)
        return
    size = lo.maximum(reduce(lo.add, [lo.product(sizes) for sizes in extents]), ONE)
    useful = lo.floor_div(points, lo.multiply(size, Const(POINTS_PER_ELEMENT, INT64)))
    blocks = lo.minimum(useful, most)
    many = lo.compare("ge", points, Const(POINTS, INT64))
    several = lo.prim("and", many, lo.compare("gt", blocks, ONE), type_=BOOL)
    lo.when(several, lambda: private(blocks), together)


def _clear(lo: Lowering, own: Var, block: Operand, kind: Array, extents: Sequence[Operand]) -> None:
    zero = Const(False if kind.dtype == "bool" else 0.0 if is_float(kind.dtype) else 0, Scalar(kind.dtype))
    whole = [Axis(Var("j", INT64), extent) for extent in extents]
    nest(lo, whole, lambda: lo.store(own, (block, *(lo.operand(axis.index) for axis in whole)), zero))


def _gather(lo: Lowering, combine: Lambda, target: Var, own: Var, blocks: Operand, extents: Sequence[Operand]) -> None:
    """Combine the blocks' arrays into the target."""
    (name,) = primitives(combine) or ("add",)
    block = lo.index("block")
    axes = [Axis(Var("j", INT64), extent) for extent in extents]

    def element() -> None:
        point = [lo.operand(axis.index) for axis in axes]
        old, new = lo.load(target, *point), lo.load(own, block, *point)
        lo.store(target, point, lo.let("t", old.type, Prim(name, (old, new))))

    lo.loop(block, ZERO, blocks, lambda: nest(lo, axes, element))
