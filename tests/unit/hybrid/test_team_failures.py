"""Teams whose devices fail, are interrupted or have too little memory."""

from __future__ import annotations

import gc
import itertools
import threading
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute import device_loss, parts
from parakeet_py.hybrid.plan.part_cost import Speed
from parakeet_py.hybrid.residency.blocks import Memories, of_host
from tests.helpers.team_programs import BALANCED, DEVICES, UNBALANCED, Failing, Quick, escape, on, relax


@pytest.fixture(autouse=True)
def _all_devices_there() -> Iterator[None]:
    device_loss.forget_losses()
    yield
    device_loss.forget_losses()


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("after", range(0, 13, 2))
def test_a_device_fails_in_the_middle(after: int, cpu: bool) -> None:
    start = np.random.default_rng(1).random((30, 6))
    mine, theirs = start.copy(), start.copy()
    relax._dispatcher.run_python((mine, theirs, 2))
    x, y = start.copy(), start.copy()
    bad = Failing("emulated:40", after)
    team = Team((DEVICES[0], bad), cpu, 0.7 if cpu else 1.0)
    with pytest.warns(DeviceWarning, match="emulated:40 has failed, its work is done by .*emulated:20: .*off the bus"):
        _, run = on(team, relax, x, y, 2)
    assert np.array_equal(x, mine) and np.array_equal(y, theirs)
    assert run.members == ("cpu", "emulated:20")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, y = start.copy(), start.copy()
        on(team, relax, x, y, 2)  # it is not asked again at once
    assert np.array_equal(x, mine)
    device_loss.forget_losses()
    bad.left = 1000
    _, run = on(team, relax, x, y, 1)
    assert len(run.members) == 3


def test_no_memory_is_no_failure() -> None:
    small = EmulatedDevice("emulated:41", memory=1 << 7)
    x = np.random.default_rng(1).random((100, 10))
    y = x.copy()
    for _ in range(2):  # it is asked each time
        with pytest.warns(DeviceWarning, match="emulated:41 has failed, its work is done by the CPU: .* no memory for"):
            on(Team((small,), False), relax, x, y, 1)
    mine, theirs = x.copy(), y.copy()
    relax._dispatcher.run_python((mine, theirs, 1))
    with pytest.warns(DeviceWarning, match="emulated:41 has failed, its work is done by the CPU"):
        on(Team((small,), True, 0.7), relax, x, y, 1)  # the CPU does all of it, whatever the split was
    assert np.array_equal(x, mine) and np.array_equal(y, theirs)


@pytest.mark.parametrize("cpu", [False, True])
def test_data_that_exceed_a_devices_memory(cpu: bool) -> None:
    @accelerate
    def smooth(x: Any, y: Any) -> Any:
        z = np.sqrt(x[:-2] + x[1:-1] + x[2:])
        y[::-1] = y + 1.0
        return z + 1.0, np.cumsum(z.reshape(-1, 2), axis=1)

    x = np.random.default_rng(1).random(16386)
    y = np.arange(2000.0)
    wanted, other = (y.copy(), y.copy())
    expected = smooth.__wrapped__(x, wanted)
    device = EmulatedDevice("emulated:44", memory=1 << 13)  # a sixteenth of x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results, run = on(Team((device,), cpu, 0.75 if cpu else 1.0), smooth, x, other)
    assert np.array_equal(other, wanted)
    for result, right in zip(results, expected, strict=True):
        assert np.array_equal(result, right)
    assert run.moved[0, 1] >= x.nbytes * (0.7 if cpu else 1.0)
    c = np.linspace(-2.0, 0.6, 3000) + 0.05j
    both = (device, SimulatedDevice("emulated:46", Speed(1e6, 1e9, 1e-5), 1 << 24))
    assert np.array_equal(on(Team(both, False), escape, c, 20)[0], escape(c, 20))
    pick = accelerate(lambda x, i: x[i] * 2.0)
    places = np.arange(3000) % 10
    places[[1700, 2500]] = 20, 30
    with pytest.raises(IndexError, match="index 20 is out of bounds"):
        on(Team((device,), cpu, 0.75 if cpu else 1.0), pick, np.arange(10.0), places)
    assert run.members == ("cpu", "emulated:44")
    del results
    gc.collect()
    assert device._device.free_bytes == 1 << 13


def test_copies_that_others_have_go_first() -> None:
    device = EmulatedDevice("emulated:45", memory=1 << 12)
    memories = Memories([device])
    clean, dirty, third = (of_host(memories, np.arange(150.0) + number) for number in range(3))
    for array in (clean, dirty):
        array.root.bring(1, array.spans())
    dirty.root.wrote(1, dirty.spans())
    device.copy_in(dirty.on_device(1).address, np.full(150, 7.0).view(np.uint8))
    assert memories.evict(1, {third.root}) and 1 not in clean.root.copies and 1 in dirty.root.copies
    assert memories.evict(1, {third.root}) and memories.moved[1, 0] == 1200 and dirty.host[0] == 7
    assert not memories.evict(1, {third.root}) and device._device.free_bytes == 1 << 12


def test_what_python_has_done_is_not_done_again() -> None:
    calls = []

    def note(x: Any) -> float:
        calls.append(1)
        return float(x[0])

    @accelerate
    def tell(x: Any) -> Any:
        y = x * 2.0
        return (y + note(y)).cumsum()

    x = np.ones(20)
    tell(x)
    with options(devices="cpu,emulated"):
        tell(x)
    del calls[:]
    bad = Failing("emulated:42", 5)
    with pytest.raises(DeviceError, match="off the bus"):
        on(Team((bad,), True, 0.5), tell, x)
    assert len(calls) == 1


@pytest.mark.parametrize("cpu", [False, True])
def test_members_claim_at_the_same_time(cpu: bool) -> None:
    team = Team((Quick("emulated:47", 1 << 22), Quick("emulated:48", 1 << 22)), cpu)
    for function, args in UNBALANCED.values():
        result, run = on(team, function, *args)
        assert np.array_equal(result, function(*args))
        bounds = [(lo, hi) for _, lo, hi in run.regions[-1].ranges]  # which device is quick enough to get one varies
        assert bounds[0][0] == 0 and bounds[-1][1] == len(result)
        assert all(one[1] == other[0] for one, other in itertools.pairwise(bounds))
    assert not [one for one in threading.enumerate() if one.name.startswith("parakeet_py-")]


@pytest.mark.parametrize(("name", "split"), [("escape times", None), ("work", 1.0), ("work", 0.7)])
@pytest.mark.parametrize("error", [DeviceError, KeyboardInterrupt])
def test_whoever_is_interrupted_leaves_nothing(name: str, split: float | None, error: type[BaseException]) -> None:
    """A device is lost, or the user interrupts, while others are at work; with threads even for little work."""
    good, bad = Quick("emulated:49", 1 << 22), Quick("emulated:50", 1 << 22)
    launch = bad.launch

    def fail(*args: Any) -> None:
        bad.launch = launch  # type: ignore[method-assign]
        raise error("off the bus")

    function, args = {**UNBALANCED, "work": BALANCED}[name]
    if split is None:  # what has been measured on a busy machine might leave nothing to the second
        function = accelerate(function.__wrapped__)
    team = Team((good, bad), split == 0.7, split)
    with mock.patch.object(parts, "MUCH", -1):
        bad.launch = fail  # type: ignore[method-assign]
        if error is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                on(team, function, *args)
        else:
            with pytest.warns(DeviceWarning, match="emulated:50 has failed"):
                assert np.array_equal(on(team, function, *args)[0], function(*args))
            device_loss.forget_losses()
        assert np.array_equal(on(team, function, *args)[0], function(*args))
    assert not [one for one in threading.enumerate() if one.name.startswith("parakeet_py-")]
    gc.collect()
    assert good._device.free_bytes == bad._device.free_bytes == 1 << 22
