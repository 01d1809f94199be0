"""Counting and searching in order: bincount, histogram, searchsorted, digitize, interp; averages and covariance."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    cast,
    check,
    constant,
    copy,
    dtype_of,
    elementwise,
    hand_back,
    is_array,
    is_sequence,
    is_weak,
    load,
    prim,
    reduce_axes,
    scatter,
    unsupported,
)
from parakeet_py.library.reductions import identity_of
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shape import ravel
from parakeet_py.library.shared import converted, kind_of, mapped, reduction_axes, result_kind


def add(old, new):
    return old + new


# ---- bincount --------------------------------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    x = as_array(x)
    if x.ndim != 1:
        unsupported("object of too small depth for desired array")
    if is_sequence(minlength) or minlength is None:
        hand_back("np.bincount without a minlength")
    check(minlength >= 0, "ValueError", "'minlength' must not be negative")
    if dtype_of(x).kind not in "iub":
        hand_back("np.bincount of numbers that are not integers")
    low, high = reduce_axes(
        x,
        (0,),
        (constant(0, "int64"), constant(-1, "int64")),
        lambda v, i: (cast(v, "int64"), cast(v, "int64")),
        lambda a, b, c, d: (np.minimum(a, c), np.maximum(b, d)),
    )
    check(low >= 0, "ValueError", "'list' argument must have no negative elements")
    counts = np.zeros(max(int(high) + 1, int(minlength)), "int64" if weights is None else "float64")
    if weights is None:
        scatter(counts, x, constant(1, "int64"), add)
    else:
        weights = as_array(weights)
        check(x.shape[0] != 0, "Deoptimize", "np.bincount of nothing, which counts without weights")
        message = "The weights and list don't have the same length."
        check(weights.shape[0] == x.shape[0], "ValueError", message)
        scatter(counts, x, converted(weights, "float64"), add)
    return counts


# ---- searching in order ----------------------------------------------------------------------------------------------


def precedes(x, y):
    """x < y, NaN after everything else."""
    if dtype_of(x).kind in "fc":
        return (x < y) | (np.isnan(y) & ~np.isnan(x))
    return x < y


def insertion_point(at, count, x, left):
    """The first position whose element (`at(position)`, in order) does not come before x; after those equal to x if not
    `left`. The number of steps depends on the count only, and no step branches."""
    low = 0
    while count > 1:
        half = count // 2
        low = prim("select", comes_before(at(low + half - 1), x, left), low + half, low)
        count = count - half
    if count == 1 and comes_before(at(low), x, left):
        low = low + 1
    return low


def comes_before(other, x, left):
    return precedes(other, x) if left else ~precedes(x, other)


@static
def is_left(side):
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    return side == "left"


@implements(np.searchsorted)
def searchsorted(a, v, side="left", sorter=None):
    a, v = as_array(a), as_numeric(v)
    if sorter is not None:
        hand_back("np.searchsorted with a sorter")
    if a.ndim != 1:
        unsupported("object too deep for desired array")
    left = is_left(side)
    kind = result_kind(dtype_of(a), dtype_of(v))
    count = a.shape[0]

    def place(x):
        return cast(insertion_point(lambda i: cast(load(a, i), kind), count, cast(x, kind), left), "int64")

    return mapped(place, v)


@method("searchsorted")
def searchsorted_method(a, v, side="left", sorter=None):
    return searchsorted(a, v, side, sorter)


def is_monotonic(a, holds):
    pairs = elementwise(holds, a[:-1], a[1:])
    return bool(pairs.all())


@implements(np.digitize)
def digitize(x, bins, right=False):
    x, bins = as_numeric(x), as_array(bins)
    if dtype_of(x).kind == "c":
        unsupported("x may not be complex")
    if bins.ndim != 1:
        unsupported("object too deep for desired array")
    rising = is_monotonic(bins, lambda a, b: a <= b)
    falling = is_monotonic(bins, lambda a, b: a >= b)
    check(rising | falling, "ValueError", "bins must be monotonically increasing or decreasing")
    kind = result_kind(dtype_of(x), dtype_of(bins))
    count = bins.shape[0]
    left = bool(right)

    def place(value):
        value = cast(value, kind)
        if rising:
            found = insertion_point(lambda i: cast(load(bins, i), kind), count, value, left)
        else:
            found = count - insertion_point(lambda i: cast(load(bins, count - 1 - i), kind), count, value, left)
        return cast(found, "int64")

    return mapped(place, x)


@implements(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    x, xp, fp = as_numeric(x), as_array(xp), as_array(fp)
    if xp.ndim != 1 or fp.ndim != 1:
        unsupported("Data points must be 1-D sequences")
    if period is not None:
        left, right = None, None
        check(period != 0, "ValueError", "period must be a non-zero value")
        check(xp.shape[0] == fp.shape[0], "ValueError", "fp and xp are not of the same length")
        x, xp, fp = in_one_period(x, xp, fp, abs(period))
    check(xp.shape[0] != 0, "ValueError", "array of sample points is empty")
    check(xp.shape[0] == fp.shape[0], "ValueError", "fp and xp are not of the same length.")
    if dtype_of(fp).kind != "c":
        return mapped(interpolation(xp, fp, left, right, "real"), x)
    real, imag = interpolation(xp, fp, left, right, "real"), interpolation(xp, fp, left, right, "imag")
    return mapped(lambda point: prim("complex", real(point), imag(point)), x)


def in_one_period(x, xp, fp, period):
    """Points and samples within one period, the samples in order and with a neighbour on both sides."""
    x = np.mod(np.asarray(x, np.float64), period)
    xp = np.mod(np.asarray(xp, np.float64), period)
    order = np.argsort(xp, kind="stable")
    xp, fp = xp[order], fp[order]
    check((xp[1:] > xp[:-1]).all(), "Deoptimize", "equal sample points, whose order is NumPy's choice")
    return x, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))


def part_of(value, part):
    """The real or imaginary part of a number as float64."""
    return cast(prim(part, cast(value, "complex128")) if part == "imag" else value, "float64")


def interpolation(xp, fp, left, right, part):
    """The function of a point that interpolates one part of the samples."""
    last = xp.shape[0] - 1
    below = part_of(load(fp, 0) if left is None else left, part)
    above = part_of(load(fp, last) if right is None else right, part)

    def abscissa(i):
        return cast(load(xp, i), "float64")

    def ordinate(i):
        return part_of(load(fp, i), part)

    def value_at(point):
        v = cast(point, "float64")
        place = insertion_point(abscissa, last + 1, v, False) - 1
        j = max(min(place, last - 1), 0)
        k = min(j + 1, last)
        x0, x1, y0, y1 = abscissa(j), abscissa(k), ordinate(j), ordinate(k)
        slope = (y1 - y0) / (x1 - x0)
        result = slope * (v - x0) + y0
        result = prim("select", prim("isnan", result), slope * (v - x1) + y1, result)
        result = prim("select", prim("isnan", result) & (y0 == y1), y0, result)
        result = prim("select", v == x0, y0, result)
        result = prim("select", v == abscissa(last), ordinate(last), result)
        result = prim("select", v > abscissa(last), above, prim("select", v < abscissa(0), below, result))
        missing = v if part == "real" else constant(0.0, "float64")
        return prim("select", cast(prim("isnan", v) & (last != 0), "bool"), missing, result)

    return value_at


# ---- histogram -------------------------------------------------------------------------------------------------------


def range_of_values(a):
    """The least and the greatest element (0 and 1 if there are none), finite."""
    kind = dtype_of(a)
    low, high = reduce_axes(
        a,
        (0,),
        (constant(identity_of(np.minimum, kind), kind), constant(identity_of(np.maximum, kind), kind)),
        lambda x, i: (x, x),
        lambda a, b, c, d: (np.minimum(a, c), np.maximum(b, d)),
    )
    empty = cast(a.shape[0] == 0, "bool")
    low, high = prim("select", empty, constant(0, kind), low), prim("select", empty, constant(1, kind), high)
    if kind.kind in "iu":
        return cast(low, "float64"), cast(high, "float64")
    message = "autodetected range of [{0}, {1}] is not finite"
    check(np.isfinite(low) & np.isfinite(high), "ValueError", message, cast(low, "float64"), cast(high, "float64"))
    return low, high


def given_range(limits):
    low, high = limits
    check(low <= high, "ValueError", "max must be larger than min in range parameter.")
    message = "supplied range of [{0}, {1}] is not finite"
    check(np.isfinite(low) & np.isfinite(high), "ValueError", message, low, high)
    return float(low) if is_weak(low) else low, float(high) if is_weak(high) else high


def spread(low, high):
    """The range, made wider where it is empty."""
    half = 0.5 if low == high else 0.0
    return low - half, high + half


@static
def bin_kind(*kinds):
    found = result_of(*kinds)
    return np.dtype("float64") if found.kind in "iub" else found


def result_of(*kinds):
    weak = {int: 0, float: 0.0, complex: 0j}
    return np.result_type(*(weak.get(kind, kind) for kind in kinds))


def even_bins(a, count, limits):
    """Edges of equal bins, and for each element its bin (the number of bins for those outside)."""
    check(count >= 1, "ValueError", "`bins` must be positive, when an integer")
    low, high = range_of_values(a) if limits is None else given_range(limits)
    low, high = spread(low, high)
    kind = bin_kind(kind_of(low), kind_of(high), dtype_of(a))
    edges = np.linspace(low, high, count + 1, True, False, kind)
    message = "Too many bins for data range. Cannot create {0} finite-sized bins."
    check(is_monotonic(edges, lambda x, y: x < y), "ValueError", message, count)
    first, last = cast(low, kind), cast(high, kind)
    width = last - first

    def place(x):
        v = cast(x, kind)
        inside = (v >= first) & (v <= last)
        guess = int(prim("select", inside, (v - first) / width * count, constant(0, kind)))
        guess = max(min(guess, count - 1), 0)
        guess = guess - 1 if v < load(edges, guess) and guess > 0 else guess
        guess = guess + 1 if v >= load(edges, guess + 1) and guess != count - 1 else guess
        return cast(guess if inside else count, "int64")

    return edges, elementwise(place, a)


def given_bins(a, edges):
    """For each element its bin between given edges (the number of bins for those outside)."""
    rising = is_monotonic(edges, lambda x, y: x <= y)
    check(rising, "ValueError", "`bins` must increase monotonically, when an array")
    kind = result_kind(dtype_of(a), dtype_of(edges))
    count = edges.shape[0] - 1
    if edges.shape[0] == 0:
        unsupported("a histogram without edges")

    def place(x):
        v = cast(x, kind)
        first, last = cast(load(edges, 0), kind), cast(load(edges, count), kind)
        inside = (v >= first) & (v <= last)
        found = insertion_point(lambda i: cast(load(edges, i), kind), count + 1, v, False) - 1
        return cast(min(found, count - 1) if inside else count, "int64")

    return elementwise(place, a)


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    a = as_array(a)
    if isinstance(bins, str) or dtype_of(a).kind in "bc":
        hand_back("np.histogram with bins found automatically, or of bools")
    if weights is not None:
        weights = as_array(weights)
        if weights.ndim != a.ndim:
            unsupported("weights should have the same shape as a.")
        for own, other in zip(a.shape, weights.shape):
            check(own == other, "ValueError", "weights should have the same shape as a.")
        weights = ravel(weights)
        if dtype_of(weights).kind == "c":
            hand_back("np.histogram with complex weights")
    a = ravel(a)
    bins = as_numeric(bins)
    if is_array(bins) and bins.ndim > 0:
        edges = bins
        places = given_bins(a, edges)
    else:
        edges, places = even_bins(a, int(bins), range)
    count = edges.shape[0] - 1
    sums = np.zeros(count + 1, "int64" if weights is None else "float64")
    scatter(sums, places, constant(1, "int64") if weights is None else converted(weights, "float64"), add)
    kind = np.dtype("int64") if weights is None else dtype_of(weights)
    counted = copy(sums[:count]) if dtype_of(sums) == kind else cast(sums[:count], kind)
    if density:
        return counted / cast(np.diff(edges), "float64") / counted.sum(), edges
    return counted, edges


# ---- averages --------------------------------------------------------------------------------------------------------


@static
def average_kind(kind, weights):
    return np.result_type(kind, weights, "f8") if kind.kind in "biu" else np.result_type(kind, weights)


@static
def weight_index(axes, rank):
    """The index that lays weights over some axes of an array."""
    return tuple(slice(None) if axis in axes else None for axis in range(rank))


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = as_array(a)
    if weights is None:
        if returned:
            hand_back("np.average with the sum of no weights")
        mean = a.mean(axis, keepdims=keepdims)
        check(as_array(mean).size > 0, "ZeroDivisionError", "division by zero")  # NumPy divides the two sizes
        return mean
    weights = as_array(weights)
    axes = reduction_axes(axis, a.ndim)
    if weights.ndim != a.ndim:
        if axis is None:
            unsupported("Axis must be specified when shapes of a and weights differ.")
        if weights.ndim != len(axes):
            unsupported("Shape of weights must be consistent with shape of a along specified axis.")
        for own, other in zip(axes, weights.shape):
            message = "Shape of weights must be consistent with shape of a along specified axis."
            check(a.shape[own] == other, "ValueError", message)
        weights = weights[weight_index(axes, a.ndim)]
    else:
        for own, other in zip(a.shape, weights.shape):
            check(own == other, "Deoptimize", "weights of another shape")
    kind = average_kind(dtype_of(a), dtype_of(weights))
    scale = weights.sum(axis, kind, keepdims=keepdims)
    check(~np.any(scale == 0.0), "ZeroDivisionError", "Weights sum to zero, can't be normalized")
    result = np.multiply(a, weights, dtype=kind).sum(axis, keepdims=keepdims) / scale
    if returned:
        if is_array(scale) and weights.ndim != a.ndim:
            hand_back("np.average with the sum of its weights")
        return result, scale
    return result


@implements(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    m = as_array(m)
    if y is not None or fweights is not None or aweights is not None or m.ndim != 2:
        hand_back("np.cov of these arguments")
    kind = result_kind(dtype_of(m), np.dtype("float64")) if dtype is None else np.dtype(dtype)
    x = cast(m, kind)
    x = x if rowvar else x.T
    correction = ddof if ddof is not None else (0 if bias else 1)
    factor = max(x.shape[1] - correction, 0)
    x = x - x.mean(1, keepdims=True)
    product = np.dot(x, np.conjugate(x).T if kind.kind == "c" else x.T)
    check(x.shape[0] > 1, "Deoptimize", "the covariance of a single variable")
    return product * np.true_divide(1, factor)
