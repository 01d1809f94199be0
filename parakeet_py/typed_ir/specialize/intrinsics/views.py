"""Words that make views: another order of axes, another shape, other extents over the same elements.

Where NumPy gives a view and a copy is as good, that is a deferred view (`deferred_views.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Array
from parakeet_py.library import intrinsics as words
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays import strided
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array
from parakeet_py.typed_ir.specialize.arrays.axis_order import fortran
from parakeet_py.typed_ir.specialize.arrays.elementwise import shape_text
from parakeet_py.typed_ir.specialize.arrays.views import make_view, transpose
from parakeet_py.typed_ir.specialize.intrinsics.queries import in_fortran_order_only
from parakeet_py.typed_ir.specialize.intrinsics.table import dtype_name, extents_of, handles
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, TupleV, Value, is_none, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


@handles(words.permute)
def _permute(s: Context, array: Value, axes: Value) -> Value:
    assert isinstance(array, ArrayV)
    return transpose(s, array, s.static(axes, "the axes of a transpose"))


@handles(words.reshape)
def _reshape(s: Context, array: Value, shape: Value) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV)
    extents = extents_of(s, shape)
    view = _unit_reshape(s, array, extents)
    if view is not None:
        return view
    if array.layout != "C":
        surely = _surely_copies(array, extents)
        if not surely and s.deferred_views.site in s.deferred_views.wanted:
            shape = TupleV(tuple(map(ScalarV, extents)))
            return s.call_library("reshaped_memory", [array, shape, py(strided.is_windows(s, array))])
        copied = copy_array(s, array, order="C")
        if not surely:
            copied = replace(copied, roots=s.deferred_view(array))
        array = copied
    if len(extents) == 0:
        return make_view(s, array, (ZERO,) * array.rank, [])
    out = b.emit1(ir.Reshape(array.var, extents), Array(array.dtype, len(extents), "C"), name="reshape")
    return ArrayV(out, extents, array.roots, array.readonly)


def _surely_copies(array: ArrayV, extents: tuple[ir.Operand, ...]) -> bool:
    """True where NumPy has to copy, too: several axes in Fortran order become one."""
    return len(extents) == 1 and in_fortran_order_only(array)


def _unit_reshape(s: Context, array: ArrayV, extents: tuple[ir.Operand, ...]) -> ArrayV | None:
    """A reshape that only adds or drops axes of extent 1 is a view whatever the layout."""
    b = s.builder
    sources = [axis for axis, extent in enumerate(array.extents) if extent != ONE]
    wanted = [extent for extent in extents if extent != ONE]
    if len(sources) != len(wanted):
        return None
    single = len(sources) == 1  # the sizes are equal, so these two extents are
    if not single and not all(b.same(array.extents[own], extent) for own, extent in zip(sources, wanted, strict=True)):
        return None
    axes: list[tuple[int | None, ir.Operand, ir.Operand]] = []
    for extent in extents:
        if extent == ONE:
            axes.append((None, ONE, ZERO))
        else:
            axis = sources.pop(0)
            axes.append((axis, array.extents[axis], ONE))
    return make_view(s, array, (ZERO,) * array.rank, axes)


@handles(words.stride_of)
def _stride_of(s: Context, array: Value, axis: Value) -> Value:
    assert isinstance(array, ArrayV)
    return ScalarV(strided.stride_of(s, array, s.static_int(axis, "an axis")))


@handles(words.lies_in_order)
def _in_order(s: Context, array: Value, order: Value) -> Value:
    assert isinstance(array, ArrayV)
    return ScalarV(strided.in_order(s, array, s.static(order, "the order of memory")))


@handles(words.known_in_order)
def _known_in_order(s: Context, array: Value, order: Value) -> Value:
    assert isinstance(array, ArrayV)
    fortran_order = s.static(order, "the order of memory") == "F"
    return replace(array, order=fortran(array.rank) if fortran_order else ())


@handles(words.strided)
def _strided(
    s: Context,
    array: Value,
    offset: Value,
    shape: Value,
    strides: Value,
    dtype: Value | None = None,
    layout: Value | None = None,
) -> Value:
    assert isinstance(array, ArrayV)
    assert isinstance(strides, TupleV)
    place, *steps = [_whole_number(s, one) for one in (offset, *strides.items)]
    kind = "" if dtype is None or is_none(dtype) else dtype_name(s, dtype)
    known = "A" if layout is None else s.static(layout, "a layout")
    return strided.strided(s, array, place, extents_of(s, shape), steps, dtype=kind, layout=known)


@handles(words.reshaped_strides)
def _reshaped_strides(s: Context, array: Value, shape: Value) -> Value:
    assert isinstance(array, ArrayV)
    fits, strides = strided.reshaped_strides(s, array, extents_of(s, shape))
    return TupleV((ScalarV(fits), TupleV(tuple(map(ScalarV, strides)))))


@handles(words.shared_elements)
def _shared_elements(s: Context, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return replace(array, roots=array.roots | s.deferred_views.guard())


def _whole_number(s: Context, value: Value) -> ir.Operand:
    number = s.numeric(value)
    assert isinstance(number, ScalarV)
    return s.builder.cast(number.operand, PYINT)


@handles(words.standing_for_view)
def _standing_for_view(s: Context, made: Value, base: Value, writeable: Value | None = None) -> Value:
    assert isinstance(made, ArrayV) and isinstance(base, ArrayV)
    readonly = writeable is None or not s.static(writeable, "writeable")
    return replace(made, roots=s.deferred_view(base), readonly=readonly)


@handles(words.read_only)
def _read_only(s: Context, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    return replace(array, readonly=True)


@handles(words.broadcast_view)
def _broadcast_view(s: Context, array: Value, shape: Value, writeable: Value | None = None) -> Value:
    b = s.builder
    assert isinstance(array, ArrayV)
    extents = extents_of(s, shape)
    surplus = len(extents) - array.rank
    if surplus < 0:
        raise s.unsupported("input operand has more dimensions than allowed by the axis remapping")
    message = "operands could not be broadcast together with remapped shapes [original->remapped]: "
    message += f"{shape_text(array.rank, 0)}  and requested shape {shape_text(len(extents), array.rank)}"
    axes: list[tuple[int | None, ir.Operand, ir.Operand]] = [(None, extent, ZERO) for extent in extents[:surplus]]
    for axis, own in enumerate(array.extents):
        extent = extents[surplus + axis]
        if own == ONE:
            axes.append((None, extent, ZERO))
        elif b.same(own, extent):
            axes.append((axis, own, ONE))
        else:
            single = b.prim("eq", own, ONE, type=PYBOOL)
            agree = b.prim("eq", own, extent, type=PYBOOL)
            if not array.is_nonunit(axis):
                agree = b.logical_or(agree, single)
            s.check(agree, "ValueError", message, (*array.extents, *extents))
            step = ONE if array.is_nonunit(axis) else b.select(single, ZERO, ONE)
            axes.append((axis, extent, step))
    view = make_view(s, array, (ZERO,) * array.rank, axes)
    stored = writeable is not None and bool(s.static(writeable, "writeable"))
    roots = view.roots | s.deferred_views.guard() if stored else view.roots
    return replace(view, roots=roots, readonly=not stored)
