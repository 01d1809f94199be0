"""Which calls a team leaves to its CPU alone: they run as if no other device had been named.

Small work stays on the CPU's threads, and then the plan of a team, its regions and parts have nothing to do but take
time. What counts is what a call takes, whole, on the CPU in native code, with all that the compiler and BLAS make of
it: that is measured, in the first calls of a kind (arguments of the same types and extents, the same integers). Nothing
that takes less than `LEAST` is shared, and no device has what takes less than `ALONE`. Else a dry run says what a team
would take, where the CPU is as fast as has been measured; unless that is hopeless, the team is tried, and its devices
without the CPU, and the fastest way has all later calls of that kind. What has been decided is kept for the function,
the size class and the devices, also on the disk (`choices`).

Equal calls give the same bits: where parts are summed on their own, all ways are tried within the first call, whose
result is that of the way that is chosen. Calls that store into arguments can't be done twice: they take turns in the
first calls, and go to the team at once where they also have such sums.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.hybrid.devices import choices
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.dry_run import DryRun
from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.execute.run_record import RegionRun
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.team_plan import TeamPlan
from parakeet_py.hybrid.residency.blocks import HOST
from parakeet_py.typed_ir.ir import Var

_ARRAY = np.ndarray
MOST = 1024  # kinds of calls that are remembered
ENOUGH = 100  # regions that are rehearsed: in loops of many steps, the rest is taken to be like them


LEAST = 1e-3  # seconds of native code that are worth sharing
ALONE = 5e-4  # seconds that devices may save alone: what they need of the host is not much less
TURNS = 3  # calls that are measured, each way, the first of which compiles
CLOSE_TURNS = 8  # of calls whose ways take times within a factor of CLEAR: a machine that does other things misleads
CLEAR = 2.0
HOPELESS = 1.5  # a team that is foreseen to take so many times as long is not tried
BETTER = 0.95  # another way than native code must take at most so much of its time
NATIVE, SHARED, DEVICES = range(3)  # the ways: by the CPU alone, by all of the team, by its devices
Native = Callable[[], Any]
Shared = Callable[[Team], Any]


class Choice:
    """What is known of one kind of calls.

    Attributes
    ----------
    seconds, runs : the least seconds of each way, and how often it has run
    way : that is taken, once it is decided
    small : the CPU has it, and would have calls that are no larger
    factor : how many times faster native code is than is assumed of the CPU
    """

    __slots__ = ("factor", "runs", "seconds", "small", "way")

    def __init__(self) -> None:
        self.seconds = [float("inf")] * 3
        self.runs = [0, 0, 0]
        self.way: int | None = None
        self.small = False
        self.factor = 1.0


class CpuOnlyCalls:
    """What one function's teams leave to the CPU."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Choice] = {}
        self._here: dict[tuple[Any, ...], int] = {}  # calls of kinds that the CPU has, under these settings
        self._settings: Any = None

    def has(self, args: Sequence[Any], settings: Any) -> int:
        """Which call of its kind this is that the CPU has under these settings; 0 if it has not."""
        if settings is not self._settings:
            return 0
        kinds = _kinds(args)
        count = self._here.get(kinds, 0)
        if count:
            self._here[kinds] = count + 1
        return count

    def note(self, args: Sequence[Any], settings: Any) -> None:
        """The CPU has had a call under these settings."""
        if settings is not self._settings or len(self._here) >= MOST:
            self._settings, self._here = settings, {}
        self._here[_kinds(args)] = 1

    def are_small(self, args: Sequence[Any], place: object) -> bool:
        """Whether the CPU has a call, and would have those that are no larger."""
        found = self._known.get(_key(args, place)) if type(place) is Team else None
        return found is not None and found.small

    def takes(self, args: Sequence[Any], place: object) -> bool:
        """Whether it is known that a call on a device or team goes to the CPU."""
        if type(place) is not Team or not place.cpu:
            return False
        found = self._known.get(_key(args, place))
        return found is not None and found.way == NATIVE

    @hidden
    def run(
        self, args: Sequence[Any], team: Team, plan: TeamPlan, leaves: Sequence[Any], native: Native, shared: Shared
    ) -> Any:
        """The result of a call, natively on the CPU or on the team; all ways are tried where nothing is known of it."""
        if not team.cpu or team.split is not None or not team.devices:
            plan.cpu_factor = 1.0
            return shared(team)
        key = _key(args, team)
        choice = self._known.get(key)
        if choice is None:
            if len(self._known) >= MOST:
                self._known.clear()
            choice = self._known[key] = Choice()
            known = choices.known(plan.identity, _sizes(args), team.name)
            if known is not None:
                choice.way, choice.factor = known
            elif _stays(plan, team, leaves):
                choice.way, choice.small = NATIVE, True
            elif plan.config.deterministic and plan.regroups and plan.shows:
                choice.way = SHARED
        plan.cpu_factor = choice.factor
        trial = _Trial(choice, args, team, plan, leaves, [native, *_on_devices(team, shared)])
        return trial.result() if choice.way is None else trial.ways[choice.way]()


def _on_devices(team: Team, shared: Shared) -> list[Native]:
    """What calls on all of a team, and on its devices, are done by."""
    return [partial(shared, team), partial(shared, replace(team, only=team.members[1:]))]


class _Trial:
    """A call of a kind of which it is not known yet which way it should go."""

    def __init__(
        self,
        choice: Choice,
        args: Sequence[Any],
        team: Team,
        plan: TeamPlan,
        leaves: Sequence[Any],
        ways: Sequence[Native],
    ) -> None:
        self.choice, self.args, self.team, self.plan, self.leaves, self.ways = choice, args, team, plan, leaves, ways
        self.clock = _clock(team)

    @hidden
    def result(self) -> Any:
        """The result of the call; it may be done several times, if that cannot be observed."""
        again = not self.plan.shows
        found: dict[int, Any] = {}
        while True:
            way = self._next()
            found[way] = self._timed(way)
            chosen = self._decided()
            if not again:
                return found[way]
            if chosen is not None:
                break
        return found[chosen] if chosen in found else self.ways[chosen]()

    def _next(self) -> int:
        """The way to measure next: one after the other at first, in turns where they are close."""
        runs, ways = self.choice.runs, (NATIVE, *self._others())
        few = (way for way in ways if runs[way] < TURNS)
        return next(few, min(ways, key=runs.__getitem__))

    def _others(self) -> tuple[int, ...]:
        """The ways besides native code that may be taken."""
        return (DEVICES,) if self.choice.seconds[NATIVE] < LEAST else (SHARED, DEVICES)

    def _is_measured(self) -> bool:
        """Whether all ways have been measured often enough to choose one."""
        choice, others = self.choice, self._others()
        native = choice.seconds[NATIVE]
        close = native / CLEAR < min(choice.seconds[way] for way in others) < native * CLEAR
        return min(choice.runs[way] for way in (NATIVE, *others)) >= (CLOSE_TURNS if close else TURNS)

    @hidden
    def _timed(self, way: int) -> Any:
        choice = self.choice
        start = self.clock()
        found = self.ways[way]()
        choice.seconds[way] = min(choice.seconds[way], self.clock() - start)
        choice.runs[way] += 1
        return found

    def _decided(self) -> int | None:
        """The way to take, if that is known now."""
        choice, plan = self.choice, self.plan
        native = choice.seconds[NATIVE]
        if native < ALONE:
            choice.way, choice.small = NATIVE, True  # which is found out soon enough the next time
        elif choice.runs == [TURNS, 0, 0]:
            plan.cpu_factor = 1.0
            alone = foreseen(plan, Team((), True), self.leaves)
            if alone:  # else elements decide what is done
                plan.cpu_factor = choice.factor = alone / native
                team = self.team if SHARED in self._others() else replace(self.team, only=self.team.members[1:])
                if foreseen(plan, team, self.leaves) > HOPELESS * native:
                    self._keep(NATIVE)
        elif self._is_measured():
            best = min(self._others(), key=choice.seconds.__getitem__)
            self._keep(best if choice.seconds[best] < BETTER * native else NATIVE)
        return choice.way

    def _keep(self, way: int) -> None:
        self.choice.way = way
        self.choice.small = way == NATIVE and self.choice.seconds[NATIVE] < LEAST
        choices.keep(self.plan.identity, _sizes(self.args), self.team.name, way, self.choice.factor)


def _clock(team: Team) -> Callable[[], float]:
    """What measures calls: a device of set speed has a clock of its own, in which the host's time counts, too."""
    own = (getattr(device, "now", None) for device in team.devices)
    return next((clock for clock in own if clock is not None), time.perf_counter)


def _sizes(args: Sequence[Any]) -> tuple[Any, ...]:
    """The size class of a call: arguments whose sizes are within a factor of two are alike."""
    return tuple(
        (value.dtype.str, value.ndim, value.nbytes.bit_length()) if type(value) is _ARRAY else type(value).__name__
        for value in args
    )


def _key(args: Sequence[Any], team: Team) -> tuple[Any, ...]:
    return team, *_kinds(args)  # there is one object for each setting


def _kinds(args: Sequence[Any]) -> tuple[Any, ...]:
    kinds: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is _ARRAY:
            kinds += value.dtype, value.shape
        else:
            kinds.append(value if kind is int else kind)
    return tuple(kinds)


class _Brief(DryRun):
    """A dry run that ends as soon as a device has a part."""

    def cut(self, region: Region, values: dict[Var, Any]) -> Parts | None:
        parts = super().cut(region, values)
        if len(self.runs) >= ENOUGH or not _alone(self.runs[-1]):
            raise RuntimeError("this is all that matters")
        return parts


def _alone(run: RegionRun) -> bool:
    return run.by == HOST and all(who == HOST for who, _, _ in run.ranges)


def foreseen(plan: TeamPlan, team: Team, leaves: Sequence[Any]) -> float:
    """The seconds of a call on a team, as far as they can be known; 0 if they can't."""
    call = plan.estimates(plan, team)
    return float(call.seconds_of_call(leaves))


def _stays(plan: TeamPlan, team: Team, leaves: Sequence[Any]) -> bool:
    """Whether only the CPU has a part in a call, or in as much of it as is worth looking at."""
    call = _Brief(plan, team)
    call.steady_joins = {division.join for region in plan.regions for division in region.divisions}
    known = call.known(leaves)
    return (known or len(call.runs) >= ENOUGH) and all(map(_alone, call.runs))
