"""Changing shape: reshape and its relatives, permutations of axes, new and dropped axes, reversals.

Everything that is a view in NumPy is one here; reshape of memory that is not in C order is a copy, as it is in NumPy.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from parakeet_py.library.intrinsics import (
    as_array,
    broadcast_view,
    check,
    copy,
    dtype_of,
    extent_is_one,
    hand_back,
    is_array,
    is_known,
    is_sequence,
    is_weak,
    is_writeable,
    layout_of,
    lies_in_order,
    permute,
    reshape,
    reshaped_strides,
    standing_for_view,
    strided,
    surely_strided,
    unsupported,
    wants_view,
)
from parakeet_py.library.registry import helper, implements, method, static
from parakeet_py.library.shared import ALL, insert_index, must_be_array, reduction_axes

REVERSED = slice(None, None, -1)


@static
def positions(count):
    return tuple(range(count))


@static
def reversed_axes(rank):
    return tuple(reversed(range(rank)))


@static
def reshape_message(shape_rank, unknown):
    """NumPy's message, with {0} for the size and a field for each extent; it leaves out an unknown one in front."""
    fields = ["newaxis" if axis == unknown else f"{{{axis + 1}}}" for axis in range(shape_rank)]
    text = f"({fields[0]},)" if shape_rank == 1 else "(" + ",".join(fields[unknown == 0 :]) + ")"
    return f"cannot reshape array of size {{0}} into shape {text}"


def size_of(shape):
    size = 1
    for extent in shape:
        size = size * extent
    return size


def is_unknown(extent):
    """Whether an extent of a new shape is left to be found out."""
    return is_known(extent) and extent == -1


def whole(extent):
    """An extent as a Python int."""
    if is_weak(extent) or is_array(extent):
        return extent
    if dtype_of(extent).kind not in "iu":
        hand_back("an extent that is no integer")
    return int(extent)


def reshaped(a, shape):
    """C-order reshape; one extent may be -1."""
    a = as_array(a)
    shape = tuple([whole(extent) for extent in shape])
    unknown = -1
    others = 1
    for axis, extent in enumerate(shape):
        if is_unknown(extent):
            if unknown >= 0:
                unsupported("can only specify one unknown dimension")
            unknown = axis
        else:
            others = others * extent
    message = reshape_message(len(shape), unknown)
    if unknown >= 0:
        for axis, extent in enumerate(shape):
            if axis != unknown:
                check(extent >= 0, "ValueError", "can only specify one unknown dimension")
        check((others != 0) and (a.size % others == 0), "ValueError", message, a.size, *shape)
        shape = shape[:unknown] + (a.size // others,) + shape[unknown + 1 :]
    else:
        for extent in shape:
            check(extent >= 0, "Deoptimize", "a shape with an extent of -1 known only at run time")
        check(others == a.size, "ValueError", message, a.size, *shape)
    return reshape(a, shape)


@static
def fortran_order(order, layout):
    if order not in ("C", "F", "A", "K", None):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order == "F" or (order == "A" and layout == "F")


def reshape_in(a, shape, order, copied):
    if order in ("K", "k"):
        unsupported("order 'K' is not permitted for reshaping")
    if fortran_order(order, layout_of(a)):
        made = permute(reshaped(permute(a, reversed_axes(a.ndim)), shape[::-1]), reversed_axes(len(shape)))
    else:
        made = reshaped(a, shape)
    if copied is True:
        return copy(made)
    if copied is False and layout_of(a) != "C":
        hand_back("a reshape that must not copy")
    return made


@implements(np.reshape)
def reshape_function(a, /, shape, order="C", *, copy=None):
    return reshape_in(as_array(a), tuple(shape) if is_sequence(shape) else (shape,), order, copy)


@method("reshape")
def reshape_method(a, /, *shape, order="C", copy=None):
    if len(shape) == 0:
        unsupported("reshape() takes exactly 1 argument (0 given)")
    if len(shape) == 1 and is_sequence(shape[0]):
        shape = tuple(shape[0])
    return reshape_in(a, shape, order, copy)


def memory_order(a, what):
    """C or F: the order in which all elements lie in memory."""
    if layout_of(a) not in ("C", "F"):
        hand_back(what)
    return layout_of(a)


@implements(np.ravel)
@method("ravel")
def ravel_function(a, order="C"):
    a = as_array(a)
    if order == "K":
        order = memory_order(a, "ravel in the order of memory")
    line = permute(a, reversed_axes(a.ndim)) if fortran_order(order, layout_of(a)) else a
    if layout_of(line) != "C" and wants_view():
        return line_of(line)
    made = ravel(line)
    if layout_of(line) == "C" or surely_strided(line) or (layout_of(a) not in ("C", "F") and surely_strided(a)):
        return made
    return standing_for_view(made, a, is_writeable(a))


def ravel(a):
    """All elements in C order, to be read only: where they lie so when the program runs, NumPy's `ravel` is a view."""
    a = as_array(a)
    return reshape(a if layout_of(a) == "C" else copy(a, "C"), (a.size,))


@helper
def reshaped_memory(a, shape, windows=False):
    """The array under a new shape of equal size, as NumPy does it: a view where the strides allow it, else a copy.

    Of windows it is nearly always a copy.
    """
    fits, strides = reshaped_strides(a, shape)
    if not is_writeable(a) and not is_known(fits):
        if not windows:
            hand_back("a reshape that is read-only if it is a view")
        check(not fits, "Deoptimize", "a reshape of windows that is a read-only view")
        return reshape(copy(a, "C"), shape)
    if fits:
        return strided(a, 0, shape, strides)
    return reshape(copy(a, "C"), shape)


def line_of(a):
    """All elements in C order: the memory where they lie so, else a copy, as NumPy's `ravel` does it."""
    together = lies_in_order(a, "C")
    if not is_writeable(a) and not is_known(together):
        hand_back("ravel that is read-only if it is a view")
    if together:
        return strided(a, 0, (a.size,), (dtype_of(a).itemsize,), None, "C")
    return reshape(copy(a, "C"), (a.size,))


@method("flatten")
def flatten(a, order="C"):
    if order == "K":
        order = memory_order(a, "flatten in the order of memory")
    if fortran_order(order, layout_of(a)):
        a = permute(a, reversed_axes(a.ndim))
    return reshape(copy(a, "C"), (a.size,))


# ---- order of axes ---------------------------------------------------------------------------------------------------


@static
def transposition(axes, rank):
    if axes is None:
        return tuple(reversed(range(rank)))
    if len(axes) != rank:
        raise ValueError("axes don't match array")
    found = tuple(normalize_axis_index(operator.index(axis), rank) for axis in axes)
    if len(set(found)) != rank:
        raise ValueError("repeated axis in transpose")
    return found


@implements(np.transpose, np.permute_dims)
def transpose(a, axes=None):
    made = as_array(a)
    turned = permute(made, transposition(axes, made.ndim))
    return turned if is_array(a) or is_sequence(a) or is_weak(a) else a  # a NumPy scalar stays one


@method("transpose")
def transpose_method(a, *axes):
    if len(axes) == 0:
        return permute(a, transposition(None, a.ndim))
    if len(axes) == 1 and (axes[0] is None or is_sequence(axes[0])):
        return permute(a, transposition(axes[0], a.ndim))
    return permute(a, transposition(axes, a.ndim))


@implements(np.matrix_transpose)
def matrix_transpose(x, /):
    return np.swapaxes(x, -1, -2)


@static
def swapped(axis1, axis2, rank):
    axes = list(range(rank))
    first, second = normalize_axis_index(axis1, rank), normalize_axis_index(axis2, rank)
    axes[first], axes[second] = axes[second], axes[first]
    return tuple(axes)


@implements(np.swapaxes)
@method("swapaxes")
def swapaxes(a, axis1, axis2):
    a = as_array(a)
    return permute(a, swapped(axis1, axis2, a.ndim))


@static
def moved(source, destination, rank):
    sources, targets = (
        normalize_axis_tuple(source, rank, "source"),
        normalize_axis_tuple(destination, rank, "destination"),
    )
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [axis for axis in range(rank) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return tuple(order)


@implements(np.moveaxis)
def moveaxis(a, source, destination):
    a = as_array(a)
    return permute(a, moved(source, destination, a.ndim))


@static
def rolled(axis, start, rank):
    axis = normalize_axis_index(axis, rank)
    start = start + rank if start < 0 else start
    if not 0 <= start <= rank:
        raise ValueError("'start' arg requires a valid position")
    order = list(range(rank))
    order.remove(axis)
    order.insert(start - 1 if axis < start else start, axis)
    return tuple(order)


@implements(np.rollaxis)
def rollaxis(a, axis, start=0):
    must_be_array(a)
    return permute(a, rolled(axis, start, a.ndim))


# ---- axes of extent 1 ------------------------------------------------------------------------------------------------


@static
def inserted_axes(axis, rank):
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return normalize_axis_tuple(axis, rank + count)


@implements(np.expand_dims)
def expand_dims(a, axis):
    a = as_array(a)
    return a[insert_index(inserted_axes(axis, a.ndim), a.ndim)]


@implements(np.squeeze)
@method("squeeze")
def squeeze(a, axis=None):
    scalar = not is_array(a) and not is_sequence(a) and not is_weak(a) and axis is None
    array = as_array(a)  # which gives back to Python what is no array known here
    if scalar:
        return a  # a NumPy scalar stays one
    a = array
    if a.ndim == 0 and axis is not None:
        hand_back("squeeze of an array that has no axes")
    index = ()
    smaller = False
    for own in positions(a.ndim):
        if axis is None:
            single = extent_is_one(a, own)
            if single is None:
                hand_back("squeeze of axes whose extents are not known to be 1 or not")
        else:
            single = own in reduction_axes(axis, a.ndim)
            if single:
                message = "cannot select an axis to squeeze out which has size not equal to one"
                check(a.shape[own] == 1, "ValueError", message)
        smaller = smaller or single
        index = index + ((0,) if single else (ALL,))
    return a[(*index, Ellipsis)] if smaller else a


@implements(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    array = as_array(array)
    shape = tuple(shape) if is_sequence(shape) else (shape,)
    for extent in shape:
        check(extent >= 0, "ValueError", "all elements of broadcast shape must be non-negative")
    check(len(shape) > 0 or array.ndim == 0, "ValueError", "cannot broadcast a non-scalar to a scalar array")
    fits = len(shape) >= array.ndim
    check(fits, "ValueError", "input operand has more dimensions than allowed by the axis remapping")
    return broadcast_view(array, shape)


@static
def one_or_more(rank):
    return (None,) if rank == 0 else (Ellipsis,)


@static
def two_or_more(rank):
    return ((None, None), (None, ALL))[rank] if rank < 2 else (Ellipsis,)


@static
def three_or_more(rank):
    return ((None, None, None), (None, ALL, None), (ALL, ALL, None))[rank] if rank < 3 else (Ellipsis,)


def at_least(arrays, index_of):
    made = tuple([extended(as_array(a), index_of) for a in arrays])
    return made[0] if len(made) == 1 else made


def extended(a, index_of):
    index = index_of(a.ndim)
    return a if index == (Ellipsis,) else a[index]


@implements(np.atleast_1d)
def atleast_1d(*arys):
    return at_least(arys, one_or_more)


@implements(np.atleast_2d)
def atleast_2d(*arys):
    return at_least(arys, two_or_more)


@implements(np.atleast_3d)
def atleast_3d(*arys):
    return at_least(arys, three_or_more)


# ---- reversals -------------------------------------------------------------------------------------------------------


@static
def flip_index(axis, rank):
    axes = range(rank) if axis is None else normalize_axis_tuple(axis, rank)
    return tuple(REVERSED if own in axes else ALL for own in range(rank))


@implements(np.flip)
def flip(m, axis=None):
    m = as_array(m)
    return m[flip_index(axis, m.ndim)]


@implements(np.fliplr)
def fliplr(m):
    m = as_array(m)
    if m.ndim < 2:
        unsupported("Input must be >= 2-d.")
    return m[:, ::-1]


@implements(np.flipud)
def flipud(m):
    m = as_array(m)
    if m.ndim < 1:
        unsupported("Input must be >= 1-d.")
    return m[::-1, ...]


@static
def plane(axes, rank):
    first, second = axes
    if first == second or abs(first - second) == rank:
        raise ValueError("Axes must be different.")
    return normalize_axis_index(first, rank), normalize_axis_index(second, rank)


@static
def quarter_turns(k):
    return k % 4


@implements(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    m = as_array(m)
    first, second = plane(axes, m.ndim)
    turns = quarter_turns(k)
    if turns == 0:
        return m[...]
    if turns == 2:
        return flip(flip(m, first), second)
    if turns == 1:
        return permute(flip(m, second), swapped(first, second, m.ndim))
    return flip(permute(m, swapped(first, second, m.ndim)), second)
