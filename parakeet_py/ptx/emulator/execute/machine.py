"""One launch: the blocks of threads in flight, their memory, and what generated code calls.

Blocks of threads are brought in flight some at a time (a wave); more join when those in flight wait for them. A machine
is a scheduler with memory and the operations of `access.py`, `operations.py` and `barriers.py`, whose methods it passes
on under its own name, because generated code knows nothing but the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.ptx.emulator.checks.access_log import SharedCheck, Watch
from parakeet_py.ptx.emulator.checks.barriers import Barriers
from parakeet_py.ptx.emulator.checks.errors import KernelFault
from parakeet_py.ptx.emulator.checks.options import Checks
from parakeet_py.ptx.emulator.checks.races import Order
from parakeet_py.ptx.emulator.execute.counters import Counters
from parakeet_py.ptx.emulator.execute.lanes import Lanes, Values
from parakeet_py.ptx.emulator.execute.launch import LaunchDevice
from parakeet_py.ptx.emulator.execute.operations import Operations
from parakeet_py.ptx.emulator.execute.scheduler import Scheduler
from parakeet_py.ptx.emulator.execute.special_registers import TABLES
from parakeet_py.ptx.emulator.front.kinds import DTYPES, Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory.access import Access
from parakeet_py.ptx.emulator.memory.bulk_copies import BulkCopies

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.translate.program import Program

_LANES_IN_FLIGHT = 1 << 15
_LOCAL_LIMIT = 512 * 1024


class _Tables(dict[str, Array]):
    """Special registers over all lanes in flight, made when first asked for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __missing__(self, name: str) -> Array:
        found = self[name] = TABLES[name](self._machine)
        return found


class Machine(Scheduler):
    """One launch of a kernel on a device."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    warp_count: int
    block_numbers: Array
    tables: dict[str, Array]
    processors: int
    launch_number: int
    shared_size: int
    shared_stride: int
    dynamic_shared: int

    def __init__(
        self,
        program: Program,
        kernel: str,
        device: LaunchDevice,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: bytes,
        symbols: dict[str, Array],
        dynamic_shared: int,
        checks: Checks,
        profile: bool,
    ) -> None:
        super().__init__()
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
        self.watch = Watch() if checks.races else None
        if self.watch is not None:
            self.watch.machine = self
        self.releases: dict[int, list[int]] = {}
        self.output: list[str] = []
        access = Access(self)
        operations = Operations(self, access)
        self.barriers = Barriers(self)
        self.bulk = BulkCopies(self)
        self.load_global, self.store_global = access.load_global, access.store_global
        self.load_shared, self.store_shared = access.load_shared, access.store_shared
        self.load_local, self.store_local = access.load_local, access.store_local
        self.load_param = access.load_param
        self.load_generic, self.store_generic = access.load_generic, access.store_generic
        self.atomic, self.copy_async = operations.atomic, operations.copy_async
        self.shuffle, self.vote, self.match = operations.shuffle, operations.vote, operations.match
        self.redux, self.elect, self.activemask = operations.redux, operations.elect, operations.activemask
        self.load_matrix = operations.load_matrix
        self.group_matrix = operations.group_matrix
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
            self.run()
            self.first_lane += self.slot_count * self.slot_lanes
        if self.watch is not None:
            self.watch.replay()
        self.counters.instructions += self.instructions
        self.counters.blocks += self.total_blocks
        self.counters.launches += 1

    def _begin_wave(self, count: int) -> None:
        self.slot_count = 0
        self.block_numbers = np.zeros(0, dtype=np.int64)
        self.reset()
        self.barriers.reset()
        self.bulk.reset()
        self.shared_memory: Array = np.zeros(0, dtype=np.uint8)
        self.local_size = 0
        self.local_memory: Array = np.zeros(0, dtype=np.uint8)
        self.local_written: Array | None = None
        nothing: Array = np.zeros(0, dtype=np.int64)
        self.order = Order(self.slot_lanes, self.first_lane, nothing, nothing, nothing, self.releases)
        self._shared_check: SharedCheck | None = None
        self.admit(count)

    def admit(self, count: int) -> None:
        """Bring more blocks in flight."""
        first_slot = self.slot_count
        numbers = np.arange(self.next_block, self.next_block + count)
        self.next_block += count
        self.slot_count += count
        self.block_numbers = np.concatenate([self.block_numbers, numbers])
        self.warp_count = self.slot_count * self.slot_lanes // 32
        self.tables = _Tables(self)
        self.forget_tables()
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

    def shared_barrier(self) -> None:
        """All threads in flight have passed a barrier."""
        if self._shared_check is not None:
            self._shared_check.all_passed()

    def written_shared(self, bytes_: Array) -> None:
        """Bytes of the shared memory of all blocks have been written, by no thread."""
        if self._shared_check is not None:
            self._shared_check.written_by_copy(bytes_)

    def begin_copies(self, lanes: Lanes, target: Array, size: int) -> None:
        """Asynchronous copies to shared memory have been issued."""
        if self._shared_check is not None:
            self._shared_check.copies.begin(lanes, target, size)

    def commit_copies(self, lanes: Lanes) -> None:
        """The copies since the last commit are a group."""
        if self._shared_check is not None:
            self._shared_check.copies.commit(lanes)

    def await_copies(self, lanes: Lanes, left: int | None) -> None:
        """Wait until at most `left` of the groups are not complete; None: for every copy."""
        if self._shared_check is not None:
            self._shared_check.copies.wait(lanes, left)

    def reserve_local(self, top: Array) -> None:
        """Make the threads' own memory reach up to `top`."""
        need = int(top.max())
        if need > self.local_size:
            if need > _LOCAL_LIMIT:
                self.stuck(f"a thread needs {need} bytes of local memory; {_LOCAL_LIMIT} are the limit")
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

    # -- small services -------------------------------------------------------------------------------------------

    def parameter(self, offset: int, kind: str) -> Array:
        """A value among the kernel's parameters."""
        found = self._parameters.get((offset, kind))
        if found is None:
            dtype = DTYPES[kind]
            found = self.parameter_bytes[offset : offset + dtype.itemsize].copy().view(dtype)
            self._parameters[offset, kind] = found
        return found

    def spill(self, lanes: Lanes, address: Array, value: Array) -> None:
        """Put a parameter into its thread's own memory, because the function takes its address."""
        rows = (
            value if value.dtype == np.uint8 and value.ndim == 2 else value.view(np.uint8).reshape(value.shape[0], -1)
        )
        start = lanes.index * self.local_size + address.view(np.int64)
        for byte in range(rows.shape[1]):
            self.local_memory[start + byte] = rows[:, byte]
            if self.local_written is not None:
                self.local_written[start + byte] = True

    def pause(self, lanes: Lanes) -> None:
        """nanosleep: time passes anyway."""

    def thread_name(self, lane: int) -> str:
        """A lane of the launch in words: its thread and block. Blocks come in flight in their order."""
        number, thread = divmod(lane, self.slot_lanes)
        x, y, _ = self.block
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
