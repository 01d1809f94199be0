"""Scatters into small targets: copies in shared memory, several of very small ones, and 16 bytes a load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions


def changed(target: Any, places: Any, values: Any) -> Any:
    np.add.at(target, places, values)
    return target


def counted(labels: Any) -> Any:
    return np.bincount(labels)


def binned(x: Any) -> Any:
    return np.histogram(x, 50, (0.0, 1.0))[0]


@pytest.mark.parametrize("bins", [3, 700, 1500, 3000])
def test_counts(bins: int) -> None:
    """Eight, four, two copies in a block, and one; points that are no whole runs."""
    rng, function = np.random.default_rng(bins), accelerate(counted)
    for size in (12_001, 4 * bins + 3):
        labels = rng.integers(0, bins, size)
        labels[-1] = bins - 1
        with options(devices="emulated", strict=True):
            found = function(labels)
            report = str(function.explain(labels).device)
        assert np.array_equal(found, counted(labels)) and found.dtype == np.int64
        assert "scatter_shared" in report


def passes(function: Any, *args: Any) -> int:
    """Kernels of the last call that have several blocks: those that go through a long argument."""
    return sum(blocks > 1 for (_, blocks), _ in function.explain(*args).device.last_run.launches)


def test_one_pass_where_the_range_is_known() -> None:
    """By a length that is given, which numbers may exceed, or by the dtype."""

    def up_to(labels: Any, least: Any) -> Any:
        return np.bincount(labels, minlength=least)

    rng, function = np.random.default_rng(4), accelerate(up_to)
    labels = rng.integers(0, 40, 20_000)
    for least, several in ((40, 1), (300, 1), (39, 3), (0, 2)):
        with options(devices="emulated", strict=True):
            found = function(labels, least)
            assert np.array_equal(found, up_to(labels, least)) and found.dtype == np.int64 and found.base is None
            assert passes(function, labels, least) == several
    small = labels.astype(np.uint8)
    for one in (small, small[:0], np.full(9999, 255, np.uint8)):
        for least in (0, 10, 40, 300):
            with options(devices="emulated", strict=True):
                assert np.array_equal(function(one, least), up_to(one, least))
                assert not one.size or passes(function, one, least) == 1
    labels[777] = -1
    for wrong in (labels, labels.astype(np.int8)):
        with options(devices="emulated"), pytest.raises(ValueError, match="'list' argument must have no negative"):
            function(wrong, 50)


def test_points_of_other_sizes_and_layouts() -> None:
    rng = np.random.default_rng(1)
    count, bins, change = accelerate(counted), accelerate(binned), accelerate(changed)
    labels = rng.integers(0, 20, 2007).astype(np.int32)
    with options(devices="emulated", strict=True):
        for one in (labels, labels[1:], labels[::2], labels[::-1], labels.reshape(3, -1).astype(np.uint8).ravel()):
            assert np.array_equal(count(one), counted(one))
        for dtype in (np.float32, np.float64):
            x = rng.random(1003).astype(dtype)
            assert np.array_equal(bins(x), binned(x))
        values = rng.integers(0, 9, labels.size)
        for dtype in ("f4", "i8", "i2", "c8"):
            wanted = changed(np.zeros(20, dtype), labels, values.astype(dtype))
            assert np.array_equal(change(np.zeros(20, dtype), labels, values.astype(dtype)), wanted)


def test_every_combine() -> None:
    """What copies hold is combined as the points are."""

    def several(places: Any, values: Any) -> Any:
        low, high, product, less = np.full(7, 9), np.full(7, -9), np.ones(7, np.uint64), np.full(7, 5.0)
        np.minimum.at(low, places, values)
        np.maximum.at(high, places, values)
        np.multiply.at(product, places, (values & 1).astype(np.uint64) + np.uint64(1))
        np.subtract.at(less, places, values)
        any_, all_, odd = np.zeros(7, bool), np.ones(7, bool), np.zeros(7, bool)
        np.logical_or.at(any_, places, values > 8)
        np.logical_and.at(all_, places, values < 9)
        np.logical_xor.at(odd, places, values > 0)
        return low, high, product, less, any_, all_, odd

    rng = np.random.default_rng(2)
    places, values = rng.integers(0, 7, 611), rng.integers(-9, 10, 611)
    with options(devices="emulated", strict=True):
        found = accelerate(several)(places, values)
    for one, other in zip(found, several(places, values), strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="ptxas and nvdisasm are not installed")
def test_machine_code(tmp_path: Path) -> None:
    """Labels come 16 bytes at a time, four loads on their way together; lanes with equal labels count once."""
    for labels, least in ((np.ones(1000, np.int32), 4), (np.ones(1000, np.uint8), 1)):
        text = accelerate(counted).ptx(labels, target="sm_90")
        code, resources = assembled(text, "sm_90", tmp_path)
        ((spilled, registers),) = (found for name, found in resources.items() if "_scatter_shared_" in name)
        assert spilled == 0 and registers <= 64
        (names,) = (names for name, names in instructions(code).items() if "_scatter_shared_" in name)
        assert names.count("LDG.E.128.CONSTANT") >= least and "ATOMS.POPC.INC.32" in names
