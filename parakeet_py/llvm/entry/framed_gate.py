"""Calls of compiled code that a profiler sees: the gate that makes a frame for them, and the way from there.

    framed, gate = frame_for(function, instance)

While a profiler or another tool asks for calls (see `tracing`), gates of machine code let all calls pass. Those of a
function that has a `FramedGate`, its last, are made in `framed`: a Python function of the same name, file and line, of
which the tool gets the events, and which calls `instance` once more through an `UnseenGate`. That tells gates that this
call has its frame. Nothing in between is Python code, so a tool sees the call and nothing else, at what a call of a
Python function costs under it.

Tools that ask for lines are none of this gate's: where it finds one, the call goes on to the dispatcher.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

from parakeet_py.base.frames import tracing
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.entry.gate_record import GateRecord

_MONITORED: Final = sys.version_info >= (3, 12)


class UnseenGate(GateRecord):
    """Takes all calls, and lets `target` take them without a frame of their own. The fields are read by native code."""

    _fields_ = (("target", ctypes.c_int64),)
    entry = "unseen"
    called = ()

    def __init__(self, target: Callable[..., Any]) -> None:
        super().__init__()
        self._kept: list[object] = [target]
        self.target = id(target)

    @classmethod
    def code_texts(cls) -> tuple[Source, ...]:
        return (cls.source_of(_UNSEEN, {"FRAMED": tracing.FRAMED}),)


class FramedGate(GateRecord):
    """Takes calls that a tool asks for, unless it asks for lines, and makes them in a frame. The fields are read by
    native code."""

    _fields_ = (("frame", ctypes.c_int64), ("code", ctypes.c_int64))
    entry = "framed"
    called = ("PyLong_AsLong", "Py_DecRef", "PyErr_Clear")

    def __init__(self, framed: Callable[..., Any], function: FunctionType) -> None:
        super().__init__()
        self._kept: list[object] = [framed, function]
        self.frame, self.code = id(framed), id(function.__code__)

    @classmethod
    def code_texts(cls) -> tuple[Source, ...]:
        constants = {
            "MONITORED": _MONITORED,
            "LINES": tracing.LINES,
            "TOOLS": tracing.OTHER_TOOLS.stop,
            "OTHER": tracing.OTHER_TOOLS.start,
        }
        return (cls.source_of(_FRAMED, constants),)

    @classmethod
    def symbols(cls) -> Mapping[str, int]:
        return {"events": id(tracing.events_of), "local_events": id(tracing.local_events_of), "numbers": id(_NUMBERS)}


_NUMBERS: Final = tuple(tracing.OTHER_TOOLS)
_UNSEEN = """
def PyThreadState_Get() -> ptr: ...
tools: extern

def unseen(holder: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    record = holder.HEADER.ptr
    tools.i64[FRAMED] = i64(PyThreadState_Get())
    result = PyObject_Vectorcall(record.TARGET.ptr, arguments, nargsf, names)
    tools.i64[FRAMED] = 0
    return result
"""
_FRAMED = """
def PyThreadState_Get() -> ptr: ...
def PyLong_AsLong(number: ptr) -> i64: ...
def Py_DecRef(object: ptr): ...
def PyErr_Clear(): ...
tools: extern
events: extern
local_events: extern
numbers: extern

# The events that a function of `sys.monitoring` gives; all of them if it raises.
@internal.noinline
def asked(function: ptr, tool: i64, code: ptr) -> i64:
    given = alloca(ptr, 2)
    given.ptr = numbers.TUPLE_ITEMS.ptr[tool - OTHER]
    given.ptr[1] = code
    found = PyObject_Vectorcall(function, given, 1 if code == null else 2, null)
    if found == null:
        PyErr_Clear()
        return LINES
    number = PyLong_AsLong(found)
    Py_DecRef(found)
    return number

# Is there a tool that asks for lines?
@internal
def lines_asked(record: ptr) -> i64:
    place = ptr((i64(PyThreadState_Get()) & tools.i64) + tools.i64[1])
    found = place.i64[1]
    if MONITORED:
        names = tools.ptr[2]
        k = 0
        while k < TOOLS and found == 0:
            if names.i64[k] != 0:
                if k < OTHER:
                    found = 1
                else:
                    found = (asked(events, k, null) | asked(local_events, k, record.CODE.ptr)) & LINES
            k += 1
    return found

def framed(holder: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    record = holder.HEADER.ptr
    if (watched() == 0) | (atomic_load(open_blocks.i64, "monotonic") != 0):
        return go_on(record, arguments, nargsf, names)
    if lines_asked(record) != 0:
        return go_on(record, arguments, nargsf, names)
    return PyObject_Vectorcall(record.FRAME.ptr, arguments, nargsf, names)
"""


def frame_for(function: FunctionType, instance: AcceleratedFunction) -> tuple[Callable[..., Any], FramedGate]:
    """What calls the accelerated `instance` of a function in a frame, and the gate for calls that are made so."""
    unseen = AcceleratedFunction(function, instance)
    install(unseen, [UnseenGate(instance)])
    framed = tracing.framed(function, unseen, marks=True)
    return framed, FramedGate(framed, function)
