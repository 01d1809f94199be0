"""Sorting: sort, argsort, lexsort.

NumPy's own sorting functions (`routine`) sort the lines of contiguous matrices; their choice among equals is NumPy's.
Where they cannot be called, lines are merged bottom up from short runs that insertion has put in order (Knuth, The Art
of Computer Programming, volume 3, sections 5.2.1 and 5.2.4), which is stable; NaN comes last, as in NumPy. What a
program sees there of an *unstable* order (argsort without a kind) stays with NumPy. The places of equal elements cannot
be distinguished in sorted values. On a GPU the routines are kernels (`ptx/skeletons/radix_sort`).
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import ravel, size_of
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    assign,
    cast,
    check,
    copy,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    has_routine,
    is_array,
    layout_of,
    load,
    order_of,
    permute,
    reshape,
    routine,
    unsupported,
)
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import inverse_axes, must_be_writeable, single_axis

RUN = 12  # elements that insertion puts in order


def less(x, y):
    """The order of sorted elements: NaN after everything else, complex numbers by their parts."""
    kind = dtype_of(x).kind
    if kind == "c":
        return less_complex(x, y)
    if kind == "f":
        return (x < y) | (np.isnan(y) & ~np.isnan(x))
    return x < y


def less_complex(x, y):
    """Numbers without NaN, then those with one in the imaginary part, in the real part, in both."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    same = (a == c) | (np.isnan(a) & np.isnan(c))
    return (less(a, c) & (np.isnan(b) == np.isnan(d))) | (
        (same & less(b, d)) | (~same & before_by_nan(a, b, c, d) & (np.isnan(b) != np.isnan(d)))
    )


def before_by_nan(a, b, c, d):
    """Among numbers of unequal real part of which one has a NaN as its imaginary part."""
    both = ~np.isnan(a) & ~np.isnan(c)
    return (both & np.isnan(d)) | (~both & np.isnan(c))


@static
def kind_named(kind, stable):
    """Which of NumPy's three ways to sort is meant."""
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time.")
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return "stable" if stable or kind in ("mergesort", "stable") else kind or "quicksort"


@static
def named(function, kind):
    return f"{function}.{kind}"


def sort_runs(keys, line, count):
    """Put runs of a line in order."""
    for start in range(0, count, RUN):
        for i in range(start + 1, min(start + RUN, count)):
            x = load(keys, line, i)
            j = i
            while j > start and less(x, load(keys, line, j - 1)):
                keys[line, j] = load(keys, line, j - 1)
                j = j - 1
            keys[line, j] = x


def merge_runs(source, target, line, count, width):
    """Merge neighbouring runs of a width from one array into another."""
    for start in range(0, count, 2 * width):
        middle, stop = min(start + width, count), min(start + 2 * width, count)
        left, right = start, middle
        for k in range(start, stop):
            x, y = load(source, line, min(left, count - 1)), load(source, line, min(right, count - 1))
            if left < middle and (right >= stop or not less(y, x)):
                target[line, k] = x
                left = left + 1
            else:
                target[line, k] = y
                right = right + 1


def sort_lines(keys, kind="quicksort"):
    """Sort the lines of a matrix in C order, in place."""
    if has_routine(named("sort", kind), dtype_of(keys)):
        routine(named("sort", kind), (keys,), ())
    else:
        merge_lines(keys)


def merge_lines(keys):
    """Sort the lines of a matrix by merging."""
    lines, count = keys.shape
    spare = allocate(keys.shape, dtype_of(keys))
    for line in range(lines):
        sort_runs(keys, line, count)
        width = RUN
        while width < count:
            merge_runs(keys, spare, line, count, width)
            keys[line] = spare[line]
            width = 2 * width


def sort_places(keys, places, kind="stable"):
    """Sort the places of a matrix's lines by their keys, in place; if stable, equal ones keep their order."""
    if has_routine(named("argsort", kind), dtype_of(keys), np.int64):
        routine(named("argsort", kind), (places,), (keys,))
    else:
        merge_places(keys, places)


def merge_places(keys, places):
    """Sort places by merging."""
    lines, count = places.shape
    spare = allocate(places.shape, "int64")
    for line in range(lines):
        for start in range(0, count, RUN):
            for i in range(start + 1, min(start + RUN, count)):
                place = int(load(places, line, i))
                x = load(keys, line, place)
                j = i
                while j > start and less(x, load(keys, line, int(load(places, line, j - 1)))):
                    places[line, j] = load(places, line, j - 1)
                    j = j - 1
                places[line, j] = place
        width = RUN
        while width < count:
            for start in range(0, count, 2 * width):
                middle, stop = min(start + width, count), min(start + 2 * width, count)
                left, right = start, middle
                for k in range(start, stop):
                    x, y = load(places, line, min(left, count - 1)), load(places, line, min(right, count - 1))
                    if left < middle and (
                        right >= stop or not less(load(keys, line, int(y)), load(keys, line, int(x)))
                    ):
                        spare[line, k] = x
                        left = left + 1
                    else:
                        spare[line, k] = y
                        right = right + 1
            places[line] = spare[line]
            width = 2 * width


@static
def axis_last(axis, rank):
    return (*[own for own in range(rank) if own != axis], axis)


def as_lines(a):
    """An array in C order as a matrix whose lines run along the last axis."""
    return reshape(a, (size_of(a.shape[:-1]), a.shape[-1]))


def lines_along(a, axis):
    """A new matrix whose lines run along an axis."""
    moved = permute(a, axis_last(axis, a.ndim))
    return reshape(copy(moved, "C"), (size_of(moved.shape[:-1]), a.shape[axis]))


def from_lines(lines, a, axis):
    """The matrix of lines as an array like the one it was made of."""
    axes = axis_last(axis, a.ndim)
    return permute(reshape(lines, tuple([a.shape[own] for own in axes])), inverse_axes(axes))


def in_memory_order(made, a):
    """A new array with the axes of another in memory."""
    axes = order_of(a) if a.ndim > 1 else (0,)
    return permute(copy(permute(made, axes), "C"), inverse_axes(axes))


def sorted_along(a, axis, kind):
    lines = lines_along(a, axis)
    sort_lines(lines, kind)
    return from_lines(lines, a, axis)


@static
def memory_order(order, rank):
    return order if rank > 1 else (0,)


def places_along(a, axis, kind):
    """The order of the elements along an axis, a new array in C order."""
    if axis == a.ndim - 1:
        lines = as_lines(a if layout_of(a) == "C" else copy(a, "C"))
        places = generate(lines.shape, lambda line, k: cast(k, "int64"))
        sort_places(lines, places, kind)
        return reshape(places, a.shape)
    lines = lines_along(a, axis)
    places = generate(lines.shape, lambda line, k: cast(k, "int64"))
    sort_places(lines, places, kind)
    return copy(from_lines(places, a, axis), "C")


@implements(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if order is not None:
        unsupported("Cannot specify order when the array has no fields.")
    way = kind_named(kind, stable)
    a = as_array(a)
    if axis is None:
        a = ravel(a)
        axis = 0
    axis = single_axis(axis, a.ndim)
    order = memory_order(order_of(a), a.ndim)
    if order[-1] != axis:
        return in_memory_order(sorted_along(a, axis, way), a)
    made = copy(permute(a, order), "C")
    sort_lines(as_lines(made), way)
    return permute(made, inverse_axes(order))


@method("sort")
def sort_method(a, axis=-1, kind=None, order=None, *, stable=None):
    if order is not None:
        unsupported("Cannot specify order when the array has no fields.")
    way = kind_named(kind, stable)
    axis = single_axis(axis, a.ndim)
    must_be_writeable(a, "sort array is read-only")
    if layout_of(a) == "C" and axis == a.ndim - 1:
        sort_lines(as_lines(a), way)
    else:
        assign(a, sorted_along(a, axis, way))


@implements(np.argsort)
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    if order is not None:
        unsupported("Cannot specify order when the array has no fields.")
    way = kind_named(kind, stable)
    a = as_array(a)
    if way != "stable" and not has_routine(named("argsort", way), dtype_of(a), np.int64):
        hand_back("an argsort whose order of equal elements is NumPy's choice")
    if axis is None:
        a = ravel(a)
        axis = 0
    if a.ndim == 0:
        hand_back("argsort of a 0-d array")
    return places_along(a, single_axis(axis, a.ndim), way)


@method("argsort")
def argsort_method(a, axis=-1, kind=None, order=None, *, stable=None):
    return argsort(a, axis, kind, order, stable=stable)


@static
def complex_kind(kind):
    """The complex dtype that np.sort_complex gives to numbers of a dtype."""
    return kind if kind.kind == "c" else np.dtype("complex64" if kind.char in "bhBH" else "complex128")


@implements(np.sort_complex)
def sort_complex(a):
    a = as_array(a)
    if a.ndim == 0:
        hand_back("np.sort_complex of a 0-d array")
    made = copy(a)
    sort_method(made)
    return made if dtype_of(a).kind == "c" else cast(made, complex_kind(dtype_of(a)))


@implements(np.lexsort)
def lexsort(keys, axis=-1):
    if is_array(keys):
        return sorted_by_rows(keys, axis)
    if len(keys) == 0:
        unsupported("need sequence of keys with len > 0 in lexsort")
    columns = tuple([as_array(key) for key in keys])
    for column in columns:
        if column.ndim != 1:
            hand_back("np.lexsort along an axis")
        check(column.shape[0] == columns[0].shape[0], "ValueError", "all keys need to be the same shape")
    single_axis(axis, 1)
    places = generate((1, columns[0].shape[0]), lambda line, k: cast(k, "int64"))
    for column in columns:
        sort_places(reshape(copy(column, "C"), (1, column.shape[0])), places)
    return places[0]


def sorted_by_rows(keys, axis):
    """np.lexsort by the rows of a matrix, the last one first."""
    if keys.ndim != 2:
        hand_back("np.lexsort of an array of keys with other than two axes")
    single_axis(axis, 1)
    check(keys.shape[0] > 0, "TypeError", "need sequence of keys with len > 0 in lexsort")
    places = generate((1, keys.shape[1]), lambda line, k: cast(k, "int64"))
    for row in range(keys.shape[0]):
        sort_places(reshape(copy(keys[row], "C"), (1, keys.shape[1])), places)
    return places[0]


# ---- one line --------------------------------------------------------------------------------------------------------


def in_own_memory(a):
    """A new 1-D array of all elements, in C order."""
    return copy(ravel(as_array(a)), "C")


def sorted_line(line):
    """A line in order, in place."""
    sort_lines(reshape(line, (1, line.shape[0])))
    return line


def places_in_order(line, kind):
    """The positions of a line's elements in order."""
    if not has_routine("argsort." + kind, dtype_of(line), np.int64) and kind != "stable":
        hand_back("an order of equal elements that is NumPy's choice")
    places = generate((1, line.shape[0]), lambda own, k: cast(k, "int64"))
    sort_places(reshape(line, (1, line.shape[0])), places, kind)
    return places[0]


def taken(line, places):
    """The elements at positions in range."""
    return elementwise(lambda place: load(line, int(place)), places)
