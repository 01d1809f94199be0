"""Elements chosen by the library against NumPy: where, clip, select, take, nonzero, masked stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.library_run import Cases, numbers

CASES = Cases()

REAL = numbers("f8", 3, 4)
WHOLE = np.random.default_rng(0).integers(-5, 5, (3, 4))
COMPLEX = numbers("c16", 3, 4)


def where_positive(a):
    return np.where(a > 0, a, 0), np.where(a > 0, 1, 2.5), np.where(a > 0, a, np.float32(2)), np.where(a > 0)


CASES.each(where_positive, [REAL, WHOLE, REAL.astype("f4"), np.abs(WHOLE).astype("u1"), COMPLEX, REAL.T])


def where_of_scalars(c):
    return np.where(c, 1, 2), np.where([True, False], c, 3), np.where(c, np.uint8(3), 300)


CASES.each(where_of_scalars, [True, 0, np.array([1, 0])])


def nonzero(a):
    return np.nonzero(a), a.nonzero(), np.flatnonzero(a), np.argwhere(a > 0), np.count_nonzero(a)


CASES.each(nonzero, [REAL, WHOLE, WHOLE[0], WHOLE.T])


def clipped(a):
    return np.clip(a, -1, 2), a.clip(0), np.clip(a, None, 1), a.clip(max=2), np.clip(a, min=0, max=1), np.clip(a, 2, -2)


CASES.each(
    clipped, [REAL, WHOLE, REAL.astype("f4"), REAL.T, WHOLE.astype("i1"), np.array([1, np.nan, 3]), np.float32(2.5)]
)


def clipped_to(a, low, high):
    return np.clip(a, low, high)


SMALL = np.abs(WHOLE).astype("u1")
for bounds in (
    (SMALL, -5, 300),
    (SMALL, 300, 400),
    (3, 0, 2),
    (2.5, 0, 2),
    ([1, 2, 3], 1, 2),
    (WHOLE, 0.5, 2),
    (REAL, np.nan, 1),
):
    CASES.add(clipped_to, *bounds)


def clipped_into(a, out):
    return np.clip(a, 0, 1, out=out), a.clip(0, 2, out=a)


CASES.add(clipped_into, REAL, np.zeros((3, 4)))


def selected(a):
    return np.select([a > 1, a < -1], [a * 2, a * 3]), np.select([a > 0], [1], default=7.5)


CASES.each(selected, [REAL, WHOLE])


def chosen(i, a):
    return np.choose(i, [a, a * 10, 7]), i.choose((1, 2, 3))


CASES.add(chosen, np.array([0, 2, 1]), np.arange(3))
CASES.add(chosen, np.array([0, 3, 1]), np.arange(3))


def taken(a, i):
    return (
        np.take(a, i),
        np.take(a, i, axis=0),
        a.take(i, axis=1),
        np.take(a, i, mode="wrap"),
        np.take(a, i, 0, mode="clip"),
    )


for index in (np.array([0, 2, -1]), 1, np.array([[0, 1], [1, 2]]), 5, np.array([7]), [0, 1]):
    CASES.add(taken, REAL, index)


def compressed(a, c):
    return np.compress(c, a, axis=0), np.extract(a > 0, a), a.compress(c, axis=0)


CASES.add(compressed, REAL, np.array([True, False, True]))
CASES.add(compressed, REAL, [1, 0, 1])


def stored(a, b):
    np.copyto(a, b)
    np.copyto(a, 3, where=a > 0)
    np.putmask(a, a < -1, 0)
    np.fill_diagonal(a, 9)
    return a


CASES.add(stored, REAL, REAL[::-1])
CASES.add(stored, WHOLE, REAL)


def as_python(a):
    return a.tolist(), a[0].item(), a.item(1), a.sum().item()


CASES.each(as_python, [np.arange(4.0), np.arange(4, dtype="i1"), np.array([True, False])])


def item(a):
    return a.item()


CASES.each(item, [np.array([[3]]), np.array(3.5), np.arange(3)])


def part_of_result(a):
    b = a * 2
    return b.real


def sum_of_squared_parts(a):
    return a.real**2 + a.imag**2


def parts_assigned(z):
    w = z.copy()
    w.real = z.imag
    w.imag = 7
    return w


def parts_stored_through(z):
    z.real[0] = 5
    part = z.imag
    z[1] = 3
    return part


for own in (part_of_result, sum_of_squared_parts, parts_assigned):
    CASES.add(own, COMPLEX)
CASES.add(parts_stored_through, COMPLEX, compiled=False)


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)
