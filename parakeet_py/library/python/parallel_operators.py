"""The parallel operators of `parakeet_py.operators`, in the accelerated language."""

from __future__ import annotations

from parakeet_py import operators
from parakeet_py.library import intrinsics as words
from parakeet_py.library.intrinsics import as_array, cast, check, dtype_of, reduce_axes, scan_axis
from parakeet_py.library.registry import implements, static


@implements(operators.map)
def map_(function, *arrays):
    return words.elementwise(function, *[as_array(array) for array in arrays])


@implements(operators.generate)
def generate(shape, function):
    return words.generate(shape, function)


@static
def all_axes(rank):
    return tuple(range(rank))


@static
def one_axis(axis, rank):
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return (axis % rank,)


@implements(operators.reduce)
def reduce(combine, array, initial, axis=None):
    array = as_array(array)
    axes = all_axes(array.ndim) if axis is None else one_axis(axis, array.ndim)
    kind = dtype_of(initial)
    (total,) = reduce_axes(
        array, axes, (cast(initial, kind),), lambda x, *place: (cast(x, kind),), lambda a, b: (combine(a, b),)
    )
    return total


@implements(operators.scan)
def scan(combine, array, initial, axis=0, inclusive=True):
    array = as_array(array)
    kind = dtype_of(initial)
    along = one_axis(axis, array.ndim)[0]
    return scan_axis(array, along, cast(initial, kind), lambda x: cast(x, kind), combine, inclusive)


@implements(operators.allpairs)
def allpairs(function, left, right):
    left = as_array(left)
    right = as_array(right)
    return words.generate((left.shape[0], right.shape[0]), lambda i, j: function(left[i], right[j]))


@implements(operators.scatter)
def scatter(target, indices, values, combine=lambda old, new: new):
    size = target.shape[0]
    places = words.elementwise(lambda place: words.index_check(place, size), as_array(indices))
    if words.is_array(values):
        check(values.shape[0] == places.shape[0], "ValueError", "values and indices differ in length")
    words.scatter(target, places, values, combine)
    return target


@implements(operators.stencil)
def stencil(function, array, offsets, boundary="constant", fill=0):
    array = as_array(array)
    return words.generate(
        array.shape,
        lambda *place: function(*[neighbour(array, place, offset, boundary, fill) for offset in offsets]),
    )


def neighbour(array, place, offset, boundary, fill):
    """The element at a place shifted by an offset."""
    shape = array.shape
    if boundary == "wrap":
        return array[tuple([(i + d) % n for i, d, n in zip(place, offset, shape)])]
    if boundary == "nearest":
        return array[tuple([min(max(i + d, 0), n - 1) for i, d, n in zip(place, offset, shape)])]
    shifted = [i + d for i, d in zip(place, offset)]
    inside = True
    for i, n in zip(shifted, shape):
        inside = inside and 0 <= i and i < n
    kind = dtype_of(array)
    return array[tuple(shifted)] if inside else cast(fill, kind)
