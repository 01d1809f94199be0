"""Copies between the host and a CUDA device through pinned memory, so that neither waits for the other.

A device reads and writes pinned memory by itself; from other memory the driver copies first, and waits. `Staging` owns
a ring of pinned blocks: a copy to the device fills one block while the one before is on its way, and returns when the
host's memory has been read; a copy to the host has all blocks under way while it empties the first. Memory that is
pinned already needs no block, but its owner may change it next, so it is waited for: at once, or, where it does not
change as long as a call goes on, before that ends (`finish_reading`). The CPU's threads fill and empty blocks.

Columns of a matrix are rows that lie apart: the host packs as many into a block as fit, and one pitched copy lays them
where they belong. Copies of a few kilobytes in one piece are the driver's own: it takes those along at once.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.llvm.runtime import call_queues
from parakeet_py.llvm.runtime.host_copies import copy, copy_rows

SMALL = 64 << 10  # bytes that the driver takes along without waiting
BLOCK = 4 << 20
BLOCKS = 4
MOST_PITCH = (1 << 31) - 1  # of a copy in rows: more than any device allows

Checked = Callable[[Any, str], Any]


@lru_cache(maxsize=32)
def driver_call(name: str) -> int:
    """The address of a function of the driver, in the version of CUDA 12."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    place, status = ctypes.c_void_p(), ctypes.c_int()
    code = library.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(place), 12000, ctypes.c_uint64(0), ctypes.byref(status)
    )
    if code or not place.value:
        raise OSError(f"the CUDA driver has no {name}")
    return place.value


class _Block:
    """Pinned memory; `event` is the last copy from or to it."""

    __slots__ = ("address", "buffer", "event")

    def __init__(self, resource: Any) -> None:
        self.buffer = resource.allocate(BLOCK)
        self.address = int(self.buffer.handle)
        self.event: Any = None

    def wait(self) -> None:
        if self.event is not None:
            self.event.sync()


class _Word:
    """Pinned memory for one element, and for one word, and the driver calls that bring them there and wait."""

    def __init__(self, stream: int) -> None:
        from cuda.core import LegacyPinnedMemoryResource

        self._buffer = LegacyPinnedMemoryResource().allocate(64)
        start = int(self._buffer.handle)
        self._bytes = (ctypes.c_uint8 * 64).from_address(start)
        self._also = ctypes.c_int64.from_address(start + _ALSO)
        self._views: dict[str, np.ndarray[Any, Any]] = {}
        calls = [(start + _ALSO, 0, 8, stream), (start, 0, 0, stream)]
        copies = [call_queues.words(driver_call("cuMemcpyDtoHAsync"), *call) for call in calls]
        waits = call_queues.words(driver_call("cuStreamSynchronize"), stream)
        self._calls = array("Q", b"".join([*copies, waits]))
        first, _ = self._calls.buffer_info()
        self._tables = [array("q", (0, 0, place, count, 0)) for place, count in ((first + _CALL, 2), (first, 3))]
        self._run = call_queues.one_after_the_other()

    def read(self, address: int, dtype: str, word: int, driver: Any, checked: Checked) -> tuple[Any, int]:
        found = self._views.get(dtype)
        if found is None:
            found = self._views[dtype] = np.frombuffer(memoryview(self._bytes), dtype, 1)
        calls, table = self._calls, self._tables[word != 0]
        calls[2] = word
        calls[_WORDS + 2], calls[_WORDS + 3] = address, found.itemsize
        if self._run(table.buffer_info()[0], 0) != table[3]:
            checked((driver.CUresult(table[4]),), "copying from the device")
        return found[0], self._also.value


_ALSO, _WORDS, _CALL = 32, call_queues.WORDS, 8 * call_queues.WORDS


class Staging:
    """The copies of one device, in the order of its stream.

    Parameters
    ----------
    driver : `cuda.bindings.driver`
    stream : the device's
    checked : gives the values of a driver call, or raises
    steady : whether pinned memory at an address does not change as long as a call goes on
    """

    def __init__(self, driver: Any, stream: Any, checked: Checked, steady: Callable[[int], bool]) -> None:
        self._driver, self._stream, self._checked, self._steady = driver, stream, checked, steady
        self._reading: Any = None  # the last copy from steady memory
        self._blocks: list[_Block] = []
        self._word: _Word | None = None
        self._next = 0
        self._lock = threading.Lock()

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        """Copy contiguous memory of the host, or rows of it, to the device; it has been read when this returns."""
        if pitch:
            self._rows_in(address, data, pitch)
            return
        source, size = data.ctypes.data, data.nbytes
        pinned = size > 0 and self._is_pinned(source)
        if size <= SMALL or pinned:
            self._to_device(address, source, size)
            if pinned and size > SMALL and self._steady(source):
                self._reading = self._stream.record(event=self._reading)
            elif pinned:
                self._stream.sync()
            return
        with self._lock:
            for start in range(0, size, BLOCK):
                part = min(BLOCK, size - start)
                block = self._free_block()
                copy(block.address, source + start, part)
                self._to_device(address + start, block.address, part)
                block.event = self._stream.record(event=block.event)

    def finish_reading(self) -> None:
        """Wait until all that is not in blocks has been read."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.sync()

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        """Copy to contiguous memory of the host, or to rows of it, after everything launched before."""
        if pitch:
            self._rows_out(data, address, pitch)
            return
        target, size = data.ctypes.data, data.nbytes
        if size <= SMALL or self._is_pinned(target):
            self._to_host(target, address, size)
            self._stream.sync()
            return
        with self._lock:
            under_way: list[tuple[int, _Block]] = []
            for start in range(0, size, BLOCK):
                if len(under_way) == BLOCKS:
                    self._empty(target, size, *under_way.pop(0))
                block = self._free_block()
                self._to_host(block.address, address + start, min(BLOCK, size - start))
                block.event = self._stream.record(event=block.event)
                under_way.append((start, block))
            for start, block in under_way:
                self._empty(target, size, start, block)

    def element(self, address: int, dtype: str, word: int) -> tuple[Any, int]:
        """An element, after everything launched before, and a word if there is one: copied to pinned memory, and
        waited for, by machine code."""
        with self._lock:
            pinned = self._word = self._word or _Word(int(self._stream.handle))
            return pinned.read(address, dtype, word, self._driver, self._checked)

    def _rows_in(self, address: int, data: np.ndarray[Any, Any], pitch: int) -> None:
        count, width = data.shape
        several = BLOCK // width
        if pitch > MOST_PITCH or not several:
            for number, row in enumerate(data):
                self.copy_in(address + number * pitch, row)
            return
        with self._lock:
            for start in range(0, count, several):
                part = data[start : start + several]
                block = self._free_block()
                copy_rows(block.address, width, part.ctypes.data, part.strides[0], len(part), width)
                self._pitched(True, address + start * pitch, pitch, block.address, part.shape)
                block.event = self._stream.record(event=block.event)

    def _rows_out(self, data: np.ndarray[Any, Any], address: int, pitch: int) -> None:
        count, width = data.shape
        several = BLOCK // width
        if pitch > MOST_PITCH or not several:
            for number, row in enumerate(data):
                self.copy_out(row, address + number * pitch)
            return
        with self._lock:
            under_way: list[tuple[np.ndarray[Any, Any], _Block]] = []
            for start in range(0, count, several):
                if len(under_way) == BLOCKS:
                    self._unpack(*under_way.pop(0))
                part, block = data[start : start + several], self._free_block()
                self._pitched(False, address + start * pitch, pitch, block.address, part.shape)
                block.event = self._stream.record(event=block.event)
                under_way.append((part, block))
            for part, block in under_way:
                self._unpack(part, block)

    def _unpack(self, part: np.ndarray[Any, Any], block: _Block) -> None:
        block.wait()
        height, width = part.shape
        copy_rows(part.ctypes.data, part.strides[0], block.address, width, height, width)

    def _pitched(self, to_device: bool, address: int, pitch: int, packed: int, shape: tuple[int, ...]) -> None:
        """Copy rows between where they lie apart on the device and where they lie together in pinned memory."""
        driver = self._driver
        what, kinds = driver.CUDA_MEMCPY2D(), driver.CUmemorytype
        what.Height, what.WidthInBytes = shape
        if to_device:
            what.srcMemoryType, what.srcHost, what.srcPitch = kinds.CU_MEMORYTYPE_HOST, packed, shape[1]
            what.dstMemoryType, what.dstDevice, what.dstPitch = kinds.CU_MEMORYTYPE_DEVICE, address, pitch
        else:
            what.srcMemoryType, what.srcDevice, what.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, address, pitch
            what.dstMemoryType, what.dstHost, what.dstPitch = kinds.CU_MEMORYTYPE_HOST, packed, shape[1]
        self._checked(driver.cuMemcpy2DAsync(what, self._stream.handle), "copying rows")

    def _empty(self, target: int, size: int, start: int, block: _Block) -> None:
        block.wait()
        copy(target + start, block.address, min(BLOCK, size - start))

    def _free_block(self) -> _Block:
        """The next block of the ring, once the copy that used it last is done."""
        if len(self._blocks) < BLOCKS:
            from cuda.core import LegacyPinnedMemoryResource

            self._blocks.append(_Block(LegacyPinnedMemoryResource()))
            return self._blocks[-1]
        block = self._blocks[self._next]
        self._next = (self._next + 1) % BLOCKS
        block.wait()
        return block

    def _is_pinned(self, address: int) -> bool:
        driver = self._driver
        attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        status, kind = driver.cuPointerGetAttribute(attribute, address)  # fails for memory that CUDA does not know
        return int(status) == 0 and int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)

    def _to_device(self, address: int, source: int, size: int) -> None:
        call = self._driver.cuMemcpyHtoDAsync(address, source, size, self._stream.handle)
        self._checked(call, "copying to the device")

    def _to_host(self, target: int, address: int, size: int) -> None:
        call = self._driver.cuMemcpyDtoHAsync(target, address, size, self._stream.handle)
        self._checked(call, "copying from the device")
