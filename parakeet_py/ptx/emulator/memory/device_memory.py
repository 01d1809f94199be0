"""The memory of an emulated device.

Every allocation has an address range of its own in a part of the address space where no host pointer falls, with a gap
after it, and no address is used twice: a pointer past the end, a pointer to freed memory and a pointer of the host or
of another device all name no live allocation, and an access through one is a fault. The bytes of an allocation are a
NumPy array, seen through a view for each kind of access.

The top four bits of a generic address tell its space.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import DeviceOutOfMemory, EmulatorError
from parakeet_py.ptx.emulator.front.kinds import DTYPES, Array

GLOBAL, SHARED, LOCAL, PARAM, CODE = (space << 60 for space in (1, 2, 3, 4, 5))
ALIGNMENT = 256
RED_ZONE = 256
_DEVICE_SHIFT = 44
_numbers = itertools.count()


class Allocation:
    """A range of device memory with its bytes; `data` shares memory with all views."""

    __slots__ = ("base", "constant", "data", "end", "label", "size", "start", "views", "written")

    def __init__(self, start: int, size: int, label: str, constant: bool = False) -> None:
        self.start = start
        self.size = size
        self.end = start + size
        self.label = label
        self.constant = constant
        # Whole words of every width, on a boundary that suits vectors too.
        store = np.zeros(-(-size // 16) * 16 + 16, dtype=np.uint8)
        shift = -store.ctypes.data % 16
        self.data: Array = store[shift : shift + size]
        self.base = np.array([start], dtype=np.uint64)
        self.views: dict[str, Array] = {}
        self.written: Array | None = None

    def view(self, kind: str) -> Array:
        """The whole words of the memory as values of a kind; a last part of a word cannot be reached."""
        found = self.views.get(kind)
        if found is None:
            dtype = DTYPES[kind]
            whole = self.size // dtype.itemsize * dtype.itemsize
            found = self.views[kind] = self.data[:whole].view(dtype)
        return found

    def __repr__(self) -> str:
        return f"{self.label} ({self.size} bytes at {self.start:#x})"


class Memory:
    """Device memory of a limited size.

    Parameters
    ----------
    limit : int
        How many bytes may be allocated at a time.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.peak = 0
        self.number = next(_numbers)
        self._next = GLOBAL + ((self.number & 0xFFFF) << _DEVICE_SHIFT) + ALIGNMENT
        self._starts: list[int] = []
        self._blocks: list[Allocation] = []
        self._freed: list[tuple[int, int, str]] = []

    def alloc(self, size: int, label: str = "allocation", *, constant: bool = False) -> Allocation:
        """Reserve memory; it is zeroed, as the bytes of a device are not, so checks may ask whether it was written.

        Raises
        ------
        DeviceOutOfMemory
            If less than `size` bytes are left.
        """
        if size < 0:
            raise EmulatorError(f"cannot allocate {size} bytes")
        if self.used + size > self.limit:
            raise DeviceOutOfMemory(
                f"cannot allocate {size} bytes: {self.used} of {self.limit} bytes are in use on the emulated device"
            )
        block = Allocation(self._next, size, label, constant)
        self._next += -(-(size + RED_ZONE) // ALIGNMENT) * ALIGNMENT
        self._starts.append(block.start)
        self._blocks.append(block)
        self.used += size
        self.peak = max(self.peak, self.used)
        return block

    def free(self, address: int) -> None:
        """Give an allocation back by its first address.

        Raises
        ------
        EmulatorError
            If no live allocation begins there.
        """
        place = bisect_right(self._starts, address) - 1
        if place < 0 or self._starts[place] != address:
            raise EmulatorError(f"free of {address:#x}: {self.explain(address)}")
        block = self._blocks.pop(place)
        del self._starts[place]
        self.used -= block.size
        self._freed.append((block.start, block.end, block.label))
        del self._freed[:-1024]

    def find(self, address: int) -> Allocation | None:
        """The live allocation that an address lies in."""
        place = bisect_right(self._starts, address) - 1
        if place >= 0:
            block = self._blocks[place]
            if address < block.end:
                return block
        return None

    def range(self, address: int, size: int) -> Array:
        """The bytes at an address.

        Raises
        ------
        EmulatorError
            If they are not all in one live allocation.
        """
        block = self.find(address)
        if block is None and size == 0:
            return np.zeros(0, dtype=np.uint8)
        if block is None or address + size > block.end:
            raise EmulatorError(f"copy of {size} bytes at {address:#x}: {self.explain(address, size)}")
        return block.data[address - block.start : address - block.start + size]

    def explain(self, address: int, size: int = 1) -> str:
        """Why an address cannot be used, in words."""
        place = bisect_right(self._starts, address) - 1
        if place >= 0:
            block = self._blocks[place]
            if address < block.end:
                return f"it reaches {address + size - block.end} bytes past the end of {block!r}"
        for start, end, label in reversed(self._freed):
            if start <= address < max(end, start + 1):
                return f"{label} ({end - start} bytes at {start:#x}) was freed"
        if place >= 0 and address < self._blocks[place].end + RED_ZONE:
            block = self._blocks[place]
            return f"it is {address - block.end} bytes past the end of {block!r}"
        if place + 1 < len(self._blocks) and address + RED_ZONE >= self._starts[place + 1]:
            block = self._blocks[place + 1]
            return f"it is {block.start - address} bytes before {block!r}"
        if address < 4096:
            return "it is a null pointer"
        if address >> 60 == 0:
            return "it is not an address of device memory (a host pointer?)"
        if address >> 60 == 1 and (address - GLOBAL) >> _DEVICE_SHIFT != self.number & 0xFFFF:
            return "it is an address of another device"
        return "nothing is allocated there"

    def __iter__(self) -> Iterator[Allocation]:
        return iter(self._blocks)
