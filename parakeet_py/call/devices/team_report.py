"""What a call on a team does: who, which ranges, how the parts are joined, which bytes move. For `explain()`.

Most of it is known before anything runs: the host part is rehearsed with arrays that have extents but no elements. The
rehearsal ends where an element, or how many there are, decides what comes next, and after many regions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.call.devices.calls import team_plan_of
from parakeet_py.call.give_back import values_of
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.devices.timeline import Timeline
from parakeet_py.hybrid.execute.dry_run import MOST, DryRun
from parakeet_py.hybrid.execute.run_record import RegionRun, Schedule, TeamRun


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


def team_report(compiled: Any, normal: Sequence[Any], team: Team) -> TeamReport:
    """What a call in positional form would do on a team of several."""
    plan = team_plan_of(compiled)
    call = DryRun(plan, team)
    complete = call.known(values_of(compiled, normal))
    foreseen = call.done()
    members = foreseen.members if team.cpu else foreseen.members[1:]
    return TeamReport(members, team.reason, foreseen, complete, plan.last_run, plan.timeline)
