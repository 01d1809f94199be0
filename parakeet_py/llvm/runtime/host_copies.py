"""Copies of large memory by the thread pool: between arrays of the host and what devices read and write.

One thread moves half or less of what memory gives. `copy` and `copy_rows` are regions of the pool (`thread_pool`): they
wait for the end and let Python's lock go meanwhile. The caller copies what is below a grain.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from parakeet_py.base import config
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import native_runtime
from parakeet_py.llvm.runtime.call_context import ALIGNMENT, Context

GRAIN = 128 << 10  # bytes

# frame: source, bytes from line to line; target, bytes from line to line; bytes of a line
_ROWS = Source(
    """
def copy_rows(ctx: ptr, frame: ptr, lo: i64, hi: i64):
    line = lo
    while line < hi:
        source = frame.ptr + line * frame.i64[1]
        target = frame.ptr[2] + line * frame.i64[3]
        memcpy(target, source, frame.i64[4])
        line += 1
"""
)


@lru_cache(maxsize=1)
def _entries() -> tuple[Any, int, int]:
    """`pk_parallel`, and the bodies of both regions."""
    symbols = native_runtime.runtime().symbols
    word, number = ctypes.c_void_p, ctypes.c_int64
    run = ctypes.CFUNCTYPE(None, word, word, word, number, number, ctypes.c_int32)(symbols["pk_parallel"])
    rows = native_runtime.support_code("copies of rows", [_ROWS], {}, ["copy_rows"])
    return run, symbols["pk_copy"], rows["copy_rows"]


def _run(body: int, frame: ctypes.Array[ctypes.c_int64], count: int, grain: int) -> None:
    run = _entries()[0]
    room = (ctypes.c_char * (Context.SIZE + ALIGNMENT))()  # of a call that nothing interrupts
    context = -(-ctypes.addressof(room) // ALIGNMENT) * ALIGNMENT
    run(context, body, ctypes.addressof(frame), count, grain, config.current().thread_count)


def copy(target: int, source: int, size: int) -> None:
    """Copy bytes from one address to another."""
    if size <= GRAIN:
        ctypes.memmove(target, source, size)
        return
    _run(_entries()[1], (ctypes.c_int64 * 3)(source, target, 1), size, GRAIN)


def copy_rows(target: int, target_step: int, source: int, source_step: int, height: int, width: int) -> None:
    """Copy `height` lines of `width` bytes, which lie so many bytes apart."""
    frame = (ctypes.c_int64 * 5)(source, source_step, target, target_step, width)
    _run(_entries()[2], frame, height, max(GRAIN // max(width, 1), 1))
