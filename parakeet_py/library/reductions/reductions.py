"""Reductions: sum and its relatives, extrema and where they are, moments, counts, truth."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from parakeet_py.base.exact_loops import exact
from parakeet_py.library.arrays.shape import ravel
from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    is_weak,
    layout_of,
    prim,
    reduce_axes,
    reshape,
    unsupported,
)
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import (
    NO_VALUE,
    SAME,
    checked_dtype,
    count_along,
    finish,
    fitting,
    in_order,
    into,
    not_scalar_into,
    reduction_axes,
    single_axis,
)

IDENTITIES = {
    np.add: 0,
    np.multiply: 1,
    np.logical_and: True,
    np.logical_or: False,
    np.bitwise_or: 0,
    np.bitwise_xor: 0,
    np.logical_xor: False,
    np.bitwise_and: -1,
    np.hypot: 0,
    np.logaddexp: -np.inf,
    np.logaddexp2: -np.inf,
    np.gcd: 0,
    np.fmax: np.nan,
    np.fmin: np.nan,
}


@static
def reduction_kind(ufunc, kind, dtype, out):
    """The dtype a ufunc reduces in."""
    if dtype is not None:
        return ufunc.resolve_dtypes(
            (None, np.dtype(dtype), None), reduction=True, signature=(dtype, None, None), casting="unsafe"
        )[0]
    return ufunc.resolve_dtypes((out, kind, None), reduction=True, casting="unsafe")[0]


@static
def accumulator_kind(ufunc, kind):
    """Products of float16, and sums of products, are accumulated in float32."""
    return np.dtype("float32") if kind == np.float16 and ufunc in (np.add, np.multiply) else kind


@static
def identity_of(ufunc, kind):
    """The number that a reduction starts from."""
    if ufunc in (np.maximum, np.minimum, np.fmax, np.fmin) and (kind.kind != "f" or ufunc in (np.maximum, np.minimum)):
        low = ufunc in (np.maximum, np.fmax)
        if kind.kind == "b":
            return not low
        if kind.kind in "iu":
            return int(np.iinfo(kind).min if low else np.iinfo(kind).max)
        infinity = -np.inf if low else np.inf
        return complex(infinity, infinity) if kind.kind == "c" else infinity
    if ufunc is np.bitwise_and and kind.kind in "bu":
        return True if kind.kind == "b" else int(np.iinfo(kind).max)
    return IDENTITIES[ufunc]


@static
def neutral(ufunc, kind):
    """The number that leaves every other as it is, also the zero with a sign."""
    if ufunc is np.add and kind.kind in "fc":
        return -0.0 if kind.kind == "f" else complex(-0.0, -0.0)
    return identity_of(ufunc, kind)


@static
def one_by_one(ufunc, kind):
    """Complex infinities (and zeros) are products of their own order: a factor 1 inf into inf + nan j. What is a loop
    itself cannot combine parts."""
    return (ufunc is np.multiply and kind.kind == "c") or ufunc is np.gcd


def reduced_in_order(ufunc, a, axes, kind, first):
    """The reduction along one axis or all of them from a first value on, element by element."""
    if len(axes) == a.ndim and a.ndim > 1:
        a = ravel(a.T if layout_of(a) == "F" else a)
        axes = (0,)
    if a.ndim == 1:
        total = first
        for i in range(a.shape[0]):
            total = ufunc(total, cast(a[i], kind))
        return total
    before = (slice(None),) * axes[0]
    none = a[(*before, slice(0, 0))]  # the reduction of no elements has the shape and order of the result
    (total,) = reduce_axes(none, axes, (first,), lambda x, *at: (cast(x, kind),), lambda s, x: (s,))
    for i in range(a.shape[axes[0]]):
        assign(total, ufunc(total, cast(a[(*before, i)], kind)))
    return total


def no_first_nan(ufunc, kind):
    """What fmax and fmin make of nothing but complex NaNs is the first of these, which no number stands before."""
    if ufunc in (np.fmax, np.fmin) and kind.kind == "c":
        hand_back("fmax and fmin of complex numbers, reduced")


@static
def rounds_in_exact_code(ufunc, kind):
    """Whether the order of a reduction shows in bits that have to be NumPy's."""
    return exact.get() and kind.kind in "fc" and ufunc in (np.add, np.multiply)


@static
def can_reduce(ufunc):
    return ufunc in IDENTITIES or ufunc in (np.maximum, np.minimum)


@static
def has_identity(ufunc):
    return ufunc.identity is not None


def reduce_ufunc(ufunc, a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    """ufunc.reduce over any axes."""
    a = as_array(a)
    axes = reduction_axes(axis, a.ndim)
    kind = reduction_kind(ufunc, dtype_of(a), dtype, None if out is None else dtype_of(out))
    no_first_nan(ufunc, kind)
    if rounds_in_exact_code(ufunc, kind) and (where is not True or initial is not NO_VALUE or out is not None):
        hand_back("a sum with where, initial or out, in exact code")
    wide = kind if ufunc is np.add else accumulator_kind(ufunc, kind)
    start = constant(identity_of(ufunc, kind), kind) if initial is NO_VALUE else cast(starting(initial, kind), kind)
    first = identity_of(ufunc, kind) if initial is NO_VALUE else neutral(ufunc, kind)
    if where is not True:
        if one_by_one(ufunc, kind) and ufunc is np.multiply:
            hand_back("a product of the complex numbers that a mask selects")
        a = masked(ufunc, a, kind, first, initial, where)
    if not has_identity(ufunc) and initial is NO_VALUE:
        check_not_empty(ufunc, a, axes)
    if rounds_in_exact_code(ufunc, kind) and ufunc is np.multiply:
        hand_back("a product, in exact code")
    if one_by_one(ufunc, kind) and a.ndim > 0 and (len(axes) == 1 or len(axes) == a.ndim):
        return finish(reduced_in_order(ufunc, a, axes, kind, start), axes, a.ndim, keepdims, out)
    if ufunc is np.gcd:
        hand_back("a reduction with gcd along several axes")
    if one_by_one(ufunc, kind) and a.ndim > 0 and initial is not NO_VALUE:
        hand_back("a product of complex numbers along several axes from an initial value on")
    (total,) = reduce_axes(
        a,
        axes,
        (constant(first, wide),),
        lambda x, *at: (cast(cast(x, kind), wide),),
        lambda s, x: (ufunc(s, x),),
        kind if ufunc is np.add else None,
    )
    if initial is not NO_VALUE:  # which comes first: the first NaN of complex numbers is their maximum
        total = ufunc(cast(start, wide), total)
    return finish(total if kind == wide else cast(total, kind), axes, a.ndim, keepdims, out)


@static
def may_not_fit(source, kind):
    return kind.kind in "iu" and not np.can_cast(source, kind)


@static
def beyond(kind):
    """The floats next to the range of an integer dtype, at most of 63 bits, whose integer parts are not in it."""
    limits = np.iinfo(kind)
    return max(float(limits.min) - 1.0, -(2.0**63)), min(float(limits.max) + 1.0, 2.0**63)


def starting(initial, kind):
    """An initial value, which is stored to the dtype of the reduction."""
    initial = as_numeric(initial)
    if is_array(initial):
        hand_back("an initial value that is an array")
    if not is_weak(initial) and may_not_fit(dtype_of(initial), kind):
        hand_back("an initial value that may not fit the dtype")
    if dtype_of(initial).kind == "f" and kind.kind in "iu":
        low, high = beyond(kind)
        check((initial > low) & (initial < high), "Deoptimize", "an initial value that its dtype does not take")
    return fitting(initial, kind)


def masked(ufunc, a, kind, identity, initial, where):
    """An array with the identity in place of what a mask leaves out."""
    if not has_identity(ufunc) and initial is NO_VALUE:
        unsupported("a reduction without identity and with where needs an initial value")
    mask = mask_over(a, where)
    return as_array(elementwise(lambda x, m: prim("select", m, cast(x, kind), constant(identity, kind)), a, mask))


def mask_over(a, where):
    """A mask with the shape of the array."""
    where = as_array(where)
    if dtype_of(where) != np.bool_ or where.ndim > a.ndim:
        hand_back("where= that is no mask of the array")
    return np.broadcast_to(where, a.shape)


def check_not_empty(ufunc, a, axes):
    check(count_along(a, axes) != 0, "ValueError", empty_message(ufunc))


@static
def empty_message(ufunc):
    return f"zero-size array to reduction operation {ufunc.__name__} which has no identity"


@implements(np.sum)
@method("sum")
def sum_(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.add, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod)
@method("prod")
def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.multiply, a, axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax)
@method("max")
def max_(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.maximum, a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
@method("min")
def min_(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.minimum, a, axis, None, out, keepdims, initial, where)


@implements(np.all)
def all_(a, axis=None, out=None, keepdims=False, *, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.logical_and, a, axis, None, out, keepdims, NO_VALUE, where)


@method("all")
def all_of(a, axis=None, *, out=None, keepdims=False, where=True):  # NumPy's has a dtype behind the axis
    return all_(a, axis, out, keepdims, where=where)


@implements(np.any)
def any_(a, axis=None, out=None, keepdims=False, *, where=True):
    not_scalar_into(a, out)
    return reduce_ufunc(np.logical_or, a, axis, None, out, keepdims, NO_VALUE, where)


@method("any")
def any_of(a, axis=None, *, out=None, keepdims=False, where=True):  # NumPy's has a dtype behind the axis
    return any_(a, axis, out, keepdims, where=where)


@implements(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    result = max_(a, axis, None, keepdims) - min_(a, axis, None, keepdims)
    return result if out is None else finish(result, (), 0, False, out)


@implements(np.count_nonzero)
def count_nonzero(a, axis=None, *, keepdims=False):
    a = as_array(a)
    axes = reduction_axes(axis, a.ndim)
    (count,) = reduce_axes(
        a, axes, (constant(0, "int64"),), lambda x, *at: (cast(cast(x, "bool"), "int64"),), lambda s, x: (s + x,)
    )
    return finish(count, axes, a.ndim, keepdims, None)


# ---- moments ---------------------------------------------------------------------------------------------------------


@static
def mean_kind(kind, dtype):
    """The dtype in which means are taken."""
    if dtype is not None:
        return np.dtype(dtype)
    return np.dtype("float64") if kind.kind in "biu" else np.dtype("float32") if kind == np.float16 else kind


@static
def variance_kind(kind, dtype):
    """The dtype of variances: float16 is not made wider for them."""
    return kind if kind == np.float16 and dtype is None else mean_kind(kind, dtype)


@static
def axes_of_moment(axis, rank):
    """The axes of a mean or variance: a 0-d array has none, whatever sums say."""
    return reduction_axes(axis, rank) if axis is None or rank > 0 else normalize_axis_tuple(axis, rank)


def total_over(a, axes, kind):
    """The sum over axes in a dtype."""
    (total,) = reduce_axes(a, axes, (constant(0, kind),), lambda x, *at: (cast(x, kind),), lambda s, x: (s + x,), kind)
    return total


def divided(total, count, kind):
    """total / count (an int64), rounded to the dtype of the result; arrays have that of the total in between."""
    quotient = np.true_divide(total, count)
    if is_array(quotient):
        quotient = cast(quotient, dtype_of(total))
    return quotient if dtype_of(quotient) == kind else cast(quotient, kind)


@implements(np.mean)
@method("mean")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    not_scalar_into(a, out)
    a = as_array(a)
    kind = mean_kind(dtype_of(a), dtype)
    if where is not True:
        return masked_mean(a, axis, kind, out, keepdims, where)
    axes = axes_of_moment(axis, a.ndim)
    total = total_over(a, axes, kind)
    final = dtype_of(a) if dtype is None and dtype_of(a) == np.float16 else kind
    result = divided(total, cast(count_along(a, axes), "int64"), final)
    return finish(result, axes, a.ndim, keepdims, out)


def masked_mean(a, axis, kind, out, keepdims, where):
    """The mean of the elements that a mask selects."""
    total = reduce_ufunc(np.add, a, axis, kind, None, keepdims, NO_VALUE, where)
    count = reduce_ufunc(np.add, mask_over(a, where), axis, np.int64, None, keepdims)
    result = divided(total, count, dtype_of(a) if dtype_of(a) == np.float16 and out is None else kind)
    return result if out is None else into(out, as_array(result), SAME)


def squared_size(x):
    """|x|**2, real."""
    if dtype_of(x).kind == "c":
        return prim("real", x) * prim("real", x) + prim("imag", x) * prim("imag", x)
    return x * x


@implements(np.var)
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE, correction=NO_VALUE):
    not_scalar_into(a, out)
    ddof = degrees_taken(ddof, correction)
    a = as_array(a)
    kind = variance_kind(dtype_of(a), dtype)
    if kind.kind not in "fc":
        hand_back("variances that are no floats")
    if where is not True:
        return masked_variance(a, axis, kind, dtype, out, ddof, keepdims, where, mean)
    axes = axes_of_moment(axis, a.ndim)
    count = cast(count_along(a, axes), "int64")
    if mean is NO_VALUE:
        centre = finish(divided(total_over(a, axes, kind), count, kind), axes, a.ndim, True, None)
    else:
        centre = mean
    deviations = elementwise(squared_size, np.subtract(a, centre))
    wide = kind if dtype is not None or kind.kind == "f" else dtype_of(deviations)
    total = total_over(as_array(deviations), axes, wide)
    result = divided(total, np.maximum(count - ddof, 0), wide)
    return finish(result, axes, a.ndim, keepdims, out)


def degrees_taken(ddof, correction):
    """The degrees of freedom that do not count: the two names of the argument exclude each other."""
    if correction is NO_VALUE:
        return ddof
    check(ddof == 0, "ValueError", "ddof and correction can't be provided simultaneously.")
    return correction


def masked_variance(a, axis, kind, dtype, out, ddof, keepdims, where, mean):
    """The variance of the elements that a mask selects."""
    selected = mask_over(a, where)
    count = reduce_ufunc(np.add, selected, axis, np.int64, None, keepdims)
    if mean is NO_VALUE:
        total = reduce_ufunc(np.add, a, axis, kind, None, True, NO_VALUE, where)
        centre = divided(total, reduce_ufunc(np.add, selected, axis, np.int64, None, True), kind)
    else:
        centre = mean
    deviations = as_array(elementwise(squared_size, np.subtract(a, centre)))
    wide = kind if dtype is not None or kind.kind == "f" else dtype_of(deviations)
    total = reduce_ufunc(np.add, deviations, axis, wide, None, keepdims, NO_VALUE, where)
    final = dtype_of(a) if dtype is None and dtype_of(a) == np.float16 and out is None else wide
    result = divided(total, np.maximum(count - ddof, 0), final)
    return result if out is None else into(out, as_array(result), SAME)


@method("var")
def var_method(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE):
    return var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


@method("std")
def std_method(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE):
    return std(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean)


@implements(np.std)
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=NO_VALUE, correction=NO_VALUE):
    not_scalar_into(a, out)
    variance = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    kind = dtype_of(variance)
    result = np.sqrt(variance)
    result = result if dtype_of(result) == kind else cast(result, kind)
    return result if out is None else finish(result, (), 0, False, out)


# ---- where the extrema are -------------------------------------------------------------------------------------------


def flat_index(indices, extents):
    """The position in C order of a point of an index space."""
    position = 0
    for index, extent in zip(indices, extents):
        position = position * extent + index
    return position


def arg_extremum(a, axis, out, keepdims, ufunc, wins, name):
    not_scalar_into(a, out)
    a = as_array(a)
    rank = a.ndim
    if axis is None:
        a = reshape(a, (a.size,)) if rank > 1 and layout_of(a) == "C" else a
        axes = reduction_axes(None, a.ndim)
    else:
        axes = (single_axis(axis, 1 if a.ndim == 0 else a.ndim),) if a.ndim > 0 else ()
    kind = dtype_of(a)
    extents = tuple([a.shape[axis] for axis in axes])
    check(count_along(a, axes) != 0, "ValueError", "attempt to get " + name + " of an empty sequence")

    def contribute(x, *indices):
        return x, cast(flat_index(indices, extents), "int64")

    def better(best, at, x, position):
        # Ties keep what is there; the first NaN beats every number and stays.
        takes = wins(x, best)
        if kind.kind in "fc":
            takes = (takes | np.isnan(x)) & ~np.isnan(best)
        return prim("select", takes, x, best), prim("select", takes, position, at)

    first = (constant(identity_of(ufunc, kind), kind), constant(0, "int64"))
    _, at = reduce_axes(a, axes, first, contribute, better)
    return finish(in_order(at), reduction_axes(axis, rank), rank, keepdims, out)


@implements(np.argmax)
@method("argmax")
def argmax(a, axis=None, out=None, *, keepdims=False):
    return arg_extremum(a, axis, out, keepdims, np.maximum, lambda x, best: x > best, "argmax")


@implements(np.argmin)
@method("argmin")
def argmin(a, axis=None, out=None, *, keepdims=False):
    return arg_extremum(a, axis, out, keepdims, np.minimum, lambda x, best: x < best, "argmin")


__all__ = ["checked_dtype", "reduce_ufunc"]
