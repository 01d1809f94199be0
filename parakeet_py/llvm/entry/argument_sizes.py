"""How large the arguments of a call are, asked in machine code: what gates without a shape look at.

Code for this is in memory before anything is compiled (see `first_gate`), so it names no symbols: what it needs of the
process is in a *table* of words, whose address it is given: addresses of C functions, of counters and of classes, the
classes whose objects have no size, and where an accelerated function keeps what calls need.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Iterable
from functools import lru_cache
from types import FunctionType
from typing import Final

import numpy as np

from parakeet_py.base import config as settings
from parakeet_py.base import machine
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry import booked_time
from parakeet_py.llvm.entry.callable_type import (
    FUNCTION_OFFSET,
    SLOW_OFFSET,
    VECTORCALL_OFFSET,
    AcceleratedFunction,
    make_slow,
)
from parakeet_py.llvm.runtime.object_layout import Layout

HASH_BITS: Final = 14
HASH: Final = 0x9E3779B97F4A7C15
PROBES: Final = 4  # places for classes with the same hash
MONOTONIC: Final = 1  # the clock
TP_VECTORCALL_OFFSET: Final = 56  # offset of tp_vectorcall_offset in PyTypeObject
_WORDS: Final = (
    "OPEN_BLOCKS",
    "BOOKED",
    "CLOCK_GETTIME",
    "VECTORCALL",
    "AS_INT64",
    "UNSIZED",
    "ARRAY_TYPE",
    "INT_TYPE",
    "INT_ADDED",
    "INT_LIMIT",
    "LIST_TYPE",
    "TUPLE_TYPE",
    "DICT_TYPE",
    "SLOW_PLACE",
    "FUNCTION_PLACE",
    "FUNCTION_ENTRY",
    "SET_STRING",
    "SYSTEM_ERROR",
    "GONE",
    "MAKE_SLOW",
    "DROP",
)
# An int of one digit: the word behind the header is below a limit, on Python 3.11 after one has been added, and the
# digit follows.
_INT_ADDED: Final = 0 if sys.version_info >= (3, 12) else 1
_DIGIT: Final = Layout.SIZE + 8
_gone = ctypes.create_string_buffer(b"call of a function that is being freed")

_classes = (ctypes.c_int64 * (2**HASH_BITS + PROBES))()


def add_unsized(kinds: Iterable[type]) -> None:
    """Let arguments of further classes be taken, as they have no size. The caller keeps these alive."""
    for kind in kinds:
        first = (id(kind) * HASH & 2**64 - 1) >> 64 - HASH_BITS
        for place in range(first, first + PROBES):
            if _classes[place] in (0, id(kind)):
                _classes[place] = id(kind)
                break


def entry_place() -> int:
    """Where Python's functions keep the vectorcall function that they are called by; 0 if it is not found."""

    def offset(kind: type) -> int:
        return ctypes.c_ssize_t.from_address(id(kind) + TP_VECTORCALL_OFFSET).value

    place = offset(FunctionType)
    if offset(AcceleratedFunction) != VECTORCALL_OFFSET or not 0 < place <= FunctionType.__basicsize__ - 8:
        return 0
    entries = {ctypes.c_size_t.from_address(id(one) + place).value for one in (offset, entry_place, make_slow)}
    return place if len(entries) == 1 and 0 not in entries else 0  # all functions have the same one


def _int_limit() -> int:
    """Below what the word behind the header is for ints of one digit; 0 if they are not laid out as expected."""

    def word(number: int) -> int:
        return ctypes.c_int64.from_address(id(number) + Layout.SIZE).value + _INT_ADDED

    limit = 16 if sys.version_info >= (3, 12) else 3
    short, long = (0, 1, -1, 1000, -1000, 2**30 - 1, 1 - 2**30), (2**30, -(2**30), 2**70, -(2**63))
    expected = all(
        0 <= word(number) < limit and ctypes.c_int32.from_address(id(number) + _DIGIT).value == abs(number)
        for number in short
    )
    return limit if expected and not any(0 <= word(number) < limit for number in long) else 0


@lru_cache(maxsize=1)
def table() -> array[int]:
    """The table."""

    def c_function(name: str, library: ctypes.CDLL = ctypes.pythonapi) -> int:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0

    words = {
        "OPEN_BLOCKS": settings.open_blocks_address(),
        "BOOKED": booked_time.address(),
        "CLOCK_GETTIME": 0 if machine.WINDOWS else c_function("clock_gettime", ctypes.CDLL(None)),
        "VECTORCALL": c_function("PyObject_Vectorcall"),
        "AS_INT64": c_function("PyLong_AsLongLongAndOverflow"),
        "UNSIZED": ctypes.addressof(_classes),
        "ARRAY_TYPE": id(np.ndarray),
        "INT_TYPE": id(int),
        "INT_ADDED": _INT_ADDED,
        "INT_LIMIT": _int_limit(),
        "LIST_TYPE": id(list),
        "TUPLE_TYPE": id(tuple),
        "DICT_TYPE": id(dict),
        "SLOW_PLACE": SLOW_OFFSET,
        "FUNCTION_PLACE": FUNCTION_OFFSET,
        "FUNCTION_ENTRY": entry_place(),
        "SET_STRING": c_function("PyErr_SetString"),
        "SYSTEM_ERROR": id(SystemError),
        "GONE": ctypes.addressof(_gone),
        "MAKE_SLOW": id(make_slow),
        "DROP": c_function("Py_DecRef"),
    }
    return array("q", [words[name] for name in _WORDS])


@lru_cache(maxsize=1)
def address() -> int:
    """Where the table is, which lives as long as the process."""
    return table().buffer_info()[0]


SIZES: Final = Source(
    """
# The elements of an array.
@internal
def elements(array: ptr) -> i64:
    size = 1
    axis = 0
    while axis < sext(array.NDIM.i32):
        size *= array.DIMS.ptr.i64[axis]
        axis += 1
    return size

# The size of an int: its value without a sign, the largest there is if it has more bits.
@internal.noinline
def magnitude(table: ptr, number: ptr) -> i64:
    overflow = alloca(i32)
    overflow.i32 = 0
    value = table.AS_INT64.ptr.i64(number, overflow)
    if overflow.i32 != 0:
        return ANY_INT
    return -value if value < 0 else value

# Is an int of one digit, which is its value without a sign?
@internal.alwaysinline
def is_digit(table: ptr, number: ptr) -> i1:
    return ult(number.SIZE.i64 + table.INT_ADDED.i64, table.INT_LIMIT.i64)

# Is it plain to see that an argument of a class with a size is no larger?
@internal.alwaysinline
def is_small(table: ptr, value: ptr, largest: i64, largest_int: i64) -> i1:
    kind = value.TYPE.ptr
    if kind == table.INT_TYPE.ptr and is_digit(table, value):
        return ule(sext(value.DIGIT.i32), largest_int)
    if kind == table.LIST_TYPE.ptr or kind == table.TUPLE_TYPE.ptr or kind == table.DICT_TYPE.ptr:
        return ule(value.SIZE.i64, largest)
    return 0

# The size of an argument; -1 if its class is not known.
@internal
def size_of(table: ptr, value: ptr) -> i64:
    kind = value.TYPE.ptr
    unsized = table.UNSIZED.ptr
    place = (i64(kind) * HASH) >> HASH_SHIFT
    end = place + PROBES
    while place < end:
        if unsized.ptr[place] == kind:
            return 0
        place += 1
    if kind == table.ARRAY_TYPE.ptr:
        return elements(value)
    if kind == table.INT_TYPE.ptr:
        if is_digit(table, value):
            return sext(value.DIGIT.i32)
        return magnitude(table, value)
    if kind == table.LIST_TYPE.ptr or kind == table.TUPLE_TYPE.ptr or kind == table.DICT_TYPE.ptr:
        return value.SIZE.i64
    return -1

# Nanoseconds of the monotonic clock.
@internal
def time_now(table: ptr) -> i64:
    time = alloca(i64, 2)
    table.CLOCK_GETTIME.ptr.i32(i32(MONOTONIC), time)
    return time.i64 * 1000000000 + time.i64[1]
""",
    {
        "HASH": HASH - 2**64,
        "HASH_SHIFT": 64 - HASH_BITS,
        "PROBES": PROBES,
        "ANY_INT": 2**63 - 1,
        "MONOTONIC": MONOTONIC,
        "DIGIT": _DIGIT,
        **{name: 8 * place for place, name in enumerate(_WORDS)},
        **{name: getattr(Layout, name) for name in ("TYPE", "NDIM", "DIMS", "SIZE")},
    },
)
