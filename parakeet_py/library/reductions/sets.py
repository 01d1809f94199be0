"""Sets of numbers as sorted arrays: unique and its relatives, unions, intersections, differences, membership.

Everything goes through NumPy's own sorting functions, called as NumPy calls them, so that of equal elements (0.0 and
-0.0, NaN of other bits) the same one is kept. Where NumPy puts elements into a hash table, as it does with integers
and complex numbers of which only the values are wanted, the first of equal elements is kept: a stable order finds it.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.joining import concatenate
from parakeet_py.library.arrays.shape import ravel
from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    compress,
    constant,
    copy,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    load,
    named,
    prim,
    reduce_axes,
    reshape,
    scatter,
    unsupported,
)
from parakeet_py.library.reductions.membership import latest, membership, range_of
from parakeet_py.library.reductions.scans import cumsum
from parakeet_py.library.reductions.searching import add
from parakeet_py.library.reductions.sorting import (
    in_own_memory,
    places_in_order,
    size_of,
    sort_places,
    sorted_line,
    taken,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import single_axis

UniqueAll = type(np.unique_all(np.zeros(1)))
UniqueCounts = type(np.unique_counts(np.zeros(1)))
UniqueInverse = type(np.unique_inverse(np.zeros(1)))


def earliest(old, new):
    return np.minimum(old, new)


# ---- runs of equal elements ------------------------------------------------------------------------------------------


def differs(line, k, equal_nan):
    """Whether an element of a sorted line is another than the one before."""
    x, y = load(line, k), load(line, max(k - 1, 0))
    other = x != y
    if equal_nan and dtype_of(line).kind in "fc":
        other = other & ~(np.isnan(x) & np.isnan(y))
    return (k == 0) | other


def firsts(line, equal_nan):
    """The mask of a sorted line that is true at the first of equal elements."""
    return generate(line.shape, lambda k: cast(differs(line, k, equal_nan), "bool"))


def run_lengths(mask):
    """How far it is from each true element to the next one, or to the end."""
    starts = np.nonzero(mask)[0]
    count = mask.shape[0]
    last = starts.shape[0] - 1
    return generate(
        starts.shape, lambda k: cast((int(load(starts, k + 1)) if k < last else count) - int(load(starts, k)), "int64")
    )


def numbers_of_runs(mask, places):
    """For each original position the number of the run that its element stands in."""
    found = np.zeros(mask.shape, np.int64)
    scatter(found, places, cumsum(mask) - 1, latest)
    return found


# ---- unique ----------------------------------------------------------------------------------------------------------


def values_by_hash(line, equal_nan):
    """The different complex numbers in order, of equal ones the first."""
    places = places_in_order(line, "stable")
    ordered = taken(line, places)
    mask = firsts(ordered, equal_nan)
    if equal_nan:
        (first,) = reduce_axes(
            line,
            (0,),
            (constant(2**62, "int64"),),
            lambda x, k: (prim("select", np.isnan(x), cast(k, "int64"), constant(2**62, "int64")),),
            lambda a, b: (np.minimum(a, b),),
        )
        last = ordered.shape[0] - 1
        values = compress(mask, ordered)
        if last >= 0 and np.isnan(load(ordered, max(last, 0))):
            values[-1] = load(line, int(first))
        return values
    return compress(mask, ordered)


def unique_line(line, index, inverse, counts, equal_nan):
    """What np.unique gives for a line that may be changed: a tuple."""
    if dtype_of(line).kind in "biu":
        low, high = range_of(line)
        width = cast(high, "uint64") - cast(low, "uint64")
        if line.shape[0] > 0 and width <= 2 * line.shape[0]:
            return unique_by_table(line, low, int(width), index, inverse, counts)
    return unique_by_order(line, index, inverse, counts, equal_nan)


def unique_by_table(line, low, width, index, inverse, counts):
    """The same for integers that lie close together: a place for each that may be there."""
    base, kind = cast(low, "uint64"), dtype_of(line)
    places = elementwise(lambda x: cast(cast(x, "uint64") - base, "int64"), line)
    present = np.zeros(width + 1, np.bool_)
    scatter(present, places, constant(True, "bool"), latest)
    found = np.nonzero(present)[0]
    results = (elementwise(lambda place: cast(base + cast(place, "uint64"), kind), found),)
    if index:
        where = np.full(width + 1, line.shape[0], np.int64)
        scatter(where, places, generate(line.shape, lambda k: cast(k, "int64")), earliest)
        results = (*results, taken(where, found))
    if inverse:
        results = (*results, taken(cumsum(present) - 1, places))
    if counts:
        numbers = np.zeros(width + 1, np.int64)
        scatter(numbers, places, constant(1, "int64"), add)
        results = (*results, taken(numbers, found))
    return results


def unique_by_order(line, index, inverse, counts, equal_nan):
    """The same for all numbers, put in order."""
    if not (index or inverse or counts) and dtype_of(line).kind == "c":
        return (values_by_hash(line, equal_nan),)
    if not (index or inverse):
        ordered = sorted_line(line)
        mask = firsts(ordered, equal_nan)
        values = compress(mask, ordered)
        return (values, run_lengths(mask)) if counts else (values,)
    places = places_in_order(line, "stable" if index else "quicksort")
    ordered = taken(line, places)
    mask = firsts(ordered, equal_nan)
    results = (compress(mask, ordered),)
    if index:
        results = (*results, compress(mask, places))
    if inverse:
        results = (*results, numbers_of_runs(mask, places))
    if counts:
        results = (*results, run_lengths(mask))
    return results


@static
def position_of_inverse(index):
    return 2 if index else 1


@implements(np.unique)
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    a = as_array(ar)
    if not sorted and dtype_of(a).kind in "iuc" and not (return_index or return_inverse or return_counts):
        hand_back("np.unique in the order of a hash table")
    if axis is not None and a.ndim == 0:
        unsupported("axis is out of bounds for array of dimension 0")
    if axis is not None and a.ndim != 1:
        return unique_slabs(a, return_index, return_inverse, return_counts, single_axis(axis, a.ndim))
    if axis is not None:
        single_axis(axis, a.ndim)
    results = unique_line(in_own_memory(a), return_index, return_inverse, return_counts, equal_nan)
    if return_inverse:
        own = position_of_inverse(return_index)
        results = (*results[:own], reshape(results[own], a.shape), *results[own + 1 :])
    return results if len(results) > 1 else results[0]


def unique_slabs(a, index, inverse, counts, axis):
    """np.unique along an axis: the slabs are lines of numbers, compared from their beginning."""
    moved = np.moveaxis(a, axis, 0)
    extents = moved.shape
    rows = copy(reshape(copy(moved, "C"), (extents[0], size_of(extents[1:]))), "C")
    check(rows.shape[1] > 0, "Deoptimize", "unique slabs without elements")
    check(rows.shape[1] <= 64, "Deoptimize", "unique slabs with many elements, compared one column after the other")
    kind = dtype_of(a).kind
    if kind == "c":
        hand_back("unique slabs of complex numbers")
    if kind == "f" and not index:  # which of equal slabs is kept is seen
        negative = elementwise(lambda x: np.signbit(x) & (x == 0), rows)
        check(~np.any(negative), "Deoptimize", "unique slabs with negative zeros")
        check(~np.any(np.isnan(rows)), "Deoptimize", "unique slabs with NaN")
    count, width = rows.shape
    places = generate((1, count), lambda own, k: cast(k, "int64"))
    for back in range(width):
        column = copy(rows[:, width - 1 - back], "C")
        sort_places(reshape(column, (1, count)), places, "stable")
    places = places[0]

    def row_differs(k):
        own, before = int(load(places, k)), int(load(places, max(k - 1, 0)))
        j = 0
        while j < width and load(rows, own, j) == load(rows, before, j):
            j = j + 1
        return (k == 0) | (j < width)

    mask = generate((count,), lambda k: cast(row_differs(k), "bool"))
    kept = compress(mask, places)
    values = generate((kept.shape[0], width), lambda k, j: load(rows, int(load(kept, k)), j))
    results = (np.moveaxis(reshape(values, (kept.shape[0], *extents[1:])), 0, axis),)
    if index:
        results = (*results, kept)
    if inverse:
        results = (*results, numbers_of_runs(mask, places))
    if counts:
        results = (*results, run_lengths(mask))
    return results if len(results) > 1 else results[0]


@implements(np.unique_values)
def unique_values(x, /):
    return unique(x, equal_nan=False, sorted=False)


@implements(np.unique_counts)
def unique_counts(x, /):
    return named(UniqueCounts, *unique(x, False, False, True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x, /):
    return named(UniqueInverse, *unique(x, False, True, False, equal_nan=False))


@implements(np.unique_all)
def unique_all(x, /):
    return named(UniqueAll, *unique(x, True, True, True, equal_nan=False))


# ---- unions, intersections, differences ------------------------------------------------------------------------------


@implements(np.union1d)
def union1d(ar1, ar2):
    return unique(concatenate((ar1, ar2), None))


def same_as_next(line):
    return generate((max(line.shape[0] - 1, 0),), lambda k: load(line, k + 1) == load(line, k))


@implements(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    left, right = as_array(ar1), as_array(ar2)
    places1, places2 = (), ()
    if assume_unique:
        left, right = ravel(left), ravel(right)
    elif return_indices:
        left, places1 = unique(left, return_index=True)
        right, places2 = unique(right, return_index=True)
    else:
        left, right = unique(left), unique(right)
    both = concatenate((left, right))
    if not return_indices:
        both = sorted_line(both)
        return compress(same_as_next(both), both[:-1])
    order = places_in_order(both, "stable")
    both = taken(both, order)
    mask = same_as_next(both)
    found1, found2 = compress(mask, order[:-1]), compress(mask, order[1:]) - left.shape[0]
    if not assume_unique:
        found1, found2 = taken(places1, found1), taken(places2, found2)
    return compress(mask, both[:-1]), found1, found2


@implements(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    left, right = as_array(ar1), as_array(ar2)
    if not assume_unique:
        left, right = unique(left), unique(right)
    both = sorted_line(concatenate((left, right), None))
    count = both.shape[0]

    def alone(k):
        before = (k == 0) | (load(both, k) != load(both, max(k - 1, 0)))
        return cast(before & ((k == count - 1) | (load(both, k) != load(both, min(k + 1, count - 1)))), "bool")

    return compress(generate((count,), alone), both)


@implements(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    left, right = as_array(ar1), as_array(ar2)
    if assume_unique:
        left = ravel(left)
    else:
        left, right = unique(left), unique(right)
    return compress(membership(left, ravel(right), True, True, None), left)
