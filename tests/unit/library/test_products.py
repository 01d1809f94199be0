"""Products, diagonals and norms of the library against NumPy: all combinations of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.library_run import Cases, numbers

CASES = Cases()


def multiplied(a, b):
    return a @ b, np.matmul(a, b)


def dotted(a, b):
    return np.dot(a, b), a.dot(b)


SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((2, 3), (2, 3)),
    ((2,), (3,)),
]
for dtype in ("f8", "f4", "f2", "c16", "c8", "i8", "i1", "?", "u4"):
    for left, right in SHAPES if dtype in ("f8", "i8") else SHAPES[:6]:
        pair = numbers(dtype, *left), numbers(dtype, *right, seed=1)
        CASES.add(multiplied, *pair, ulps=16)
        CASES.add(dotted, *pair, ulps=16)
CASES.add(multiplied, numbers("f4", 2, 3), numbers("f8", 3, 4), ulps=8)
CASES.add(multiplied, numbers("i4", 2, 3), numbers("f8", 3, 4), ulps=8)
CASES.add(multiplied, numbers("f8", 3, 2).T, numbers("f8", 4, 3).T, ulps=8)
CASES.add(multiplied, numbers("f8", 4, 6)[::2, ::2], numbers("f8", 3, 4)[::-1], ulps=8)
CASES.add(multiplied, numbers("f8", 3), 2.0)


def with_scalars(a, b):
    return np.dot(a, b), np.inner(a, b)


for pair in (
    (2, 3.5),
    (numbers("f4", 3), 2.0),
    (2, numbers("f8", 2, 3)),
    ([1, 2], [3, 4]),
    (np.array(2), numbers("f8", 3)),
):
    CASES.add(with_scalars, *pair)


def in_place(a, b):
    a @= b
    return a


CASES.add(in_place, numbers("f8", 3, 3), numbers("f8", 3, 3, seed=1), ulps=8)


def other_products(a, b):
    return np.inner(a, b), np.outer(a, b), np.tensordot(a, b, (-1, -1))


for left, right in (
    ((3,), (3,)),
    ((2, 3), (4, 3)),
    ((2, 2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 2, 3), (4, 3)),
    ((3,), (4,)),
):
    for dtype in ("f8", "i4", "c8"):
        CASES.add(other_products, numbers(dtype, *left), numbers(dtype, *right, seed=1), ulps=16)


def conjugated(a, b):
    return np.vdot(a, b), np.vecdot(a, b)


for dtype in ("f8", "i4", "c8", "f2"):
    CASES.add(conjugated, numbers(dtype, 5), numbers(dtype, 5, seed=1), ulps=16)
CASES.add(conjugated, numbers("f8", 5), numbers("f8", 4))


def contracted(a, b):
    return np.tensordot(a, b), np.tensordot(a, b, axes=([1], [1])), np.tensordot(a, b, 0), np.kron(a, b)


CASES.add(contracted, numbers("f8", 3, 4), numbers("f8", 3, 4, seed=1), ulps=16)
CASES.add(contracted, numbers("i4", 3, 4), numbers("i4", 3, 4, seed=1))


def crossed(a, b):
    return np.cross(a, b)


for left, right in (((3,), (3,)), ((5, 3), (5, 3)), ((5, 3), (3,))):
    CASES.add(crossed, numbers("f8", *left), numbers("i4", *right))


def traces(a):
    return np.trace(a), a.trace(1), np.trace(a, -1), np.trace(a, offset=7), np.diag(a).sum(), np.diagonal(a) + 1


for dtype in ("f8", "i1", "?", "c8", "f2"):
    CASES.add(traces, numbers(dtype, 3, 4), ulps=8)


def from_diagonal(v):
    return np.diag(v), np.diag(v, 1), np.diag(v, -2), np.diagflat(v)


CASES.each(from_diagonal, [numbers("f8", 3), [1, 2], np.zeros(0)])


def vector_norms(a):
    return (
        np.linalg.norm(a),
        np.linalg.norm(a, axis=0),
        np.linalg.norm(a, axis=-1, keepdims=True),
        np.linalg.norm(a, 1, axis=0),
        np.linalg.norm(a, np.inf, axis=0),
        np.linalg.norm(a, 0, axis=0),
        np.linalg.norm(a, 3, axis=0),
    )


for dtype in ("f8", "f4", "i4", "c8"):
    CASES.each(vector_norms, [numbers(dtype, 3), numbers(dtype, 3, 4)], ulps=8)


def matrix_norms(a):
    return (
        np.linalg.norm(a, "fro"),
        np.linalg.norm(a, 1),
        np.linalg.norm(a, np.inf),
        np.linalg.norm(a, axis=(1, 0), ord=1),
    )


CASES.each(matrix_norms, [numbers("f8", 3, 4), numbers("f8", 3, 4).T], ulps=8)


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)
