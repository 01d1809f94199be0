"""Diagonals, traces and norms."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from parakeet_py.library.arrays.memory_views import diagonal_of, diagonal_values
from parakeet_py.library.arrays.shape import ravel
from parakeet_py.library.intrinsics import (
    as_array,
    cast,
    constant,
    dtype_of,
    elementwise,
    generate,
    load,
    permute,
    unsupported,
)
from parakeet_py.library.linalg.products import vectors
from parakeet_py.library.reductions.reductions import squared_size
from parakeet_py.library.registry import implements, method, static
from parakeet_py.library.shared import keeping_index, must_be_int, other_axes, real_kind


@implements(np.diag)
def diag(v, k=0):
    v = as_array(v)
    if v.ndim == 2:
        return diagonal_of(v, k, 0, 1)
    if v.ndim != 1:
        unsupported("Input must be 1- or 2-d.")
    return from_diagonal(v, k)


def from_diagonal(v, k):
    """The square matrix with a vector on one of its diagonals."""
    must_be_int(k)
    extent = v.shape[0] + abs(k)
    zero = constant(0, dtype_of(v))
    down = max(-k, 0)
    return generate((extent, extent), lambda i, j: load(v, i - down) if j - i == k else zero)


@implements(np.diagflat)
def diagflat(v, k=0):
    return from_diagonal(ravel(v), k)


@implements(np.trace)
@method("trace")
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    a = as_array(a)
    return diagonal_values(a, offset, axis1, axis2).sum(-1, dtype=dtype, out=out)


# ---- norms -----------------------------------------------------------------------------------------------------------


@static
def norm_axes(axis, rank):
    """The axes of a norm: of a vector or of a matrix."""
    if axis is None:
        return tuple(range(rank))
    axes = normalize_axis_tuple(axis, rank)
    if len(axes) not in (1, 2):
        raise ValueError("Improper number of dimensions to norm.")
    return axes


def squares(x):
    """|x|**2 of every element, real."""
    return elementwise(squared_size, x)


def vector_norm(x, order, axis, keepdims):
    kind = real_kind(dtype_of(x))
    if order is None or order == 2:
        return np.sqrt(squares(x).sum(axis, keepdims=keepdims))
    if order == math.inf:
        return np.abs(x).max(axis, None, keepdims, 0)
    if order == -math.inf:
        return np.abs(x).min(axis, keepdims=keepdims)
    if order == 0:
        return cast(x != 0, kind).sum(axis, keepdims=keepdims)
    if order == 1:
        return np.abs(x).sum(axis, keepdims=keepdims)
    total = np.power(np.abs(x), cast(order, kind)).sum(axis, keepdims=keepdims)
    return np.power(total, np.true_divide(1, cast(order, kind)))


@static
def later_axis(axis, removed, keepdims):
    """Where an axis is after another one has been reduced."""
    return axis - 1 if removed < axis and not keepdims else axis


def matrix_norm(x, order, axes, keepdims):
    row, column = axes
    if order is None or order == "fro" or order == "f":
        return np.sqrt(squares(x).sum(axes, keepdims=keepdims))
    if order == 1:
        return np.abs(x).sum(row, keepdims=keepdims).max(later_axis(column, row, keepdims), None, keepdims, 0)
    if order == -1:
        return np.abs(x).sum(row, keepdims=keepdims).min(later_axis(column, row, keepdims), keepdims=keepdims)
    if order == math.inf:
        return np.abs(x).sum(column, keepdims=keepdims).max(later_axis(row, column, keepdims), None, keepdims, 0)
    if order == -math.inf:
        return np.abs(x).sum(column, keepdims=keepdims).min(later_axis(row, column, keepdims), keepdims=keepdims)
    if order == 2 or order == -2 or order == "nuc":
        return singular_norm(permute(x, (*other_axes(axes, x.ndim), row, column)), order, axes, x.ndim, keepdims)
    unsupported("Invalid norm order for matrices.")


def singular_norm(x, order, axes, rank, keepdims):
    """A norm by the singular values of matrices along the last two axes."""
    s = np.linalg.svdvals(x)
    found = np.sum(s, -1) if order == "nuc" else np.max(s, -1, None, False, 0) if order == 2 else np.min(s, -1)
    return as_array(found)[keeping_index(axes, rank)] if keepdims else found


@static
def known_order(order):
    return order


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    x = as_array(x)
    if dtype_of(x).kind not in "fc":
        x = cast(x, "float64")
    order = known_order(ord)
    if axis is None and (
        order is None or (x.ndim == 1 and order == 2) or (x.ndim == 2 and (order == "fro" or order == "f"))
    ):
        result = np.sqrt(sum_of_squares(ravel(x)))
        return as_array(result)[(None,) * x.ndim] if keepdims else result
    axes = norm_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, order, axes[0], keepdims)
    if len(axes) == 2:
        return matrix_norm(x, order, axes, keepdims)
    unsupported("Improper number of dimensions to norm.")


def sum_of_squares(flat):
    """The sum of the squares of a vector, in its real dtype."""
    if dtype_of(flat).kind == "c":
        return squares(flat).sum()
    return vectors(flat, flat, dtype_of(flat))
