"""Elements put in and taken out: insert, delete, resize, trim_zeros; blocks, slices along an axis as a tuple.

New memory is in Fortran order where the array is in that order only, else in C order. Slices and single positions are
two copies of whole slabs; positions in arrays go through a mask of what is old.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.creation import leading_axes
from parakeet_py.library.arrays.joining import concatenate
from parakeet_py.library.arrays.shape import positions, ravel
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    assign,
    broadcast_view,
    cast,
    check,
    copy,
    dtype_of,
    extent_is_one,
    generate,
    hand_back,
    is_array,
    is_known,
    is_sequence,
    layout_of,
    load,
    reshape,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import ALL, must_be_array, must_be_int, reduction_axes, single_axis


def order_of_new(a):
    return "F" if a.ndim > 1 and layout_of(a) == "F" else "C"


def like_with(a, axis, extent):
    """New memory for an array whose extent along one axis is another."""
    return allocate(a.shape[:axis] + (extent,) + a.shape[axis + 1 :], dtype_of(a), order_of_new(a))


def at(axis, item):
    """The index of one axis, the ones before taken whole."""
    return (ALL,) * axis + (item,)


def along(a, axis):
    """The array and the axis that insert and delete work on: flattened without an axis."""
    if axis is None:
        return (a if a.ndim == 1 else ravel(a)), 0
    return a, single_axis(axis, a.ndim)


@static
def outside(axis, rank):
    return f"index {{0}} is out of bounds for axis {axis} with size {{1}}"


def is_single(obj):
    """Whether a place is one integer."""
    return not is_sequence(obj) and not isinstance(obj, slice) and not (is_array(obj) and obj.ndim > 0)


def places_of(obj, extent):
    """The positions that a slice, a mask or a sequence of integers names, not yet wrapped around."""
    if isinstance(obj, slice):
        return generate((extent,), lambda i: cast(i, "int64"))[obj]
    if is_sequence(obj) and len(obj) == 0:
        return np.zeros((0,), np.int64)
    places = as_array(obj)
    if dtype_of(places).kind not in "iub":
        unsupported("positions that are not integers")
    if places.ndim != 1:
        unsupported("positions with several axes")
    return places


# ---- insert ----------------------------------------------------------------------------------------------------------


@implements(np.insert)
def insert(arr, obj, values, axis=None):
    a, axis = along(as_array(arr), axis)
    if a.ndim == 0:
        unsupported("np.insert into a 0-d array")
    values = np.asarray(values, dtype_of(a))
    extent = a.shape[axis]
    if is_single(obj):
        if dtype_of(obj).kind not in "iu":
            hand_back("np.insert at a position that is no int")
        return inserted_at(a, int(obj), values, axis, True)
    places = places_of(obj, extent)
    if dtype_of(places).kind == "u" or (is_sequence(obj) and dtype_of(places).kind == "b"):
        hand_back("np.insert at positions of a dtype that NumPy refuses")
    if dtype_of(places).kind == "b":
        places = np.flatnonzero(places)
    if is_sequence(obj) and len(obj) == 1:
        return inserted_at(a, int(load(places, 0)), values, axis, False)
    check(places.shape[0] != 1, "Deoptimize", "one position in an array of positions")
    places = cast(places, "int64")
    places = np.where(places < 0, places + extent, places)
    order = np.argsort(places, kind="stable")
    new = places.copy()
    new[order] += np.arange(places.shape[0])
    total = extent + places.shape[0]
    old = np.ones((total,), np.bool_)
    old[new] = False
    made = like_with(a, axis, total)
    made[at(axis, new)] = values
    made[at(axis, old)] = a
    return made


def inserted_at(a, place, values, axis, moved):
    """Values put in at one position: their extent along the axis is what is new."""
    extent = a.shape[axis]
    check((place >= -extent) & (place <= extent), "IndexError", outside(axis, a.ndim), place, extent)
    place = place + extent if place < 0 else place
    values = values[leading_axes(values.ndim, a.ndim)] if values.ndim < a.ndim else values
    if moved:
        values = np.moveaxis(values, 0, axis)
    count = values.shape[axis]
    made = like_with(a, axis, extent + count)
    assign(made[at(axis, slice(0, place))], a[at(axis, slice(0, place))])
    assign(made[at(axis, slice(place, place + count))], values)
    assign(made[at(axis, slice(place + count, None))], a[at(axis, slice(place, None))])
    return made


# ---- delete ----------------------------------------------------------------------------------------------------------


@static
def mask_message():
    return "boolean array argument obj to delete must be one dimensional and match the axis length of {0}"


@implements(np.delete)
def delete(arr, obj, axis=None):
    a, axis = along(as_array(arr), axis)
    if a.ndim == 0:
        unsupported("np.delete from a 0-d array")
    extent = a.shape[axis]
    if is_sequence(obj) and len(obj) == 1 and dtype_of(as_array(obj)).kind in "iu":
        obj = obj[0]
    if is_single(obj):
        if dtype_of(obj).kind not in "iu":
            hand_back("np.delete of a position that is no int")
        if not is_array(obj):
            must_be_int(obj)
        place = int(obj)
        check((place >= -extent) & (place < extent), "IndexError", outside(axis, a.ndim), place, extent)
        place = place + extent if place < 0 else place
        return without(a, place, 1, axis)
    if isinstance(obj, slice) and (obj.step is None or (is_known(obj.step) and obj.step == 1)):
        count = a[at(axis, obj)].shape[axis]
        start = 0 if obj.start is None else int(obj.start)
        start = min(max(start + extent, 0) if start < 0 else start, extent)
        return without(a, start, count, axis)
    if isinstance(obj, slice):
        count = a[at(axis, obj)].shape[axis]
        keep = np.ones((extent,), np.bool_)
        keep[obj] = False
        if a.ndim == 1:
            return a[keep]
        made = like_with(a, axis, extent - count)
        assign(made, a[at(axis, keep)])
        return made
    places = places_of(obj, extent)
    if dtype_of(places).kind == "b":
        check(places.shape[0] == extent, "ValueError", mask_message(), extent)
        return a[at(axis, ~places)]
    check(is_sequence(obj) | (places.shape[0] != 1), "Deoptimize", "one position in an array of positions")
    keep = np.ones((extent,), np.bool_)
    keep[places] = False
    return a[at(axis, keep)]


def without(a, start, count, axis):
    """An array without so many elements of an axis."""
    made = like_with(a, axis, a.shape[axis] - count)
    assign(made[at(axis, slice(0, start))], a[at(axis, slice(0, start))])
    assign(made[at(axis, slice(start, None))], a[at(axis, slice(start + count, None))])
    return made


# ---- other sizes -----------------------------------------------------------------------------------------------------


@implements(np.resize)
def resize(a, new_shape):
    flat = ravel(a)
    shape = tuple(new_shape) if is_sequence(new_shape) else (new_shape,)
    for extent in shape:
        check(extent >= 0, "ValueError", "all elements of `new_shape` must be non-negative")
    if len(shape) == 0:
        hand_back("np.resize to a 0-d array")
    total = 1
    for extent in shape:
        total = total * extent
    size = flat.shape[0]
    if size == 0:
        return np.zeros(shape, dtype_of(flat))
    made = allocate((total,), dtype_of(flat))
    whole = total // size
    rounds = reshape(made[: whole * size], (whole, size))
    assign(rounds, flat)
    assign(made[whole * size :], flat[: total - whole * size])
    return reshape(made, shape)


@static
def ends_to_trim(trim):
    if trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    return trim.lower()


@implements(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    if is_sequence(filt):
        hand_back("np.trim_zeros of a list")
    a = as_array(filt)
    ends = ends_to_trim(trim)
    axes = reduction_axes(axis, a.ndim)
    if len(axes) == 0:
        return filt
    index = ()
    for own in positions(a.ndim):
        index = (*index, kept_slice(a, own, ends) if own in axes else ALL)
    return a[index]


def kept_slice(a, axis, ends):
    """From the first to the last position of an axis at which an element is not zero; nothing if none is."""
    extent = a.shape[axis]
    first = 0
    while first < extent and not any_at(a, axis, first):
        first += 1
    last = extent
    while last > first and not any_at(a, axis, last - 1):
        last -= 1
    empty = first == extent
    return slice(0 if empty or "f" not in ends else first, 0 if empty else last if "b" in ends else extent)


def any_at(a, axis, place):
    return a[at(axis, place)] != 0 if a.ndim == 1 else (a[at(axis, place)] != 0).any()


@implements(np.unstack)
def unstack(x, /, *, axis=0):
    must_be_array(x)
    x = as_array(x)
    if x.ndim == 0:
        unsupported("Input array must be at least 1-d.")
    count = x.shape[single_axis(axis, x.ndim)]
    if not is_known(count):
        hand_back("np.unstack along an axis of unknown extent")
    x = np.moveaxis(x, axis, 0)
    return tuple([x[place] for place in positions(count)])


# ---- blocks ----------------------------------------------------------------------------------------------------------


def depth_of(arrays):
    """How deep lists are nested."""
    if is_sequence(arrays) and len(arrays) == 0:
        unsupported("List at arrays cannot be empty")
    return 1 + depth_of(arrays[0]) if is_sequence(arrays) else 0


def rank_of_blocks(arrays):
    """The largest rank of what is in nested lists."""
    if not is_sequence(arrays):
        return np.ndim(arrays)
    return max((0, *[rank_of_blocks(one) for one in arrays]))


def joined_blocks(arrays, depth, rank):
    """Nested lists put together, the innermost along the last axis."""
    if depth == 0:
        if is_sequence(arrays):
            unsupported("lists of blocks of unequal depth")
        a = as_array(arrays)
        return a[leading_axes(a.ndim, rank)] if a.ndim < rank else a
    if not is_sequence(arrays) or isinstance(arrays, tuple):
        unsupported("lists of blocks of unequal depth, or tuples")
    return concatenate([joined_blocks(one, depth - 1, rank) for one in arrays], -depth)


@implements(np.block)
def block(arrays):
    depth = depth_of(arrays)
    if depth == 0:
        return copy(as_array(arrays), "C")
    return joined_blocks(arrays, depth, max(depth, rank_of_blocks(arrays)))


# ---- broadcasting ----------------------------------------------------------------------------------------------------


def common_extent(left, right):
    check(
        (left == right) | (left == 1) | (right == 1),
        "ValueError",
        "shape mismatch: objects cannot be broadcast to a single shape.",
    )
    if is_known(left) and left == 1:
        return right
    if is_known(right) and right == 1:
        return left
    return right if left == 1 else left


def common_shape(shapes):
    """The shape that all of some shapes are broadcast to."""
    made = ()
    for shape in shapes:
        longer, shorter = (made, shape) if len(made) >= len(shape) else (shape, made)
        ahead = len(longer) - len(shorter)
        made = longer[:ahead] + tuple([common_extent(a, b) for a, b in zip(longer[ahead:], shorter)])
    return made


@implements(np.broadcast_shapes)
def broadcast_shapes(*args):
    shapes = [tuple(shape) if is_sequence(shape) else (shape,) for shape in args]
    for shape in shapes:
        for extent in shape:
            must_be_int(extent)
            check(extent >= 0, "ValueError", "negative dimensions are not allowed")
    return common_shape(shapes)


def settled_first(arrays, rank, axis):
    """The extents along an axis of the common shape, of axes that surely are not 1 first."""
    found = ()
    for a in arrays:
        own = axis - (rank - a.ndim)
        if own >= 0:
            found = (a.shape[own], *found) if extent_is_one(a, own) is False else (*found, a.shape[own])
    return found


def keeps_shape(a, shape):
    """Whether an array surely has the common shape already, whose extents have been checked."""
    if a.ndim != len(shape):
        return False
    for axis, extent in enumerate(shape):
        if extent_is_one(a, axis) is not False and not (is_known(extent) and extent == 1):
            return False
    return True


@implements(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    arrays = tuple([as_array(a) for a in args])
    rank = max((0, *[a.ndim for a in arrays]))
    shape = ()
    for axis in positions(rank):
        extents = settled_first(arrays, rank, axis)
        extent = extents[0]
        for other in extents[1:]:
            extent = common_extent(extent, other)
        shape = (*shape, extent)
    return tuple([a if keeps_shape(a, shape) else broadcast_view(a, shape, True) for a in arrays])
