"""Reductions that leave NaN out."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    prim,
    unsupported,
)
from parakeet_py.library.reductions.reductions import degrees_taken, reduce_ufunc, squared_size
from parakeet_py.library.reductions.scans import replaced_nan
from parakeet_py.library.registry import implements
from parakeet_py.library.shared import NO_VALUE, SAME, into


@implements(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return reduce_ufunc(np.add, replaced_nan(as_array(a), 0), axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return reduce_ufunc(np.multiply, replaced_nan(as_array(a), 1), axis, dtype, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return reduce_ufunc(np.fmin, a, axis, None, out, keepdims, initial, where)


@implements(np.nanmax)
def nanmax(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return reduce_ufunc(np.fmax, a, axis, None, out, keepdims, initial, where)


def arg_of_numbers(a, axis, out, keepdims, instead, find):
    """argmin or argmax among what is not NaN."""
    a = as_array(a)
    if out is not None:
        hand_back("nanargmin and nanargmax with out")
    if dtype_of(a).kind == "c":
        hand_back("nanargmin and nanargmax of complex numbers")
    if dtype_of(a).kind == "f":
        missing = np.isnan(a)
        check(~np.any(np.all(missing, axis)), "ValueError", "All-NaN slice encountered")
        a = np.where(missing, constant(instead, dtype_of(a)), a)
    return find(a, axis, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a, axis=None, out=None, *, keepdims=NO_VALUE):
    return arg_of_numbers(a, axis, out, keepdims is not NO_VALUE and keepdims, np.inf, np.argmin)


@implements(np.nanargmax)
def nanargmax(a, axis=None, out=None, *, keepdims=NO_VALUE):
    return arg_of_numbers(a, axis, out, keepdims is not NO_VALUE and keepdims, -np.inf, np.argmax)


def divided_by_count(total, count):
    """total / count in the dtype of the total."""
    quotient = np.true_divide(total, count)
    return quotient if dtype_of(quotient) == dtype_of(total) else cast(quotient, dtype_of(total))


def number_count(a, axis, keepdims, where=True):
    """How many elements are not NaN."""
    return np.sum(~np.isnan(a), axis, np.int64, None, keepdims, where=where)


def must_stay_inexact(dtype, out):
    """Moments of floats are floats, NumPy's functions that leave NaN out insist."""
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        unsupported("If a is inexact, then dtype must be inexact")
    if out is not None and dtype_of(out).kind not in "fc":
        unsupported("If a is inexact, then out must be inexact")


@implements(np.nanmean)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    a = as_array(a)
    if dtype_of(a).kind not in "fc":
        return np.mean(a, axis, dtype, out, keepdims, where=where)
    must_stay_inexact(dtype, out)
    if out is not None and (dtype is not None or dtype_of(out) != dtype_of(a)):
        hand_back("np.nanmean into another dtype")
    total = np.sum(replaced_nan(a, 0), axis, dtype, None, keepdims, where=where)
    result = divided_by_count(total, number_count(a, axis, keepdims, where))
    return result if out is None else into(out, as_array(result), SAME)


@implements(np.nanvar)
def nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE, correction=NO_VALUE
):
    a = as_array(a)
    ddof = degrees_taken(ddof, correction)
    if dtype_of(a).kind not in "fc":
        return np.var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)
    must_stay_inexact(dtype, out)
    kind = dtype_of(a)
    if mean is NO_VALUE:
        total = np.sum(replaced_nan(a, 0), axis, dtype, None, True, where=where)
        centre = divided_by_count(total, number_count(a, axis, True, where))
    else:
        centre = mean

    def deviation(x, c):
        away = cast(x - c, kind)
        return squared_size(prim("select", np.isnan(x), constant(0, kind), away))

    total = np.sum(elementwise(deviation, a, centre), axis, dtype, None, keepdims, where=where)
    freedom = number_count(a, axis, keepdims, where) - ddof
    result = divided_by_count(total, freedom)
    missing = np.where(freedom <= 0, np.nan, result)
    if out is None:
        return missing if is_array(result) else missing[()]
    if dtype_of(out) != dtype_of(result):
        hand_back("np.nanvar into another dtype")
    return into(out, as_array(missing), SAME)


@implements(np.nanstd)
def nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE, correction=NO_VALUE
):
    variance = nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    result = np.sqrt(variance)
    result = result if dtype_of(result) == dtype_of(variance) else cast(result, dtype_of(variance))
    return result if out is None else into(out, as_array(result), SAME)
