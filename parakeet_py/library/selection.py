"""Choosing elements: where, clip, select, take, compress, nonzero, and stores through masks."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    copy,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    is_weak,
    load,
    nonzero,
    prim,
    ufunc_call,
    unsupported,
)
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.scalars import clip_ufunc
from parakeet_py.library.shape import ravel
from parakeet_py.library.shared import (
    ALL,
    NO_VALUE,
    check_output_cast,
    in_order,
    integer_limits,
    into,
    kind_of,
    must_be_writeable,
    out_of_bounds,
    result_kind,
    single_axis,
)


@implements(np.where)
def where(condition, x=NO_VALUE, y=NO_VALUE, /):
    if x is NO_VALUE:
        return nonzero_of(condition)
    x, y = as_numeric(x), as_numeric(y)
    return as_array(selected(as_numeric(condition), x, y, result_kind(kind_of(x), kind_of(y))))


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
        check(bound <= high if lower else bound >= low, "OverflowError", out_of_bounds(kind), bound)
        return cast(max(bound, low) if lower else min(bound, high), kind)
    return bound


def clipped(a, low, high, out):
    a = as_numeric(a)
    if is_weak(a):
        a = cast(a, dtype_of(a))
    low = clip_bound(low, dtype_of(a), True)
    high = clip_bound(high, dtype_of(a), False)
    if low is None and high is None:
        return ufunc_call(np.positive, a, out=out)
    if low is None:
        return ufunc_call(np.minimum, a, high, out=out)
    if high is None:
        return ufunc_call(np.maximum, a, low, out=out)
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
    same_length(len(conditions), len(choices))
    kind = result_kind(*[kind_of(choice) for choice in choices], kind_of(as_numeric(default)))
    result = as_numeric(default)
    for condition, choice in zip(conditions[::-1], choices[::-1]):
        if dtype_of(condition).kind != "b":
            unsupported("an entry in condlist should be a boolean ndarray")
        result = selected(condition, choice, result, kind)
    return as_array(in_order(result))


@implements(np.choose)
@method("choose")
def choose(a, choices, out=None, mode="raise"):
    if mode != "raise":
        hand_back("np.choose with a mode")
    parts = tuple([as_numeric(choice) for choice in choices])
    kind = result_kind(*[dtype_of(part) for part in parts])
    count = len(parts)

    def choose_one(index, *values):
        check((index >= 0) & (index < count), "ValueError", "invalid entry in choice array")
        chosen = cast(values[0], kind)
        for position, value in enumerate(values[1:]):
            chosen = prim("select", index == position + 1, cast(value, kind), chosen)
        return chosen

    result = in_order(elementwise(choose_one, as_numeric(a), *parts))
    return result if out is None else into(out, as_array(result))


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
    if out is not None:
        check_taken(out, a.shape[:axis] + (places.shape if is_array(places) else ()) + a.shape[axis + 1 :])
    if mode == "wrap":
        places = elementwise(lambda i: cast(i, "int64") % extent, places)
    elif mode == "clip":
        places = elementwise(lambda i: np.minimum(np.maximum(cast(i, "int64"), 0), extent - 1), places)
    found = a[(ALL,) * axis + (places,)]
    found = copy(found, "C") if is_array(found) and not is_array(places) else in_order(found)
    return found if out is None else into(out, as_array(found))


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
    for own, extent in enumerate(a.shape):
        if own != axis:  # an index is not looked at where there is nothing to take
            last = load(places, places.shape[0] - 1) if extent == 0 and places.shape[0] > 0 else -1
            message = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
            check(last < a.shape[axis], "IndexError", message, last, a.shape[axis])
    found = in_order(a[(ALL,) * axis + (places,)])
    return found if out is None else into(out, found)


@method("compress")
def compress_method(a, condition, axis=None, out=None):
    return compress(condition, a, axis, out)


@implements(np.extract)
def extract(condition, arr):
    return ravel(arr)[nonzero(ravel(condition))[0]]


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    arr, indices = as_array(arr), as_array(indices)
    if axis is None or arr.ndim != 1 or indices.ndim != 1:
        hand_back("take_along_axis of several axes")
    return arr[indices]


# ---- stores ----------------------------------------------------------------------------------------------------------


@implements(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    src = as_numeric(src)
    source = dtype_of(src) if not is_weak(src) else result_kind(kind_of(src), dtype_of(dst))
    check_output_cast(source, dtype_of(dst), casting)
    if where is True:
        assign(dst, src)
    else:
        mask = as_array(where)
        assign(dst, selected(mask, src, dst, dtype_of(dst)))


@implements(np.putmask)
def putmask(a, mask, values):
    values = as_numeric(values)
    if is_array(values) and values.ndim > 0:
        hand_back("np.putmask of several values")
    must_be_writeable(a, "putmask: output array is read-only")
    a[mask] = values


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    if a.ndim != 2 or wrap or is_array(val):
        hand_back("np.fill_diagonal of these arguments")
    must_be_writeable(a, "underlying array is read-only")
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val
