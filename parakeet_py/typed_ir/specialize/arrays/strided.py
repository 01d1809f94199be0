"""Where memory lies: strides as numbers of the program, and what NumPy decides by them when it runs.

Whether `ravel` or `reshape` gives a view or a copy depends on the strides of its argument, which the layout tells only
in part. Here the strides of an array become operands (from its extents, where the layout or the view that it is gives
them), the question whether memory lies in order becomes one scalar expression, and `Strided` makes the views that are
no `View`: another shape of strided memory, other items in the same bytes, diagonals, windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Array, itemsize
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.values import ArrayV

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_TRUE = ir.Const(True, PYBOOL)


def stride_of(s: Context, array: ArrayV, axis: int) -> ir.Operand:
    """Bytes between the elements along an axis; anything where there is only one."""
    b = s.builder
    size: ir.Operand = ir.Const(itemsize(array.dtype), PYINT)
    match array.layout:
        case "C" | "F":
            for extent in array.extents[:axis] if array.layout == "F" else array.extents[axis + 1 :]:
                size = b.index_mul(size, extent)
            return size
        case "S" if axis == array.rank - 1:
            return size
    made = b.definition.get(array.var)
    match made:
        case ir.View(base, _, axes):
            source = axes[axis].source
            if source is None:
                return ZERO
            return b.index_mul(stride_of(s, _array(s, base), source), axes[axis].step)
        case ir.Strided(_, _, _, strides):
            return strides[axis]
    return b.pure(ir.Stride(array.var, axis), PYINT, name="stride")


def is_windows(s: Context, array: ArrayV) -> bool:
    """Does an array show elements of another several times, along axes of its own?"""
    made = s.builder.definition.get(array.var)
    while isinstance(made, ir.View):
        made = s.builder.definition.get(made.base)
    if not isinstance(made, ir.Strided) or not isinstance(made.base.type, Array):
        return False
    return len(made.extents) > made.base.type.rank


def strides_shown(s: Context, array: ArrayV) -> list[ir.Operand]:
    """Strides as NumPy reports them, also of single elements along an axis; of empty arrays Python does."""
    s.deferred_views.shown(array.roots)
    b = s.builder
    filled: ir.Operand = _TRUE
    for extent in array.extents:
        filled = b.logical_and(filled, b.prim("gt", extent, ZERO, type=PYBOOL))
    s.check(filled, "Deoptimize", "the strides of an empty array")
    return [_stride_shown(s, array, axis) for axis in range(array.rank)]


def _stride_shown(s: Context, array: ArrayV, axis: int) -> ir.Operand:
    made = s.builder.definition.get(array.var)
    if isinstance(made, ir.View):
        source = made.axes[axis].source
        if source is None:
            return ZERO
        return s.builder.index_mul(_stride_shown(s, _array(s, made.base), source), made.axes[axis].step)
    if isinstance(made, (ir.Strided, *ir.MAKERS)):
        return stride_of(s, array, axis)
    if array.layout in ("C", "F") and not all(array.is_nonunit(own) for own in range(array.rank)):
        raise s.hand_back("strides along axes that may have a single element")
    return stride_of(s, array, axis)


def with_steps(s: Context, var: ir.Var) -> ir.Var:
    """An array as it is shown: with the steps of 0 of axes that `x[:, None]` has put in, which layouts leave out."""
    op = s.builder.definition.get(var)
    if not isinstance(op, ir.View) or not _has_new_axes(s, var):
        return var
    assert isinstance(var.type, Array)
    return s.builder.pure(replace(op, base=with_steps(s, op.base)), replace(var.type, layout="A"), name="shown")


def _has_new_axes(s: Context, var: ir.Var) -> bool:
    """Is an array a view of one into which the user's code has put axes, or is it one?"""
    op = s.builder.definition.get(var)
    return isinstance(op, ir.View) and bool(s.new_axes) and (var in s.new_axes or _has_new_axes(s, op.base))


def _array(s: Context, var: ir.Var) -> ArrayV:
    """What is known of a variable alone."""
    assert isinstance(var.type, Array)
    single = {axis for own, axis, extent in s.arguments.static_extents if own is var and extent == 1}
    extents = [ONE if axis in single else s.dim(var, axis) for axis in range(var.type.rank)]
    nonunit = tuple(var in s.arguments.leaf_param and extent != ONE for extent in extents)
    return ArrayV(var, tuple(extents), frozenset(), False, nonunit)


def in_order(s: Context, array: ArrayV, order: str) -> ir.Operand:
    """Whether the elements lie one after the other in C or Fortran order: NumPy's flag."""
    if array.layout == order or (array.rank < 2 and array.layout in ("C", "F")):
        return _TRUE
    b = s.builder
    good: ir.Operand = _TRUE
    empty: ir.Operand = ir.Const(False, PYBOOL)
    expected: ir.Operand = ir.Const(itemsize(array.dtype), PYINT)
    for axis in range(array.rank) if order == "F" else reversed(range(array.rank)):
        extent = array.extents[axis]
        fits = _equal(s, stride_of(s, array, axis), expected)
        good = b.logical_and(good, b.logical_or(is_single(s, array, axis), fits))
        empty = b.logical_or(empty, _equal(s, extent, ZERO))
        expected = b.index_mul(expected, extent)
    return b.logical_or(good, empty)


def _equal(s: Context, left: ir.Operand, right: ir.Operand) -> ir.Operand:
    return _TRUE if s.builder.same(left, right) else s.builder.prim("eq", left, right, type=PYBOOL)


def is_single(s: Context, array: ArrayV, axis: int) -> ir.Operand:
    """Whether an axis has one element."""
    known = array.is_nonunit(axis) or s.builder.provably_lt(ONE, array.extents[axis])
    return ir.Const(False, PYBOOL) if known else _equal(s, array.extents[axis], ONE)


def strided(
    s: Context,
    base: ArrayV,
    offset: ir.Operand,
    extents: Sequence[ir.Operand],
    strides: Sequence[ir.Operand],
    *,
    dtype: str = "",
    layout: str = "A",
) -> ArrayV:
    """An array over the memory of another."""
    op = ir.Strided(base.var, offset, tuple(extents), tuple(strides))
    made = s.builder.pure(op, Array(dtype or base.dtype, len(extents), layout), name="strided")
    return ArrayV(made, tuple(extents), base.roots, base.readonly)


def reshaped_strides(s: Context, array: ArrayV, extents: Sequence[ir.Operand]) -> tuple[ir.Operand, list[ir.Operand]]:
    """Whether an array can have another shape (of equal size) without a copy, in C order, and the strides it has then.

    Where two axes do not follow each other in memory, one of the new axes has to end: the product of all extents after
    that place is one of the new shape's, too. A new axis moves as the old one does in which it begins; one of extent 1
    as its neighbours tell.
    """
    b = s.builder
    products: list[ir.Operand] = [ONE]  # of the extents after each new axis, from the last
    for extent in reversed(extents):
        products.append(b.index_mul(extent, products[-1]))
    good: ir.Operand = _TRUE
    behind: ir.Operand = ONE  # the size of all old axes after this one
    follows: ir.Operand = ONE  # the stride that continues them
    olds: list[tuple[ir.Operand, ir.Operand, ir.Operand]] = []
    for axis in reversed(range(array.rank)):
        extent, stride = array.extents[axis], stride_of(s, array, axis)
        single = is_single(s, array, axis)
        fits = b.logical_or(single, _equal(s, behind, ONE))
        fits = b.logical_or(fits, _equal(s, stride, follows))
        for product in products:
            fits = b.logical_or(fits, _equal(s, behind, product))
        good = b.logical_and(good, fits)
        olds.append((single, behind, stride))
        follows = b.select(single, follows, b.index_mul(stride, extent))
        behind = b.index_mul(behind, extent)
    empty = _equal(s, behind, ZERO)
    strides: list[ir.Operand] = []
    size = ir.Const(itemsize(array.dtype), PYINT)
    after: ir.Operand = size  # the stride that continues the new axes so far; at first that of the fastest old one
    for single, _, moves in reversed(olds):
        after = b.select(single, after, moves)
    after = b.select(empty, size, after)
    for extent, product in zip(reversed(extents), products, strict=False):
        stride = after
        for single, begins, moves in olds:  # the last that begins at or before the new axis, and is more than one
            within = b.select(_equal(s, begins, ZERO), ONE, begins)
            inside = b.prim("not", b.logical_or(single, b.prim("lt", product, begins, type=PYBOOL)), type=PYBOOL)
            stride = b.select(inside, b.prim("floordiv", b.index_mul(moves, product), within), stride)
        stride = b.select(_equal(s, extent, ONE), after, stride)
        stride = b.select(empty, after, stride)
        strides.append(stride)
        after = b.index_mul(stride, b.index_max(extent, ONE))
    return b.logical_or(good, empty), strides[::-1]


def is_strided(s: Context, array: ir.Var) -> bool:
    """Whether an array is a view with strides that are numbers of the program."""
    definition = s.builder.definition.get(array)
    while isinstance(definition, ir.AnyView):
        if isinstance(definition, ir.Strided):
            return True
        definition = s.builder.definition.get(definition.base)
    return False
