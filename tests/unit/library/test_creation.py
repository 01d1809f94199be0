"""Arrays made by the library against NumPy's: dtypes, orders, lengths, last points, grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from tests.helpers.library_run import Cases

CASES = Cases()


def filled(n):
    return np.zeros(n), np.ones((n, 2)), np.full((n,), 7), np.full((2, n), 2.5, np.float32), np.zeros((2, n), int, "F")


CASES.each(filled, [4, 0, -1, np.int32(3)])


def alike(a):
    return np.zeros_like(a), np.ones_like(a, dtype=np.int8), np.full_like(a, 3), np.zeros_like(a, shape=(2, 2))


MATRIX = np.arange(6.0).reshape(2, 3)
CASES.each(alike, [MATRIX, MATRIX.T, np.float32(3), [1, 2, 3], np.array(True), np.arange(4, dtype="c8")])


def full_of(value):
    return np.full(3, value, np.uint8), np.full((2,), value)


CASES.each(full_of, [3, 300, -1, 2.5, np.int64(300)])


def counted(n):
    return np.arange(n), np.arange(n, dtype=np.float32), np.arange(1, n), np.arange(n, 1, -1), np.arange(0, n, 0.5)


CASES.each(counted, [5, 0, -2, 7.5, np.float32(3), np.int8(5), -7.3], ulps=0)


def counted_by(start, stop, step):
    return np.arange(start, stop, step), np.arange(start, stop, step, dtype=np.float32)


for bounds in (
    (0, 1, 0.1),
    (1, 0, -0.1),
    (0.5, 10, 0.7),
    (0, 5, 0),
    (0.0, 5.0, 0.0),
    (10, 0, -3),
    (0.0, float("nan"), 1.0),
):
    CASES.add(counted_by, *bounds, ulps=0)


def spaced(start, stop, n):
    return (
        np.linspace(start, stop, n),
        np.linspace(start, stop, n, endpoint=False),
        np.linspace(start, stop, n, dtype=int),
    )


for bounds in (
    (0, 1, 5),
    (0.0, 1.0, 50),
    (1, -3, 7),
    (np.float32(0), 1, 5),
    (0, 1, 0),
    (2, 2, 3),
    (0, 1, -1),
    (0, 5e-324, 4),
):
    CASES.add(spaced, *bounds, ulps=0)


def spaced_with_step(start, stop):
    return np.linspace(start, stop, 5, retstep=True), np.linspace(start, stop, 1), np.logspace(start, stop, 4)


CASES.add(spaced_with_step, 0, 3, ulps=1)
CASES.add(spaced_with_step, 0.5, -3, ulps=1)


def spaced_arrays(start, stop, n):
    return np.linspace(start, stop, n), np.linspace(start, stop, n, axis=-1)


CASES.add(spaced_arrays, np.arange(3.0), 5.0, 4)
CASES.add(spaced_arrays, np.zeros((2, 3)), np.ones(3), 4)


def matrices(n):
    return np.eye(n), np.eye(n, 3, 1), np.eye(n, dtype=int, k=-1), np.identity(n), np.tri(n, 4, 1), np.indices((n, 3))


CASES.each(matrices, [4, 0])


def triangles(a):
    return np.tril(a), np.triu(a, 1), np.tril(a, k=-1)


CASES.each(triangles, [np.arange(12.0).reshape(3, 4), np.arange(3), np.arange(24).reshape(2, 3, 4)])


def from_function(n):
    return np.fromfunction(lambda i, j: i * 3 + j, (n, 4)), np.fromfunction(lambda i, j: i == j, (n, n), dtype=int)


CASES.add(from_function, 3)


def grids(a, b):
    return np.meshgrid(a, b), np.meshgrid(a, b, indexing="ij"), np.meshgrid(a, b, a), np.meshgrid(a, b, sparse=True)


CASES.add(grids, np.arange(3.0), np.arange(2))


def converted(a):
    return (
        np.array(a),
        np.array(a, dtype=np.float32),
        np.asarray(a, float),
        np.ascontiguousarray(a),
        np.array(a, ndmin=3),
        np.array(a, order="F"),
        np.asarray(a, dtype=int, order="C"),
    )


CASES.each(converted, [3, 2.5, np.float32(2), np.array(3), [1, 2, 3], [[1, 2.5], [3, 4]], MATRIX, MATRIX.T, True])
CASES.add(converted, np.arange(12.0)[::2])


def of_scalars(a):
    return np.array([a, 2 * a, 3]), np.array([[a, 1], [2, a]], dtype=np.int8)


CASES.each(of_scalars, [3, 2.5, 300])


def cast(a):
    return a.astype(np.float32), a.astype("bool"), a.astype(a.dtype, copy=False), a.astype(np.complex64), a.copy("F")


CASES.each(cast, [MATRIX, MATRIX.T, np.arange(6, dtype="u1")[::2]])


def same_memory_or_not(a):
    b = a.astype(a.dtype, copy=False)
    b[0] = 9
    c = np.asarray(a)
    c[1] = 8
    d = np.array(a)
    d[2] = 7
    a[:2].fill(3)
    return a, b, c, d


CASES.add(same_memory_or_not, np.arange(4.0))


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)


def test_equal_dtypes_that_are_not_the_same() -> None:
    """`long` and `long long` are of one size; results are of the one that the program names."""

    def made(x):
        named = np.dtype("q")
        return (
            x.sum(axis=0, dtype=named),
            x.astype("q"),
            np.asarray(x, dtype="q"),
            np.zeros(3, named),
            np.longlong(3),
            x.astype(np.intp),
            np.full(2, 1, "Q"),
        )

    f, x = accelerate(made), np.ones((2, 3), int)
    for _ in range(3):
        assert [one.dtype.char for one in f(x)] == [one.dtype.char for one in made(x)]
    assert not f.fell_back
