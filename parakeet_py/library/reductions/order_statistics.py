"""Order statistics: median, quantile, percentile, and those that leave NaN out.

Whatever is reduced is laid out as lines of a new matrix; each line is brought into order only around the ranks that are
asked for (Hoare, Algorithm 65: FIND), or wholly where many are, and on GPUs. A quantile q of n elements lies at a
*virtual index*, a real number, between two ranks; the methods (Hyndman and Fan, Sample Quantiles in Statistical
Packages, The American Statistician 50, 1996) differ in that index and in the weight of the upper rank. Arithmetic
follows NumPy's in every step and dtype, so that results are equal to the last bit.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    constant,
    copy,
    dtype_of,
    generate,
    hand_back,
    is_array,
    is_weak,
    load,
    on_device,
    order_of,
    permute,
    prim,
    reshape,
)
from parakeet_py.library.reductions.reductions import axes_of_moment
from parakeet_py.library.reductions.sorting import size_of, sort_lines
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import ALL, NO_VALUE, finish, into, keeping_index, other_axes, result_kind

MANY = 24  # quantiles for which a line is sorted rather than searched


# ---- lines and ranks -------------------------------------------------------------------------------------------------


def all_lines(a, axes, kept):
    """A new matrix of everything that several axes run through, a line for each point of those that are kept."""
    count = size_of([a.shape[axis] for axis in axes])
    return reshape(copy(permute(a, kept + axes), "C"), (size_of([a.shape[axis] for axis in kept]), count))


@static
def kept_in_order(axes, order):
    """The other axes, from the slowest to the fastest where only one is left out, else as they stand."""
    return tuple(axis for axis in (order if len(axes) == 1 else sorted(order)) if axis not in axes)


@static
def in_c_order(axes):
    return list(axes) == sorted(axes)


@static
def places_of(axes):
    """Where each of some axes stands among them in order."""
    return tuple(axes.index(axis) for axis in sorted(axes))


def select_in_line(keys, line, k, low, high):
    """Bring the element of rank k of a part of a line without NaN to its place, none before it greater, none after it
    less (Hoare's FIND). The part becomes smaller in every turn, whatever the line holds: it also ends where the checks
    of a loop over lines are made ahead of its stores."""
    while low < high:
        pivot = pivot_of(keys, line, low, high)
        start = split_line(keys, line, low, high, pivot, True)
        if start > low:
            low, high = (low if k < start else start), (start - 1 if k < start else high)
        else:  # the pivot is the least: everything equal to it is where it belongs
            start = max(split_line(keys, line, low, high, pivot, False), low + 1)
            low, high = (start if k >= start else k), (high if k >= start else k)


def split_line(keys, line, low, high, pivot, less):
    """Bring what is less than a pivot (or not greater) to the front of a part of a line, without a branch (Lomuto's
    partition); where the others start."""
    start = low
    for i in range(low, high + 1):
        x, other = load(keys, line, i), load(keys, line, start)
        keys[line, i] = other
        keys[line, start] = x
        start = prim("add", start, prim("select", x < pivot if less else x <= pivot, 1, 0))
    return start


def pivot_of(keys, line, low, high):
    """The median of three elements; of three such medians where the part is long."""
    step = (high - low) // 8
    first = median_of_three(keys, line, low, low + step, low + 2 * step)
    centre = median_of_three(keys, line, low + 3 * step, (low + high) // 2, low + 5 * step)
    last = median_of_three(keys, line, high - 2 * step, high - step, high)
    return middle_of(first, centre, last)


def median_of_three(keys, line, i, j, k):
    return middle_of(load(keys, line, i), load(keys, line, j), load(keys, line, k))


def middle_of(x, y, z):
    low, high = prim("select", x < y, x, y), prim("select", x < y, y, x)
    return prim("select", z < low, low, prim("select", z < high, z, high))


def least_after(keys, line, start, count):
    """The least element from a place on."""
    least = load(keys, line, start)
    for i in range(start + 1, count):
        x = load(keys, line, i)
        least = prim("select", x < least, x, least)
    return least


def numbers_first(keys, line, count):
    """Bring what is not NaN to the front of a line; how many there are."""
    if dtype_of(keys).kind not in "fc":
        return count
    missing = constant(0, "int64")
    for i in range(count):  # vector code, unlike what follows
        x = load(keys, line, i)
        missing = prim("add", missing, cast(prim("ne", x, x), "int64"))
    if missing == 0:
        return count
    found = 0
    for i in range(count):
        x, other = load(keys, line, i), load(keys, line, found)
        keys[line, i] = other
        keys[line, found] = x
        found = prim("add", found, prim("select", x == x, 1, 0))
    return found


# ---- medians ---------------------------------------------------------------------------------------------------------


@static
def median_kind(kind):
    return np.dtype("float64") if kind.kind in "biu" else kind


@static
def mean_kind_of(kind):
    """The dtype in which the two middle elements are added."""
    return np.dtype("float32") if kind == np.float16 else kind


def middle(keys, line, count, kind, doubled, ordered):
    """The median of the first elements of a line: the mean of the two in the middle. `doubled`: a single middle element
    is taken twice; `ordered`: the line is."""
    below, above = (count - 1) // 2, count // 2
    if not ordered:
        select_in_line(keys, line, below, 0, count - 1)
    wide = mean_kind_of(kind)
    low = load(keys, line, below)
    if ordered:
        high = load(keys, line, above)
    else:
        high = least_after(keys, line, above, count) if above > below else low
    one, other = cast(low, wide) + constant(0, wide), cast(high, wide)  # as a sum from 0, which is never -0.0
    mean = np.divide(np.add(one, other), cast(2, wide))
    return cast(one if below == above and not doubled else mean, kind)


def numbers_of(lines):
    """How many elements of each line are no NaN."""
    return np.sum(lines == lines, axis=1) if dtype_of(lines).kind == "f" else lines.shape[1]


def numbers_in(numbers, line):
    return int(load(numbers, line)) if is_array(numbers) else numbers


def median_in_order(lines, line, numbers, kind, doubled, without_nan):
    """The median of a line in order, NaN last."""
    count = numbers_in(numbers, line)
    if count > 0 if without_nan else count == lines.shape[1]:
        return middle(lines, line, count, kind, doubled, True)
    return cast(load(lines, line, lines.shape[1] - 1), kind)


def medians(a, axis, out, keepdims, without_nan):
    a = as_array(a)
    if dtype_of(a).kind == "c":
        hand_back("medians of complex numbers")
    if a.ndim == 0 and keepdims:
        hand_back("the median of a 0-d array, its axes kept")
    axes = axes_of_moment(axis, a.ndim)
    kind = median_kind(dtype_of(a))
    kept = kept_in_order(axes, order_of(a) if a.ndim > 1 else (0,)[: a.ndim])
    lines = all_lines(a, axes, kept)
    count = lines.shape[1]
    if without_nan and not in_c_order(kept):  # NumPy has another way with long lines, and another order then
        check(count < 600, "Deoptimize", "medians of long lines that do not lie in C order")
    check((count > 0) & (lines.shape[0] > 0), "Deoptimize", "the median of no elements")
    found = allocate((lines.shape[0],), kind)
    doubled = without_nan and len(kept) > 0 and count < 600
    if on_device():
        sort_lines(lines)
        numbers = numbers_of(lines)
        assign(
            found, generate(found.shape, lambda line: median_in_order(lines, line, numbers, kind, doubled, without_nan))
        )
    else:
        for line in range(lines.shape[0]):
            numbers = numbers_first(lines, line, count)
            if numbers > 0 if without_nan else numbers == count:
                found[line] = middle(lines, line, numbers, kind, doubled, False)
            else:
                found[line] = cast(load(lines, line, count - 1), kind)
    result = (
        permute(reshape(found, tuple([a.shape[own] for own in kept])), places_of(kept)) if len(kept) > 0 else found[0]
    )
    return finish(result, axes, a.ndim, keepdims, out)


WORKSPACE = "an array that NumPy may leave in another order"


@implements(np.median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    if overwrite_input:
        hand_back(WORKSPACE)
    return medians(a, axis, out, keepdims, False)


@implements(np.nanmedian)
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=NO_VALUE):
    if overwrite_input:
        hand_back(WORKSPACE)
    return medians(a, axis, out, is_given(keepdims), True)


# ---- quantiles -------------------------------------------------------------------------------------------------------

LENGTHS = {  # alpha and beta of Hyndman and Fan
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")


@static
def checked_method(method):
    if method not in (*LENGTHS, *DISCRETE, "averaged_inverted_cdf", "linear", "midpoint"):
        raise ValueError(f"{method!r} is not a valid method.")
    return method


@static
def is_discrete(method):
    return method in DISCRETE


@static
def lengths_of(method):
    return LENGTHS.get(method)


def step_after(index, down):
    """The rank above a real one, or below where that is said."""
    return np.maximum(cast(np.floor(index) if down else np.floor(index) + 1, "int64"), 0)


def discrete_rank(n, q, method):
    """The rank that a method without interpolation takes."""
    if method == "inverted_cdf":
        index = (n * q) - 1
        return step_after(index, index == np.floor(index))
    if method == "closest_observation":
        index = (n * q) - 1 - 0.5
        return step_after(index, (index == np.floor(index)) & (np.floor(index) % 2 == 1))
    index = (n - 1) * q
    if method == "lower":
        return cast(np.floor(index), "int64")
    return cast(np.ceil(index) if method == "higher" else np.rint(index), "int64")


def virtual_index(n, q, method):
    lengths = lengths_of(method)
    if lengths is not None:
        alpha, beta = lengths
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method == "averaged_inverted_cdf":
        return (n * q) - 1
    index = (n - 1) * q
    return index if method == "linear" else 0.5 * (np.floor(index) + np.ceil(index))


def upper_weight(index, below, method):
    """The weight of the upper rank; `below` is the lower one, -1 for the last element."""
    weight = index - below
    kind = dtype_of(index)
    if method == "averaged_inverted_cdf":
        return prim("select", weight == 0, constant(0.5, kind), constant(1, kind))
    if method == "midpoint":
        return prim("select", index % 1 == 0, constant(0, kind), constant(0.5, kind))
    return weight


def between(a, b, weight, kind):
    """a + (b - a) * weight, from the nearer end."""
    step = cast(b - a, kind)
    above = cast(b, kind) - step * cast(1 - weight, kind)
    return above if weight >= 0.5 else cast(a, kind) + step * cast(weight, kind)


def quantile_of_line(keys, line, count, q, method, kind, start, ordered):
    """A quantile of the first elements of a line, and its rank; those before `start` have their places already."""
    if is_discrete(method):
        low = int(discrete_rank(count, q, method))
        if not ordered:
            select_in_line(keys, line, low, start if low >= start else 0, count - 1)
        return cast(load(keys, line, low), kind), low
    index = virtual_index(count, q, method)
    below = prim("select", index < 0, constant(0, dtype_of(index)), np.floor(index))
    below = prim("select", index >= count - 1, constant(-1, dtype_of(index)), below)
    low = int(below) if below >= 0 else count - 1
    high = low if (index >= count - 1) | (index < 0) else low + 1
    if not ordered:
        select_in_line(keys, line, low, start if low >= start else 0, count - 1)
    upper = least_after(keys, line, high, high + 1 if ordered else count)
    return between(load(keys, line, low), upper, upper_weight(index, below, method), kind), low


def quantile_in_order(lines, line, totals, place, parts):
    """A quantile of a line in order, NaN last."""
    q, method, final, without_nan = parts
    count = numbers_in(totals, line)
    if count > 0 if without_nan else count == lines.shape[1]:
        return quantile_of_line(lines, line, count, load(q, place), method, final, 0, True)[0]
    return cast(load(lines, line, lines.shape[1] - 1), final)


def quantiles(a, q, weak, axis, out, keepdims, method, weights, without_nan, message):
    a = as_array(a)
    method = checked_method(method)
    kind = dtype_of(a)
    if weights is not None or kind.kind == "c" or (kind.kind == "b" and not is_discrete(method)):
        hand_back("quantiles with weights, or of complex numbers or bools")
    if dtype_of(q).kind != "f" or (is_array(q) and q.ndim > 1):
        hand_back("quantiles that are not one or a row of floats")
    several = is_array(q) and q.ndim == 1
    q = as_array(q) if several else reshape(as_array(q), (1,))
    check(np.all((q >= 0) & (q <= 1)), "ValueError", message)
    if a.ndim == 0 and keepdims:
        hand_back("quantiles of a 0-d array, its axes kept")
    axes = axes_of_moment(axis, a.ndim)
    kept = other_axes(axes, a.ndim)
    lines = all_lines(a, axes, kept)
    count, many = lines.shape[1], q.shape[0]
    check((count > 0) & (lines.shape[0] > 0) & (many > 0), "Deoptimize", "quantiles of no elements")
    final = kind if is_discrete(method) else result_kind(kind, float if weak else dtype_of(q))
    if out is not None and dtype_of(out) != final:
        hand_back("quantiles into another dtype")
    found = allocate((lines.shape[0], many), final)
    if on_device():
        sort_lines(lines)
        totals = numbers_of(lines)
        parts = (q, method, final, without_nan)
        assign(found, generate(found.shape, lambda line, place: quantile_in_order(lines, line, totals, place, parts)))
    else:
        ordered = many > MANY
        if ordered:
            sort_lines(lines)
        for line in range(lines.shape[0]):
            numbers = numbers_first(lines, line, count)
            if numbers > 0 if without_nan else numbers == count:
                start = 0
                for place in range(many):
                    value, start = quantile_of_line(lines, line, numbers, load(q, place), method, final, start, ordered)
                    found[line, place] = value
            else:
                for place in range(many):
                    found[line, place] = cast(load(lines, line, count - 1), final)
    if final != kind and kind.kind == "f":
        check(~np.any(np.isnan(found)), "Deoptimize", "a quantile that is NaN and no number of its dtype")
    result = reshape(found, tuple([a.shape[own] for own in kept]) + ((many,) if several else ()))
    if several:  # their axis comes first; in memory it is the last one where each line was reduced on its own
        result = permute(result, last_first(len(kept) + 1))
        result = result if without_nan else copy(result, "C")
    elif len(kept) == 0:
        result = found[0, 0]
    if keepdims:
        result = as_array(result)[((ALL,) if several else ()) + keeping_index(axes, a.ndim)]
    return result if out is None else into(out, as_array(result))


@static
def last_first(rank):
    return (rank - 1, *range(rank - 1))


def checked_quantile(q):
    """What a quantile is given as: Python's numbers count as float64."""
    q = as_numeric(q)
    return cast(q, "float64") if is_weak(q) and dtype_of(q).kind == "f" else q


def of_hundred(q):
    """Percent as a part of one."""
    q = as_numeric(q)
    return np.true_divide(cast(q, dtype_of(q)) if is_weak(q) else q, 100)


def is_given(keepdims):
    return keepdims is not NO_VALUE and keepdims


PARTS = "Quantiles must be in the range [0, 1]"
PERCENT = "Percentiles must be in the range [0, 100]"


@implements(np.quantile)
def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    if overwrite_input:
        hand_back(WORKSPACE)
    weak = is_weak(as_numeric(q))
    return quantiles(a, checked_quantile(q), weak, axis, out, keepdims, method, weights, False, PARTS)


@implements(np.percentile)
def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    if overwrite_input:
        hand_back(WORKSPACE)
    weak = is_weak(as_numeric(q))
    return quantiles(a, of_hundred(q), weak, axis, out, keepdims, method, weights, False, PERCENT)


@implements(np.nanquantile)
def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=NO_VALUE, *, weights=None):
    if overwrite_input:
        hand_back(WORKSPACE)
    weak, keep = is_weak(as_numeric(q)), is_given(keepdims)
    return quantiles(a, checked_quantile(q), weak, axis, out, keep, method, weights, True, PARTS)


@implements(np.nanpercentile)
def nanpercentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=NO_VALUE, *, weights=None
):
    if overwrite_input:
        hand_back(WORKSPACE)
    weak, keep = is_weak(as_numeric(q)), is_given(keepdims)
    return quantiles(a, of_hundred(q), weak, axis, out, keep, method, weights, True, PERCENT)
