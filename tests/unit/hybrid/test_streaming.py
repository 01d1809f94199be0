"""Arrays that exceed the memory of a device: pieces follow each other on link and device."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, generate, options
from parakeet_py.call.devices.calls import team_plan_of
from parakeet_py.hybrid.devices import recording
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.plan.part_cost import Speed
from tests.helpers.team_programs import _names, clocked, on


@pytest.mark.parametrize("rate", [1e6, 1e7, 3e8])
def test_data_stream_at_the_speed_of_link_and_device(rate: float) -> None:
    """Of 16 times the device's memory: bound by the device, by both, by the link."""

    @accelerate
    def smooth(x: Any) -> Any:
        return np.sqrt(x[:-2] + x[1:-1] + x[2:])

    x = np.random.default_rng(1).random(16386)
    device = SimulatedDevice("emulated:51", Speed(rate, 1e7, 1e-6), x.nbytes // 16)
    with options(check=False):  # with it, every kernel is waited for
        result, (taken,), run = clocked((device,), smooth, x)
    assert np.array_equal(result, smooth.__wrapped__(x))
    compute = device._device.counters.instructions / rate
    assert taken <= 1.3 * max(compute, run.moved[0, 1] / 1e7, run.moved[1, 0] / 1e7)
    assert run.moved[0, 1] <= 1.05 * x.nbytes
    device = SimulatedDevice("emulated:51", Speed(rate, 1e7, 1e-6), x.nbytes // 16)
    with options(check=False):
        result, (taken,), _ = clocked((device,), accelerate(lambda x: x.sum()), x)
    assert np.allclose(result, x.sum())  # no thread waits for a partial sum
    assert taken <= 1.15 * max(device._device.counters.instructions / rate, x.nbytes / 1e7)


def halves(m: Any) -> None:
    m[:, ::2] = m[:, 1::2] * 2.0


COLUMNS = {
    "roots": lambda m: np.sqrt(m) + 1.0,
    "lengths": lambda m: np.sqrt(m[0] * m[0] + m[1] * m[1] + m[2]),
    "turned": lambda m: m.T * 2.0,
    "sums": lambda m: (m.sum(axis=0), m.sum(axis=1)),
    "differences": lambda m: m[:, 1:] - m[:, :-1],
    "in place": halves,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_streamed(name: str) -> None:
    """Of three rows that are each more than the device's memory."""

    function = accelerate(COLUMNS[name])
    for order in "CF":
        m = np.random.default_rng(1).random((3, 4096)).copy(order)
        wanted = m.copy(order)
        right = COLUMNS[name](wanted)
        device = SimulatedDevice(f"emulated:{next(_names)}", Speed(1e10, 1e7, 1e-9), m.nbytes // 8)
        with options(check=False), warnings.catch_warnings():
            warnings.simplefilter("error")
            result, run = on(Team((device,), False), function, m)
        assert np.array_equal(m, wanted)
        for got, one in zip(*(one if name == "sums" else (one,) for one in (result, right)), strict=True):
            assert one is got is None or np.allclose(got, one)
        bound = max(run.moved[0, 1], run.moved.get((1, 0), 0)) / 1e7
        assert device.clock <= (1.3 if name in ("roots", "turned", "differences") else 2.6) * bound


STREAMED = {
    "sum": lambda x: x.sum(),
    "largest": lambda x: (x.argmax(), x.reshape(-1, 4).max(axis=0)),
    "cumsum": lambda x: np.cumsum(x),
    "lines": lambda x: np.cumsum(x.reshape(-1, 4), axis=0),
    "selected": lambda x: x[x > 0.5],
    "histogram": lambda x: np.bincount((x * 9.0).astype(np.int64), minlength=10),
}


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("cpu", [False, True])
def test_all_joins_are_streamed(name: str, cpu: bool) -> None:
    function = accelerate(STREAMED[name])
    x = np.random.default_rng(1).random(16384)
    device = SimulatedDevice(f"emulated:{next(_names)}", Speed(1e10, 1e7, 1e-9), x.nbytes // 5)
    with options(check=False), warnings.catch_warnings():
        warnings.simplefilter("error")
        result, run = on(Team((device,), cpu, 0.75 if cpu else 1.0), function, x)
    for got, right in zip(*(one if name == "largest" else (one,) for one in (result, STREAMED[name](x))), strict=True):
        assert np.allclose(got, right)
    assert run.moved[0, 1] >= x.nbytes * (0.7 if cpu else 1.0)
    regions = 2 if name in ("largest", "histogram") else 1  # each is streamed by itself
    assert device.clock <= 1.3 * x.nbytes / 1e7 * regions
    assert run.moved[0, 1] <= 1.2 * x.nbytes * regions * (0.75 if cpu else 1.0)  # scans too go there and back once


@pytest.mark.parametrize(("function", "times"), [(np.cumsum, 8), (lambda x: x[x > 0.5], 16)])
def test_what_the_host_is_asked_for_does_not_keep_the_link_waiting(function: Any, times: int) -> None:
    """Scans take totals in, selections ask for counts; of several times the device's memory."""
    x = np.random.default_rng(1).random(8192)
    device = SimulatedDevice(f"emulated:{next(_names)}", Speed(1e10, 1e7, 1e-7), x.nbytes // times)
    with options(check=False):
        result, (taken,), run = clocked((device,), accelerate(lambda x: function(x)), x)
    right = function(x)
    assert np.allclose(result, right)
    assert taken <= 1.3 * max(device._device.counters.instructions / 1e10, x.nbytes / 1e7)
    assert run.moved[0, 1] <= 1.1 * x.nbytes and run.moved[1, 0] <= 1.1 * right.nbytes


def test_what_pieces_make_may_not_fit() -> None:
    """How much a piece selects is known when it has been computed; then there are fewer under way, or smaller ones."""
    function = accelerate(lambda x, n: generate(len(x), lambda k: x[k] * 2.0)[x >= n])
    x = np.arange(256.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        device = EmulatedDevice(f"emulated:{next(_names)}", memory=800)
        assert np.array_equal(on(Team((device,), False), function, x, 100.0)[0], x[100:] * 2.0)
        assert device._device.free_bytes == 800


def test_pieces_that_need_the_same_at_both_ends() -> None:
    mirrored = accelerate(lambda x: generate(len(x), lambda k: x[np.minimum(k, len(x) - 1 - k)] * 2.0))
    x = np.random.default_rng(1).random(3000)
    device = EmulatedDevice("emulated:53", memory=1 << 14)
    assert np.array_equal(on(Team((device,), False), mirrored, x)[0], mirrored.__wrapped__(x))


def test_what_all_pieces_need_is_brought_once() -> None:
    @accelerate
    def forces(x: Any, bodies: Any) -> Any:
        def force(k: Any) -> Any:
            total = 0.0
            for other in bodies:
                total += other - x[k]
            return total

        return generate(len(x), force)

    x, bodies = np.random.default_rng(1).random(4000), np.arange(20.0)
    device = EmulatedDevice("emulated:52", memory=1 << 12)
    result, run = on(Team((device,), False), forces, x, bodies)
    assert np.allclose(result, forces.__wrapped__(x, bodies))
    assert run.moved == {(0, 1): x.nbytes + bodies.nbytes, (1, 0): x.nbytes}


def test_members_hold_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of 3.5 times one device's memory on four devices: each has its ranges and halos, and only halos move, also
    when a schedule does it."""
    runs: list[Any] = []
    run = recording._InPython.__call__
    monkeypatch.setattr(recording._InPython, "__call__", lambda self, *given: runs.append(self) or run(self, *given))
    memory, row = 1 << 15, 16 * 8
    devices = tuple(SimulatedDevice(f"emulated:{next(_names)}", Speed(1e6, 1e9, 1e-6), memory) for _ in range(4))

    @accelerate
    def relax(x: Any, y: Any) -> None:
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5

    here = np.random.default_rng(1).random((2, 7 * memory // 4 // row, 16))
    assert here.nbytes == 3.5 * memory
    with options(check=False):
        there = [asdevice(one, Team(devices, cpu=False)) for one in here]
        plan = team_plan_of(relax._dispatcher.compiled_for_normal(tuple(here)))
        for step in range(8):
            relax(*there)
            relax.__wrapped__(*here)
            if step:
                neighbours = {(a, b) for a in range(1, 5) for b in range(1, 5) if abs(a - b) == 1}
                assert plan.last_run.moved == dict.fromkeys(neighbours, 2 * row)
        assert len(runs) >= 2
        assert all(np.array_equal(np.asarray(one), other) for one, other in zip(there, here, strict=True))
