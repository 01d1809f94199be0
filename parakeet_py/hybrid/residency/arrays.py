"""Arrays in a device's memory.

A `Buffer` owns memory of a device and gives it back when there is no reference to it any more. A `DeviceView` describes
elements in it, as a NumPy array does in the memory of the host.

Arguments are uploaded as they lie in memory, strides and all, if that is not wasteful; then a view of an argument on
the device says which view of the host's array it stands for. Arguments that overlap are uploaded together.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.hybrid.devices.device import Device, DeviceMemoryError

GRANULE = 16  # memory comes in multiples of it: LLVM loads up to 16 bytes at once where some of them are wanted
WASTE = 2  # an array is packed if the memory from its first to its last byte is more than so many times its own


@lru_cache(maxsize=64)
def name_of_dtype(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, which NumPy puts together anew each time."""
    return dtype.name


class Buffer:
    """Memory of a device.

    Attributes
    ----------
    origin : the address on the host of the memory that this is a copy of; None for what was made on the device
    owner : an object that keeps that memory alive
    copies : the arrays that Python has got as copies of some in it, as long as they are alive
    """

    __slots__ = ("address", "copies", "device", "origin", "owner", "size")

    def __init__(self, device: Device, size: int, origin: int | None = None, owner: Any = None) -> None:
        self.device = device
        self.size = size
        self.origin = origin
        self.owner = owner
        self.copies: dict[Any, weakref.ref[np.ndarray[Any, Any]]] = {}
        self.address = device.allocate(-(-max(size, 1) // GRANULE) * GRANULE)

    def __del__(self) -> None:
        address = getattr(self, "address", None)
        if address is not None:
            self.device.free(address)


class Borrowed(Buffer):
    """Memory of a device that belongs to another library; `keep` has the arrays in it."""

    __slots__ = ("keep",)

    def __init__(self, device: Any, address: int, size: int, origin: int) -> None:
        self.device, self.address, self.size = device, address, size
        self.origin, self.owner, self.copies = origin, [], {}
        self.keep: list[Any] = []

    def __del__(self) -> None:
        pass


class Layout(NamedTuple):
    """What an array is, wherever its memory."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool


class DeviceView:
    """An array on a device: `offset` and `strides` in bytes. `host` is the argument that it is, if it is one;
    `readonly`: Python has made it so."""

    __slots__ = ("buffer", "dtype", "host", "offset", "readonly", "shape", "strides")

    def __init__(
        self,
        buffer: Buffer,
        offset: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        host: Any = None,
        readonly: bool = False,
    ) -> None:
        self.buffer = buffer
        self.offset = offset
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.host = host
        self.readonly = readonly

    @property
    def address(self) -> int:
        return self.buffer.address + self.offset

    @property
    def place(self) -> tuple[Any, ...]:
        """Where its elements are in the buffer: equal of what is the same array."""
        return self.offset, self.dtype, self.shape, self.strides

    def copy_in_use(self) -> np.ndarray[Any, Any] | None:
        """This array in memory of the host that Python has as a copy of it, or of more; None if it has none."""
        known = self.buffer.copies.get(self.place)
        same = None if known is None else known()
        if same is not None:
            return same
        low, size = span(self.shape, self.strides, np.dtype(self.dtype).itemsize)
        for (offset, dtype, shape, strides), reference in self.buffer.copies.items():
            copy = reference()
            if copy is None:
                continue
            data = _bytes_of(copy) if copy.base is None else copy.base
            start = 0 if data.size == self.buffer.size else offset + span(shape, strides, np.dtype(dtype).itemsize)[0]
            if start <= self.offset + low and self.offset + low + size <= start + data.size:
                return np.ndarray(self.shape, self.dtype, data, self.offset - start, self.strides)
        return None

    def to_host(self) -> np.ndarray[Any, Any]:
        """A copy of the elements, laid out as they are on the device where that wastes no memory."""
        low, size = span(self.shape, self.strides, np.dtype(self.dtype).itemsize)
        if not size:
            return np.empty(self.shape, self.dtype)
        host = np.empty_like(np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides))
        if host.strides == self.strides:  # it owns its memory, as new arrays of NumPy do
            self.buffer.device.copy_out(_bytes_of(host), self.address)
            return host
        data = np.empty(size, np.uint8)
        self.buffer.device.copy_out(data, self.address + low)
        return np.ndarray(self.shape, self.dtype, data, -low, self.strides)


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
    strides = []
    step = itemsize
    for extent in shape if layout == "F" else reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(strides if layout == "F" else reversed(strides))


def upload(device: Device, arrays: Sequence[np.ndarray[Any, Any]], keep_strides: bool) -> list[DeviceView]:
    """Copy arguments to a device; those that overlap on the host overlap there.

    With `keep_strides` no array is packed, so that every view can be traced back to the host.
    """
    order = sorted(range(len(arrays)), key=lambda number: byte_bounds(arrays[number])[0])
    groups: list[tuple[int, int, list[int]]] = []
    for number in order:
        if not arrays[number].size:
            groups.append((0, 0, [number]))
            continue
        low, high = byte_bounds(arrays[number])
        if groups and groups[-1][0] <= low < groups[-1][1]:
            start, end, members = groups.pop()
            groups.append((start, max(end, high), [*members, number]))
        else:
            groups.append((low, high, [number]))
    uploaded: dict[int, DeviceView] = {}
    for low, high, members in groups:
        first = arrays[members[0]]
        packed = len(members) == 1 and not keep_strides and high - low > WASTE * first.nbytes
        if packed or not first.size:
            uploaded[members[0]] = _packed(device, first)
            continue
        buffer = Buffer(device, high - low, low, [arrays[number] for number in members])
        device.copy_in(buffer.address, memory_of(low, high - low))
        for number in members:
            array = arrays[number]
            offset = array.__array_interface__["data"][0] - low
            uploaded[number] = DeviceView(buffer, offset, array.dtype.name, array.shape, array.strides, array)
    return [uploaded[number] for number in range(len(arrays))]


def _packed(device: Device, array: np.ndarray[Any, Any]) -> DeviceView:
    data = np.ascontiguousarray(array).reshape(array.shape)
    buffer = Buffer(device, data.nbytes)
    if data.nbytes:
        device.copy_in(buffer.address, data.reshape(-1).view(np.uint8))
    return DeviceView(buffer, 0, array.dtype.name, array.shape, data.strides, array)


def memory_of(address: int, size: int) -> np.ndarray[Any, Any]:
    """Memory of the host as bytes."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class _View:
    """A view of memory of the host, kept alive by its owner."""

    def __init__(self, owner: Any, address: int, array: DeviceView, readonly: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, readonly),
            "typestr": np.dtype(array.dtype).str,
            "shape": array.shape,
            "strides": array.strides,
        }


def host_view(array: DeviceView) -> np.ndarray[Any, Any] | None:
    """The view of an argument that a device array stands for; None if it was made on the device."""
    if array.host is not None:
        found: np.ndarray[Any, Any] = array.host
        return found
    buffer = array.buffer
    if buffer.origin is None:
        return None
    readonly = not all(owner.flags.writeable for owner in buffer.owner)
    address = buffer.origin + array.offset
    low, size = span(array.shape, array.strides, np.dtype(array.dtype).itemsize)
    for owner in map(_whole, buffer.owner):
        first, end = byte_bounds(owner)
        if first <= address + low <= address + low + size <= end and (readonly or owner.flags.writeable):
            whole = owner if owner.flags.c_contiguous else owner.T
            if whole.flags.c_contiguous:  # its base is the array that owns the memory, as that of NumPy's views is
                view: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, whole, address - first, array.strides)
                view.flags.writeable = not readonly
                return view
    return np.asarray(_View(buffer.owner, address, array, readonly))


def _whole(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of another."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def download(array: DeviceView) -> None:
    """Bring what a kernel has stored into an argument back to the host's array.

    What is read-only has changed at most by way of an argument that overlaps it and is not.
    """
    assert array.host is not None
    if array.host.size and array.host.flags.writeable:
        np.copyto(array.host, array.to_host())
