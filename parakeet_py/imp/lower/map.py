"""Map: one loop nest over the index space.

Axes that lie side by side in memory wherever they are used become one (see `axis_merging`). The others keep their
order, except that an axis along which the accesses of the body move by one element is brought innermost if the last
does not (iterations are independent; not where a check could fail, whose order would change).

A body that both checks and stores into memory that others can see is run twice: first only its checks, over the whole
space, then its stores. So an operator that fails has stored nothing. (`unescaped_arrays` says which memory no caller
will see; `late_checks` which loops may be vector loops all the same.)
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.types import INT64
from parakeet_py.imp.lower import plane_blocks
from parakeet_py.imp.lower.builder import Lowering, Outs
from parakeet_py.imp.lower.loops import GRAIN_WORK, Axis, Block, Inner, axes_of, order_of, split_space, walk_range
from parakeet_py.imp.schedule import late_checks
from parakeet_py.imp.schedule.axis_merging import merge, merged_outs
from parakeet_py.imp.schedule.index_set_splitting import cut_loop, turning
from parakeet_py.imp.schedule.loop_order import Study, static_cost, stride_cost, study, work
from parakeet_py.imp.schedule.unroll_and_jam import loop_over_pairs
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Const, Map, Operand, Var


def lower_map(lo: Lowering, outs: tuple[Var, ...], op: Map) -> None:
    extents = lo.operands(op.extents)
    arrays = lo.new_outs(outs, extents)
    found = study(op)
    check_then_store(
        lo,
        found,
        lambda storing: _space(lo, op, extents, arrays if storing else [None] * len(arrays), found),
        stores=found.visible_stores(lo.private),
    )


def check_then_store(lo: Lowering, found: Study, write: Callable[[bool], None], stores: bool) -> None:
    """Write an operator's loops: in one go, or first its checks (`write(False)`), then its effects (`write(True)`).

    `stores` says whether the operator changes memory that others can see.
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
    space = axes_of(op.indices, extents)
    if not space:
        lo.store_outs(arrays, (), lo.lower_block(op.body))
        return
    merged = lo.merged
    (axes,) = merge(lo, found, space)
    outs = merged_outs(lo, arrays, space, axes)
    checked = found.has_check and lo.checking

    def point() -> None:
        values = lo.lower_block(op.body)
        lo.store_outs(outs, [lo.operand(axis.index) for axis in axes], values)

    late = checked and late_checks.can_wait(found, lo.private)
    map_nest(lo, _order(axes, found, arrays), found, checked and not late, point, late=late)
    lo.merged = merged


def map_nest(
    lo: Lowering,
    axes: list[Axis],
    found: Study,
    serial_point: bool,
    point: Callable[[], None],
    times: Operand = ONE,
    late: bool = False,
    piece: Inner | None = None,
) -> None:
    """A parallel nest over independent points; `point` writes one, which runs the body `times` times.

    With `serial_point` the loop over points is not to be vectorized; with `late` its checks are made after it. `piece`
    writes a range of the last axis in another way.
    """
    kind = "vector" if found.simple and not serial_point else "independent"
    split = split_space(lo, axes)
    cost = static_cost(found.block)
    grain: Operand = ONE
    if len(axes) == 1 and times is ONE:
        # Ranges that start at multiples of 64 leave the vectors of a loop where one range would have them.
        each = max(1, GRAIN_WORK // max(cost, 1))
        grain = Const(-(-each // 64) * 64 if kind == "vector" else each, INT64)

    inmost = axes[-1]
    turns = turning(found, inmost.index, inmost.extent) if kind == "vector" and inmost.last is None else []

    def loop(start: Operand, stop: Operand) -> None:
        if late:
            late_checks.loop(lo, inmost.index, start, stop, point)
        else:
            lo.loop(lo.bind(inmost.index), start, stop, point, kind)

    def inner(start: Operand, stop: Operand) -> None:
        cut_loop(lo, turns, start, stop, piece or loop)

    plain = kind == "vector" and not (turns or late or piece or lo.special or lo.in_region) and times is ONE

    def pairs(low: Operand, high: Operand) -> Operand:
        return loop_over_pairs(lo, axes, low, high, point) if plain and len(axes) == 3 else low

    def walk(block: Block | None = None) -> None:
        lo.region(
            split.extent,
            grain,
            work(lo, found, (split.size, times)) if not lo.in_region else ONE,
            lambda start, stop: walk_range(lo, axes, split, start, stop, inner, block, pairs),
            order_of(lo, axes),
            "map",
        )

    rows = plane_blocks.rows_of_blocks(lo, axes, found) if times is ONE and not serial_point else None
    if rows is None:
        walk()
        return
    first = lo.index("block")
    lo.loop(first, ZERO, axes[1].extent, lambda: walk(Block(first, lo.add(first, rows))), step=rows)


def _order(axes: list[Axis], found: Study, arrays: Outs) -> list[Axis]:
    """The axes, outermost first."""
    if len(axes) == 1 or found.has_check or not found.simple:
        return axes
    last = axes[-1]
    # The outs are stored along the last axis: any other inner loop strides over them.
    strided_outs = 16 * sum(array is not None for array in arrays)
    costs = [stride_cost(found, axis.mover) + (0 if axis is last else strided_outs) for axis in axes]
    best = min(range(len(axes)), key=lambda axis: (costs[axis], -axis))
    return [*axes[:best], *axes[best + 1 :], axes[best]]
