"""Sums whose terms may be grouped in any way: right for all lengths, the same for any number of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

Array = np.ndarray[Any, Any]
LENGTHS = (*range(40), 63, 64, 65, 127, 129, 255, 1000, 16383, 16384, 16385, 40001)
STEPS = (1, -1, 3, -2)


def terms(length: int, dtype: str, seed: int) -> Array:
    """Whole numbers, whose sums are exact in any order."""
    draw = np.random.default_rng(seed)
    values: Array = draw.integers(-9, 10, (2, length)).astype("f8")
    made: Array = values[0] + 1j * values[1] if np.dtype(dtype).kind == "c" else values[0]
    return made.astype(dtype)


def dot(x: Array, y: Array) -> Any:
    return np.dot(x, y)


def in_loop(x: Array, y: Array) -> Any:
    total = x[:0].sum()
    for start in range(0, len(x), 7):
        total += x[start:] @ y[start:]
    return total


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("function", [dot, in_loop])
def test_exact_sums(function: Any, dtype: str) -> None:
    compiled = accelerate(function, when="now")
    for length in LENGTHS if function is dot else LENGTHS[:46:3]:
        for step in STEPS:
            x = terms(abs(step) * length, dtype, 1)[::step]
            y = terms(length, dtype, 2)
            for threads in (1, 2):
                with options(threads=threads):
                    found, expected = compiled(x, y), function(x, y)
                    assert found == expected and type(found) is type(expected), (length, step, threads)


def row_sums(a: Array, b: Array) -> Any:
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = np.dot(a[i, : i + 1], b[i, : i + 1]) + np.dot(a[: i + 1, 0], b[i, : i + 1])
    return out


def test_rounding_is_that_of_short_sums() -> None:
    draw = np.random.default_rng(3)
    a, b = draw.standard_normal((2, 300, 300)) * 10.0 ** draw.integers(-4, 5, (2, 300, 300))
    found = accelerate(row_sums, when="now")(a, b)
    for i, one in enumerate(found):
        pairs = [*zip(a[i, : i + 1], b[i, : i + 1], strict=True), *zip(a[: i + 1, 0], b[i, : i + 1], strict=True)]
        products = [float(left * right) for left, right in pairs]
        bound = len(products) * 2.0**-53 * sum(map(abs, products))
        assert abs(one - math.fsum(products)) <= bound, i


def test_threads_do_not_change_bits() -> None:
    draw = np.random.default_rng(4)
    compiled = accelerate(in_loop, when="now")
    x, y = draw.standard_normal((2, 70_001))
    results = []
    for threads in (1, 2, 5):
        with options(threads=threads):
            results.append(compiled(x[:20_500], y[:20_500]))
    assert len(set(results)) == 1


def test_special_values() -> None:
    compiled = accelerate(in_loop, when="now")
    for value in (math.inf, -math.inf, math.nan):
        x = np.ones(100)
        x[37] = value
        np.testing.assert_array_equal(compiled(x, np.ones(100)), in_loop(x, np.ones(100)))
    minus = accelerate(dot, when="now")(np.full(3, -0.0), np.ones(3))
    assert minus == 0.0 and math.copysign(1.0, minus) == math.copysign(1.0, float(dot(np.full(3, -0.0), np.ones(3))))


def test_no_tree_is_made_of_them() -> None:
    a = np.ones((50, 50))
    assert "pairwise" not in str(accelerate(row_sums).imp(a, a))
    assert "pairwise" in str(accelerate(lambda x: np.sum(x)).imp(a[0]))


@pytest.mark.parametrize("length", [1, 3, 7, 8, 9, 15, 17, 31, 32, 33, 63])
def test_known_lengths(length: int) -> None:
    for dtype in ("f4", "f8", "c16"):
        a, b = (terms(5 * length, dtype, seed).reshape(5, length) for seed in (6, 7))

        def rows(a: Array, b: Array) -> list[Any]:
            return [np.dot(a[i, :length], b[i, :length]) for i in range(5)]

        assert accelerate(rows, when="now")(a, b) == rows(a, b)
