"""What a call on a team has done, or would do: which regions, cut how, who had which part, which bytes have moved.

A call leaves a `TeamRun` with its plan, a rehearsal makes the same without running anything; `explain()` shows both.
"""

from __future__ import annotations

from typing import NamedTuple

from parakeet_py.hybrid.devices.team import Range
from parakeet_py.hybrid.partition.division import Bounds
from parakeet_py.hybrid.residency.blocks import HOST


class Schedule(NamedTuple):
    """Who has which task of a group.

    Attributes
    ----------
    group : its name
    lines : of the source, of each task
    members : the memories of those who share each task
    seconds, shared : foreseen, like this and one after the other on the whole team
    """

    group: str
    lines: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]
    seconds: float
    shared: float


class RegionRun(NamedTuple):
    """What has become of a region in a call.

    Attributes
    ----------
    region : its name
    line : in the source
    join, axis : how it was cut; "whole" and -1 if it was not
    ranges : who had which part
    across : the ranges of the second axis, of tiles
    by : who had all of it, if it was not cut
    """

    region: str
    line: int
    join: str
    axis: int
    ranges: tuple[Range, ...]
    across: tuple[Bounds, ...] = ()
    by: int = HOST


class TeamRun(NamedTuple):
    """What a call has done.

    Attributes
    ----------
    members : names by the numbers of their memories
    regions : in order
    moved : bytes by (from, to)
    tasks : those that were run at the same time
    """

    members: tuple[str, ...]
    regions: tuple[RegionRun, ...]
    moved: dict[tuple[int, int], int]
    tasks: tuple[Schedule, ...] = ()
