"""The memory of an array seen in other ways: as another dtype, along its diagonals, through windows, as one line.

NumPy makes views of these. Here they are copies that stand for views (`standing_for_view`) and fuse with what reads
them; where it has to be the real view (`wants_view`), because it is returned or its memory is stored to, that is
made from the array's strides (`strided`).
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from parakeet_py.library.arrays.shape import positions, ravel
from parakeet_py.library.intrinsics import (
    as_array,
    assign,
    cast,
    check,
    copy,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_known,
    is_sequence,
    is_weak,
    is_writeable,
    layout_of,
    load,
    may_overlap,
    order_of,
    permute,
    prim,
    read_only,
    reshape,
    shared_elements,
    standing_for_view,
    stride_of,
    strided,
    unsupported,
    wants_view,
)
from parakeet_py.library.registry import helper, implements, method, static
from parakeet_py.library.shared import inverse_axes, must_be_int, must_be_writeable

# ---- the same bits as another dtype ----------------------------------------------------------------------------------


@static
def view_kind(dtype):
    """The dtype that `view` is asked for; None if it is asked for another class of arrays."""
    return None if isinstance(dtype, type) and issubclass(dtype, np.ndarray) else np.dtype(dtype)


@static
def is_reinterpreted(own, kind):
    """Whether numbers of one dtype are those of another with the same bits, both with an integer of that width."""
    numbers = own.kind in "iuf" and kind.kind in "iuf" and kind.isnative
    return numbers and own.itemsize == kind.itemsize and own.itemsize <= 8


@static
def signed(kind):
    return np.dtype(f"i{kind.itemsize}")


def reinterpreted(x, kind):
    """A number's bits as a number of another dtype."""
    bits = prim("bits", x) if dtype_of(x).kind == "f" else cast(x, signed(kind))
    return prim("from_bits", bits) if kind.kind == "f" else cast(bits, kind)


RESIZED = (
    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the "
    "array."
)


@method("view")
def view(a, dtype=None, type=None):
    if type is not None:
        hand_back("a view as another class of arrays")
    if dtype is None:
        return a[...]
    kind = view_kind(dtype)
    if kind is None:
        hand_back("a view as another class of arrays")
    if kind == dtype_of(a):
        return a[...]
    own = dtype_of(a)
    if not same_alignment(own, kind):
        hand_back("a view with items that may lie anywhere or be neither true nor false")
    if not is_reinterpreted(own, kind) or wants_view():
        return resized(a, own.itemsize, kind)
    return standing_for_view(as_array(elementwise(lambda x: reinterpreted(x, kind), a)), a, is_writeable(a))


@static
def same_alignment(own, kind):
    """Whether memory of one dtype can hold another one, as it lies."""
    known = own.kind in "iufcb" and kind.kind in "iufc" and kind.isnative
    return known and kind.alignment <= own.alignment


def resized(a, own, kind):
    """The bytes of an array as items of another dtype, more or fewer along its last axis."""
    size = kind.itemsize
    strides = tuple([stride_of(a, axis) for axis in positions(a.ndim)])
    if size == own:
        return strided(a, 0, a.shape, strides, kind, "C" if layout_of(a) == "C" else "A")
    check(a.ndim > 0, "ValueError", "Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    extent = a.shape[-1]
    apart = "To change to a dtype of a different size, the last axis must be contiguous"
    check((extent == 1) | (a.size == 0) | (strides[-1] == own), "ValueError", apart)
    fits = (extent * own) % size == 0
    check(fits, "ValueError", RESIZED)
    shape = (*a.shape[:-1], extent * own // size)
    return strided(a, 0, shape, (*strides[:-1], size), kind, "C" if layout_of(a) == "C" else "A")


# ---- diagonals -------------------------------------------------------------------------------------------------------


@static
def plane_axes(axis1, axis2, rank):
    if rank < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    return normalize_axis_tuple((axis1, axis2), rank)


@static
def diagonal_order(order):
    """The axes from the slowest to the fastest, of diagonals along the last two axes of an array in that order: they
    are as slow as the slower of these. Sums go through them so."""
    last = len(order) - 2
    return tuple(dict.fromkeys(min(axis, last) for axis in order))


def diagonal_values(a, offset, axis1, axis2):
    """A new array of the diagonals, along a new last axis."""
    axes = plane_axes(axis1, axis2, a.ndim)
    a = np.moveaxis(a, axes, (-2, -1))
    must_be_int(offset)
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(a.shape[-2] - down, a.shape[-1] - right), 0)
    if a.ndim == 2:
        return generate((count,), lambda k: load(a, k + down, k + right))
    shape, order = (*a.shape[:-2], count), diagonal_order(order_of(a))
    places = inverse_axes(order)

    def element(*turned):
        place = [turned[at] for at in places]
        return load(a, *place[:-1], place[-1] + down, place[-1] + right)

    return permute(generate(tuple([shape[axis] for axis in order]), element), places)


@static
def diagonal_axes(axes, rank):
    """The axes of an array of diagonals: those of the array without two, and its last."""
    return tuple(axis for axis in range(rank) if axis not in axes)


def diagonal_view(a, offset, axes):
    """The diagonals in the memory of an array."""
    rest = diagonal_axes(axes, a.ndim)
    must_be_int(offset)
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(a.shape[axes[0]] - down, a.shape[axes[1]] - right), 0)
    along, across = stride_of(a, axes[0]), stride_of(a, axes[1])
    strides = tuple([stride_of(a, axis) for axis in rest])
    shape = (*[a.shape[axis] for axis in rest], count)
    return strided(a, down * along + right * across, shape, (*strides, along + across))


def diagonal_of(a, offset, axis1, axis2):
    axes = plane_axes(axis1, axis2, a.ndim)
    if wants_view():
        return read_only(diagonal_view(a, offset, axes))
    return standing_for_view(diagonal_values(a, offset, *axes), a)


@implements(np.diagonal)
@method("diagonal")
def diagonal(a, offset=0, axis1=0, axis2=1):
    return diagonal_of(as_array(a), offset, axis1, axis2)


# ---- windows ---------------------------------------------------------------------------------------------------------


@static
def window_axes(axis, count, rank):
    """The axes that windows slide along, one for each of their extents."""
    if axis is None:
        if count != rank:
            raise ValueError("Since axis is None, must provide window_shape for all dimensions of `x`")
        return tuple(range(rank))
    axes = normalize_axis_tuple(axis, rank, allow_duplicate=True)
    if len(axes) != count:
        raise ValueError("Must provide matching length window_shape and axis")
    return axes


@implements(sliding_window_view)
def windows(x, window_shape, axis=None, *, subok=False, writeable=False):
    x = as_array(x)
    window = tuple(window_shape) if is_sequence(window_shape) else (window_shape,)
    axes = window_axes(axis, len(window), x.ndim)
    for extent in window:
        check(extent >= 0, "ValueError", "`window_shape` cannot contain negative values")
    trimmed = x.shape
    for own, extent in zip(axes, window):
        check(trimmed[own] >= extent, "ValueError", "window shape cannot be larger than input array shape")
        trimmed = (*trimmed[:own], trimmed[own] - extent + 1, *trimmed[own + 1 :])
    shape = (*trimmed, *window)
    order = with_windows(order_of(x) if x.ndim > 0 else (), axes)
    turned = tuple([shape[axis] for axis in order])
    places = inverse_axes(order)
    if wants_view():
        sources = window_sources(axes, x.ndim)
        view = permute(strided(x, 0, turned, [stride_of(x, sources[axis]) for axis in order]), places)
        return shared_elements(view) if writeable else read_only(view)
    made = generate(turned, lambda *place: load(x, *window_place([place[at] for at in places], axes, x.ndim)))
    return standing_for_view(permute(made, places), x, writeable and is_writeable(x))


@static
def window_sources(axes, rank):
    """The axes along which windows and the places in them move."""
    return (*range(rank), *axes)


@static
def with_windows(order, axes):
    """The axes of windows from the slowest to the fastest: every axis before the windows along it."""
    rank = len(order)
    return tuple(own for axis in order for own in (axis, *(rank + k for k, along in enumerate(axes) if along == axis)))


def window_place(place, axes, rank):
    """Where the element at a place of the windows stands in the array."""
    found = tuple(place[:rank])
    for axis, within in zip(axes, place[rank:]):
        found = (*found[:axis], found[axis] + within, *found[axis + 1 :])
    return found


def is_given(value):
    return not is_known(value) or value is not None


@implements(as_strided)
def strided_function(x, shape=None, strides=None, subok=False, writeable=True, *, check_bounds=None):
    """Any view of an array's own elements; of the memory around them NumPy makes it."""
    x = as_array(x)
    if not is_writeable(x) or not (is_given(shape) and is_given(strides)):
        hand_back("as_strided of a read-only array, or by its own shape or strides")
    shape = tuple(shape) if is_sequence(shape) else (shape,)
    strides = tuple(strides) if is_sequence(strides) else (strides,)
    if len(shape) != len(strides):
        unsupported("strides and shape do not have the same length")
    low, high, some = 0, dtype_of(x).itemsize, x.size > 0
    for axis in positions(x.ndim):
        reach = (x.shape[axis] - 1) * stride_of(x, axis)
        low, high = low + min(reach, 0), high + max(reach, 0)
    for extent, stride in zip(shape, strides):
        reach = (extent - 1) * stride
        low, high = low - min(reach, 0), high - max(reach, 0)
        some = some & (extent > 0) & (stride % dtype_of(x).alignment == 0)
    inside = (low <= 0) & (high >= dtype_of(x).itemsize)
    check(some & inside, "Deoptimize", "as_strided beyond the elements of an array")
    view = strided(x, 0, shape, strides)
    return shared_elements(view) if writeable else read_only(view)


# ---- one element after the other: a.flat -----------------------------------------------------------------------------

FLAT_MESSAGE = "index {0} is out of bounds for size {1}"


def flat_place(a, index):
    """The indices of the element that is at a position of `a.flat`."""
    index = int(index)
    check((index >= -a.size) & (index < a.size), "IndexError", FLAT_MESSAGE, index, a.size)
    return unravelled(a, index % a.size)


def unravelled(a, left):
    place = ()
    for extent in a.shape[::-1]:
        place = (left % extent, *place)
        left = left // extent
    return place


@helper
def flat_line(a):
    """The elements in C order, as one line: the memory itself where it lies so."""
    if layout_of(a) == "C":
        return reshape(a, (a.size,))
    if wants_view():
        hand_back("a.flat as an array that is stored to")
    return standing_for_view(ravel(a), a, is_writeable(a))


def is_position(index):
    return not is_sequence(index) and not isinstance(index, slice) and not is_array(index)


@helper
def flat_item(a, position):
    """The element at a position that there is."""
    return load(a, *unravelled(a, position))


@helper
def flat_read(a, index):
    """a.flat[index], which is a copy."""
    if isinstance(index, slice):
        line = reshape(a if layout_of(a) == "C" else copy(a, "C"), (a.size,))
        return copy(line[index], "C")
    if not is_position(index) or dtype_of(index).kind not in "iu":
        hand_back("a.flat with an index of this kind")
    return load(a, *flat_place(a, index))


def must_fit(value, kind):
    """NumPy asks a scalar itself for the number to be stored, which may not fit."""
    if kind.kind in "iu" and not is_array(value) and not (is_weak(value) and dtype_of(value).kind != "f"):
        if not np.can_cast(dtype_of(value), kind):
            hand_back("a number of another kind stored in a.flat")


@helper
def flat_write(a, index, value, message="underlying array is read-only"):
    """a.flat[index] = value: an array or a sequence is repeated until the end."""
    must_be_writeable(a, message)
    several = is_sequence(value) or is_array(value)
    if isinstance(index, slice):
        if several:
            if layout_of(a) != "C" or (is_array(value) and may_overlap(a, value)):
                hand_back("several values stored in a.flat")
            values = as_array(value, dtype_of(a)) if is_sequence(value) else value
            line, values = reshape(a, (a.size,))[index], ravel(values)
            if values.size > 0:
                assign(line, generate(line.shape, lambda k: load(values, k % values.size)), True)
        elif layout_of(a) == "C":
            must_fit(value, dtype_of(a))
            reshape(a, (a.size,))[index] = value
        elif is_known(index) and index == slice(None):
            a[...] = value
        else:
            hand_back("a part of a.flat of an array that is not contiguous")
    else:
        if several or not is_position(index) or dtype_of(index).kind not in "iu":
            hand_back("a.flat with an index of this kind")
        must_fit(value, dtype_of(a))
        if is_weak(value) and dtype_of(value).kind == "i" and dtype_of(a).kind in "iu":
            limits = np.iinfo(dtype_of(a))  # NumPy raises an error of its own here
            fits = (value >= int(limits.min)) & (value <= int(limits.max))
            check(fits, "ValueError", "Error setting single item of array.")
        a[flat_place(a, index)] = value
