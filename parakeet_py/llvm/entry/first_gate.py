"""The gate that accelerated functions begin with: Python runs the call, at some nanoseconds more than it takes.

Most functions of a program are called a few times, and no machine code is ever made for them. Their calls enter this
gate, which calls the plain function and keeps account of what that takes in words of the instance (`ENTRY_WORDS` of
`callable_type`). It lets a call pass to `_slow` when nothing is left, an `options` block is
open, or an argument is larger than `_largest` or of a class that is not known.

Its code has to be there before the first call. To compile it takes 30 ms, and to load it from the disk cache 15, most
of which are for modules that other programs never need; so it is part of the package (`first_gate_code`), in bytes that
LLVM has made of the text below, for x86-64 as Linux calls functions. They run at any address: all that they need of the
process is in the table of `argument_sizes`, whose address is in the instance. `scripts/first_gate.py` makes them anew;
a test compares them with what the text says.

Elsewhere, and where objects are not laid out as expected, there is no such gate: calls go to `__call__`, in Python.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import lru_cache
from typing import Final

from parakeet_py.base import machine
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry import argument_sizes
from parakeet_py.llvm.entry.callable_type import ENTRY_WORDS, VECTORCALL_OFFSET
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.llvm.entry.first_gate_code import X86_64

SPAN: Final = 16_000  # ns of short calls of which one is measured
MOST: Final = 63  # of them that are not
SUDDEN: Final = 100_000  # ns by which a call may take longer than
GROWTH: Final = 4  # times the one before it, and still count in full: the clock goes on while others have the CPU


@lru_cache(maxsize=1)
def address() -> int:
    """Where the code is, a vectorcall function; 0 if there is none for this process."""
    if not machine.OWN_LINKER or "free-threading" in sys.version or why_portable() or not argument_sizes.entry_place():
        return 0
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    code = bytes.fromhex(X86_64)
    size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
    place = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, machine.ANONYMOUS, -1, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        return 0
    ctypes.memmove(place, code, len(code))
    if libc.mprotect(place, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        return 0  # the system lets no memory be executed that was written
    return int(place)


def sources() -> tuple[Source, ...]:
    """What the code is made of; the gate is `first`, and the first function."""
    constants: dict[str, int | str] = {
        **argument_sizes.SIZES.constants,
        "SPAN": SPAN,
        "MOST": MOST,
        "SUDDEN": SUDDEN,
        "GROWTH": GROWTH,
        "CONVENTION": "preserve_mostcc ",
        "ARGUMENTS": (1 << 63) - 1,  # the flag of vectorcalls is off
        **{name[1:].upper(): VECTORCALL_OFFSET + 8 + 8 * place for place, name in enumerate(ENTRY_WORDS)},
    }
    return Source(_CODE, constants), argument_sizes.SIZES


_CODE: Final = """
def first(self: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    table = self.TABLE.ptr
    if (self.LEFT.i64 <= 0) | (atomic_load(table.OPEN_BLOCKS.ptr.i64, "monotonic") != 0):
        return pass_on(self, table, arguments, nargsf, names)
    unsized = table.UNSIZED.ptr
    place = arguments
    end = arguments + 8 * (nargsf & ARGUMENTS)
    if names != null:
        end += 8 * names.SIZE.i64
    while place != end:
        kind = place.ptr.TYPE.ptr
        if unsized.ptr[(i64(kind) * HASH) >> HASH_SHIFT] != kind:
            value = place.ptr
            if is_small(table, value, self.LARGEST.i64, self.LARGEST_INT.i64) == 0:
                if is_large(table, value, self):
                    return pass_on(self, table, arguments, nargsf, names)
        place += 8
    until = self.UNTIMED.i64
    if until <= 0:
        return timed(self, table, arguments, nargsf, names)
    self.UNTIMED.i64 = until - 1
    estimate = self.ESTIMATE.i64
    self.LEFT.i64 = self.LEFT.i64 - estimate
    table.BOOKED.ptr.i64 = table.BOOKED.ptr.i64 + estimate
    function = (self + table.FUNCTION_PLACE.i64).ptr
    if function == null:
        return pass_on(self, table, arguments, nargsf, names)
    return (function + table.FUNCTION_ENTRY.i64).ptr.ptr(function, arguments, nargsf, names)

# (What follows is by itself, so that `first` keeps nothing on the stack.)
@CONVENTION
@internal.noinline
def is_large(table: ptr, value: ptr, self: ptr) -> i1:
    if value.TYPE.ptr == table.INT_TYPE.ptr:
        return ugt(magnitude(table, value), self.LARGEST_INT.i64)
    return ugt(size_of(table, value), self.LARGEST.i64)

# The call is Python's, and its time is booked.
@internal.noinline
def timed(self: ptr, table: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    function = (self + table.FUNCTION_PLACE.i64).ptr
    if function == null:
        return pass_on(self, table, arguments, nargsf, names)
    booked = table.BOOKED.ptr
    before = booked.i64
    start = time_now(table)
    result = table.VECTORCALL.ptr.ptr(function, arguments, nargsf, names)
    took = time_now(table) - start
    own = smax(took - (booked.i64 - before), 0)
    booked.i64 = booked.i64 + own
    estimate = self.ESTIMATE.i64
    if estimate > 0 and own > SUDDEN:
        own = smin(own, SUDDEN + GROWTH * estimate)
    self.ESTIMATE.i64 = own
    self.LEFT.i64 = self.LEFT.i64 - own
    self.UNTIMED.i64 = smin(SPAN // smax(own, 1), MOST)
    return result

# The call is for what stands behind.
@internal.noinline
def pass_on(self: ptr, table: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    slow = (self + table.SLOW_PLACE.i64).ptr
    if slow == null:
        slow = made(self, table)
        if slow == null:
            return null
    return table.VECTORCALL.ptr.ptr(slow, arguments, nargsf, names)

# What stands behind, which is made now, borrowed; null while the instance is being freed.
@internal.noinline
def made(self: ptr, table: ptr) -> ptr:
    if (self + table.FUNCTION_PLACE.i64).ptr == null:
        table.SET_STRING.ptr.ptr(table.SYSTEM_ERROR.ptr, table.GONE.ptr)
        return null
    arguments = alloca(ptr)
    arguments.ptr = self
    none = table.VECTORCALL.ptr.ptr(table.MAKE_SLOW.ptr, arguments, 1, null)
    if none == null:
        return null
    table.DROP.ptr.ptr(none)
    return (self + table.SLOW_PLACE.i64).ptr
"""
