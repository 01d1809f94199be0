"""Calls that a team leaves to its CPU alone: they run as if no other device had been named.

Small work stays on the CPU's threads, and then the plan of a team, its regions and parts have nothing to do but take
time. So the first of calls that are alike (arguments of the same types and extents, the same integers) is rehearsed; if
only the CPU would get a part, it and all like it go to the native code of the whole function. That is decided by
what does not change between equal calls, no measured seconds and no bytes that have stayed on devices, so that equal
calls give the same bits. Calls in which elements decide what comes next are the team's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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


class Left:
    """What one function's teams leave to the CPU."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], bool] = {}

    def takes(self, args: Sequence[Any], place: object) -> bool:
        """Whether it is known that a call on a device or team goes to the CPU."""
        return type(place) is Team and place.cpu and self._known.get(_key(args, place), False)

    def decide(self, args: Sequence[Any], team: Team, plan: TeamPlan, leaves: Sequence[Any]) -> bool:
        """Whether a call goes to the CPU."""
        key = _key(args, team)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = team.cpu and team.split is None and _stays(plan, team, leaves)
        return found


def _key(args: Sequence[Any], team: Team) -> tuple[Any, ...]:
    kinds: list[Any] = [team]  # there is one object for each setting
    for value in args:
        kind = type(value)
        if kind is _ARRAY:
            kinds += value.dtype.char, value.shape
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


def _stays(plan: TeamPlan, team: Team, leaves: Sequence[Any]) -> bool:
    """Whether only the CPU has a part in a call, or in as much of it as is worth looking at."""
    call = _Brief(plan, team)
    call.steady_joins = {division.join for region in plan.regions for division in region.divisions}
    known = call.known(leaves)
    return (known or len(call.runs) >= ENOUGH) and all(map(_alone, call.runs))
