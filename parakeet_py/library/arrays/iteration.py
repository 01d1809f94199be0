"""Iteration over the points of arrays, functions mapped along axes, vectorized functions.

`np.ndindex`, `np.ndenumerate` and `np.nditer` are generators: a loop over them computes its points one by one.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.stores import point_of
from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    check,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_sequence,
    load,
    order_of,
    python_scalar,
    read_only,
    stride_of,
    unsupported,
)
from parakeet_py.library.registry import helper, implements, plain, static
from parakeet_py.library.shared import NO_VALUE, fitting, single_axis


def product_of(extents):
    total = 1
    for extent in extents:
        total = total * extent
    return total


@implements(np.ndindex)
def ndindex(*shape):
    extents = tuple(shape[0]) if len(shape) == 1 and is_sequence(shape[0]) else shape
    for extent in extents:
        check(extent >= 0, "ValueError", "negative dimensions are not allowed")
    return points(extents)


def points(extents):
    """The points of an index space in C order."""
    return (point_of(place, extents) for place in range(product_of(extents)))


@implements(np.ndenumerate)
def ndenumerate(arr):
    a = as_array(arr)
    return ((point, load(a, *point)) for point in points(a.shape))


@static
def nditer_writes(op_flags, count):
    """For each operand whether it may be stored to, from known flags; None for others."""
    if op_flags is None:
        return (False,) * count
    if all(isinstance(flag, str) for flag in op_flags):
        op_flags = [op_flags] * count
    if len(op_flags) != count or any(tuple(own) not in NDITER_FLAGS for own in op_flags):
        return None
    return tuple(tuple(own) != ("readonly",) for own in op_flags)


NDITER_FLAGS = (("readonly",), ("readwrite",), ("writeonly",))


@static
def nditer_axes(order, rank, orders):
    """Axes from the slowest to the fastest, as NumPy goes through operands; None where that is not known."""
    if rank < 2 or order in ("C", "c"):
        return tuple(range(rank))
    if order in ("F", "f"):
        return tuple(range(rank))[::-1]
    whole = [own for own in orders if own is None or len(own) == rank]
    if None in whole or order not in ("K", "k"):
        return None
    if all(own == whole[0] for own in whole) and (len(whole) == len(orders) or rank == 2):
        return whole[0]
    in_order = all(own == tuple(range(len(own))) for own in orders)
    return tuple(range(rank)) if in_order or rank == 2 else None  # of two axes, C order wins


@implements(np.nditer)
def nditer(op, flags=None, op_flags=None, op_dtypes=None, order="K", casting="safe", op_axes=None, itershape=None):
    if flags is not None or op_dtypes is not None or op_axes is not None or itershape is not None:
        hand_back("np.nditer with such options")
    several = is_sequence(op)
    given = tuple([as_array(one) for one in op]) if several else (as_array(op),)
    writes = nditer_writes(op_flags, len(given))
    if len(given) == 0 or writes is None:
        hand_back("np.nditer with such operands")
    shape = np.broadcast_shapes(*[one.shape for one in given]) if len(given) > 1 else given[0].shape
    rank = len(shape)
    axes = nditer_axes(order, rank, [order_of(one) for one in given])
    if axes is None:
        hand_back("np.nditer of axes whose order is found out when the program runs")
    arrays = tuple([operand_of(one, write, shape) for one, write in zip(given, writes)])
    extents = tuple([shape[axis] for axis in axes])
    check(product_of(extents) > 0, "ValueError", "Iteration of zero-sized operands is not enabled")
    turned = tuple([order in ("K", "k") and runs_backwards(arrays, axis) for axis in axes])
    if several:
        return (elements_at(arrays, writes, axes, extents, turned, point) for point in points(extents))
    return (elements_at(arrays, writes, axes, extents, turned, point)[0] for point in points(extents))


def operand_of(a, write, shape):
    """An operand as it is iterated: broadcast, unless it is stored to."""
    if not write:
        return np.broadcast_to(a, shape) if a.ndim > 0 or len(shape) > 0 else a
    if a.ndim < len(shape):
        hand_back("np.nditer with an output that is broadcast")
    for axis in every_axis(a.ndim):
        check(a.shape[axis] == shape[axis], "ValueError", reduction_message(axis))
    return a


@static
def every_axis(rank):
    return tuple(range(rank))


@static
def reduction_message(axis):
    return (
        f"output operand requires a reduction along dimension {axis}, but the reduction is not enabled. "
        "The dimension size of 1 does not match the expected output shape."
    )


def runs_backwards(arrays, axis):
    """Whether memory is iterated from its end along an axis."""
    backwards = False
    for one in arrays:
        backwards = backwards or stride_of(one, axis) < 0
    for one in arrays:
        backwards = backwards and stride_of(one, axis) <= 0
    return backwards


def elements_at(arrays, writes, axes, extents, turned, place):
    """The 0-d views at a point of the axes in this order."""
    point = [n - 1 - i if turn else i for i, n, turn in zip(place, extents, turned)]
    at = tuple([point[k] for k in places_of(axes)])
    return tuple([element_view(one, at, write) for one, write in zip(arrays, writes)])


@static
def places_of(axes):
    """Where each axis stands among those in another order."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


def element_view(a, at, write):
    view = a[(*at, ...)]
    return view if write else read_only(view)


# ---- functions of lines ----------------------------------------------------------------------------------------------


@implements(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    a = as_array(arr)
    axis = single_axis(axis, a.ndim)
    moved = np.moveaxis(a, axis, -1)
    outer = moved.shape[:-1]
    check(product_of(outer) > 0, "ValueError", "Cannot apply_along_axis when any iteration dimensions are 0")
    first = numbers_in(func1d(moved[(0,) * len(outer)], *args, **kwargs))
    kind = dtype_of(first)
    if not is_array(first):
        return as_array(generate(outer, lambda *at: cast(func1d(moved[at], *args, **kwargs), kind)))
    if first.ndim == 0:
        hand_back("np.apply_along_axis of a function that gives 0-d arrays")
    made = np.zeros(outer + first.shape, kind)
    for place in range(product_of(outer)):
        at = point_of(place, outer)
        made[at] = numbers_in(func1d(moved[at], *args, **kwargs))
    return np.transpose(made, axes_put_back(axis, len(outer), first.ndim))


def numbers_in(value):
    """What a function of a line has given, as one array where it is a sequence."""
    return as_array(value) if is_sequence(value) else value


@static
def axes_put_back(axis, outer, inner):
    """The axes of what functions gave, in place of the axis they went along."""
    every = tuple(range(outer + inner))
    return every[:axis] + every[outer:] + every[axis:outer]


@static
def each_axis(axes, rank):
    """Axes as they come, counted from the front."""
    return tuple(axis + rank if axis < 0 else axis for axis in (axes if isinstance(axes, tuple | list) else (axes,)))


@implements(np.apply_over_axes)
def apply_over_axes(func, a, axes):
    if not is_array(a):
        unsupported("np.apply_over_axes of what is not an array")
    value = a
    for axis in each_axis(axes, a.ndim):
        made = func(value, axis)
        value = made if np.ndim(made) == np.ndim(value) else np.expand_dims(made, axis)
        if np.ndim(value) != a.ndim:
            unsupported("function is not returning an array of the correct shape")
    return value


# ---- arrays of what iterators give -----------------------------------------------------------------------------------


@plain(np.fromiter)
def fromiter(iter, dtype, count=-1, *, like=None):
    if dtype is None or count < -1:
        hand_back("np.fromiter without a dtype, or of fewer items than none")
    numbers = []
    if count != 0:
        for item in iter:  # no further than it is asked for
            numbers.append(item)
            if len(numbers) == count:
                break
    if len(numbers) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(numbers)} items.")
    made = np.array(numbers, dtype)
    if made.ndim != 1:
        hand_back("np.fromiter of items that are no numbers")
    return made


# ---- vectorized functions --------------------------------------------------------------------------------------------


@implements(np.vectorize)
def vectorize(pyfunc=NO_VALUE, otypes=None, doc=None, excluded=None, cache=False, signature=None):
    if pyfunc is NO_VALUE or excluded is not None or signature is not None:
        hand_back("np.vectorize with more than a function")
    return lambda *args: vectorized(pyfunc, args, otypes)


@static
def kinds_from(otypes):
    """The dtypes that are asked for."""
    return tuple(np.dtype(own) for own in otypes)


@helper
def vectorized(function, args, otypes):
    """A function of Python's numbers at every point of some arrays."""
    arrays = tuple([as_array(a) for a in args])
    if len(arrays) == 0:
        unsupported("a vectorized function without arguments")
    if not alike([dtype_of(a) for a in arrays], [function is max, function is min]):
        hand_back("max and min of numbers of several types, which give one of them")
    if otypes is None:
        for a in arrays:
            check(a.size > 0, "ValueError", "cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        first = function(*[load(a, *(0,) * a.ndim) for a in arrays])  # NumPy takes the dtypes from a call like this
        several = isinstance(first, tuple)
        if is_sequence(first) and not several:
            unsupported("a vectorized function that gives a list")
        kinds = [dtype_of(one) for one in (first if several else (first,))]
    else:
        kinds = kinds_from(otypes)
        several = len(kinds) > 1

    def at_point(*numbers):
        value = function(*[python_scalar(number) for number in numbers])
        made = tuple([as_kind(one, kind) for one, kind in zip(value if several else (value,), kinds)])
        return made if several else made[0]

    made = elementwise(at_point, *arrays)
    return tuple([as_array(one) for one in made]) if several else as_array(made)


@static
def alike(kinds, chooses):
    """Are numbers of one kind, if a function gives one of them?"""
    return not any(chooses) or len(set(kinds)) == 1


@static
def holds(kind, wanted):
    """Whether numbers of a kind stay what they are in a dtype, or are too large for it."""
    order = "biufc"
    return kind.kind == wanted.kind or (order.index(kind.kind) < order.index(wanted.kind) and wanted.kind != "b")


def as_kind(value, kind):
    if not holds(dtype_of(value), kind):
        hand_back("a vectorized function whose first value is of another kind")
    return cast(fitting(value, kind), kind)
