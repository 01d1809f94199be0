"""What a call is taken to cost in Python, before it has been made."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.call import pricing
from tests.helpers.called_in_python import summed


def test_prices_grow_with_loops_and_elements() -> None:
    size = pricing.size_of_code(summed)
    assert size.loops and size.instructions[2] > 5
    small, large = (size.cost((np.ones((n, n)),)) for n in (10, 1000))
    assert 1e3 < small < 1e6 and large > 5e3 * small
    straight = pricing.size_of_code(lambda x: x * 2 + 1)  # type: ignore[misc]
    assert not straight.loops
    assert straight.cost((np.ones(10),)) < 1e4 < 1e6 < straight.cost((np.ones(10**6),)) < 1e8


def test_axes_that_indices_add_multiply_sizes() -> None:
    def distances(points: Any, centres: Any) -> Any:
        return np.sum((points[:, None, :] - centres[np.newaxis]) ** 2, axis=2)

    def pairs(x: Any) -> Any:
        return x[:, None] - x[None]

    def scaled(x: Any, mean: Any, spread: Any) -> Any:
        return (x - mean[:, None]) / spread[:, None]

    def without(x: Any, y: Any) -> Any:
        return x[1:, 0] - y[None:3]

    sizes = {each: pricing.size_of_code(each) for each in (distances, pairs, scaled, without)}
    assert [size.added_axes for size in sizes.values()] == [{(1,), (0,)}, {(1,), (0,)}, {(1,)}, set()]
    elements = {
        distances: ((np.ones((1000, 3)), np.ones((50, 3))), 1000 * 50 * 3),
        pairs: ((np.ones(500),), 500 * 500),
        scaled: ((np.ones((800, 5)), np.ones(800), np.ones(800)), 800 * 5),
        without: ((np.ones((300, 3)), np.ones(200)), 300 * 3),
    }
    for function, (arguments, number) in elements.items():
        assert sizes[function].cost(arguments) == sizes[function].cost_of(1, number)


def outer(x: Any) -> Any:
    return [helper(v) for v in x]


def helper(v: Any) -> Any:
    return v


def test_what_is_called_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    both, inner = (pricing.size_of_code(function) for function in (outer, helper))
    monkeypatch.setattr(sys.modules[__name__], "helper", None)
    alone = pricing.size_of_code(outer)
    assert both.total == alone.total + inner.total and both.instructions[1] > alone.instructions[1] > 0


def test_ints_have_any_size() -> None:
    function = accelerate(when="pays")(lambda n: n + 1)
    assert function(2**2000) == 2**2000 + 1 and function(-(2**2000)) == 1 - 2**2000
    size = pricing.size_of_code(summed)
    assert size.cost((2**2000,)) == size.cost((1,)) < size.cost((2**30,))  # no loop turns as often


def test_ints_count_where_something_counts_to_them() -> None:
    def scaled(x: Any, scale: int) -> Any:
        return [item * scale for item in x]

    def halved(n: int) -> int:
        while n > 1:
            n //= 2
        return n

    sizes = [pricing.size_of_code(each) for each in (scaled, halved, summed)]
    assert [size.counts for size in sizes] == [False, True, True]
    assert sizes[0].cost(([1], 10**6)) == sizes[0].cost(([1], 1)) and sizes[1].cost((10**6,)) > 1e6
    assert sizes[2].cost((10**12,)) == sizes[2].cost_of(1, 0, 10**12) < 1e15  # squared, it would not end
    assert sizes[2].cost((dict.fromkeys(range(1000)),)) < 1e3 * sizes[2].cost(([0] * 1000,))
