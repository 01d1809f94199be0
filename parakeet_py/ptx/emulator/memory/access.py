"""Loads and stores of a running kernel in every state space.

Device memory: the lanes of an access nearly always fall into one allocation, so that is tried first: the allocation of
the first lane, one subtraction, one test of alignment, and NumPy's own bounds check of the gather (addresses are
unsigned: one below the start wraps to a huge index). Only when it fails are lanes sorted by allocation, and then a
fault is known to the lane.

Shared memory of all blocks of threads in flight is one array, a block's part being found by its slot; local memory
likewise, by lane. A generic address goes to its space by its top bits.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import MemoryFault, UninitialisedRead
from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import DTYPES, Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory.device_memory import LOCAL, PARAM, SHARED, Allocation

_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}
_SHIFTS = {size: np.array([shift], dtype=np.uint64) for size, shift in _SHIFT.items()}
_I8 = np.dtype(np.int64)
_SPACE_BITS = np.array([60], dtype=np.uint64)
_SPACE_NAMES = {1: "global", 2: "shared", 3: "local", 4: "param"}
_SPACE_BASES = {2: SHARED, 3: LOCAL, 4: PARAM}
Loaded = Array | tuple[Array, ...]


class Access:
    """The memory side of a machine."""

    def __init__(self, machine: Launch) -> None:
        self.machine = machine
        self.memory = machine.device.memory
        self.checks = machine.checks
        self.counters = machine.counters
        self.watch = machine.watch
        self._last: dict[Site, Allocation] = {}

    # -- device memory --------------------------------------------------------------------------------------------

    def _block(self, address: int, site: Site) -> Allocation | None:
        block = self._last.get(site)
        if block is not None and block.start <= address < block.end:
            return block
        block = self.memory.find(address)
        if block is not None:
            self._last[site] = block
        return block

    def load_global(
        self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None
    ) -> Loaded:
        """Load `count` values of a kind from device memory."""
        if mask is not None:
            return self._masked_load("global", lanes, address, kind, count, site, mask)
        size = int(kind[1])
        total = size * count
        block = self._block(int(address[0]), site)
        if block is None:
            return self._scattered_load(lanes, address, kind, count, site)
        offset = address - block.base
        if total > 1 and int(np.bitwise_or.reduce(offset)) & (total - 1):
            self._misaligned(lanes, address, total, site)
        index = (offset >> _SHIFTS[size]).view(_I8)
        view = block.view(kind)
        try:
            if count == 1:
                result: Loaded = view.take(index)
            else:
                result = tuple(view.take(index + k) for k in range(count))
        except IndexError:
            return self._scattered_load(lanes, address, kind, count, site)
        self.counters.loaded(lanes, "global", total, address, site)
        if self.watch is not None:
            self.watch.log(False, block, index, count, size, lanes, site, None)
        if self.checks.uninitialised_global:
            self._check_written(block, offset, total, lanes, site)
        return result

    def store_global(
        self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site, mask: Array | None
    ) -> None:
        """Store values to device memory."""
        if mask is not None:
            self._masked_store("global", lanes, address, kind, values, site, mask)
            return
        size = int(kind[1])
        total = size * len(values)
        block = self._block(int(address[0]), site)
        if block is None:
            self._scattered_store(lanes, address, kind, values, site)
            return
        offset = address - block.base
        if total > 1 and int(np.bitwise_or.reduce(offset)) & (total - 1):
            self._misaligned(lanes, address, total, site)
        if block.constant:
            raise self.machine.fault(MemoryFault, f"store to constant memory, {block!r}", site, lanes, 0)
        index = (offset >> _SHIFTS[size]).view(_I8)
        view = block.view(kind)
        if index.shape[0] == 1 and lanes.n > 1:
            index = np.broadcast_to(index, (lanes.n,))
        try:
            for place, value in enumerate(values):
                view[index + place if place else index] = value
        except IndexError:
            self._scattered_store(lanes, address, kind, values, site)
            return
        self.machine.progress += 1
        self.counters.stored(lanes, "global", total, address, site)
        if self.watch is not None:
            self.watch.log(True, block, index, len(values), size, lanes, site, values)
        if block.written is not None or self.checks.uninitialised_global:
            self._mark_written(block, offset, total)

    def groups(self, lanes: Lanes, address: Array, total: int, site: Site) -> list[tuple[Array, Allocation]]:
        """Lanes sorted by allocation; a lane with none is a fault."""
        full = np.broadcast_to(address, (lanes.n,))
        low = full & np.uint64(total - 1)
        if low.any():
            self._misaligned(lanes, address, total, site)
        groups: list[tuple[Array, Allocation]] = []
        left = np.arange(lanes.n)
        while left.size:
            first = int(full[left[0]])
            block = self.memory.find(first)
            if block is None or first + total > block.end:
                why = self.memory.explain(first, total)
                verb = "load" if site.instruction.opcode in ("ld", "ldu") else "access"
                message = f"{verb} of {total} bytes at {first:#x}: {why}"
                raise self.machine.fault(MemoryFault, message, site, lanes, int(left[0]))
            mine = full[left]
            inside = (mine >= np.uint64(block.start)) & (mine <= np.uint64(block.end - total))
            groups.append((left[inside], block))
            left = left[~inside]
        return groups

    def _scattered_load(self, lanes: Lanes, address: Array, kind: str, count: int, site: Site) -> Loaded:
        total = int(kind[1]) * count
        results = tuple(np.zeros(lanes.n, dtype=DTYPES[kind]) for _ in range(count))
        full = np.broadcast_to(address, (lanes.n,))
        for chosen, block in self.groups(lanes, address, total, site):
            self._last[site] = block
            part = self.load_global(lanes.select(chosen), full[chosen], kind, count, site, None)
            for result, value in zip(results, part if isinstance(part, tuple) else (part,), strict=True):
                result[chosen] = value
        return results if count > 1 else results[0]

    def _scattered_store(self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site) -> None:
        full = np.broadcast_to(address, (lanes.n,))
        wide = tuple(np.broadcast_to(v, (lanes.n,)) for v in values)
        for chosen, block in self.groups(lanes, address, int(kind[1]) * len(values), site):
            self._last[site] = block
            part = tuple(v[chosen] for v in wide)
            self.store_global(lanes.select(chosen), full[chosen], kind, part, site, None)

    def _misaligned(self, lanes: Lanes, address: Array, total: int, site: Site) -> None:
        full = np.broadcast_to(address, (lanes.n,))
        bad = np.flatnonzero(full & np.uint64(total - 1))
        if bad.size:
            lane = int(bad[0])
            message = f"misaligned access of {total} bytes at {int(full[lane]):#x}"
            raise self.machine.fault(MemoryFault, message, site, lanes, lane)

    def _check_written(self, block: Allocation, offset: Array, total: int, lanes: Lanes, site: Site) -> None:
        if block.written is None:
            return
        start = offset.view(_I8)
        for byte in range(total):
            unwritten = ~block.written.take(start + byte)
            if unwritten.any():
                lane = int(np.flatnonzero(unwritten)[0])
                message = f"load of device memory that nothing has written, {block!r}"
                raise self.machine.fault(UninitialisedRead, message, site, lanes, lane)

    @staticmethod
    def _mark_written(block: Allocation, offset: Array, total: int) -> None:
        if block.written is None:
            return
        start = offset.view(_I8)
        for byte in range(total):
            block.written[start + byte] = True

    # -- guarded accesses -----------------------------------------------------------------------------------------

    def _masked_load(
        self, space: str, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array
    ) -> Loaded:
        load = getattr(self.machine, f"load_{space}")
        if mask.shape[0] == 1 and lanes.n > 1:
            mask = np.broadcast_to(mask, (lanes.n,))
        chosen = np.flatnonzero(mask)
        if chosen.size == lanes.n:
            loaded: Loaded = load(lanes, address, kind, count, site, None)
            return loaded
        results = tuple(np.zeros(lanes.n, dtype=DTYPES[kind]) for _ in range(count))
        if chosen.size:
            part = address if address.shape[0] == 1 else address.take(chosen)
            found = load(lanes.select(chosen), part, kind, count, site, None)
            for result, value in zip(results, found if count > 1 else (found,), strict=True):
                result[chosen] = value
        return results if count > 1 else results[0]

    def _masked_store(
        self,
        space: str,
        lanes: Lanes,
        address: Array,
        kind: str,
        values: tuple[Array, ...],
        site: Site,
        mask: Array,
    ) -> None:
        if mask.shape[0] == 1 and lanes.n > 1:
            mask = np.broadcast_to(mask, (lanes.n,))
        chosen = np.flatnonzero(mask)
        if chosen.size:
            part = address if address.shape[0] == 1 else address.take(chosen)
            some = tuple(v if v.shape[0] == 1 else v.take(chosen) for v in values)
            getattr(self.machine, f"store_{space}")(lanes.select(chosen), part, kind, some, site, None)

    # -- shared and local memory ----------------------------------------------------------------------------------

    def place(
        self, space: str, lanes: Lanes, address: Array, kind: str, count: int, site: Site
    ) -> tuple[Array, Array, int]:
        """Index into the words of a space, the array of words, and the width of an element."""
        machine = self.machine
        size = int(kind[1])
        total = size * count
        offset = address.view(_I8)
        if total > 1 and int(np.bitwise_or.reduce(offset)) & (total - 1):
            self._misaligned(lanes, address, total, site)
        low, limit = (0, machine.shared_size) if space == "shared" else (16, machine.local_size)
        if int(offset.min()) < low or int(offset.max()) + total > limit:
            full = np.broadcast_to(offset, (lanes.n,))
            lane = int(np.flatnonzero((full < low) | (full + total > limit))[0])
            message = f"access of {total} bytes at {space} address {int(full[lane]) & (2**64 - 1):#x}, of {limit} bytes"
            raise self.machine.fault(MemoryFault, message, site, lanes, lane)
        base = lanes.table("shared_base") if space == "shared" else lanes.index * machine.local_size
        words = machine.shared_memory if space == "shared" else machine.local_memory
        return (base + offset) >> _SHIFT[size], words.view(DTYPES[kind]), size

    def load_shared(
        self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None
    ) -> Loaded:
        """Load values from shared memory."""
        if mask is not None:
            return self._masked_load("shared", lanes, address, kind, count, site, mask)
        index, words, size = self.place("shared", lanes, address, kind, count, site)
        self.counters.loaded(lanes, "shared", size * count, address, site)
        self.machine.check_shared(False, lanes, index, count, size, site, None)
        if count == 1:
            return words.take(index)
        return tuple(words.take(index + k) for k in range(count))

    def store_shared(
        self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site, mask: Array | None
    ) -> None:
        """Store values to shared memory."""
        if mask is not None:
            self._masked_store("shared", lanes, address, kind, values, site, mask)
            return
        index, words, size = self.place("shared", lanes, address, kind, len(values), site)
        if index.shape[0] == 1 and lanes.n > 1:
            index = np.broadcast_to(index, (lanes.n,))
        self.counters.stored(lanes, "shared", size * len(values), address, site)
        self.machine.check_shared(True, lanes, index, len(values), size, site, values)
        for place, value in enumerate(values):
            words[index + place if place else index] = value
        self.machine.progress += 1

    def load_local(self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None) -> Loaded:
        """Load values from the threads' own memory."""
        if mask is not None:
            return self._masked_load("local", lanes, address, kind, count, site, mask)
        index, words, size = self.place("local", lanes, address, kind, count, site)
        self.counters.loaded(lanes, "local", size * count, address, site)
        written = self.machine.local_written
        if written is not None:
            for byte in range(size * count):
                unwritten = ~written.take(index * size + byte)
                if unwritten.any():
                    lane = int(np.flatnonzero(np.broadcast_to(unwritten, (lanes.n,)))[0])
                    message = "load of local memory that nothing has written"
                    raise self.machine.fault(UninitialisedRead, message, site, lanes, lane)
        if count == 1:
            return words.take(index)
        return tuple(words.take(index + k) for k in range(count))

    def store_local(
        self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site, mask: Array | None
    ) -> None:
        """Store values to the threads' own memory."""
        if mask is not None:
            self._masked_store("local", lanes, address, kind, values, site, mask)
            return
        index, words, size = self.place("local", lanes, address, kind, len(values), site)
        self.counters.stored(lanes, "local", size * len(values), address, site)
        written = self.machine.local_written
        if written is not None:
            for byte in range(size * len(values)):
                written[index * size + byte] = True
        for place, value in enumerate(values):
            words[index + place if place else index] = value

    # -- parameters and generic addresses -------------------------------------------------------------------------

    def load_param(self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None) -> Loaded:
        """Load values from the kernel's parameters."""
        if mask is not None:
            return self._masked_load("param", lanes, address, kind, count, site, mask)
        size = int(kind[1])
        offset = address.view(_I8)
        data = self.machine.parameter_bytes
        total = size * count
        outside = (offset < 0) | (offset + total > data.shape[0])
        if outside.any():
            lane = int(np.flatnonzero(np.broadcast_to(outside, (lanes.n,)))[0])
            message = f"load of {total} bytes beyond the {data.shape[0]} bytes of the kernel's parameters"
            raise self.machine.fault(MemoryFault, message, site, lanes, lane)
        self._misaligned(lanes, address, total, site)
        rows = data[offset[:, None] + np.arange(total)]
        columns = np.ascontiguousarray(rows).view(DTYPES[kind])
        if count == 1:
            return columns.reshape(-1)
        return tuple(np.ascontiguousarray(columns[:, k]) for k in range(count))

    def _spaces(self, lanes: Lanes, address: Array, site: Site) -> list[tuple[Array | None, int]]:
        """The spaces of generic addresses, each with its lanes (None: all)."""
        space = address >> _SPACE_BITS
        first = int(space[0])
        if space.shape[0] > 1 and (space != space[0]).any():
            full = np.broadcast_to(space, (lanes.n,))
            return [(np.flatnonzero(full == s), self._known(int(s), lanes, address, site)) for s in np.unique(full)]
        return [(None, self._known(first, lanes, address, site))]

    def _known(self, space: int, lanes: Lanes, address: Array, site: Site) -> int:
        if space in _SPACE_NAMES:
            return space
        full = np.broadcast_to(address, (lanes.n,))
        lane = int(np.flatnonzero((full >> _SPACE_BITS) == space)[0])
        bad = int(full[lane])
        raise self.machine.fault(MemoryFault, f"access at {bad:#x}: {self.memory.explain(bad)}", site, lanes, lane)

    def load_generic(
        self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None
    ) -> Loaded:
        """Load values through generic addresses."""
        if mask is not None:
            return self._masked_load("generic", lanes, address, kind, count, site, mask)
        groups = self._spaces(lanes, address, site)
        machine = self.machine
        if groups[0][0] is None:
            space = groups[0][1]
            plain = address - np.uint64(_SPACE_BASES[space]) if space > 1 else address
            found: Loaded = getattr(machine, f"load_{_SPACE_NAMES[space]}")(lanes, plain, kind, count, site, None)
            return found
        results = tuple(np.zeros(lanes.n, dtype=DTYPES[kind]) for _ in range(count))
        for chosen, space in groups:
            assert chosen is not None
            plain = address.take(chosen) - np.uint64(_SPACE_BASES.get(space, 0))
            part = getattr(machine, f"load_{_SPACE_NAMES[space]}")(lanes.select(chosen), plain, kind, count, site, None)
            for result, value in zip(results, part if count > 1 else (part,), strict=True):
                result[chosen] = value
        return results if count > 1 else results[0]

    def store_generic(
        self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site, mask: Array | None
    ) -> None:
        """Store values through generic addresses."""
        if mask is not None:
            self._masked_store("generic", lanes, address, kind, values, site, mask)
            return
        for chosen, space in self._spaces(lanes, address, site):
            if space == 4:
                raise self.machine.fault(MemoryFault, "store to the kernel's parameters", site, lanes, 0)
            store = getattr(self.machine, f"store_{_SPACE_NAMES[space]}")
            if chosen is None:
                plain = address - np.uint64(_SPACE_BASES[space]) if space > 1 else address
                store(lanes, plain, kind, values, site, None)
            else:
                plain = address.take(chosen) - np.uint64(_SPACE_BASES.get(space, 0))
                some = tuple(v if v.shape[0] == 1 else v.take(chosen) for v in values)
                store(lanes.select(chosen), plain, kind, some, site, None)
