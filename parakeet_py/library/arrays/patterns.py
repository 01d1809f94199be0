"""Arrays made from their indices: identities, triangles, grids of coordinates, functions of position."""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.creation import check_device, copied, shape_tuple, wants_fortran
from parakeet_py.library.intrinsics import (
    as_array,
    broadcast_view,
    cast,
    constant,
    dtype_of,
    elementwise,
    generate,
    hand_back,
    is_array,
    is_sequence,
    permute,
    prim,
    unsupported,
)
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import ALL, must_be_int


@implements(np.eye)
def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    check_device(device)
    must_be_int(k)
    columns = N if M is None else M
    kind = np.dtype(float if dtype is None else dtype)
    if wants_fortran(order, "C", 2):
        return permute(generate((columns, N), lambda j, i: cast(j - i == k, kind)), (1, 0))
    return generate((N, columns), lambda i, j: cast(j - i == k, kind))


@implements(np.identity)
def identity(n, dtype=None, *, like=None):
    return eye(n, None, 0, dtype)


@implements(np.tri)
def tri(N, M=None, k=0, dtype=float, *, like=None):
    must_be_int(k)
    must_be_int(N)
    if M is not None:
        must_be_int(M)
    rows, columns = max(N, 0), max(N if M is None else M, 0)
    return generate((rows, columns), lambda i, j: cast(j - i <= k, dtype))


def triangle(m, k, lower):
    m = as_array(m)
    must_be_int(k)
    if m.ndim == 1:
        m = np.broadcast_to(m, (m.shape[0], m.shape[0]))
    kind = dtype_of(m)
    if m.ndim == 0:
        unsupported("a triangle of a 0-d array")
    kept = generate(m.shape[-2:], lambda i, j: cast(j - i <= k if lower else j - i >= k, "bool"))
    return elementwise(lambda x, keep: prim("select", keep, x, constant(0, kind)), m, kept)


@implements(np.tril)
def tril(m, k=0):
    return triangle(m, k, True)


@implements(np.triu)
def triu(m, k=0):
    return triangle(m, k, False)


@static
def numbers_below(count):
    return tuple(range(count))


@implements(np.indices)
def indices(dimensions, dtype=int, sparse=False):
    if not is_sequence(dimensions) and not is_array(dimensions):
        unsupported("np.indices of what cannot be iterated over")
    shape = shape_tuple(dimensions)
    axes = numbers_below(len(shape))
    if sparse:
        return tuple([sparse_coordinate(axis, shape, dtype) for axis in axes])
    if len(shape) == 0:
        return np.zeros((0,), dtype)
    return generate((len(shape), *shape), lambda axis, *place: picked(axis, place, dtype))


def sparse_coordinate(axis, shape, kind):
    numbers = generate((shape[axis],), lambda i: cast(i, kind))
    return numbers[single_range(axis, len(shape))]


@static
def single_range(axis, rank):
    """The index that puts a 1-D array along one of so many axes."""
    return tuple(ALL if own == axis else None for own in range(rank))


def picked(axis, place, kind):
    value = place[0]
    for own in numbers_below(len(place)):
        value = prim("select", axis == own, place[own], value)
    return cast(value, kind)


@implements(np.fromfunction)
def fromfunction(function, shape, *, dtype=float, like=None, **kwargs):
    shape = shape_tuple(shape)
    if np.dtype(dtype) == bool:
        hand_back("np.fromfunction of bools")
    grids = tuple([dense_coordinate(axis, shape, dtype) for axis in numbers_below(len(shape))])
    return function(*grids, **kwargs)


def dense_coordinate(axis, shape, kind):
    return generate(shape, lambda *place: cast(place[axis], kind))


@static
def axes_of_grids(count, indexing):
    """The axis along which each argument of meshgrid runs."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = list(range(count))
    if indexing == "xy" and count > 1:
        axes[:2] = [1, 0]
    return tuple(axes)


def as_line(a):
    """A vector as it is, everything else in one axis."""
    return a if a.ndim == 1 else np.reshape(a, (a.size,))


@static
def views_are_listed():
    """What NumPy gives for sparse=True, copy=False: a list before 2.5, where all else is a tuple."""
    return type(np.meshgrid(1, sparse=True, copy=False)) is list


@implements(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    lines = tuple([as_line(as_array(x)) for x in xi])
    axes = axes_of_grids(len(lines), indexing)
    lengths = tuple([lines[axis].shape[0] for axis in axes])
    grids = tuple([line[single_range(axis, len(lines))] for line, axis in zip(lines, axes)])
    if not sparse:
        grids = tuple([broadcast_view(grid, lengths, True) for grid in grids])
    if copy:
        return tuple([copied(grid, "C") for grid in grids])
    return list(grids) if sparse and views_are_listed() else grids
