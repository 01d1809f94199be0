"""What the parts of a call on a team know of it: a protocol that `execution.Execution` fulfils.

Costs, parts, tasks and estimates are written against this file, so that none of them imports the executor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from parakeet_py.hybrid.devices.team import Range, Team
from parakeet_py.hybrid.execute.part_future import Started
from parakeet_py.hybrid.execute.run_record import RegionRun, Schedule
from parakeet_py.hybrid.partition.access import Part, Touched
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.tasks import Task
from parakeet_py.hybrid.plan.team_plan import TeamPlan
from parakeet_py.hybrid.residency.blocks import Memories, SharedArray, Written
from parakeet_py.hybrid.residency.windows import Windows
from parakeet_py.typed_ir.ir import Dim, Function, Operand, Var


class TeamCall(Protocol):
    """A call in progress.

    Attributes
    ----------
    threads : of the CPU
    runs : what has become of regions so far
    products : how products of some extents have been cut, by their extents
    """

    plan: TeamPlan
    team: Team
    threads: int
    runs: list[RegionRun]
    products: dict[tuple[int, int, int], Any]

    @property
    def memories(self) -> Memories:
        """Those of the team."""

    def extent(self, extent: Operand | Dim, values: Mapping[Var, Any]) -> int:
        """An extent as a number."""

    def touched(self, touched: Touched, part: Part, values: Mapping[Var, Any]) -> tuple[Written, Written]:
        """The bytes that a part needs, and those that it writes."""

    def ranges(self, division: Division, values: dict[Var, Any], remember: bool = True) -> tuple[Range, ...]:
        """Which member gets which range of a region."""

    def steady(self, division: Division) -> bool:
        """Whether a way to cut may depend only on what does not change between equal calls."""

    def within(self, task: Task, team: Team | None = None) -> Self:
        """This call as it goes on in a task, on the whole team or on a part of it."""

    def perform(self, values: Sequence[Any]) -> Sequence[Any]:
        """Run the host part."""

    def scheduled(self, schedule: Schedule) -> None:
        """Tasks are about to be run at the same time."""

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> SharedArray:
        """A new array."""

    def prepare(
        self, who: int, part: Function, args: Sequence[Any], names: Sequence[Var | None], stored: set[Var]
    ) -> None:
        """Compile a part for a member."""

    def launch_part(
        self,
        who: int,
        part: Function,
        args: Sequence[Any],
        names: Sequence[Var | None],
        stored: set[Var],
        windows: Windows | None = None,
    ) -> Started:
        """Start a part on a member."""
