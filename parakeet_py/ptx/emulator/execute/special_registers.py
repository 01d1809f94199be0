"""Special registers: tables over the lanes in flight, and values of the moment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from parakeet_py.ptx.emulator.execute.launch import Launch
from parakeet_py.ptx.emulator.front.kinds import Array


def _tid(machine: Launch) -> Array:
    """The number of each lane's thread in its block; a slot has whole warps, so some numbers are no threads."""
    return np.tile(np.arange(machine.slot_lanes, dtype=np.uint32), machine.slot_count)


def _ctaid(machine: Launch) -> Array:
    """The number of each lane's block in the grid."""
    numbers = machine.block_numbers.astype(np.uint32)
    return numbers if machine.slot_count == 1 else np.repeat(numbers, machine.slot_lanes)


def _constant(value: int) -> Array:
    return np.array([value], dtype=np.uint32)


def _lane_mask(machine: Launch, relation: str) -> Array:
    lane = _tid(machine) & np.uint32(31)
    bit = np.uint32(1) << lane
    below = bit - np.uint32(1)
    match relation:
        case "eq":
            return bit
        case "lt":
            return below
        case "le":
            return below | bit
        case "gt":
            return ~(below | bit)
        case _:
            return ~below


# Registers whose value stays the same for a thread.
TABLES: dict[str, Callable[[Launch], Array]] = {
    "tid_x": lambda m: _tid(m) % np.uint32(m.block[0]) if m.block[1] * m.block[2] > 1 else _tid(m),
    "tid_y": lambda m: _tid(m) // np.uint32(m.block[0]) % np.uint32(m.block[1]) if m.block[1] > 1 else _constant(0),
    "tid_z": lambda m: _tid(m) // np.uint32(m.block[0] * m.block[1]) if m.block[2] > 1 else _constant(0),
    "ntid_x": lambda m: _constant(m.block[0]),
    "ntid_y": lambda m: _constant(m.block[1]),
    "ntid_z": lambda m: _constant(m.block[2]),
    "ctaid_x": lambda m: _ctaid(m) % np.uint32(m.grid[0]) if m.grid[1] * m.grid[2] > 1 else _ctaid(m),
    "ctaid_y": lambda m: _ctaid(m) // np.uint32(m.grid[0]) % np.uint32(m.grid[1]) if m.grid[1] > 1 else _constant(0),
    "ctaid_z": lambda m: _ctaid(m) // np.uint32(m.grid[0] * m.grid[1]) if m.grid[2] > 1 else _constant(0),
    "nctaid_x": lambda m: _constant(m.grid[0]),
    "nctaid_y": lambda m: _constant(m.grid[1]),
    "nctaid_z": lambda m: _constant(m.grid[2]),
    "laneid": lambda m: _tid(m) & np.uint32(31),
    "warpid": lambda m: _tid(m) >> np.uint32(5),
    "nwarpid": lambda m: _constant(m.slot_lanes // 32),
    "smid": lambda m: _ctaid(m) % np.uint32(m.processors),
    "nsmid": lambda m: _constant(m.processors),
    "gridid": lambda m: _constant(m.launch_number),
    "total_smem_size": lambda m: _constant(m.shared_size),
    "aggr_smem_size": lambda m: _constant(m.shared_size),
    "dynamic_smem_size": lambda m: _constant(m.dynamic_shared),
    "is_explicit_cluster": lambda m: np.array([False]),
    **{f"lanemask_{relation}": partial(_lane_mask, relation=relation) for relation in ("eq", "lt", "le", "gt", "ge")},
    **{f"cluster_ctaid_{axis}": (lambda m: _constant(0)) for axis in "xyz"},
    **{f"cluster_nctaid_{axis}": (lambda m: _constant(1)) for axis in "xyz"},
    "cluster_ctarank": lambda m: _constant(0),
    "cluster_nctarank": lambda m: _constant(1),
    "shared_base": lambda m: (
        np.zeros(1, dtype=np.int64)
        if m.slot_count == 1
        else np.repeat(np.arange(m.slot_count, dtype=np.int64) * m.shared_stride, m.slot_lanes)
    ),
}
for _axis in "xyz":
    TABLES[f"clusterid_{_axis}"] = TABLES[f"ctaid_{_axis}"]
    TABLES[f"nclusterid_{_axis}"] = TABLES[f"nctaid_{_axis}"]
for _number in range(32):
    TABLES[f"envreg{_number}"] = lambda m: _constant(0)

# Registers that change while a thread runs.
CLOCKS = frozenset({"clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"})
