"""Map: one loop nest over the index space.

Where every access is the identity on C-contiguous arrays of the space's own extents, the nest is one loop over all
elements. Otherwise the axes keep their order, except that an axis along which the accesses of the body move by one
element is brought innermost if the last axis does not (iterations are independent; not where a check could fail, whose
order would change).

A body that both checks and stores into memory that others can see is run twice: first only its checks, over the whole
space, then its stores. So an operator that fails has stored nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.imp.builder import ONE, Lowering, Outs
from parakeet_py.imp.loops import GRAIN_WORK, Axis, axes_of, order_of, split_space, walk_range
from parakeet_py.imp.schedule import Study, flattens, static_cost, stride_cost, study, work
from parakeet_py.typed_ir.ir import Const, Map, Operand, Reshape, Var
from parakeet_py.typed_ir.types import INT64, Array


def lower_map(lo: Lowering, outs: tuple[Var, ...], op: Map) -> None:
    extents = lo.operands(op.extents)
    arrays = lo.new_outs(outs, extents)
    found = study(op.body)
    check_then_store(
        lo,
        found,
        lambda storing: _space(lo, op, extents, arrays if storing else [None] * len(arrays), found),
        stores=found.visible_stores(),
    )


def check_then_store(lo: Lowering, found: Study, write: Callable[[bool], None], stores: bool) -> None:
    """Write an operator's loops: in one go, or first its checks (`write(False)`), then its effects (`write(True)`).

    `stores` tells whether the operator changes memory that others can see.
    """
    if not (lo.checking and found.has_check and stores) or found.has_opaque:
        write(True)
        return
    hidden, lo.hidden = lo.hidden, lambda array: found.root(array) in found.inside
    try:
        write(False)
        lo.hidden, lo.checking = hidden, False
        write(True)
    finally:
        lo.hidden, lo.checking = hidden, True


def _space(lo: Lowering, op: Map, extents: tuple[Operand, ...], arrays: Outs, found: Study) -> None:
    def point(array_list: Outs, indices: Sequence[Operand]) -> None:
        lo.store_outs(array_list, indices, lo.lower_block(op.body))

    if not extents:
        point(arrays, ())
        return
    checked = found.has_check and lo.checking
    flat = flattens(lo, found, op.indices, extents) if len(extents) > 1 else None
    if flat is not None:
        size = lo.product(extents)
        shaped = {array: flatten(lo, array, size) for array in [*flat, *arrays] if array is not None}
        index = Var("i", INT64)
        outer = lo.flat, lo.flat_indices, lo.flat_index

        def flat_point() -> None:
            lo.flat, lo.flat_indices, lo.flat_index = shaped, op.indices, lo.operand(index)
            point([None if array is None else shaped[array] for array in arrays], (lo.flat_index,))

        map_nest(lo, [Axis(index, size)], found, checked, flat_point)
        lo.flat, lo.flat_indices, lo.flat_index = outer
        return
    axes = _order(op.indices, extents, found, arrays, checked)
    map_nest(lo, axes, found, checked, lambda: point(arrays, lo.operands(op.indices)))


def map_nest(
    lo: Lowering,
    axes: list[Axis],
    found: Study,
    serial_point: bool,
    point: Callable[[], None],
    times: Operand = ONE,
) -> None:
    """A parallel nest over independent points; `point` writes one, which runs the body `times` times.

    With `serial_point` the loop over points is not to be vectorized.
    """
    kind = "vector" if found.simple and not serial_point else "independent"
    split = split_space(lo, axes)
    cost = static_cost(found.block)
    grain: Operand = ONE
    if len(axes) == 1 and times is ONE:
        # Ranges that start at multiples of 64 leave the vectors of a loop where one range would have them.
        each = max(1, GRAIN_WORK // max(cost, 1))
        grain = Const(-(-each // 64) * 64 if kind == "vector" else each, INT64)

    def inner(start: Operand, stop: Operand) -> None:
        lo.loop(lo.bind(axes[-1].index), start, stop, point, kind)

    lo.region(
        split.extent,
        grain,
        work(lo, found.block, (split.size, times)) if not lo.in_region else ONE,
        lambda start, stop: walk_range(lo, axes, split, start, stop, inner),
        order_of(lo, axes),
        "map",
    )


def flatten(lo: Lowering, array: Var, size: Operand) -> Var:
    """The array as one axis of `size` elements."""
    assert isinstance(array.type, Array)
    flat = lo.let(array.name, Array(array.type.dtype, 1, "C"), Reshape(array, (size,)))
    lo.shapes.define(flat, (size,))
    return flat


def _order(indices: Sequence[Var], extents: Sequence[Operand], found: Study, arrays: Outs, checked: bool) -> list[Axis]:
    """The axes, outermost first."""
    axes = axes_of(indices, extents)
    if len(axes) == 1 or checked or found.has_check or not found.simple:
        return axes
    last = axes[-1]
    # The outs are stored along the last axis: any other inner loop strides over them.
    strided_outs = 16 * sum(array is not None for array in arrays)
    costs = [stride_cost(found, axis.index) + (0 if axis is last else strided_outs) for axis in axes]
    best = min(range(len(axes)), key=lambda axis: (costs[axis], -axis))
    chosen = axes.pop(best)
    return [*axes, chosen]
