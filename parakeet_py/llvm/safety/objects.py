"""References in checked gates: every object that is counted is one, and counts balance over a call.

Each call of a checked gate has a *ledger*: for every object, the references that the gate has taken less those it has
dropped or given away (to a container, a view, an array that is made). In the end the result's one is left, and no
other. A reference that has not been taken before is neither dropped nor given away; so a count that is wrong does no
harm, and the call ends in a `MemorySafetyError`. Blocks are looked at as well: before results are boxed, as many
references are counted as results hold; so are the objects that compiled code holds which calls Python (`hold`).

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
from collections.abc import Iterable, Mapping
from typing import Any

from parakeet_py.base.errors import MemorySafetyError
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.callable_type import TP_FLAGS
from parakeet_py.llvm.entry.stub_support import COUNTS_32, INCREMENT
from parakeet_py.llvm.runtime.array_memory import FIELDS, LENT
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.llvm.runtime.native_runtime import runtime, support_code
from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.llvm.safety import faults
from parakeet_py.llvm.safety.payloads import readable
from parakeet_py.signature.results import result_leaves, result_offsets

Kept = dict[int, list[Any]]  # objects by their addresses, each with how often it is held

BEGIN, REFERENCE, TAKE, GIVE, DROP, PLACE, FAULT, BLOCKS, SETTLE = range(9)
_EVENTS = dict(BEGIN=0, REFERENCE=1, TAKE=2, GIVE=3, DROP=4, PLACE=5, FAULT=6, BLOCKS=7, SETTLE=8)

# Functions that give a new reference, or null, by their parameters.
_MAKERS = {
    "PyArray_NewCopy": "ptr, i32",
    "PyArray_NewFromDescr": "ptr, ptr, i32, ptr, ptr, ptr, i32, ptr",
    "PyArray_Scalar": "ptr, ptr, ptr",
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
LENT_TO = FIELDS["PREVIOUS"]  # where a block that has been lent says which object owns it
_OWN = ("reference", "take", "give", "Py_DecRef", "begin", "place", "is_owned", "count_blocks", "settle")


def functions(known: Mapping[str, int]) -> dict[str, int]:
    """The addresses of these functions; `known` are those that they stand for, under the same names."""
    makers = [f"gate.{name}" for name in _MAKERS]
    taken = {f"real.{name[5:]}": known[name] for name in (*makers, "gate.Py_DecRef")}
    for name in ("PyErr_Fetch", "PyErr_Restore", "PyErr_SetObject"):
        taken[f"gate.{name}"] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    taken["gate.ledger"] = ctypes.cast(_callback, ctypes.c_void_p).value or 0
    taken["gate.pk_block_fault"] = runtime(checked=True).symbols["pk_block_fault"]
    exports = [*makers, *(f"gate.{name}" for name in _OWN), "pk_object_fault"]
    return dict(support_code("checked references", _sources(), taken, exports, prefix="gate.").addresses)


def _sources() -> tuple[Source, ...]:
    makers = []
    for name, parameters in _MAKERS.items():
        kinds = parameters.split(", ")
        named = ", ".join(f"p{number}: {kind}" for number, kind in enumerate(kinds))
        given = ", ".join(f"p{number}" for number in range(len(kinds)))
        makers.append(
            f'@symbol("real.{name}")\ndef real_{name}({named}) -> ptr: ...\n'
            f"def {name}({named}) -> ptr:\n    made = real_{name}({given})\n    take(made)\n    return made\n"
        )
    constants = {
        "COUNTS_32": COUNTS_32,
        "LENT": LENT,
        "LENT_TO": LENT_TO,
        "TYPE_AT": Layout.TYPE,
        "TP_FLAGS": TP_FLAGS,
        "IS_TYPE": 1 << 31,  # Py_TPFLAGS_TYPE_SUBCLASS
        **_EVENTS,
        **{f"FAULT_{name}": value for name, value in vars(faults).items() if name.isupper() and name != "FAULTS"},
    }
    return INCREMENT, Source(_FUNCTIONS, constants), readable(), Source("".join(makers))


_FUNCTIONS = """
def ledger(event: i64, object: ptr, number: i64, other: ptr) -> i64: ...
def PyErr_Fetch(type: ptr, value: ptr, trace: ptr): ...
def PyErr_Restore(type: ptr, value: ptr, trace: ptr): ...
def PyErr_SetObject(type: ptr, value: ptr): ...
def pk_block_fault(block: ptr) -> i64: ...
@symbol("real.Py_DecRef")
def real_Py_DecRef(object: ptr): ...

@internal
def enter(event: i64, object: ptr, number: i64, other: ptr) -> i64:
    type = alloca(ptr)
    value = alloca(ptr)
    trace = alloca(ptr)
    PyErr_Fetch(type, value, trace)
    answer = ledger(event, object, number, other)
    PyErr_Restore(type.ptr, value.ptr, trace.ptr)
    return answer

@internal
def is_place(address: ptr) -> i1:
    return address != null and i64(address) & 7 == 0 and readable(address)

@symbol("pk_object_fault")
def object_fault(object: ptr) -> i64:
    if object == null:
        return FAULT_NULL
    if i64(object) & 7 != 0:
        return FAULT_MISALIGNED
    if not readable(object):
        return FAULT_UNREADABLE
    if COUNTS_32:
        alive = object.i32 != 0
    else:
        alive = object.i64 > 0
    if not alive:
        return FAULT_COUNT
    type = object.TYPE_AT.ptr
    if not is_place(type) or not is_place(type.TYPE_AT.ptr):
        return FAULT_TYPE
    return FAULT_TYPE if type.TYPE_AT.ptr.TP_FLAGS.i64 & IS_TYPE == 0 else 0

def reference(object: ptr) -> i1:
    fault = object_fault(object)
    enter(REFERENCE, object, fault, null)
    if fault == 0:
        increment(object)
    return fault == 0

def take(object: ptr):
    if object != null:
        enter(TAKE, object, 0, null)

def give(object: ptr):
    enter(GIVE, object, 0, null)

def Py_DecRef(object: ptr):
    if object != null and enter(DROP, object, object_fault(object), null) != 0:
        real_Py_DecRef(object)

def begin():
    enter(BEGIN, null, 0, null)

def place(leaf: i64):
    enter(PLACE, null, leaf, null)

# What is wrong with the memory of an array result.
@internal
def owner_fault(slots: ptr) -> i64:
    if slots.ptr != null:
        return object_fault(slots.ptr)
    if slots.ptr[1] != null:
        return object_fault(slots.ptr[1])
    block = slots.ptr[2]
    if block == null:
        return FAULT_NO_OWNER
    fault = pk_block_fault(block)
    if fault == 0 and block.i64 > LENT:
        return object_fault(block.LENT_TO.ptr)
    return fault

def is_owned(slots: ptr) -> i1:
    fault = owner_fault(slots)
    if fault != 0:
        enter(FAULT, null, fault, null)
    return fault == 0

def count_blocks(ctx: ptr, results: ptr, helper: ptr):
    enter(BLOCKS, ctx, i64(results), helper)

def settle(value: ptr, helper: ptr) -> ptr:
    error = ptr(enter(SETTLE, value, 0, helper))
    if error == null:
        return value
    PyErr_SetObject(error.TYPE_AT.ptr, error)
    real_Py_DecRef(error)
    return null
"""


# ---- the ledger ------------------------------------------------------------------------------------------------------


def _alone() -> int:
    """What `getrefcount` says of an object that only a local variable holds: CPython 3.14 borrows its argument."""
    object_ = object()
    return sys.getrefcount(object_)


_ALONE = _alone()


class Ledger:
    """One call of a checked gate: references taken, less those dropped or given away, and the first thing wrong."""

    __slots__ = ("counts", "dropped", "fault", "held", "leaf", "references", "what")

    def __init__(self) -> None:
        self.references: Counter[int] = Counter()
        self.counts = False  # has compiled code counted objects?
        self.held: Counter[int] = Counter()  # by compiled code: of objects that others keep alive
        self.dropped: dict[int, Any] = {}  # what would be gone: objects of which it has dropped the last reference
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

    def hold(self, kept: Kept, address: int, delta: int) -> None:
        """Compiled code takes or drops a reference to an object, which is among those that the call keeps for it or is
        kept alive by the caller."""
        self.counts = True
        entry = kept.get(address)
        if address in self.dropped:
            self.find(faults.DROPPED, _described(self.dropped[address]))
        elif entry is not None:
            entry[1] += delta
            if entry[1] <= 0:
                del kept[address]
                object_ = entry.pop(0)
                if sys.getrefcount(object_) <= _ALONE:
                    self.dropped[address] = object_
        else:
            self.held[address] += delta
            if self.held[address] < 0:
                self.held[address] = 0
                self.find(faults.TOO_FEW, _described(_object(address)))

    def count_objects(self, kept: Kept, expected: Mapping[int, int]) -> None:
        """Compare the references to objects that compiled code holds in the end with those that results hold."""
        for address in {*kept, *self.held, *expected}:
            count = self.held[address] + (kept[address][1] if address in kept else 0)
            if count != expected.get(address, 0):
                fault = faults.TOO_FEW if count < expected.get(address, 0) else faults.TOO_MANY
                self.find(fault, _described(self.dropped.get(address, _object(address))))

    def close(self, result: int) -> None:
        """The call is over: whether all references are where they belong."""
        if result:
            self.lose(result)
        if any(count > 0 for count in self.references.values()):
            kept = next(address for address, count in self.references.items() if count > 0)
            self.find(faults.TOO_MANY, _described(_object(kept)))
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


def hold(kept: Kept, address: int, delta: int) -> None:
    """Count a reference of compiled code to an object in the ledger of its call."""
    _ledgers()[-1].hold(kept, address, delta)


def use(addresses: Iterable[int]) -> None:
    """Look at objects, or null, that compiled code hands to Python: has it dropped their last reference before?"""
    ledger = _ledgers()[-1]
    for address in addresses:
        if address in ledger.dropped:
            ledger.find(faults.DROPPED, _described(ledger.dropped[address]))


def _described(object_: object) -> str:
    return f"a {type(object_).__name__} of the call"


def _count_blocks(ledger: Ledger, ctx: int, results: int, helper: Any) -> None:
    """Compare the references to each block and object of the call with those that results hold."""
    native = getattr(getattr(helper, "__self__", None), "native", None)
    if native is None:
        return
    held: Counter[int] = Counter()
    objects: Counter[int] = Counter()
    lent: Counter[int] = Counter()
    offsets = result_offsets(native.result)
    for leaf in result_leaves(native.result):
        place = results + 8 * offsets[leaf.index]
        block, owner = (_word(place + 16), _word(place + 8)) if leaf.kind == "array" else (0, 0)
        if leaf.kind == "object":
            objects[_word(place)] += 1
        elif block:
            held[block] += 1
            if _word(block) > LENT:
                lent[block] += 1
        elif owner:
            objects[owner] += 1
    block = _word(ctx + Context.BLOCKS)
    while block:
        count = _word(block)
        if count < LENT and count != held[block]:
            ledger.find(faults.BLOCK_COUNT, f"a block of {_word(block + 8)} bytes ({count}, not {held[block]})")
        block = _word(block + 24)
    for block, count in lent.items():
        if _word(block) != 2 * LENT + count:
            ledger.find(faults.BLOCK_COUNT, f"a block of {_word(block + 8)} bytes that Python has been given")
        objects[_word(block + LENT_TO)] += 1
    kept = getattr(_object(_word(ctx + Context.STATE)), "kept", None)
    if kept is not None or ledger.counts:  # it calls Python; other code counts no objects
        ledger.count_objects(kept or {}, objects)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _payload_fault() -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(runtime(checked=True).symbols["pk_payload_fault"])())


_callback = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(_enter)
