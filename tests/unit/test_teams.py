"""Calls on teams: who gets what, which bytes move, failures, what explain says."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, generate, options
from parakeet_py.bench.programs import select
from parakeet_py.bench.split import curve, parse_splits
from parakeet_py.bench.split_plot import Curve, write_curves
from parakeet_py.hybrid import calibration, losses, parts, team_calls
from parakeet_py.hybrid.cost import Cost, Speed, cpu_speed, device_speed, shares
from parakeet_py.hybrid.device import DeviceError, DeviceWarning
from parakeet_py.hybrid.devices import chosen
from parakeet_py.hybrid.emulated import EmulatedDevice
from parakeet_py.hybrid.executor import DividedCall
from parakeet_py.hybrid.residency import HOST, Memories, of_arguments, of_host
from parakeet_py.hybrid.simulated import SimulatedDevice
from parakeet_py.hybrid.spans import bytes_of_box, difference, intersection, rows_of, size_of, span, union
from parakeet_py.hybrid.team import Team
from parakeet_py.hybrid.team_calls import call_on_team, divided_plan_of
from parakeet_py.hybrid.team_runs import TeamRun

DEVICES = tuple(EmulatedDevice(f"emulated:{20 + number}", memory=1 << 22) for number in range(8))


def on(team: Team, function: Any, *args: Any) -> tuple[Any, TeamRun]:
    """A call on a team, and what it has done."""
    result = call_on_team(function._dispatcher, args, team)
    run = divided_plan_of(function._dispatcher.compiled_for_normal(args)).last_run
    assert isinstance(run, TeamRun)
    return result, run


# ---- sets of bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_sets_of_bytes(seed: int) -> None:
    source = np.random.default_rng(seed)

    def some() -> tuple[set[int], Any]:
        bytes_: set[int] = set()
        spans = span(0, 0)
        for _ in range(source.integers(0, 5)):
            start = int(source.integers(0, 30))
            stop = start + int(source.integers(0, 6))
            bytes_ |= set(range(start, stop))
            spans = union(spans, span(start, stop))
        return bytes_, spans

    def members(spans: Any) -> set[int]:
        assert (np.diff(spans) > 0).all()
        return {byte for start, stop in zip(spans[::2], spans[1::2], strict=True) for byte in range(start, stop)}

    (left, left_spans), (right, right_spans) = some(), some()
    assert members(left_spans) == left and size_of(left_spans) == len(left)
    assert members(union(left_spans, right_spans)) == left | right
    assert members(intersection(left_spans, right_spans)) == left & right
    assert members(difference(left_spans, right_spans)) == left - right


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 5)), np.zeros((4, 5)).T, np.zeros((6, 5))[::-2], np.zeros((4, 10))[:, ::3], np.zeros(7)[:, None],
     np.broadcast_to(np.zeros(5), (4, 5)), np.lib.stride_tricks.as_strided(np.zeros(9), (4, 3), (8, 16))],
)  # fmt: skip
def test_bytes_of_boxes(array: np.ndarray[Any, Any]) -> None:
    low = np.lib.array_utils.byte_bounds(array)[0]
    start = array.__array_interface__["data"][0] - low
    for box in (((0, 4), (0, 5)), ((1, 3), (0, 2)), ((1, 2), (1, 2)), ((2, 2), (0, 5))):
        inside = tuple((min(lo, n), min(hi, n)) for (lo, hi), n in zip(box, array.shape, strict=True))
        wanted = {
            start + i * array.strides[0] + j * array.strides[1] + byte
            for i in range(*inside[0])
            for j in range(*inside[1])
            for byte in range(8)
        }
        spans = bytes_of_box(array, low, inside, True)
        got = {byte for a, b in zip(spans[::2], spans[1::2], strict=True) for byte in range(a, b)}
        assert got == wanted


# ---- residency -------------------------------------------------------------------------------------------------------


def test_only_what_is_missing_moves() -> None:
    memories = Memories(DEVICES[:2])
    array = of_host(memories, np.arange(10.0))
    rows = array.spans(((2, 6),))
    array.root.bring(1, rows)
    array.root.bring(1, array.spans(((3, 8),)))
    assert memories.moved == {(0, 1): 6 * 8}
    array.root.wrote(1, rows)  # Modified there, Invalid on the host
    array.root.bring(2, array.spans(((5, 7),)))  # one element from the device, one from the host, which has it
    assert memories.moved == {(0, 1): 6 * 8, (1, 2): 8, (0, 2): 8}
    array.root.bring(HOST, array.spans())
    assert memories.moved[1, 0] == 4 * 8
    array.root.bring(2, rows)
    assert memories.moved[0, 2] == 8 + 3 * 8


def test_columns_are_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for name in ("copy_in", "copy_out", "copy_over"):
        kept = getattr(EmulatedDevice, name)
        monkeypatch.setattr(EmulatedDevice, name, lambda *args, kept=kept: (asked.append(1), kept(*args))[1])
    memories = Memories(DEVICES[:2])
    x = np.arange(600.0).reshape(30, 20)
    array = of_host(memories, x.copy())
    for memory, columns in ((1, (3, 9)), (2, (5, 12)), (1, (0, 20))):
        array.root.bring(memory, array.spans(((0, 30), columns)))
    assert len(asked) == 3 + 2 and sum(memories.moved.values()) == (6 + 7 + 14) * 30 * 8
    array.root.wrote(1, array.spans(((2, 30), (1, 4))))
    array.host[2:, 1:4] = 0.0
    array.root.bring(HOST, array.spans())
    assert np.array_equal(array.host, x) and len(asked) == 6


def test_groups_of_spans_that_lie_regularly() -> None:
    source = np.random.default_rng(1)
    for _ in range(300):
        bounds = np.cumsum(source.integers(1, 4, 2 * source.integers(1, 9)))
        groups = [*rows_of(bounds)]
        spans = [
            (one.start + k * one.pitch, one.start + k * one.pitch + one.width)
            for one in groups
            for k in range(one.height)
        ]
        assert spans == [*zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True)]


def test_arguments_that_overlap_share_their_memory() -> None:
    base = np.arange(10.0)
    arrays = of_arguments(Memories(DEVICES[:1]), [base[5:], base[:6], np.ones(3), base[:0]])
    assert arrays[0].root is arrays[1].root
    assert len({id(array.root) for array in arrays}) == 3


# ---- calls -----------------------------------------------------------------------------------------------------------


@accelerate
def relax(x: Any, y: Any, times: int) -> Any:
    for _ in range(times):
        y[1:-1] = 0.25 * (x[:-2] + 2.0 * x[1:-1] + x[2:])
        x[1:-1] = 0.25 * (y[:-2] + 2.0 * y[1:-1] + y[2:])
    return None


@pytest.mark.parametrize("devices", [2, 3, 8])
@pytest.mark.parametrize("cpu", [False, True])
def test_iterated_relaxation_moves_halos_only(devices: int, cpu: bool) -> None:
    def moved(times: int) -> dict[tuple[int, int], int]:
        x = np.random.default_rng(1).random((60, 10))
        y = x.copy()
        mine, theirs = x.copy(), y.copy()
        relax._dispatcher.run_python((mine, theirs, times))
        _, run = on(Team(DEVICES[:devices], cpu, devices / (devices + 1) if cpu else 1.0), relax, x, y, times)
        assert np.array_equal(x, mine) and np.array_equal(y, theirs)
        return run.moved

    once, twice, often = (sum(moved(times).values()) for times in (1, 2, 6))
    members = devices + cpu
    row = 10 * 8
    step = 2 * 2 * row * (members - 1)  # at each cut, in each of the two half-steps, a row goes up and a row goes down
    assert twice - once == step
    assert often - twice == 4 * step


def test_results_stay_where_they_were_made() -> None:
    @accelerate
    def twice(x: Any) -> Any:
        y = np.cumsum(x * 2.0, axis=1)
        return np.cumsum(y + 1.0, axis=1)

    x = np.random.default_rng(1).random((40, 8))
    result, run = on(Team(DEVICES[:1], True, 0.5), twice, x)
    assert np.allclose(result, np.cumsum(np.cumsum(x * 2.0, axis=1) + 1.0, axis=1))
    assert run.moved == {(0, 1): x.nbytes // 2, (1, 0): x.nbytes // 2}


def test_the_first_failure_is_raised() -> None:
    @accelerate
    def pick(x: Any, places: Any) -> Any:
        return x[places]

    x = np.arange(10.0)
    for bad in ([15, 25], [3, 17, 9, 11], [0] * 6 + [30]):
        with pytest.raises(IndexError) as wanted:
            x[np.array(bad)]
        for split in (0.0, 0.5, 1.0):
            with pytest.raises(IndexError) as got:
                on(Team(DEVICES[:2], True, split), pick, x, np.array(bad))
            assert str(got.value) == str(wanted.value)


def test_a_fixed_split_gives_the_same_bits() -> None:
    @accelerate
    def total(x: Any) -> Any:
        return x.sum(), (x * x).sum(axis=0)

    x = np.random.default_rng(1).random((301, 7)) * 1e3
    for split in (0.0, 0.3, 1.0):
        team = Team(DEVICES, True, split)
        first, again = on(team, total, x)[0], on(team, total, x)[0]
        assert first[0] == again[0] and np.array_equal(first[1], again[1])
        assert np.isclose(first[0], x.sum(), rtol=1e-12)


def test_sorting_is_the_hosts() -> None:
    @accelerate
    def ordered(x: Any, y: Any) -> Any:
        return np.sort(x + 1), np.argsort(y, axis=0, kind="stable") * 2

    x, y = np.arange(41)[::-1] % 7, (np.arange(60) * 7 % 11).reshape(6, 10)
    first, second = on(Team(DEVICES, True), ordered, x, y)[0]
    assert np.array_equal(first, np.sort(x + 1)) and np.array_equal(second, np.argsort(y, axis=0, kind="stable") * 2)


def test_what_parts_would_write_meets() -> None:
    """Only the call can tell that the places are no permutation: the region is not cut then."""

    @accelerate
    def spread(target: Any, places: Any, values: Any) -> Any:
        target[places] = values
        return target

    places = np.array([3, 1, 3, 0, 1, 5])
    values = np.arange(6.0)
    wanted = np.zeros(8)
    wanted[places] = values
    result, run = on(Team(DEVICES[:2], True, 0.5), spread, np.zeros(8), places, values)
    assert np.array_equal(result, wanted)
    assert [one.join for one in run.regions][-1] == "whole"


def test_what_may_fail_and_stores_to_an_array_of_its_own_is_cut() -> None:
    @accelerate
    def rows_of(starts: Any, columns: Any, values: Any, x: Any) -> Any:
        out = np.empty(len(starts) - 1)
        for i in range(len(starts) - 1):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * x[columns[k]]
            out[i] = total
        return out

    source = np.random.default_rng(1)
    starts, values = np.arange(31) * 3, source.random(90)
    columns, x = source.integers(0, 20, 90), source.random(20)
    for split in (0.5, None):
        result, run = on(Team(DEVICES[:2], split is not None, split), rows_of, starts, columns, values, x)
        assert np.allclose(result, rows_of.__wrapped__(starts, columns, values, x)) and run.regions[-1].axis == 0
        wrong = columns.copy()
        wrong[[20, 70]] = 21, 22
        with pytest.raises(IndexError, match="index 21 is out of bounds for axis 0 with size 20"):
            on(Team(DEVICES[:2], split is not None, split), rows_of, starts, wrong, values, x)
    slow, fast = simulated(1e6, 3e6)

    @accelerate
    def in_turn(x: Any) -> None:
        for k in range(1, len(x)):
            x[k] += 0.5 * x[k - 1]

    _, run = on(Team((slow, fast), False), in_turn, x)
    assert run.regions[-1].by == 2


def test_joins() -> None:
    @accelerate
    def all_of_them(x: Any, k: Any) -> Any:
        return x[x > 0.5], np.bincount(k, minlength=4), np.cumsum(x), x.argmax(), x.reshape(10, 10) @ x.reshape(10, 10)

    source = np.random.default_rng(1)
    x, k = source.random(100), source.integers(0, 4, 100)
    wanted = all_of_them._dispatcher.run_python((x, k))
    result, run = on(Team(DEVICES[:2], True, 0.6), all_of_them, x, k)
    for one, other in zip(result, wanted, strict=True):
        assert np.allclose(one, other) and np.asarray(one).dtype == np.asarray(other).dtype
    assert {one.join for one in run.regions} >= {"compress", "histogram", "scan", "combine", "concatenate"}


# ---- settings and explain --------------------------------------------------------------------------------------------


def test_who_is_chosen() -> None:
    alone = chosen("emulated", None)
    assert isinstance(alone, EmulatedDevice)
    team = chosen("cpu,emulated*2", 0.37)
    assert isinstance(team, Team) and team.cpu and len(team.devices) == 2
    assert team.ranges(100, list) == ((0, 0, 63), (1, 63, 81), (2, 81, 100))
    assert chosen("cpu", None) is None
    both = chosen("emulated*2", None)
    costs = [Cost(0.0, 2.0), Cost(1.0, 1.0)]
    assert isinstance(both, Team) and both.ranges(10, lambda: costs) == ((1, 0, 4), (2, 4, 10))
    assert both.ranges(0, lambda: costs) == ()


def test_explain_of_a_team() -> None:
    @accelerate
    def several(x: Any) -> Any:
        return (x * 2.0).sum(axis=1), np.cumsum(x, axis=1)

    x = np.ones((10, 4))
    line = several._dispatcher.function.__code__.co_firstlineno + 2
    with options(devices="cpu,emulated*2", split=0.4):
        before = several.explain(x).device
        several(x)
        after = several.explain(x).device
        text = str(after)
    assert before.complete and before.last_run is None
    assert before.foreseen == after.foreseen == after.last_run
    assert f"(line {line}): axis 0 cpu [0, 6), emulated:0 [6, 8), emulated:1 [8, 10); concatenate" in text
    assert "runs on cpu and emulated:0 and emulated:1: split=0.4 is forced" in text
    assert "64 bytes from cpu to emulated:0, 64 bytes from cpu to emulated:1" in text


# ---- devices that fail -----------------------------------------------------------------------------------------------


class Failing(EmulatedDevice):
    """A device that fails at its so-many-eth operation, and from then on."""

    def __init__(self, name: str, after: int, memory: int = 1 << 22) -> None:
        super().__init__(name, memory)
        self.left = after

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DeviceError(f"{self.name} has fallen off the bus")

    def allocate(self, size: int) -> int:
        self._count()
        return super().allocate(size)

    def copy_in(self, *args: Any) -> None:
        self._count()
        super().copy_in(*args)

    def copy_out(self, *args: Any) -> None:
        self._count()
        super().copy_out(*args)

    def copy_over(self, *args: Any) -> None:
        self._count()
        super().copy_over(*args)

    def launch(self, *args: Any) -> None:
        self._count()
        super().launch(*args)


@pytest.fixture(autouse=True)
def _all_devices_there() -> Iterator[None]:
    losses.forget_losses()
    yield
    losses.forget_losses()


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
    losses.forget_losses()
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


@accelerate
def escape(c: Any, limit: int) -> Any:
    out = np.zeros(len(c), np.int64)
    for k in range(len(c)):
        z, steps = 0j, 0
        while steps < limit and z.real * z.real + z.imag * z.imag <= 4.0:
            z = z * z + c[k]
            steps += 1
        out[k] = steps
    return out


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


# ---- what it costs ---------------------------------------------------------------------------------------------------


def test_devices_wait_for_no_number_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much each selects is asked when all have begun to count."""
    asked: list[tuple[str, str]] = []

    def watched(kind: str, work: Any) -> Any:
        def do(device: Any, *args: Any) -> Any:
            asked.append((kind, device.name))
            return work(device, *args)

        return do

    for kind in ("launch", "copy_out"):
        monkeypatch.setattr(EmulatedDevice, kind, watched(kind, getattr(EmulatedDevice, kind)))
    x = np.random.default_rng(1).random(4000)
    selected = accelerate(lambda x: x[x > 0.5])
    assert np.array_equal(on(Team(DEVICES[:2], False, 1.0), selected, x)[0], x[x > 0.5])
    before = asked[: next(number for number, (kind, _) in enumerate(asked) if kind == "copy_out")]
    assert {name for kind, name in before if kind == "launch"} == {device.name for device in DEVICES[:2]}


def test_shares_end_at_the_same_time() -> None:
    assert shares(100, [Cost(0.0, 1.0), Cost(0.0, 1.0)]) == [50, 50]
    assert shares(102, [Cost(0.0, 1.0), Cost(0.0, 0.02)]) == [2, 100]
    assert shares(10, [Cost(0.0, 1.0), Cost(50.0, 0.01)]) == [10, 0]
    assert shares(0, [Cost(0.0, 1.0)]) == [0]
    source = np.random.default_rng(1)
    for _ in range(50):
        costs = [Cost(float(f), float(c)) for f, c in source.random((4, 2)) + 1e-3]
        extent = int(source.integers(1, 200))
        counts = shares(extent, costs)
        assert sum(counts) == extent and min(counts) >= 0
        finish = max(cost.of(count) for cost, count in zip(costs, counts, strict=True))
        for cost, count in zip(costs, counts, strict=True):  # nobody could have taken one more and still been earlier
            assert cost.of(count + 1) >= finish - 1e-9


_names = itertools.count(60)


def simulated(*rates: float) -> tuple[SimulatedDevice, ...]:
    speeds = [Speed(rate, 1e9, 1e-5) for rate in rates]
    return tuple(SimulatedDevice(f"emulated:{next(_names)}", speed, 1 << 24) for speed in speeds)


def clocked(devices: tuple[SimulatedDevice, ...], function: Any, *args: Any) -> tuple[Any, list[float], TeamRun]:
    """The result of a call on simulated devices, the seconds of each, and what the call has done."""
    start = max(device.clock for device in devices)
    result, run = on(Team(devices, False), function, *args)
    return result, [max(device.clock - start, 0.0) for device in devices], run


def alone(function: Any, *args: Any) -> float:
    """The seconds of a call on a device that does a million operations in one."""
    return max(clocked(simulated(1e6), function, *args)[1])


@accelerate
def work(x: Any) -> Any:
    return x * x * 0.5 + x * 0.25 + np.sqrt(x + 1.0)


@accelerate
def rows(lengths: Any) -> Any:
    def total(k: Any) -> Any:
        found, n = 0.0, 0
        while n < lengths[k]:
            found += n
            n += 1
        return found

    return generate(len(lengths), total)


@accelerate
def mandelbrot(re: Any, im: Any, limit: int) -> Any:
    c = np.cumsum(np.zeros((len(im), len(re))), axis=1) + re + 1j * im[:, None]  # made where it is not needed
    out = np.zeros(c.shape, np.int64)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            z, steps = 0j, 0
            while steps < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = z * z + c[i, j]
                steps += 1
            out[i, j] = steps
    return out


BALANCED = work, (np.random.default_rng(1).random(4000),)


@accelerate
def spmv(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    out = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total
    return out


def heavy_rows_first() -> tuple[Any, ...]:
    random = np.random.default_rng(1)
    counts = random.integers(0, 30, 2000)
    counts[:100] += 100
    starts = np.concatenate(([0], np.cumsum(counts)))
    return starts, random.integers(0, 2000, starts[-1]), random.random(starts[-1]), random.random(2000)


UNBALANCED = {
    "escape times": (escape, (np.linspace(-2.0, 0.6, 3000) + 0.05j, 60)),
    "longer and longer": (rows, (np.arange(6000) // 100,)),
    "an image": (mandelbrot, (np.linspace(-2.0, 0.6, 32), np.linspace(-1.3, 1.3, 100), 60)),
}


@pytest.mark.parametrize("ratio", [1, 3, 10, 20, 50])
def test_balanced_work_ends_in_nearly_ideal_time(ratio: int) -> None:
    function, args = BALANCED
    slow, fast = alone(function, *args), max(clocked(simulated(ratio * 1e6), function, *args)[1])
    together = simulated(1e6, ratio * 1e6)
    for _ in range(3):  # nothing has been measured before the first
        taken = max(clocked(together, function, *args)[1])
        assert taken <= 1.1 / (1 / slow + 1 / fast)
        assert taken <= 1.05 * min(slow, fast)


def test_short_axes_are_left_whole() -> None:
    """Three rows could not be shared by two devices as they should."""
    images = np.random.default_rng(1).random((3, 1500))
    (whole,) = clocked(simulated(1e6), work, images)[1]
    for _ in range(3):
        result, taken, run = clocked(devices := simulated(1e6, 3e6), work, images)
    assert len(devices) == 2 and run.regions[0].axis == 1 and np.array_equal(result, work.__wrapped__(images))
    assert max(taken) <= 1.1 * whole / 4
    total = accelerate(lambda x: x.sum(axis=1))
    result, _, run = clocked(simulated(1e6, 3e6), total, images)
    assert run.regions[0].join == "combine" and np.allclose(result, images.sum(axis=1))


@pytest.mark.parametrize(
    ("ratio", "name"),
    [*itertools.product((1, 3, 10, 20, 50), UNBALANCED), *((ratio, "heavy rows first") for ratio in (1, 2, 3, 10, 20))],
)
def test_unbalanced_work_is_claimed(ratio: int, name: str) -> None:
    function, args = UNBALANCED[name] if name in UNBALANCED else (spmv, heavy_rows_first())
    wanted = function(*args)
    slow, fast = alone(function, *args), max(clocked(simulated(ratio * 1e6), function, *args)[1])
    together = simulated(1e6, ratio * 1e6)
    for _ in range(2):  # nothing has been measured before the first
        result, taken, run = clocked(together, function, *args)
        assert np.array_equal(result, wanted)
        ranges = run.regions[-1].ranges
        assert ranges[0][1] == 0 and ranges[-1][2] == len(wanted) and len(ranges) <= 2
        assert all(one[2] == other[1] for one, other in itertools.pairwise(ranges))
        assert max(taken) <= 1.15 / (1 / slow + 1 / fast)
        assert max(taken) <= 1.05 * min(slow, fast)
    if ratio == 1:
        assert min(taken) >= 0.9 * max(taken)  # nobody waits for long


def test_copies_between_devices_wait_for_what_they_copy() -> None:
    giver, other, reader = simulated(1e6, 1e6, 1e6)
    memories = Memories([giver, other, reader])
    early, late = (of_host(memories, np.zeros(12_500)) for _ in range(2))  # a tenth of a millisecond on the link
    copy = 1e-4 + 1e-5
    for array in (early, late):
        array.root.bring(1, array.spans())
    memories.set_marks()
    giver._free[0] = giver.clock = 1.0  # it computes until then
    for array in (early, late):
        array.root.valid.pop(HOST)
    late.root.wrote(1, late.spans())
    early.root.bring(3, early.spans())
    assert np.isclose(reader.clock, 3 * copy)  # behind what had been brought before the mark
    late.root.bring(2, late.spans(((0, 6250),)))
    assert np.isclose(other.clock, 1.0 + 5e-5 + 1e-5)
    late.root.bring(3, late.spans())  # the link is busy
    assert np.isclose(reader.clock, 1.0 + 5e-5 + 1e-5 + copy) and np.isclose(giver.mark(), reader.clock)


class Quick(EmulatedDevice):
    """A device that says of itself that it is fast, so that it gets work beside the CPU."""

    speed = Speed(1e12, 1e12, 1e-6)


@pytest.mark.parametrize("cpu", [False, True])
def test_members_claim_at_the_same_time(cpu: bool) -> None:
    team = Team((Quick("emulated:47", 1 << 22), Quick("emulated:48", 1 << 22)), cpu)
    for function, args in UNBALANCED.values():
        result, run = on(team, function, *args)
        assert np.array_equal(result, function(*args))
        bounds = [(lo, hi) for _, lo, hi in run.regions[-1].ranges]  # who is quick enough to get one, nobody knows
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
            losses.forget_losses()
        assert np.array_equal(on(team, function, *args)[0], function(*args))
    assert not [one for one in threading.enumerate() if one.name.startswith("parakeet_py-")]
    gc.collect()
    assert good._device.free_bytes == bad._device.free_bytes == 1 << 22


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
    assert np.allclose(result, x.sum())  # nobody waits for a partial sum
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


def test_claims_raise_what_fails_first() -> None:
    @accelerate
    def pick(x: Any, places: Any, times: Any) -> Any:
        def many(k: Any) -> Any:
            total, n = 0.0, 0
            while n < times[k]:
                total += x[places[k]]
                n += 1
            return total

        return generate(len(places), many)

    x, places, times = np.arange(10.0), np.arange(300) % 10, np.arange(300) % 3 + 1
    result, _, run = clocked(simulated(1e6, 1e6), pick, x, places, times)
    assert np.array_equal(result, pick.__wrapped__(x, places, times)) and len(run.regions[-1].ranges) == 2
    for bad in ([150, 290], [3, 170], [299]):
        wrong = places.copy()
        wrong[bad] = np.arange(len(bad)) + 20
        with pytest.raises(IndexError, match="index 20 is out of bounds"):
            clocked(simulated(1e6, 1e6), pick, x, wrong, times)


def test_calibrated_speeds_are_remembered(tmp_path: Path) -> None:
    (device,) = simulated(1e6)
    with options(cache=True, cache_dir=tmp_path):
        assert calibration.stored("cpu") is None and cpu_speed(2) == Speed(3e9, 0.0, 5e-6)
        found = calibration.calibrate([device])
        assert calibration.stored(device.name) == found[device.name]
        assert cpu_speed(2).operations == 2 * found["cpu"][0]
        rate, link, start = found[device.name]
        assert 1e4 < rate < 1e6 and 0.9e9 < link <= 1e9 and start < 1e-3  # an operation is a few instructions
        plain = EmulatedDevice(device.name)
        assert device_speed(plain) == Speed(*found[device.name])
        for text in ("{", "[1]", '{"cpu": 5}', '{"cpu": [0, 0, 0]}'):
            (tmp_path / calibration.FILE).write_text(text)
            calibration.forget()
            assert calibration.stored("cpu") is None


def test_simulated_devices_fail_when_told() -> None:
    bad = SimulatedDevice("emulated:70", Speed(1e6, 1e9, 0.0), fails_after=3)
    unmeasured = accelerate(relax.__wrapped__)  # so every member gets work
    x = np.random.default_rng(1).random((30, 6))
    y, mine, theirs = x.copy(), x.copy(), x.copy()
    unmeasured._dispatcher.run_python((mine, theirs, 2))
    with pytest.warns(DeviceWarning, match="as it was told"):
        on(Team((bad, DEVICES[0]), False), unmeasured, x, y, 2)
    assert np.array_equal(x, mine)


def test_the_cpu_keeps_what_is_not_worth_moving() -> None:
    unmeasured = accelerate(relax.__wrapped__)
    with options(devices="cpu,emulated*2"):
        report = unmeasured.explain(np.ones((30, 6)), np.ones((30, 6)), 1).device
    assert all(who == 0 for run in report.foreseen.regions for who, _, _ in run.ranges)
    assert report.foreseen.moved == {}


def test_what_is_left_to_the_cpu_costs_no_team(monkeypatch: pytest.MonkeyPatch) -> None:
    @accelerate
    def step(x: Any, n: int) -> Any:
        return x * 2.0 + n

    asked: list[int] = []
    run = team_calls.run_divided
    monkeypatch.setattr(team_calls, "run_divided", lambda *args: (asked.append(1), run(*args))[1])
    x = np.arange(30.0)
    with options(devices="cpu,emulated*2"):
        for _ in range(3):
            assert np.array_equal(step(x, 3), x * 2.0 + 3)
        assert step(x[::2], 4)[1] == 8.0 and step(x.astype(np.float32), 4).dtype == np.float32
        assert not asked
        with options(split=0.5):  # another team, which leaves nothing to the CPU alone
            assert step(x, 3)[1] == 5.0 and len(asked) == 1
        assert np.array_equal(step(asdevice(x), 3)[:], x * 2.0 + 3) and len(asked) == 2
        cuts: list[int] = []
        cut = DividedCall.cut
        monkeypatch.setattr(DividedCall, "cut", lambda *args: (cuts.append(1), cut(*args))[1])
        relax(np.ones((30, 6)), np.ones((30, 6)), 2000)  # its steps are not all rehearsed
        assert 0 < len(cuts) <= 100 and len(asked) == 2


def test_explain_of_long_loops_ends() -> None:
    x = np.ones((30, 6))
    with options(devices="cpu,emulated", split=0.5):
        report = relax.explain(x, x.copy(), 10**9).device
        assert not report.complete and len(report.foreseen.regions) == 1000
        assert "and what follows 1000 regions" in str(report)


def test_single_numbers_are_those_of_compiled_code() -> None:
    @accelerate
    def of_one(x: Any, y: Any) -> Any:
        return np.exp(x), np.log(y), x**y, np.sin(x) * 2.0

    for dtype in (np.float32, np.float64):
        for x, y in np.random.default_rng(1).uniform(0.1, 5.0, (20, 2)).astype(dtype):
            for devices in ("emulated", "emulated*2"):
                wanted = of_one(x, y)
                with options(devices=devices):
                    assert of_one(x, y) == wanted


# ---- the bench -------------------------------------------------------------------------------------------------------


def test_bench_over_splits(tmp_path: Path) -> None:
    (program,) = select(["black_scholes"])
    points = curve(program, "cpu,emulated*2", parse_splits("0, 50,100"), "XS")
    assert [point.split for point in points] == [0.0, 0.5, 1.0, None]
    assert not any(point.wrong for point in points)
    assert points[0].moved == 0 and points[0].shares == "cpu 100 %"
    assert points[1].moved > 0 and "emulated:1 25 %" in points[1].shares
    assert [round(point.share, 2) for point in points[:3]] == [0.0, 0.5, 1.0] and points[1].moved < points[2].moved
    curves = [Curve("black_scholes", "cpu,emulated*2", points)]
    for name in ("split.html", "split.png"):
        write_curves(tmp_path / name, curves)
    drawn = (tmp_path / "split.html").read_text()
    ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
    assert drawn.count("<circle") == 3 and drawn.count(f"chosen, {100 * points[3].share:.0f} %") == 1
    assert (tmp_path / "split.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(ValueError, match=r"a plot is \.png or \.html"):
        write_curves(tmp_path / "split.pdf", curves)
    for text in ("fifty", "0,101"):
        with pytest.raises(ValueError):
            parse_splits(text)


def test_timeline(tmp_path: Path) -> None:
    @accelerate
    def both(x: Any) -> Any:
        y = np.cumsum(x * 2.0, axis=1)
        return y, y.sum()

    first = both._dispatcher.function.__code__.co_firstlineno
    x = np.random.default_rng(1).random((40, 6))
    for devices, whole in (("cpu,emulated*2", False), ("emulated", True)):
        split = None if whole else 0.5
        with options(devices=devices, split=split):
            both(x)
            assert both.explain(x).timeline is None
        with options(devices=devices, split=split, timeline=True):
            both(x)
            found = both.explain(x).timeline
        assert found is not None
        copies = [event.amount for event in found.events if event.kind == "copies in" and not event.name]
        assert copies and (sum(copies) >= x.nbytes // (1 if whole else 2))
        kinds = {(event.device, event.kind) for event in found.events}
        assert kinds >= {("emulated:0", "kernels"), ("emulated:0", "copies in"), ("emulated:0", "copies out")}
        assert whole or kinds >= {("cpu", "parts"), ("emulated:1", "kernels")}
        named = [event for event in found.events if event.name]
        assert all(set(event.lines) <= {first + 2, first + 3} and event.lines for event in named)
        assert found.seconds >= max(event.start + event.seconds for event in found.events) > 0
        assert all(event.start >= 0 and event.seconds >= 0 for event in found.events)
        for name in ("calls.json", "calls.html"):
            found.save(tmp_path / name)
        events = json.loads((tmp_path / "calls.json").read_text())["traceEvents"]
        assert sum(event["ph"] == "X" for event in events) == len(found.events)
        named_devices = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        assert sorted(named_devices) == sorted({event.device for event in found.events})
        drawn = (tmp_path / "calls.html").read_text()
        svg = ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
        assert len(svg.findall("rect")) == len(found.events)
        with pytest.raises(ValueError, match=r"a timeline is \.json or \.html, not \.txt"):
            found.save(tmp_path / "calls.txt")
