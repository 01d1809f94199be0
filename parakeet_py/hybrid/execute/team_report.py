"""What a call on a team does: who, which ranges, how the parts are joined, which bytes move. For `explain()`.

Most of it is known before anything runs: the host part is rehearsed with arrays that have extents but no elements. The
rehearsal ends where an element, or how many there are, decides what comes next, and after many regions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.devices.timeline import Timeline
from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.execute.run_record import RegionRun, TeamRun
from parakeet_py.hybrid.execute.task_calls import Schedule
from parakeet_py.hybrid.execute.team_calls import divided_plan_of
from parakeet_py.hybrid.execute.team_run import DividedCall
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.team_plan import DividedPlan
from parakeet_py.hybrid.residency.blocks import HOST, Memories, SharedArray, new_array
from parakeet_py.hybrid.residency.team_arguments import Held
from parakeet_py.interpreters import values_of
from parakeet_py.record import record
from parakeet_py.typed_ir.ir import Compress, Var
from parakeet_py.typed_ir.types import Array

MOST = 1000  # regions that are rehearsed: what steps of longer loops do is told by those before them


class _Unknown(Exception):
    """What comes next depends on elements."""


class _Enough(Exception):
    """What comes next need not be known."""


class Rehearsal(DividedCall):
    """A call without elements: what it does before the first that decides what comes next."""

    def __init__(self, plan: DividedPlan, team: Team, held: Held | None) -> None:
        super().__init__(plan, team, None, held)
        self.memories = Memories(team.devices, rehearsal=True)
        self.rehearsed = itertools.count(1)

    def known(self, leaves: Sequence[Any]) -> bool:
        """Whether all that the call does is known."""
        kinds = [param.type for param in self.plan.function.params]
        given = [
            np.asarray(leaf) if isinstance(kind, Array) else leaf for leaf, kind in zip(leaves, kinds, strict=True)
        ]
        try:
            self.run(given)
        except Exception:  # unknown, or the call raises: what it has done so far is what is known
            return False
        return True

    def region(self, region: Region, values: dict[Var, Any]) -> list[Any]:
        if next(self.rehearsed) > MOST:
            raise _Enough
        parts = self.cut(region, values)
        self.foresee(region, parts, values)
        if isinstance(region.op, Compress) or (parts is not None and parts.division.join == "histogram"):
            raise _Unknown
        if parts is None:
            needed, written = self.touched_whole(region, values)
            for root, spans in needed.items():
                root.bring(self.team.first, spans)
            for root, spans in written.items():
                root.wrote(self.team.first, spans)
            return [self._result(region, out, values) for out in region.outs]
        parts.make_results()
        for (who, _, _), needed in zip(parts.ranges, parts.needed, strict=True):
            for root, spans in needed.items():
                root.bring(who, spans)
        for (who, _, _), written in zip(parts.ranges, parts.written, strict=True):
            for root, spans in written.items():
                root.wrote(who, spans)
        if parts.division.join != "combine":
            return [*parts.whole]
        results = [self._result(region, out, values) for out in region.outs]
        sizes = sum(array.host.nbytes for array in results if array is not None)
        for who, _, _ in parts.ranges:
            if who != HOST and sizes:
                self.memories.count(who, HOST, sizes)
        return results

    def foresee(self, region: Region, parts: Parts | None, values: dict[Var, Any]) -> None:
        """A region is next, cut like this, or as it is."""

    def _result(self, region: Region, out: Var, values: dict[Var, Any]) -> Any:
        """An array like a region's result; scalars have no value."""
        if not isinstance(out.type, Array):
            return None
        shape = tuple(self.extent(extent, values) for extent in region.op.extents)  # type: ignore[union-attr]
        return new_array(self.memories, out.type.dtype, shape, out.type.layout)

    def load(self, array: SharedArray, indices: tuple[int, ...]) -> Any:
        raise _Unknown

    def store(self, array: SharedArray, indices: tuple[int, ...], value: Any) -> None:
        array.root.wrote(HOST, array.spans(tuple((index, index + 1) for index in indices)))

    def hand_back(self, site: int, args: tuple[Any, ...]) -> list[Any]:
        raise _Unknown

    def leaving(self, value: Any, kind: object) -> Any:
        return value.on_host() if isinstance(value, SharedArray) else None


@record
class TeamReport:
    """A call on a team.

    Attributes
    ----------
    members : who is in it
    reason : why the ranges are what they are
    foreseen : what the call does, as far as it is known without elements
    complete : whether that is all
    last_run : what the last call of this signature has done
    timeline : of the last call of this signature that was recorded, with `options(timeline=True)`
    """

    members: tuple[str, ...]
    reason: str
    foreseen: TeamRun
    complete: bool
    last_run: TeamRun | None
    timeline: Timeline | None = None

    def __str__(self) -> str:
        enough = len(self.foreseen.regions) >= MOST
        more = (
            ""
            if self.complete
            else f", and what follows {MOST} regions"
            if enough
            else ", and what depends on elements"
        )
        lines = [f"runs on {' and '.join(self.members)}: {self.reason}"]
        members = self.foreseen.members
        texts = [describe_region(run, members) for run in self.foreseen.regions]
        texts += [describe_tasks(schedule, members) for schedule in self.foreseen.tasks]
        for text, alike in itertools.groupby(texts):
            times = len(list(alike))
            lines.append(f"  {text}" + (f", {times} times" if times > 1 else ""))
        lines.append(f"before the run: {_moved(self.foreseen)}{more}")
        if self.last_run is not None:
            lines.append(f"last run: {_moved(self.last_run)}")
        return "\n".join(lines)


def describe_region(run: RegionRun, members: Sequence[str]) -> str:
    """One region: who has which range of which axis."""
    where = f"{run.region} (line {run.line})"
    if not run.ranges:
        return f"{where}: not cut, {members[run.by]}"
    axes = f"axes {run.axis} and {run.axis + 1}" if run.across else f"axis {run.axis}"
    second = [f" x [{first}, {last})" for first, last in run.across] or [""] * len(run.ranges)
    ranges = ", ".join(
        f"{members[who]} [{lo}, {hi}){more}" for (who, lo, hi), more in zip(run.ranges, second, strict=True)
    )
    return f"{where}: {axes} {ranges}; {run.join}"


def describe_tasks(schedule: Schedule, members: Sequence[str]) -> str:
    """Tasks that are run at the same time: who has which, and what that is worth."""
    tasks = []
    for lines, some in zip(schedule.lines, schedule.members, strict=True):
        which = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        tasks.append(f"{which} on {' and '.join(members[who] for who in some)}")
    foreseen = f"foreseen {1e3 * schedule.seconds:.3g} ms, {1e3 * schedule.shared:.3g} ms one after the other"
    return f"at the same time: {'; '.join(tasks)} ({foreseen})"


def _moved(run: TeamRun) -> str:
    if not run.moved:
        return "no byte moves"
    return ", ".join(
        f"{size} bytes from {run.members[source]} to {run.members[target]}"
        for (source, target), size in sorted(run.moved.items())
    )


def team_report(compiled: Any, normal: Sequence[Any], team: Team, held: Held | None = None) -> TeamReport:
    """What a call in positional form would do on a team, which may hold arguments."""
    plan = divided_plan_of(compiled)
    call = Rehearsal(plan, team, held)
    complete = call.known(values_of(compiled, normal))
    foreseen = call.done()
    members = foreseen.members if team.cpu else foreseen.members[1:]
    return TeamReport(members, team.reason, foreseen, complete, plan.last_run, plan.timeline)
