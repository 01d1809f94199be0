"""Grids, padding, convolution and einsum of the library against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.library_run import Cases, numbers

CASES = Cases()

REAL = numbers("f8", 2, 3)


def grids(n, m):
    return np.mgrid[0:n, 0:m], np.mgrid[0:n], np.ogrid[0:n, 1:m:2], np.mgrid[0:1:0.25, 0:m]


CASES.add(grids, 3, 4)
CASES.add(grids, 0, 2)


def joined_by_index(a, b):
    return np.r_[a, b, 0], np.c_[a, b], np.r_[0:3, a], np.c_[a], np.r_[1, 2.5]


CASES.add(joined_by_index, np.arange(3), np.arange(3.0))
CASES.add(joined_by_index, np.ones(2, "f4"), np.ones(2, "f4"))


def open_mesh(a, i, j):
    return a[np.ix_(i, j)]


CASES.add(open_mesh, np.arange(12).reshape(3, 4), np.array([0, 2]), np.array([1, 3, 3]))
CASES.add(open_mesh, np.arange(12).reshape(3, 4), [True, False, True], [1])


def unraveled(i):
    return np.unravel_index(i, (3, 4))


def raveled(i, j):
    return np.ravel_multi_index((i, j), (3, 4))


CASES.each(unraveled, [5, np.array([5, 7]), 12, -1, np.array([[0, 1]])])
CASES.add(raveled, 1, 2)
CASES.add(raveled, np.array([1, 2]), np.array([0, 3]))
CASES.add(raveled, 1, 9)


def indices_of_triangles(n):
    return np.tril_indices(n), np.triu_indices(n, 1), np.triu_indices(n, 0, 5), np.tril_indices(n, -1)


CASES.each(indices_of_triangles, [3, 0])


def padded(a):
    return np.pad(a, 1), np.pad(a, (1, 2)), np.pad(a, 2, mode="edge"), np.pad(a, 3, "wrap"), np.pad(a, 7, "reflect")


def padded_by(a, n):
    return np.pad(a, ((n, 0), (0, n))), np.pad(a, ((1, 2), (3, 4)), "symmetric"), np.pad(a, n, constant_values=7)


CASES.each(padded, [np.arange(3), REAL, REAL.T, np.arange(1), np.zeros(0)])
CASES.add(padded_by, REAL, 2)
CASES.add(padded_by, REAL, -1)


def convolved(a, v):
    return np.convolve(a, v), np.convolve(a, v, "same"), np.convolve(a, v, "valid")


def correlated(a, v):
    return np.correlate(a, v), np.correlate(a, v, "same"), np.correlate(a, v, "full")


for n, m in ((5, 3), (3, 5), (4, 4), (6, 2), (1, 1), (2, 6), (0, 2)):
    for own in (convolved, correlated):
        CASES.add(own, numbers("f8", n), numbers("f8", m, seed=1), ulps=8)
        CASES.add(own, np.arange(n), np.arange(m) + 1)
for own in (convolved, correlated):
    CASES.add(own, numbers("c16", 4), numbers("c16", 3, seed=1), ulps=8)


def polynomial(p, x):
    return np.polyval(p, x)


for coefficients, x in (
    ([1, 2, 3], 2),
    (np.array([1, 2, 3.0]), np.float32([2])),
    (np.array([1, 2]), 2.5),
    (np.zeros(0), 2.0),
):
    CASES.add(polynomial, coefficients, x)


def sums_with_indices(a, b):
    return (
        np.einsum("ij,jk->ik", a, b),
        np.einsum("ij,jk", a, b),
        np.einsum("ij,jk->ki", a, b),
        np.einsum("ij->ji", a) + 0,
        np.einsum("ij->", a),
        np.einsum("ij->j", a),
        np.einsum("ij,ij->i", a, a),
        np.einsum("ij,kl->ijkl", a, b),
    )


def batched_sums_with_indices(a, b, c):
    return np.einsum("bij,bjk->bik", a, b), np.einsum("i,i->", c, c), np.einsum("ij,jk,k->i", a[0], b[0], c)


for dtype in ("f8", "i4", "c8", "?"):
    CASES.add(sums_with_indices, numbers(dtype, 3, 4), numbers(dtype, 4, 2), ulps=16)
CASES.add(batched_sums_with_indices, numbers("f8", 2, 3, 4), numbers("f8", 2, 4, 4), numbers("f8", 4), ulps=16)


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)
