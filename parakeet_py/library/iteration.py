"""Iteration over the points of arrays, functions mapped along axes, vectorized functions.

`np.ndindex` and `np.ndenumerate` are generators: a loop over them computes its points one by one.
"""

from __future__ import annotations

import numpy as np

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
    python_scalar,
    unsupported,
)
from parakeet_py.library.registry import helper, implements, static
from parakeet_py.library.shared import NO_VALUE, fitting, single_axis
from parakeet_py.library.stores import point_of


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
    return (point_of(place, extents) for place in range(product_of(extents)))


@implements(np.ndenumerate)
def ndenumerate(arr):
    a = as_array(arr)
    return (element_with_point(a, point_of(place, a.shape)) for place in range(a.size))


def element_with_point(a, point):
    return point, load(a, *point)


# ---- functions of lines ----------------------------------------------------------------------------------------------


@implements(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    a = as_array(arr)
    axis = single_axis(axis, a.ndim)
    moved = np.moveaxis(a, axis, -1)
    outer = moved.shape[:-1]
    check(product_of(outer) > 0, "ValueError", "Cannot apply_along_axis when any iteration dimensions are 0")
    first = func1d(moved[(0,) * len(outer)], *args, **kwargs)
    if is_sequence(first):
        hand_back("np.apply_along_axis of a function that gives a sequence")
    kind = dtype_of(first)
    if not is_array(first):
        return as_array(generate(outer, lambda *at: cast(func1d(moved[at], *args, **kwargs), kind)))
    if first.ndim == 0:
        hand_back("np.apply_along_axis of a function that gives 0-d arrays")
    made = np.zeros(outer + first.shape, kind)
    for place in range(product_of(outer)):
        at = point_of(place, outer)
        made[at] = func1d(moved[at], *args, **kwargs)
    return np.transpose(made, axes_put_back(axis, len(outer), first.ndim))


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
    if otypes is None:
        for a in arrays:
            check(a.size > 0, "ValueError", "cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        first = function(*[load(a, *(0,) * a.ndim) for a in arrays])  # NumPy takes the dtypes from a call like this
        several = is_sequence(first)
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
def holds(kind, wanted):
    """Whether numbers of a kind stay what they are in a dtype, or are too large for it."""
    order = "biufc"
    return kind.kind == wanted.kind or (order.index(kind.kind) < order.index(wanted.kind) and wanted.kind != "b")


def as_kind(value, kind):
    if not holds(dtype_of(value), kind):
        hand_back("a vectorized function whose first value is of another kind")
    return cast(fitting(value, kind), kind)
