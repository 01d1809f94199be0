"""Scans on the emulator: every way lines are shared out between threads, groups of tiles, the same bits each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions

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


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i4", "c8", "c16"])
def test_what_tiles_publish(dtype: str) -> None:
    """Values of every size in words of 32 bits and a mark, in the middle of a line and where a tile is not whole."""

    def running(x: Any) -> Any:
        return np.cumsum(x)

    rng, running_there = np.random.default_rng(2), accelerate(running)
    for size in (1, 4096, 9001):
        x = rng.integers(0 if dtype == "u1" else -1, 2, size).astype(dtype)
        if dtype[0] == "c":
            x *= 1 + 1j
        with options(devices="emulated", strict=True):
            found = running_there(x)
        assert found.dtype == running(x).dtype and np.array_equal(found, running(x))


def test_extrema_and_truths_between_tiles() -> None:
    def several(x: Any) -> Any:
        return np.maximum.accumulate(x), np.logical_or.accumulate(x > 0.9998), np.cumsum(x[::2] > 0.5)

    x = np.random.default_rng(3).random(9001)
    with options(devices="emulated", strict=True):
        for one, other in zip(accelerate(several)(x), several(x), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="ptxas and nvdisasm are not installed")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_machine_code(dtype: str, tmp_path: Path) -> None:
    """16 bytes a load and a store, words that need no fence and no acquire, few registers."""
    text = accelerate(lambda x: np.cumsum(x)).ptx(np.ones(1000, dtype), target="sm_90")
    code, resources = assembled(text, "sm_90", tmp_path)
    ((spilled, registers),) = (found for name, found in resources.items() if "_scan_" in name)
    assert spilled == 0 and registers <= 48
    (scan,) = (names for name, names in instructions(code).items() if "_scan_" in name)
    assert sum(name.startswith("LDG.E.128") for name in scan) == sum(name.startswith("STG.E.128") for name in scan) == 4
    words = {"f4": 1, "f8": 2}[dtype]
    assert sum(name.startswith("LDG.E.64.STRONG.GPU") for name in scan) == 2 * words
    assert not any(name.startswith(("MEMBAR", "CCTL", "LDL", "STL")) for name in scan)
