"""Finding accesses that nothing orders.

For every small piece of memory the machine remembers who wrote it last, who read it last, and when; time is a count of
memory instructions. An access conflicts with an earlier one of another thread to the same piece if one of them writes,
not both are *strong* (atomic, volatile, or with an order qualifier), and nothing orders them, that is none of

- a barrier of their block of threads since,
- a barrier of their warp since, for threads of one warp,
- a release (fence or qualifier) by the earlier thread's block since, followed by an acquire by the later one's.

The last rule looks at blocks and not at the flag through which they speak: it never accuses a correct program, and can
miss a race of one that synchronises through the wrong flag. Writing the value that is there already is no conflict.

Shared memory is checked at once. Device memory is checked when a launch ends (or its log grows long), from a log of its
accesses, because most allocations are only read, or written by each thread at its own place, and then cost nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array

# Who has read a piece: one lane (its number plus one); several of one block (minus its number, minus one); several of
# one warp (_WARP minus its number); lanes of several blocks.
_CROSSED = -(1 << 30)
_WARP = -(1 << 40)
_COLUMNS = ("writer", "write_time", "write_strong", "value", "reader", "read_time", "read_strong")


@dataclass(slots=True)
class Order:
    """What has been ordered so far; arrays are replaced and not changed, so that a log can refer to a moment.

    `barrier`, `acquire` are times per block of threads, `warp` per warp, of those in flight, whose first lane has the
    number `first_lane` of the launch. `releases` holds, per block of threads of the launch, times of releases.
    """

    slot_lanes: int
    first_lane: int
    barrier: Array
    warp: Array
    acquire: Array
    releases: dict[int, list[int]]
    warp_used: bool = False

    def moment(self) -> Order:
        """The present state, for later."""
        return Order(
            self.slot_lanes, self.first_lane, self.barrier, self.warp, self.acquire, self.releases, self.warp_used
        )

    def ordered(self, before: Array, when: Array, after: Array) -> Array:
        """Does each access by the lane `before` at the time `when` come before what the lane `after` does now?"""
        slot_before, slot_after = before // self.slot_lanes, after // self.slot_lanes
        local = slot_after - self.first_lane // self.slot_lanes
        answer = (slot_before == slot_after) & (self.barrier.take(local) > when)
        if self.warp_used:
            warp = (after - self.first_lane) >> 5
            answer |= (before >> 5 == after >> 5) & (self.warp.take(warp) > when)
        if self.releases and not answer.all():
            acquired = self.acquire.take(local)
            for place in np.flatnonzero(~answer & (acquired > when)).tolist():
                start, end = int(when[place]), int(acquired[place])
                times = self.releases.get(int(slot_before[place]), ())
                next_release = bisect_right(times, start)
                answer[place] = next_release < len(times) and times[next_release] <= end
        return answer


@dataclass(slots=True)
class Conflict:
    """A race found: the place (in pieces), both threads, and what the earlier access was."""

    piece: int
    earlier_lane: int
    earlier_time: int
    later_lane: int
    earlier_wrote: bool


@dataclass(slots=True)
class Shadow:
    """Which lane accessed each piece of an array of memory last. Lanes are kept plus one, so that zero is none."""

    pieces: int
    writer: Array = field(init=False)
    write_time: Array = field(init=False)
    write_strong: Array = field(init=False)
    value: Array = field(init=False)
    reader: Array = field(init=False)
    read_time: Array = field(init=False)
    read_strong: Array = field(init=False)

    def __post_init__(self) -> None:
        self.writer, self.write_time, self.reader, self.read_time = (
            np.zeros(self.pieces, dtype=np.int64) for _ in range(4)
        )
        self.value = np.zeros(self.pieces, dtype=np.uint64)
        self.write_strong, self.read_strong = (np.zeros(self.pieces, dtype=np.bool_) for _ in range(2))

    def refined(self, factor: int) -> Shadow:
        """The same with each piece cut into several."""
        finer = Shadow(0)
        finer.pieces = self.pieces * factor
        for name in _COLUMNS:
            setattr(finer, name, np.repeat(getattr(self, name), factor))
        return finer

    def extended(self, pieces: int) -> None:
        """Room for more pieces at the end."""
        for name in _COLUMNS:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(pieces - self.pieces, dtype=old.dtype)]))
        self.pieces = pieces

    def clear(self) -> None:
        """Everything so far comes before everything from here on."""
        self.writer[:] = 0
        self.reader[:] = 0

    def read(self, index: Array, lanes: Array, time: int, order: Order, strong: bool) -> Conflict | None:
        """Check and record a read of a piece by each lane."""
        found = self.check_read(index, lanes, order, strong)
        self.record_read(index, lanes, time, order, strong)
        return found

    def check_read(self, index: Array, lanes: Array, order: Order, strong: bool) -> Conflict | None:
        """Does a read come unordered after a write?"""
        return self._after_write(index, lanes, order, strong)

    def record_read(self, index: Array, lanes: Array, time: int, order: Order, strong: bool) -> None:
        """Remember a read of a piece by each lane."""
        own = lanes + 1
        previous = self.reader.take(index)
        if not previous.any():
            self.reader[index] = own
            self._mark_several(index, own, lanes, order)
        else:
            slots, warps = lanes // order.slot_lanes, lanes >> 5
            other = (previous != 0) & (previous != own)
            since = order.barrier.take(slots - order.first_lane // order.slot_lanes)
            slot, warp = self._whose(previous, order)
            when = self.read_time.take(index)
            recent = when >= since
            if order.warp_used:  # what comes after this read comes after earlier ones of its warp, too
                met = order.warp.take((lanes - order.first_lane) >> 5) > when
                recent &= ~((warp == warps) & met)
            several = np.where(warp == warps, _WARP - warps, -(slots + 1))
            new = np.where(other, np.where(slot != slots, _CROSSED, np.where(recent, several, own)), own)
            self.reader[index] = new
            self._mark_several(index, new, lanes, order)
        self.read_time[index] = time
        self.read_strong[index] = strong

    def _mark_several(self, index: Array, new: Array, lanes: Array, order: Order) -> None:
        """Lanes that read the same piece in one instruction: the last one's mark has won so far."""
        lost = self.reader.take(index) != new
        if lost.any():
            places = index[lost] if index.shape[0] == lost.shape[0] else index
            slot, warp = self._whose(self.reader.take(places), order)
            mine = lanes[lost]
            in_warp = warp == mine >> 5
            in_block = slot == mine // order.slot_lanes
            # of several at one place, the one farther away is written last
            self.reader[places[in_warp]] = _WARP - (mine[in_warp] >> 5)
            across = in_block & ~in_warp
            self.reader[places[across]] = -(mine[across] // order.slot_lanes + 1)
            self.reader[places[~in_block]] = _CROSSED

    @staticmethod
    def _whose(marks: Array, order: Order) -> tuple[Array, Array]:
        """The block and the warp of the readers that marks name; -1 where they are of several, or there is none."""
        warp = np.where(marks > 0, (marks - 1) >> 5, np.where(marks <= _WARP, _WARP - marks, -1))
        whole = (marks < 0) & (marks > _CROSSED)
        return np.where(warp >= 0, (warp << 5) // order.slot_lanes, np.where(whole, -marks - 1, -1)), warp

    def _after_write(
        self, index: Array, lanes: Array, order: Order, strong: bool, bits: Array | None = None
    ) -> Conflict | None:
        previous = self.writer.take(index)
        suspect = (previous != 0) & (previous != lanes + 1)
        if strong:
            suspect &= ~self.write_strong.take(index)
        if bits is not None and suspect.any():
            suspect &= self.value.take(index) != bits
        if not suspect.any():
            return None
        places = np.flatnonzero(suspect)
        before, when = previous[places] - 1, self.write_time.take(index)[places]
        bad = ~order.ordered(before, when, lanes[places])
        if not bad.any():
            return None
        first = int(np.flatnonzero(bad)[0])
        place = int(places[first])
        return Conflict(int(index[place]), int(before[first]), int(when[first]), int(lanes[place]), True)

    def write(
        self, index: Array, lanes: Array, time: int, order: Order, strong: bool, bits: Array | None = None
    ) -> Conflict | None:
        """Record a write of a piece by each lane, of the value `bits` if that is known."""
        found = self._after_write(index, lanes, order, strong, bits) or self._after_read(index, lanes, order, strong)
        own = lanes + 1
        self.writer[index] = own
        self.write_time[index] = time
        self.write_strong[index] = strong
        if bits is not None:
            self.value[index] = bits
        if not strong and found is None:
            last = self.writer.take(index)
            lost = last != own
            if bits is not None and lost.any():
                lost &= self.value.take(index) != bits
            if lost.any():
                place = int(np.flatnonzero(lost)[0])
                found = Conflict(int(index[place]), int(last[place]) - 1, time, int(lanes[place]), True)
        return found

    def _after_read(self, index: Array, lanes: Array, order: Order, strong: bool) -> Conflict | None:
        previous = self.reader.take(index)
        suspect = (previous != 0) & (previous != lanes + 1)
        if strong:
            suspect &= ~self.read_strong.take(index)
        if not suspect.any():
            return None
        places = np.flatnonzero(suspect)
        reader, when, after = previous[places], self.read_time.take(index)[places], lanes[places]
        slots = after // order.slot_lanes
        single = (reader > 0) | (reader <= _WARP)  # or of one warp, whose barriers order them all
        # Several readers of one block: a barrier orders them all. Readers of several blocks: nothing here does.
        stand_in = np.where(reader == _CROSSED, -1, (-reader - 1) * order.slot_lanes)
        stand_in = np.where(reader > 0, reader - 1, np.where(reader <= _WARP, (_WARP - reader) << 5, stand_in))
        since = order.barrier.take(slots - order.first_lane // order.slot_lanes)
        fine = np.where(single, False, (reader == -(slots + 1)) & (since > when))
        if single.any():
            fine[single] = order.ordered(stand_in[single], when[single], after[single])
        rest = ~fine & ~single & (reader != _CROSSED)
        if rest.any() and order.releases:
            fine[rest] = order.ordered(stand_in[rest], when[rest], after[rest])
        fine |= reader == _CROSSED if order.releases else False
        if fine.all():
            return None
        first = int(np.flatnonzero(~fine)[0])
        place = int(places[first])
        return Conflict(int(index[place]), int(stand_in[first]), int(when[first]), int(lanes[place]), False)
