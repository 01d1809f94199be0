"""NumPy's floating-point error state at a call: who asks for errors gets NumPy's, who is to be warned is warned.

Compiled code computes what NumPy does where errors are ignored. `np.seterr` and `np.errstate` may ask for more, for
each of four kinds: an exception, a call, a line printed or logged; or, which is the default, a `RuntimeWarning`.

**Errors.** NumPy keeps the state of a context in a variable (a `contextvars.ContextVar`), whose value is a capsule
around a C structure that begins with the mask of all kinds, of three bits each. A gate reads it in every call of a
function that computes anything NumPy would look at (`gate.asks_for_errors`, some 3 ns), and does not take the call
where more than a warning is asked for: Python runs it.

**Warnings.** The processor keeps flags of what has happened since they were last cleared (on x86-64 in MXCSR). The gate
clears them before the compiled function runs and reads them afterwards. Where one is set that NumPy warns of,
`gate.flags_set` decides whether there is anything to tell: not if the state ignores this kind, and not if the same
gate has been through this under the same warning filters. Only else `floating_warnings` is asked, which lets NumPy
say it. Flags are hints: code that computes lanes it does not use sets some, too.

Whether there is news is decided on a `Record` of the gate:

    told       the flags that have been dealt with
    filters, count, first     the list `warnings.filters` at that time, its length and its first item

Every change of the filters (a block of `warnings.catch_warnings`, `simplefilter`) changes one of the three.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import warnings
from typing import Any, Final

import numpy as np

KINDS: Final = ("divide", "over", "under", "invalid")
"""In the order of NumPy's mask."""
_ACTIONS: Final = ("ignore", "warn", "raise", "call", "print", "log")  # the numbers in the mask
_BITS: Final = 3
MORE_THAN_WARNINGS: Final = sum(0b110 << _BITS * place for place in range(len(KINDS)))

# bits of MXCSR
INVALID, DIVIDE, OVERFLOW = 0x1, 0x4, 0x8
FLAGS: Final = {"divide": DIVIDE, "over": OVERFLOW, "invalid": INVALID}  # underflow is common, and ignored by default
ALL_FLAGS: Final = INVALID | DIVIDE | OVERFLOW
HAS_FLAGS: Final = platform.machine() in ("x86_64", "AMD64")


class Record(ctypes.Structure):
    """What a gate remembers of the flags its calls have set; see the head of this file."""

    told: int
    present: int
    filters: int | None
    count: int
    first: int | None

    _fields_ = (
        ("told", ctypes.c_uint32),
        ("present", ctypes.c_uint32),  # the flags of the call that is asked about
        ("filters", ctypes.c_void_p),
        ("count", ctypes.c_ssize_t),
        ("first", ctypes.c_void_p),
    )

    def settle(self, flags: int) -> None:
        """Say nothing more of these flags until the filters change."""
        filters: Any = warnings.filters
        now = id(filters), len(filters), id(filters[0]) if filters else None
        if (self.filters, self.count, self.first) != now:
            self.told = 0
        self.filters, self.count, self.first = now
        self.told |= flags


def variable() -> Any:
    """NumPy's context variable.

    Raises
    ------
    ImportError
        NumPy keeps its error state in a way that is not known here.
    """
    found = getattr(np._core.umath, "_extobj_contextvar", None)  # type: ignore[attr-defined]
    if found is not None and all(
        _agrees(kind, action) for kind, action in zip((*KINDS, "over"), _ACTIONS[1:], strict=True)
    ):
        return found
    raise ImportError("parakeet_py does not know how this NumPy keeps its floating-point error state")


def _agrees(kind: str, action: Any) -> bool:
    """Is the mask what `geterr` says, with one kind set to an action?"""
    asked: dict[str, Any] = {kind: action}
    with np.errstate(**asked):
        state: Any = np.geterr()
        expected = sum(_ACTIONS.index(state[one]) << _BITS * place for place, one in enumerate(KINDS))
        return mask() == expected


def mask() -> int:
    """The mask of the state in force, read as gates do."""
    capsule = np._core.umath._extobj_contextvar.get()  # type: ignore[attr-defined]
    data = ctypes.c_void_p.from_address(id(capsule) + object.__basicsize__).value
    return ctypes.c_int.from_address(data or 0).value


def asks_for_errors() -> bool:
    """Does the state in force ask for more than warnings?"""
    return bool(mask() & MORE_THAN_WARNINGS)


TEXT: Final = """
declare i32 @gate.PyContextVar_Get(ptr, ptr, ptr)
@gate.error_state = external global i8
@gate.warnings = external global i8
@gate.filters = external global i8

; The mask of NumPy's error state.
define internal i32 @error_mask() alwaysinline {
entry:
  %place = alloca ptr
  store ptr null, ptr %place
  %r = call i32 @gate.PyContextVar_Get(ptr @gate.error_state, ptr null, ptr %place)
  %state = load ptr, ptr %place
  %none = icmp eq ptr %state, null
  br i1 %none, label %missing, label %found
missing:
  call void @gate.PyErr_Clear()
  ret i32 0
found:
  %data_p = getelementptr i8, ptr %state, i64 $HEADER$
  %data = load ptr, ptr %data_p
  %mask = load i32, ptr %data
$DECREMENT$
  ret i32 %mask
}

; Does it ask for more than warnings?
define i1 @gate.asks_for_errors() {
  %mask = call i32 @error_mask()
  %more = and i32 %mask, $MORE_THAN_WARNINGS$
  %asks = icmp ne i32 %more, 0
  ret i1 %asks
}

define internal i32 @flag_if_warned(i32 %mask, i32 %place, i32 %flag) alwaysinline {
  %shifted = lshr i32 %mask, %place
  %bit = and i32 %shifted, 1
  %warned = icmp ne i32 %bit, 0
  %result = select i1 %warned, i32 %flag, i32 0
  ret i32 %result
}

; A call has set flags and has this result: give it, or null where telling of the flags has raised an exception.
define ptr @gate.flags_set(ptr %record, i32 %flags, ptr %teller, ptr %args, i64 %nargs, ptr %result) cold noinline {
entry:
  %mask = call i32 @error_mask()
  %divide = call i32 @flag_if_warned(i32 %mask, i32 0, i32 $DIVIDE$)
  %over = call i32 @flag_if_warned(i32 %mask, i32 3, i32 $OVERFLOW$)
  %invalid = call i32 @flag_if_warned(i32 %mask, i32 9, i32 $INVALID$)
  %two = or i32 %divide, %over
  %warned = or i32 %two, %invalid
  %here = and i32 %flags, %warned
  %told = load i32, ptr %record
  %others = xor i32 %told, -1
  %new = and i32 %here, %others
  %none = icmp eq i32 %here, 0
  br i1 %none, label %good, label %look
look:
  %filters = call ptr @gate.PyDict_GetItemWithError(ptr @gate.warnings, ptr @gate.filters)
  %gone = icmp eq ptr %filters, null
  br i1 %gone, label %clear, label %compare
clear:
  call void @gate.PyErr_Clear()
  br label %good
compare:
  %filters_p = getelementptr i8, ptr %record, i64 8
  %known = load ptr, ptr %filters_p
  %same = icmp eq ptr %known, %filters
  br i1 %same, label %length, label %tell
length:
  %count_p = getelementptr i8, ptr %record, i64 16
  %known_count = load i64, ptr %count_p
  %size_p = getelementptr i8, ptr %filters, i64 $SIZE$
  %count = load i64, ptr %size_p
  %same_count = icmp eq i64 %known_count, %count
  br i1 %same_count, label %item, label %tell
item:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %settled, label %first
first:
  %items_p = getelementptr i8, ptr %filters, i64 $LIST_ITEMS$
  %items = load ptr, ptr %items_p
  %item0 = load ptr, ptr %items
  %first_p = getelementptr i8, ptr %record, i64 24
  %known_first = load ptr, ptr %first_p
  %same_first = icmp eq ptr %known_first, %item0
  br i1 %same_first, label %settled, label %tell
settled:
  %nothing = icmp eq i32 %new, 0
  br i1 %nothing, label %good, label %tell
tell:
  %present_p = getelementptr i8, ptr %record, i64 4
  store i32 %here, ptr %present_p
  %said = call ptr @gate.PyObject_Vectorcall(ptr %teller, ptr %args, i64 %nargs, ptr null)
  %raised = icmp eq ptr %said, null
  br i1 %raised, label %drop, label %done
done:
  %nothing_said = icmp eq ptr %said, @gate.None
  br i1 %nothing_said, label %silent, label %raise
silent:
  call void @gate.Py_DecRef(ptr %said)
  br label %good
raise:
  %type_p = getelementptr i8, ptr %said, i64 $TYPE$
  %type = load ptr, ptr %type_p
  call void @gate.PyErr_SetObject(ptr %type, ptr %said)
  call void @gate.Py_DecRef(ptr %said)
  br label %drop
good:
  ret ptr %result
drop:
  call void @gate.Py_DecRef(ptr %result)
  ret ptr null
}
"""


# The context or the variable itself holds another reference. An immortal object's lower half of the count is negative.
_DECREMENT: Final = """
  %count = load i64, ptr %state
  %less = sub i64 %count, 1
  store i64 %less, ptr %state
"""
_DECREMENT_MORTAL: Final = """
  %count = load i32, ptr %state
  %less = sub i32 %count, 1
  %immortal = icmp slt i32 %count, 0
  %left = select i1 %immortal, i32 %count, i32 %less
  store i32 %left, ptr %state
"""


def support_text() -> str:
    """What the support module has for gates, but for the offsets in it."""
    constants = {"MORE_THAN_WARNINGS": MORE_THAN_WARNINGS, "DIVIDE": DIVIDE, "OVERFLOW": OVERFLOW, "INVALID": INVALID}
    text = TEXT.replace("$DECREMENT$", _DECREMENT if sys.version_info < (3, 12) else _DECREMENT_MORTAL)
    for name, value in constants.items():
        text = text.replace(f"${name}$", str(value))
    return text
