"""Calls on devices that do nothing before a thread waits for it: loops whose end an element decides, recorded calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.plan.part_cost import Rates
from parakeet_py.hybrid.residency.device_array import DeviceArray
from tests.late_devices import LateDevice, late_devices

N = 60


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing waits for each kernel; the third call of a kind is recorded, and teams cut as they did."""
    monkeypatch.setattr(recorded_calls, "AFTER", 1)
    monkeypatch.setattr(Rates, "cost", lambda *_: None)
    with late_devices(), options(check=False):
        yield


def swapped(x: Any, y: Any, i: Any) -> Any:
    """Two arrays that take turns."""
    rounds = 0
    while True:
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        change = np.abs(x[1:-1] - y[1:-1]).max()
        x, y = y, x
        rounds += 1
        if change < 1e-3 or rounds == 20:
            return x + rounds, change


def made_anew(x: Any, y: Any, i: Any) -> Any:
    """Arrays that each round makes, one of which the next one reads, and a view of another."""
    for _ in range(20):
        inner = (x[:-2] + x[2:]) * 0.5
        after = np.concatenate((x[:1], inner, x[-1:]))
        change = np.abs(after - x).max()
        x = after
        if change < 1e-3:
            break
    return x, inner[::2], change


def numbers(x: Any, y: Any, i: Any) -> Any:
    """Numbers that kernels get, zeros of both signs among them."""
    factor, total = -1.0, 0.0
    for _ in range(9):
        total = total + np.abs(x * factor)[3]
        factor = 0.0 if total > 0 else factor * 0.5 if factor else -0.0
        x = np.cumsum(x) * 0.25
        if total > 1e9:
            break
    return x, total, 1.0 / factor if factor else factor


def nested(x: Any, y: Any, i: Any) -> Any:
    """Rounds within rounds, which change what others see."""
    count = 0
    for k in range(4):
        while x[k] > 0.1:
            x *= 0.7
            y[k:] += x[k:]
            count += 1
        x[:] = y * 0.25
        if y[0] > 50:
            break
    return count, x[::-1]


def picked(x: Any, y: Any, i: Any) -> Any:
    """A chain of indices, one of which may be none: what has been stored before that is seen."""
    places = np.arange(3)
    for _ in range(30):
        y[places] += 1
        places = i[places]
        if x[places].sum() > 1e9:
            break
    return places


def given(seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [rng.random(N), rng.random(N), np.roll(np.arange(N), -1)]


def ended(function: Any, args: list[Any]) -> Any:
    """What a call gives, or the text of what it raises, on the host."""
    try:
        found = function(*args)
    except IndexError as error:
        return str(error)
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def same(function: Any, mine: list[Any], here: list[Any]) -> None:
    found, expected = ended(function, mine), ended(function.__wrapped__, here)
    assert type(found) is type(expected)
    if isinstance(expected, str):
        assert found == expected
    else:
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-12)
            assert np.array_equal(np.signbit(one), np.signbit(other))
    for one, other in zip(mine, here, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, 1e-12)


@pytest.mark.parametrize("function", [swapped, made_anew, numbers, nested, picked])
def test_loops_that_elements_end(function: Any) -> None:
    work: Any = accelerate(function)
    with options(devices="emulated"):
        for step in range(4):
            here, others = given(step), given(step)
            same(work, [asdevice(one) if step < 3 else one for one in others], here)
        (device,) = open_devices("emulated")
        assert isinstance(device, LateDevice) and device.asked_again >= 4


@pytest.mark.parametrize("function", [swapped, nested])
def test_loops_of_teams(function: Any) -> None:
    work: Any = accelerate(function)
    with options(devices="emulated*2"):
        for step in range(2):
            same(work, [asdevice(one) for one in given(step)], given(step))


@pytest.mark.parametrize("place", ["emulated", "emulated*2"])
def test_checks_that_fail_on_the_way(place: str) -> None:
    """Also behind rounds that have come again, whose launches have done nothing then."""
    work: Any = accelerate(picked)
    with options(devices=place):
        for bad in (None, None, 20, 3, None, 25) if place == "emulated" else (None, 20):
            here, others = given(1), given(1)
            if bad is not None:
                here[2][bad] = others[2][bad] = 1000 + bad
            same(work, [asdevice(one) for one in others], here)


@pytest.mark.parametrize("after", [0, 2, 9, 31])
def test_a_device_that_goes_in_a_round(after: int) -> None:
    work: Any = accelerate(made_anew)
    here = given(1)
    with options(devices="emulated"):
        (device,) = open_devices("emulated")
        there = [asdevice(one) for one in given(1)]
        same(work, there, here)
        assert isinstance(device, LateDevice)
        device.goes_after = after
        with pytest.raises(DeviceError, match=r"emulated:0 has gone.*cannot be used any more"):
            np.asarray(work(*there)[0])
        with pytest.raises(DeviceError, match="cannot be used any more"):
            np.asarray(there[0])
    with options(devices="emulated:1"):
        same(work, given(1), here)


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_member_that_goes_in_a_round(after: int) -> None:
    """The others begin again, from arguments of the host as they were."""
    work: Any = accelerate(nested)
    with options(devices="emulated*2", split=1.0):
        same(work, given(1), given(1))
        gone = open_devices("emulated*2")[1]
        assert isinstance(gone, LateDevice)
        gone.goes_after = after
        with pytest.warns(DeviceWarning, match="emulated:1 has failed"):
            same(work, given(2), given(2))
        same(work, given(3), given(3))


def relaxed(x: Any, y: Any, times: Any) -> None:
    for _ in range(times):
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5


@pytest.mark.parametrize("place", ["emulated", "emulated*2", "emulated*3"])
def test_recorded_calls(place: str) -> None:
    """Nothing waits between them; then a device goes amid the schedule of one."""
    work: Any = accelerate(relaxed)
    here: list[Any] = [*given(1)[:2], 3]
    with options(devices=place):
        there: list[Any] = [*map(asdevice, here[:2]), 3]
        for _ in range(12):
            work(*there)
            relaxed(*here)
        assert work._dispatcher.recorded._found
        for one, other in zip(there, here, strict=True):
            assert np.array_equal(np.asarray(one), other)
        gone = open_devices(place)[-1]
        assert isinstance(gone, LateDevice)
        work(*there)
        gone.goes_after = 4
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeviceWarning)
            with pytest.raises(DeviceError, match="cannot be used any more"):
                for _ in range(3):
                    work(*there)
                np.asarray(there[0])


def test_results_that_wait_for_no_thread() -> None:
    """Calls on results of calls, a result that is given up, numbers: all in the order of the device."""
    work: Any = accelerate(lambda a, factor: np.cumsum(a * factor) + 1)
    here = np.random.default_rng(1).random(500)
    with options(devices="emulated"):
        found: Any = asdevice(here)
        expected: Any = here
        for step in range(30):
            found, expected = work(found, 0.5 + step / 100), work.__wrapped__(expected, 0.5 + step / 100)
            if step % 10 == 9:
                np.testing.assert_allclose(np.asarray(found), expected, 1e-12)
        assert isinstance(found, DeviceArray) and found[3] > 0


def test_memory_that_runs_out() -> None:
    """What rounds and results have used is given up for others, and had again; if all is taken, the call says so."""
    work: Any = accelerate(made_anew)
    with late_devices(memory=1 << 16), options(devices="emulated"):
        same(work, [asdevice(one) for one in given(1)], given(1))
        large = np.arange(5000.0)
        taken = asdevice(large)
        there = [asdevice(one) for one in given(2)]
        same(work, there, given(2))
        kept: list[Any] = []
        with pytest.raises(MemoryError, match="emulated:0 has no memory"):
            while True:
                kept.append(asdevice(given(3)[0]))
        assert np.array_equal(np.asarray(taken), large)
        del kept, taken
        same(work, there, given(2))


def test_pieces_in_lanes() -> None:
    """Data that does not fit is computed in pieces, in several lanes at once, each of which takes in a total."""
    with late_devices(memory=1 << 15), options(devices="emulated"):
        assert np.array_equal(accelerate(np.cumsum)(np.arange(6000)), np.arange(6000).cumsum())


def test_a_late_device_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests show hangs on it: launches are there before anything has run."""
    work: Any = accelerate(relaxed)
    launched = []
    launch = LateDevice.launch

    def counted(self: LateDevice, *given: Any) -> None:
        launched.append(given)
        launch(self, *given)

    monkeypatch.setattr(LateDevice, "launch", counted)
    with options(devices="emulated"):
        there = [*map(asdevice, given(1)[:2]), 3]
        device: Any = open_devices("emulated")[0]
        device.synchronize()
        before = device._device.counters.instructions
        work(*there)
        assert len(launched) >= 6 and device._device.counters.instructions == before
        device.synchronize()
        assert device._device.counters.instructions > before
