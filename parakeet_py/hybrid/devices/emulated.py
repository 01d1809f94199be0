"""Emulated GPUs: devices whose kernels the PTX emulator executes.

Each has a memory of its own, in a range of addresses where nothing of the host lies, so that a pointer that was never
copied there faults. Modules are kept under a name that stands for their kernel's: many functions have the same kernels,
and each is translated for the emulator once.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import (
    L2_LINES,
    SWIZZLE,
    TENSOR_KINDS,
    Device,
    DeviceError,
    DeviceMemoryError,
    TensorMap,
)
from parakeet_py.hybrid.devices.timeline import COPY_IN, COPY_OUT, COPY_OVER, KERNEL, span
from parakeet_py.hybrid.residency.byte_ranges import Rows
from parakeet_py.ptx import emulator
from parakeet_py.ptx.target import DEFAULT

MEMORY = 1 << 32  # bytes of an emulated device, by default
_ENTRY = re.compile(r"\.entry (\w+)")
_ANY_NAME = "any_kernel_"


class _Loaded(NamedTuple):
    """A module, and the dynamic shared memory of a block of its kernels."""

    module: emulator.Module
    shared: int


def tensor_bytes(tensor: TensorMap) -> bytes:
    """What the emulator takes for a tensor map."""
    kind = TENSOR_KINDS[tensor.dtype]
    steps = (1,) * len(tensor.box)
    return emulator.tensor_map(
        kind, tensor.address, tensor.extents, tensor.strides, tensor.box, steps, 0, SWIZZLE, L2_LINES, 0
    )


class EmulatedDevice:
    """One emulated GPU, see `device.Device`."""

    asynchronous = False
    shows_memory = False
    stream = 1

    def __init__(self, name: str, memory: int = MEMORY, architecture: str = DEFAULT) -> None:
        self.name = name
        self.architecture = architecture
        self._device = emulator.Device(memory_bytes=memory)
        self._modules: dict[str, emulator.Module] = {}
        self._lock = threading.RLock()  # one kernel at a time, as in one stream

    def allocate(self, size: int) -> int:
        with self._lock:
            try:
                return self._device.alloc(size)
            except MemoryError as error:
                raise DeviceMemoryError(self.name, size, self._device.free_bytes) from error

    def free(self, address: int) -> None:
        with self._lock:
            self._device.free(address)

    def _does(self, kind: str, name: str, amount: int) -> AbstractContextManager[None]:
        """Around whatever takes time, see `timeline.Event`."""
        return span(self, kind, name, amount)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        with self._lock, self._does(COPY_IN, "", data.nbytes):
            for number, row in enumerate(data if pitch else (data,)):
                self._device.copy_in(address + number * pitch, row)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        with self._lock, self._does(COPY_OUT, "", data.nbytes):
            for number, row in enumerate(data if pitch else (data,)):
                self._device.copy_out(address + number * pitch, row)

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype, order)

    def bring_again(self, array: np.ndarray[Any, Any]) -> None:
        pass

    def finish_reading(self) -> None:
        pass

    def reaches(self, source: Device) -> bool:
        return isinstance(source, EmulatedDevice)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        assert isinstance(source, EmulatedDevice)
        data = np.empty((rows.height, rows.width), np.uint8)
        with source._lock:
            for number, row in enumerate(data):
                source._device.copy_out(place + number * rows.pitch, row)
        with self._lock, self._does(COPY_OVER, "", data.nbytes):
            for number, row in enumerate(data):
                self._device.copy_in(address + number * rows.pitch, row)

    def copy_within(self, target: int, source: int, size: int) -> None:
        data = np.empty(size, np.uint8)
        self.copy_out(data, source)
        self.copy_in(target, data)

    def mark(self) -> Any:
        return time.perf_counter()

    def seconds(self, start: Any, end: Any) -> float:
        return float(end - start)

    def owns(self, address: int) -> bool:
        with self._lock:
            return self._device.memory.find(address) is not None

    def wait_for(self, stream: int) -> None:
        """Everything has been done when it returns."""

    def let_wait(self, stream: int) -> None:
        """Everything has been done when it returns."""

    def load(self, ptx: str, shared: int = 0) -> Any:
        kernels = _ENTRY.findall(ptx)
        if len(kernels) == 1:
            ptx = ptx.replace(kernels[0], _ANY_NAME)
        with self._lock:
            module = self._modules.get(ptx)
            if module is None:
                module = self._modules[ptx] = self._device.load(ptx)
            return _Loaded(module, shared)

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        with self._lock, self._does(KERNEL, kernel, blocks):
            loaded, shared = module
            given = [tensor_bytes(value) if code == "T" else value for code, value in zip(codes, values, strict=True)]
            try:
                loaded.launch(_ANY_NAME if _ANY_NAME in loaded.kernels else kernel, blocks, threads, given, shared)
            except emulator.KernelFault as fault:
                raise DeviceError(str(fault).replace(_ANY_NAME, kernel)) from fault

    def submit(self) -> None:
        pass

    def synchronize(self) -> None:
        """Kernels have run when `launch` returns."""

    def lane(self, number: int) -> AbstractContextManager[None]:
        return nullcontext()
