"""Sorting on a GPU: every dtype, short lines in one block and long ones in passes through memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.ptx.skeletons import radix_sort
from tests.ptxas import ARCHITECTURES, PTXAS, assemble, kernels


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 512 elements, so that short arrays are long."""
    for name in ("SHORT", "LIGHT", "HEAVY"):
        monkeypatch.setattr(radix_sort, name, 2)


def mixed(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers of all sizes; of floats also zeros of both signs, infinities, and NaN of both signs."""
    rng = np.random.default_rng(5)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    bits = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(dtype)[..., 0]
    if kind.kind == "f":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5, -1.5], dtype)
        bits = np.where(rng.random(shape) < 0.5, special[rng.integers(0, 8, shape)], bits)
    elif kind.itemsize > 1:
        bits = np.where(rng.random(shape) < 0.2, bits % np.array(7, dtype), bits)
    return bits


def sort(a: Any) -> Any:
    return np.sort(a, kind="stable")


def argsort(a: Any) -> Any:
    return np.argsort(a, kind="stable")


def same_bits(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())


CASES = [
    *[(sort, dtype, "short") for dtype in ("?", "f2", "i4")],
    *[(sort, dtype, "long") for dtype in ("i1", "f4", "u8")],
    *[(argsort, "f8", "short"), (argsort, "f4", "long"), (argsort, "u1", "long")],
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("function", "dtype", "how"), CASES, ids=lambda item: getattr(item, "__name__", item))
def test_sorted(function: Any, dtype: str, how: str) -> None:
    accelerated = accelerate(function)
    a = mixed(dtype, (70, 9) if how == "short" else (2, 1300))
    with options(devices="emulated"):
        assert same_bits(accelerated(a), function(a))
        plan = device_plan_of(accelerated._dispatcher.compiled_for_normal((a,)))
    assert plan.last_run is not None and not plan.routines
    assert any("sort pass" in kernel.name.replace("_", " ") for kernel in plan.kernels)
    assert plan.last_run.bytes_in == a.nbytes  # nothing has gone to the CPU in between


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("function", [sort, argsort])
def test_digits_that_all_elements_share_take_no_pass(function: Any) -> None:
    accelerated = accelerate(function)
    lines = np.random.default_rng(7).integers(0, 200, (2, 1300))
    with options(devices="emulated"):
        for a, passes in (
            (lines, 1),
            (lines - 100, 8),
            (lines + (lines << 40), 2),
            (lines * 0 + 7, 0),
            (lines * 0 + [[1], [300]], 0),  # the same in each line
            (lines % 2 + [[1], [300]], 1),
        ):
            assert same_bits(accelerated(a), function(a))
            plan = device_plan_of(accelerated._dispatcher.compiled_for_normal((a,)))
            assert plan.last_run is not None
            launches = plan.last_run.launches
            made = sum(times for (number, _), times in launches if "sort_pass" in plan.kernels[number].name)
            assert made == passes


@pytest.mark.usefixtures("small_tiles")
def test_what_builds_on_sorting() -> None:
    """An axis that is not the last; places that come in an order of their own; arrays that are sorted in place."""

    def several(a: Any, b: Any) -> Any:
        c = a.copy()
        c.sort(axis=0)
        return np.lexsort((b, a[:, 0])), c

    rng = np.random.default_rng(6)
    a, b = rng.permutation(630).reshape(90, 7), rng.integers(0, 5, 90)
    function = accelerate(several)
    with options(devices="emulated"):
        for one, other in zip(function(a, b), several(a, b), strict=True):
            assert np.array_equal(one, other)
        assert not device_plan_of(function._dispatcher.compiled_for_normal((a, b))).routines


@pytest.mark.usefixtures("small_tiles")
def test_order_statistics() -> None:
    """Lines are sorted by all threads, where a CPU would search in each."""

    def several(a: Any) -> Any:
        return np.median(a, axis=0), np.percentile(a, [10, 95], axis=1), np.nanmedian(a, axis=1)

    a = np.random.default_rng(8).standard_normal((9, 22)).astype("f4")
    function = accelerate(several)
    with options(devices="emulated"):
        function(a)
        a[2, 3] = a[4, 3] = np.nan
        for one, other in zip(function(a), several(a), strict=True):
            assert np.array_equal(one, other, equal_nan=True)
        plan = device_plan_of(function._dispatcher.compiled_for_normal((a,)))
    assert not any(kernel.single for kernel in plan.kernels if "task" in kernel.name) and not plan.routines


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (300, 1)])
def test_nothing_to_sort(shape: tuple[int, ...]) -> None:
    a = np.arange(np.prod(shape), dtype="i2").reshape(shape)
    function = accelerate(sort)
    with options(devices="emulated"):
        assert same_bits(function(a), a)


def test_complex_numbers_are_left_to_the_cpu() -> None:
    a = np.array([2 + 1j, 1 - 1j, 1 - 2j])
    function = accelerate(sort)
    with options(devices="emulated"):
        assert same_bits(function(a), sort(a))
        assert "sort.stable" in str(function.explain(a)) and "done by the CPU" in str(function.explain(a))


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("architecture", ARCHITECTURES[::5])
def test_kernels_are_assembled(architecture: str, tmp_path: Path) -> None:
    assemble(kernels(accelerate(argsort), (np.ones(8, "f4"),), architecture), architecture, tmp_path)
