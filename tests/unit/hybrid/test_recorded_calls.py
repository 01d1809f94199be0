"""Calls that are done again from a schedule give what the long way gives, and are not taken where that differs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.call.devices import recorded_calls
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.recording import Schedule
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.device_loss import forget_losses
from parakeet_py.hybrid.plan.part_cost import Rates, Speed
from parakeet_py.hybrid.residency.device_array import DeviceArray

PLACES = ("emulated", "emulated*2", "emulated*3")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recorded_calls, "AFTER", 1)
    monkeypatch.setattr(Rates, "cost", lambda *_: None)  # measured costs would move the cuts between devices
    forget_losses()  # of another test: nothing is recorded while a device is left out
    with options(check=False):  # asynchronous devices wait for each kernel where all is checked
        yield


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the calls that are done from a schedule."""
    found = [0]
    made = Schedule.__init__

    def counting(self: Any, *given: Any) -> None:
        made(self, *given)
        run = self.run

        def counted(*more: Any) -> Any:
            found[0] += 1
            return run(*more)

        self.run = counted

    monkeypatch.setattr(Schedule, "__init__", counting)
    return found


def maps(a: Any, b: Any) -> Any:
    return a * 2 + b


def several(a: Any, b: Any) -> Any:
    return {"sum": a + b, "same": a, "tail": (b[1:], np.sqrt(a * a))}


def in_place(a: Any, b: Any) -> Any:
    a[1:-1] = (b[:-2] + b[2:]) * 0.5
    b[1:-1] = (a[:-2] + a[2:]) * 0.5
    return a


def loops(a: Any, b: Any) -> None:
    for _ in range(5):
        a[1:] = b[:-1] * 0.5
        b[:] = a + 1


def temporaries(a: Any, b: Any) -> Any:
    c = np.cumsum(a)
    return np.cumsum(c * b)


def columns(a: Any, b: Any) -> Any:
    return (a.reshape(-1, 4) + b.reshape(-1, 4)).T


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "function", [maps, several, in_place, loops, temporaries, columns], ids=lambda function: function.__name__
)
def test_again(function: Any, place: str, runs: list[int]) -> None:
    here = [np.arange(400.0), np.random.default_rng(1).random(400)]
    with options(devices=place):
        there = [asdevice(one) for one in here]
        work = accelerate(function)
        for step in range(16):
            found, expected = work(*there), function(*here)
            if step % 6 == 2:
                assert same(found, expected)
                for one, other in zip(there, here, strict=True):
                    assert np.array_equal(np.asarray(one), other)
        assert found is there[0] or function is not in_place
    on_teams = function not in (temporaries,)  # whose parts ask for totals
    assert runs[0] >= 2 or not (place == "emulated" or on_teams)


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], one) for key, one in expected.items())
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if expected is None:
        return found is None
    return isinstance(found, DeviceArray) and np.allclose(np.asarray(found), expected, rtol=1e-14, atol=0)


SCALE = 2.0


def with_global(a: Any, s: Any, n: Any) -> Any:
    return a * SCALE * s + n


def test_numbers_and_globals(runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats that only kernels see may differ; ints, types and globals are part of what a call is."""
    here = np.arange(50.0)
    work = accelerate(with_global)
    with options(devices="emulated"):
        there = asdevice(here)
        for s, n in [(1.5, 3), (1.5, 3), (2.5, 3), (-0.0, 3), (np.nan, 3), (2.5, 4), (np.float32(0.5), 3), (2, 3)]:
            for _ in range(2):
                assert np.array_equal(np.asarray(work(there, s, n)), with_global(here, s, n), equal_nan=True)
        assert runs[0] >= 6
        for value in (3.0, 3, np.float32(0.25), 5.0):
            monkeypatch.setitem(globals(), "SCALE", value)
            for _ in range(3):
                assert np.array_equal(np.asarray(work(there, 1.5, 3)), with_global(here, 1.5, 3))


def test_what_is_shared(runs: list[int]) -> None:
    """The same array twice, views of one, and arrays apart are different calls."""
    work = accelerate(in_place)
    with options(devices="emulated"):
        for make in (lambda a: (a, a), lambda a: (a, a[:]), lambda a: (a, a.copy())):
            here = make(np.arange(30.0))
            a = asdevice(here[0])
            b = a if here[1] is here[0] else a._view(True) if here[1].base is here[0] else asdevice(here[1])
            for _ in range(5):
                assert work(a, b) is a
                in_place(*here)
                assert np.array_equal(np.asarray(a), here[0]) and np.array_equal(np.asarray(b), here[1])
    assert runs[0] >= 6


def reductions(a: Any) -> Any:
    return a.sum(), (a > 3).any(), int(a.argmax()), a.astype(np.float32).min()


def picked(a: Any, i: Any) -> Any:
    return a[i] * 2


def test_elements_and_exceptions(runs: list[int]) -> None:
    """Elements that are given, and checks: they wait, and raise what Python raises, every time."""
    here, index = np.arange(20.0), np.array([3, 19, -1, 7])
    total, pick = accelerate(reductions), accelerate(picked)
    with options(devices="emulated"):
        there, where = asdevice(here), asdevice(index)
        for _ in range(4):
            found, expected = total(there), reductions(here)
            assert found == expected and [*map(type, found)] == [*map(type, expected)]
            assert np.array_equal(np.asarray(pick(there, where)), picked(here, index))
        assert runs[0] >= 4
        wrong = asdevice(np.array([3, 19, 25, 7]))
        for _ in range(3):
            with pytest.raises(IndexError, match="index 25 is out of bounds for axis 0 with size 20"):
                pick(there, wrong)
            assert np.array_equal(np.asarray(pick(there, where)), picked(here, index))


def test_settings_and_states(runs: list[int]) -> None:
    """Other settings, other devices, NumPy's error state and Python's tools are not what was recorded."""
    here = np.arange(6.0) - 1
    work = accelerate(lambda a: a / 0.0)
    with options(devices="emulated"), np.errstate(all="ignore"):
        there = asdevice(here)
        for _ in range(4):
            work(there)
        before = runs[0]
        assert before >= 2
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            work(there)
        with options(devices="emulated:1"):
            assert np.array_equal(np.asarray(work(there)), here / 0.0, equal_nan=True)
        assert runs[0] == before
        assert np.array_equal(np.asarray(work(there)), here / 0.0, equal_nan=True)


def test_memory_is_given_back() -> None:
    device: Any = open_devices("emulated")[0]
    gc.collect()
    before = device._device.free_bytes
    work = accelerate(temporaries)
    there = [asdevice(np.ones(300), device) for _ in range(2)]
    for _ in range(6):
        work(*there)
    del there, work
    gc.collect()
    assert device._device.free_bytes == before


def simulated(name: str, memory: int = 1 << 20) -> SimulatedDevice:
    return SimulatedDevice(name, Speed(1e9, 1e9, 1e-6), memory)


@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_device_is_lost(stores: bool, count: int, runs: list[int]) -> None:
    """In the midst of a schedule: the exception says so, or others do the work; nothing hangs."""
    devices = [simulated(f"emulated:{number}") for number in (7, 8)[:count]]
    team = Team(tuple(devices), cpu=False)
    work = accelerate(loops if stores else maps)
    there = [asdevice(np.ones(100), team) for _ in range(2)]
    try:
        for _ in range(7):
            work(*there)
        assert runs[0] >= 2
        devices[-1].fails_after = 0
        if count == 2 and not stores:  # the host has what the lost device had
            with pytest.warns(DeviceWarning, match="emulated:8 has failed, its work is done by emulated:7"):
                assert np.array_equal(np.asarray(work(*there)), np.full(100, 3.0))
            return
        with pytest.raises(DeviceError, match="has failed, as it was told"):
            work(*there)
            np.asarray(there[0])
    finally:
        forget_losses()


def test_stores_behind_checks() -> None:
    """On a team, too, a call that fails before it has stored anything is done from a schedule."""

    def gathered(x: Any, y: Any, i: Any) -> None:
        y[:] = x[i] * 2

    work = accelerate(gathered)
    here = [np.random.default_rng(1).random(64), np.zeros(64), np.arange(64)[::-1].copy()]
    wrong = here[2].copy()
    wrong[40] = 100
    with options(devices="emulated*2"):
        there, bad = [asdevice(one) for one in here], asdevice(wrong)
        for step in range(10):
            there[0] += 1
            here[0] += 1
            if step in (4, 9):
                with pytest.raises(IndexError, match="index 100 is out of bounds for axis 0 with size 64"):
                    work(there[0], there[1], bad)
            else:
                work(*there)
                gathered(*here)
            assert np.array_equal(np.asarray(there[1]), here[1])
    assert work._dispatcher.recorded._found


def test_others_are_recorded_while_a_device_is_left_out(runs: list[int]) -> None:
    """Schedules are of the devices of their calls: those of the lost one are neither made nor done until it is back."""
    gone, other = simulated("emulated:11"), simulated("emulated:12")
    team = Team((other, gone), cpu=False)
    here = [np.arange(100.0), np.ones(100)]
    alone, together = accelerate(maps), accelerate(maps)
    apart, shared = [asdevice(one, other) for one in here], [asdevice(one, team) for one in here]
    gone.fails_after = 0
    with pytest.warns(DeviceWarning, match="emulated:11 has failed"):
        together(*shared)
    gone.fails_after = None
    for _ in range(4):
        assert np.array_equal(np.asarray(alone(*apart)), maps(*here))
    assert runs[0] >= 2
    before = runs[0]
    for _ in range(7):
        assert np.array_equal(np.asarray(together(*shared)), maps(*here))
    assert runs[0] == before
    forget_losses()
    shared = [asdevice(one, team) for one in here]
    for _ in range(7):
        assert np.array_equal(np.asarray(together(*shared)), maps(*here))
    assert runs[0] > before


def test_no_memory_in_a_schedule(runs: list[int]) -> None:
    """Where results find no place, schedules give theirs back and the call goes the long way."""
    device = simulated("emulated:6", 40_000)
    work = accelerate(temporaries)
    here = [np.arange(500.0), np.ones(500)]
    there = [asdevice(one, device) for one in here]
    for _ in range(4):
        work(*there)
    assert runs[0] >= 1
    kept: list[Any] = []
    with pytest.raises(MemoryError):
        while True:
            kept.append(work(*there))
    assert all(np.allclose(np.asarray(one), temporaries(*here)) for one in kept)
