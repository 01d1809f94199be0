"""Calls on teams: who gets what, what is joined, which bytes move, what explain says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, generate, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.call.devices import calls
from parakeet_py.call.devices.calibrate import calibrate
from parakeet_py.hybrid.devices import calibration
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.selection import chosen
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.execution import Execution
from parakeet_py.hybrid.plan.part_cost import Cost, Speed, cpu_speed, device_speed
from tests.helpers.team_programs import DEVICES, clocked, on, relax, simulated, spmv


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
    rows_of = accelerate(spmv.__wrapped__)

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


def test_who_is_chosen() -> None:
    alone = chosen("emulated", None)
    assert isinstance(alone, Team) and isinstance(alone.alone, EmulatedDevice)
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
        found = calibrate([device])
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
    run = calls.execute
    monkeypatch.setattr(calls, "execute", lambda *args: (asked.append(1), run(*args))[1])
    x = np.arange(30.0)
    with options(devices="cpu,emulated*2"):
        for _ in range(3):
            assert np.array_equal(step(x, 3), x * 2.0 + 3)
        assert step(x[::2], 4)[1] == 8.0 and step(x.astype(np.float32), 4).dtype == np.float32
        assert not asked
        with options(split=0.5):  # another team, which leaves nothing to the CPU alone
            assert step(x, 3)[1] == 5.0 and len(asked) == 1
        assert np.array_equal(np.asarray(step(asdevice(x), 3)), x * 2.0 + 3) and len(asked) == 2
        cuts: list[int] = []
        cut = Execution.cut
        monkeypatch.setattr(Execution, "cut", lambda *args: (cuts.append(1), cut(*args))[1])
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
