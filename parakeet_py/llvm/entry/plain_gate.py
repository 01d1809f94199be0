"""A gate to the plain Python function: calls that are not worth compiling, at next to no cost.

    gate = PlainGate(function, shape, largest=1000, nanoseconds=50_000_000)
    gate.address                 # a vectorcall function, as that of any gate
    gate.follow(other)           # where calls go that are not its own

A plain gate takes calls of one *shape*: so many arguments by position, these keyword names, and for each argument its
class, for arrays also their dtype and rank, for a bool or str which one it is. It lets a call pass when an
argument is larger than `largest` (elements of an array, items of a list, tuple or dict, the value of an int), and when
Python's calls have taken the nanoseconds that it was given. It measures with the monotonic clock, which costs some 50
ns; not if it is `FOR_EVER`. The time of calls within a call counts once.

As other gates it takes no calls while an `options` block is open anywhere or the main thread is traced or profiled.

What a gate needs is in a record, a C structure that Python changes too. A gate finds it through the object it is
entered with: the record itself where another gate leads here, and the decorated function where this gate is its first,
which keeps the record in a slot.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.entry.callable_type import FIRST_OFFSET, Plain
from parakeet_py.llvm.runtime.native_runtime import support_code
from parakeet_py.llvm.runtime.object_layout import Layout

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
        """The shape of a call; None if it has more arguments than a gate looks at.

        Unless it is looked at `closely`, any bool is like another, any str, and arrays of one rank.
        """
        own, array = (_OWN, np.ndarray) if closely else (frozenset(), None)
        values = (*args, *kwargs.values())
        if len(values) > MAX_ARGUMENTS:
            return None
        return cls(
            tuple(map(type, values)),
            tuple(value.dtype if type(value) is array else value if type(value) in own else None for value in values),
            tuple(value.ndim if type(value) is np.ndarray else 0 for value in values),
            tuple(kwargs),
        )


_KINDS: Final[dict[type, int]] = {np.ndarray: _ARRAY, int: _INT}
_Words = ctypes.c_int64 * MAX_ARGUMENTS


class PlainGate(Plain, ctypes.Structure):
    """See the head of this file. The fields are read and written by native code."""

    _fields_ = (
        ("function", ctypes.c_int64),
        ("next_code", ctypes.c_int64),
        ("next_object", ctypes.c_int64),
        ("left", ctypes.c_int64),
        ("largest", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("named", ctypes.c_int64),
        ("types", _Words),
        ("marks", _Words),
        ("ranks", _Words),
        ("kinds", _Words),
        ("names", _Words),
    )

    def __init__(self, function: FunctionType, shape: Shape, largest: int, nanoseconds: int) -> None:
        super().__init__()
        self.shape = shape
        self._kept: list[object] = [function, shape]
        self.function = id(function)
        self.left, self.largest = nanoseconds, largest
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
        self.follow(function)

    @property
    def is_lasting(self) -> bool:  # type: ignore[override]
        """Does it take calls for ever?"""
        return bool(self.left == FOR_EVER)

    @property
    def address(self) -> int:
        """Where other gates enter."""
        return _code()["gate.plain"]

    @property
    def first_address(self) -> int:
        """Where the calls of a decorated function enter."""
        return _code()["gate.plain_first"]

    def follow(self, target: Any) -> None:
        """Let other calls go on to `target`, another gate or any callable."""
        self._kept.append(target)  # a thread may be running in the former one
        address = getattr(target, "address", None) if boxing.is_gate(target) else None
        # A thread that reads between the two stores would enter one with the other: both are written with the GIL
        # held, as gates read them.
        self.next_object = id(target)
        self.next_code = address or boxing.symbols()["gate.PyObject_Vectorcall"]


@lru_cache(maxsize=1)
def _code() -> dict[str, int]:
    known = dict(boxing.support())
    api = ctypes.pythonapi
    known["gate.PyUnicode_Compare"] = ctypes.cast(api.PyUnicode_Compare, ctypes.c_void_p).value or 0
    known["gate.clock_gettime"] = ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0
    text = _CODE
    constants: dict[str, int] = {
        **{name: value for name, value in vars(Layout).items() if name.isupper()},
        **{f"AT_{name}": getattr(PlainGate, name).offset for name, _ in PlainGate._fields_},
        "FIRST": FIRST_OFFSET,
        "FOR_EVER": FOR_EVER,
        "ARRAY": _ARRAY,
        "INT": _INT,
        "SIZED": _SIZED,
        "ITSELF": _ITSELF,
        "TEXT": _TEXT,
    }
    for name, value in constants.items():
        text = text.replace(f"${name}$", str(value))
    return dict(support_code("plain gates", text, known, ("gate.plain", "gate.plain_first")).addresses)


_CODE = """
declare ptr @gate.PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i64 @gate.PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i32 @gate.PyUnicode_Compare(ptr, ptr)
declare i32 @gate.clock_gettime(i32, ptr)
@gate.open_blocks = external global i64
declare i64 @gate.watched()

; Nanoseconds of the monotonic clock.
define internal i64 @now() {
  %time = alloca [2 x i64]
  %r = call i32 @gate.clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest_p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_p
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}

; The elements of an array.
define internal i64 @elements(ptr %array) {
entry:
  %rank_p = getelementptr i8, ptr %array, i64 $NDIM$
  %rank = load i32, ptr %rank_p
  %axes = sext i32 %rank to i64
  %dims_p = getelementptr i8, ptr %array, i64 $DIMS$
  %dims = load ptr, ptr %dims_p
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %body]
  %size = phi i64 [1, %entry], [%size1, %body]
  %more = icmp slt i64 %k, %axes
  br i1 %more, label %body, label %out
body:
  %dim_p = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %dim_p
  %size1 = mul i64 %size, %dim
  %k1 = add i64 %k, 1
  br label %loop
out:
  ret i64 %size
}

; The size of an int: its value without a sign, the largest there is if it has more bits.
define internal i64 @magnitude(ptr %number) {
  %overflow = alloca i32
  store i32 0, ptr %overflow
  %value = call i64 @gate.PyLong_AsLongLongAndOverflow(ptr %number, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  %minus = sub i64 0, %value
  %negative = icmp slt i64 %value, 0
  %positive = select i1 %negative, i64 %minus, i64 %value
  %size = select i1 %fits, i64 %positive, i64 $FOR_EVER$
  ret i64 %size
}

; Where the calls of a decorated function enter whose first gate this is.
define ptr @gate.plain_first(ptr %self, ptr %args, i64 %nargsf, ptr %names) {
  %holder_p = getelementptr i8, ptr %self, i64 $FIRST$
  %holder = load ptr, ptr %holder_p
  %r = tail call ptr @gate.plain(ptr %holder, ptr %args, i64 %nargsf, ptr %names)
  ret ptr %r
}

define ptr @gate.plain(ptr %holder, ptr %args, i64 %nargsf, ptr %names) {
entry:
  %record_p = getelementptr i8, ptr %holder, i64 $HEADER$
  %record = load ptr, ptr %record_p
  %left_p = getelementptr i8, ptr %record, i64 $AT_left$
  %left = load i64, ptr %left_p
  %spent = icmp sle i64 %left, 0
  %blocks = load atomic i64, ptr @gate.open_blocks monotonic, align 8
  %seen = call i64 @gate.watched()
  %asked = or i64 %seen, %blocks
  %inside = icmp ne i64 %asked, 0
  %not_now = or i1 %spent, %inside
  br i1 %not_now, label %miss, label %counts
counts:
  %given = and i64 %nargsf, 9223372036854775807
  %nameless = icmp eq ptr %names, null
  br i1 %nameless, label %total, label %named
named:
  %named_p = getelementptr i8, ptr %names, i64 $SIZE$
  %named_n = load i64, ptr %named_p
  br label %total
total:
  %keywords = phi i64 [0, %counts], [%named_n, %named]
  %all = add i64 %given, %keywords
  %count_p = getelementptr i8, ptr %record, i64 $AT_count$
  %count = load i64, ptr %count_p
  %expected_p = getelementptr i8, ptr %record, i64 $AT_named$
  %expected = load i64, ptr %expected_p
  %same_count = icmp eq i64 %all, %count
  %same_names = icmp eq i64 %keywords, %expected
  %countable = and i1 %same_count, %same_names
  br i1 %countable, label %name, label %miss
name:
  %n = phi i64 [0, %total], [%n1, %next_name]
  %more_names = icmp slt i64 %n, %keywords
  br i1 %more_names, label %next_name, label %argument
next_name:
  %place = add i64 %n, 0
  %items = getelementptr i8, ptr %names, i64 $TUPLE_ITEMS$
  %is_p = getelementptr ptr, ptr %items, i64 %place
  %is = load ptr, ptr %is_p
  %wanted_names = getelementptr i8, ptr %record, i64 $AT_names$
  %want_p = getelementptr ptr, ptr %wanted_names, i64 %place
  %want = load ptr, ptr %want_p
  %same_name = icmp eq ptr %is, %want
  %n1 = add i64 %n, 1
  br i1 %same_name, label %name, label %miss
argument:
  %i = phi i64 [0, %name], [%i1, %sized]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %run
look:
  %value_p = getelementptr ptr, ptr %args, i64 %i
  %value = load ptr, ptr %value_p
  %type_p = getelementptr i8, ptr %value, i64 $TYPE$
  %type = load ptr, ptr %type_p
  %types = getelementptr i8, ptr %record, i64 $AT_types$
  %want_type_p = getelementptr ptr, ptr %types, i64 %i
  %want_type = load ptr, ptr %want_type_p
  %same_type = icmp eq ptr %type, %want_type
  br i1 %same_type, label %measure, label %miss
measure:
  %kinds = getelementptr i8, ptr %record, i64 $AT_kinds$
  %kind_p = getelementptr i64, ptr %kinds, i64 %i
  %kind = load i64, ptr %kind_p
  switch i64 %kind, label %none [
    i64 $ARRAY$, label %array
    i64 $INT$, label %int
    i64 $SIZED$, label %length
    i64 $ITSELF$, label %itself
    i64 $TEXT$, label %text
  ]
none:
  br label %sized
array:
  %rank_p = getelementptr i8, ptr %value, i64 $NDIM$
  %rank32 = load i32, ptr %rank_p
  %rank = sext i32 %rank32 to i64
  %ranks = getelementptr i8, ptr %record, i64 $AT_ranks$
  %want_rank_p = getelementptr i64, ptr %ranks, i64 %i
  %want_rank = load i64, ptr %want_rank_p
  %same_rank = icmp eq i64 %rank, %want_rank
  %dtype_p = getelementptr i8, ptr %value, i64 $DESCR$
  %dtype = load ptr, ptr %dtype_p
  %dtypes = getelementptr i8, ptr %record, i64 $AT_marks$
  %want_dtype_p = getelementptr ptr, ptr %dtypes, i64 %i
  %want_dtype = load ptr, ptr %want_dtype_p
  %is_dtype = icmp eq ptr %dtype, %want_dtype
  %any_dtype = icmp eq ptr %want_dtype, null
  %same_dtype = or i1 %is_dtype, %any_dtype
  %like = and i1 %same_rank, %same_dtype
  br i1 %like, label %count_elements, label %miss
count_elements:
  %elements = call i64 @elements(ptr %value)
  br label %sized
itself:
  %marks = getelementptr i8, ptr %record, i64 $AT_marks$
  %want_mark_p = getelementptr ptr, ptr %marks, i64 %i
  %want_mark = load ptr, ptr %want_mark_p
  %same_object = icmp eq ptr %value, %want_mark
  br i1 %same_object, label %none, label %miss
text:
  %texts = getelementptr i8, ptr %record, i64 $AT_marks$
  %want_text_p = getelementptr ptr, ptr %texts, i64 %i
  %want_text = load ptr, ptr %want_text_p
  %same_text = icmp eq ptr %value, %want_text
  br i1 %same_text, label %none, label %compare
compare:
  %order = call i32 @gate.PyUnicode_Compare(ptr %value, ptr %want_text)
  %equal = icmp eq i32 %order, 0
  br i1 %equal, label %none, label %miss
int:
  %whole = call i64 @magnitude(ptr %value)
  br label %sized
length:
  %length_p = getelementptr i8, ptr %value, i64 $SIZE$
  %items_n = load i64, ptr %length_p
  br label %sized
sized:
  %size = phi i64 [0, %none], [%elements, %count_elements], [%whole, %int], [%items_n, %length]
  %largest_p = getelementptr i8, ptr %record, i64 $AT_largest$
  %largest = load i64, ptr %largest_p
  %i1 = add i64 %i, 1
  %small = icmp ule i64 %size, %largest
  br i1 %small, label %argument, label %miss
run:
  %function_p = getelementptr i8, ptr %record, i64 $AT_function$
  %function = load ptr, ptr %function_p
  %for_ever = icmp eq i64 %left, $FOR_EVER$
  br i1 %for_ever, label %plain, label %timed
plain:
  %p = tail call ptr @gate.PyObject_Vectorcall(ptr %function, ptr %args, i64 %nargsf, ptr %names)
  ret ptr %p
timed:
  %before = call i64 @now()
  %t = call ptr @gate.PyObject_Vectorcall(ptr %function, ptr %args, i64 %nargsf, ptr %names)
  %after = call i64 @now()
  %took = sub i64 %after, %before
  %still = load i64, ptr %left_p
  %fallen = sub i64 %left, %still
  %fell = icmp sgt i64 %fallen, 0
  %within = select i1 %fell, i64 %fallen, i64 0
  %own = sub i64 %took, %within
  %longer = icmp sgt i64 %own, 0
  %rest_own = select i1 %longer, i64 %own, i64 0
  %rest = sub i64 %still, %rest_own
  store i64 %rest, ptr %left_p
  ret ptr %t
miss:
  %next_code_p = getelementptr i8, ptr %record, i64 $AT_next_code$
  %next_code = load ptr, ptr %next_code_p
  %next_object_p = getelementptr i8, ptr %record, i64 $AT_next_object$
  %next_object = load ptr, ptr %next_object_p
  %m = tail call ptr %next_code(ptr %next_object, ptr %args, i64 %nargsf, ptr %names)
  ret ptr %m
}
"""
