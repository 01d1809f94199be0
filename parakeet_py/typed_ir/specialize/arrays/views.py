"""Views: other extents, steps and orders over the memory of an array.

What a view is in memory (C order, Fortran order, or strides known only at run time) is worked out here, so that a
slice that happens to be contiguous is known to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays.axis_order import view_order
from parakeet_py.typed_ir.specialize.values import ArrayV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def make_view(
    s: Context,
    base: ArrayV,
    starts: Sequence[ir.Operand],
    axes: Sequence[tuple[int | None, ir.Operand, ir.Operand]],
) -> ArrayV:
    """A view; `axes` are (source axis or None, extent, step)."""
    layout = _view_layout(base, axes)
    op = ir.View(base.var, tuple(starts), tuple(ir.ViewAxis(source, extent, step) for source, extent, step in axes))
    var = s.builder.pure(op, Array(base.dtype, len(axes), layout), name="view")
    nonunit = tuple(
        source is not None and base.is_nonunit(source) and extent == base.extents[source]
        for source, extent, step in axes
    )
    extents = tuple(extent for _, extent, _ in axes)
    order = view_order(base, [source for source, _, _ in axes])
    return ArrayV(var, extents, base.roots, base.readonly, nonunit, order)


def _view_layout(base: ArrayV, axes: Sequence[tuple[int | None, ir.Operand, ir.Operand]]) -> str:
    """The layout of a view, looking past axes of extent 1 (whose stride never matters)."""
    kept = [(source, extent, step) for source, extent, step in axes if extent != ONE]
    if any(source is None for source, _, _ in kept):
        return "A"
    sources = [source for source, _, _ in kept if source is not None]
    if not kept:
        return "C"
    full = [
        extent == base.extents[source] and step == ONE for (_, extent, step), source in zip(kept, sources, strict=True)
    ]
    unit = {axis for axis, extent in enumerate(base.extents) if extent == ONE}
    last = max((axis for axis in range(base.rank) if axis not in unit), default=0)

    def contiguous(order: Sequence[int], flags: Sequence[bool], steps_first_one: bool) -> bool:
        # Outermost kept axis may be cut (step 1); every later base axis must be kept whole and in order.
        if not steps_first_one or not all(flags[1:]):
            return False
        wanted = [axis for axis in range(order[0], base.rank) if axis not in unit]
        return list(order) == wanted

    forward = base.layout
    backward = {"C": "F", "F": "C"}.get(base.layout)
    if forward == "C" and contiguous(sources, full, kept[0][2] == ONE):
        return "C"
    if forward == "C" and len(kept) > 1 and contiguous(sources[::-1], full[::-1], kept[-1][2] == ONE):
        return "F"
    if backward == "C":
        # A Fortran array is a C array of the reversed axes.
        mirrored = [base.rank - 1 - source for source in sources]
        unit_mirrored = {base.rank - 1 - axis for axis in unit}

        def reversed_contiguous(order: Sequence[int], flags: Sequence[bool], first_one: bool) -> bool:
            if not first_one or not all(flags[1:]):
                return False
            return list(order) == [axis for axis in range(order[0], base.rank) if axis not in unit_mirrored]

        if reversed_contiguous(mirrored, full, kept[0][2] == ONE):
            return "C"
        if len(kept) > 1 and reversed_contiguous(mirrored[::-1], full[::-1], kept[-1][2] == ONE):
            return "F"
    last_axis = axes[-1]
    if base.layout == "S":
        last = base.rank - 1  # the axis with stride == itemsize, also if its extent is 1
    if base.layout in ("C", "S") and last_axis[0] == last and last_axis[2] == ONE and last_axis[1] != ONE:
        return "C" if len(kept) == 1 and len(axes) == 1 else "S"
    return "A"


def transpose(s: Context, array: ArrayV, axes: Sequence[int]) -> ArrayV:
    """A view with permuted axes; `axes[i]` is the source of axis i."""
    return make_view(s, array, (ZERO,) * array.rank, [(axis, array.extents[axis], ONE) for axis in axes])


def size_of(s: Context, array: ArrayV) -> ir.Operand:
    """How many elements an array has."""
    size: ir.Operand = ONE
    for extent in array.extents:
        size = s.builder.index_mul(size, extent)
    return s.builder.as_count(size)
