"""What instructions ask of the machine besides loads, stores and control: warps, atomics, order, services."""

from __future__ import annotations

import time
from typing import NoReturn

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import DeviceOutOfMemory, KernelFault, MemoryFault, TrapError, WarpError
from parakeet_py.ptx.emulator.execute import group_matrix, matrix, warp
from parakeet_py.ptx.emulator.execute.lanes import Lanes, taken
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.execute.printf import format_text
from parakeet_py.ptx.emulator.front.kinds import DTYPES, Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory import atomics
from parakeet_py.ptx.emulator.memory.access import Access

_SPACE_BITS = np.uint64(60)
_BASES = {"global": 0, "shared": 2 << 60, "local": 3 << 60}


class Operations:
    """The operations of one launch."""

    def __init__(self, machine: Launch, access: Access) -> None:
        self.machine = machine
        self.access = access
        self.checks = machine.checks

    # -- warps ----------------------------------------------------------------------------------------------------

    def shuffle(
        self, lanes: Lanes, mode: str, value: Array, amount: Array, clamp: Array, mask: Array | None, site: Site
    ) -> tuple[Array, Array]:
        """Values of other lanes, and whether the lane asked for was in range."""
        place, source, valid = warp.sources(lanes, mode, amount, clamp)
        if self.checks.inactive_shuffles:
            bad = place < 0
            if mask is not None and not (mask.shape[0] == 1 and int(mask[0]) == 0xFFFFFFFF):
                bad = bad | (((mask >> source.astype(np.uint32)) & np.uint32(1)) == 0)
            if bad.any():
                lane = int(np.flatnonzero(bad)[0])
                message = f"the shuffle reads lane {int(source[lane])}, which does not take part"
                raise self.machine.fault(WarpError, message, site, lanes, lane)
        if value.shape[0] == 1 and lanes.n > 1:
            return value, valid
        return value.take(np.maximum(place, 0)), valid

    def vote(self, lanes: Lanes, mode: str, predicate: Array, mask: Array | None) -> Array:
        """all, any, uni, ballot."""
        return warp.vote(lanes, mode, predicate, mask)

    def match(self, lanes: Lanes, mode: str, value: Array, mask: Array) -> tuple[Array, Array]:
        """Lanes with the same value, and whether all have it."""
        if mode == "all":
            return warp.match_all(lanes, value, mask)
        found = warp.match_any(lanes, value, mask)
        return found, found != 0

    def redux(self, lanes: Lanes, operation: str, value: Array, mask: Array, absolute: bool, nan: bool) -> Array:
        """The reduction over the lanes of a mask."""
        return warp.reduce(lanes, operation, value, mask, absolute, nan)

    def elect(self, lanes: Lanes, mask: Array) -> tuple[Array, Array]:
        """The leader of a mask."""
        return warp.elect(lanes, mask)

    def activemask(self, lanes: Lanes) -> Array:
        """The lanes of the warp that execute this together."""
        return warp.present(lanes)

    def warp_barrier(self, lanes: Lanes, mask: Array) -> None:
        """bar.warp.sync: the warp has converged; memory is in order for these warps from here on."""
        machine = self.machine
        machine.clock_ticks += 1
        order = machine.order.moment()
        times = order.warp.copy()
        times[lanes.warps()] = machine.clock_ticks
        order.warp, order.warp_used = times, True
        machine.order = order

    def matrix(
        self,
        lanes: Lanes,
        shape: str,
        ab_type: str,
        cd_type: str,
        a: tuple[Array, ...],
        b: tuple[Array, ...],
        c: tuple[Array, ...],
        site: Site,
    ) -> tuple[Array, ...]:
        """A product of matrices in the registers of warps."""
        if (warp.present(lanes) != np.uint32(0xFFFFFFFF)).any():
            raise self.machine.fault(WarpError, "not all 32 lanes of the warp take part", site, lanes, 0)
        return matrix.multiply(lanes.n, shape, ab_type, cd_type, a, b, c)

    def load_matrix(self, lanes: Lanes, address: Array, count: int, transposed: bool, site: Site) -> tuple[Array, ...]:
        """Matrices of 8 rows of 16 bytes; row r of matrix m is at the address that lane 8 m + r has."""
        if (warp.present(lanes) != np.uint32(0xFFFFFFFF)).any():
            raise self.machine.fault(WarpError, "not all 32 lanes of the warp take part", site, lanes, 0)
        rows = np.broadcast_to(address, (lanes.n,)).reshape(-1, 32)
        lane = np.arange(32)
        found: list[Array] = []
        for number in range(count):
            starts = rows[:, 8 * number : 8 * number + 8]
            if (starts & np.uint64(15)).any():
                raise self.machine.fault(MemoryFault, "a row that is not at a multiple of 16 bytes", site, lanes, 0)
            halves: list[Array] = []
            for half in range(2):
                row, column = (lane // 4, lane % 4 * 2 + half)
                if transposed:
                    row, column = column, row
                places = (starts[:, row] + (2 * column).astype(np.uint64)).reshape(-1)
                value = self.machine.load_shared(lanes, places, "u2", 1, site, None)
                assert not isinstance(value, tuple)
                halves.append(value.astype(np.uint32))
            found.append(halves[0] | (halves[1] << np.uint32(16)))
        return tuple(found)

    def group_matrix(
        self,
        lanes: Lanes,
        columns: int,
        sums: tuple[Array, ...],
        left: Array,
        right: Array,
        adds: Array,
        left_turned: bool,
        right_turned: bool,
        site: Site,
    ) -> tuple[Array, ...]:
        """wgmma: of a group of four warps each has 16 of 64 rows; factors are 16 deep, in shared memory."""
        if (warp.present(lanes) != np.uint32(0xFFFFFFFF)).any():
            raise self.machine.fault(WarpError, "not all 32 lanes of the warp take part", site, lanes, 0)
        each = np.arange(0, lanes.n, 32)
        member = lanes.index[each] % self.machine.slot_lanes // 32 % 4

        def read(descriptor: Array, first: Array, count: int, turned: bool) -> Array:
            """A factor of each warp as float64: so many rows or columns from the first one on, by depth."""
            words = np.broadcast_to(descriptor, (lanes.n,))[each]
            places = group_matrix.places(words, first, count, turned)
            loaded = []
            for start in range(0, places.shape[1], 32):
                taken = np.ascontiguousarray(places[:, start : start + 32]).reshape(-1)
                four = self.machine.load_shared(lanes, taken, "u4", 4, site, None)
                assert isinstance(four, tuple)
                loaded.append(np.stack(four, 1).reshape(len(each), 32, 4))
            for warp_number, of_warp in zip(lanes.warps()[each].tolist(), places, strict=True):
                self.machine.bulk.reading(warp_number, of_warp)
            return group_matrix.matrix(np.concatenate(loaded, 1), turned)

        a = read(left, 16 * member, 16, left_turned)
        b = read(right, 0 * member, columns, right_turned)
        return group_matrix.multiply(a, b, sums, np.broadcast_to(adds, (lanes.n,)))

    # -- order ----------------------------------------------------------------------------------------------------

    def note_release(self, lanes: Lanes) -> None:
        """What the blocks of these threads did so far can be seen by who acquires from here on."""
        machine = self.machine
        machine.clock_ticks += 1
        first = machine.first_lane // machine.slot_lanes
        for slot in np.unique(lanes.slots()).tolist():
            machine.releases.setdefault(slot + first, []).append(machine.clock_ticks)

    def note_acquire(self, lanes: Lanes) -> None:
        """The blocks of these threads see what has been released."""
        machine = self.machine
        machine.clock_ticks += 1
        order = machine.order.moment()
        times = order.acquire.copy()
        times[lanes.slots()] = machine.clock_ticks
        order.acquire = times
        machine.order = order

    def fence(self, lanes: Lanes) -> None:
        """Both."""
        if self.checks.races:
            self.note_release(lanes)
            self.note_acquire(lanes)

    # -- atomics and copies ---------------------------------------------------------------------------------------

    def atomic(
        self,
        lanes: Lanes,
        space: str,
        address: Array,
        kind: str,
        operation: str,
        values: tuple[Array, ...],
        site: Site,
        mask: Array | None,
        wanted: bool,
    ) -> Array:
        """Read, modify and write words; gives what was read."""
        n = lanes.n
        if mask is not None:
            mask = np.broadcast_to(mask, (n,))
            if not mask.all():
                chosen = np.flatnonzero(mask)
                result = np.zeros(n, dtype=DTYPES[kind])
                if chosen.size:
                    part = np.broadcast_to(address, (n,)).take(chosen)
                    some = taken(values, chosen, n)
                    old = self.atomic(lanes.select(chosen), space, part, kind, operation, some, site, None, wanted)
                    if wanted:
                        result[chosen] = old
                return result
        if space == "generic":
            full = np.broadcast_to(address, (n,))
            number = full >> _SPACE_BITS
            result = np.zeros(n, dtype=DTYPES[kind])
            for one in np.unique(number).tolist():
                name = {1: "global", 2: "shared", 3: "local"}.get(one)
                chosen = np.flatnonzero(number == one)
                if name is None:
                    bad = int(full[chosen[0]])
                    message = f"atomic at {bad:#x}: {self.machine.device.memory.explain(bad)}"
                    raise self.machine.fault(MemoryFault, message, site, lanes, int(chosen[0]))
                part = full[chosen] - np.uint64(_BASES[name])
                some = taken(values, chosen, n)
                sub = lanes if chosen.size == n else lanes.select(chosen)
                old = self.atomic(sub, name, part, kind, operation, some, site, None, wanted)
                if wanted:
                    result[chosen] = old
            return result
        self.machine.counters.atomics += n
        if space == "global":
            return self._atomic_global(lanes, address, kind, operation, values, site, wanted)
        index, words, size = self.access.place(space, lanes, address, kind, 1, site)
        index = np.broadcast_to(index, (n,))
        if space == "shared":
            self.machine.check_shared(False, lanes, index, 1, size, site, None)
            self.machine.check_shared(True, lanes, index, 1, size, site, None)
        old, changed = atomics.apply(words, index, operation, values, wanted)
        self.machine.progress += changed
        return old

    def _atomic_global(
        self,
        lanes: Lanes,
        address: Array,
        kind: str,
        operation: str,
        values: tuple[Array, ...],
        site: Site,
        wanted: bool,
    ) -> Array:
        n, size = lanes.n, int(kind[1])
        full = np.broadcast_to(address, (n,))
        result = np.zeros(n, dtype=DTYPES[kind])
        for chosen, block in self.access.groups(lanes, address, size, site):
            if block.constant:
                raise self.machine.fault(MemoryFault, f"atomic on constant memory, {block!r}", site, lanes, 0)
            whole = chosen.size == n
            offset = (full if whole else full[chosen]) - block.base
            index = (offset // np.uint64(size)).view(np.int64)
            some = values if whole else taken(values, chosen, n)
            old, changed = atomics.apply(block.view(kind), index, operation, some, wanted)
            self.machine.progress += changed
            if self.machine.watch is not None:
                sub = lanes if whole else lanes.select(chosen)
                self.machine.watch.log(True, block, index, 1, size, sub, site, None)
            if block.written is not None:
                for byte in range(size):
                    block.written[index * size + byte] = True
            if wanted:
                if whole:
                    return old
                result[chosen] = old
        return result

    def copy_async(
        self, lanes: Lanes, target: Array, source: Array, size: int, given: Array | None, site: Site
    ) -> None:
        """Copy bytes from device to shared memory; those beyond `given` are zero.

        The bytes arrive at once, and are marked as not to be read before the copy has been waited for.
        """
        machine = self.machine
        kind, count = ("u4", 1) if size == 4 else ("u8", size // 8)
        if given is None:
            loaded = machine.load_global(lanes, source, kind, count, site, None)
            values = loaded if isinstance(loaded, tuple) else (loaded,)
            machine.store_shared(lanes, target, kind, values, site, None)
            machine.begin_copies(lanes, target, size)
            return
        whole = given == size
        if bool(np.all(whole | (given == 0))):
            loaded = machine.load_global(lanes, source, kind, count, site, np.broadcast_to(whole, (lanes.n,)))
            values = loaded if isinstance(loaded, tuple) else (loaded,)
            machine.store_shared(lanes, target, kind, values, site, None)
            machine.begin_copies(lanes, target, size)
            return
        for byte in range(size):
            step = np.uint64(byte)
            part = machine.load_global(lanes, source + step, "u1", 1, site, given > byte)
            assert not isinstance(part, tuple)
            machine.store_shared(lanes, target + step, "u1", (part,), site, None)
        machine.begin_copies(lanes, target, size)

    # -- services -------------------------------------------------------------------------------------------------

    def trap(self, lanes: Lanes, site: Site) -> NoReturn:
        """The kernel gives up."""
        raise self.machine.fault(TrapError, "the kernel executed trap", site, lanes, 0)

    def read_clock(self, name: str) -> Array:
        """A clock: of the machine's steps, or of the world in nanoseconds."""
        machine = self.machine
        machine.clock_ticks += 1
        now = time.time_ns() if name.startswith("globaltimer") else machine.steps * 64 + machine.clock_ticks
        if name.endswith("_hi"):
            now >>= 32
        return np.array([now], dtype=np.uint64)

    def is_constant(self, address: Array) -> Array:
        """Do generic addresses lie in constant memory?"""
        found = np.zeros(address.shape, dtype=np.bool_)
        for block in self.machine.device.memory:
            if block.constant:
                found |= (address >= np.uint64(block.start)) & (address < np.uint64(block.end))
        return found

    def _bytes_at(self, lanes: Lanes, address: int, count: int, site: Site) -> bytes:
        """Bytes at a generic address, for the only lane of a set."""
        found = bytearray()
        for byte in range(count):
            where = np.array([address + byte], dtype=np.uint64)
            value = self.machine.load_generic(lanes, where, "u1", 1, site, None)
            assert not isinstance(value, tuple)
            found.append(int(value[0]))
        return bytes(found)

    def _text_at(self, lanes: Lanes, address: int, site: Site) -> str:
        found = bytearray()
        while len(found) < 1 << 16:
            byte = self._bytes_at(lanes, address + len(found), 1, site)
            if byte == b"\0":
                break
            found += byte
        return found.decode("utf-8", "replace")

    def system_vprintf(self, lanes: Lanes, template: Array, arguments: Array, site: Site) -> Array:
        """Printing: the text is kept with the result of the launch."""
        templates = np.broadcast_to(template, (lanes.n,)).tolist()
        buffers = np.broadcast_to(arguments, (lanes.n,)).tolist()
        for place in range(lanes.n):
            lane = lanes.select(np.array([place]))
            text = self._text_at(lane, templates[place], site)

            def read(offset: int, size: int, lane: Lanes = lane, base: int = buffers[place]) -> bytes:
                return self._bytes_at(lane, base + offset, size, site)

            def string(address: int, lane: Lanes = lane) -> str:
                return self._text_at(lane, address, site)

            self.machine.output.append(format_text(text, read, string))
        return np.ones(1, dtype=np.uint32)

    def system_malloc(self, lanes: Lanes, size: Array, site: Site) -> Array:
        """Memory for each thread, or a null pointer."""
        sizes = np.broadcast_to(size, (lanes.n,)).tolist()
        found = np.zeros(lanes.n, dtype=np.uint64)
        for place, wanted in enumerate(sizes):
            try:
                found[place] = self.machine.device.memory.alloc(wanted, "memory from malloc").start
            except DeviceOutOfMemory:
                break
        return found

    def system_free(self, lanes: Lanes, address: Array, site: Site) -> None:
        """Give memory from malloc back."""
        for place, one in enumerate(np.broadcast_to(address, (lanes.n,)).tolist()):
            if one == 0:
                continue
            block = self.machine.device.memory.find(one)
            if block is None or block.start != one or block.label != "memory from malloc":
                raise self.machine.fault(KernelFault, f"free of {one:#x}, not from malloc", site, lanes, place)
            self.machine.device.memory.free(one)

    def system_assertfail(
        self, lanes: Lanes, message: Array, file: Array, line: Array, function: Array, _: Array, site: Site
    ) -> NoReturn:
        """An assertion of the kernel does not hold."""
        lane = lanes.select(np.array([0]))
        text, name = self._text_at(lane, int(message[0]), site), self._text_at(lane, int(file[0]), site)
        raise self.machine.fault(TrapError, f"assertion {text!r} failed ({name}, line {int(line[0])})", site, lanes, 0)
