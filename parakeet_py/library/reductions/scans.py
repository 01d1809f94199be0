"""Running sums and products, differences."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import ravel
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    cast,
    constant,
    copy,
    dtype_of,
    hand_back,
    load,
    scan_axis,
    store,
    unsupported,
)
from parakeet_py.library.reductions.reductions import (
    can_reduce,
    identity_of,
    neutral,
    no_first_nan,
    one_by_one,
    reduction_kind,
    rounds_in_exact_code,
)
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import ALL, NO_VALUE, SAME, check_output_cast, converted, into, single_axis


@static
def can_accumulate(ufunc):
    return can_reduce(ufunc) and ufunc not in (np.hypot, np.logaddexp, np.logaddexp2, np.gcd)


def accumulate(ufunc, a, axis, dtype, out):
    """ufunc.accumulate along one axis."""
    kind = reduction_kind(ufunc, dtype_of(a), dtype, None if out is None else dtype_of(out))
    no_first_nan(ufunc, kind)
    if rounds_in_exact_code(ufunc, kind) and one_by_one(ufunc, kind):
        hand_back("a running product of complex numbers, in exact code")
    if one_by_one(ufunc, kind):
        result = products_in_order(a, axis, kind)
    else:
        start = constant(neutral(ufunc, kind), kind)
        result = scan_axis(a, axis, start, lambda x: cast(x, kind), lambda s, x: ufunc(s, x))
    return result if out is None else into(out, result, SAME)


def products_in_order(a, axis, kind):
    """The running product along an axis, which begins with the first element itself."""
    if a.ndim == 1:  # the product so far stays in registers
        made = allocate(a.shape, kind)
        if a.shape[0] > 0:
            product = cast(load(a, 0), kind)
            store(made, 0, product)
            for i in range(1, a.shape[0]):
                product = cast(load(a, i), kind) * product
                store(made, i, product)
        return made
    made = copy(cast(a, kind), "K")
    before = (ALL,) * axis
    for i in range(1, made.shape[axis]):
        made[(*before, i)] *= made[(*before, i - 1)]
    return made


def running(ufunc, a, axis, dtype, out):
    a = as_array(a)
    if axis is None:
        a = ravel(a)
        axis = 0
    elif a.ndim == 0:
        a = a[None]
    return accumulate(ufunc, a, single_axis(axis, a.ndim), dtype, out)


@implements(np.cumsum)
@method("cumsum")
def cumsum(a, axis=None, dtype=None, out=None):
    return running(np.add, a, axis, dtype, out)


@implements(np.cumprod)
@method("cumprod")
def cumprod(a, axis=None, dtype=None, out=None):
    return running(np.multiply, a, axis, dtype, out)


def cumulative(ufunc, x, axis, dtype, out, include_initial):
    """np.cumulative_sum and np.cumulative_prod."""
    x = as_array(x)
    if x.ndim == 0:
        unsupported("array must be at least one dimensional")
    if axis is None:
        if x.ndim != 1:
            unsupported("for arrays which have more than one dimension axis argument is required")
        axis = 0
    if include_initial and out is not None:
        hand_back("a cumulative sum or product with its initial value and out")
    result = running(ufunc, x, axis, dtype, out)
    if not include_initial:
        return result
    shape = result.shape[: single_axis(axis, x.ndim)] + (1,) + result.shape[single_axis(axis, x.ndim) + 1 :]
    first = np.full(shape, identity_of(ufunc, dtype_of(result)), dtype_of(result))
    return np.concatenate((first, result), axis)


@implements(np.cumulative_sum)
def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    return cumulative(np.add, x, axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    return cumulative(np.multiply, x, axis, dtype, out, include_initial)


def replaced_nan(a, value):
    """The array with a number instead of each NaN."""
    if dtype_of(a).kind in "fc":
        return np.where(np.isnan(a), constant(value, dtype_of(a)), a)
    return a


@implements(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    return running(np.add, replaced_nan(as_array(a), 0), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    return running(np.multiply, replaced_nan(as_array(a), 1), axis, dtype, out)


@static
def check_order(n, rank):
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if rank == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    return tuple(range(n))


def as_slab(a, like, axis):
    """An array, or a scalar spread over an extent of 1, to be put before or after another."""
    a = as_array(a)
    if a.ndim == 0:
        return np.broadcast_to(a, like.shape[:axis] + (1,) + like.shape[axis + 1 :])
    return a


@implements(np.diff)
def diff(a, n=1, axis=-1, prepend=NO_VALUE, append=NO_VALUE):
    if n == 0:
        return a
    a = as_array(a)
    rounds = check_order(n, a.ndim)
    axis = single_axis(axis, a.ndim)
    if prepend is not NO_VALUE:
        a = np.concatenate((as_slab(prepend, a, axis), a), axis)
    if append is not NO_VALUE:
        a = np.concatenate((a, as_slab(append, a, axis)), axis)
    before = (ALL,) * axis
    for _ in rounds:
        later, earlier = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = np.not_equal(later, earlier) if dtype_of(a).kind == "b" else np.subtract(later, earlier)
    return a


@implements(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    a = ravel(ary)
    made = np.subtract(a[1:], a[:-1])
    kind = dtype_of(a)
    if to_begin is not None:
        made = np.concatenate((end_of_differences(to_begin, kind), made))
    return made if to_end is None else np.concatenate((made, end_of_differences(to_end, kind)))


def end_of_differences(values, kind):
    """Values in front of differences or behind them, in the dtype of the differences."""
    values = ravel(as_array(values))
    check_output_cast(dtype_of(values), kind, "same_kind")
    return converted(values, kind)
