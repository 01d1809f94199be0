"""Parallel operators a user may write: what array expressions cannot say, said directly.

Each is an ordinary Python function with a plain (slow) meaning, so a program that uses them runs undecorated too.
Inside an accelerated function they are compiled by way of `library/python/parallel_operators.py`. The functions they
are given work on scalars (rows, for `allpairs`), may close over other arrays, and must not change anything: iterations
run in any order, on any thread or device. `combine` functions must be associative.

`prange` is the user's own claim that the iterations of a loop are independent.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = ["allpairs", "generate", "map", "prange", "reduce", "scan", "scatter", "stencil"]

Array = np.ndarray[Any, Any]


def map(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function of scalars to every element of broadcast arrays.

    Parameters
    ----------
    function
        Takes one scalar per array; gives a scalar, or a tuple of scalars for several result arrays.
    *arrays
        Arrays or scalars that broadcast together.

    Returns
    -------
    ndarray or tuple of ndarray
        Of the broadcast shape; dtypes are those of the function's results.
    """
    operands = [np.asarray(array) for array in arrays]
    points = np.broadcast(*operands) if len(operands) > 1 else ((value,) for value in operands[0].flat)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return _collect([function(*point) for point in points], shape)


def generate(shape: int | Sequence[int], function: Callable[..., Any]) -> Any:
    """A new array of a shape whose element at (i, j, ...) is `function(i, j, ...)`; the indices are Python ints."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return _collect([function(*index) for index in product(*(builtins.range(n) for n in extents))], extents)


def _collect(results: list[Any], shape: tuple[int, ...]) -> Any:
    if results and isinstance(results[0], tuple):
        return tuple(np.array([row[k] for row in results]).reshape(shape) for k in builtins.range(len(results[0])))
    return np.array(results).reshape(shape)


def reduce(combine: Callable[[Any, Any], Any], array: Any, initial: Any, axis: int | None = None) -> Any:
    """Combine the elements of an array, all of them or along one axis.

    Parameters
    ----------
    combine
        An associative function of two scalars.
    array
        What is combined.
    initial
        The identity of `combine`; its dtype is that of the result.
    axis
        The axis that disappears; None: all.

    Returns
    -------
    scalar or ndarray
    """
    operand = np.asarray(array)
    kind = np.asarray(initial).dtype
    if axis is None:
        total = kind.type(initial)
        for value in operand.flat:
            total = kind.type(combine(total, value))
        return total
    moved = np.moveaxis(operand, axis, 0)
    result = np.full(moved.shape[1:], initial, kind)
    for index in np.ndindex(*result.shape):
        for value in moved[(slice(None), *index)]:
            result[index] = combine(result[index], value)
    return result


def scan(combine: Callable[[Any, Any], Any], array: Any, initial: Any, axis: int = 0, inclusive: bool = True) -> Array:
    """All prefixes of a reduction along an axis.

    Parameters
    ----------
    combine, array, initial
        As for `reduce`.
    axis
        The axis along which prefixes are taken.
    inclusive
        Element i combines 0..i; otherwise 0..i-1, starting with `initial`.
    """
    operand = np.asarray(array)
    kind = np.asarray(initial).dtype
    result = np.empty(operand.shape, kind)
    source, target = np.moveaxis(operand, axis, 0), np.moveaxis(result, axis, 0)
    for index in np.ndindex(*source.shape[1:]):
        total = kind.type(initial)
        for i in builtins.range(source.shape[0]):
            place = (i, *index)
            if not inclusive:
                target[place] = total
            total = kind.type(combine(total, source[place]))
            if inclusive:
                target[place] = total
    return result


def allpairs(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Array:
    """The matrix of `function(left[i], right[j])`: of scalars for 1-D arrays, of rows for 2-D arrays."""
    rows, columns = np.asarray(left), np.asarray(right)
    values = [function(row, column) for row in rows for column in columns]
    return np.array(values).reshape(len(rows), len(columns))


def scatter(
    target: Array, indices: Any, values: Any, combine: Callable[[Any, Any], Any] = lambda old, new: new
) -> Array:
    """target[indices[k]] = combine(target[indices[k]], values[k]) for every k in order; returns the target.

    Parameters
    ----------
    target
        A 1-D array, changed in place.
    indices
        1-D integers; negative ones count from the end.
    values
        A scalar, or a 1-D array as long as `indices`.
    combine
        What to do with the old and the new value; by default the last one stays.

    Raises
    ------
    IndexError
        An index out of range; the target is unchanged then.
    """
    places = np.asarray(indices)
    size = target.shape[0]
    for place in places:
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of bounds for axis 0 with size {size}")
    for place, value in zip(places, np.broadcast_to(values, places.shape), strict=True):
        target[place] = combine(target[place], value)
    return target


def stencil(
    function: Callable[..., Any],
    array: Any,
    offsets: Sequence[Sequence[int]],
    boundary: str = "constant",
    fill: Any = 0,
) -> Array:
    """Each element from its neighbours.

    Parameters
    ----------
    function
        Takes one scalar per offset, in order.
    array
        Read only.
    offsets
        Where the neighbours are, as index differences, e.g. ``((0, -1), (0, 0), (0, 1))``.
    boundary
        What lies outside: ``"constant"`` (`fill`), ``"nearest"`` (the edge) or ``"wrap"`` (the other side).
    fill
        The value outside, for ``"constant"``.
    """
    operand = np.asarray(array)
    if boundary not in ("constant", "nearest", "wrap"):
        raise ValueError(f"boundary must be 'constant', 'nearest' or 'wrap', not {boundary!r}")

    def neighbour(index: tuple[int, ...], offset: Sequence[int]) -> Any:
        place = [i + d for i, d in zip(index, offset, strict=True)]
        inside = all(0 <= i < n for i, n in zip(place, operand.shape, strict=True))
        if not inside:
            match boundary:
                case "constant":
                    return operand.dtype.type(fill)
                case "nearest":
                    place = [min(max(i, 0), n - 1) for i, n in zip(place, operand.shape, strict=True)]
                case "wrap":
                    place = [i % n for i, n in zip(place, operand.shape, strict=True)]
        return operand[tuple(place)]

    results = [function(*(neighbour(index, offset) for offset in offsets)) for index in np.ndindex(*operand.shape)]
    return np.array(results).reshape(operand.shape)


def prange(start: int, stop: int | None = None, step: int = 1) -> Iterable[int]:
    """`range`, with the promise that the iterations are independent: they may run in any order and in parallel."""
    return builtins.range(start) if stop is None else builtins.range(start, stop, step)
