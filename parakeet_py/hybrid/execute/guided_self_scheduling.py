"""Regions whose iterations differ in cost: members claim ranges as they become free.

What a part of such a region takes cannot be foretold from its length: a while loop ends sooner at some points than at
others, rows have different numbers of elements. So no member gets a part beforehand. The one that is free claims a
range next to what has been claimed: the first of them (the CPU, if it is one) at the front, the others at the back, so
everything that a member has is in few pieces, mostly where its own part would be, and all that is left is one. A claim
is a share of what is left, by the speeds seen so far (guided self-scheduling; Polychronopoulos and Kuck, IEEE Trans.
Computers 36(12), 1987, with factoring's reserve for what the average hides; Hummel, Schonberg and Flynn, CACM 35(8),
1992). It becomes smaller towards the end, where it decides how far apart the members finish; but not so small that
starting it, or a device's idle lanes, cost more than it does.

What a member needs of what another one has had since before the first claim it copies while that one computes.

Members work at the same time, each in a thread of its own (`member_threads`). Simulated devices have a time of their
own: for them the same decisions are taken one after the other, in the order of that time.

Who computes an element does not change it: only regions whose parts fill ranges of results are claimed, and what parts
may write is compared for all grains of the index space before the first starts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Range
from parakeet_py.hybrid.execute.device_loss import Lost
from parakeet_py.hybrid.execute.member_threads import Stop, together
from parakeet_py.hybrid.execute.parts import Parts, add
from parakeet_py.hybrid.execute.streaming import stream
from parakeet_py.hybrid.partition.access import Part
from parakeet_py.hybrid.plan.part_cost import Cost, device_speed
from parakeet_py.hybrid.plan.placement_cost import costs_of, points_of
from parakeet_py.hybrid.residency.blocks import HOST, Written
from parakeet_py.hybrid.residency.byte_ranges import intersection

GRAINS = 512  # pieces that an index space is divided into, at most, of whole warps; a claim is some of them
RESERVE = 4  # a claim is one part in so many of what its member would get if all went on as it has
WORTH = 8.0  # a claim takes at least so many times as long as starting it
FADES = 0.35  # what a claim has taken counts for so much of that when the next one has ended: neighbours are alike
LONGER = 2.0  # ... and so many times as long as the shortest one, of which starting it may be a good part
UNSURE = 8.0  # DOUBT before anything has been measured
DOUBT = 2.0  # no member claims what may take so many times as long as foreseen, if all others would be done by then
WARP = 32  # points that a device computes in the time of one


class _Lane:
    """A member that claims.

    Attributes
    ----------
    begins : seconds that a claim costs besides its work
    rate : operations that it does in a second
    running, since : the indices that it works at, and since when
    done, seconds : what it has done
    lately, lately_seconds : the same, most of it what it has done last
    shortest : seconds of its shortest claim: how long starting one takes is part of that
    """

    def __init__(self, claims: Claims, who: int, cost: Cost) -> None:
        call = claims.parts.call
        self.who, self.cost = who, cost
        self.device = None if who == HOST else cast(Machine, call.team.devices[who - 1])
        self.simulated = isinstance(self.device, SimulatedDevice)
        self.name = "cpu" if self.device is None else self.device.name
        speed = call.plan.cpu_speed(call.threads) if self.device is None else device_speed(self.device)
        self.begins, self.rate = speed.start, speed.operations
        self.learned = call.plan.rates.cost(id(claims.parts.division.part), self.name) is not None
        self.running, self.since = 0, 0.0
        self.done, self.seconds = 0, 0.0
        self.lately, self.lately_seconds = 0.0, 0.0
        self.shortest = 0.0

    @property
    def each(self) -> float:
        """Seconds for an index, as seen lately, or as foreseen before anything has been."""
        return max(self.lately_seconds / self.lately if self.done else self.cost.each, 1e-15)

    @property
    def doubt(self) -> float:
        """How many times as long as foreseen a claim may take."""
        return DOUBT if self.done or self.learned else UNSURE

    def free_at(self, now: float) -> float:
        """When it is done with what it has claimed, as far as that is known."""
        return max(now, self.since + self.each * self.running) if self.running else now

    def took(self, seconds: float) -> None:
        self.done += self.running
        self.seconds += seconds
        self.lately = FADES * self.lately + self.running
        self.lately_seconds = FADES * self.lately_seconds + seconds
        self.shortest = min(self.shortest, seconds) if self.shortest else seconds
        self.running = 0


class Claims:
    """One region in one call, claimed piece by piece."""

    def __init__(self, parts: Parts, grain: int, extent: int) -> None:
        self.parts, self.grain, self.extent = parts, grain, extent
        call = parts.call
        costs = costs_of(call, parts.division, parts.values, extent, False)
        own = range(0 if call.team.cpu else 1, len(call.team.devices) + 1)
        able = {who for who, _, _ in parts.ranges}
        self.lanes = [_Lane(self, who, cost) for who, cost in zip(own, costs, strict=True) if who in able]
        self.front, self.back = 0, extent
        self.taken: list[Range] = []
        self.failed: dict[int, Exception] = {}
        self.stop = Stop()
        self.changed = threading.Condition()  # held while a member claims; notified when one is done

    @classmethod
    def of(cls, parts: Parts) -> Claims | None:
        """The claims of a region; None if its parts are those that have been decided."""
        call, division = parts.call, parts.division
        if not parts.region.uneven or len(parts.ranges) < 2 or call.team.split is not None:
            return None
        if division.join != "concatenate" or not division.touched.traced:
            return None
        extent = call.extent(division.extent, parts.values)
        points = max(points_of(call, division, parts.values) // extent, 1)  # of an index
        warp = -(-WARP // points)
        grain = -(-extent // (GRAINS * warp)) * warp
        seen: Written = {}
        for lo in range(0, extent, grain) if division.touched.writes else ():
            part = Part(division.touched, parts.values, division.bounds(lo, min(lo + grain, extent)))
            for root, spans in call.touched(division.touched, part, parts.values)[1].items():
                if root in seen and len(intersection(seen[root], spans)):
                    return None
                add(seen, root, spans)
        return cls(parts, grain, extent)

    def run(self) -> list[Any]:
        """Let all members claim until nothing is left; the results of the region."""
        parts, call = self.parts, self.parts.call
        parts.make_results()
        for number in range(len(parts.ranges)):
            parts.prepare(number, parts.division.part)
        call.memories.set_marks()
        if any(lane.simulated for lane in self.lanes):
            self._in_turn()
        else:
            self._together()
        for lane in self.lanes:
            if lane.done:
                call.plan.rates.learn_mean(id(parts.division.part), lane.name, lane.done, lane.seconds)
        call.runs[-1] = call.runs[-1]._replace(ranges=_joined(self.taken))
        if self.failed:
            raise self.failed[min(self.failed)]
        return [*parts.whole]

    # ---- who claims when ---------------------------------------------------------------------------------------------

    def _together(self) -> None:
        begun = time.perf_counter()

        def now() -> float:
            return time.perf_counter() - begun

        def work(lane: _Lane) -> None:
            while True:
                with self.changed:
                    while (piece := self._next(lane, now())) is None:
                        if self.front >= self.back or self.stop.asked:
                            return
                        self.changed.wait(0.05)
                start = now()
                try:
                    inside = self._claim(lane, piece)
                finally:
                    with self.changed:
                        lane.took(now() - start)
                        self.changed.notify_all()
                lane.begins = max(lane.begins, (now() - start - inside) / 2)

        together([partial(work, lane) for lane in self.lanes], self.stop)

    def _in_turn(self) -> None:
        bases = {lane.who: lane.device.mark() for lane in self.lanes if lane.device is not None}
        now = 0.0
        ends: dict[int, tuple[float, _Lane]] = {}
        while self.front < self.back or ends:
            for lane in sorted(self.lanes, key=lambda one: one.each):
                piece = None if lane.who in ends else self._next(lane, now)
                if piece is None:
                    continue
                if isinstance(lane.device, SimulatedDevice):
                    lane.device.idle(bases[lane.who] + now)
                ends[lane.who] = now + self._claim(lane, piece), lane
            now, lane = ends.pop(min(ends, key=lambda who: ends[who][0]))
            lane.took(now - lane.since)

    # ---- what is claimed ---------------------------------------------------------------------------------------------

    def _next(self, lane: _Lane, now: float) -> Range | None:
        """What a member that is free claims; None if nothing now."""
        left = self.back - self.front
        if left <= 0 or self.stop.asked:
            return None
        count = self._count(lane, left)
        if self._too_late(lane, now, count, left):
            return None
        if lane is self.lanes[0]:
            lo, hi = self.front, self.front + count
            self.front = hi
        else:
            lo, hi = self.back - count, self.back
            self.back = lo
        lane.running, lane.since = count, now
        self.taken.append((lane.who, lo, hi))
        return lane.who, lo, hi

    def _count(self, lane: _Lane, left: int) -> int:
        """How many indices a member claims of those that are left."""
        share = (1 / lane.each) / sum(1 / one.each for one in self.lanes)
        wanted = left * share / RESERVE
        if all(one.done or one.learned for one in self.lanes):
            wanted = max(
                wanted, WORTH * lane.begins / lane.each, min(LONGER * lane.shortest / lane.each, left * share / 2)
            )
        elif not (lane.done or lane.learned):
            wanted /= RESERVE  # to see how fast it is
        count = max(int(wanted) // self.grain, 1) * self.grain
        idle = [one for one in self.lanes if one is not lane and not one.running]
        alone = len(idle) + 1 == len(self.lanes) and all(
            one.doubt * self.grain * one.each > left * self._each(lane) for one in idle
        )
        return left if alone or left - count < self.grain else count

    def _each(self, lane: _Lane) -> float:
        """Seconds that a member would take for an index of those that are left, wherever it is.

        At its own end it takes what it has taken lately. What the others take at the other end says, as it is known how
        fast they are, how much there is to do; what lies between is taken to lie between.
        """
        front, back = self.lanes[:1], self.lanes[1:]
        ends = (front, back) if lane is self.lanes[0] else (back, front)
        here, there = ([one.each * one.rate for one in lanes if one.done] for lanes in ends)
        if not here or not there:
            return lane.each
        heavier = (sum(there) / len(there)) / (sum(here) / len(here))
        return lane.each * (1 + heavier) / 2

    def _too_late(self, lane: _Lane, now: float, count: int, left: int) -> bool:
        """Whether the others would do all that is left before this member is done with a claim."""
        others = [one for one in self.lanes if one is not lane]
        if not any(one.running for one in others):
            return any(one.each < lane.each for one in others)  # one must
        speeds = [1 / self._each(one) for one in others]
        finish = (left + sum(one.free_at(now) * speed for one, speed in zip(others, speeds, strict=True))) / sum(speeds)
        return now + lane.doubt * count * lane.each > max(finish, max(one.free_at(now) for one in others))

    def _claim(self, lane: _Lane, part: Range) -> float:
        """Compute a range; gives the seconds that its member has worked."""
        parts, device, lo = self.parts, lane.device, part[1]
        piece = parts.piece(part)
        begun = time.perf_counter()
        start = None if device is None else device.mark()
        try:
            piece.bring()
            if piece.streamed:
                stream(piece, [0], parts.division.part, [()])
            else:
                piece.start(0, parts.division.part, ())()
            return time.perf_counter() - begun if device is None else device.seconds(start, device.mark())
        except Lost:
            raise
        except Exception as error:
            self.failed[lo] = error
            if lane is self.lanes[0]:
                self.front = self.back  # all before it has run
            return 0.0
        finally:
            if not piece.streamed:
                piece.has_written(0)


def _joined(taken: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges in the order of the index, neighbours of one member as one."""
    found: list[Range] = []
    for who, lo, hi in sorted(taken, key=lambda one: one[1]):
        if found and found[-1][0] == who and found[-1][2] == lo:
            found[-1] = (who, found[-1][1], hi)
        else:
            found.append((who, lo, hi))
    return tuple(found)
