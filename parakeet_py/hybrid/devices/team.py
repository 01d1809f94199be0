"""Who shares the work of a call: the CPU's threads and devices, and which part of an index space each gets.

Parts are contiguous: the CPU has the front of the space, the devices the back, in their order. How much each gets is
decided by what it would cost (`plan.part_cost`). With a forced `split` that is the share of the devices together, which
they divide evenly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.plan.part_cost import Cost, device_speed, shares

PART = 3e-4  # seconds that one more part takes of the host: measured, `make bench-host`
Range = tuple[int, int, int]  # of whom (the number of its memory), lo, hi


@dataclass(frozen=True)
class Team:
    """Those that share the work of a call.

    Attributes
    ----------
    devices : the devices; their memories are 1, 2...
    cpu : whether the CPU takes part
    split : the share of the devices, None if it is not set
    only : the memories of those that share a task; None: all
    """

    devices: tuple[Device, ...]
    cpu: bool = True
    split: float | None = None
    only: tuple[int, ...] | None = None

    @property
    def alone(self) -> Any:
        """The device (a `Machine`) that has all of the work; None if several share it."""
        return self.devices[0] if len(self.devices) == 1 and not self.cpu else None

    @property
    def name(self) -> str:
        """The names of the members, as settings have them."""
        return ",".join([*(["cpu"] if self.cpu else []), *(device.name for device in self.devices)])

    @property
    def members(self) -> tuple[int, ...]:
        """Whose memories take part."""
        return tuple(range(0 if self.cpu else 1, len(self.devices) + 1))

    @property
    def first(self) -> int:
        """Who does what cannot be shared: the CPU, else the fastest device."""
        members = self.only or self.members
        if len(members) == 1 or not members[0]:
            return members[0]
        return max(members, key=lambda who: device_speed(self.devices[who - 1]).operations)

    @property
    def reason(self) -> str:
        """Why the ranges are what they are."""
        if self.split is not None:
            return f"split={self.split:g} is forced"
        return "each gets what it is predicted to finish at the same time as the others"

    def ranges(self, extent: int, costs: Callable[[], Sequence[Cost]]) -> tuple[Range, ...]:
        """Which member gets which part of an axis; none gets an empty one.

        `costs` gives what it would cost each member, the CPU first if it is one; asked if the split is not forced.
        """
        if self.only is not None or self.split is None:
            members = self.members
            working = members if self.only is None else self.only
            if len(working) > 1:
                known = dict(zip(members, costs(), strict=True))
                counts = dict(zip(working, self._shares(extent, [known[who] for who in working]), strict=True))
            else:
                counts = {working[0]: extent}
            return self.from_bounds([*itertools.accumulate(counts.get(who, 0) for who in range(members[-1] + 1))])
        if not self.devices:  # all have been lost
            return self.from_bounds((extent,))
        front = extent - round(extent * self.split) if self.cpu else 0
        return self.from_bounds((front, *evenly(front, extent, len(self.devices))))

    def _shares(self, extent: int, costs: Sequence[Cost]) -> list[int]:
        """How many indices each gets; one alone all, if the others would save less than parts take of the host."""
        found = shares(extent, costs)
        working = sum(count > 0 for count in found)
        if not self.cpu or working < 2:
            return found
        shared = max(cost.of(count) for cost, count in zip(costs, found, strict=True)) + (working - 1) * PART
        best = min(range(len(costs)), key=lambda who: costs[who].of(extent))
        if costs[best].of(extent) > shared:
            return found
        return [extent if who == best else 0 for who in range(len(costs))]

    def from_bounds(self, bounds: Sequence[int]) -> tuple[Range, ...]:
        """The ranges that end at these places: the CPU's (0, if it has none), then each device's."""
        starts = (0, *bounds[:-1])
        found = zip(range(len(bounds)), starts, bounds, strict=True)
        return tuple((memory, lo, hi) for memory, lo, hi in found if lo < hi)


def team_of(device: Any) -> Team:
    """A device alone: there is one object for each."""
    return _team_of(device)


@lru_cache(maxsize=64)
def _team_of(device: Any) -> Team:
    return Team((device,), cpu=False)


def evenly(start: int, stop: int, parts: int) -> tuple[int, ...]:
    """Where `parts` parts of [start, stop) end, as equal as they can be."""
    return tuple(start + (stop - start) * (number + 1) // parts for number in range(parts))
