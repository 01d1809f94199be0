"""Words that ask: what is known of a value while its function is specialized. Only `on_device` emits something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import BOOL, PYBOOL, Array
from parakeet_py.library import intrinsics as words
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE
from parakeet_py.typed_ir.specialize.arrays.axis_order import merged_order, sorted_axes, stride_ranks
from parakeet_py.typed_ir.specialize.forms import array_of, form_of
from parakeet_py.typed_ir.specialize.intrinsics.table import dtype_name, handles
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    ScalarV,
    Static,
    TupleV,
    Value,
    is_known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


@handles(words.extent_is_one)
def _extent_is_one(s: Context, array: Value, axis: Value) -> Value:
    assert isinstance(array, ArrayV)
    number = s.static_int(axis, "an axis")
    if _is_surely_several(s, array, number):
        return py(False)
    extent = array.extents[number]
    return py(extent == ONE) if isinstance(extent, ir.Const) else NONE


@handles(words.dtype_of)
def _dtype_of(s: Context, value: Value) -> Value:
    number = s.numeric(value)
    return Static(np.dtype(number.dtype))


@handles(words.is_weak)
def _is_weak(s: Context, value: Value) -> Value:
    return py(isinstance(value, ScalarV) and value.python)


@handles(words.is_array)
def _is_array(s: Context, value: Value) -> Value:
    return py(isinstance(value, ArrayV))


@handles(words.is_known)
def _is_known(s: Context, value: Value) -> Value:
    return py(is_known(value))


@handles(words.is_sequence)
def _is_sequence(s: Context, value: Value) -> Value:
    return py(isinstance(value, TupleV) or form_of(value).array is not None)


@handles(words.has_known_length)
def _has_known_length(s: Context, value: Value) -> Value:
    array = None if isinstance(value, ArrayV) else array_of(value)
    return py(isinstance(value, TupleV) or (array is not None and isinstance(array.extents[0], ir.Const)))


@handles(words.is_writeable)
def _is_writeable(s: Context, array: Value) -> Value:
    return py(isinstance(array, ArrayV) and not array.readonly)


@handles(words.layout_of)
def _layout_of(s: Context, array: Value) -> Value:
    return Static(array.layout if isinstance(array, ArrayV) else "C")


@handles(words.may_overlap)
def _may_overlap(s: Context, left: Value, right: Value) -> Value:
    assert isinstance(left, ArrayV) and isinstance(right, ArrayV)
    return py(bool(left.roots & right.roots))


@handles(words.order_of)
def _order_of(s: Context, *arrays: Value) -> Value:
    """In which order arrays are joined. An axis of one element tells NumPy nothing: where the order depends on axes
    that may have one, Python runs the calls in which they do."""
    known = [array for array in arrays if isinstance(array, ArrayV)]
    b, rank = s.builder, known[0].rank
    if not any(array.order for array in known):
        return lift(tuple(range(rank)))
    ranks = [stride_ranks(b, array, rank) for array in known]
    order = sorted_axes(ranks, rank, joined=True)
    sure = [
        [number if _is_surely_several(s, array, axis) else 0 for axis, number in enumerate(numbers)]
        for array, numbers in zip(known, ranks, strict=True)
    ]
    if sorted_axes(sure, rank, joined=True) != order:
        single = "arrays with one element along an axis"
        for array, numbers in zip(known, sure, strict=True):
            for extent, number in zip(array.extents, numbers, strict=True):
                if not number and extent != ONE:
                    s.check(b.prim("ne", extent, ONE, type=PYBOOL), "Deoptimize", single)
    return lift(order or tuple(range(rank)))


def _is_surely_several(s: Context, array: ArrayV, axis: int) -> bool:
    return array.is_nonunit(axis) or s.builder.provably_lt(ONE, array.extents[axis])


@handles(words.elementwise_order)
def _elementwise_order(s: Context, *arrays: Value) -> Value:
    known = [array for array in arrays if isinstance(array, ArrayV)]
    return lift(merged_order(s.builder, known, known[0].rank) or tuple(range(known[0].rank)))


def in_fortran_order_only(array: ArrayV) -> bool:
    several = sum(array.is_nonunit(axis) for axis in range(array.rank)) > 1
    return array.layout == "F" and several


@handles(words.surely_strided)
def _surely_strided(s: Context, array: Value) -> Value:
    assert isinstance(array, ArrayV)
    if in_fortran_order_only(array) or _is_line_across(s, array):
        return py(True)
    return py(array.layout != "C" and array.var in s.arguments.leaf_param)  # it would have that layout


def _is_line_across(s: Context, array: ArrayV) -> bool:
    """A whole axis of an argument; others, of whose extents it is known which are 1, lie between its elements."""
    view = s.builder.definition.get(array.var)
    if not isinstance(view, ir.View) or view.base not in s.arguments.leaf_param:
        return False
    kind = view.base.type
    ordered = isinstance(kind, Array) and kind.layout in ("C", "F")
    return ordered and array.rank == 1 and array.layout != "C" and array.is_nonunit(0)


@handles(words.wants_view)
def _wants_view(s: Context) -> Value:
    return py(s.deferred_views.site in s.deferred_views.wanted)


@handles(words.has_routine)
def _has_routine(s: Context, name: Value, *kinds: Value) -> Value:
    from parakeet_py.base.foreign_code import numpy_loops

    known = s.static(name, "the name of a routine")
    dtypes = tuple(dtype_name(s, kind) for kind in kinds)
    return py(numpy_loops.available(known, dtypes))


@handles(words.on_device)
def _on_device(s: Context) -> Value:
    return ScalarV(s.builder.prim(ir.ON_DEVICE, ir.Const(False, BOOL), type=BOOL))
