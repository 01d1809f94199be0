"""An emulator of PTX: executes the text of kernels on NumPy arrays, for machines without a GPU.

`run` executes one kernel on arrays; `Device` and `Module` are for a program that drives the emulator as it would drive
a device. The emulator takes any PTX, not only this package's, refuses by name what it cannot execute, and turns what a
device would silently get wrong into errors that name the PTX line. `docs/ptx_emulator.md` describes it.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.api import Device, LaunchResult, Module, run
from parakeet_py.ptx.emulator.checks.errors import (
    BarrierError,
    DataRace,
    DeadlockError,
    DeviceOutOfMemory,
    EmulatorError,
    KernelFault,
    LaunchError,
    MemoryFault,
    PtxSyntaxError,
    TrapError,
    UninitialisedRead,
    UnsupportedPtx,
    WarpError,
)
from parakeet_py.ptx.emulator.checks.options import NO_CHECKS, Checks
from parakeet_py.ptx.emulator.execute.counters import Counters
from parakeet_py.ptx.emulator.memory.tensor_maps import encode as tensor_map
from parakeet_py.ptx.emulator.memory.tensor_maps import moved as tensor_map_at

__all__ = [
    "NO_CHECKS",
    "BarrierError",
    "Checks",
    "Counters",
    "DataRace",
    "DeadlockError",
    "Device",
    "DeviceOutOfMemory",
    "EmulatorError",
    "KernelFault",
    "LaunchError",
    "LaunchResult",
    "MemoryFault",
    "Module",
    "PtxSyntaxError",
    "TrapError",
    "UninitialisedRead",
    "UnsupportedPtx",
    "WarpError",
    "run",
    "tensor_map",
    "tensor_map_at",
]
