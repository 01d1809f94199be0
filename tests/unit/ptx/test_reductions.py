"""Reductions on the emulator: every way contributions are shared out between threads, and the first of equal ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

RNG = np.random.default_rng(0)
SHAPES = [(3000, 5), (30, 500), (20_000, 3), (3, 70_000), (30, 5000), (1, 40_000), (0, 5), (5, 0)]


def emulated(function: Any, *args: Any) -> Any:
    with options(devices="emulated", strict=True):
        return accelerate(function)(*args)


def sums(x: Any) -> Any:
    return np.sum(x), np.sum(x, axis=0), np.sum(x, axis=1), np.sum(x[1:, 1:]), np.sum(x[:, ::2])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums(shape: tuple[int, int], order: str) -> None:
    x = np.asarray(RNG.integers(-9, 9, shape), order=order)
    for found, expected in zip(emulated(sums, x), sums(x), strict=True):
        assert (found == expected).all() and found.dtype == expected.dtype


def places(x: Any) -> Any:
    return (
        np.argmin(x),
        np.argmax(x),
        np.argmin(x, axis=0),
        np.argmax(x, axis=1),
        np.argmin(x[1:, :]),
        np.argmax(x[::-1]),
    )


@pytest.mark.parametrize("shape", SHAPES[:6])
def test_places_of_extrema(shape: tuple[int, int]) -> None:
    x = RNG.integers(-3, 3, (shape[0] + 1, shape[1])).astype(np.float64)  # many equal ones
    for found, expected in zip(emulated(places, x), places(x), strict=True):
        assert (found == expected).all()


def test_a_nan_is_an_extremum() -> None:
    x = np.where(RNG.random((300, 40)) > 0.999, np.nan, RNG.random((300, 40)))
    assert emulated(lambda a: np.argmin(a), x) == np.argmin(x)
    assert (emulated(lambda a: np.argmax(a, axis=0), x) == np.argmax(x, axis=0)).all()


def test_several_axes_and_accumulators() -> None:
    def several(x: Any) -> Any:
        return np.sum(x, axis=(0, 2)), np.max(x, axis=1), np.ptp(x, axis=(1, 2)), np.any(x > 8, axis=(0, 1))

    x = RNG.integers(-9, 9, (20, 30, 40))
    for found, expected in zip(emulated(several, x), several(x), strict=True):
        assert (found == expected).all()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i1", "?"])
def test_wide_loads_and_no_long_division(dtype: str) -> None:
    text = accelerate(lambda x: np.sum(x)).ptx(np.ones(1000, dtype))
    assert re.search(r"ld\.global\.nc(\.v[24])?\.[bu](8|16|32|64)", text) and not re.search(r"(div|rem)\.[su]64", text)
    if dtype in ("f8", "f4", "i4"):
        assert re.search(r"ld\.global\.nc\.v[24]", text)
