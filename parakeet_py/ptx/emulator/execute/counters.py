"""What a launch did, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from parakeet_py.ptx.emulator.execute.lanes import Lanes
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.front.sites import Site

_SECTOR_SHIFT = 5


@dataclass(slots=True)
class Counters:
    """Counts of a launch, or summed over several.

    Attributes
    ----------
    instructions : int
        Instructions executed, one for each thread.
    bytes_loaded, bytes_stored : dict
        Bytes by state space ("global", "shared", "local"), over all threads.
    atomics : int
        Atomic operations, one for each thread.
    sectors : int
        32-byte sectors of device memory touched, counted per warp and instruction; only when profiling.
    warp_accesses : int
        Warps that executed an access to device memory; only when profiling.
    sectors_by_line : dict
        (accesses by warps, sectors) for each PTX line; only when profiling.
    blocks, launches : int
        Blocks of threads run, and launches.
    """

    profile: bool = False
    instructions: int = 0
    bytes_loaded: dict[str, int] = field(default_factory=lambda: {"global": 0, "shared": 0, "local": 0})
    bytes_stored: dict[str, int] = field(default_factory=lambda: {"global": 0, "shared": 0, "local": 0})
    atomics: int = 0
    sectors: int = 0
    warp_accesses: int = 0
    sectors_by_line: dict[int, tuple[int, int]] = field(default_factory=dict)
    blocks: int = 0
    launches: int = 0

    def loaded(self, lanes: Lanes, space: str, size: int, address: Array, site: Site) -> None:
        """Count a load of `size` bytes by each lane."""
        self.bytes_loaded[space] += lanes.n * size
        if self.profile and space == "global":
            self._sectors(lanes, size, address, site)

    def stored(self, lanes: Lanes, space: str, size: int, address: Array, site: Site) -> None:
        """Count a store of `size` bytes by each lane."""
        self.bytes_stored[space] += lanes.n * size
        if self.profile and space == "global":
            self._sectors(lanes, size, address, site)

    def _sectors(self, lanes: Lanes, size: int, address: Array, site: Site) -> None:
        full = np.broadcast_to(address, (lanes.n,))
        sector = (full >> np.uint64(_SECTOR_SHIFT)).astype(np.int64) & ((1 << 43) - 1)
        key = (lanes.warps().astype(np.int64) << 43) | sector
        touched = int(np.unique(key).size)
        warps = lanes.warps_touched()
        self.sectors += touched
        self.warp_accesses += warps
        line = site.instruction.line
        before = self.sectors_by_line.get(line, (0, 0))
        self.sectors_by_line[line] = (before[0] + warps, before[1] + touched)

    def add(self, other: Counters) -> None:
        """Add the counts of another launch."""
        self.instructions += other.instructions
        self.atomics += other.atomics
        self.sectors += other.sectors
        self.warp_accesses += other.warp_accesses
        self.blocks += other.blocks
        self.launches += other.launches
        for space, count in other.bytes_loaded.items():
            self.bytes_loaded[space] += count
        for space, count in other.bytes_stored.items():
            self.bytes_stored[space] += count
        for line, (warps, sectors) in other.sectors_by_line.items():
            before = self.sectors_by_line.get(line, (0, 0))
            self.sectors_by_line[line] = (before[0] + warps, before[1] + sectors)
