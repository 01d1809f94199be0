"""Histograms: counts of what falls into bins, of one row of numbers or of several together.

Even bins are found by arithmetic, and put right at their edges as NumPy does; bins between given edges by a search.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import positions, ravel
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
    reshape,
    scatter,
    unsupported,
)
from parakeet_py.library.reductions.reductions import identity_of
from parakeet_py.library.reductions.searching import add, insertion_point, is_monotonic
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, kind_of, result_kind

CHUNK = 65536  # weights of even bins are added up so many at a time, as NumPy does


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
    empty = low == high
    return low - (0.5 if empty else 0.0), high + (0.5 if empty else -0.0)  # what is added to -0.0 leaves it as it is


@static
def bin_kind(*kinds):
    found = result_kind(*kinds)
    return np.dtype("float64") if found.kind in "iub" else found


def outer_edges(a, limits):
    """Where the first bin begins and the last one ends."""
    if limits is None and dtype_of(a) in (np.float16, np.float32):
        check(a.shape[0] > 0, "Deoptimize", "a histogram of no numbers, whose edges are computed in float64")
    low, high = range_of_values(a) if limits is None else given_range(limits)
    return spread(low, high)


def even_edges(a, count, low, high):
    """The edges of equal bins, and their number i by itself as a function of i, an int and as a float."""
    kind = bin_kind(kind_of(low), kind_of(high), dtype_of(a))
    by_steps = kind == np.float64 and bin_kind(kind_of(low), kind_of(high)) == np.float64
    if by_steps:  # a multiplication is quicker than a look at an array
        edges, step = np.linspace(low, high, count + 1, True, True, kind)
        check(step != 0, "Deoptimize", "bins too small for their step")
    else:
        edges, step = np.linspace(low, high, count + 1, True, False, kind), None
    message = "Too many bins for data range. Cannot create {0} finite-sized bins."
    check(is_monotonic(edges, lambda x, y: x < y), "ValueError", message, count)
    return edges, lambda i, number: number * step + cast(low, kind) if by_steps else load(edges, i)


def even_bins(a, count, limits):
    """Edges of equal bins, and for each element its bin (the number of bins for those outside)."""
    low, high = outer_edges(a, limits)
    if isinstance(count, str):
        count = estimated_count(a, count, low, high, limits)
    check(count >= 1, "ValueError", "`bins` must be positive, when an integer")
    edges, edge = even_edges(a, count, low, high)
    kind = dtype_of(edges)
    first, last = cast(low, kind), cast(high, kind)
    width = last - first

    one, bins = constant(1, "int64"), cast(count, "int64")

    def place_inside(v):
        """Not before the first bin, as v is not below it, nor behind the last one."""
        guess = np.minimum(cast((v - first) / width * count, "int64"), bins - one)
        number = cast(guess, kind)
        below = v < edge(guess, number)
        above = (v >= edge(guess + one, number + constant(1, kind))) & (guess != bins - one)  # and then not below
        return guess + cast(above, "int64") - cast(below, "int64")

    def place(x):
        v = cast(x, kind)
        if limits is None:  # all are inside
            return place_inside(v)
        inside = (v >= first) & (v <= last)
        return prim("select", inside, place_inside(prim("select", inside, v, first)), bins)

    return edges, elementwise(place, a)


def given_bins(a, edges):
    """For each element its bin between given edges (the number of bins for those outside)."""
    check_rising(edges)
    kind = result_kind(dtype_of(a), dtype_of(edges))
    count = edges.shape[0] - 1
    check(edges.shape[0] > 0, "Deoptimize", "a histogram without edges")

    def place(x):
        v = cast(x, kind)
        first, last = cast(load(edges, 0), kind), cast(load(edges, count), kind)
        inside = (v >= first) & (v <= last)
        found = prim("sub", insertion_point(lambda i: cast(load(edges, i), kind), count + 1, v, False), 1)
        return cast(min(found, count - 1) if inside else count, "int64")

    return elementwise(place, a)


def check_rising(edges):
    falls = elementwise(lambda x, y: x > y, edges[:-1], edges[1:])
    check(~np.any(falls), "ValueError", "`bins` must increase monotonically, when an array")


def raveled(a, weights):
    """The elements and their weights as lines."""
    a = as_array(a)
    if weights is not None:
        weights = as_array(weights)
        if weights.ndim != a.ndim:
            unsupported("weights should have the same shape as a.")
        for own, other in zip(a.shape, weights.shape):
            check(own == other, "ValueError", "weights should have the same shape as a.")
        weights = ravel(weights)
        if dtype_of(weights).kind == "c":
            hand_back("np.histogram with complex weights")
    return ravel(a), weights


def sums_of(places, values, count, kind="float64", chunk=0):
    """What falls into each bin; there is one more for what falls into none."""
    sums = np.zeros(count + 1, kind)
    scatter(sums, places, values, add, chunk)
    return copy(sums[:count])


def sums_of_chunks(places, weights, count):
    """Sums of weights, of which those of each chunk are rounded to their dtype, as are the sums of them."""
    sums = np.zeros(count, dtype_of(weights))
    for start in range(0, places.shape[0], CHUNK):
        some = converted(weights[start : start + CHUNK], "float64")
        sums += cast(sums_of(places[start : start + CHUNK], some, count), dtype_of(weights))
    return sums


def checked_weights(weights):
    """Weights between given edges, as float64. NumPy takes differences of sums of all that is below an edge."""
    kind = dtype_of(weights).kind
    if kind == "b":
        hand_back("np.histogram of bools as weights between given edges")
    if kind == "f":
        check(np.all(np.isfinite(weights)), "Deoptimize", "np.histogram of weights that are not finite")
    return converted(weights, "float64")


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    if dtype_of(as_array(a)).kind in "bc":
        hand_back("np.histogram of bools or complex numbers")
    a, weights = raveled(a, weights)
    bins = checked_bins(bins, weights)
    if is_array(bins):
        edges = bins
        places = given_bins(a, edges)
    else:
        edges, places = even_bins(a, bins if isinstance(bins, str) else int(bins), range)
    count = edges.shape[0] - 1
    if weights is None:
        counted = sums_of(places, constant(1, "int64"), count, "int64")
    elif is_array(bins):
        counted = cast(sums_of(places, checked_weights(weights), count), dtype_of(weights))
    elif dtype_of(weights) == np.float64:
        counted = sums_of(places, weights, count, "float64", CHUNK)
    else:
        counted = sums_of_chunks(places, weights, count)
    if density:
        return counted / cast(np.diff(edges), "float64") / counted.sum(), edges
    return counted, edges


def checked_bins(bins, weights):
    """The number of bins, the name of an estimator, or edges as an array."""
    if isinstance(bins, str):
        known_estimator(bins)
        if weights is not None:
            unsupported("Automated estimation of the number of bins is not supported for weighted data")
        return bins
    bins = as_numeric(bins)
    if is_array(bins) and bins.ndim == 0:
        bins = bins[()]
    if is_array(bins) and bins.ndim != 1:
        unsupported("`bins` must be 1d, when an array")
    if not is_array(bins) and dtype_of(bins).kind not in ("iub" if is_weak(bins) else "iu"):
        unsupported("`bins` must be an integer, a string, or an array")
    return bins


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    if dtype_of(as_array(a)).kind in "bc":
        hand_back("np.histogram_bin_edges of bools or complex numbers")
    a, weights = raveled(a, weights)
    bins = checked_bins(bins, weights)
    if is_array(bins):
        check_rising(bins)
        return bins
    low, high = outer_edges(a, range)
    count = estimated_count(a, bins, low, high, range) if isinstance(bins, str) else int(bins)
    check(count >= 1, "ValueError", "`bins` must be positive, when an integer")
    return even_edges(a, count, low, high)[0]


# ---- how many bins ---------------------------------------------------------------------------------------------------


@static
def known_estimator(name):
    if name not in ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"):
        raise ValueError(f"{name!r} is not a valid estimator for `bins`")


def extent_of(x):
    """The difference of the greatest and the least element, unsigned where they are integers."""
    if dtype_of(x).kind in "iu":
        return cast(x.max(), "uint64") - cast(x.min(), "uint64")
    return x.max() - x.min()


def estimated_width(x, name):
    """The width of a bin by a rule of thumb."""
    size = x.size
    if name == "sqrt":
        return extent_of(x) / np.sqrt(size)
    if name == "sturges":
        return extent_of(x) / (np.log2(size) + 1.0)
    if name == "rice":
        return extent_of(x) / (2.0 * size ** (1.0 / 3))
    if name == "scott":
        return (24.0 * np.pi**0.5 / size) ** (1.0 / 3.0) * np.std(x)
    if name == "fd":
        return 2.0 * (np.percentile(x, 75) - np.percentile(x, 25)) * size ** (-1.0 / 3.0)
    if name == "auto":
        width = np.maximum(estimated_width(x, "fd"), estimated_width(x, "sqrt") / 2)
        return np.minimum(width, estimated_width(x, "sturges"))
    if name == "doane":
        return width_by_skewness(x, size)
    hand_back("bins by Stone's rule")


def width_by_skewness(x, size):
    """Doane's rule: Sturges' with more bins for a skewed distribution."""
    width = constant(0.0, "float64")
    if size > 2:
        spread_of_skewness = np.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
        sigma = np.std(x)
        if sigma > 0.0:
            away = np.subtract(x, np.mean(x))
            away = np.power(cast(away / sigma, dtype_of(away)), 3)
            skewness = np.absolute(np.mean(away))
            parts = 1.0 + np.log2(size) + np.log2(1.0 + skewness / spread_of_skewness)
            width = cast(extent_of(x) / parts, "float64")
    return width


def estimated_count(a, name, low, high, limits):
    """The number of bins that an estimator gives."""
    if limits is not None:
        a = a[(a >= low) & (a <= high)]
    if a.size == 0:
        return 1
    width = cast(estimated_width(a, name), "float64")
    if dtype_of(a).kind in "iu" and width < 1 and width != 0:
        width = constant(1.0, "float64")
    check(~np.isnan(width), "Deoptimize", "bins whose width is not known")
    return int(np.ceil(cast(high - low, "float64") / width)) if width != 0 else 1


# ---- several axes ----------------------------------------------------------------------------------------------------


def edges_of_axis(x, bins, limits):
    """The edges of the bins along one axis."""
    bins = as_numeric(bins)
    if is_array(bins) and bins.ndim == 0:
        bins = bins[()]
    if is_array(bins):
        if bins.ndim != 1:
            unsupported("`bins` must be a scalar or 1d array")
        check_rising(bins)
        return bins
    if dtype_of(bins).kind not in "iub":
        unsupported("`bins` must be an integer, when a scalar")
    check(bins >= 1, "Deoptimize", "a histogram without bins")
    low, high = outer_edges(x, limits)
    return np.linspace(low, high, int(bins) + 1)


def bin_of(x, edges, count):
    """The bin of a number: 0 before the first edge, the number of edges behind the last one."""
    kind = result_kind(dtype_of(x), dtype_of(edges))
    value = cast(x, kind)
    found = insertion_point(lambda i: cast(load(edges, i), kind), count, value, False)
    return prim("sub", found, 1) if x == load(edges, count - 1) else found


def counted_together(columns, edges, density, weights):
    """The histogram of points given by their coordinates."""
    size = columns[0].shape[0]
    extents = tuple([one.shape[0] + 1 for one in edges])
    for one in edges:
        check(one.shape[0] > 1, "Deoptimize", "a histogram without bins")

    def place(*point):
        position = 0
        for x, own, extent in zip(point, edges, extents):
            position = prim("add", prim("mul", position, extent), bin_of(x, own, extent - 1))
        return cast(position, "int64")

    total = 1
    for extent in extents:
        total = total * extent
    sums = np.zeros(total, "float64")
    if weights is None:
        added = constant(1.0, "float64")
    else:
        weights = as_array(weights)
        if weights.ndim != 1 or dtype_of(weights).kind == "c":
            unsupported("weights of a histogram are a line of real numbers")
        check(weights.shape[0] == size, "ValueError", "The weights and list don't have the same length.")
        added = converted(weights, "float64")
    scatter(sums, elementwise(place, *columns), added, add)
    made = reshape(sums, extents)[(slice(1, -1),) * len(edges)]
    if density:
        whole = made.sum()
        for own in positions(len(edges)):
            made = made / np.diff(edges[own])[along_axis(own, len(edges))]
        made /= whole
    return made


@static
def along_axis(own, rank):
    """The index that lays a line along one of several axes."""
    return tuple(slice(None) if axis == own else None for axis in range(rank))


def axis_limits(limits, rank):
    if limits is None:
        return (None,) * rank
    if len(limits) != rank:
        unsupported("range argument must have one entry per dimension")
    return tuple(limits)


@implements(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    if not is_sequence(sample):
        hand_back("np.histogramdd of the rows of an array")
    columns = tuple([as_array(one) for one in sample])
    rank = len(columns)
    for one in columns:
        if one.ndim != 1 or dtype_of(one).kind in "bc":
            hand_back("np.histogramdd of other than lines of real numbers")
        check(one.shape[0] == columns[0].shape[0], "Deoptimize", "lines of unequal length")
    kind = result_kind(*[dtype_of(one) for one in columns])
    columns = tuple([converted(one, kind) for one in columns])
    if is_sequence(bins) and len(bins) != rank:
        unsupported("The dimension of bins must be equal to the dimension of the sample x.")
    if is_array(bins) and bins.ndim > 0:
        hand_back("np.histogramdd with bins in an array")
    each = tuple(bins) if is_sequence(bins) else (bins,) * rank
    limits = axis_limits(range, rank)
    edges = [edges_of_axis(x, own, limit) for x, own, limit in zip(columns, each, limits)]
    return counted_together(columns, edges, density, weights), edges


@implements(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    if is_array(bins) and bins.ndim > 0:
        hand_back("np.histogram2d with bins in one array")
    if is_sequence(bins) and len(bins) != 2:
        edges = as_array(bins)
        bins = [edges, edges]
    x, y = as_array(x), as_array(y)
    check(x.shape[0] == y.shape[0], "ValueError", "x and y must have the same length.")
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]
