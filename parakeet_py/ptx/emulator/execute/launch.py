"""What the parts of a launch know of it: a protocol that `machine.Machine` fulfils.

Memory, barriers, checks and special registers are written against this file, so that none of them imports the machine
that puts them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from parakeet_py.ptx.emulator.checks.errors import KernelFault
from parakeet_py.ptx.emulator.checks.options import Checks
from parakeet_py.ptx.emulator.checks.races import Conflict, Order
from parakeet_py.ptx.emulator.execute.counters import Counters
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.front.sites import Site
from parakeet_py.ptx.emulator.memory.device_memory import Allocation, Memory

if TYPE_CHECKING:
    from parakeet_py.ptx.emulator.execute.lanes import Lanes

Values = tuple[Array, ...]
Loaded = Array | tuple[Array, ...]


class Load(Protocol):
    """Loads of `count` values of a kind, one for each lane, through addresses of one state space."""

    def __call__(
        self, lanes: Lanes, address: Array, kind: str, count: int, site: Site, mask: Array | None
    ) -> Loaded: ...


class Store(Protocol):
    """Stores of values of a kind, one for each lane, through addresses of one state space."""

    def __call__(
        self, lanes: Lanes, address: Array, kind: str, values: tuple[Array, ...], site: Site, mask: Array | None
    ) -> None: ...


class LaunchDevice(Protocol):
    """The device that a launch runs on."""

    @property
    def memory(self) -> Memory: ...

    @property
    def processors(self) -> int: ...

    @property
    def launches(self) -> int: ...


class BulkOrder(Protocol):
    """What barriers that count bytes order."""

    def meet(self, slots: Array | None) -> None: ...

    def read(self, pieces: Array, size: int, owners: Array, site: Site) -> None: ...

    def reading(self, warp: int, bytes_: Array) -> None: ...


class AccessWatch(Protocol):
    """The log of accesses to device memory."""

    def log(
        self,
        write: bool,
        block: Allocation,
        index: Array,
        count: int,
        size: int,
        lanes: Lanes,
        site: Site,
        values: Values | None,
    ) -> None: ...

    def report(self, conflict: Conflict, wrote: bool, site: Site, earlier: Site | None, place: str) -> None: ...


class Launch(Protocol):
    """One launch of a kernel."""

    block: tuple[int, int, int]
    block_numbers: Array
    checks: Checks
    clock_ticks: int
    counters: Counters
    dynamic_shared: int
    first_lane: int
    grid: tuple[int, int, int]
    launch_number: int
    live: int
    local_memory: Array
    local_size: int
    local_written: Array | None
    order: Order
    output: list[str]
    parameter_bytes: Array
    processors: int
    progress: int
    releases: dict[int, list[int]]
    shared_memory: Array
    shared_size: int
    shared_stride: int
    slot_count: int
    slot_lanes: int
    steps: int
    tables: dict[str, Array]
    threads: int
    total: int
    waiting: dict[tuple[int, tuple[int, ...]], tuple[Lanes, Values, Site]]
    warp_count: int

    @property
    def device(self) -> LaunchDevice: ...

    @property
    def bulk(self) -> BulkOrder: ...

    @property
    def watch(self) -> AccessWatch | None: ...

    @property
    def load_global(self) -> Load: ...

    @property
    def load_shared(self) -> Load: ...

    @property
    def load_generic(self) -> Load: ...

    @property
    def store_shared(self) -> Store: ...

    def push(self, block: int, lanes: Lanes, values: Values) -> None: ...

    def exited_per_slot(self) -> Array: ...

    def check_shared(
        self, write: bool, lanes: Lanes, index: Array, count: int, size: int, site: Site, values: Values | None
    ) -> None: ...

    def shared_barrier(self) -> None: ...

    def written_shared(self, bytes_: Array) -> None: ...

    def begin_copies(self, lanes: Lanes, target: Array, size: int) -> None: ...

    def thread_name(self, lane: int) -> str: ...

    def fault_at(self, kind: type[KernelFault], message: str, site: Site, lane: int) -> KernelFault: ...

    def fault(self, kind: type[KernelFault], message: str, site: Site, lanes: Lanes, place: int) -> KernelFault: ...
