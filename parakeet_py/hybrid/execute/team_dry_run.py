"""A call on a team without elements: which regions it cuts how, and which bytes move, before anything runs.

Reports, the choice of calls that stay on the CPU and the estimates of tasks are made from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.execute.team_run import DividedCall
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.team_plan import DividedPlan
from parakeet_py.hybrid.residency.blocks import HOST, Memories, SharedArray, new_array
from parakeet_py.hybrid.residency.team_arguments import Held
from parakeet_py.typed_ir.ir import Compress, Var

MOST = 1000  # regions that are rehearsed: the steps before them show what those of longer loops do


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
