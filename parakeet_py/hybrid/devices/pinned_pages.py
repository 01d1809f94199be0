"""Memory of the host that CUDA devices read and write by themselves: pinned pages.

Results come back into pages of a pool, so that one copy brings them, without a stop in a block of `staging`. They are
ordinary pages that are registered with the driver, not pages of the driver's: a child of fork() has a copy of them, as
of all memory. An array in them owns its memory as NumPy's arrays do: a handler of NumPy's (NEP 49) puts the pages back
into the pool when the array is gone. What is kept for the next results is bounded, as is what is pinned in all; it is
given back to the system when the driver refuses more, and when a device is asked to give up what it keeps (`trim`).

Large arguments that are read-only and brought again and again are registered where they lie (`PinnedArguments`).
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base import machine
from parakeet_py.base.debug_log import log
from parakeet_py.hybrid.devices.memory_pool import rounded
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.native_runtime import support_code

LEAST = 1 << 20  # bytes of a result that comes to pinned pages: smaller ones stop in a block of `staging`
LARGE = 16 << 20  # bytes of an argument that is pinned where it lies
KEPT = 512 << 20  # bytes that are kept for later results
PART = 8  # at most this part of the machine's memory is pinned in all
HEADER = 64  # bytes before an array: the next block that has been given up, room, and whether it is pinned
_SET_HANDLER = 304  # the place of `PyDataMem_SetHandler` in the table of NumPy's C interface

_NAME = "parakeet_py pinned"
_HANDLER = Source(
    f"""
ir(r'''@pinned_handler = constant {{[127 x i8], i8, ptr, ptr, ptr, ptr, ptr}} {{
  [127 x i8] c"{_NAME}{chr(92)}00{(chr(92) + "00") * (126 - len(_NAME))}", i8 1, ptr null,
  ptr @numpy_malloc, ptr @numpy_calloc, ptr @numpy_realloc, ptr @numpy_free }}, align 8''')

offered: ptr     # the block that the next array gets
returned: ptr    # the blocks of arrays that are gone

def malloc(bytes: i64) -> ptr: ...
def free(memory: ptr): ...
def mmap(address: ptr, bytes: i64, protection: i32, flags: i32, file: i32, offset: i64) -> ptr: ...
def munmap(address: ptr, bytes: i64) -> i32: ...
def madvise(address: ptr, bytes: i64, advice: i32) -> i32: ...

# All these run with Python's lock: NumPy calls them so, and `ctypes.PyDLL` does.
@internal
def plain(bytes: i64) -> ptr:
    block = malloc(bytes + HEADER)
    if block == null:
        return null
    block.ROOM.i64 = bytes
    block.PINNED.i64 = 0
    return block + HEADER

@internal
def numpy_malloc(unused: ptr, bytes: i64) -> ptr:
    block = offered.ptr
    if block != null:
        offered.ptr = null
        if ule(bytes, block.ROOM.i64):
            return block + HEADER
        give_back(block)
    return plain(bytes)

@internal
def numpy_calloc(unused: ptr, count: i64, size: i64) -> ptr:
    if size != 0 and ugt(count, i64(-1) // size):
        return null
    payload = numpy_malloc(unused, count * size)
    if payload != null:
        memset(payload, 0, count * size)
    return payload

@internal
def numpy_realloc(unused: ptr, old: ptr, bytes: i64) -> ptr:
    if old == null:
        return plain(bytes)
    block = old - HEADER
    if ule(bytes, block.ROOM.i64):
        return old
    new = plain(bytes)
    if new != null:
        memcpy(new, old, block.ROOM.i64)
        give_back(block)
    return new

@internal
def numpy_free(unused: ptr, payload: ptr, bytes: i64):
    if payload != null:
        give_back(payload - HEADER)

@internal
def give_back(block: ptr):
    if block.PINNED.i64 == 0:
        free(block)
    else:
        block.ptr = returned.ptr
        returned.ptr = block

# The next array that is made lies here.
def offer(block: ptr, room: i64):
    block.ROOM.i64 = room
    block.PINNED.i64 = 1
    offered.ptr = block

# A block that nothing has been made in, or null.
def left() -> ptr:
    block = offered.ptr
    offered.ptr = null
    return block

# New pages, or null; large ones, which are pinned sooner, where the system has them.
def map_pages(bytes: i64) -> ptr:
    base = mmap(null, bytes, 3, ANONYMOUS, -1, 0)
    if i64(base) == -1:
        return null
    madvise(base, bytes, 14)
    return base

def unmap_pages(base: ptr, bytes: i64):
    munmap(base, bytes)

# A block whose array is gone, or null.
def taken_back() -> ptr:
    block = returned.ptr
    if block != null:
        returned.ptr = block.ptr
    return block
""",
    {"HEADER": HEADER, "ROOM": 8, "PINNED": 16, "ANONYMOUS": machine.ANONYMOUS},
)


class _Native(NamedTuple):
    """The functions of `_HANDLER`, and the handler as NumPy takes it."""

    offer: Any
    left: Any
    taken_back: Any
    map_pages: Any
    unmap_pages: Any
    set_handler: Any
    handler: Any


@lru_cache(maxsize=1)
def _native() -> _Native:
    names = ["pinned_handler", "offer", "left", "taken_back", "map_pages", "unmap_pages"]
    code = support_code("pinned pages", [_HANDLER], {}, names)
    word, some = ctypes.c_void_p, ctypes.py_object
    api = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    pointer = ctypes.PYFUNCTYPE(word, some, word)(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = (word * 320).from_address(pointer(api, None))
    if table[2] != id(np.ndarray):
        raise ImportError("parakeet_py does not know the table of NumPy's C interface")
    capsule = ctypes.PYFUNCTYPE(some, word, word, word)(("PyCapsule_New", ctypes.pythonapi))
    return _Native(
        ctypes.PYFUNCTYPE(None, word, ctypes.c_int64)(code["offer"]),
        ctypes.PYFUNCTYPE(word)(code["left"]),
        ctypes.PYFUNCTYPE(word)(code["taken_back"]),
        ctypes.PYFUNCTYPE(word, ctypes.c_int64)(code["map_pages"]),
        ctypes.PYFUNCTYPE(None, word, ctypes.c_int64)(code["unmap_pages"]),
        ctypes.PYFUNCTYPE(some, some)(table[_SET_HANDLER] or 0),
        capsule(code["pinned_handler"], ctypes.addressof(_CAPSULE_NAME), None),
    )


_CAPSULE_NAME = ctypes.create_string_buffer(b"mem_handler")  # a capsule keeps the pointer, not the text


class Pinning(NamedTuple):
    """What pins memory of the host for all devices, and lets it go: each says whether the driver has done so."""

    pin: Callable[[int, int], bool]
    unpin: Callable[[int], bool]


class PinnedPages:
    """The pinned pages of this process.

    Attributes
    ----------
    bytes : of pages that are kept for later arrays
    pinned : bytes that are pinned in all
    most : that may be pinned in all
    """

    def __init__(self, pinning: Pinning) -> None:
        self._pinning = pinning
        self._lock = threading.RLock()  # memory may be asked for in the midst of this, as garbage is collected
        self._sizes: dict[int, int] = {}  # of all blocks
        self._kept: dict[int, list[int]] = {}  # blocks by their sizes
        self._process = os.getpid()
        self._works = machine.HAS_FUTEXES  # Linux, as long as the driver takes pages
        self.bytes = self.pinned = 0
        self.most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // PART if self._works else 0

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any] | None:
        """A new array of unspecified contents, which owns its pages; None where it has to lie elsewhere."""
        size = dtype.itemsize * math.prod(shape)
        if size < LEAST or not self._works or os.getpid() != self._process:
            return None
        with self._lock:
            block = self._block(rounded(size + HEADER))
            if block is None:
                return None
            native = _native()
            native.offer(block, self._sizes[block] - HEADER)
            before = native.set_handler(native.handler)
            try:
                return np.empty(shape, dtype, order)
            finally:
                native.set_handler(before)
                unused = native.left()
                if unused:
                    self._keep(unused)

    def _block(self, size: int) -> int | None:
        """Pinned pages of a (rounded) size; None if there are none."""
        self._collect()
        kept = self._kept.get(size)
        if kept:
            self.bytes -= size
            return kept.pop()
        if self.pinned + size > self.most:
            self._release()
            if self.pinned + size > self.most:
                return None
        native = _native()
        block: int | None = native.map_pages(size)
        if block is None:
            return None
        if not self._pinning.pin(block, size):
            self._release()
            if not self._pinning.pin(block, size):
                log.info("the driver pins no pages of the host any more")
                self._works = False
                native.unmap_pages(block, size)
                return None
        self._sizes[block] = size
        self.pinned += size
        return block

    def _collect(self) -> None:
        """Take in the pages of arrays that are gone."""
        while (block := _native().taken_back()) is not None:
            self._keep(block)

    def _keep(self, block: int) -> None:
        size = self._sizes[block]
        if self.bytes + size > KEPT:
            self._close(block)
            return
        self.bytes += size
        self._kept.setdefault(size, []).append(block)

    def _close(self, block: int) -> None:
        """Give pages back to the system; if the driver does not let them go, nothing else may come to lie there."""
        size = self._sizes.pop(block)
        self.pinned -= size
        if self._pinning.unpin(block):
            _native().unmap_pages(block, size)

    def _release(self) -> None:
        self._collect()
        for blocks in [*self._kept.values()]:
            while blocks:
                block = blocks.pop()
                self.bytes -= self._sizes[block]
                self._close(block)

    def trim(self) -> None:
        """Give all pages back to the system that no array has."""
        if self._sizes and os.getpid() == self._process:
            with self._lock:
                self._release()


class PinnedArguments:
    """Read-only arrays that are pinned where they lie, for as long as they live.

    That costs about what a copy does, so it is for those that are brought again and again, as devices have no room for
    them.
    """

    def __init__(self, pinning: Pinning) -> None:
        self._pinning = pinning
        self._pinned: dict[int, tuple[weakref.ref[Any], int, int]] = {}

    def pin(self, array: np.ndarray[Any, Any]) -> None:
        """Pin an array that owns its memory, if it is large."""
        key, size = id(array), array.nbytes
        if size < LARGE or key in self._pinned:
            return
        address = array.__array_interface__["data"][0]
        if self._pinning.pin(address, size):
            gone = partial(self._gone, key, os.getpid())
            self._pinned[key] = weakref.ref(array, gone), address, address + size

    def has(self, address: int) -> bool:
        """Whether an address is in one of them."""
        return any(low <= address < high for _, low, high in [*self._pinned.values()])

    def _gone(self, key: int, process: int, _: object) -> None:
        _, address, _ = self._pinned.pop(key)
        if os.getpid() == process:
            self._pinning.unpin(address)  # the memory is given back after this
