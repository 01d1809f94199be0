"""How long a task will take, found out without running it: its host part is rehearsed, and the seconds are added up.

Only what does not change between equal calls counts: operations by the rates that members are known to have, bytes
that are missing by their links, and starts. If what was measured counted, equal calls would give other last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from parakeet_py.hybrid.execute.dry_run import DryRun, Enough
from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.execute.run_record import Schedule
from parakeet_py.hybrid.plan.part_cost import Speed, device_speed
from parakeet_py.hybrid.plan.placement_cost import beginning, operations_in_turn, operations_of
from parakeet_py.hybrid.residency.blocks import HOST, Root, SharedArray, Written
from parakeet_py.hybrid.residency.byte_ranges import NOTHING, difference, size_of
from parakeet_py.typed_ir.ir import Var

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.team import Team
    from parakeet_py.hybrid.partition.regions import Region
    from parakeet_py.hybrid.partition.tasks import Task
    from parakeet_py.hybrid.plan.team_plan import TeamPlan

ENOUGH = 60  # regions of a task: in loops of many steps, the rest is taken to be like them
MANY = 1000  # regions of a call, likewise
ONE_THREAD = 5e7  # scalar operations in a second of one thread of a device, at most


class TaskEstimates(DryRun):
    """A rehearsal of tasks of a call, by some members of its team, from where bytes are now on."""

    def __init__(self, plan: TeamPlan, team: Team) -> None:
        super().__init__(plan, team)
        self.steady_joins = {division.join for region in plan.regions for division in region.divisions}
        self.copies: dict[Root, Root] = {}
        self.seconds = 0.0
        self.left = 0

    def seconds_of(self, task: Task, args: Sequence[Any]) -> float:
        """The seconds of a task, or of as much of it as can be known or is worth looking at."""
        before, self.left = self.seconds, ENOUGH
        given = [self._copy(value) if isinstance(value, SharedArray) else value for value in args]
        with suppress(Exception):  # unknown, or the task raises: what it has done so far is what is known
            task.host(self, *given)
        return self.seconds - before

    def seconds_of_call(self, leaves: Sequence[Any]) -> float:
        """The seconds of a whole call; 0 if it isn't known what it does."""
        self.left = MANY
        return self.seconds if self.known(leaves) or not self.left else 0.0

    def _copy(self, array: SharedArray) -> SharedArray:
        """An array whose bytes are where they are now, but nothing that is done with it moves them."""
        root = self.copies.get(array.root)
        if root is None:
            root = self.copies[array.root] = Root(self.memories, None, array.root.size, (), False)
            root.valid = dict(array.root.valid)
        return SharedArray(root, array.layout, array.offset)

    def scheduled(self, schedule: Schedule) -> None:
        super().scheduled(schedule)
        self.seconds += schedule.seconds

    def foresee(self, region: Region, parts: Parts | None, values: dict[Var, Any]) -> None:
        if not self.left:
            raise Enough
        self.left -= 1
        if parts is None:
            who = self.team.first
            needed, _ = self.touched_whole(region, values)
            speed = self._speed(who)
            rate = speed.operations / self.threads if who == HOST else min(speed.operations, ONE_THREAD)
            operations = operations_in_turn(self, region.op, values)
            self.seconds += speed.start + operations / rate + self._bringing(needed, who)
            return
        times = 2 if parts.division.join == "scan" and len(parts.ranges) > 1 else 1
        self.seconds += max(
            self._bringing(parts.needed[number], who)
            + times * self._computing(operations_of(self, parts.division, values, who) * parts.points(number), who)
            for number, (who, _, _) in enumerate(parts.ranges)
        )

    def _computing(self, operations: float, who: int) -> float:
        speed = self._speed(who)
        return beginning(speed, who) + operations / speed.operations

    def _speed(self, who: int) -> Speed:
        return self.plan.cpu_speed(self.threads) if who == HOST else device_speed(self.team.devices[who - 1])

    def _bringing(self, needed: Written, who: int) -> float:
        missing = [size_of(difference(spans, root.valid.get(who, NOTHING))) for root, spans in needed.items()]
        speed = self._speed(who)
        if not speed.link or not any(missing):
            return 0.0
        return sum(missing) / speed.link + sum(map(bool, missing)) * speed.start
