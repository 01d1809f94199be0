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

Every change of the filters (`simplefilter`, and what happens in a block of `warnings.catch_warnings`) changes one of
the three, as the list and its first item are kept: what is new cannot be at their place in memory. (A block between two
calls leaves no trace, although Python then shows warnings anew.)
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from typing import Any, Final

import numpy as np

from parakeet_py.base import machine
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.object_layout import Layout, unknown_layout

KINDS: Final = ("divide", "over", "under", "invalid")
"""In the order of NumPy's mask."""
_ACTIONS: Final = ("ignore", "warn", "raise", "call", "print", "log")  # the numbers in the mask
_BITS: Final = 3
MORE_THAN_WARNINGS: Final = sum(0b110 << _BITS * place for place in range(len(KINDS)))

# bits of MXCSR
INVALID, DIVIDE, OVERFLOW = 0x1, 0x4, 0x8
FLAGS: Final = {"divide": DIVIDE, "over": OVERFLOW, "invalid": INVALID}  # underflow is common, and ignored by default
ALL_FLAGS: Final = INVALID | DIVIDE | OVERFLOW
OTHER: Final = 0x100  # no bit of the register
HAS_FLAGS: Final = machine.HAS_FLAGS


class Record(ctypes.Structure):
    """What a gate remembers of the flags its calls have set; see the head of this file."""

    told: int
    present: int
    filters: int | None
    count: int
    first: int | None
    held: tuple[Any, ...]  # the list and its first item: no others can be where these are

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
        self.held = (filters, *filters[:1])
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


def error_state() -> Any:
    """The state in force, an object that never changes."""
    return np._core.umath._extobj_contextvar.get()  # type: ignore[attr-defined]


def asks_for_errors() -> bool:
    """Does the state in force ask for more than warnings?"""
    if unknown_layout():
        state: Any = np.geterr()
        return any(action not in ("ignore", "warn") for action in state.values())
    return bool(mask() & MORE_THAN_WARNINGS)


SUPPORT: Final = Source(
    """
def PyContextVar_Get(variable: ptr, default: ptr, value: ptr) -> i32: ...
error_state: extern
warnings: extern
filters_name: extern("filters")

# The mask of NumPy's error state.
@internal.alwaysinline
def error_mask() -> i32:
    place = alloca(ptr)
    place.ptr = null
    PyContextVar_Get(error_state, null, place)
    state = place.ptr
    if state == null:
        PyErr_Clear()
        return 0
    mask = state.HEADER.ptr.i32
    # The context or the variable itself holds another reference. An immortal object's lower half of the count is
    # negative.
    if COUNTS_32:
        count = state.i32
        state.i32 = count if count < 0 else count - 1
    else:
        state.i64 -= 1
    return mask

# Does it ask for more than warnings?
def asks_for_errors() -> i1:
    return error_mask() & MORE_THAN_WARNINGS != 0

@internal.alwaysinline
def flag_if_warned(mask: i32, place: i32, flag: i32) -> i32:
    return flag if mask >> place & 1 != 0 else 0

# A call has set flags and has this result: give it, or null where reporting the flags has raised an exception.
@cold.noinline
def flags_set(record: ptr, flags: i32, reporter: ptr, arguments: ptr, count: i64, result: ptr) -> ptr:
    mask = error_mask()
    warned = flag_if_warned(mask, 0, DIVIDE) | flag_if_warned(mask, 3, OVERFLOW) | flag_if_warned(mask, 9, INVALID)
    here = flags & warned
    if here == 0:
        if warned == 0:
            return result
        here = OTHER  # of kinds that are ignored: others may have happened with them
    filters = PyDict_GetItemWithError(warnings, filters_name)
    if filters == null:
        PyErr_Clear()
        return result
    if record.FILTERS.ptr == filters and record.COUNT.i64 == filters.SIZE.i64:
        same = filters.SIZE.i64 == 0 or record.FIRST.ptr == filters.LIST_ITEMS.ptr.ptr
        if same and here & ~record.i32 == 0:
            return result
    record.PRESENT.i32 = here
    said = PyObject_Vectorcall(reporter, arguments, count, null)
    if said == none_object:
        Py_DecRef(said)
        return result
    if said != null:
        PyErr_SetObject(said.TYPE.ptr, said)
        Py_DecRef(said)
    Py_DecRef(result)
    return null
""",
    {
        "COUNTS_32": sys.version_info >= (3, 12),
        "MORE_THAN_WARNINGS": MORE_THAN_WARNINGS,
        "DIVIDE": DIVIDE,
        "OVERFLOW": OVERFLOW,
        "OTHER": OTHER,
        "INVALID": INVALID,
        "PRESENT": Record.present.offset,  # type: ignore[attr-defined]
        "FILTERS": Record.filters.offset,  # type: ignore[union-attr]
        "COUNT": Record.count.offset,  # type: ignore[attr-defined]
        "FIRST": Record.first.offset,  # type: ignore[union-attr]
        "HEADER": Layout.HEADER,
        "TYPE": Layout.TYPE,
        "SIZE": Layout.SIZE,
        "LIST_ITEMS": Layout.LIST_ITEMS,
    },
)
