"""Choosing elements: where, clip, select, take, compress, nonzero."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import ravel, size_of
from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    broadcast_view,
    cast,
    check,
    copy,
    dtype_of,
    elementwise,
    extent_is_one,
    generate,
    hand_back,
    index_check,
    is_array,
    is_known,
    is_sequence,
    is_weak,
    load,
    nonzero,
    order_of,
    permute,
    prim,
    ufunc_call,
    unsupported,
)
from parakeet_py.library.math.real_ufunc_loops import clip_ufunc
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import (
    ALL,
    NO_VALUE,
    SAME,
    fitting,
    in_order,
    integer_limits,
    into,
    inverse_axes,
    kind_of,
    must_be_writeable,
    not_scalar_into,
    one_mode,
    out_of_bounds,
    result_kind,
    single_axis,
)


@implements(np.where)
def where(condition, x=NO_VALUE, y=NO_VALUE, /):
    if x is NO_VALUE:
        return nonzero_of(condition)
    x, y = as_numeric(x), as_numeric(y)
    kind = result_kind(kind_of(x), kind_of(y))
    if where_looks_at_ints():
        x, y = fitting(x, kind), fitting(y, kind)
    else:
        x, y = unconverted(x), unconverted(y)
    return as_array(selected(as_numeric(condition), x, y, kind))


@static
def where_looks_at_ints():
    """Whether it raises for a Python int that the other's dtype cannot hold, as from NumPy 2.5 on."""
    try:
        np.where(True, np.uint8(0), 256)
    except OverflowError:
        return True
    return False


def unconverted(value):
    """An int of Python's as the int64 that is converted then, where others ask for Python's float."""
    return cast(value, "int64") if is_weak(value) and dtype_of(value).kind == "i" else value


def selected(condition, x, y, kind):
    return elementwise(lambda c, a, b: prim("select", cast(c, "bool"), cast(a, kind), cast(b, kind)), condition, x, y)


@implements(np.nonzero)
@method("nonzero")
def nonzero_of(a):
    a = as_array(a)
    if a.ndim == 0:
        unsupported("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return nonzero(a)


@implements(np.flatnonzero)
def flatnonzero(a):
    return nonzero(ravel(a))[0]


@implements(np.argwhere)
def argwhere(a):
    a = as_array(a)
    if a.ndim == 0:
        hand_back("np.argwhere of a 0-d array")
    return np.transpose(np.stack(nonzero(a)))


# ---- clip ------------------------------------------------------------------------------------------------------------


def clip_bound(bound, kind, lower):
    """A bound that an integer dtype can hold; None where it has no effect."""
    if bound is None:
        return None
    bound = as_numeric(bound)
    if is_weak(bound) and dtype_of(bound).kind == "i" and kind.kind in "iu":
        low, high = integer_limits(kind)
        if is_known(bound) and (bound <= low if lower else bound >= high):
            return None
        check(bound <= high if lower else bound >= low, "OverflowError", out_of_bounds(kind), bound)
        return cast(max(bound, low) if lower else min(bound, high), kind)
    return bound


def may_be_left_out(bound, other, kind, lower):
    """NumPy leaves a bound out that has no effect, which shows where the other one is a zero among floats."""
    if bound is None or other is None:
        return
    bound, other = as_numeric(bound), as_numeric(other)
    if is_weak(bound) and dtype_of(bound).kind == "i" and kind.kind in "iu" and dtype_of(other).kind == "f":
        low, high = integer_limits(kind)
        without = bound <= low if lower else bound >= high
        if not is_known(bound):
            check(~(without & np.any(other == 0)), "Deoptimize", "a bound without effect beside a zero")


def keeps_zeros(low, high, kind):
    """NumPy compares with bounds that are scalars in another way: a zero is not replaced by one of the other sign."""
    if is_sequence(low) or is_sequence(high) or (is_array(low) and low.ndim > 0) or (is_array(high) and high.ndim > 0):
        return False
    return kind.kind == "f" and kind.itemsize > 2


def clipped(a, low, high, out):
    not_scalar_into(a, out)
    a = as_numeric(a)
    if is_array(out):
        must_be_writeable(out)
    if is_weak(a):
        a = cast(a, dtype_of(a))
    may_be_left_out(low, high, dtype_of(a), True)
    may_be_left_out(high, low, dtype_of(a), False)
    low = clip_bound(low, dtype_of(a), True)
    high = clip_bound(high, dtype_of(a), False)
    if low is None and high is None:
        return ufunc_call(np.positive, a, out=out)
    if low is None:
        return ufunc_call(np.minimum, a, high, out=out)
    if high is None:
        return ufunc_call(np.maximum, a, low, out=out)
    kind = result_kind(dtype_of(a), kind_of(low), kind_of(high))
    if keeps_zeros(low, high, kind):
        a = a if dtype_of(a) == kind else cast(a, kind)
        bounded = ufunc_call(np.maximum, low, a, prim="at_least")
        return ufunc_call(np.minimum, high, bounded, out=out, prim="at_most")
    return ufunc_call(clip_ufunc, a, low, high, out=out)


@implements(np.clip)
def clip(a, a_min=NO_VALUE, a_max=NO_VALUE, out=None, *, min=NO_VALUE, max=NO_VALUE):
    low = min if a_min is NO_VALUE else a_min
    high = max if a_max is NO_VALUE else a_max
    if (a_min is not NO_VALUE and min is not NO_VALUE) or (a_max is not NO_VALUE and max is not NO_VALUE):
        unsupported("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return clipped(a, None if low is NO_VALUE else low, None if high is NO_VALUE else high, out)


@method("clip")
def clip_method(a, min=None, max=None, out=None):
    return clipped(a, min, max, out)


# ---- select and choose -----------------------------------------------------------------------------------------------


@static
def same_length(conditions, choices):
    if conditions != choices:
        raise ValueError("list of cases must be same length as list of conditions")
    if conditions == 0:
        raise ValueError("select with an empty condition list is not possible")


@implements(np.select)
def select(condlist, choicelist, default=0):
    conditions = tuple([as_numeric(condition) for condition in condlist])
    choices = tuple([as_numeric(choice) for choice in choicelist])
    default = as_numeric(default)
    same_length(len(conditions), len(choices))
    kind = result_kind(*[kind_of(choice) for choice in choices], kind_of(default))
    result = unconverted(default)
    for condition, choice in zip(conditions[::-1], choices[::-1]):
        if not np.can_cast(dtype_of(choice), kind, "same_kind"):
            unsupported("Cannot cast a choice according to the rule 'same_kind'")
        if dtype_of(condition).kind != "b":
            unsupported("an entry in condlist should be a boolean ndarray")
        result = selected(condition, unconverted(choice), result, kind)
    return as_array(in_order(result))


@implements(np.choose)
@method("choose")
def choose(a, choices, out=None, mode="raise"):
    if dtype_of(a).kind not in "iub" or dtype_of(a) == np.uint64:
        hand_back("choices by numbers that are no int64")
    parts = tuple([as_numeric(choice) for choice in choices])
    kind = result_kind(*[kind_of(part) for part in parts])
    parts = tuple([unconverted(part) for part in parts])
    count = len(parts)

    def choose_one(index, *values):
        if mode == "wrap":
            index = cast(index, "int64") % count
        elif mode == "clip":
            index = np.minimum(np.maximum(cast(index, "int64"), 0), count - 1)
        else:
            check((index >= 0) & (index < count), "ValueError", "invalid entry in choice array")
        chosen = cast(values[0], kind)
        for position, value in enumerate(values[1:]):
            chosen = prim("select", index == position + 1, cast(value, kind), chosen)
        return chosen

    result = in_order(elementwise(choose_one, as_numeric(a), *parts))
    return result if out is None else into(out, as_array(result), SAME)


# ---- take and compress -----------------------------------------------------------------------------------------------


@implements(np.take)
@method("take")
def take(a, indices, axis=None, out=None, mode="raise"):
    a = as_array(a)
    if axis is None:
        a = ravel(a)
        axis = 0
    axis = single_axis(axis, a.ndim)
    places = as_numeric(indices)
    if is_array(places) and places.ndim == 0:
        places = places[()]
    if dtype_of(places).kind not in "iub":
        unsupported("the indices of take are not integers")
    if dtype_of(places).kind == "b":
        places = cast(places, "int64")
    extent = a.shape[axis]
    wanted = a.shape[:axis] + (places.shape if is_array(places) else ()) + a.shape[axis + 1 :]
    none = size_of(wanted) == 0
    check((extent != 0) | none, "IndexError", "cannot do a non-empty take from an empty axes.")
    if out is not None:
        check_taken(out, wanted)
    mode = one_mode(mode)
    if mode == "wrap":
        places = elementwise(lambda i: cast(i, "int64") % extent, places)
    elif mode == "clip":
        places = elementwise(lambda i: np.minimum(np.maximum(cast(i, "int64"), 0), extent - 1), places)
    if axis > 0 and is_array(places) and dtype_of(places).name != "uint64":
        found = taken_along(a, places, axis)
        return found if out is None else into(out, found, SAME)
    found = a[(ALL,) * axis + (places,)]
    found = copy(found, "C") if is_array(found) and not is_array(places) else in_order(found)
    return found if out is None else into(out, as_array(found), SAME)


def taken_along(a, places, axis):
    """What is at places of an axis that is not the first, in C order. The places are looked at once, not for each place
    of the axes before."""
    extent, depth = a.shape[axis], places.ndim
    shape = a.shape[:axis] + places.shape + a.shape[axis + 1 :]
    some = size_of(a.shape[:axis]) != 0  # NumPy looks at the places even if there is nothing behind them
    sure = elementwise(lambda i: index_check(int(i), extent, axis) if some else 0, places)

    def element(*at):
        place = load(sure, *at[axis : axis + depth])
        return load(a, *at[:axis], place, *at[axis + depth :])

    return generate(shape, element)


def check_taken(out, shape):
    """NumPy looks at the shape of out before it looks at the indices."""
    message = "output array does not match result of ndarray.take"
    check(out.ndim == len(shape), "ValueError", message)
    for own, wanted in zip(out.shape, shape):
        check(own == wanted, "ValueError", message)


@implements(np.compress)
def compress(condition, a, axis=None, out=None):
    a = as_array(a)
    if axis is None:
        a = ravel(a)
        axis = 0
    axis = single_axis(axis, a.ndim)
    mask = as_array(condition)
    if mask.ndim != 1:
        unsupported("condition must be a 1-d array")
    places = nonzero(mask)[0]
    wanted = a.shape[:axis] + (places.shape[0],) + a.shape[axis + 1 :]
    check((a.shape[axis] != 0) | (size_of(wanted) == 0), "IndexError", "cannot do a non-empty take from an empty axes.")
    for own, extent in enumerate(a.shape):
        if own != axis:  # an index is not looked at where there is nothing to take
            last = load(places, places.shape[0] - 1) if extent == 0 and places.shape[0] > 0 else -1
            message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
            check(last < a.shape[axis], "IndexError", message, last, a.shape[axis])
    found = in_order(a[(ALL,) * axis + (places,)])
    return found if out is None else into(out, found, SAME)


@method("compress")
def compress_method(a, condition, axis=None, out=None):
    return compress(condition, a, axis, out)


@implements(np.extract)
def extract(condition, arr):
    return ravel(arr)[nonzero(ravel(condition))[0]]


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    if not is_array(arr) or not is_array(indices) or dtype_of(indices).kind not in "iu":
        unsupported("`indices` must be an integer array")
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = single_axis(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        unsupported("`indices` and `arr` must have the same number of dimensions")
    shape = ()
    for own, extent in enumerate(indices.shape):
        if own != axis:
            other = arr.shape[own]
            check((extent == other) | (extent == 1) | (other == 1), "Deoptimize", "indices of another shape")
            extent = other if extent_is_one(indices, own) or extent == 1 else extent
        shape = (*shape, extent)
    extent = arr.shape[axis]
    places = broadcast_view(indices, shape)
    source = broadcast_view(arr, shape[:axis] + (extent,) + shape[axis + 1 :])
    axes = order_of(indices) if arr.ndim > 1 else (0,)
    back = inverse_axes(axes)

    def element(*at):
        point = tuple([at[own] for own in back])
        place = index_check(int(load(places, *point)), extent, axis)
        return load(source, *point[:axis], place, *point[axis + 1 :])

    return permute(generate(tuple([shape[own] for own in axes]), element), back)
