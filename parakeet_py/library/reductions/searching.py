"""Counting and searching in order: bincount, searchsorted, digitize, interp."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    as_numeric,
    cast,
    check,
    constant,
    copy,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_sequence,
    load,
    on_device,
    prim,
    reduce_axes,
    reshape,
    scatter,
    unsupported,
)
from parakeet_py.library.registry import implements, method, procedure, static
from parakeet_py.library.shared import converted, in_order, mapped, must_be_int, result_kind
from parakeet_py.operators import prange


def add(old, new):
    return old + new


# ---- bincount --------------------------------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    x = as_array(x)
    if x.ndim != 1:
        unsupported("object of too small depth for desired array")
    if is_sequence(minlength) or minlength is None or dtype_of(minlength).kind == "b":
        hand_back("np.bincount without a minlength")
    must_be_int(minlength)
    if dtype_of(minlength).kind == "b":
        hand_back("np.bincount with a truth for a length")
    check(minlength >= 0, "ValueError", "'minlength' must not be negative")
    if dtype_of(x).kind not in "iub":
        hand_back("np.bincount of numbers that are not integers")
    if weights is None and on_device():
        if dtype_of(x).itemsize == 1:
            return counts_of_bytes(x, int(minlength))
        if minlength > 0:
            found = counts_below(x, int(minlength))
            if found[minlength] == 0:
                return copy(found[:minlength])
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


def counts_below(x, bins):
    """How often each number below `bins` occurs, and then how many others there are, negative ones too: one pass."""
    counts, last = np.zeros(bins + 1, "int64"), cast(bins, "int64")

    def place(v):
        number = cast(v, "int64")
        inside = (number >= constant(0, "int64")) & (number < last)
        return prim("select", inside, number, last)

    scatter(counts, elementwise(place, x), constant(1, "int64"), add)
    return counts


def counts_of_bytes(x, minlength):
    """`np.bincount` of integers of 8 bits: one pass, as their range is known."""
    found = counts_below(x, 256)
    check(found[256] == 0, "ValueError", "'list' argument must have no negative elements")
    (high,) = reduce_axes(
        found[:256],
        (0,),
        (constant(-1, "int64"),),
        lambda v, i: (prim("select", v > constant(0, "int64"), i, constant(-1, "int64")),),
        lambda a, b: (np.maximum(a, b),),
    )
    count = int(high) + 1
    counts = np.zeros(max(count, minlength), "int64")
    counts[:count] = found[:count]
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
    zero, one = constant(0, "int64"), constant(1, "int64")  # whose sums are not checked for overflow
    low, left_over = zero, cast(count, "int64")
    while left_over > one:
        half = left_over >> one
        low = prim("select", comes_before(at(low + half - one), x, left), low + half, low)
        left_over = left_over - half
    if left_over == one:
        low = low + cast(comes_before(at(low), x, left), "int64")
    return int(low)


LONG_TABLE = 64  # elements; in shorter ones every number is looked for on its own, which needs no memory and no order
BLOCK = 256  # numbers that are looked for one from the other
NEAR = 4  # elements behind the place of the number before, which are looked at one by one
FAR = 64  # elements behind the place of the number before
LOST = 4  # numbers, in a row, that are not near the one before: those of this block are in no order


@procedure
def insertion_points(a, x, kind, left):
    """The insertion points of many numbers. Most often numbers are in order, and the place of one is a little behind
    that of the one before: it is looked for there in growing steps. Numbers in no order are looked for everywhere."""
    count, many = a.shape[0], x.shape[0]
    found = allocate((many,), "int64")

    def at(i):
        return cast(load(a, i), kind)

    for block in prange((many + BLOCK - 1) // BLOCK):
        low, lost = 0, 0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, many)):
            v = cast(load(x, i), kind)
            start, span = 0, count
            if lost < LOST:
                lost = lost + 1
                if low == 0 or comes_before(at(low - 1), v, left):
                    step, span, near = 1, 0, min(low + NEAR, count)
                    while low < near and comes_before(at(low), v, left):
                        low = low + 1
                    if low == near:
                        while step <= FAR and low + step <= count and comes_before(at(low + step - 1), v, left):
                            low, step = low + step, step * 2
                        span = min(step - 1, count - low)
                    if step <= FAR:
                        start, lost = low, 0
                    else:
                        span = count
            low = start + insertion_point(lambda j: at(start + j), span, v, left)  # noqa: B023 (called at once)
            found[i] = low
    return found


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
    if a.ndim != 1:
        unsupported("object too deep for desired array")
    left = is_left(side)
    kind = result_kind(dtype_of(a), dtype_of(v))
    count = a.shape[0]
    if sorter is not None:
        order = as_array(sorter)
        if order.ndim != 1 or dtype_of(order).kind not in "iu" or dtype_of(order) == np.uint64:
            unsupported("could not parse sorter argument")
        check(order.shape[0] == count, "ValueError", "sorter.size must equal a.size")
        check(np.all((order >= 0) & (order < count)), "Deoptimize", "a sorter with positions out of range")

    def element(i):
        return cast(load(a, i if sorter is None else int(load(order, i))), kind)

    def place(x):
        return cast(insertion_point(element, count, cast(x, kind), left), "int64")

    if sorter is not None or on_device() or not is_array(v) or v.ndim == 0 or count < LONG_TABLE:
        return mapped(place, v)
    v = in_order(v)
    return reshape(insertion_points(a, reshape(v, (v.size,)), kind, left), v.shape)


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
    if dtype_of(bins).kind == "c":
        unsupported("Cannot cast array data from complex numbers to float64")
    rising = is_monotonic(bins, lambda a, b: cast(a, "float64") <= cast(b, "float64"))
    falling = is_monotonic(bins, lambda a, b: cast(a, "float64") >= cast(b, "float64"))
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

    if on_device() or not is_array(x) or x.ndim == 0 or count < LONG_TABLE:
        return mapped(place, x)
    x = in_order(x)
    table = generate((count,), lambda i: load(bins, i if rising else count - 1 - i))
    found = insertion_points(table, reshape(x, (x.size,)), kind, left)
    return reshape(found, x.shape) if rising else count - reshape(found, x.shape)


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
    real, imag = interpolation(xp, fp, left, right, "real"), interpolation(xp, fp, left, right, "imag")

    def value_at(point, j):
        return prim("complex", real(point, j), imag(point, j)) if dtype_of(fp).kind == "c" else real(point, j)

    if on_device() or not is_array(x) or x.ndim == 0:
        return mapped(lambda point: value_at(point, interval_of(xp, cast(point, "float64"))), x)
    x = in_order(x)
    points = reshape(insertion_points(xp, reshape(x, (x.size,)), np.float64, False), x.shape)
    return generate(x.shape, lambda *place: value_at(load(x, *place), interval_before(xp, load(points, *place))))


def interval_of(xp, v):
    """The number of the interval between sample points where a number lies, those at the ends for what is beyond."""
    return interval_before(xp, insertion_point(lambda i: cast(load(xp, i), "float64"), xp.shape[0], v, False))


def interval_before(xp, point):
    return max(min(point - 1, xp.shape[0] - 2), 0)


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
    """The function of a point, and of the number of its interval, that interpolates one part of the samples."""
    last = xp.shape[0] - 1
    below = part_of(load(fp, 0) if left is None else left, part)
    above = part_of(load(fp, last) if right is None else right, part)

    def abscissa(i):
        return cast(load(xp, i), "float64")

    def ordinate(i):
        return part_of(load(fp, i), part)

    def value_at(point, j):
        v = cast(point, "float64")
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
