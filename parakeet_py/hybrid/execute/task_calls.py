"""Tasks in a call: one after the other, each shared by the whole team, or at the same time on different members.

Sharing a task costs starts, halos, and what all who share it need; what cannot be cut occupies one member and leaves
the others idle. So every call foresees three ways: all tasks one after the other on the team; each on one member, the
long ones placed first, where they would be done first (Graham, "Bounds on multiprocessing timing anomalies", SIAM J.
Appl. Math. 17(2), 1969; what has to be brought there counts, so tasks go where their inputs are); and, if there are
more members than tasks, each on some of them. The way that ends first is taken, in favour of the first if that is not
clear.

A foreseen time is that of a rehearsal of the task's host part, from where bytes are now on; it is remembered for calls
of the same extents. Members that do different tasks work at the same time, each in a thread of its own
(`member_threads`); with simulated devices the same is done in turn, as each has a clock of its own.

A forced split says what each member does: then there are no tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.member_threads import Stop, together
from parakeet_py.hybrid.execute.run_record import Schedule
from parakeet_py.hybrid.execute.team_call import TeamCall
from parakeet_py.hybrid.residency.blocks import HOST, SharedArray
from parakeet_py.hybrid.residency.byte_ranges import size_of

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.team import Team
    from parakeet_py.hybrid.partition.tasks import Group
    from parakeet_py.typed_ir.ir import Var

WORTH = 0.95  # of the time on the whole team, at most
MOST = 256  # schedules that are remembered


def run_tasks(call: TeamCall, group: Group, values: dict[Var, Any]) -> list[Any]:
    """Run the tasks of a group; gives their results in order."""
    given = [[values[arg] for arg in task.args] for task in group.tasks]
    schedule = schedule_of(call, group, given)
    if schedule is None:
        results = [call.within(task).perform(args) for task, args in zip(group.tasks, given, strict=True)]
    else:
        call.scheduled(schedule)
        results = _AtOnce(call, group, given, schedule).run()
    return [value for one in results for value in one]


class _AtOnce:
    """The tasks of a group, run at the same time."""

    def __init__(self, call: TeamCall, group: Group, given: Sequence[list[Any]], schedule: Schedule) -> None:
        teams = [replace(call.team, only=members) for members in schedule.members]
        self.calls = [call.within(task, team) for task, team in zip(group.tasks, teams, strict=True)]
        self.call, self.given, self.schedule = call, given, schedule
        self.results: dict[int, Sequence[Any]] = {}
        self.errors: dict[int, Exception] = {}

    def run(self) -> list[Sequence[Any]]:
        lanes: dict[tuple[int, ...], list[int]] = {}
        for number, members in enumerate(self.schedule.members):
            lanes.setdefault(members, []).append(number)
        order = sorted(lanes, key=lambda members: HOST not in members)  # the CPU's own in this thread
        self.call.memories.set_marks()
        works = [partial(self._lane, lanes[members]) for members in order]
        simulated = any(isinstance(device, SimulatedDevice) for device in self.call.team.devices)
        if simulated or self.call.memories.rehearsal:
            for work in works:
                work()
        else:
            together(works, Stop())
        for one in self.calls:
            self.call.runs += one.runs
        if self.errors:
            raise self.errors[min(self.errors)]
        return [self.results[number] for number in range(len(self.calls))]

    def _lane(self, tasks: Sequence[int]) -> None:
        for number in tasks:
            try:
                self.results[number] = self.calls[number].perform(self.given[number])
            except Lost:
                raise
            except Exception as error:
                self.errors[number] = error
                return


# ---- the choice ------------------------------------------------------------------------------------------------------


def schedule_of(call: TeamCall, group: Group, given: Sequence[Sequence[Any]]) -> Schedule | None:
    """Who gets which task; None if they are better shared by all, one after the other."""
    team = call.team
    if team.split is not None or team.only is not None or len(team.members) < 2:
        return None
    key = group.name, team, *(_kind(value, team) for args in given for value in args)
    known = call.plan.schedules
    if key not in known:
        if len(known) >= MOST:
            known.clear()
        known[key] = _Choice(call, group, given).best()
    found: Schedule | None = known[key]
    return found


def _kind(value: Any, team: Team) -> Any:
    """What a choice rests on of an argument of a task."""
    if not isinstance(value, SharedArray):
        return value if isinstance(value, int) else type(value)
    valid = value.root.valid
    return value.dtype.char, value.shape, tuple(size_of(valid[who]) if who in valid else 0 for who in team.members)


class _Choice:
    def __init__(self, call: TeamCall, group: Group, given: Sequence[Sequence[Any]]) -> None:
        self.call, self.group, self.given, self.team = call, group, given, call.team

    def best(self) -> Schedule | None:
        tasks, members = range(len(self.group.tasks)), self.team.members
        shared = self.foreseen(tasks, None)
        if not sum(shared):
            return None
        alone = {who: self.foreseen(tasks, (who,)) for who in members}
        ways = [self._one_each(alone)]
        if len(members) > len(tasks):
            ways.append(self._some_each(alone))
        found, seconds = min(ways, key=lambda way: way[1])
        if seconds >= WORTH * sum(shared):
            return None
        lines = tuple(task.lines for task in self.group.tasks)
        return Schedule(self.group.name, lines, found, seconds, sum(shared))

    def _one_each(self, alone: dict[int, list[float]]) -> tuple[tuple[tuple[int, ...], ...], float]:
        """Every task on the member that is done with it first, the longest task first."""
        done = dict.fromkeys(alone, 0.0)
        found: dict[int, tuple[int, ...]] = {}
        tasks = range(len(self.group.tasks))
        for task in sorted(tasks, key=lambda one: -min(seconds[one] for seconds in alone.values())):
            who = min(alone, key=lambda who: done[who] + alone[who][task])
            done[who] += alone[who][task]
            found[task] = (who,)
        return tuple(found[task] for task in tasks), max(done.values())

    def _some_each(self, alone: dict[int, list[float]]) -> tuple[tuple[tuple[int, ...], ...], float]:
        """Every task on some members: each, the fastest first, goes where most is left to do."""
        tasks = range(len(self.group.tasks))
        rates = [0.0] * len(tasks)
        found: list[list[int]] = [[] for _ in tasks]
        for who in sorted(alone, key=lambda who: sum(alone[who])):
            task = max(tasks, key=lambda task: alone[who][task] / (1 + rates[task] * alone[who][task]))
            found[task].append(who)
            rates[task] += 1 / max(alone[who][task], 1e-15)
        members = tuple(tuple(sorted(some)) for some in found)
        if not all(members):
            return members, float("inf")
        return members, max(self.foreseen([task], some)[0] for task, some in zip(tasks, members, strict=True))

    def foreseen(self, tasks: Sequence[int], members: tuple[int, ...] | None) -> list[float]:
        """The seconds of some tasks, one after the other, on the whole team or some of it."""
        found = self.call.plan.estimates(self.call.plan, replace(self.team, only=members))
        return [found.seconds_of(self.group.tasks[task], self.given[task]) for task in tasks]
