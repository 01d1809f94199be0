"""Arrays in a device's memory.

A `Buffer` owns memory of a device and gives it back when there is no reference to it any more. A `DeviceView` describes
elements in it, as a NumPy array does in the memory of the host.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import Device, DeviceMemoryError

_RESERVE = getattr(mmap, "MAP_NORESERVE", 0)
WINDOW = 256  # where windows begin: addresses are as they would be without
GRANULE = 16  # memory comes in multiples of it: LLVM loads up to 16 bytes at once where some of them are wanted


@lru_cache(maxsize=64)
def name_of_dtype(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, which NumPy puts together anew each time."""
    return dtype.name


def allocated(size: int) -> int:
    """The bytes that a device is asked for where so many are wanted."""
    return -(-max(size, 1) // GRANULE) * GRANULE


class Buffer:
    """Memory of a device; `changed`: what has been told that it is stored to, see `ChangedMemory`."""

    __slots__ = ("__weakref__", "address", "changed", "device", "size")

    changed: object

    def __init__(self, device: Device, size: int) -> None:
        self.device, self.size, self.changed = device, size, None
        self.address = device.allocate(allocated(size))

    @classmethod
    def at(cls, device: Device, size: int, address: int) -> Buffer:
        """Memory that the device has allocated."""
        made = object.__new__(cls)
        made.device, made.size, made.address, made.changed = device, size, address, None
        return made

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address is not None:
            self.device.free(address)


class Window(Buffer):
    """Memory of a device for some of `size` bytes only, those from `start` to `stop`.

    `address` is where the first of all bytes would be, so that it is used as if all were there; only what is inside may
    be touched.
    """

    __slots__ = ("held", "start", "stop")

    def __init__(self, device: Device, size: int, start: int, stop: int) -> None:
        self.start = start // WINDOW * WINDOW
        self.stop = max(stop, self.start + 1)
        self.held = Buffer(device, self.stop - self.start)
        self.device, self.size, self.address = device, size, self.held.address - self.start
        self.changed = None

    def __del__(self) -> None:
        pass  # `held` gives it back


class AddressOfWindow(int):
    """An address in an array of which there is a window: what lies there may be other memory's.

    Attributes
    ----------
    window : which knows what is the array's own
    """

    window: Window

    @classmethod
    def at(cls, window: Window, address: int) -> AddressOfWindow:
        made = cls(address)
        made.window = window
        return made


def memory_of_copy(buffer: Buffer) -> Buffer:
    """The memory that a copy of an array really has."""
    return buffer.held if isinstance(buffer, Window) else buffer


class Borrowed(Buffer):
    """Memory of a device that belongs to another library; `keep` has the arrays in it."""

    __slots__ = ("keep",)

    def __init__(self, device: Any, address: int, size: int, keep: Any) -> None:
        self.device, self.address, self.size, self.keep, self.changed = device, address, size, keep, None

    def __del__(self) -> None:
        pass


class ChangedMemory:
    """Memory that kernels may have stored to, as long as anything refers to it: it keeps none alive."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._mark: object = object()
        self._some: list[weakref.ref[Buffer]] = []
        self._limit = 1000

    def add(self, buffer: Buffer) -> None:
        if buffer.changed is self._mark:
            return
        buffer.changed = self._mark
        self._some.append(weakref.ref(buffer))
        if len(self._some) > self._limit:
            self._some = [one for one in self._some if one() is not None]
            self._limit = 2 * len(self._some) + 1000

    def has_any(self, buffers: Iterable[Buffer]) -> bool:
        return any(one.changed is self._mark for one in buffers)

    def __bool__(self) -> bool:
        return bool(self._some)

    def __iter__(self) -> Iterator[Buffer]:
        return iter([found for one in self._some if (found := one()) is not None])


class Layout(NamedTuple):
    """What an array is, wherever its memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool


class DeviceView:
    """An array on a device: `offset` and `strides` in bytes. `given` is the argument that it is, if it is one;
    `readonly`: Python has made it so."""

    __slots__ = ("_seen", "buffer", "dtype", "given", "offset", "readonly", "shape", "strides")

    def __init__(
        self,
        buffer: Buffer,
        offset: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        given: Any = None,
        readonly: bool = False,
    ) -> None:
        self.buffer = buffer
        self.offset = offset
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.given = given
        self.readonly = readonly
        self._seen: tuple[Any, ...] | None = None

    def seen(self) -> tuple[Any, ...]:
        """What a kernel sees of it."""
        found = self._seen
        if found is None:
            found = self._seen = self.buffer.address + self.offset, self.shape, self.strides
        return found

    @property
    def address(self) -> int:
        buffer = self.buffer
        if type(buffer) is Window:
            return AddressOfWindow.at(buffer, buffer.address + self.offset)
        return buffer.address + self.offset

    def to_host(self) -> np.ndarray[Any, Any]:
        """A copy of the elements, laid out as they are on the device where that wastes no memory."""
        low, size = span(self.shape, self.strides, np.dtype(self.dtype).itemsize)
        if not size:
            return np.empty(self.shape, self.dtype)
        host = self._new_on_host()
        if host.strides == self.strides:  # it owns its memory, as new arrays of NumPy do
            self.buffer.device.copy_out(_bytes_of(host), self.address)
            return host
        data = np.empty(size, np.uint8)
        self.buffer.device.copy_out(data, self.address + low)
        return np.ndarray(self.shape, self.dtype, data, -low, self.strides)

    def _new_on_host(self) -> np.ndarray[Any, Any]:
        """A new array with these axes, in their order."""
        dtype = np.dtype(self.dtype)
        for order in ("C", "F"):
            if self.strides == strides_of(self.shape, dtype.itemsize, order):
                return self.buffer.device.host_array(self.shape, dtype, order)
        return np.empty_like(np.lib.stride_tricks.as_strided(np.empty(1, dtype), self.shape, self.strides))


def contents_of(device: Any, address: int, size: int) -> Callable[[int], None]:
    """What puts the bytes at an address, as they are now, to an address: there is a copy of them on the device, if it
    has memory for that; None is the host."""
    if device is None:
        kept = memory_of(address, size).copy()
        return lambda target: np.copyto(memory_of(target, size), kept)
    try:
        copy = Buffer(device, size)
    except DeviceMemoryError:
        data = np.empty(size, np.uint8)
        device.copy_out(data, address)
        return lambda target: device.copy_in(target, data)
    device.copy_within(copy.address, address, size)
    return lambda target: device.copy_within(target, copy.address, size)


def _bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The memory of an array without gaps, whatever the order of its axes."""
    return array.ravel("K").view(np.uint8)


def kept_view(array: DeviceView) -> Callable[[], None]:
    """What puts the elements of an array on a device back as they are now."""
    low, size = span(array.shape, array.strides, np.dtype(array.dtype).itemsize)
    if not size:
        return lambda: None
    address = array.address + low
    put = contents_of(array.buffer.device, address, size)
    return lambda: put(address)


def span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The first byte of an array, relative to its element 0, and the number of bytes to the last."""
    if 0 in shape:
        return 0, 0
    low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
    high = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s > 0)
    return low, high - low + itemsize


def strides_of(shape: Sequence[int], itemsize: int, layout: str = "C") -> tuple[int, ...]:
    """The strides of a contiguous array."""
    if len(shape) == 1:
        return (itemsize,)
    strides = []
    step = itemsize
    for extent in shape if layout == "F" else reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(strides if layout == "F" else reversed(strides))


def memory_of(address: int, size: int) -> np.ndarray[Any, Any]:
    """Memory of the host as bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def reserved(size: int) -> np.ndarray[Any, Any]:
    """Memory of the host that takes no place until it is written to."""
    if not _RESERVE:
        return np.frombuffer(mmap.mmap(-1, size), np.uint8)
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _RESERVE), np.uint8)
