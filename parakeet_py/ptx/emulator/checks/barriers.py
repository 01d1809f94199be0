"""Barriers of a block of threads.

In the usual case all threads in flight arrive together and go on at once. Otherwise sets of lanes wait here, and after
each arrival every block whose count is full is let go. A barrier without a count waits for all threads of the block,
one with a count for that many, counted in whole warps as the hardware does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import BarrierError
from parakeet_py.ptx.emulator.execute.lanes import Lanes, Transfer, Values, taken
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.front.sites import Site

_BARRIERS = 16


@dataclass(slots=True)
class _Waiting:
    """Lanes at a barrier: which one and how many it waits for, per lane (count 0: all); where they go on."""

    lanes: Lanes
    site: Site
    target: int
    saved: Values
    number: Array
    count: Array
    predicate: Array | None
    reduction: str


def _is_aligned(site: Site) -> bool:
    instruction = site.instruction
    return instruction.opcode == "bar" or "aligned" in instruction.modifiers


class Barriers:
    """The barriers of the blocks in flight."""

    def __init__(self, machine: Launch) -> None:
        self.machine = machine
        self.reset()

    def reset(self) -> None:
        """No thread waits."""
        self.waiting: list[_Waiting] = []
        self.arrivals: dict[tuple[int, int], int] = {}

    def forget_tables(self) -> None:
        """More blocks are in flight: what lanes know of all lanes is out of date."""
        for entry in self.waiting:
            entry.lanes._cache.clear()

    def _reduced(self, operation: str, predicate: Array, slots: Array, size: int) -> Array:
        votes = np.bincount(slots[np.broadcast_to(predicate, slots.shape)], minlength=size)
        if operation == "popc":
            return votes.astype(np.uint32)
        return votes > 0 if operation == "or" else votes == np.bincount(slots, minlength=size)

    def _synchronise(self, slots: Array | None) -> None:
        machine = self.machine
        machine.clock_ticks += 1
        order = machine.order.moment()
        barrier = order.barrier.copy()
        barrier[slots if slots is not None else slice(None)] = machine.clock_ticks
        order.barrier = barrier
        machine.order = order
        machine.bulk.meet(slots)

    def arrive(
        self,
        lanes: Lanes,
        site: Site,
        target: int,
        saved: Values,
        number: Array,
        count: Array | None,
        predicate: Array | None,
        reduction: str,
    ) -> Transfer | None:
        """Wait at a barrier."""
        machine = self.machine
        machine.progress += 1
        if int(number.max()) >= _BARRIERS:
            raise machine.fault(BarrierError, f"barrier {int(number.max())} of {_BARRIERS}", site, lanes, 0)
        together = lanes.n == machine.live == machine.total and not self.waiting and count is None
        if together and number.shape[0] == 1:
            self._synchronise(None)
            machine.shared_barrier()
            if predicate is not None:
                totals = self._reduced(reduction, predicate, lanes.slots(), machine.slot_count)
                saved = (totals.take(lanes.slots()), *saved)
            return target, lanes, saved
        counts = count if count is not None else np.zeros(1, dtype=np.uint32)
        self.waiting.append(_Waiting(lanes, site, target, saved, number, counts, predicate, reduction))
        self._release()
        return None

    def arrive_only(self, lanes: Lanes, number: Array, count: Array, site: Site) -> None:
        """Count as arrived without waiting."""
        machine = self.machine
        machine.progress += 1
        key = (lanes.warps() << 8) | np.broadcast_to(number, (lanes.n,))
        for warp_and_number in np.unique(key).tolist():
            slot = (warp_and_number >> 8) * 32 // machine.slot_lanes
            place = (slot, warp_and_number & 255)
            self.arrivals[place] = self.arrivals.get(place, 0) + 32
        self._release()

    def after_exit(self) -> None:
        """Threads have ended: where that is allowed, others need not wait for them."""
        if self.waiting and not self.machine.checks.exited_barriers:
            self._release()

    def _release(self) -> None:
        machine = self.machine
        size = machine.slot_count
        arrived = np.zeros((_BARRIERS, size), dtype=np.int64)
        needed = np.zeros((_BARRIERS, size), dtype=np.int64)
        counted = np.zeros((_BARRIERS, size), dtype=np.bool_)
        expected = np.full(size, machine.threads, dtype=np.int64)
        if not machine.checks.exited_barriers:
            expected = expected - machine.exited_per_slot()
        warps_seen: dict[int, Array] = {}
        for entry in self.waiting:
            number = np.broadcast_to(entry.number, (entry.lanes.n,))
            count = np.broadcast_to(entry.count, (entry.lanes.n,))
            slots = entry.lanes.slots()
            np.add.at(arrived, (number, slots), 1)
            counted[number[count > 0], slots[count > 0]] = True
            needed[number, slots] = np.where(count > 0, count, expected[slots])
            for value in np.unique(number[count > 0]).tolist():
                seen = warps_seen.setdefault(value, np.zeros(machine.warp_count, dtype=np.bool_))
                seen[entry.lanes.warps()[number == value]] = True
        for value, seen in warps_seen.items():
            # A counted barrier counts warps, whole.
            warps = seen.reshape(size, -1).sum(axis=1) * 32
            arrived[value] = np.where(counted[value], warps, arrived[value])
        for (slot, value), extra in self.arrivals.items():
            arrived[value, slot] += extra
        full = (needed > 0) & (arrived >= needed)
        if not full.any():
            return
        for value, slot in zip(*(a.tolist() for a in np.nonzero(full)), strict=True):
            self.arrivals.pop((slot, value), None)
        self._check_alignment(full)
        self._synchronise(np.flatnonzero(full.any(axis=0)))
        entries, self.waiting = self.waiting, []
        for entry in entries:
            self._let_go(entry, full, entries)

    def _check_alignment(self, full: Array) -> None:
        """Threads of a warp must arrive at an aligned barrier by the same instruction."""
        first: dict[int, Site] = {}
        for entry in self.waiting:
            number = np.broadcast_to(entry.number, (entry.lanes.n,))
            going = full[number, entry.lanes.slots()]
            for warp in np.unique(entry.lanes.warps()[going]).tolist():
                other = first.setdefault(warp, entry.site)
                if other.instruction is not entry.site.instruction and _is_aligned(entry.site):
                    line = other.instruction.line
                    message = f"threads of one warp meet at different barriers, here and at line {line}"
                    raise self.machine.fault(BarrierError, message, entry.site, entry.lanes, 0)

    def _let_go(self, entry: _Waiting, full: Array, entries: list[_Waiting]) -> None:
        lanes, n = entry.lanes, entry.lanes.n
        number = np.broadcast_to(entry.number, (n,))
        going = full[number, lanes.slots()]
        if going.any():
            chosen = np.flatnonzero(going)
            saved = entry.saved
            if entry.predicate is not None:
                totals = self._totals(entry, entries)
                saved = (totals, *saved)
            self.machine.push(entry.target, lanes.select(chosen), taken(saved, chosen, n))
        if not going.all():
            stay = np.flatnonzero(~going)
            predicate = entry.predicate
            if predicate is not None and predicate.shape[0] > 1:
                predicate = predicate.take(stay)
            self.waiting.append(
                _Waiting(
                    lanes.select(stay),
                    entry.site,
                    entry.target,
                    taken(entry.saved, stay, n),
                    taken((entry.number,), stay, n)[0],
                    taken((entry.count,), stay, n)[0],
                    predicate,
                    entry.reduction,
                )
            )

    def _totals(self, entry: _Waiting, entries: list[_Waiting]) -> Array:
        """The reduction over all who wait at the same barriers of the same blocks."""
        size = self.machine.slot_count * _BARRIERS
        places: list[Array] = []
        votes: list[Array] = []
        for other in entries:
            if other.predicate is not None:
                n = other.lanes.n
                places.append(other.lanes.slots() * _BARRIERS + np.broadcast_to(other.number, (n,)))
                votes.append(np.broadcast_to(other.predicate, (n,)))
        totals = self._reduced(entry.reduction, np.concatenate(votes), np.concatenate(places), size)
        own = entry.lanes.slots() * _BARRIERS + np.broadcast_to(entry.number, (entry.lanes.n,))
        return totals.take(own)

    def explain(self) -> None:
        """Threads wait at barriers and nothing can run: say for whom.

        Raises
        ------
        BarrierError
            If any thread waits at a barrier.
        """
        if not self.waiting:
            return
        machine = self.machine
        entry = self.waiting[0]
        slot = int(entry.lanes.slots()[0])
        here = int(np.count_nonzero(entry.lanes.slots() == slot))
        gone = int(machine.exited_per_slot()[slot])
        elsewhere = sorted(
            {
                other.site.instruction.line
                for other in self.waiting[1:]
                if (other.lanes.slots() == slot).any() and other.site is not entry.site
            }
            | {s.instruction.line for group, _, s in machine.waiting.values() if (group.slots() == slot).any()}
        )
        message = f"barrier never completes: {here} of {machine.threads} threads of the block wait here"
        if gone:
            message += f", {gone} have ended"
        if elsewhere:
            message += f", others wait at line {', '.join(map(str, elsewhere))}"
        raise machine.fault(BarrierError, message, entry.site, entry.lanes, 0)
