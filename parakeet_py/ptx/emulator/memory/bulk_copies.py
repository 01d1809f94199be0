"""Barriers that count bytes (`mbarrier`) and bulk copies of boxes (`cp.async.bulk.tensor`), with what they order.

A barrier is at a place of shared memory. Its phase ends when as many arrivals as it was made for, and all bytes that
are expected, have come; its parity tells who waits which phase it is in. A copy arrives at once here, but its bytes
must not be read before the phase that they count for is known to have ended, and must not be copied to before all reads
of what was there are known to have. `wgmma` reads until its group has been waited for.

What a warp knows is a vector: of each warp of its block how far it has come, and of each barrier how many phases have
ended. An arrival adds what the warp knows to the barrier, a wait that is over adds what the barrier knows to the warp,
and a meeting of the block adds all to all. These are vector clocks (Fidge, Mattern 1988): no race is missed because it
has not gone wrong this time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import BarrierError, DataRace, KernelFault, MemoryFault, UninitialisedRead
from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory import tensor_maps
from parakeet_py.ptx.emulator.memory.device_memory import PARAM

_PIECE = 16  # bytes
_MOST = (1 << 20) - 1  # arrivals, and bytes that are expected at a time
_COLUMNS = 64  # barriers of a block
_READING = 1 << 62  # the time of a read that is still going on


@dataclass(slots=True)
class _Barrier:
    """`known`: what who waits for its last phase learns; `gathered`: what has arrived in the present one."""

    number: int
    count: int
    pending: int
    maker: int
    made: int
    known: Array
    gathered: Array
    bytes: int = 0
    phase: int = 0
    fenced: bool = False


class BulkCopies:
    """The barriers and copies of the blocks in flight."""

    def __init__(self, machine: Launch) -> None:
        self.machine = machine
        self.reset()

    def reset(self) -> None:
        """No barrier, no copy."""
        self.barriers: dict[int, _Barrier] = {}
        self._numbers: dict[int, int] = {}  # of barriers made, by block
        self._knowledge: Array = np.zeros((0, 0), np.int64)
        self._copied: Array | None = None  # for each piece: the barrier of its last copy, plus one, and the phase
        self._read: Array = np.zeros((0, 0), np.int64)  # for each piece and warp of the block: when
        self._open: dict[int, list[Array]] = {}  # pieces that `wgmma` reads, by warps: not in a group yet,
        self._groups: dict[int, list[list[Array]]] = {}  # and by groups

    # -- who knows what -------------------------------------------------------------------------------------------

    @property
    def _warps(self) -> int:
        """Of a block."""
        return self.machine.slot_lanes // 32

    def _of(self, warp: int) -> Array:
        """What a warp knows."""
        if self._knowledge.shape[0] < self.machine.warp_count:
            grown = np.zeros((self.machine.warp_count, self._warps + _COLUMNS), np.int64)
            old = self._knowledge.shape[0]
            if old:
                grown[:old] = self._knowledge
            grown[np.arange(old, len(grown)), np.arange(old, len(grown)) % self._warps] = 1
            self._knowledge = grown
        known: Array = self._knowledge[warp]
        return known

    def meet(self, slots: Array | None) -> None:
        """All threads of these blocks, or of all, meet at a barrier of the ordinary kind."""
        if not self.barriers:
            return
        self._of(0)
        for slot in range(self.machine.slot_count) if slots is None else slots.tolist():
            own = self._knowledge[slot * self._warps : (slot + 1) * self._warps]
            own[:] = own.max(axis=0)
            own[np.arange(len(own)), np.arange(len(own))] += 1

    # -- barriers -------------------------------------------------------------------------------------------------

    def _place(self, lanes: Lanes, address: Array, site: Site) -> list[tuple[int, int, int]]:
        """For each lane: its place, its warp, and the place of a barrier in the memory of all blocks."""
        full = np.broadcast_to(address.view(np.int64), (lanes.n,))
        bad = (full < 0) | (full + 8 > self.machine.shared_size) | (full % 8 != 0)
        if bad.any():
            lane = int(np.flatnonzero(bad)[0])
            message = f"a barrier at shared address {int(full[lane]):#x}, of {self.machine.shared_size} bytes"
            raise self.machine.fault(MemoryFault, message, site, lanes, lane)
        places = (full + lanes.slots() * self.machine.shared_stride).tolist()
        return [*zip(range(lanes.n), lanes.warps().tolist(), places, strict=True)]

    def _fault(self, kind: type[KernelFault], message: str, site: Site, lanes: Lanes, lane: int) -> KernelFault:
        return self.machine.fault(kind, message, site, lanes, lane)

    def _barrier(self, lanes: Lanes, lane: int, warp: int, place: int, site: Site) -> _Barrier:
        found = self.barriers.get(place)
        if found is None:
            raise self._fault(BarrierError, "there is no barrier at this place", site, lanes, lane)
        if self._of(warp)[found.maker] < found.made and warp % self._warps != found.maker:
            message = "the barrier is made by another warp, and nothing orders that before this"
            raise self._fault(DataRace, message, site, lanes, lane)
        return found

    def make(self, lanes: Lanes, address: Array, count: Array, site: Site) -> None:
        """mbarrier.init"""
        counts = np.broadcast_to(count, (lanes.n,)).tolist()
        for lane, warp, place in self._place(lanes, address, site):
            if place in self.barriers:
                raise self._fault(BarrierError, "there is a barrier at this place already", site, lanes, lane)
            if not 1 <= counts[lane] <= _MOST:
                raise self._fault(BarrierError, f"a barrier for {counts[lane]} arrivals", site, lanes, lane)
            slot = warp // self._warps
            number = self._numbers.get(slot, 0)
            if number == _COLUMNS:
                raise self._fault(BarrierError, f"more than {_COLUMNS} barriers of a block", site, lanes, lane)
            self._numbers[slot] = number + 1
            own = warp % self._warps
            nothing = np.zeros_like(self._of(warp))
            made = int(self._of(warp)[own])
            known = nothing, nothing.copy()
            self.barriers[place] = _Barrier(number, counts[lane], counts[lane], own, made, *known)

    def drop(self, lanes: Lanes, address: Array, site: Site) -> None:
        """mbarrier.inval"""
        for lane, warp, place in self._place(lanes, address, site):
            self._barrier(lanes, lane, warp, place, site)
            del self.barriers[place]

    def fence(self, lanes: Lanes) -> None:
        """What these threads have made of barriers can be seen by copies."""
        own = {(warp // self._warps, warp % self._warps) for warp in np.unique(lanes.warps()).tolist()}
        for place, barrier in self.barriers.items():
            if (place // max(self.machine.shared_stride, 1), barrier.maker) in own:
                barrier.fenced = True

    def arrive(
        self, lanes: Lanes, address: Array, count: Array | None, size: Array | None, arrives: bool, site: Site
    ) -> None:
        """mbarrier.arrive, arrive.expect_tx, expect_tx"""
        counts = np.broadcast_to(count if count is not None else np.uint32(1), (lanes.n,)).tolist()
        sizes = np.broadcast_to(size if size is not None else np.uint32(0), (lanes.n,)).tolist()
        for lane, warp, place in self._place(lanes, address, site):
            barrier = self._barrier(lanes, lane, warp, place, site)
            barrier.bytes += sizes[lane]
            if barrier.bytes > _MOST:
                raise self._fault(BarrierError, f"{barrier.bytes} bytes are expected at a time", site, lanes, lane)
            if not arrives:
                continue
            barrier.pending -= counts[lane]
            if barrier.pending < 0:
                message = f"more than the {barrier.count} arrivals that end a phase"
                raise self._fault(BarrierError, message, site, lanes, lane)
            known = self._of(warp)
            np.maximum(barrier.gathered, known, out=barrier.gathered)
            known[warp % self._warps] += 1
            self._end_of_phase(barrier)

    def _end_of_phase(self, barrier: _Barrier) -> None:
        if barrier.pending or barrier.bytes:
            return
        barrier.phase += 1
        barrier.pending = barrier.count
        np.maximum(barrier.known, barrier.gathered, out=barrier.known)
        barrier.known[self._warps + barrier.number] = barrier.phase
        barrier.gathered[:] = 0
        self.machine.progress += 1

    def is_over(self, lanes: Lanes, address: Array, parity: Array, site: Site) -> Array:
        """mbarrier.try_wait.parity, test_wait.parity: whether the phase of this parity has ended, for each lane."""
        wanted = (np.broadcast_to(parity, (lanes.n,)) & np.uint32(1)).tolist()
        found = np.zeros(lanes.n, np.bool_)
        for lane, warp, place in self._place(lanes, address, site):
            barrier = self._barrier(lanes, lane, warp, place, site)
            if barrier.phase & 1 != wanted[lane]:
                found[lane] = True
                known = self._of(warp)
                np.maximum(known, barrier.known, out=known)
        return found

    # -- copies ---------------------------------------------------------------------------------------------------

    def _map(self, address: int, site: Site, lanes: Lanes, lane: int) -> tensor_maps.TensorMap:
        machine, size = self.machine, tensor_maps.SIZE
        data = b""
        if address % tensor_maps.ALIGNMENT == 0:
            if address >> 60 == PARAM >> 60:
                start = address - PARAM
                data = machine.parameter_bytes[start : start + size].tobytes()
            elif (block := machine.device.memory.find(address)) is not None and address + size <= block.end:
                data = block.data[address - block.start :][:size].tobytes()
        found = tensor_maps.decode(data) if len(data) == size else None
        if found is None:
            raise self._fault(MemoryFault, f"there is no tensor map at {address:#x}", site, lanes, lane)
        return found

    def copy(
        self, lanes: Lanes, target: Array, source: Array, at: tuple[Array, ...], barrier: Array, site: Site
    ) -> None:
        """cp.async.bulk.tensor: a box of an array into shared memory, whose bytes a barrier counts."""
        machine = self.machine
        targets = np.broadcast_to(target.view(np.int64), (lanes.n,)).tolist()
        sources = np.broadcast_to(source, (lanes.n,)).tolist()
        coordinates = [np.broadcast_to(one.astype(np.int32), (lanes.n,)).tolist() for one in at]
        for lane, warp, place in self._place(lanes, barrier, site):
            found = self._map(sources[lane], site, lanes, lane)
            counting = self._barrier(lanes, lane, warp, place, site)
            if not counting.fenced:
                message = "no fence makes the barrier visible to copies (fence.mbarrier_init, fence.proxy.async)"
                raise self._fault(BarrierError, message, site, lanes, lane)
            if len(found.box) != len(at):
                raise self._fault(KernelFault, f"{len(at)} coordinates of {len(found.box)}", site, lanes, lane)
            start = targets[lane]
            if start % 128 or start < 0 or start + found.bytes > machine.shared_size:
                message = f"a copy of {found.bytes} bytes to shared address {start:#x}, of {machine.shared_size} bytes"
                raise self._fault(MemoryFault, message, site, lanes, lane)
            base = int(lanes.slots()[lane]) * machine.shared_stride
            data = self._loaded(found, [one[lane] for one in coordinates], site, lanes, lane)
            offset = tensor_maps.permuted(start + np.arange(found.bytes), found.width)
            self._overwrite(base + offset[::_PIECE], warp, counting, site, lanes, lane)
            machine.shared_memory[base + offset] = data
            machine.written_shared(base + offset)
            counting.bytes -= found.bytes
            if counting.bytes < -_MOST:
                raise self._fault(BarrierError, "more bytes have come than a barrier counts", site, lanes, lane)
            self._end_of_phase(counting)

    def _loaded(self, found: tensor_maps.TensorMap, at: list[int], site: Site, lanes: Lanes, lane: int) -> Array:
        """The bytes of a box: those outside of the array are zero."""
        address, inside = found.places(at)
        data = np.zeros((address.size, found.item), np.uint8)
        if inside.any():
            some = address[inside]
            low, high = int(some.min()), int(some.max()) + found.item
            block = self.machine.device.memory.find(low)
            if block is None or high > block.end:
                why = self.machine.device.memory.explain(low, high - low)
                message = f"copy of a box within {high - low} bytes at {low:#x}: {why}"
                raise self._fault(MemoryFault, message, site, lanes, lane)
            data[inside] = block.data[(some - block.start)[:, None] + np.arange(found.item)]
        return data.reshape(-1)

    def _overwrite(self, bytes_: Array, warp: int, barrier: _Barrier, site: Site, lanes: Lanes, lane: int) -> None:
        """Check and note that pieces, given by a byte of each, are copied to."""
        pieces, known, copied = bytes_ // _PIECE, self._of(warp), self._tables()
        if not self.machine.checks.races:
            return
        times = self._read[pieces]
        times[:, warp % self._warps] = np.where(times[:, warp % self._warps] == _READING, _READING, 0)
        late = times > known[: self._warps]
        if late.any():
            piece, reader = (int(found[0]) for found in np.nonzero(late))
            going_on = int(times[piece, reader]) == _READING
            what = "wgmma may still read" if going_on else "has been read, and nothing orders that before this"
            message = f"copy to shared memory that {what}, by warp {reader}"
            raise self._fault(DataRace, message, site, lanes, lane)
        if not self._is_known(copied[pieces], known).all():
            message = "copy to shared memory that another copy may still write"
            raise self._fault(DataRace, message, site, lanes, lane)
        copied[pieces, 0] = barrier.number + 1
        copied[pieces, 1] = barrier.phase + 1

    def _tables(self) -> Array:
        pieces = self.machine.shared_memory.shape[0] // _PIECE
        old = self._copied if self._copied is not None else np.zeros((0, 2), np.int64)
        if old.shape[0] < pieces:
            self._copied = np.concatenate([old, np.zeros((pieces - old.shape[0], 2), np.int64)])
            more = np.zeros((pieces - old.shape[0], self._warps), np.int64)
            self._read = more if not old.shape[0] else np.concatenate([self._read, more])
        assert self._copied is not None
        return self._copied

    def _is_known(self, copied: Array, known: Array) -> Array:
        """Whether copies are known to have arrived; `known` is what one warp knows, or a row for each copy."""
        column = self._warps + np.maximum(copied[:, 0] - 1, 0)
        phases = known[column] if known.ndim == 1 else known[np.arange(len(column)), column]
        done: Array = (copied[:, 0] == 0) | (phases >= copied[:, 1])
        return done

    def read(self, pieces: Array, size: int, owners: Array, site: Site) -> None:
        """Check and note reads of pieces of so many bytes by lanes in flight."""
        if self._copied is None or not self.machine.checks.races:
            return
        copied = self._tables()
        own = pieces * size // _PIECE
        warps = owners >> 5
        self._of(0)
        known = self._knowledge[warps]
        fine = self._is_known(copied[own], known)
        if not fine.all():
            place = int(np.flatnonzero(~fine)[0])
            byte = int(own[place]) * _PIECE % self.machine.shared_stride
            message = f"load of shared memory at byte {byte}, whose bulk copy has not been waited for"
            lane = int(owners[place]) + self.machine.first_lane
            raise self.machine.fault_at(UninitialisedRead, message, site, lane)
        member = warps % self._warps
        now = self._read[own, member]
        self._read[own, member] = np.where(now == _READING, now, known[np.arange(len(member)), member])

    # -- wgmma ----------------------------------------------------------------------------------------------------

    def reading(self, warp: int, bytes_: Array) -> None:
        """wgmma of a warp reads pieces, given by a byte of each, until its group has been waited for."""
        if self._copied is not None:
            pieces = (bytes_.astype(np.int64) + warp // self._warps * self.machine.shared_stride) // _PIECE
            self._open.setdefault(warp, []).append(pieces)
            self._read[pieces, warp % self._warps] = _READING

    def commit(self, lanes: Lanes) -> None:
        """wgmma.commit_group"""
        if self._copied is not None:
            for warp in np.unique(lanes.warps()).tolist():
                self._groups.setdefault(warp, []).append(self._open.pop(warp, []))

    def wait(self, lanes: Lanes, left: int) -> None:
        """wgmma.wait_group: for all but the last groups of each warp."""
        for warp in np.unique(lanes.warps()).tolist() if self._copied is not None else []:
            groups, member = self._groups.get(warp, []), warp % self._warps
            done, self._groups[warp] = groups[: max(len(groups) - left, 0)], groups[max(len(groups) - left, 0) :]
            for pieces in [piece for group in done for piece in group]:
                self._read[pieces, member] = self._of(warp)[member]
            for pieces in [piece for group in self._groups[warp] for piece in group] + self._open.get(warp, []):
                self._read[pieces, member] = _READING
