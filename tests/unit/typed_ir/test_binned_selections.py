"""Loops that select by intervals, natively: bounds and elements of all kinds, and arrays of several blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

EVEN = np.linspace(0.0, 1.0, 65)
EDGES = {
    "even": EVEN,
    "falling": EVEN[::-1].copy(),
    "in no order": np.random.default_rng(0).permutation(EVEN),
    "one NaN": np.where(np.arange(65) == 30, np.nan, EVEN),
    "infinite ends": np.r_[-np.inf, EVEN[1:-1], np.inf],
    "equal": np.full(65, 0.5),
    "far from even": np.geomspace(1e-300, 1.0, 65),
    "infinite": np.full(65, np.inf),
    "below all": np.full(65, -np.inf),
}


def half_open(x: Any, y: Any, edges: Any) -> Any:
    kept = np.zeros(len(edges) - 1)
    for i in range(len(edges) - 1):
        chosen = y[(x >= edges[i]) & (x < edges[i + 1])]
        kept[i] = (chosen * np.arange(len(chosen))).sum()  # their order
    return kept


def open_below(x: Any, y: Any, edges: Any) -> Any:
    kept = np.zeros(len(edges) - 1)
    for i in range(len(edges) - 1):
        kept[i] = y[(edges[i + 1] >= x) & (edges[i] < x) & (y > 0.25)].sum()
    return kept


def overlapping(x: Any, y: Any, edges: Any) -> Any:
    """The last width is that of all elements."""
    kept = np.zeros(len(edges))
    for width in (1e-3, 0.02, 0.5, 2.0):
        for i in range(len(edges)):
            kept[i] += y[(x >= edges[i] - width) & (x <= edges[i] + width)].sum()
    return kept


def of_labels(labels: Any, y: Any, groups: int) -> Any:
    kept = np.zeros((groups, 2))
    for i in range(groups):
        kept[i] = y[labels == i].sum(), np.sum(labels == i)
    return kept


def _elements(count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, count))
    for every, value in ((7, np.nan), (11, np.inf), (13, -np.inf), (17, -0.0), (19, 1.0), (23, 5e-324)):
        x[::every] = value
    return x, y


@cache
def _compiled(function: Any) -> Any:
    return accelerate(when="now")(function)


def _compare(function: Any, *args: Any) -> None:
    want = function(*args)
    for threads in (1, 2):
        with options(threads=threads):
            assert np.array_equal(_compiled(function)(*args), want, equal_nan=True)


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
def test_intervals_have_the_elements_of_their_masks_in_order(edges: Any) -> None:
    x, y = _elements(3000)
    for function in (half_open, open_below):
        _compare(function, x, y, edges)


def test_elements_may_be_in_several_intervals() -> None:
    _compare(overlapping, *_elements(2000), EVEN)


@pytest.mark.parametrize("dtype", ["i8", "u8", "u1", "f4"])
def test_groups_have_the_elements_of_their_label(dtype: str) -> None:
    labels = (np.arange(3000) * 7 % 50).astype(dtype)
    _compare(of_labels, labels, np.arange(3000.0), 60)


def test_an_array_of_several_blocks() -> None:
    x, y = _elements(100_000)
    _compare(half_open, x, y, np.linspace(0, 1, 2000))
    _compare(of_labels, np.arange(100_000) * 7 % 3000, y, 3001)
