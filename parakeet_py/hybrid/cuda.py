"""CUDA devices, through `cuda.core` (the `cuda` extra).

Nothing of CUDA is imported before libcuda has been found: its Python packages must not be touched without a driver.
Every device has one stream of its own for everything, a stream-ordered memory pool, and modules from PTX that the
driver compiles for it. `probe` says what there is, or why there is nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.device import DeviceError, DeviceMemoryError
from parakeet_py.ptx.target import ARCHITECTURES

_TYPES = {
    "b": ctypes.c_int8,
    "B": ctypes.c_uint8,
    "h": ctypes.c_int16,
    "H": ctypes.c_uint16,
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}
OLDEST = (7, 5)  # the least compute capability that kernels are made for


class Found(NamedTuple):
    """What a probe has found: the number of devices, or the reason why there is none."""

    devices: int
    reason: str


@lru_cache(maxsize=1)
def probe() -> Found:
    """Whether CUDA devices can be used here; opens nothing."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Found(0, "no NVIDIA driver (libcuda.so.1) is installed")
    status = driver.cuInit(0)
    if status != 0:
        return Found(0, f"the NVIDIA driver cannot be started (cuInit gave {status})")
    count = ctypes.c_int(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return Found(0, "the NVIDIA driver finds no device")
    try:
        import cuda.core  # noqa: F401
    except ImportError:
        return Found(0, "the Python package cuda-core is not installed: pip install 'parakeet-py[cuda]'")
    return Found(count.value, "")


_lock = threading.Lock()
_open: dict[int, CudaDevice] = {}


def devices(number: int | None = None) -> list[CudaDevice]:
    """All CUDA devices, or one.

    Raises
    ------
    DeviceError
        There is no such device; the message says why.
    """
    found = probe()
    if not found.devices:
        raise DeviceError(f"no CUDA device: {found.reason}")
    if number is not None and number >= found.devices:
        raise DeviceError(f"there is no cuda:{number}: the driver finds {found.devices} device(s)")
    wanted = range(found.devices) if number is None else (number,)
    with _lock:
        for one in wanted:
            if one not in _open:
                _open[one] = CudaDevice(one)
        return [_open[one] for one in wanted]


class CudaDevice:
    """One CUDA device, see `device.Device`."""

    def __init__(self, number: int) -> None:
        from cuda.bindings import driver
        from cuda.core import Device, DeviceMemoryResource

        self.name = f"cuda:{number}"
        self._driver = driver
        self._device = Device(number)
        self._device.set_current()
        capability = self._device.compute_capability
        version = int(capability[0]), int(capability[1])
        if version < OLDEST:
            raise DeviceError(f"{self.name} has compute capability {version[0]}.{version[1]}; at least 7.5 is needed")
        self.architecture = _architecture(version)
        self.multiprocessors = int(self._device.properties.multiprocessor_count)
        self._stream = self._device.create_stream()
        self._memory = DeviceMemoryResource(number)
        self._buffers: dict[int, Any] = {}

    def _checked(self, result: Any, what: str) -> Any:
        """The values of a driver call; raises `DeviceError` if it failed."""
        status, *values = result
        if int(status) == 0:
            return values
        _, text = self._driver.cuGetErrorString(status)
        raise DeviceError(f"{self.name}: {what} failed: {text.decode() if text else status}")

    def _enter(self) -> None:
        self._device.set_current()

    # ---- memory ------------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        self._enter()
        try:
            buffer = self._memory.allocate(size, stream=self._stream)
        except Exception as error:
            _, free, _ = self._driver.cuMemGetInfo()
            raise DeviceMemoryError(self.name, size, int(free)) from error
        address = int(buffer.handle)
        self._buffers[address] = buffer
        return address

    def free(self, address: int) -> None:
        buffer = self._buffers.pop(address, None)
        if buffer is not None:
            buffer.close(self._stream)  # in the order of the stream: after everything launched before

    def copy_in(self, address: int, data: np.ndarray[Any, Any]) -> None:
        self._enter()
        # Pageable memory: the driver has read it when this returns, so the caller may change it.
        call = self._driver.cuMemcpyHtoDAsync(address, data.ctypes.data, data.nbytes, self._stream.handle)
        self._checked(call, "copying to the device")
        self._stream.sync()

    def copy_out(self, data: np.ndarray[Any, Any], address: int) -> None:
        self._enter()
        call = self._driver.cuMemcpyDtoHAsync(data.ctypes.data, address, data.nbytes, self._stream.handle)
        self._checked(call, "copying from the device")
        self.synchronize()

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def load(self, ptx: str) -> Any:
        from cuda.core import ObjectCode

        self._enter()
        return ObjectCode.from_ptx(ptx.encode())

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        from cuda.core import LaunchConfig, launch

        self._enter()
        arguments = [_argument(code, value) for code, value in zip(codes, values, strict=True)]
        try:
            launch(self._stream, LaunchConfig(grid=blocks, block=threads), module.get_kernel(kernel), *arguments)
        except Exception as error:
            raise DeviceError(f"{self.name}: kernel {kernel} cannot be launched: {error}") from error

    def synchronize(self) -> None:
        try:
            self._stream.sync()
        except Exception as error:
            raise DeviceError(f"{self.name}: a kernel has failed: {error}") from error


def _argument(code: str, value: Any) -> Any:
    """A machine parameter as `launch` takes it."""
    if code == "e":  # half precision travels as its bits
        return ctypes.c_uint16(int(np.float16(value).view(np.uint16)))
    return _TYPES[code](value.item() if isinstance(value, np.generic) else value)


def _architecture(version: tuple[int, int]) -> str:
    """The newest architecture that kernels can be made for and that the device runs."""
    known = [int(name.removeprefix("sm_")) for name in ARCHITECTURES]
    return f"sm_{max(number for number in known if number <= 10 * version[0] + version[1])}"
