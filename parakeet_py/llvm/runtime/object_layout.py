"""Where CPython and NumPy keep what gates read: offsets into their structures, and the proof that they are right.

Gates read Python objects in machine code, by the offsets given here. The structures are not part of a stable interface,
so every offset is compared with live objects before anything is compiled. Where they differ, compiled code is entered
by what reads no object (`call/dispatch/portable_entry`). Where the interpreter runs without its lock, on which
compiled code relies, functions are refused and run in Python. No memory is misread.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from typing import Any, Final

import numpy as np

from parakeet_py.base import machine
from parakeet_py.base.errors import UnsupportedError


class Layout:
    """Byte offsets into Python objects; `check_layout` proves them."""

    HEADER: Final = object.__basicsize__
    TYPE: Final = HEADER - 8
    # PyArrayObject_fields
    DATA: Final = HEADER
    NDIM: Final = HEADER + 8
    DIMS: Final = HEADER + 16
    STRIDES: Final = HEADER + 24
    BASE: Final = HEADER + 32
    DESCR: Final = HEADER + 40
    FLAGS: Final = HEADER + 48
    MEM_HANDLER: Final = HEADER + 72
    # PyArray_Descr
    BYTEORDER: Final = HEADER + 10
    TYPE_NUM: Final = HEADER + 12
    ITEMSIZE: Final = HEADER + 24
    METADATA: Final = HEADER + 40
    C_METADATA: Final = HEADER + 96
    UNIT: Final = 32  # in that, of datetime64 and timedelta64: as `unit_code` has it
    # PyDatetimeScalarObject: the number, and the unit and how many of it, as `unit_code` has them
    TIME: Final = HEADER
    TIME_UNIT: Final = HEADER + 8
    # PyTupleObject, PyListObject, PyDictObject, PySliceObject, PyCellObject
    SIZE: Final = HEADER
    TUPLE_ITEMS: Final = tuple.__basicsize__
    LIST_ITEMS: Final = HEADER + 8
    SLICE_ITEMS: Final = HEADER  # and those of ranges
    CELL: Final = HEADER
    # PyMethodObject
    METHOD_FUNCTION: Final = HEADER
    METHOD_OBJECT: Final = HEADER + 8
    # PyFunctionObject
    FUNCTION_GLOBALS: Final = HEADER
    FUNCTION_CODE: Final = HEADER + 32
    FUNCTION_DEFAULTS: Final = HEADER + 40
    FUNCTION_KEYWORD_DEFAULTS: Final = HEADER + 48
    FUNCTION_CLOSURE: Final = HEADER + 56


_UNITS = ("Y", "M", "W", "", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")  # in the order of NPY_DATETIMEUNIT


def unit_code(unit: str) -> int:
    """The unit of a dtype of datetime64 or timedelta64, such as M8[25ns], as its scalars hold it."""
    name, count = np.datetime_data(np.dtype(unit))
    return _UNITS.index(name) | count << 32


class Flags:
    """NumPy's array flags."""

    C: Final = 0x1
    F: Final = 0x2
    OWNDATA: Final = 0x4
    ALIGNED: Final = 0x100
    WRITEABLE: Final = 0x400
    WARN_ON_WRITE: Final = 1 << 31


def _with_everything(captured: object) -> Any:
    """A function with defaults of both kinds and a closure."""

    def function(first: int = 1, *, second: int = 2) -> object:
        return captured, first, second

    return function


def check_interpreter() -> None:
    """Refuse interpreters for which nothing is compiled.

    Raises
    ------
    UnsupportedError
        This Python has no global lock, or the machine's words are not those that compiled code has.
    """
    reason = _unsuitable()
    if reason is not None:
        raise UnsupportedError(reason)


@lru_cache(maxsize=1)
def _unsuitable() -> str | None:
    version = sys.version.split()[0]
    if "free-threading" in sys.version:  # `sysconfig` says it, too, but takes as long as the rest of a call
        return f"Python {version} is a free-threaded build, for which nothing is compiled"
    if sys.byteorder != "little" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"Python {version} runs on a machine of other words than 64 bits, the lowest byte first"
    return None


@lru_cache(maxsize=1)
def unknown_layout() -> str:
    """Why machine code must not look into objects; empty if it may."""
    if machine.PORTABLE_ENTRY:
        return "PARAKEET_PORTABLE asks for it"
    if not (wrong := _wrong_facts()):
        return ""
    version, numbers = sys.version.split()[0], ", ".join(map(str, wrong))
    return f"the layout of objects in Python {version} with NumPy {np.__version__} is not known (facts {numbers})"


def _wrong_facts() -> list[int]:
    """The numbers of the comparisons of `Layout` with live objects that fail.

    What lies in the objects is read anyhow; a pointer found there, which may be none, is followed by the system.
    """
    with _Memory() as memory:
        return _wrong_facts_of(memory)


class _Memory:
    """Memory of this process that may not be there: the system reads it, by way of a pipe."""

    def __enter__(self) -> _Memory:
        self.ends = os.pipe()
        library: Any = ctypes.CDLL("ucrtbase" if machine.WINDOWS else None, use_errno=True)
        self.write = library._write if machine.WINDOWS else library.write
        self.write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint if machine.WINDOWS else ctypes.c_size_t
        self.write.restype = ctypes.c_int if machine.WINDOWS else ctypes.c_ssize_t
        return self

    def __exit__(self, *error: object) -> None:
        for end in self.ends:
            os.close(end)

    def word(self, address: int) -> int | None:
        """A word; None if it is null, or there is none."""
        if self.write(self.ends[1], address, 8) != 8:
            return None
        return int.from_bytes(os.read(self.ends[0], 8), sys.byteorder) or None


def _wrong_facts_of(memory: _Memory) -> list[int]:
    word = memory.word

    def behind(address: int, offset: int) -> int | None:
        pointer = word(address)
        return None if pointer is None else word((pointer + offset) % 2**64)

    def integer(address: int) -> int:
        return ctypes.c_int.from_address(address).value

    array = np.zeros((3, 4), np.float32)
    view = array[1:, ::2]
    view.flags.writeable = False
    at, dtype = id(array), id(array.dtype)
    items = (1.5, "a")
    listed = list(items)
    piece, numbers = slice(*items), range(1 << 40, 1 << 41, 1 << 39)
    function = _with_everything(items)
    cell = function.__closure__
    assert cell is not None
    plain = np.dtype(np.float32)
    marked = np.dtype(np.float32, metadata={"a": 1})
    has_handler = np.ndarray.__basicsize__ >= Layout.MEM_HANDLER + 8
    capsule = type(np._core._multiarray_umath._ARRAY_API)  # type: ignore[attr-defined]
    method = function.__get__(items)
    half = np.float16(1.5)
    times = np.timedelta64(7, ("ns", 25)), np.datetime64(7, "Y")
    dtypes = np.dtype("m8[25ns]"), np.dtype("M8[ms]")
    facts = (
        word(at + Layout.TYPE) == id(np.ndarray),
        word(at + Layout.DATA) == array.__array_interface__["data"][0],
        integer(at + Layout.NDIM) == 2,
        [behind(at + Layout.DIMS, 0), behind(at + Layout.DIMS, 8)] == [3, 4],
        [behind(at + Layout.STRIDES, 0), behind(at + Layout.STRIDES, 8)] == [16, 4],
        word(at + Layout.BASE) is None,
        word(id(view) + Layout.BASE) == at,
        word(at + Layout.DESCR) == dtype,
        integer(at + Layout.FLAGS) == array.flags.num,
        integer(id(view) + Layout.FLAGS) == view.flags.num,
        has_handler and behind(at + Layout.MEM_HANDLER, Layout.TYPE) == id(capsule),
        has_handler and word(id(view) + Layout.MEM_HANDLER) is None,
        integer(dtype + Layout.TYPE_NUM) == array.dtype.num,
        ctypes.c_char.from_address(dtype + Layout.BYTEORDER).value == b"=",
        word(dtype + Layout.ITEMSIZE) == 4 and word(id(np.dtype(np.complex64)) + Layout.ITEMSIZE) == 8,
        word(id(plain) + Layout.METADATA) is None,
        word(id(marked) + Layout.METADATA) is not None,
        word(id(items) + Layout.SIZE) == 2,
        word(id(items) + Layout.TUPLE_ITEMS + 8) == id(items[1]),
        word(id(listed) + Layout.SIZE) == 2,
        word(id({1: 2, 3: 4, 5: 6}) + Layout.SIZE) == 3,
        behind(id(listed) + Layout.LIST_ITEMS, 8) == id(items[1]),
        word(id(piece) + Layout.SLICE_ITEMS + 8) == id(items[1]),
        [word(id(numbers) + Layout.SLICE_ITEMS + 8 * place) for place in range(3)]
        == [id(numbers.start), id(numbers.stop), id(numbers.step)],
        word(id(cell[0]) + Layout.CELL) == id(items),
        word(id(function) + Layout.FUNCTION_GLOBALS) == id(function.__globals__),
        word(id(function) + Layout.FUNCTION_CODE) == id(function.__code__),
        word(id(function) + Layout.FUNCTION_DEFAULTS) == id(function.__defaults__),
        word(id(function) + Layout.FUNCTION_KEYWORD_DEFAULTS) == id(function.__kwdefaults__),
        word(id(function) + Layout.FUNCTION_CLOSURE) == id(function.__closure__),
        word(id(method) + Layout.METHOD_FUNCTION) == id(function),
        word(id(method) + Layout.METHOD_OBJECT) == id(items),
        word(id(integer) + Layout.FUNCTION_DEFAULTS) is None,
        word(id(integer) + Layout.FUNCTION_KEYWORD_DEFAULTS) is None,
        ctypes.c_double.from_address(id(items[0]) + Layout.HEADER).value == 1.5,
        ctypes.c_uint16.from_address(id(half) + Layout.HEADER).value == 0x3E00,
        [word(id(one) + Layout.TIME) for one in times] == [7, 7],
        [word(id(one) + Layout.TIME_UNIT) or 0 for one in times] == [unit_code("m8[25ns]"), unit_code("M8[Y]")],
        [behind(id(one) + Layout.C_METADATA, Layout.UNIT) for one in dtypes] == [unit_code(one.str) for one in dtypes],
    )
    return [index for index, fact in enumerate(facts) if not fact]
