"""Rows that a loop updates again and again: four rounds at a time, in their order, where nothing else is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


@accelerate(when="now", tiers=False)
def product(a: Any, b: Any) -> Any:
    result = np.zeros((len(a), b.shape[1]))
    for i in range(len(a)):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                result[i, j] += a[i, k] * b[k, j]
    return result


@accelerate(when="now", tiers=False)
def rounds(a: Any, b: Any, out: Any) -> None:
    for k in range(len(a)):
        for j in range(b.shape[1]):
            out[j] = (out[j] - k) * a[k] + b[k, j] * out[j]


@accelerate(when="now", tiers=False)
def shortest(paths: Any) -> None:
    for k in range(len(paths)):
        for i in range(len(paths)):
            paths[i] = np.minimum(paths[i], paths[i, k] + paths[k])


def numbers(*extents: int) -> Any:
    return np.random.default_rng(0).normal(size=extents)


@pytest.mark.parametrize("inner", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("columns", [0, 1, 9])
def test_rounds_keep_their_order(inner: int, columns: int) -> None:
    a, b = numbers(3, inner), numbers(inner, columns)
    assert np.array_equal(product(a, b), product.__wrapped__(a, b))
    mine, theirs = numbers(columns), numbers(columns)
    rounds(a[0], b, mine)
    rounds.__wrapped__(a[0], b, theirs)
    assert np.array_equal(mine, theirs)


def test_four_rounds_are_one_loop_over_the_row() -> None:
    text = product.imp(numbers(3, 5), numbers(5, 9))
    four = text[text.index("by 4") :].split("    for i", 1)[0]
    assert four.count(":= ") == 1
    assert four.count("mul ") == 4


def test_rows_that_are_read_elsewhere_are_left() -> None:
    mine, theirs = numbers(9, 9), numbers(9, 9)
    shortest(mine)
    shortest.__wrapped__(theirs)
    assert np.array_equal(mine, theirs)
    overlapping, again = numbers(12), numbers(12)
    rounds(overlapping[:5], overlapping[4:].reshape(2, 4)[:1].repeat(5, 0), overlapping[8:])
    rounds.__wrapped__(again[:5], again[4:].reshape(2, 4)[:1].repeat(5, 0), again[8:])
    assert np.array_equal(overlapping, again)
    grid, other = numbers(6, 6), numbers(6, 6)
    rounds(grid[:, 2], grid, grid[3])
    rounds.__wrapped__(other[:, 2], other, other[3])
    assert np.array_equal(grid, other)
