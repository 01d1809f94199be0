"""Independent operators of one function on different members of a team at once."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.call.devices.calls import call, team_plan_of
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute import device_loss, task_calls
from parakeet_py.hybrid.execute.run_record import Schedule, TeamRun
from parakeet_py.hybrid.partition.tasks import Group
from parakeet_py.hybrid.plan.part_cost import Speed
from tests.helpers.team_programs import shared_always

DEVICES = tuple(EmulatedDevice(f"emulated:{130 + number}", memory=1 << 22) for number in range(3))
_names = itertools.count(140)


def simulated(*rates: float, link: float = 1e9, start: float = 1e-5) -> tuple[SimulatedDevice, ...]:
    return tuple(SimulatedDevice(f"emulated:{next(_names)}", Speed(rate, link, start), 1 << 22) for rate in rates)


def clocked(devices: tuple[SimulatedDevice, ...], function: Any, *args: Any) -> tuple[float, TeamRun]:
    """The seconds until the last device is done, and what the call has done."""
    start = max(device.clock for device in devices)
    with options(check=False):
        call(function._dispatcher, args, Team(devices, False), in_regions=True)
    return max(one.clock for one in devices) - start, last_run(function, *args)


def last_run(function: Any, *args: Any) -> TeamRun:
    run = team_plan_of(function._dispatcher.compiled_for_normal(args)).last_run
    assert isinstance(run, TeamRun)
    return run


def groups(function: Any, *args: Any) -> list[int]:
    """How many tasks each group of a function has."""
    plan = team_plan_of(function._dispatcher.compiled_for_normal(args))
    return [len(site.tasks) for site in plan.sites if isinstance(site, Group)]


@accelerate
def filters(x: Any, y: Any, z: Any) -> Any:
    for k in range(1, len(x)):
        x[k] = 0.5 * x[k] + 0.5 * x[k - 1]
    for k in range(1, len(y)):
        y[k] = 0.5 * y[k] + 0.5 * y[k - 1]
    for k in range(1, len(z)):
        z[k] = 0.5 * z[k] + 0.5 * z[k - 1]
    return x, y, z


@accelerate
def sweeps(x: Any, y: Any, times: int) -> Any:
    for _ in range(times):
        x *= 0.9
        for k in range(1, len(x)):
            x[k] = 0.5 * x[k] + 0.5 * x[k - 1]
        y *= 0.9
        for k in range(1, len(y)):
            y[k] = 0.5 * y[k] + 0.5 * y[k - 1]


@accelerate
def relaxations(x: Any, y: Any, times: int) -> Any:
    for _ in range(times):
        x[1:-1] = (x[:-2] + x[2:]) * 0.5
    for _ in range(times):
        y[1:-1] = (y[:-2] + y[2:]) * 0.5


def arrays(*lengths: int) -> list[np.ndarray[Any, Any]]:
    return [np.random.default_rng(1).random(length) for length in lengths]


# ---- what is a task --------------------------------------------------------------------------------------------------


def test_which_statements_are_tasks() -> None:
    def groups_of(function: Any, *args: Any) -> list[int]:
        return groups(accelerate(function), *args)

    def chains(x: Any, y: Any) -> Any:
        u, v = np.cumsum(x), np.cumsum(y)  # each goes on alone...
        u, v = np.cumsum(u * 2.0), np.cumsum(v + 1.0)
        return u + v  # ...until this needs both

    def second_stage(x: Any, y: Any) -> Any:
        u, v = np.cumsum(x), np.cumsum(y)
        w = u + v
        return np.cumsum(w * u), np.cumsum(w * v)

    def in_turn(x: Any, y: Any) -> Any:
        np.cumsum(x, out=y)
        return np.cumsum(y)

    def may_fail_before_a_store(x: Any, y: Any) -> Any:
        total = 0.0
        for k in range(len(x)):
            total += x[int(x[k])]
        for k in range(1, len(y)):
            y[k] += y[k - 1]
        return total

    def stores_before_what_may_fail(x: Any, y: Any) -> Any:
        for k in range(1, len(y)):
            y[k] += y[k - 1]
        total = 0.0
        for k in range(len(x)):
            total += x[k + 1]
        return total

    x, y = arrays(20, 20)
    assert groups_of(chains, x, y) == [2]
    assert groups_of(second_stage, x, y) == [2, 2]
    assert groups_of(in_turn, x, y) == []
    assert groups_of(may_fail_before_a_store, x, y) == []
    assert groups_of(stores_before_what_may_fail, x, y) == [2]
    assert groups(filters, *arrays(5, 6, 7)) == [3]
    assert groups(filters, x, x, x) == []  # which filter stores where is not known
    assert groups(sweeps, x, y, 2) == [2]


# ---- when they end ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_cut_runs_at_the_same_time() -> None:
    long = [clocked(simulated(1e6), filters, *arrays(one, 2, 2))[0] for one in (40, 80, 120)]
    given = arrays(40, 80, 120)
    wanted = filters.__wrapped__(*(array.copy() for array in given))
    taken, run = clocked(simulated(1e6, 1e6), filters, *given)
    for got, right in zip(given, wanted, strict=True):
        assert np.array_equal(got, right)
    assert taken <= 1.1 * long[2]  # the longest, beside the two others
    (schedule,) = run.tasks
    assert schedule.members[0] == schedule.members[1] != schedule.members[2]
    assert {who for region in run.regions for who, _, _ in region.ranges} <= {1, 2}
    taken, run = clocked(simulated(1e6, 3e6, 1e6), filters, *arrays(40, 80, 120))
    assert run.tasks[0].members[2] == (2,)  # the longest where it ends first
    assert taken <= 1.1 * max(long[2] / 3, long[1])


def test_members_share_tasks_if_there_are_more_of_them() -> None:
    """Starts and halos are dear: pairs that do one relaxation each are done before all four are with both."""
    x, y = arrays(600, 600)
    speeds = {"start": 1e-3, "link": 1e8}
    devices = simulated(1e6, 1e6, 1e6, 1e6, **speeds)
    taken, run = clocked(devices, relaxations, x, y, 3)
    assert sorted(map(len, run.tasks[0].members)) == [2, 2]
    with mock.patch.object(task_calls, "WORTH", 0.0):
        one_after_the_other, run = clocked(simulated(1e6, 1e6, 1e6, 1e6, **speeds), relaxations, *arrays(600, 601), 3)
    assert not run.tasks and taken < 0.95 * one_after_the_other
    balanced = simulated(1e6, 1e6, start=1e-7)
    taken, run = clocked(balanced, relaxations, *arrays(20_000, 20_000), 1)
    assert not run.tasks  # nothing is won where cutting costs nothing


def test_tasks_go_where_their_inputs_are() -> None:
    x, y = arrays(30, 40)
    wanted = [x.copy(), y.copy()]
    sweeps.__wrapped__(*wanted, 5)
    _, run = clocked(simulated(1e6, 1e6), sweeps, x, y, 5)
    assert np.array_equal(x, wanted[0]) and np.array_equal(y, wanted[1])
    assert len(run.tasks) == 5 and len({schedule.members for schedule in run.tasks}) == 1
    assert sum(run.moved.values()) == 2 * (x.nbytes + y.nbytes)  # there and back, once


# ---- with the CPU, exceptions, losses --------------------------------------------------------------------------------


def spread(choice: Any) -> Schedule:
    """Every task on another member."""
    members, tasks = choice.team.members, choice.group.tasks
    found = tuple((members[number % len(members)],) for number in range(len(tasks)))
    return Schedule(choice.group.name, tuple(task.lines for task in tasks), found, 1.0, 2.0)


@pytest.fixture
def everywhere() -> Any:
    device_loss.forget_losses()
    with mock.patch.object(task_calls._Choice, "best", spread), shared_always():
        yield
    device_loss.forget_losses()


def test_the_cpu_has_tasks(everywhere: None) -> None:
    given = arrays(20, 30, 40)
    wanted = filters.__wrapped__(*(array.copy() for array in given))
    call(filters._dispatcher, given, Team(DEVICES, True))
    for got, right in zip(given, wanted, strict=True):
        assert np.array_equal(got, right)
    run = last_run(filters, *given)
    assert run.tasks[0].members == ((0,), (1,), (2,)) and run.moved.keys() == {(0, 1), (1, 0), (0, 2), (2, 0)}


def test_the_first_task_that_fails(everywhere: None) -> None:
    @accelerate
    def pick(x: Any, i: Any, y: Any, j: Any) -> Any:
        first = 0.0
        for k in range(len(i)):
            first += x[i[k]]
        second = 0.0
        for k in range(len(j)):
            second += y[j[k]]
        return first, second

    x, y = arrays(10, 10)
    good, bad, worse = np.arange(8), np.array([1, 20]), np.array([30])
    assert groups(pick, x, good, y, good) == [2]
    team = Team(DEVICES, True)
    assert call(pick._dispatcher, (x, good, y, good), team) == pick.__wrapped__(x, good, y, good)
    for i, j in ((bad, worse), (good, worse), (bad, good)):
        with pytest.raises(IndexError) as wanted:
            pick.__wrapped__(x, i, y, j)
        with pytest.raises(IndexError) as got:
            call(pick._dispatcher, (x, i, y, j), team)
        assert str(got.value) == str(wanted.value)


def test_a_device_is_lost_with_its_task(everywhere: None) -> None:
    bad = SimulatedDevice("emulated:199", Speed(1e6, 1e9, 0.0), fails_after=1)
    given = arrays(20, 30, 40)
    wanted = filters.__wrapped__(*(array.copy() for array in given))
    with pytest.warns(DeviceWarning, match="emulated:199 has failed, its work is done by the CPU and emulated:130"):
        call(filters._dispatcher, given, Team((DEVICES[0], bad), True))
    for got, right in zip(given, wanted, strict=True):
        assert np.array_equal(got, right)


def test_explain_and_timeline_tell_tasks(everywhere: None) -> None:
    given = arrays(20, 30, 40)
    lines = [filters._dispatcher.function.__code__.co_firstlineno + more for more in (3, 5, 7)]
    with options(devices="emulated*3", timeline=True):
        text = str(filters.explain(*given).device)
        filters(*given)
        report = filters.explain(*given)
    which = "; ".join(f"line {line} on emulated:{number}" for number, line in enumerate(lines))
    assert f"at the same time: {which} (foreseen 1e+03 ms, 2e+03 ms one after the other)" in text
    assert f"(line {lines[1]}): not cut, emulated:1" in text
    who = {event.device: event.lines for event in report.timeline.events if event.kind == "kernels"}
    assert who == {f"emulated:{number}": (line,) for number, line in enumerate(lines)}
