"""Scans on the emulator: every way lines are shared out between threads, groups of tiles, the same bits each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

LINES = [(20, 300), (3, 2100), (200, 9), (2, 40_000), (300, 40), (3000, 5), (40_000, 2), (1, 70_000)]


def emulated(function: Any, *args: Any) -> Any:
    with options(devices="emulated", strict=True):
        return accelerate(function)(*args)


@pytest.mark.parametrize("shape", LINES)
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_of_every_length(shape: tuple[int, int], axis: int) -> None:
    def running(x: Any, axis: Any) -> Any:
        return np.cumsum(x, axis=axis)

    x = np.random.default_rng(0).integers(-9, 9, shape)
    assert (emulated(running, x, axis) == running(x, axis)).all()


def test_groups_of_tiles() -> None:
    """More than 256 tiles: what is before a group comes from the last tile of the group before."""

    def running(x: Any) -> Any:
        return np.cumsum(x)

    x = np.random.default_rng(0).integers(-9, 9, 2048 * 600 + 5)
    assert (emulated(running, x) == running(x)).all()
    y = np.random.default_rng(1).random(2048 * 260)
    first = emulated(running, y)
    assert np.abs(first - running(y)).max() < 1e-8 and (first == emulated(running, y)).all()


@pytest.mark.parametrize("size", [1, 4095, 4097, 70_000])
def test_places_of_kept_points(size: int) -> None:
    def kept(x: Any) -> Any:
        return x[x > 0.7]

    x = np.random.default_rng(0).random(size)
    assert (emulated(kept, x) == kept(x)).all()
