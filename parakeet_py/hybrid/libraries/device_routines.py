"""Which library of a device does one of NumPy's routines (`base.routines`), if one does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parakeet_py.hybrid.libraries import cusolver_values
from parakeet_py.hybrid.libraries.cufft import Cufft, Transform, transform_of
from parakeet_py.hybrid.libraries.cusolver import Cusolver, work_of
from parakeet_py.hybrid.libraries.cusolver_values import values_of
from parakeet_py.hybrid.libraries.device_library import Memory
from parakeet_py.hybrid.residency.arrays import DeviceView


def do(
    memory: Memory, cusolver: Cusolver, cufft: Cufft, name: str, outs: Sequence[DeviceView], ins: Sequence[DeviceView]
) -> tuple[str, bool] | None:
    """Let a library do a routine: its name, and whether that has failed as LAPACK's do; None if none can."""
    work = work_of(name, outs, ins)
    if work is not None and cusolver.ready():
        failed = cusolver.run(memory, work)
        return None if failed is None else ("cuSOLVER", failed)
    values = values_of(name, outs, ins)
    if values is not None and cusolver.ready():
        failed = cusolver_values.run(cusolver, memory, values)
        return None if failed is None else ("cuSOLVER", failed)
    transform = transform_of(name, outs, ins)
    if transform is not None and cufft.ready() and _transformed(memory, cufft, transform, outs[0], ins[0]):
        return "cuFFT", False
    return None


def _transformed(memory: Memory, cufft: Cufft, transform: Transform, out: DeviceView, given: DeviceView) -> bool:
    """Whether cuFFT has done a transform; of input that it may overwrite it is given a copy."""
    lines, scratch = given.address, 0
    try:
        if transform.overwrites:
            size = transform.span * np.dtype(given.dtype).itemsize
            lines = scratch = memory.allocate(size)
            memory.copy_within(scratch, given.address, size)
        with memory.library_order("cuFFT") as stream:
            return cufft.run(stream, transform, lines, out.address)
    finally:
        if scratch:
            memory.free(scratch)
