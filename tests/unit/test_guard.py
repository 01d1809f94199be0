"""Kernels that need too many registers run apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.hybrid import calls, guard
from parakeet_py.hybrid.devices import open_devices
from tests.unit import fake_cuda


@pytest.fixture(autouse=True)
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_cuda.Context]:
    with fake_cuda.installed() as found, options(devices="cuda:0"):
        yield found


def nearest(x: Any, c: Any) -> Any:
    return np.argmin(((x[:, None, :] - c[None]) ** 2).sum(axis=2), axis=1)


def arguments() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    return rng.random((40, 3)), rng.random((4, 3))


def plans(function: Any, *args: Any) -> tuple[Any, Any]:
    """The plan made first, and the one that runs."""
    plan = calls.plan_of(function._dispatcher.compiled_for_normal(args))
    return plan, guard.plan_for(plan, open_devices("cuda:0")[0])


def registers(monkeypatch: pytest.MonkeyPatch, of_fused: int, of_others: int) -> None:
    seen: list[str] = []

    def count(name: str) -> int:
        seen.append(name)
        return of_fused if len(seen) == 1 else of_others

    monkeypatch.setattr(fake_cuda.Kernel, "registers", staticmethod(count))


def test_starved_kernels_run_apart(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    registers(monkeypatch, 255, 40)
    function = accelerate(nearest)
    args = arguments()
    with caplog.at_level(logging.INFO, "parakeet_py"):
        assert np.array_equal(function(*args), nearest(*args))
    first, then = plans(function, *args)
    assert then is not first and len(then.kernels) > len(first.kernels)
    assert next(iter(first.resources.values())) == guard.Resources(255, 0, 16, 0.125)
    assert "takes 255 registers, 12% of the threads fit; its operators run apart on cuda:0" in caplog.text
    assert np.array_equal(function(*args), nearest(*args))
    assert then.last_run is not None and sum(times for _, times in then.last_run.launches) > 1


@pytest.mark.parametrize(("of_fused", "of_others"), [(64, 32), (255, 255), (128, 32)])
def test_fused_kernels_stay(monkeypatch: pytest.MonkeyPatch, of_fused: int, of_others: int) -> None:
    """They fit, or others would not fit better; a quarter is enough."""
    registers(monkeypatch, of_fused, of_others)
    function = accelerate(nearest)
    args = arguments()
    for _ in range(2):
        assert np.array_equal(function(*args), nearest(*args))
    first, then = plans(function, *args)
    assert then is first


def test_nothing_to_take_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    registers(monkeypatch, 255, 16)
    function = accelerate(lambda x: x * 2)
    assert function(np.ones(5)).sum() == 10
    first, then = plans(function, np.ones(5))
    assert then is first


def test_emulated_devices_have_no_registers() -> None:
    function = accelerate(nearest)
    with options(devices="emulated"):
        assert np.array_equal(function(*arguments()), nearest(*arguments()))
