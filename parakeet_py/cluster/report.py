"""What a call on Dask arrays does: regions, how they are cut, tasks, and bytes that tasks take from other chunks."""

from __future__ import annotations

import itertools
from typing import Any

from parakeet_py.base.fast_dataclass import record

MOST = 40  # regions that are shown


@record
class RegionReport:
    """One region in a call.

    Attributes
    ----------
    region, line : its name, and where it is in the source
    blocks : into how many blocks each axis of its index space is cut
    join : how results of blocks are joined
    tasks : of Dask's that it has become
    moved : bytes of other chunks than the one that a task is next to
    """

    region: str
    line: int
    blocks: tuple[int, ...]
    join: str
    tasks: int
    moved: int

    def __str__(self) -> str:
        grid = " x ".join(map(str, self.blocks)) or "1"
        where = f"{self.region} (line {self.line})"
        return f"{where}: {grid} blocks, {self.join}; {self.tasks} tasks, {self.moved} bytes moved"


@record
class ClusterReport:
    """A call on Dask arrays.

    Attributes
    ----------
    regions : in the order in which they run
    rounds : how often the client has to wait for a number before it knows what comes next
    tasks : in all
    """

    regions: tuple[RegionReport, ...]
    rounds: int
    tasks: int
    timeline: Any = None

    @property
    def moved(self) -> int:
        """Bytes that tasks take from other chunks than the one that they are next to."""
        return sum(region.moved for region in self.regions)

    def __str__(self) -> str:
        lines = [f"runs on Dask: {self.tasks} tasks, {self.moved} bytes moved, {self.rounds} rounds on the client"]
        groups = [(text, len(list(alike))) for text, alike in itertools.groupby(map(str, self.regions))]
        lines += [f"  {text}" + (f", {times} times" if times > 1 else "") for text, times in groups[:MOST]]
        if len(groups) > MOST:
            lines.append(f"  and {len(groups) - MOST} more")
        return "\n".join(lines)
