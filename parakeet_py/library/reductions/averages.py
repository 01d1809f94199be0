"""Weighted averages, covariance and correlation."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    prim,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, must_be_int, reduction_axes, result_kind

# ---- averages --------------------------------------------------------------------------------------------------------


@static
def average_kind(kind, weights):
    return np.result_type(kind, weights, "f8") if kind.kind in "biu" else np.result_type(kind, weights)


@static
def weight_index(axes, rank):
    """The index that lays weights over some axes of an array."""
    return tuple(slice(None) if axis in axes else None for axis in range(rank))


@static
def in_order_of_axes(axis):
    return not isinstance(axis, tuple | list) or list(axis) == sorted(axis)


def spread_over(scale, result):
    """The sum of weights in the shape of the averages, and an array of its own."""
    return np.broadcast_to(scale, result.shape).copy() if is_array(result) else scale


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = as_array(a)
    if weights is None:
        mean = a.mean(axis, keepdims=keepdims)
        sizes = as_array(mean).size
        check(sizes > 0, "ZeroDivisionError", "division by zero")  # NumPy divides the two sizes
        if returned:
            return mean, spread_over(cast(a.size / max(sizes, 1), dtype_of(mean)), mean)
        return mean
    weights = as_array(weights)
    axes = reduction_axes(axis, a.ndim)
    if weights.ndim != a.ndim:
        if axis is None:
            unsupported("Axis must be specified when shapes of a and weights differ.")
        if weights.ndim != len(axes):
            unsupported("Shape of weights must be consistent with shape of a along specified axis.")
        if not in_order_of_axes(axis):
            hand_back("np.average with weights of several axes, out of order")
        for own, other in zip(axes, weights.shape):
            message = "Shape of weights must be consistent with shape of a along specified axis."
            check(a.shape[own] == other, "ValueError", message)
        weights = weights[weight_index(axes, a.ndim)]
        same = False
    else:
        for own, other in zip(a.shape, weights.shape):
            check(own == other, "Deoptimize", "weights of another shape")
        same = True
    kind = average_kind(dtype_of(a), dtype_of(weights))
    scale = weights.sum(axis, kind, keepdims=keepdims)
    check(~np.any(scale == 0.0), "ZeroDivisionError", "Weights sum to zero, can't be normalized")
    result = np.multiply(a, weights, dtype=kind).sum(axis, keepdims=keepdims) / scale
    if returned:
        return result, scale if same else spread_over(scale, result)
    return result


# ---- covariance ------------------------------------------------------------------------------------------------------


def observations(m, kind, rowvar):
    """A variable in each row."""
    made = cast(m, kind)
    if m.ndim == 0:
        return made[None, None]
    if m.ndim == 1:
        return made[None, :]
    return made if rowvar else made.T


@static
def covariance_kind(dtype, *kinds):
    kind = np.result_type(*kinds, np.float64) if dtype is None else np.dtype(dtype)
    if kind.kind not in "fc":
        raise TypeError("covariances that are no floats")
    return kind


def weights_of_observations(weights, count, frequencies):
    """Weights as float64, checked as NumPy does."""
    made = converted(as_array(weights), "float64")
    if frequencies:
        check(np.all(made == np.around(made)), "TypeError", "fweights must be integer")
    if made.ndim != 1:
        unsupported("weights of observations are a line")
    name = "fweights" if frequencies else "aweights"
    check(made.shape[0] == count, "RuntimeError", "incompatible numbers of samples and " + name)
    check(~np.any(made < 0), "ValueError", name + " cannot be negative")
    return made


def covariance(m, y, rowvar, bias, ddof, fweights, aweights, dtype):
    """The matrix of covariances."""
    m = as_array(m)
    if m.ndim > 2 or (y is not None and as_array(y).ndim > 2):
        unsupported("m has more than 2 dimensions")
    if y is None:
        x = observations(m, covariance_kind(dtype, dtype_of(m)), rowvar)
        check(x.shape[0] > (0 if m.ndim < 2 else 1), "Deoptimize", "the covariance of no variables, or of one row")
    else:
        other = as_array(y)
        kind = covariance_kind(dtype, dtype_of(m), dtype_of(other))
        if other.ndim == 2 and not rowvar:
            check(other.shape[0] != 1, "Deoptimize", "one row of observations in columns")
        x = observations(m, kind, rowvar)
        check(x.shape[0] > 0, "Deoptimize", "the covariance of no variables")
        x = np.concatenate((x, observations(other, kind, rowvar)), 0)
        check(x.shape[0] > 1, "Deoptimize", "the covariance of one row")
    kind, count = dtype_of(x), x.shape[1]
    if ddof is not None:
        must_be_int(ddof)
    correction = ddof if ddof is not None else (0 if bias else 1)
    if fweights is not None and aweights is not None:
        hand_back("np.cov with two kinds of weights")
    if fweights is None and aweights is None:
        factor = max(count - correction, 0)
        x = x - x.mean(1, keepdims=True)
        weighted = x
    else:
        weights = weights_of_observations(fweights if aweights is None else aweights, count, aweights is None)
        total = weights.sum()
        check(total != 0.0, "ZeroDivisionError", "Weights sum to zero, can't be normalized")
        factor = total
        if correction != 0:
            factor = total - (correction if aweights is None else correction * (weights * weights).sum() / total)
        factor = np.maximum(factor, 0.0)
        average_of_rows = np.multiply(x, weights).sum(1) / cast(total, result_kind(kind, np.dtype("float64")))
        x = cast(x - average_of_rows[:, None], kind)
        weighted = x * weights
    product = np.dot(x, np.conjugate(weighted).T if kind.kind == "c" else weighted.T)
    product = cast(product * np.true_divide(1, factor), dtype_of(product))
    return product


def is_single(m, y):
    """Whether there is one variable for sure."""
    return y is None and as_array(m).ndim < 2


@implements(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    product = covariance(m, y, rowvar, bias, ddof, fweights, aweights, dtype)
    return product.reshape(()) if is_single(m, y) else product


@implements(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    c = covariance(x, y, rowvar, False, None, None, None, dtype)
    if is_single(x, y):
        return c[0, 0] / c[0, 0]
    deviation = np.sqrt(np.real(np.diagonal(c)).copy())
    c = c / deviation[:, None]
    c = c / deviation[None, :]
    kind = dtype_of(c)

    def limited(value):
        if kind.kind == "c":
            return prim("complex", np.clip(prim("real", value), -1, 1), np.clip(prim("imag", value), -1, 1))
        return np.clip(value, -1, 1)

    return as_array(elementwise(limited, c))
