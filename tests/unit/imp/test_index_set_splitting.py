"""Loops cut where a condition on their index turns: as NumPy has it, wherever ranges begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate

Array = np.ndarray[Any, Any]


def rolled(a: Array, k: int) -> Array:
    return np.roll(a, k)


def rolled_twice(a: Array, k: int) -> Array:
    return np.roll(a, k) - np.roll(a, -k) * 2.0


def rolled_columns(a: Array, k: int) -> Array:
    return np.roll(a, k, axis=1)


def two_triangles(a: Array, k: int) -> Array:
    return np.triu(a, k) + np.tril(a, 1)


def from_one_on(a: Array, k: int) -> Array:
    made = np.empty(len(a))
    for i in range(len(a)):
        if i > k:
            made[i] = 2.0 * i
        else:
            made[i] = -a[i]
    return made


def at_one_place(a: Array, k: int) -> Array:
    made = np.empty(len(a))
    for i in range(len(a)):
        if i == 0:
            made[i] = -a[i]
        elif i != k:
            made[i] = a[i] - a[i - 1]
        else:
            made[i] = 7.0
    return made


def on_a_diagonal(a: Array, k: int) -> Array:
    made = np.empty(a.shape)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            made[i, j] = 2.0 * a[i, j] if j - i == k else 0.0
    return made


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (at_one_place, [(1,), (33,), (5000,)]),
        (on_a_diagonal, [(3, 40), (40, 3), (33, 33)]),
        (rolled, [(1,), (33,), (5000,)]),
        (rolled_twice, [(1,), (33,), (5000,)]),
        (rolled_columns, [(3, 40), (40, 3), (2, 6000)]),
        (two_triangles, [(3, 40), (40, 3), (70, 70)]),
        (from_one_on, [(1,), (33,), (5000,)]),
    ],
)
def test_every_offset(function: Callable[[Array, int], Array], shapes: list[tuple[int, ...]], threads: int) -> None:
    compiled = accelerate(threads=threads)(function)
    for shape in shapes:
        a = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
        for k in (0, 1, -1, 31, -45, 2**62, -(2**62)):
            expected, found = function(a, k), compiled(a, k)
            assert np.array_equal(found, expected), (shape, k)
            assert found.strides == expected.strides


def test_cut_loops_do_not_branch() -> None:
    text = accelerate(rolled).imp(np.ones(64), 3)
    assert text.count("vector ") == 2
    assert "if " not in text
