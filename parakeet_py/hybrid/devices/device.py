"""What executes kernels: a memory of its own, and kernels from PTX.

Two kinds of device exist: the emulator and GPUs. Everything above them uses this protocol only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from parakeet_py.hybrid.residency.byte_ranges import Rows


class DeviceError(RuntimeError):
    """A device has failed: a fault in a kernel, a driver that does not work."""


class KernelError(DeviceError):
    """A kernel has done what no kernel may; the message names it, its source lines and its arguments."""


class DeviceMemoryError(MemoryError):
    """There is no room for an array on a device.

    Attributes
    ----------
    unchanged : nothing of what the call has done can be seen, so it may be done again in another way
    """

    unchanged = False

    def __init__(self, device: str, wanted: int, free: int) -> None:
        super().__init__(f"{device} has no memory for {wanted} bytes: {free} are free")


# as the driver numbers them: types of elements; lines of 128 bytes, permuted; 256 bytes of the L2 cache at a time
TENSOR_KINDS = {"float16": 6}
SWIZZLE, L2_LINES = 3, 3
TENSOR_BYTES, TENSOR_ALIGNMENT = 128, 64  # of what a GPU reads


class TensorMap(NamedTuple):
    """Matrices as bulk copies see them: a parameter of kernels, for which the device makes what the GPU reads.

    Attributes
    ----------
    extents, box : of the axis in which neighbours are neighbours in memory, and of the others after it
    strides : bytes from one place of each of the others to the next
    """

    address: Any
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


class Device(Protocol):
    """One device.

    Attributes
    ----------
    name : as it is asked for, such as "cuda:0"
    architecture : what PTX is made for, such as "sm_90"
    asynchronous : kernels may still run when `launch` returns
    """

    name: str
    architecture: str
    asynchronous: bool

    def allocate(self, size: int) -> int:
        """The address of new memory; raises `DeviceMemoryError`."""

    def free(self, address: int) -> None:
        """Give memory back once everything launched before is done with it."""

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        """Copy contiguous host memory to the device; with `pitch` it is rows of bytes (two axes, the second one
        contiguous), which begin so many bytes apart on the device."""

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        """Copy to contiguous host memory, or to rows (see `copy_in`), after everything launched before."""

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        """A new array of the host, of unspecified contents, where copies from the device are quick."""

    def bring_again(self, array: np.ndarray[Any, Any]) -> None:
        """A read-only array that owns its memory is about to be brought, as it has been before. It does not change
        before `finish_reading`."""

    def finish_reading(self) -> None:
        """Wait until what has been brought has been read."""

    def reaches(self, source: Device) -> bool:
        """Whether another device's memory can be copied from directly."""

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        """Copy from another device that it reaches, after everything launched there before; or, if all of it has been
        there since, after a mark of that device's. `rows` say what begins at `place` and lies alike on both."""

    def load(self, ptx: str, shared: int = 0) -> Any:
        """A module that `launch` takes kernels from, whose blocks get so many bytes of dynamic shared memory."""

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        """Start a kernel; `codes` are the `struct` characters of its parameters ("P": an address, "T": a
        `TensorMap`)."""

    def synchronize(self) -> None:
        """Wait until everything launched is done; raises `DeviceError` for what went wrong in it."""

    def mark(self) -> Any:
        """A point in the order of what has been launched, for `copy_over` and `seconds`."""

    def lane(self, number: int) -> AbstractContextManager[None]:
        """Inside, this thread asks in another lane: things there wait for each other, and for nothing in other lanes,
        so that copies of one overlap kernels of another. All is asked in lane 0 where nothing else is said."""


class Machine(Device, Protocol):
    """A device with all that is needed to measure it, and to share its memory with other libraries.

    Attributes
    ----------
    shows_memory : whether its addresses mean something to other libraries of this process
    """

    shows_memory: bool

    @property
    def stream(self) -> int:
        """What everything here is ordered by, as DLPack numbers streams."""

    def copy_within(self, target: int, source: int, size: int) -> None:
        """Copy from one place on the device to another."""

    def seconds(self, start: Any, end: Any) -> float:
        """The time between two points, once the device has come to the second."""

    def submit(self) -> None:
        """See to it that everything launched is under way, without waiting for it."""

    def owns(self, address: int) -> bool:
        """Whether an address is one of memory on this device."""

    def wait_for(self, stream: int) -> None:
        """Let everything launched from now on wait for what another stream has been given so far."""

    def let_wait(self, stream: int) -> None:
        """Let another stream wait for everything launched so far."""
