"""A gate to the plain Python function: calls that are not worth compiling, at next to no cost.

    gate = PlainGate(function, shape, largest=1000, nanoseconds=50_000_000)
    gate.address                 # a vectorcall function, as that of any gate
    gate.follow(other)           # where calls go that are not its own

A plain gate takes calls of one *shape*: so many arguments by position, these keyword names, and for each argument its
class, for arrays also their dtype and rank, for a bool or str which one it is. Without a shape it takes any call whose
arguments are of classes it knows, `unsized` or with a size. It lets a call pass when an argument is larger than
`largest` (elements of an array, items of a list, tuple or dict, the value of an int), and when Python's calls have
taken the nanoseconds that it was given. It measures their own time (see `booked_time`) with the monotonic clock, which
costs some 50 ns: of short calls one of some (`first_gate.SPAN`), which stands for all; of none if it is `FOR_EVER`.

Under profilers, tracers and the like it takes the same calls: these see the plain function.

What a gate needs is in a record, a C structure that Python changes too (`gate_record`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Final

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import ARRAYS
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry import argument_sizes, booked_time
from parakeet_py.llvm.entry.callable_type import Plain
from parakeet_py.llvm.entry.first_gate import MOST, SPAN
from parakeet_py.llvm.entry.gate_record import GateRecord
from parakeet_py.signature.device_classes import class_lives_elsewhere

FOR_EVER: Final = 2**63 - 1
MAX_ARGUMENTS: Final = 16
_ARRAY, _INT, _SIZED, _ITSELF, _TEXT = 1, 2, 3, 4, 5  # what is looked at beside the class of an argument
_OWN: Final = frozenset((bool, str, type(None)))  # which are looked at themselves
_SIZED_TYPES: Final = frozenset((list, tuple, dict))  # whose length is the word behind their header


@record
class Shape:
    """What calls of one kind have in common.

    Attributes
    ----------
    types : the classes of the arguments, those given by keyword last
    marks : the dtypes of arrays; those arguments themselves that are a bool or a str; of others nothing, `None`
    ranks : of arrays; 0 for others
    names : of the arguments given by keyword
    """

    types: tuple[type, ...]
    marks: tuple[object, ...]
    ranks: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, args: Sequence[Any], kwargs: Mapping[str, Any], closely: bool = True) -> Shape | None:
        """The shape of a call; None if it has more arguments than a gate looks at, or some of a class of which
        others live on devices.

        Unless it is looked at `closely`, any bool is like another, any str, and arrays of one rank.
        """
        own, arrays = (_OWN, ARRAYS) if closely else (frozenset(), ())
        values = (*args, *kwargs.values())
        types = tuple(map(type, values))
        if len(values) > MAX_ARGUMENTS or any(map(class_lives_elsewhere, types)):
            return None
        return cls(
            types,
            tuple(value.dtype if type(value) in arrays else value if type(value) in own else None for value in values),
            tuple(value.ndim if type(value) in ARRAYS else 0 for value in values),
            tuple(kwargs),
        )


_KINDS: Final[dict[type, int]] = {**dict.fromkeys(ARRAYS, _ARRAY), int: _INT}
_Words = ctypes.c_int64 * MAX_ARGUMENTS


class PlainGate(Plain, GateRecord):
    """See the head of this file. The fields are read and written by native code."""

    _fields_ = (
        ("function", ctypes.c_int64),
        ("left", ctypes.c_int64),
        ("largest", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("named", ctypes.c_int64),
        ("until_sample", ctypes.c_int64),
        ("estimate", ctypes.c_int64),
        ("types", _Words),
        ("marks", _Words),
        ("ranks", _Words),
        ("kinds", _Words),
        ("names", _Words),
    )
    entry = "plain"
    called = ("PyUnicode_Compare",)

    def __init__(self, function: FunctionType, shape: Shape | None, largest: int, nanoseconds: int) -> None:
        super().__init__()
        self.shape = shape
        self._kept: list[object] = [function, shape]
        self.function = id(function)
        self.left, self.largest = nanoseconds, largest
        self.follow(function)
        if shape is None:
            self.count = -1
            return
        self.count, self.named = len(shape.types), len(shape.names)
        for place, (kind, mark, rank) in enumerate(zip(shape.types, shape.marks, shape.ranks, strict=True)):
            self.types[place], self.ranks[place] = id(kind), rank
            self.marks[place] = 0 if mark is None else id(mark)
            itself = kind in _OWN and mark is not None
            self.kinds[place] = (
                _TEXT
                if itself and kind is str
                else _ITSELF
                if itself
                else _SIZED
                if kind in _SIZED_TYPES
                else _KINDS.get(kind, 0)
            )
        for place, name in enumerate(shape.names):
            self.names[place] = id(name)

    @property
    def is_lasting(self) -> bool:  # type: ignore[override]
        """Does it take calls for ever?"""
        return bool(self.left == FOR_EVER)

    @classmethod
    def code_texts(cls) -> tuple[Source, ...]:
        return cls.source_of(_CODE, _CONSTANTS), argument_sizes.SIZES

    @classmethod
    def symbols(cls) -> Mapping[str, int]:
        return {"booked": booked_time.address(), "table": argument_sizes.address()}


_CODE = """
def PyUnicode_Compare(left: ptr, right: ptr) -> i32: ...
open_blocks: extern
booked: extern
table: extern

# The call is Python's.
@internal.alwaysinline
def done(record: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    function = record.FUNCTION.ptr
    if ENTRY_PLACE != 0:
        return (function + ENTRY_PLACE).ptr.ptr(function, arguments, nargsf, names)
    return PyObject_Vectorcall(function, arguments, nargsf, names)

# The same, and its time is booked.
@internal.alwaysinline
def booked_call(record: ptr, left: i64, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    if left == FOR_EVER:
        return done(record, arguments, nargsf, names)
    until = record.UNTIL_SAMPLE.i64
    if until <= 0:
        return timed(record, arguments, nargsf, names)
    estimate = record.ESTIMATE.i64
    record.UNTIL_SAMPLE.i64 = until - 1
    record.LEFT.i64 = left - estimate
    booked.i64 = booked.i64 + estimate
    return done(record, arguments, nargsf, names)

@internal.noinline
def timed(record: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    before = booked.i64
    start = time_now(table)
    result = PyObject_Vectorcall(record.FUNCTION.ptr, arguments, nargsf, names)
    took = time_now(table) - start
    own = smax(took - (booked.i64 - before), 0)
    booked.i64 = booked.i64 + own
    record.LEFT.i64 = record.LEFT.i64 - own
    record.ESTIMATE.i64 = own
    record.UNTIL_SAMPLE.i64 = smin(SPAN // smax(own, 1), MOST)
    return result

@internal.noinline
def is_large(record: ptr, value: ptr) -> i1:
    return ugt(size_of(table, value), record.LARGEST.i64)

# Whatever the call's arguments are, if none is large.
@internal
def of_any_shape(record: ptr, left: i64, arguments: ptr, nargsf: i64, names: ptr, keywords: i64) -> ptr:
    unsized = table.UNSIZED.ptr
    place = arguments
    end = arguments + 8 * ((nargsf & ARGUMENTS) + keywords)
    while place != end:
        kind = place.ptr.TYPE.ptr
        if unsized.ptr[(i64(kind) * HASH) >> HASH_SHIFT] != kind:
            value = place.ptr
            if is_small(table, value, record.LARGEST.i64, record.LARGEST.i64) == 0:
                if is_large(record, value):
                    return go_on(record, arguments, nargsf, names)
        place += 8
    return booked_call(record, left, arguments, nargsf, names)

def plain(holder: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    record = holder.HEADER.ptr
    left = record.LEFT.i64
    if (left <= 0) | (atomic_load(open_blocks.i64, "monotonic") != 0):
        return go_on(record, arguments, nargsf, names)
    keywords = 0
    if names != null:
        keywords = names.SIZE.i64
    count = record.COUNT.i64
    if count < 0:
        return of_any_shape(record, left, arguments, nargsf, names, keywords)
    if ((nargsf & ARGUMENTS) + keywords != count) | (keywords != record.NAMED.i64):
        return go_on(record, arguments, nargsf, names)
    k = 0
    while k < keywords:
        if names.TUPLE_ITEMS.ptr[k] != record.NAMES.ptr[k]:
            return go_on(record, arguments, nargsf, names)
        k += 1
    k = 0
    while k < count:
        value = arguments.ptr[k]
        if value.TYPE.ptr != record.TYPES.ptr[k]:
            return go_on(record, arguments, nargsf, names)
        kind = record.KINDS.i64[k]
        mark = record.MARKS.ptr[k]
        size = 0
        if kind == ARRAY:
            if sext(value.NDIM.i32) != record.RANKS.i64[k] or (mark != null and value.DESCR.ptr != mark):
                return go_on(record, arguments, nargsf, names)
            size = elements(value)
        elif kind == INT:
            if is_digit(table, value):
                size = sext(value.DIGIT.i32)
            else:
                size = magnitude(table, value)
        elif kind == SIZED:
            size = value.SIZE.i64
        elif kind == ITSELF:
            if value != mark:
                return go_on(record, arguments, nargsf, names)
        elif kind == TEXT and value != mark and PyUnicode_Compare(value, mark) != 0:
            return go_on(record, arguments, nargsf, names)
        if ugt(size, record.LARGEST.i64):
            return go_on(record, arguments, nargsf, names)
        k += 1
    return booked_call(record, left, arguments, nargsf, names)
"""

_CONSTANTS: Final[dict[str, int | str]] = {
    "FOR_EVER": FOR_EVER,
    "ARRAY": _ARRAY,
    "INT": _INT,
    "SIZED": _SIZED,
    "ITSELF": _ITSELF,
    "TEXT": _TEXT,
    "SPAN": SPAN,
    "MOST": MOST,
    "ENTRY_PLACE": argument_sizes.entry_place(),
    **{name: argument_sizes.SIZES.constants[name] for name in ("UNSIZED", "HASH", "HASH_SHIFT", "DIGIT")},
}
