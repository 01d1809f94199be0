"""The machine that runs a kernel: which lanes execute which block next.

Blocks of threads are brought in flight some at a time. All their lanes that wait at the same place are run together;
the place with the lowest number comes first (after deeper calls), which by the order of `flow.py` is where lanes that
parted meet again. Lanes that come round a loop whose end may hang on other threads give way: they fall back a level,
and a level is run only when nothing is left above it, so every thread gets its turn, and a spinning one cannot starve
the thread it waits for. When all spin and no memory changes, more blocks are brought in; when there are none, it is a
deadlock.

Generated code calls the methods of a `Machine`; a block returns where it goes on, or None when its lanes have been put
elsewhere.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from parakeet_py.ptx.emulator.access import Access
from parakeet_py.ptx.emulator.barriers import Barriers
from parakeet_py.ptx.emulator.checks import Checks
from parakeet_py.ptx.emulator.counters import Counters
from parakeet_py.ptx.emulator.emitter import Site
from parakeet_py.ptx.emulator.errors import DeadlockError, EmulatorError, KernelFault, LaunchError, WarpError
from parakeet_py.ptx.emulator.kinds import DTYPES, Array
from parakeet_py.ptx.emulator.lanes import Frame, Lanes, Values, merged, taken
from parakeet_py.ptx.emulator.memory import CODE
from parakeet_py.ptx.emulator.operations import Operations
from parakeet_py.ptx.emulator.races import Order
from parakeet_py.ptx.emulator.specials import TABLES
from parakeet_py.ptx.emulator.watch import SharedCheck, Watch

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.api import Device
    from parakeet_py.ptx.emulator.program import Program

Transfer = tuple[int, Lanes, Values]
_Key = tuple[int, int, int, tuple[int, ...]]
_LANES_IN_FLIGHT = 1 << 15
_IDLE_BEFORE_MORE_BLOCKS = 8
_IDLE_BEFORE_DEADLOCK = 20_000
_LOCAL_LIMIT = 512 * 1024
_CALL_DEPTH = 4096


class _Tables(dict[str, Array]):
    """Special registers over all lanes in flight, made when first asked for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __missing__(self, name: str) -> Array:
        found = self[name] = TABLES[name](self._machine)
        return found


class Machine:
    """One launch of a kernel on a device."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    slot_lanes: int
    slot_count: int
    warp_count: int
    block_numbers: Array
    tables: dict[str, Array]
    processors: int
    launch_number: int
    shared_size: int
    shared_stride: int
    dynamic_shared: int
    live: int
    total: int
    first_lane: int
    next_block: int

    def __init__(
        self,
        program: Program,
        kernel: str,
        device: Device,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: bytes,
        symbols: dict[str, Array],
        dynamic_shared: int,
        checks: Checks,
        profile: bool,
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.device = device
        self.checks = checks
        self.counters = Counters(profile)
        self.grid = grid
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.slot_lanes = -(-self.threads // 32) * 32
        self.total_blocks = grid[0] * grid[1] * grid[2]
        self.parameter_bytes: Array = np.frombuffer(parameters, dtype=np.uint8)
        self._parameters: dict[tuple[int, str], Array] = {}
        self.symbols = symbols
        self.dynamic_shared = dynamic_shared
        self.shared_size = program.shared_layout(kernel).size_with(dynamic_shared)
        self.shared_stride = -(-self.shared_size // 128) * 128
        self.processors = device.processors
        self.launch_number = device.launches
        self.clock_ticks = 0
        self.instructions = 0
        self.progress = 0
        self.steps = 0
        self.watch = Watch() if checks.races else None
        if self.watch is not None:
            self.watch.machine = self
        self.releases: dict[int, list[int]] = {}
        self.output: list[str] = []
        access = Access(self)
        operations = Operations(self, access)
        self.barriers = Barriers(self)
        self.load_global, self.store_global = access.load_global, access.store_global
        self.load_shared, self.store_shared = access.load_shared, access.store_shared
        self.load_local, self.store_local = access.load_local, access.store_local
        self.load_param = access.load_param
        self.load_generic, self.store_generic = access.load_generic, access.store_generic
        self.atomic, self.copy_async = operations.atomic, operations.copy_async
        self.shuffle, self.vote, self.match = operations.shuffle, operations.vote, operations.match
        self.redux, self.elect, self.activemask = operations.redux, operations.elect, operations.activemask
        self.matrix, self.fence, self.trap = operations.matrix, operations.fence, operations.trap
        self.warp_barrier, self.read_clock = operations.warp_barrier, operations.read_clock
        self.is_constant = operations.is_constant
        self.system_vprintf, self.system_malloc = operations.system_vprintf, operations.system_malloc
        self.system_free, self.system_assertfail = operations.system_free, operations.system_assertfail
        self.arrive, self.arrive_only = self.barriers.arrive, self.barriers.arrive_only
        self.note_release, self.note_acquire = operations.note_release, operations.note_acquire

    # -- blocks of threads in flight ------------------------------------------------------------------------------

    def run_all(self) -> None:
        """Run every block of the grid."""
        per_wave = max(1, _LANES_IN_FLIGHT // self.slot_lanes)
        if self.shared_stride:
            per_wave = max(1, min(per_wave, (1 << 28) // self.shared_stride))
        self.next_block = 0
        self.first_lane = 0
        while self.next_block < self.total_blocks:
            self._begin_wave(min(per_wave, self.total_blocks - self.next_block))
            self._run()
            self.first_lane += self.slot_count * self.slot_lanes
        if self.watch is not None:
            self.watch.replay()
        self.counters.instructions += self.instructions
        self.counters.blocks += self.total_blocks
        self.counters.launches += 1

    def _begin_wave(self, count: int) -> None:
        self.slot_count = 0
        self.block_numbers = np.zeros(0, dtype=np.int64)
        self.live = 0
        self.total = 0
        self._pending: dict[_Key, list[tuple[Lanes, Values]]] = {}
        self._heap: list[_Key] = []
        self.waiting: dict[tuple[int, tuple[int, ...]], tuple[Lanes, Values, Site]] = {}
        self._exited: list[Lanes] = []
        self._visits: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        self._idle = 0
        self._progress_seen = -1
        self.barriers.reset()
        self.shared_memory: Array = np.zeros(0, dtype=np.uint8)
        self.local_size = 0
        self.local_memory: Array = np.zeros(0, dtype=np.uint8)
        self.local_written: Array | None = None
        nothing: Array = np.zeros(0, dtype=np.int64)
        self.order = Order(self.slot_lanes, self.first_lane, nothing, nothing, nothing, self.releases)
        self._shared_check: SharedCheck | None = None
        self._admit(count)

    def _admit(self, count: int) -> None:
        """Bring more blocks in flight."""
        first_slot = self.slot_count
        numbers = np.arange(self.next_block, self.next_block + count)
        self.next_block += count
        self.slot_count += count
        self.block_numbers = np.concatenate([self.block_numbers, numbers])
        self.warp_count = self.slot_count * self.slot_lanes // 32
        self.tables = _Tables(self)
        for parts in self._pending.values():
            for lanes, _ in parts:
                lanes._cache.clear()
        for lanes, _, _ in self.waiting.values():
            lanes._cache.clear()
        self.barriers.forget_tables()
        self.shared_memory = np.concatenate([self.shared_memory, np.zeros(count * self.shared_stride, dtype=np.uint8)])
        if self.local_size:
            self._resize_local(self.local_size)
        grown = [
            (self.order.barrier, self.slot_count),
            (self.order.warp, self.warp_count),
            (self.order.acquire, self.slot_count),
        ]
        barrier, warp, acquire = (
            np.concatenate([old, np.zeros(size - old.shape[0], dtype=np.int64)]) for old, size in grown
        )
        self.order = Order(
            self.slot_lanes, self.first_lane, barrier, warp, acquire, self.releases, self.order.warp_used
        )
        if self.shared_stride:
            if self._shared_check is None:
                piece = self.program.shared_piece
                if self.checks.races or self.checks.uninitialised_shared:
                    self._shared_check = SharedCheck(self, piece)
            else:
                self._shared_check.extended()
        slots = np.arange(first_slot, self.slot_count) * self.slot_lanes
        index = (slots[:, None] + np.arange(self.threads)).reshape(-1)
        self.live += index.shape[0]
        self.total += index.shape[0]
        self.push(self.program.entry_block(self.kernel), Lanes(self, index), ())

    def check_shared(
        self, write: bool, lanes: Lanes, index: Array, count: int, size: int, site: Site, values: Values | None
    ) -> None:
        """Check an access to shared memory."""
        if self._shared_check is not None:
            self._shared_check.check(write, lanes, index, count, size, site, values)

    def reserve_local(self, top: Array) -> None:
        """Make the threads' own memory reach up to `top`."""
        need = int(top.max())
        if need > self.local_size:
            if need > _LOCAL_LIMIT:
                self._stuck(f"a thread needs {need} bytes of local memory; {_LOCAL_LIMIT} are the limit")
            self._resize_local(max(need, 2 * self.local_size if self.local_size else need))

    def _resize_local(self, size: int) -> None:
        size = -(-size // 16) * 16
        lanes = self.slot_count * self.slot_lanes

        def grown(old: Array) -> Array:
            new = np.zeros((lanes, size), dtype=old.dtype)
            if old.size:
                rows = old.reshape(-1, self.local_size)
                new[: rows.shape[0], : self.local_size] = rows
            return new.reshape(-1)

        self.local_memory = grown(self.local_memory)
        if self.checks.uninitialised_local:
            written = self.local_written if self.local_written is not None else np.zeros(0, dtype=np.bool_)
            self.local_written = grown(written)
        self.local_size = size

    # -- the schedule ---------------------------------------------------------------------------------------------

    def push(self, block: int, lanes: Lanes, values: Values) -> None:
        """Let lanes wait to execute a block."""
        key = (lanes.level, -len(lanes.stack), block, lanes.stack_key)
        parts = self._pending.get(key)
        if parts is None:
            self._pending[key] = [(lanes, values)]
            heapq.heappush(self._heap, key)
        else:
            parts.append((lanes, values))

    def _run(self) -> None:
        code = self.program.code
        heap = self._heap
        limit = self.checks.max_steps
        while True:
            while heap:
                key = heapq.heappop(heap)
                parts = self._pending.pop(key)
                block = key[2]
                lanes, values = parts[0] if len(parts) == 1 else merged(self, parts)
                while True:
                    self.steps += 1
                    if self.steps > limit:
                        self._stuck(f"the kernel has executed more than {limit} blocks of code")
                    result: Transfer | None = code[block](self, lanes, *values)
                    if result is None:
                        break
                    block, lanes, values = result
                    if heap and heap[0] <= (lanes.level, -len(lanes.stack), block, lanes.stack_key):
                        self.push(block, lanes, values)
                        break
            if self.live == 0:
                return
            self._explain_waiting()

    def branch(
        self, lanes: Lanes, choice: Array, taken_to: int, some: Values, other: int, rest: Values
    ) -> Transfer | None:
        """Go to one block where `choice` holds and to another where not."""
        if choice.shape[0] == 1:
            return (taken_to, lanes, some) if choice[0] else (other, lanes, rest)
        count = int(np.count_nonzero(choice))
        if count == 0:
            return other, lanes, rest
        if count == lanes.n:
            return taken_to, lanes, some
        chosen, left = choice.nonzero()[0], (~choice).nonzero()[0]
        self.push(taken_to, lanes.select(chosen), taken(some, chosen, lanes.n))
        self.push(other, lanes.select(left), taken(rest, left, lanes.n))
        return None

    def switch(self, lanes: Lanes, index: Array, cases: tuple[tuple[int, Values], ...], site: Site) -> Transfer | None:
        """Go to the block that an index names."""
        if int(index.max()) >= len(cases):
            lane = int(np.flatnonzero(np.broadcast_to(index, (lanes.n,)) >= len(cases))[0])
            raise self.fault(
                KernelFault, f"index {int(index.max())} of a table of {len(cases)} labels", site, lanes, lane
            )
        if index.shape[0] == 1:
            block, values = cases[int(index[0])]
            return block, lanes, values
        for number in np.unique(index).tolist():
            chosen = np.flatnonzero(index == number)
            block, values = cases[number]
            self.push(block, lanes.select(chosen), taken(values, chosen, lanes.n))
        return None

    def spins(self, label: int, lanes: Lanes, threshold: int) -> bool:
        """At a loop's header: have these lanes come round often enough without any leaving that others should go on?"""
        key = (label, lanes.stack_key)
        visit = self._visits.get(key)
        if visit is None or visit[0] != lanes.n:
            self._visits[key] = [lanes.n, 0]
            return False
        visit[1] += 1
        if visit[1] <= threshold:
            return False
        visit[1] = 0
        lanes.level += 1
        if self.progress != self._progress_seen:
            self._progress_seen = self.progress
            self._idle = 0
            return True
        self._idle += 1
        if self._idle % _IDLE_BEFORE_MORE_BLOCKS == 0 and self.next_block < self.total_blocks:
            more = min(self.slot_count, self.total_blocks - self.next_block)
            lanes._cache.clear()
            self._admit(more)
        elif self._idle > _IDLE_BEFORE_DEADLOCK:
            place = self.program.line_of(label)
            raise DeadlockError(
                f"{lanes.n} threads go round a loop for ever: nothing they look at changes",
                place,
                self.program.text.source(place),
                self.thread_name(int(lanes.index[0]) + self.first_lane),
            )
        return True

    def gate(self, label: int, lanes: Lanes, mask: Array, values: Values, site: Site) -> tuple[Lanes, Values] | None:
        """At an operation of a whole warp: the lanes all of whose mask has come; the others wait."""
        values = (*values, mask)
        key = (label, lanes.stack_key)
        before = self.waiting.pop(key, None)
        if before is not None:
            lanes, values = merged(self, [(before[0], before[1]), (lanes, values)])
        mask = np.broadcast_to(values[-1], (lanes.n,))
        if not (mask & lanes.bits()).all():
            lane = int(np.flatnonzero((mask & lanes.bits()) == 0)[0])
            raise self.fault(
                WarpError, f"the mask {int(mask[lane]):#x} does not name the lane itself", site, lanes, lane
            )
        warps = lanes.warps()
        needed = mask & self.alive().take(warps)
        ready = (needed & ~lanes.present().take(warps)) == 0
        count = int(np.count_nonzero(ready))
        if count == lanes.n:
            return lanes, values[:-1]
        if count == 0:
            self.waiting[key] = (lanes, values, site)
            return None
        late = np.flatnonzero(~ready)
        self.waiting[key] = (lanes.select(late), taken(values, late, lanes.n), site)
        chosen = np.flatnonzero(ready)
        return lanes.select(chosen), taken(values[:-1], chosen, lanes.n)

    def alive(self) -> Array:
        """For every warp in flight the lanes that have not ended."""
        number = np.arange(self.slot_lanes)
        lanes = np.tile(number < self.threads, self.slot_count).reshape(-1, 32)
        masks = (lanes * (np.uint32(1) << np.arange(32, dtype=np.uint32))).sum(axis=1).astype(np.uint32)
        if self._exited:
            gone = np.zeros(self.slot_count * self.slot_lanes, dtype=np.bool_)
            for some in self._exited:
                gone[some.index] = True
            bits = (gone.reshape(-1, 32) * (np.uint32(1) << np.arange(32, dtype=np.uint32))).sum(axis=1)
            masks &= ~bits.astype(np.uint32)
        return masks

    def exited_per_slot(self) -> Array:
        """For every block in flight how many of its threads have ended."""
        counts = np.zeros(self.slot_count, dtype=np.int64)
        for some in self._exited:
            counts += np.bincount(some.slots(), minlength=self.slot_count)
        return counts

    def exit(self, lanes: Lanes) -> None:
        """The end of these threads."""
        self.live -= lanes.n
        self.progress += 1
        if self.live == 0:
            return
        self._exited.append(lanes)
        if self.waiting:
            # Whom a warp waits for may be gone.
            for (label, _), (group, values, _) in list(self.waiting.items()):
                self.push(label, group, values[:-1])
            self.waiting.clear()
        self.barriers.after_exit()

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, lanes: Lanes, block: int, passed: Values, target: int, saved: Values) -> Transfer:
        """Enter a function; `saved` waits for the return."""
        if len(lanes.stack) >= _CALL_DEPTH:
            self._stuck(f"calls are nested more than {_CALL_DEPTH} deep")
        return block, lanes.with_stack((*lanes.stack, Frame(target, saved))), passed

    def call_indirect(
        self, lanes: Lanes, address: Array, passed: Values, target: int, saved: Values, site: Site
    ) -> Transfer | None:
        """Enter the functions that addresses name."""
        for number in np.unique(address).tolist():
            chosen = np.flatnonzero(np.broadcast_to(address == number, (lanes.n,)))
            block = self.program.function_at(number - CODE, len(passed) - 1)
            if block is None:
                message = f"call of {number:#x}, which is no function with {len(passed) - 1} parameters"
                raise self.fault(KernelFault, message, site, lanes, int(chosen[0]))
            if chosen.size == lanes.n:
                return self.call(lanes, block, passed, target, saved)
            n = lanes.n
            self.push(
                *self.call(lanes.select(chosen), block, taken(passed, chosen, n), target, taken(saved, chosen, n))
            )
        return None

    def ret(self, lanes: Lanes, results: Values) -> Transfer:
        """Back to the caller."""
        frame = lanes.stack[-1]
        return frame.block, lanes.with_stack(lanes.stack[:-1]), (*results, *frame.saved)

    # -- small services -------------------------------------------------------------------------------------------

    def parameter(self, offset: int, kind: str) -> Array:
        """A value among the kernel's parameters."""
        found = self._parameters.get((offset, kind))
        if found is None:
            dtype = DTYPES[kind]
            found = self.parameter_bytes[offset : offset + dtype.itemsize].copy().view(dtype)
            self._parameters[offset, kind] = found
        return found

    def pause(self, lanes: Lanes) -> None:
        """nanosleep: time passes anyway."""

    def thread_name(self, lane: int) -> str:
        """A lane of the launch in words: its thread and block."""
        lane -= self.first_lane
        if not 0 <= lane < self.slot_count * self.slot_lanes:
            return "a thread of an earlier block"
        x, y, _ = self.block
        thread = lane % self.slot_lanes
        number = int(self.block_numbers[lane // self.slot_lanes])
        gx, gy, _ = self.grid
        place = (thread % x, thread // x % y, thread // (x * y))
        where = (number % gx, number // gx % gy, number // (gx * gy))
        return f"thread {place} of block {where}"

    def fault_at(self, kind: type[KernelFault], message: str, site: Site, lane: int) -> KernelFault:
        """An error of an instruction, for a lane of the launch."""
        where = f"kernel {self.kernel}, {self.thread_name(lane)}"
        return kind(message, site.instruction.line, site.source, where)

    def fault(self, kind: type[KernelFault], message: str, site: Site, lanes: Lanes, place: int) -> KernelFault:
        """An error of an instruction, for a lane of a set."""
        lane = int(lanes.index[min(place, lanes.n - 1)]) + self.first_lane
        return self.fault_at(kind, message, site, lane)

    def _stuck(self, message: str) -> NoReturn:
        raise DeadlockError(message, where=f"kernel {self.kernel}")

    def _explain_waiting(self) -> NoReturn:
        """Nothing can run and threads are left: they wait for each other."""
        self.barriers.explain()
        for lanes, values, site in self.waiting.values():
            mask = np.broadcast_to(values[-1], (lanes.n,))
            missing = int((mask & self.alive().take(lanes.warps()) & ~lanes.present().take(lanes.warps()))[0])
            raise self.fault(WarpError, f"the lanes {missing:#x} of the mask never come here", site, lanes, 0)
        raise EmulatorError("threads are lost", where=f"kernel {self.kernel}")


__all__ = ["LaunchError", "Machine"]
