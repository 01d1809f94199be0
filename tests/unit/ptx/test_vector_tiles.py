"""Maps over two and more axes by runs of 16 bytes: results at all edges, and what the machine code has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.ptx.skeletons import vector_tiles
from tests.ptxas import NVDISASM, PTXAS, assembled, instructions
from tests.unit.ptx.test_memory_access import profile


@pytest.fixture(autouse=True)
def small_maps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_tiles, "LEAST_BLOCKS", 0)


def mean(u: Any) -> Any:
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def relax(v: Any, u: Any) -> None:
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def scaled(a: Any, row: Any, column: Any) -> Any:
    return np.maximum(a * row + column[:, None], 0)


def of_planes(u: Any, v: Any) -> Any:
    return u[1:, :, :] * 2 + v[:-1, :, 1:2]


def kernel(function: Any, *args: Any) -> int:
    """The number of the kernel that a call has launched, of those it may."""
    (((number, _), _),) = function.explain(*args).device.last_run.launches
    return int(number)


SHAPES = {(70, 64): 0, (33, 100): 0, (42, 66): 1, (40, 61): 2, (5, 8): None, (66, 6): None, (66, 3): None}


def test_edges() -> None:
    """Lines of whole runs, of half ones and of others; blocks that are not full; runs that begin before the first."""
    rng = np.random.default_rng(1)
    stored, broadcast = accelerate(relax), accelerate(scaled)
    with options(devices="emulated", strict=True):
        for shape, number in SHAPES.items():
            u = rng.random(shape).astype(np.float32)
            v, w = np.zeros_like(u), np.zeros_like(u)
            stored(v, u)
            relax(w, u)
            assert np.array_equal(v, w)
            given = u, u[0].copy(), u[:, 0].copy()
            assert np.array_equal(broadcast(*given), scaled(*given))
            if number is not None:  # others may be compiled for their extents
                assert kernel(broadcast, *given) == number


def test_results_without_edges() -> None:
    """Of float64 lines of inputs and results are whole runs, of float32 half ones."""
    rng = np.random.default_rng(3)
    for dtype in ("f4", "f8"):
        function = accelerate(mean)
        with options(devices="emulated", strict=True):
            for shape in ((37, 64), (33, 67)):
                u = rng.random(shape).astype(dtype)
                assert np.array_equal(function(u), mean(u))
                assert kernel(function, u) == (dtype == "f4") + shape[1] % 2


def test_more_axes_and_small_dtypes() -> None:
    rng = np.random.default_rng(2)
    planes, broadcast = accelerate(of_planes), accelerate(scaled)
    with options(devices="emulated", strict=True):
        for shape in ((4, 5, 12), (3, 7, 10), (3, 2, 9)):
            u, v = rng.random((2, *shape)).astype("f4")
            assert np.array_equal(planes(u, v), of_planes(u, v))
            assert np.array_equal(planes(u, u), of_planes(u, u))
        for dtype, shape in (("i1", (9, 48)), ("i1", (9, 40)), ("f2", (9, 40)), ("c8", (9, 40)), ("c16", (9, 7))):
            a = rng.integers(-9, 9, shape).astype(dtype)
            function, plain = (accelerate(np.add), np.add) if dtype[0] == "c" else (broadcast, scaled)
            given = (a, a[0].copy()) if dtype[0] == "c" else (a, a[0].copy(), a[:, 0].copy())
            assert np.array_equal(function(*given), plain(*given))


def test_few_points_are_left_to_small_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    u = np.ones((64, 64), np.float32)
    given = u, u[0].copy(), u[:, 0].copy()
    monkeypatch.setattr(vector_tiles, "LEAST_BLOCKS", 2)
    function = accelerate(scaled)
    with options(devices="emulated", strict=True):
        function(*given)
        assert kernel(function, *given) == 2


def test_memory_is_asked_for_seldom() -> None:
    """For 4 x 4 points four loads and four stores, the run of the row, and a number of the column for each line."""
    u = np.random.default_rng(0).random((128, 256)).astype(np.float32)
    counters, result = profile(scaled, u, u[0].copy(), u[:, 0].copy())
    assert np.array_equal(result, scaled(u, u[0], u[:, 0]))
    assert counters.warp_accesses <= u.size / 16 / 32 * (4 + 4 + 1 + 4)
    assert counters.sectors * 32 <= 2.3 * u.nbytes


@pytest.mark.skipif(PTXAS is None or NVDISASM is None, reason="ptxas and nvdisasm are not installed")
def test_machine_code(tmp_path: Path) -> None:
    """Loads and stores of 16 bytes for each line, no spills."""
    u = np.ones((64, 64), np.float32)
    code, resources = assembled(accelerate(relax).ptx(u, u.copy(), target="sm_90"), "sm_90", tmp_path)
    assert all(spilled == 0 and registers <= 64 for spilled, registers in resources.values())
    (names,) = (names for name, names in instructions(code).items() if name.endswith("_map_0"))
    count = Counter(names)
    assert count["STG.E.128"] == 4 and count["LDG.E.128.CONSTANT"] == 6
