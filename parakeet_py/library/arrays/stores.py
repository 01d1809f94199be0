"""Stores into arrays: copyto, putmask, place, put, along an axis, on diagonals; and piecewise, which is made of them.

Values that are fewer than the places begin again from the front. What is stored is converted as NumPy does here:
arrays only to a dtype that holds all their numbers, Python's own numbers to any.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import positions, ravel
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
    is_weak,
    layout_of,
    load,
    prim,
    reduce_axes,
    reshape,
    scatter,
    unsupported,
)
from parakeet_py.library.reductions.membership import latest
from parakeet_py.library.reductions.reductions import flat_index
from parakeet_py.library.reductions.scans import cumsum
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import (
    check_output_cast,
    integer_limits,
    kind_of,
    must_be_writeable,
    one_mode,
    result_kind,
    single_axis,
    stored,
)


@implements(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    src = as_numeric(src)
    source = dtype_of(src) if not is_weak(src) else result_kind(kind_of(src), dtype_of(dst))
    check_output_cast(source, dtype_of(dst), casting)
    if where is True:
        assign(dst, src)
    else:
        mask = as_array(where)
        if dtype_of(mask) != np.bool_:
            hand_back("where= that is no mask")
        assign(dst, src, where=mask)


# ---- values ----------------------------------------------------------------------------------------------------------


@static
def loses_kind(source, target):
    """Whether Python has no such number for another."""
    return source.kind == "c" and target.kind != "c"


def values_for(given, kind):
    """Values to be stored as a line of a dtype."""
    if is_weak(given) or is_sequence(given):
        values = as_array([given] if is_weak(given) else given)
        if loses_kind(dtype_of(values), kind):
            unsupported("a complex number in an array of others")
        if dtype_of(values).kind in "if" and kind.kind in "iu":
            low, high = integer_limits(kind)
            fits = elementwise(lambda x: (x >= low) & (x <= high), values)
            check(np.all(fits), "Deoptimize", "numbers that the dtype does not hold")
        values = as_array([given] if is_weak(given) else given, kind)
    else:
        values = as_array(given)
        if not np.can_cast(dtype_of(values), kind):
            hand_back("values of another dtype")
    values = ravel(values)
    return values if dtype_of(values) == kind else cast(values, kind)


def same_size(mask, a, message):
    check(mask.size == a.size, "ValueError", message)


# ---- through masks ---------------------------------------------------------------------------------------------------


@implements(np.putmask)
def putmask(a, /, mask, values):
    if not is_array(a):
        unsupported("putmask into what is not an array")
    must_be_writeable(a, "putmask: output array is read-only")
    mask = as_array(mask)
    same_size(mask, a, "putmask: mask and data must be the same size")
    values = values_for(values, dtype_of(a))
    count = values.shape[0]
    if count >= a.size:  # the usual case, without a division for every element
        store_masked(a, ravel(mask), lambda k: load(values, k))
    elif count > 0:
        store_masked(a, ravel(mask), lambda k: load(values, k % count))


@implements(np.place)
def place(arr, mask, vals):
    if not is_array(arr):
        unsupported("place into what is not an array")
    must_be_writeable(arr, "WRITEBACKIFCOPY base is read-only")
    mask = ravel(as_array(mask))
    same_size(mask, arr, "place: mask and data must be the same size")
    values = values_for(vals, dtype_of(arr))
    count = values.shape[0]
    if count == 0:
        check(~np.any(mask), "ValueError", "Cannot insert from an empty array!")
    else:
        before = cumsum(elementwise(lambda x: cast(cast(x, "bool"), "int64"), mask))
        if count >= arr.size:  # as for putmask
            store_masked(arr, mask, lambda k: load(values, int(load(before, k)) - 1))
        else:
            store_masked(arr, mask, lambda k: load(values, (int(load(before, k)) - 1) % count))


def store_masked(a, mask, value):
    """Store a function of the position in C order where a mask, a line, is true."""
    kind = dtype_of(a)
    extents = a.shape

    def new(*at):
        k = flat_index(at, extents)
        return cast(value(k), kind) if cast(load(mask, k), "bool") else load(a, *at)

    assign(a, generate(extents, new))


# ---- at positions ----------------------------------------------------------------------------------------------------


@implements(np.put)
@method("put")
def put(a, indices, values, mode="raise"):
    if not is_array(a):
        unsupported("put into what is not an array")
    must_be_writeable(a, "put: output array is read-only")
    places = as_array(indices)
    if places.ndim == 1 and is_sequence(indices) and len(indices) == 0:
        places = np.zeros((0,), np.int64)
    if dtype_of(places).kind not in "iub" or dtype_of(places) == np.uint64:
        hand_back("positions that are not integers")
    places = elementwise(lambda x: cast(x, "int64"), ravel(places))
    mode = one_mode(mode)
    values = values_for(values, dtype_of(a))
    count, total, size = values.shape[0], places.shape[0], a.size
    check((total == 0) | (size > 0), "IndexError", "cannot replace elements of an empty array")
    if count > 0 and total > 0:
        stop = first_outside(places, size) if mode == "raise" else total
        in_place = layout_of(a) == "C"  # NumPy stores into a copy of another, of which an error leaves nothing
        check((stop == total) | in_place, "Deoptimize", "positions out of range")
        wrapped = generate((stop,), lambda k: cast(wrapped_around(int(load(places, k)), size, mode), "int64"))
        line = generate((stop,), lambda k: load(values, k % count))
        if a.ndim == 1:
            scatter(a, wrapped, line, latest)
        elif in_place:
            scatter(reshape(a, (size,)), wrapped, line, latest)
        else:
            for k in range(stop):
                a[point_of(int(load(wrapped, k)), a.shape)] = load(line, k)
        message = "index {0} is out of bounds for axis 0 with size {1}"
        check(stop == total, "IndexError", message, int(load(places, min(stop, total - 1))), size)


def first_outside(places, size):
    """The number of places before the first that does not exist."""
    (found,) = reduce_axes(
        places,
        (0,),
        (cast(places.shape[0], "int64"),),
        lambda x, k: (prim("select", (x < -size) | (x >= size), cast(k, "int64"), cast(places.shape[0], "int64")),),
        lambda a, b: (np.minimum(a, b),),
    )
    return int(found)


def wrapped_around(place, size, mode):
    if mode == "wrap":
        return place % size
    if mode == "clip":
        return min(max(place, 0), size - 1)
    return place + size if place < 0 else place


def point_of(place, extents):
    """The point of an index space at a position in C order."""
    point = ()
    for extent in extents[:0:-1]:
        point = (place % extent, *point)
        place = place // extent
    return (place, *point) if len(extents) > 0 else ()


@static
def axis_index(own, rank):
    """The index that lays a line along one of several axes."""
    return tuple(slice(None) if axis == own else None for axis in range(rank))


@implements(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    if axis is None:
        hand_back("np.put_along_axis of flattened data, which stores nothing")
    if not is_array(arr) or not is_array(indices) or arr.ndim != indices.ndim or dtype_of(indices).kind not in "iu":
        unsupported("`indices` and `arr` must have the same number of dimensions")
    axis = single_axis(axis, arr.ndim)
    index = ()
    for own in positions(arr.ndim):
        line = indices if own == axis else np.arange(arr.shape[own])[axis_index(own, arr.ndim)]
        index = (*index, line)
    arr[index] = stored(values, dtype_of(arr)) if is_weak(values) else values


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    if not is_array(a) or a.ndim < 2:
        unsupported("array must be at least 2-d")
    must_be_writeable(a, "underlying array is read-only")
    if is_array(val):
        line = cast(ravel(val), dtype_of(a))
    elif not is_sequence(val) and not is_weak(val):  # a scalar of NumPy's is converted as an array of it
        line = ravel(as_array([cast(val, dtype_of(a))], dtype_of(a)))
    else:
        line = ravel(as_array(val if is_sequence(val) else [val], dtype_of(a)))
    count = line.shape[0]
    check(count > 0, "Deoptimize", "a diagonal filled with nothing")
    if a.ndim == 2 and wrap:
        rows, columns = a.shape
        for k in range(-(-(rows * columns) // (columns + 1))):
            position = k * (columns + 1)
            a[position // columns, position % columns] = load(line, k % count)
    else:
        extent = a.shape[0]
        for other in a.shape[1:]:
            if a.ndim > 2:
                check(other == extent, "ValueError", "All dimensions of input must be of equal length")
            extent = min(extent, other)
        for k in range(extent):
            a[(k,) * a.ndim] = load(line, k % count)


# ---- piecewise -------------------------------------------------------------------------------------------------------


@static
def check_functions(conditions, functions):
    if functions not in (conditions, conditions + 1):
        raise ValueError(f"with {conditions} condition(s), either {conditions} or {conditions + 1} are expected")
    return functions > conditions


def as_mask(condition, x):
    mask = as_array(condition)
    if mask.ndim != x.ndim:
        hand_back("conditions of another rank")
    for own, extent in zip(mask.shape, x.shape):
        check(own == extent, "Deoptimize", "conditions of another shape")
    return mask if dtype_of(mask).kind == "b" else cast(mask, "bool")


@implements(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    x = as_array(x)
    if x.ndim == 0 or (not is_sequence(condlist) and as_array(condlist).ndim != 1):
        hand_back("np.piecewise of a 0-d array, or with conditions in one array")
    if not is_sequence(condlist):
        check(condlist.shape[0] > 0, "IndexError", "index 0 is out of bounds for axis 0 with size 0")
    single = not is_sequence(condlist) or not (is_array(condlist[0]) or is_sequence(condlist[0]))
    masks = tuple([as_mask(condition, x) for condition in ([condlist] if single else condlist)])
    if check_functions(len(masks), len(funclist)):
        covered = masks[0]
        for mask in masks[1:]:
            covered = covered | mask
        masks = (*masks, ~covered)
    made = np.zeros_like(x)
    for mask, function in zip(masks, funclist):
        if callable(function):
            chosen = x[mask]
            if chosen.size > 0:
                made[mask] = function(chosen, *args, **kw)
        else:
            made[mask] = stored(function, dtype_of(made)) if is_weak(function) else function
    return made
