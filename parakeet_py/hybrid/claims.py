"""Regions whose iterations differ in cost: members claim ranges as they become free.

What a part of such a region takes cannot be foretold from its length: a while loop ends sooner at some points than at
others, rows have different numbers of elements. So nobody gets a part beforehand. Whoever is free first claims a range
next to what has been claimed: the CPU at the front, devices at the back, so everything that anybody has is in few
pieces and all that is left is one. A claim is a share of what is left, by the speeds seen so far (guided
self-scheduling; Polychronopoulos and Kuck, IEEE Trans. Computers 36(12), 1987, with factoring's reserve for what the
average hides; Hummel, Schonberg and Flynn, CACM 35(8), 1992). It becomes smaller towards the end, where it decides how
far apart the members finish.

Who computes an element does not change it: only regions whose parts fill ranges of results are claimed, and what parts
may write is compared for all grains of the index space before the first starts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from parakeet_py.hybrid.access import Part
from parakeet_py.hybrid.choice import costs_of
from parakeet_py.hybrid.cost import Cost, cpu_speed, device_speed
from parakeet_py.hybrid.device import Machine
from parakeet_py.hybrid.division import Division
from parakeet_py.hybrid.losses import Lost
from parakeet_py.hybrid.parts import Parts, Written, add
from parakeet_py.hybrid.residency import HOST
from parakeet_py.hybrid.spans import intersection
from parakeet_py.hybrid.streaming import stream
from parakeet_py.hybrid.team import Range
from parakeet_py.typed_ir.ir import Scatter

if TYPE_CHECKING:
    from parakeet_py.hybrid.executor import DividedCall

GRAINS = 512  # pieces that an index space is divided into, at most; a claim is some of them
RESERVE = 4  # a claim is one part in so many of what its member would get if all went on as it has
WORTH = 8.0  # a claim takes at least so many times as long as starting it
DOUBT = 2.0  # nobody claims what may take so many times as long as foreseen, if all others would be done by then


class _Lane:
    """A member that claims.

    Attributes
    ----------
    free_at : when it is done with what it has claimed, as far as that is known, in seconds from the beginning
    """

    def __init__(self, call: DividedCall, division: Division, who: int, cost: Cost) -> None:
        self.who, self.cost = who, cost
        self.begins = (cpu_speed(call.threads) if who == HOST else device_speed(call.team.devices[who - 1])).start
        self.device = None if who == HOST else cast(Machine, call.team.devices[who - 1])
        self.name = "cpu" if self.device is None else self.device.name
        self.depth = 2 if self.device is not None and self.device.asynchronous else 1  # so many claims wait for it
        self.learned = call.plan.rates.cost(id(division.part), self.name) is not None
        self.waiting: deque[tuple[int, Any, Any]] = deque()
        self.done, self.seconds = 0, 0.0

    @property
    def each(self) -> float:
        """Seconds for an index, as seen, or as foreseen before anything has been."""
        return self.seconds / self.done if self.done else max(self.cost.each, 1e-15)

    @property
    def free_at(self) -> float:
        return self.seconds + self.each * sum(count for count, _, _ in self.waiting)

    def settle(self, most: int) -> None:
        """Wait until at most so many claims are unfinished."""
        while len(self.waiting) > most:
            count, start, end = self.waiting.popleft()
            assert self.device is not None
            self.took(count, self.device.seconds(start, end))

    def took(self, count: int, seconds: float) -> None:
        self.done += count
        self.seconds += seconds


class Claims:
    """One region in one call, claimed piece by piece."""

    def __init__(self, parts: Parts, grain: int, extent: int) -> None:
        self.parts, self.grain, self.extent = parts, grain, extent
        call = parts.call
        costs = costs_of(call, parts.division, parts.values, extent, False)
        own = range(0 if call.team.cpu else 1, len(call.team.devices) + 1)
        able = {who for who, _, _ in parts.ranges}
        self.idle: list[_Lane] = []  # those that claim no more
        self.lanes = [
            _Lane(call, parts.division, who, cost) for who, cost in zip(own, costs, strict=True) if who in able
        ]

    @classmethod
    def of(cls, parts: Parts) -> Claims | None:
        """The claims of a region; None if its parts are those that have been decided."""
        call, division = parts.call, parts.division
        if not parts.region.uneven or len(parts.ranges) < 2 or call.team.split is not None:
            return None
        if division.join != "concatenate" or not division.touched.traced:
            return None
        extent = call.extent(division.extent, parts.values)
        grain = -(-extent // GRAINS)
        seen: Written = {}
        for lo in range(0, extent, grain) if division.touched.writes else ():
            part = Part(division.touched, parts.values, division.index, lo, min(lo + grain, extent))
            for root, spans in call.touched(division.touched, part, parts.values)[1].items():
                if root in seen and len(intersection(seen[root], spans)):
                    return None
                add(seen, root, spans)
        return cls(parts, grain, extent)

    def run(self) -> list[Any]:
        """Let everybody claim until nothing is left; the results of the region."""
        parts, call = self.parts, self.parts.call
        if not isinstance(parts.division.op, Scatter):
            parts.make_results()
        front, back = 0, self.extent
        taken: list[Range] = []
        failed: dict[int, Exception] = {}
        while front < back:
            lane = min(self.lanes, key=lambda one: one.free_at)
            lane.settle(lane.depth - 1)
            count = self._count(lane, back - front)
            if self._too_late(lane, count, back - front):
                self.lanes.remove(lane)
                self.idle.append(lane)
                continue
            lo, hi = (front, front + count) if lane.who == HOST else (back - count, back)
            front, back = (hi, back) if lane.who == HOST else (front, lo)
            taken.append((lane.who, lo, hi))
            try:
                self._claim(lane, lo, hi)
            except Lost:
                raise
            except Exception as error:
                failed[lo] = error
                if lane.who == HOST:
                    break  # all before it has run
        for lane in (*self.lanes, *self.idle):
            lane.settle(0)
            if lane.done:
                call.plan.rates.learn_mean(id(parts.division.part), lane.name, lane.done, lane.seconds)
        call.runs[-1] = call.runs[-1]._replace(ranges=_joined(taken))
        if failed:
            raise failed[min(failed)]
        return [*parts.whole]

    def _count(self, lane: _Lane, left: int) -> int:
        """How many indices somebody claims of those that are left."""
        share = (1 / lane.each) / sum(1 / one.each for one in self.lanes)
        wanted = left * share / RESERVE
        if lane.done or lane.learned:
            wanted = max(wanted, WORTH * lane.begins / lane.each)
        else:
            wanted /= RESERVE  # to see how fast it is
        count = max(int(wanted / self.grain), 1) * self.grain
        return left if left - count < self.grain else count

    def _too_late(self, lane: _Lane, count: int, left: int) -> bool:
        """Whether the others would do all that is left before this member is done with a claim."""
        others = [one for one in self.lanes if one is not lane]
        if not others:
            return False
        capacity = sum(1 / one.each for one in others)
        finish = (left + sum(one.free_at / one.each for one in others)) / capacity
        return lane.free_at + DOUBT * count * lane.each > max(finish, max(one.free_at for one in others))

    def _claim(self, lane: _Lane, lo: int, hi: int) -> None:
        parts, device = self.parts, lane.device
        piece = parts.piece((lane.who, lo, hi))
        begun = time.perf_counter()
        start = None if device is None else device.mark()
        try:
            piece.bring()
            wait: Callable[[], Any] = list
            if piece.streamed:
                stream(piece, 0)
            else:
                wait = piece.start(0, parts.division.part, ())
            end = None if device is None else device.mark()
            wait()
        finally:
            piece.has_written(0)
        if device is None:
            lane.took(hi - lo, time.perf_counter() - begun)
        else:
            lane.waiting.append((hi - lo, start, end))
            lane.settle(lane.depth)


def _joined(taken: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges in the order of the index, neighbours of one member as one."""
    found: list[Range] = []
    for who, lo, hi in sorted(taken, key=lambda one: one[1]):
        if found and found[-1][0] == who and found[-1][2] == lo:
            found[-1] = (who, found[-1][1], hi)
        else:
            found.append((who, lo, hi))
    return tuple(found)
