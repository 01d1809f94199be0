"""The log of a launch's accesses to device memory, and the checks on shared memory.

Reads and writes of device memory are only noted down. An allocation that is never written in the launch drops out; for
the others the notes are replayed through a `Shadow` in the order in which they were made. A long log is replayed early,
so its length is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import DataRace, UninitialisedRead
from parakeet_py.ptx.emulator.checks.races import Conflict, Order, Shadow
from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory.async_copies import Copies
from parakeet_py.ptx.emulator.memory.device_memory import Allocation

_LOG_LIMIT = 1 << 23


class Note(NamedTuple):
    """One access: `place` counts elements of `size` bytes, of which each lane accesses `run` in a row."""

    write: bool
    place: Array
    run: int
    size: int
    lanes: Array
    time: int
    order: Order
    site: Site
    values: tuple[Array, ...] | None


def _bits(values: tuple[Array, ...] | None, piece: int, n: int) -> Array | None:
    """The values written, cut into pieces, one row of pieces after the other, as 64-bit patterns."""
    if values is None:
        return None
    columns = [np.broadcast_to(np.ascontiguousarray(v).view(f"u{v.dtype.itemsize}"), (n,)) for v in values]
    rows = np.stack(columns, axis=1) if len(columns) > 1 else np.ascontiguousarray(columns[0]).reshape(-1, 1)
    return np.ascontiguousarray(rows).view(f"u{piece}").reshape(-1).astype(np.uint64)


def _pieces(index: Array, count: int, size: int, piece: int, lanes: Array) -> tuple[Array, Array]:
    """The pieces that an access touches, and for each the lane that does."""
    per_lane = count * (size // piece)
    if index.shape[0] != lanes.shape[0]:
        index = np.broadcast_to(index, lanes.shape)
    if per_lane == 1:
        return index, lanes
    start = index * (size // piece)
    return (start[:, None] + np.arange(per_lane)).reshape(-1), np.repeat(lanes, per_lane)


class Watch:
    """The race checks of one launch on device memory."""

    def __init__(self) -> None:
        self.machine: Launch
        self._notes: dict[Allocation, list[Note]] = {}
        self._written: set[Allocation] = set()
        self._shadows: dict[Allocation, tuple[int, Shadow]] = {}
        self._read_only: dict[Allocation, Array] = {}
        self._sites: dict[int, Site] = {}
        self._length = 0

    def log(
        self,
        write: bool,
        block: Allocation,
        index: Array,
        count: int,
        size: int,
        lanes: Lanes,
        site: Site,
        values: tuple[Array, ...] | None,
    ) -> None:
        """Note an access."""
        machine = self.machine
        machine.clock_ticks += 1
        own = lanes.index + machine.first_lane if machine.first_lane else lanes.index
        note = Note(write, index, count, size, own, machine.clock_ticks, machine.order, site, values)
        notes = self._notes.get(block)
        if notes is None:
            notes = self._notes[block] = []
        notes.append(note)
        if write:
            self._written.add(block)
        self._length += lanes.n * count
        if self._length > _LOG_LIMIT:
            self.replay()

    def replay(self) -> None:
        """Check what has been noted, and forget it.

        Raises
        ------
        DataRace
            At the first conflict found.
        """
        for block, notes in self._notes.items():
            if block not in self._written and block not in self._shadows and self._length <= _LOG_LIMIT:
                continue
            self._replay_block(block, notes)
        self._notes = {}
        self._length = 0

    def _replay_block(self, block: Allocation, notes: list[Note]) -> None:
        smallest = min(note.size for note in notes)
        known = self._shadows.get(block)
        if known is None:
            piece, shadow = smallest, Shadow(-(-block.size // smallest))
        else:
            piece, shadow = known
            if smallest < piece:
                shadow = shadow.refined(piece // smallest)
                if block in self._read_only:
                    self._read_only[block] = np.repeat(self._read_only[block], piece // smallest)
                piece = smallest
        self._shadows[block] = piece, shadow
        for note in notes:
            index, lanes = _pieces(note.place, note.run, note.size, piece, note.lanes)
            self._sites[note.time] = note.site
            strong = note.site.strong
            if note.write:
                bits = None if strong else _bits(note.values, piece, note.lanes.shape[0])
                conflict = shadow.write(index, lanes, note.time, note.order, strong, bits)
            else:
                conflict = shadow.read(index, lanes, note.time, note.order, strong)
            if conflict is not None:
                offset = conflict.piece * piece
                place = f"{block.label} at byte {offset}"
                self.report(conflict, note.write, note.site, self._sites.get(conflict.earlier_time), place)
            self._check_read_only(block, note, index, lanes, shadow, piece)

    def _check_read_only(
        self, block: Allocation, note: Note, index: Array, lanes: Array, shadow: Shadow, piece: int
    ) -> None:
        """A load through the read-only path (`.nc`) promises that nothing writes there during the launch."""
        marks = self._read_only.get(block)
        if note.write:
            broken = marks.take(index) if marks is not None else None
        elif note.site.read_only:
            if marks is None:
                marks = self._read_only[block] = np.zeros(shadow.pieces, dtype=np.bool_)
            marks[index] = True
            broken = shadow.writer.take(index) != 0
        else:
            return
        if broken is not None and broken.any():
            first = int(np.flatnonzero(broken)[0])
            place = f"{block.label} at byte {int(index[first]) * piece}"
            what = "is written after a load" if note.write else "has been written before this load"
            message = f"{place} {what} that says it is only read (.nc)"
            raise self.machine.fault_at(DataRace, message, note.site, int(lanes[first]))

    def report(self, conflict: Conflict, wrote: bool, site: Site, earlier: Site | None, place: str) -> None:
        """Raise the error of a conflict."""
        machine = self.machine
        first, second = ("write" if conflict.earlier_wrote else "read"), ("write" if wrote else "read")
        line = f" (line {earlier.instruction.line})" if earlier is not None else ""
        other = machine.thread_name(conflict.earlier_lane)
        raise machine.fault_at(
            DataRace,
            f"{second} of {place} races with a {first}{line} by {other}: nothing orders them",
            site,
            conflict.later_lane,
        )


class SharedCheck:
    """The checks on the shared memory of the blocks in flight."""

    def __init__(self, machine: Launch, piece: int) -> None:
        self.machine = machine
        self.piece = piece
        pieces = machine.shared_memory.shape[0] // piece
        self.shadow = Shadow(pieces) if machine.checks.races else None
        self.written = np.zeros(pieces, dtype=np.bool_) if machine.checks.uninitialised_shared else None
        self._sites: dict[int, Site] = {}
        # Reads matter to later writes only: they are recorded when a write comes before the next barrier of all.
        self._reads: list[tuple[Array, Array, int, Order, bool]] = []
        self._length = 0
        self._written_to = False
        self._all_written = False
        self.copies = Copies(machine, piece)

    def all_passed(self) -> None:
        """A barrier of all threads in flight."""
        if self.shadow is not None and self._written_to:
            self.shadow.clear()
        self._written_to = False
        self._reads.clear()
        self._length = 0
        if self.written is not None and not self._all_written:
            self._all_written = bool(self.written.all())

    def _record_reads(self) -> None:
        if self.shadow is not None:
            self._written_to = self._written_to or bool(self._reads)
            for pieces, owners, time, order, strong in self._reads:
                self.shadow.record_read(pieces, owners, time, order, strong)
        self._reads.clear()
        self._length = 0

    def extended(self) -> None:
        """More blocks are in flight."""
        self._all_written = False
        pieces = self.machine.shared_memory.shape[0] // self.piece
        if self.written is not None:
            more = np.zeros(pieces - self.written.shape[0], dtype=np.bool_)
            self.written = np.concatenate([self.written, more])
        if self.shadow is not None:
            self.shadow.extended(pieces)

    def written_by_copy(self, bytes_: Array) -> None:
        """A bulk copy has written these bytes; what it must not overtake is for others to check."""
        if self.written is not None:
            self.written[bytes_ // self.piece] = True

    def check(
        self,
        write: bool,
        lanes: Lanes,
        index: Array,
        count: int,
        size: int,
        site: Site,
        values: tuple[Array, ...] | None,
    ) -> None:
        """Check and record an access."""
        machine = self.machine
        own = lanes.index + machine.first_lane if machine.first_lane else lanes.index
        pieces, owners = _pieces(index, count, size, self.piece, own)
        if self.written is not None:
            if write:
                self.written[pieces] = True
            elif not self._all_written:
                written = self.written.take(pieces)
                if not written.all():
                    place = int(np.flatnonzero(~written)[0])
                    address = int(pieces[place]) * self.piece % max(machine.shared_stride, 1)
                    message = f"load of shared memory that nothing has written, at byte {address}"
                    raise machine.fault_at(UninitialisedRead, message, site, int(owners[place]))
        under_way = None if write else self.copies.pending(pieces)
        if under_way is not None and under_way.any():
            place = int(np.flatnonzero(under_way)[0])
            address = int(pieces[place]) * self.piece % max(machine.shared_stride, 1)
            message = f"load of shared memory at byte {address}, whose asynchronous copy has not been waited for"
            raise machine.fault_at(UninitialisedRead, message, site, int(owners[place]))
        if not write:
            machine.bulk.read(pieces, self.piece, owners - machine.first_lane, site)
        if self.shadow is None:
            return
        machine.clock_ticks += 1
        time = machine.clock_ticks
        self._sites[time] = site
        strong = site.strong
        conflict = None
        if write:
            self._record_reads()
            self._written_to = True
            bits = None if strong else _bits(values, self.piece, lanes.n)
            conflict = self.shadow.write(pieces, owners, time, machine.order, strong, bits)
        else:
            if self._written_to:
                conflict = self.shadow.check_read(pieces, owners, machine.order, strong)
            self._reads.append((pieces, owners, time, machine.order, strong))
            self._length += pieces.shape[0]
            if self._length > _LOG_LIMIT:
                self._record_reads()
        if conflict is not None:
            byte = conflict.piece * self.piece % max(machine.shared_stride, 1)
            assert machine.watch is not None
            machine.watch.report(
                conflict, write, site, self._sites.get(conflict.earlier_time), f"shared memory at byte {byte}"
            )
