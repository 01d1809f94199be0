"""Index tricks: mgrid, ogrid, r_, c_, ix_, positions in raveled arrays, indices of triangles; and padding."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.creation import arange
from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_sequence,
    layout_of,
    nonzero,
    unsupported,
)
from parakeet_py.library.joining import concatenate
from parakeet_py.library.patterns import numbers_below, single_range, tri
from parakeet_py.library.reductions import flat_index
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import ALL, converted, fitting, kind_of, result_kind

# ---- grids -----------------------------------------------------------------------------------------------------------


def line_of(item):
    """The numbers of a slice."""
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if dtype_of(as_numeric(step)).kind == "c":
        hand_back("a grid with a number of points")
    return arange(start, item.stop, step)


def lines_of(key):
    lines = tuple([line_of(item) for item in key])
    kind = result_kind(*[dtype_of(line) for line in lines])
    return tuple([converted(line, kind) for line in lines])


@implements(np.ogrid)
def ogrid(key):
    if isinstance(key, slice):
        return line_of(key)
    lines = lines_of(key)
    return tuple([line[single_range(axis, len(lines))] for axis, line in enumerate(lines)])


@implements(np.mgrid)
def mgrid(key):
    if isinstance(key, slice):
        return line_of(key)
    lines = lines_of(key)
    shape = tuple([line.shape[0] for line in lines])
    made = np.empty((len(lines), *shape), dtype_of(lines[0]))
    for axis, line in enumerate(lines):
        assign(made[axis], line[single_range(axis, len(lines))])
    return made


def part_of(item):
    if isinstance(item, slice):
        return line_of(item)
    if isinstance(item, str):
        hand_back("a directive in np.r_ or np.c_")
    return as_numeric(item)


def parts_of(key):
    parts = tuple([part_of(item) for item in (key if isinstance(key, tuple) else (key,))])
    kind = result_kind(*[kind_of(part) for part in parts])
    return tuple([converted(as_array(part), kind) for part in parts])


@implements(np.r_)
def r_(key):
    return concatenate([a[None] if a.ndim == 0 else a for a in parts_of(key)], 0)


@implements(np.c_)
def c_(key):
    return concatenate([column_of(a) for a in parts_of(key)], -1)


def column_of(a):
    if a.ndim == 0:
        return a[None, None]
    return a[:, None] if a.ndim == 1 else a


@implements(np.ix_)
def ix_(*args):
    lines = tuple([open_line(as_array(a)) for a in args])
    return tuple([line[single_range(axis, len(lines))] for axis, line in enumerate(lines)])


def open_line(a):
    if a.ndim != 1:
        unsupported("Cross index must be 1 dimensional")
    return nonzero(a)[0] if dtype_of(a).kind == "b" else a


# ---- positions -------------------------------------------------------------------------------------------------------


def extents_from(shape):
    return tuple(shape) if is_sequence(shape) else (shape,)


@implements(np.unravel_index)
def unravel_index(indices, shape, order="C"):
    if order != "C":
        hand_back("np.unravel_index in Fortran order")
    extents = extents_from(shape)
    places = as_numeric(indices)
    size = 1
    for extent in extents:
        size = size * extent

    def split(index):
        left = int(index)
        message = "index {0} is out of bounds for array with size {1}"
        check((left >= 0) & (left < size), "ValueError", message, left, size)
        found = ()
        for extent in extents[::-1]:
            found = (cast(left % max(extent, 1), "int64"), *found)
            left = left // max(extent, 1)
        return found

    made = elementwise(split, places)
    return made if len(extents) > 1 else (made,)


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    if mode != "raise" or order != "C":
        hand_back("np.ravel_multi_index with a mode or order")
    extents = extents_from(dims)

    def join(*place):
        for index, extent in zip(place, extents):
            check((index >= 0) & (index < extent), "ValueError", "invalid entry in coordinates array")
        return cast(flat_index(tuple([int(index) for index in place]), extents), "int64")

    return elementwise(join, *[as_numeric(index) for index in multi_index])


@implements(np.tril_indices)
def tril_indices(n, k=0, m=None):
    return nonzero(tri(n, m, k, bool))


@implements(np.triu_indices)
def triu_indices(n, k=0, m=None):
    return nonzero(~tri(n, m, k - 1, bool))


# ---- padding ---------------------------------------------------------------------------------------------------------


def width_of(pad_width, axis):
    """(before, after) of one axis."""
    if not is_sequence(pad_width):
        return pad_width, pad_width
    own = pad_width[axis] if len(pad_width) > 1 and is_sequence(pad_width[0]) else pad_width
    own = own[0] if is_sequence(own[0]) else own
    return (own[0], own[0]) if len(own) == 1 else (own[0], own[1])


def source_of(index, before, extent, mode):
    """Where an element of a padded axis comes from."""
    place = index - before
    if mode == "edge":
        return min(max(place, 0), extent - 1)
    if mode == "wrap":
        return place % extent
    if mode == "symmetric":
        place = place % (2 * extent)
        return place if place < extent else 2 * extent - 1 - place
    place = place % max(2 * (extent - 1), 1)
    return place if place < extent else 2 * (extent - 1) - place


@static
def empty_axis(axis):
    return f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"


def order_of_padded(a):
    return "F" if layout_of(a) == "F" else "C"


@implements(np.pad)
def pad(array, pad_width, mode="constant", *, constant_values=0, reflect_type="even"):
    a = as_array(array)
    if is_array(pad_width) or reflect_type != "even" or a.ndim == 0:
        hand_back("np.pad with these arguments")
    widths = tuple([width_of(pad_width, axis) for axis in numbers_below(a.ndim)])
    for before, after in widths:
        check((before >= 0) & (after >= 0), "ValueError", "index can't contain negative values")
    shape = tuple([before + extent + after for (before, after), extent in zip(widths, a.shape)])
    if mode == "constant":
        if is_sequence(constant_values) or is_array(constant_values):
            hand_back("np.pad with several constants")
        kind = dtype_of(a)
        made = np.full(shape, cast(fitting(constant_values, kind), kind), kind, order_of_padded(a))
        inner = tuple([slice(before, before + extent) for (before, _), extent in zip(widths, a.shape)])
        assign(made[inner], a)
        return made
    if mode not in ("edge", "wrap", "symmetric", "reflect"):
        hand_back("np.pad in this mode")
    for axis, (before, after) in enumerate(widths):
        check((a.shape[axis] > 0) | (before + after == 0), "ValueError", empty_axis(axis))
    made = np.empty(shape, dtype_of(a), order_of_padded(a))
    inner = tuple([slice(before, before + extent) for (before, _), extent in zip(widths, a.shape)])
    assign(made[inner], a)
    for axis, (before, after) in enumerate(widths):
        fill_ends(made, axis, before, a.shape[axis], after, mode)
    return made


def fill_ends(made, axis, before, extent, after, mode):
    """Both ends of one axis of a padded array, from what is between them."""
    front = generate((before,), lambda i: before + source_of(i, before, extent, mode))
    back = generate((after,), lambda i: before + source_of(i + before + extent, before, extent, mode))
    whole = (ALL,) * axis
    assign(made[(*whole, slice(0, before))], made[(*whole, front)])
    assign(made[(*whole, slice(before + extent, None))], made[(*whole, back)])
