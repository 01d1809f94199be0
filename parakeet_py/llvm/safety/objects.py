"""References in checked gates: every object that is counted is one, and counts balance over a call.

Each call of a checked gate has a *ledger*: for every object, the references that the gate has taken less those it has
dropped or given away (to a container, a view, an array that is made). In the end the result's one is left, and no
other. A reference that has not been taken before is neither dropped nor given away; so a count that is wrong does no
harm, and the call ends in a `MemorySafetyError`. Blocks are looked at as well: before results are boxed, as many
references are counted as results hold.

Checked gates and their support are linked against these functions in the place of Python's own:

    i1   gate.reference(ptr object)          take one more; false, and nothing done, if it is no object
    void gate.take(ptr object)               a reference has come from elsewhere; null is allowed
    void gate.give(ptr object)               one has gone to where the gate does not count
    void gate.Py_DecRef(ptr object)          drop one; null is allowed
    void gate.begin()                        a call begins
    void gate.place(i64 leaf)                this result is boxed next
    i1   gate.is_owned(ptr slots)            is the memory of an array result some object's, or a block's?
    void gate.count_blocks(ptr ctx, ptr results, ptr helper)
    ptr  gate.settle(ptr value, ptr helper)  the call is over: the value, or null with an exception
    i64  pk_object_fault(ptr object)         0, or what is wrong with a pointer to an object (`faults`)

and functions that make objects. The ledger itself is Python code, one stack of them to a thread; an exception that is
set when it is called is put aside.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from parakeet_py.base.errors import MemorySafetyError
from parakeet_py.llvm.entry.boxing_text import LENT
from parakeet_py.llvm.entry.callable_type import TP_FLAGS
from parakeet_py.llvm.entry.stub_support import increment_ir
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.llvm.runtime.native_runtime import runtime, support_code
from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.llvm.safety import faults
from parakeet_py.llvm.safety.payloads import readable_ir
from parakeet_py.signature.results import result_leaves, result_offsets

BEGIN, REFERENCE, TAKE, GIVE, DROP, PLACE, FAULT, BLOCKS, SETTLE = range(9)
_EVENTS = dict(BEGIN=0, REFERENCE=1, TAKE=2, GIVE=3, DROP=4, PLACE=5, FAULT=6, BLOCKS=7, SETTLE=8)

# Functions that give a new reference, or null, by their parameters.
_MAKERS = {
    "PyArray_NewCopy": "ptr, i32",
    "PyArray_NewFromDescr": "ptr, ptr, i32, ptr, ptr, ptr, i32, ptr",
    "PyArray_ToList": "ptr",
    "PyComplex_FromDoubles": "double, double",
    "PyFloat_FromDouble": "double",
    "PyList_GetSlice": "ptr, i64, i64",
    "PyList_New": "i64",
    "PyLong_FromLongLong": "i64",
    "PyLong_FromUnsignedLongLong": "i64",
    "PyObject_Call": "ptr, ptr, ptr",
    "PyObject_GetAttr": "ptr, ptr",
    "PyObject_Vectorcall": "ptr, ptr, i64, ptr",
    "PySequence_List": "ptr",
    "PyTuple_New": "i64",
    "_PyObject_New": "ptr",
}
_OWN = ("reference", "take", "give", "Py_DecRef", "begin", "place", "is_owned", "count_blocks", "settle")


def functions(known: Mapping[str, int]) -> dict[str, int]:
    """The addresses of these functions; `known` are those that they stand for, under the same names."""
    makers = [f"gate.{name}" for name in _MAKERS]
    taken = {f"real.{name[5:]}": known[name] for name in (*makers, "gate.Py_DecRef")}
    for name in ("PyErr_Fetch", "PyErr_Restore", "PyErr_SetObject"):
        taken[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    taken["ledger"] = ctypes.cast(_callback, ctypes.c_void_p).value or 0
    taken["pk_block_fault"] = runtime(checked=True).symbols["pk_block_fault"]
    exports = [*makers, *(f"gate.{name}" for name in _OWN), "pk_object_fault"]
    return dict(support_code("checked references", _text(), taken, exports).addresses)


def _text() -> str:
    parts = [_FUNCTIONS, readable_ir()]
    for name, parameters in _MAKERS.items():
        kinds = parameters.split(", ")
        named = ", ".join(f"{kind} %p{number}" for number, kind in enumerate(kinds))
        parts.append(
            f"declare ptr @real.{name}({parameters})\n"
            f"define ptr @gate.{name}({named}) {{\n"
            f"  %made = call ptr @real.{name}({named})\n"
            f"  call void @gate.take(ptr %made)\n"
            f"  ret ptr %made\n}}\n"
        )
    text = "".join(parts)
    constants: dict[str, object] = {
        "INCREMENT": increment_ir("x", "%object").strip(),
        "COUNT": "i32" if sys.version_info >= (3, 12) else "i64",
        "ALIVE": "ne" if sys.version_info >= (3, 12) else "sgt",
        "LENT": LENT,
        "TYPE_AT": Layout.TYPE,
        "TP_FLAGS": TP_FLAGS,
        **{f"EVENT_{name}": value for name, value in _EVENTS.items()},
        **{f"FAULT_{name}": value for name, value in vars(faults).items() if name.isupper()},
    }
    for name, value in constants.items():
        text = text.replace(f"${name}$", str(value))
    return text


_FUNCTIONS = """
declare i64 @ledger(i64, ptr, i64, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @PyErr_SetObject(ptr, ptr)
declare void @real.Py_DecRef(ptr)
declare i64 @pk_block_fault(ptr)

define internal i64 @enter(i64 %event, ptr %object, i64 %number, ptr %other) {
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  %r = call i64 @ledger(i64 %event, ptr %object, i64 %number, ptr %other)
  %t = load ptr, ptr %type
  %v = load ptr, ptr %value
  %tb = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %t, ptr %v, ptr %tb)
  ret i64 %r
}

define internal i1 @is_place(ptr %address) {
  %number = ptrtoint ptr %address to i64
  %low = and i64 %number, 7
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %ask, label %no
ask:
  %there = call i1 @readable(ptr %address)
  ret i1 %there
no:
  ret i1 false
}

define i64 @pk_object_fault(ptr %object) {
entry:
  %null = icmp eq ptr %object, null
  br i1 %null, label %out, label %align
align:
  %number = ptrtoint ptr %object to i64
  %low = and i64 %number, 7
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %ask, label %out
ask:
  %there = call i1 @readable(ptr %object)
  br i1 %there, label %look, label %out
look:
  %count = load $COUNT$, ptr %object
  %alive = icmp $ALIVE$ $COUNT$ %count, 0
  br i1 %alive, label %type, label %out
type:
  %type_p = getelementptr i8, ptr %object, i64 $TYPE_AT$
  %its_type = load ptr, ptr %type_p
  %some = icmp ne ptr %its_type, null
  %place = call i1 @is_place(ptr %its_type)
  %both = and i1 %some, %place
  br i1 %both, label %meta, label %out
meta:
  %meta_p = getelementptr i8, ptr %its_type, i64 $TYPE_AT$
  %metatype = load ptr, ptr %meta_p
  %meta_some = icmp ne ptr %metatype, null
  %meta_place = call i1 @is_place(ptr %metatype)
  %meta_both = and i1 %meta_some, %meta_place
  br i1 %meta_both, label %last, label %out
last:
  %flags_p = getelementptr i8, ptr %metatype, i64 $TP_FLAGS$
  %flags = load i64, ptr %flags_p
  %of_type = and i64 %flags, 2147483648
  %is_type = icmp ne i64 %of_type, 0
  %r = select i1 %is_type, i64 0, i64 $FAULT_TYPE$
  ret i64 %r
out:
  %fault = phi i64 [$FAULT_NULL$, %entry], [$FAULT_MISALIGNED$, %align], [$FAULT_UNREADABLE$, %ask],
                   [$FAULT_COUNT$, %look], [$FAULT_TYPE$, %type], [$FAULT_TYPE$, %meta]
  ret i64 %fault
}

define i1 @gate.reference(ptr %object) {
  %fault = call i64 @pk_object_fault(ptr %object)
  %r = call i64 @enter(i64 $EVENT_REFERENCE$, ptr %object, i64 %fault, ptr null)
  %good = icmp eq i64 %fault, 0
  br i1 %good, label %count, label %out
count:
  $INCREMENT$
  br label %out
out:
  ret i1 %good
}

define void @gate.take(ptr %object) {
  %null = icmp eq ptr %object, null
  br i1 %null, label %out, label %some
some:
  %r = call i64 @enter(i64 $EVENT_TAKE$, ptr %object, i64 0, ptr null)
  br label %out
out:
  ret void
}

define void @gate.give(ptr %object) {
  %r = call i64 @enter(i64 $EVENT_GIVE$, ptr %object, i64 0, ptr null)
  ret void
}

define void @gate.Py_DecRef(ptr %object) {
  %null = icmp eq ptr %object, null
  br i1 %null, label %out, label %some
some:
  %fault = call i64 @pk_object_fault(ptr %object)
  %r = call i64 @enter(i64 $EVENT_DROP$, ptr %object, i64 %fault, ptr null)
  %good = icmp ne i64 %r, 0
  br i1 %good, label %drop, label %out
drop:
  call void @real.Py_DecRef(ptr %object)
  br label %out
out:
  ret void
}

define void @gate.begin() {
  %r = call i64 @enter(i64 $EVENT_BEGIN$, ptr null, i64 0, ptr null)
  ret void
}

define void @gate.place(i64 %leaf) {
  %r = call i64 @enter(i64 $EVENT_PLACE$, ptr null, i64 %leaf, ptr null)
  ret void
}

define i1 @gate.is_owned(ptr %slots) {
entry:
  %object = load ptr, ptr %slots
  %no_object = icmp eq ptr %object, null
  br i1 %no_object, label %look_base, label %of_object
look_base:
  %base_p = getelementptr i64, ptr %slots, i64 1
  %base = load ptr, ptr %base_p
  %no_base = icmp eq ptr %base, null
  br i1 %no_base, label %look_block, label %of_object
of_object:
  %holder = phi ptr [%object, %entry], [%base, %look_base]
  %object_fault = call i64 @pk_object_fault(ptr %holder)
  br label %tell
look_block:
  %block_p = getelementptr i64, ptr %slots, i64 2
  %block = load ptr, ptr %block_p
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %tell, label %of_block
of_block:
  %block_fault = call i64 @pk_block_fault(ptr %block)
  %is_block = icmp eq i64 %block_fault, 0
  br i1 %is_block, label %ask_lent, label %tell
ask_lent:
  %count = load i64, ptr %block
  %is_lent = icmp sgt i64 %count, $LENT$
  br i1 %is_lent, label %lent, label %tell
lent:
  %lent_to_p = getelementptr i8, ptr %block, i64 16
  %lent_to = load ptr, ptr %lent_to_p
  %lent_fault = call i64 @pk_object_fault(ptr %lent_to)
  br label %tell
tell:
  %fault = phi i64 [%object_fault, %of_object], [$FAULT_NO_OWNER$, %look_block], [%block_fault, %of_block],
                   [0, %ask_lent], [%lent_fault, %lent]
  %good = icmp eq i64 %fault, 0
  br i1 %good, label %out, label %record
record:
  %r = call i64 @enter(i64 $EVENT_FAULT$, ptr null, i64 %fault, ptr null)
  br label %out
out:
  ret i1 %good
}

define void @gate.count_blocks(ptr %ctx, ptr %results, ptr %helper) {
  %number = ptrtoint ptr %results to i64
  %r = call i64 @enter(i64 $EVENT_BLOCKS$, ptr %ctx, i64 %number, ptr %helper)
  ret void
}

define ptr @gate.settle(ptr %value, ptr %helper) {
  %error_number = call i64 @enter(i64 $EVENT_SETTLE$, ptr %value, i64 0, ptr %helper)
  %fine = icmp eq i64 %error_number, 0
  br i1 %fine, label %give, label %raise
give:
  ret ptr %value
raise:
  %error = inttoptr i64 %error_number to ptr
  %type_p = getelementptr i8, ptr %error, i64 $TYPE_AT$
  %type = load ptr, ptr %type_p
  call void @PyErr_SetObject(ptr %type, ptr %error)
  call void @real.Py_DecRef(ptr %error)
  ret ptr null
}
"""


# ---- the ledger ------------------------------------------------------------------------------------------------------


class Ledger:
    """One call of a checked gate: references taken, less those dropped or given away, and the first thing wrong."""

    __slots__ = ("fault", "leaf", "references", "what")

    def __init__(self) -> None:
        self.references: Counter[int] = Counter()
        self.fault = 0
        self.what = ""
        self.leaf = -1

    def find(self, fault: int, what: str = "") -> None:
        if not self.fault:
            self.fault = fault
            self.what = what or self.place()

    def place(self) -> str:
        return f"result {self.leaf}" if self.leaf >= 0 else "arguments"

    def lose(self, address: int) -> bool:
        """A reference is dropped or given away; whether there is one."""
        if self.references[address] < 1:
            self.find(faults.TOO_FEW)
            return False
        self.references[address] -= 1
        return True

    def close(self, result: int) -> None:
        """The call is over: whether all references are where they belong."""
        if result:
            self.lose(result)
        if any(count > 0 for count in self.references.values()):
            kept = next(address for address, count in self.references.items() if count > 0)
            self.find(faults.TOO_MANY, f"a {type(ctypes.cast(kept, ctypes.py_object).value).__name__} of the call")
        fault = _payload_fault()
        if fault:
            self.find(fault, "memory that is not in use")

    def error(self, helper: Any) -> MemorySafetyError:
        """What is wrong, and where the results are made; `helper` is the `raise_failure` of a specialization."""
        failures = getattr(getattr(helper, "__self__", None), "native", None)
        place = f": {failures.failures[-1].place}" if failures is not None and failures.failures else ""
        return MemorySafetyError(f"{self.what}: {faults.FAULTS[self.fault]}{place}")


_threads = threading.local()


def _ledgers() -> list[Ledger]:
    """The calls of checked gates that this thread is in."""
    found: list[Ledger] | None = getattr(_threads, "ledgers", None)
    if found is None:
        found = _threads.ledgers = []
    return found


def _enter(event: int, address: int | None, number: int, other: int | None) -> int:
    ledgers, object_ = _ledgers(), address or 0
    if event == BEGIN:
        ledgers.append(Ledger())
        return 1
    if not ledgers:  # of no call's: what an argument is asked before it begins
        return int(event != SETTLE and not number)
    ledger = ledgers[-1]
    match event:
        case _ if (event == REFERENCE and number) or event == FAULT or (event == DROP and number):
            ledger.find(number)
            return 0
        case _ if event in (REFERENCE, TAKE):
            ledger.references[object_] += 1
        case _ if event in (GIVE, DROP):
            return int(ledger.lose(object_))
        case _ if event == PLACE:
            ledger.leaf = number
        case _ if event == BLOCKS:
            _count_blocks(ledger, object_, number, _object(other))
        case _ if event == SETTLE:
            ledgers.pop()
            ledger.close(object_)
            if ledger.fault:
                error = ledger.error(_object(other))
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(error))
                return id(error)
            return 0
    return 1


def _object(address: int | None) -> Any:
    return None if not address else ctypes.cast(address, ctypes.py_object).value


def _count_blocks(ledger: Ledger, ctx: int, results: int, helper: Any) -> None:
    """Compare the references to each block of the call with those that results hold."""
    native = getattr(getattr(helper, "__self__", None), "native", None)
    if native is None:
        return
    held: Counter[int] = Counter()
    offsets = result_offsets(native.result)
    for leaf in result_leaves(native.result):
        if leaf.kind == "array":
            held[_word(results + 8 * offsets[leaf.index] + 16)] += 1
    block = _word(ctx + Context.BLOCKS)
    while block:
        count = _word(block)
        if count < LENT and count != held[block]:
            ledger.find(faults.BLOCK_COUNT, f"a block of {_word(block + 8)} bytes ({count}, not {held[block]})")
        block = _word(block + 24)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _payload_fault() -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(runtime(checked=True).symbols["pk_payload_fault"])())


_callback = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(_enter)
