"""Rooflines: what is counted of each kernel, what limits it, how it is shown. Nothing here depends on time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.bench import roofline as bench
from parakeet_py.bench.files import write_json
from parakeet_py.bench.programs import PROGRAMS
from parakeet_py.call.explain import roofline, roofs
from parakeet_py.call.explain.roofline import Roofline, TimedKernel
from parakeet_py.call.explain.roofs import FOOTPRINTS, Roofs

LIMITS = Roofs(1, tuple((size, 1e9 / (k + 1)) for k, size in enumerate(FOOTPRINTS)), 4e9, 8e9)


@pytest.fixture(autouse=True)
def known_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (roofline, bench):
        monkeypatch.setattr(module, "roofs", lambda accelerate: LIMITS)
    monkeypatch.setattr(roofline, "_CALLS", 1)
    with options(threads=1, cache=False):
        yield


def smooth(x: Any, y: Any, n: int) -> Any:
    for _ in range(n):
        x[1:-1] = 0.5 * x[:-2] + y
    return x @ x


def triangle(a: Any) -> Any:
    total = 0.0
    for i in range(1, len(a)):
        total += a[i, :i].max()
    return total


def test_runs_points_bytes_and_operations_are_counted() -> None:
    x, y = np.ones(1002), np.ones(1000)
    before = x.copy()
    found = accelerate(smooth).roofline(x, y, 3)
    assert np.array_equal(x, before)  # it was called on copies
    *stores, dot = found.kernels
    assert [one.kind for one in stores] == ["Map"] * len(stores) and dot.kind == "Reduce"
    assert all(one.runs == 3 and one.points == 3000 for one in stores)
    assert sum(one.operations or 0 for one in stores) == 2 * 3000
    assert dot.runs == 1 and dot.points == 1002 and dot.bytes == 8 * 1002
    assert found.name == "smooth" and found.seconds > 0


def test_extents_that_differ_from_turn_to_turn_are_added_up() -> None:
    (kernel,) = accelerate(triangle).roofline(np.arange(64.0).reshape(8, 8)).kernels
    assert kernel.runs == 7 and kernel.points == sum(range(1, 8))
    assert kernel.bytes == 8 * kernel.points


def test_a_product_has_two_operations_for_each_of_its_points() -> None:
    (kernel,) = accelerate(lambda a, b: a @ b).roofline(np.ones((5, 6)), np.ones((6, 7))).kernels
    assert kernel.kind == "Matmul" and kernel.points == 5 * 6 * 7 and kernel.operations == 2 * 5 * 6 * 7
    assert kernel.bytes == 8 * (5 * 6 + 6 * 7 + 5 * 7)


def test_what_is_not_compiled_has_no_kernels() -> None:
    def refused(x: Any) -> Any:
        class Sum:
            value = x + 1

        return Sum.value

    with pytest.raises(UnsupportedError, match="class"), pytest.warns(Warning):
        accelerate(refused).roofline(np.ones(3))


@pytest.mark.parametrize(("footprint", "rate"), [(1, 1e9), (FOOTPRINTS[1], 5e8), (1 << 40, 2.5e8)])
def test_bandwidth_is_that_of_the_smallest_memory_that_is_large_enough(footprint: int, rate: float) -> None:
    assert LIMITS.bandwidth(footprint) == pytest.approx(rate)
    assert 5e8 < LIMITS.bandwidth(FOOTPRINTS[0] * 3) < 1e9


def kernel(seconds: float, operations: int | None = 8000, kind: str = "Map") -> TimedKernel:
    return TimedKernel(kind, 7, 2, 1000, 16_000, operations, seconds, 1.6e-5, "memory")


def test_a_kernel_below_half_of_its_bound_is_slow() -> None:
    assert not kernel(3e-5).slow and kernel(3.5e-5).slow
    assert not kernel(3.5e-5, None, "Reduce").slow  # it has loops of which nothing is known
    assert kernel(3.2e-5).share == pytest.approx(0.5) and kernel(1.0).intensity == 0.5
    assert str(kernel(4e-5)) == (
        "line 7: Map, 2 runs, 40 µs: 16 kB, 400 MB/s; 8 k operations, 200 M/s; 40 % of what memory allows (slow)"
    )
    found = Roofline("f", (kernel(4e-5), kernel(1e-3), kernel(2e-5)), LIMITS, 2e-3)
    assert [one.seconds for one in found.slow] == [1e-3, 4e-5]
    assert str(found).startswith("f: 2 ms, of which kernels 1.06 ms; 1 thread\n")


def test_what_has_been_measured_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofs, "_bandwidth", lambda footprint, function: 1e15 / footprint)
    monkeypatch.setattr(roofs, "_operations", lambda function: 5e9)
    monkeypatch.setattr(roofs, "_products", lambda function: 6e9)
    with options(cache=True, cache_dir=tmp_path, threads=1):
        measured = roofs.roofs(accelerate)
        monkeypatch.setattr(roofs, "measure_roofs", lambda function: pytest.fail("measured again"))
        assert roofs.roofs(accelerate) == measured
    assert measured.operations == 5e9 and measured.products == 6e9


def test_the_benchmark_writes_text_json_and_plots(tmp_path: Path) -> None:
    found = bench.measure([PROGRAMS["relaxation_2d"], PROGRAMS["nbody"]], "XS", 1)
    assert [one.name for one in found] == ["relaxation_2d", "nbody"]
    write_json(tmp_path / "r.json", bench.as_data(found, "XS"))
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["programs"]["nbody"]["kernels"] and data["roofs"]["threads"] == 1
    for name in ("r.html", "r.png"):
        bench.write_plot(tmp_path / name, found)
    page = (tmp_path / "r.html").read_text()
    circles = page.count("<circle")
    assert circles == sum(bool(kernel.operations) for one in found for kernel in one.kernels)
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="a plot is"):
        bench.write_plot(tmp_path / "r.pdf", found)
    assert all(": Map" in line or "Reduce" in line or "Matmul" in line for line in bench.slow_lines(found))
