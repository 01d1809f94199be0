"""Kernels that need too many registers run apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices import occupancy_limit
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from tests.helpers import fake_cuda


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
    plan = calls.device_plan_of(function._dispatcher.compiled_for_normal(args))
    return plan, occupancy_limit.plan_for(plan, open_devices("cuda:0")[0])


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
    assert next(iter(first.resources.values())) == occupancy_limit.Resources(255, 0, 16, 0.125)
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


def test_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 65536 registers 168 for each of 256 threads are taken once, for each of 128 threads three times."""
    registers(monkeypatch, 168, 168)
    function = accelerate(lambda x: x * 2)
    x = np.arange(3000.0)
    for _ in range(2):
        assert np.array_equal(function(x), x * 2)
    plan, then = plans(function, x)
    assert then is plan and list(plan.parts.values()) == [2]
    assert plan.resources[0].occupancy == 3 * 128 / 2048
    assert ": 12 x 128 threads; 168 registers, 19% of the threads fit" in str(function.explain(x))
    text = plan.ptx("sm_80", 0, plan.form(open_devices("cuda:0")[0], 0, 6, True, [1] * 9))
    assert ".maxntid 128" in text


def looping(x: Any, n: int) -> Any:
    out = np.empty_like(x)
    for i in range(len(x)):
        total = x[i]
        for _ in range(n):
            total = total * 0.5 + x[i]
        out[i] = total
    return out


@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: x[::-1] + 1, (np.arange(1000.0)[::3],)),
        (lambda x: x[1:, :-1] * 2 + x[:-1, 1:], (np.arange(7000.0).reshape(70, 100),)),
        (lambda x, i: x[i] * 2, (np.arange(500.0), np.arange(-500, 500))),
        (lambda x, i: x[i] * 2, (np.arange(500.0), np.arange(-510, 510))),
        (looping, (np.arange(300.0), 3)),
        (lambda i: np.bincount(i, minlength=5000), (np.arange(3000) // 2,)),
        (lambda x: x.sum(axis=1), (np.arange(6000.0).reshape(1000, 6),)),
    ],
    ids=["line", "plane", "gather", "fails", "loops", "scatter", "rows"],
)
def test_blocks_in_parts(parts: int, function: Any, args: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels that are divisible, in smaller blocks: the same results, the same first failure."""
    choose, divided = DevicePlan.form, []

    def in_parts(self: DevicePlan, device: Any, number: int, *given: Any) -> Any:
        kernel = self.kernels[number]
        if not kernel.divisible or kernel.threads < 2 * parts:
            return choose(self, device, number, *given)
        divided.append(number)
        return choose(self, device, number, *given)._replace(parts=parts)

    monkeypatch.setattr(DevicePlan, "form", in_parts)
    with options(devices="emulated"):
        try:
            wanted = function(*args)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                accelerate(function)(*args)
        else:
            assert np.array_equal(accelerate(function)(*args), wanted)
    assert divided


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
