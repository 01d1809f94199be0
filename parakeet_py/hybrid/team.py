"""Who shares the work of a call: the CPU's threads and devices, and which part of an index space each gets.

Parts are contiguous: the CPU has the front of the space, the devices the back, in their order. With a forced `split`
that is the share of the devices together, which they divide evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parakeet_py.hybrid.device import Device
from parakeet_py.hybrid.residency import HOST

Range = tuple[int, int, int]  # of whom (the number of its memory), lo, hi


@dataclass(frozen=True)
class Team:
    """Those that share the work of a call.

    Attributes
    ----------
    devices : the devices; their memories are 1, 2...
    cpu : whether the CPU takes part
    split : the share of the devices, None if nobody has said
    """

    devices: tuple[Device, ...]
    cpu: bool = True
    split: float | None = None

    @property
    def first(self) -> int:
        """Who does what cannot be shared."""
        return HOST if self.cpu else 1

    @property
    def reason(self) -> str:
        """Why the ranges are what they are."""
        if self.split is not None:
            return f"split={self.split:g} is forced"
        return "each gets an equal share"

    def ranges(self, extent: int) -> tuple[Range, ...]:
        """Who gets which part of an axis; nobody gets an empty one."""
        count = len(self.devices)
        share = self.split
        if share is None:
            share = count / (count + 1)
        front = extent - round(extent * share) if self.cpu else 0
        return self.from_bounds((front if self.cpu else 0, *evenly(front, extent, count)))

    def from_bounds(self, bounds: Sequence[int]) -> tuple[Range, ...]:
        """The ranges that end at these places: the CPU's (0, if it has none), then each device's."""
        starts = (0, *bounds[:-1])
        found = zip(range(len(bounds)), starts, bounds, strict=True)
        return tuple((memory, lo, hi) for memory, lo, hi in found if lo < hi)


def evenly(start: int, stop: int, parts: int) -> tuple[int, ...]:
    """Where `parts` parts of [start, stop) end, as equal as they can be."""
    return tuple(start + (stop - start) * (number + 1) // parts for number in range(parts))
