"""Index tricks: mgrid, ogrid, r_, c_, ix_, positions in raveled arrays, indices of triangles; and padding."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.creation import arange, length_of_range, linspace
from parakeet_py.library.arrays.joining import concatenate
from parakeet_py.library.arrays.patterns import single_range, tri
from parakeet_py.library.arrays.shape import positions
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
    is_known,
    is_sequence,
    nonzero,
    unsupported,
)
from parakeet_py.library.reductions.reductions import flat_index
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import checked_dtype, converted, inverse_axes, kind_of, must_be_int, result_kind

# ---- grids -----------------------------------------------------------------------------------------------------------


def is_count(step):
    """Whether a step is complex: its size is a number of points then."""
    return dtype_of(as_numeric(step)).kind == "c"


def ends_of(item):
    """The start and the step of a slice."""
    return 0 if item.start is None else item.start, 1 if item.step is None else item.step


def line_of(item):
    """The numbers of a slice that stands alone."""
    start, step = ends_of(item)
    if not is_count(step):
        return arange(start, item.stop, step)
    kind = result_kind(kind_of(as_numeric(start)), kind_of(as_numeric(item.stop)), float)
    return counted(int(abs(step)), start, spacing(item), kind)


def spacing(item):
    """The gap between the points of a slice."""
    start, step = ends_of(item)
    if not is_count(step):
        return step
    count = int(abs(step))
    if is_known(count):
        return 1 if count == 1 else (item.stop - start) / float(count - 1)
    return (item.stop - start) / float(max(count - 1, 1))


def counted(count, start, step, kind):
    """start + i * step, with i of a dtype."""
    check(count >= 0, "ValueError", "negative dimensions are not allowed")
    return generate((count,), lambda i: cast(i, kind)) * step + start


def grid_line(item, kind):
    """The numbers along one axis of a grid of several."""
    start, step = ends_of(item)
    count = int(abs(step)) if is_count(step) else max(length_of_range(start, item.stop, step), 0)
    return counted(count, start, spacing(item), kind)


def kinds_of(item):
    start, step = ends_of(item)
    return [kind_of(as_numeric(x)) for x in (start, item.stop, abs(step) if is_count(step) else step)]


def lines_of(key):
    kinds = ()
    for item in key:
        kinds = (*kinds, *kinds_of(item))
    kind = checked_dtype(result_kind(int, *kinds))
    lines = tuple([grid_line(item, kind) for item in key])
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
        start, step = ends_of(item)
        return linspace(start, item.stop, int(abs(step))) if is_count(step) else line_of(item)
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


@implements(np.s_)
def s_(key):
    return key


@implements(np.index_exp)
def index_exp(key):
    return key if isinstance(key, tuple) else (key,)


@implements(np.ix_)
def ix_(*args):
    lines = tuple([open_line(one, as_array(one)) for one in args])
    return tuple([line[single_range(axis, len(lines))] for axis, line in enumerate(lines)])


def open_line(given, a):
    if a.ndim != 1:
        unsupported("Cross index must be 1 dimensional")
    if is_sequence(given) and is_known(a.shape[0]) and a.shape[0] == 0:
        return np.zeros(0, np.intp)  # of no items nothing is known of their kind
    return nonzero(a)[0] if dtype_of(a).kind == "b" else a


# ---- positions -------------------------------------------------------------------------------------------------------


def extents_from(shape):
    return tuple(shape) if is_sequence(shape) else (shape,)


@static
def slowest_first(order, count):
    """The axes from the slowest to the fastest."""
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    return tuple(range(count)) if order == "C" else tuple(reversed(range(count)))


@implements(np.unravel_index)
def unravel_index(indices, shape, order="C"):
    extents = extents_from(shape)
    places = as_numeric(indices)
    if dtype_of(places).kind not in "iu":
        hand_back("indices that are no ints")
    size = 1
    for extent in extents:
        size = size * extent
    axes = slowest_first(order, len(extents))

    def split(index):
        left = int(index)
        message = "index {0} is out of bounds for array with size {1}"
        check((left >= 0) & (left < size), "ValueError", message, left, size)
        found = ()
        for axis in axes[::-1]:
            extent = max(extents[axis], 1)
            found = (cast(left % extent, "int64"), *found)
            left = left // extent
        return tuple([found[place] for place in inverse_axes(axes)])

    made = elementwise(split, places)
    return made if len(extents) > 1 else (made,)


@static
def modes_of(mode, count):
    """What to do with coordinates out of range, for each axis."""
    modes = (mode,) * count if isinstance(mode, str) else tuple(mode)
    if len(modes) != count or not set(modes) <= {"raise", "wrap", "clip"}:
        raise ValueError("clipmode must be one of 'clip', 'raise', or 'wrap'")
    return modes


def coordinate(index, extent, mode):
    check(extent > 0, "ValueError", "cannot unravel if shape has zero entries (is empty).")
    index = int(index)
    if mode == "wrap":
        return index % extent
    if mode == "clip":
        return min(max(index, 0), extent - 1)
    check((index >= 0) & (index < extent), "ValueError", "invalid entry in coordinates array")
    return index


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    extents = extents_from(dims)
    for extent in extents:
        must_be_int(extent)
    modes = modes_of(mode, len(extents))
    axes = slowest_first(order, len(extents))

    def join(*place):
        found = [coordinate(index, extent, own) for index, extent, own in zip(place, extents, modes)]
        return cast(flat_index(tuple([found[axis] for axis in axes]), tuple([extents[axis] for axis in axes])), "int64")

    if is_array(multi_index) and multi_index.ndim > 0:
        message = "parameter multi_index must be a sequence of length {0}"
        check(multi_index.shape[0] == len(extents), "ValueError", message, len(extents))
        multi_index = tuple([multi_index[axis] for axis in positions(len(extents))])
    places = [as_numeric(index) for index in multi_index]
    for place in places:
        if dtype_of(place).kind not in "iu":
            hand_back("indices that are no ints")
    return elementwise(join, *places)


@implements(np.tril_indices)
def tril_indices(n, k=0, m=None):
    return nonzero(tri(n, m, k, bool))


@implements(np.triu_indices)
def triu_indices(n, k=0, m=None):
    return nonzero(~tri(n, m, k - 1, bool))
