"""A gate for calls with keywords, or without some arguments that have defaults: it puts them into positional form.

    gate = PositionalGate(function, target, given=1, names=("axis",))
    gate.address                 # a vectorcall function, as that of any gate
    gate.follow(other)           # where calls go that are not its own

The entry stubs of machine code take calls in positional form only. A call in another form would reach the dispatcher,
which brings it into that form in Python and lets it enter again: some two microseconds. This gate does the same for one
form of calls, so many arguments by position and these keyword names in this order, and enters `target`, the decorated
function itself or what takes calls in positional form for it. What `*args` and `**kwargs` collect it puts into tuples.
It lets calls pass when the function has got other defaults.
"""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import Any, Final

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.gate_record import GateRecord
from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.signature.positional import VARARGS, VARKEYWORDS, parameter_names

MAX_PARAMETERS: Final = 16
# the source of a parameter that gets its default, or what is left of arguments by position, or by keyword
_DEFAULT, _KEYWORD_DEFAULT, _REST, _COLLECTED = -1, -2, -3, -4
_Words = ctypes.c_int64 * MAX_PARAMETERS


class PositionalGate(GateRecord):
    """See the head of this file. The fields are read by native code.

    Parameters
    ----------
    function : with at most `MAX_PARAMETERS` parameters
    target : what is called in positional form
    given : how many arguments are given by position
    names : of those given by keyword, in order, at most `MAX_PARAMETERS`; with the defaults they make a call that
        Python accepts
    form, last : a number for this form, which is put into `last` with each call it takes
    """

    _fields_ = (
        ("function", ctypes.c_int64),
        ("defaults", ctypes.c_int64),
        ("keyword_defaults", ctypes.c_int64),
        ("target", ctypes.c_int64),
        ("given", ctypes.c_int64),
        ("named", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("form", ctypes.c_int64),
        ("last", ctypes.c_int64),
        ("first_of_rest", ctypes.c_int64),
        ("collects", ctypes.c_int64),
        ("parameters", _Words),
        ("names", _Words),
        ("sources", _Words),
        ("fixed", _Words),
        ("collected", _Words),
    )
    entry = "positional"
    called = ("PyDict_GetItem", "PyTuple_New", "Py_IncRef", "Py_DecRef")

    def __init__(
        self,
        function: FunctionType,
        target: Any,
        given: int,
        names: tuple[str, ...],
        form: int = 0,
        last: ctypes.c_int64 | None = None,
    ) -> None:
        super().__init__()
        code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
        last = ctypes.c_int64() if last is None else last
        parameters = parameter_names(code)
        rest = code.co_argcount if code.co_flags & VARARGS else -1
        collector = len(parameters) - 1 if code.co_flags & VARKEYWORDS else -1
        by_name = set(parameters[code.co_posonlyargcount :]) - {
            parameters[place] for place in (rest, collector) if place >= 0
        }
        self._kept: list[object] = [function, target, names, defaults, named, last, parameters]
        self.function, self.target = id(function), id(target)
        self.defaults = 0 if defaults is None else id(defaults)
        self.keyword_defaults = 0 if named is None else id(named)
        self.given, self.named, self.count = given, len(names), len(parameters)
        self.form, self.last = form, ctypes.addressof(last)
        first = code.co_argcount - len(defaults or ())  # parameter with a default
        self.first_of_rest = min(given, code.co_argcount)
        for place, name in enumerate(names):
            self.names[place] = id(name)
            if name not in by_name:
                self.collected[self.collects] = place
                self.collects += 1
        for place, name in enumerate(parameters):
            self.parameters[place] = id(name)
            if place in (rest, collector):
                self.sources[place] = _REST if place == rest else _COLLECTED
                continue
            if place < min(given, code.co_argcount):
                self.sources[place] = place
                continue
            if name in names and name in by_name:
                self.sources[place] = given + names.index(name)
                continue
            of_position = place < code.co_argcount
            value = (defaults or ())[place - first] if of_position else (named or {})[name]
            self._kept.append(value)
            self.sources[place] = _DEFAULT if of_position else _KEYWORD_DEFAULT
            self.fixed[place] = id(value)
        self.follow(function)

    @classmethod
    def code_texts(cls) -> tuple[Source, ...]:
        return (cls.source_of(_CODE, _CONSTANTS),)


_CODE = """
def PyDict_GetItem(mapping: ptr, key: ptr) -> ptr: ...
def PyTuple_New(count: i64) -> ptr: ...
def Py_IncRef(object: ptr): ...
def Py_DecRef(object: ptr): ...

@internal
def put(tuple: ptr, place: i64, value: ptr):
    Py_IncRef(value)
    tuple.TUPLE_ITEMS.ptr[place] = value

# What `*args` collects; null without memory.
@internal.noinline
def rest(record: ptr, arguments: ptr) -> ptr:
    first = record.FIRST_OF_REST.i64
    count = record.GIVEN.i64 - first
    tuple = PyTuple_New(count)
    k = 0
    while k < count and tuple != null:
        put(tuple, k, arguments.ptr[first + k])
        k += 1
    return tuple

# What `**kwargs` collects: names and values in turn.
@internal.noinline
def collected(record: ptr, arguments: ptr) -> ptr:
    count = record.COLLECTS.i64
    tuple = PyTuple_New(2 * count)
    k = 0
    while k < count and tuple != null:
        place = record.COLLECTED.i64[k]
        put(tuple, 2 * k, record.NAMES.ptr[place])
        put(tuple, 2 * k + 1, arguments.ptr[record.GIVEN.i64 + place])
        k += 1
    return tuple

@internal
def drop(made: ptr):
    if made.ptr != null:
        Py_DecRef(made.ptr)
    if made.ptr[1] != null:
        Py_DecRef(made.ptr[1])

def positional(holder: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    record = holder.HEADER.ptr
    values = alloca(ptr, VALUES)
    made = alloca(ptr, 2)
    keywords = 0
    if names != null:
        keywords = names.SIZE.i64
    given = nargsf & ARGUMENTS
    if (watched_or_open() != 0) | (given != record.GIVEN.i64) | (keywords != record.NAMED.i64):
        return go_on(record, arguments, nargsf, names)
    function = record.FUNCTION.ptr
    named = record.KEYWORD_DEFAULTS.ptr
    if function.FUNCTION_DEFAULTS.ptr != record.DEFAULTS.ptr or function.FUNCTION_KEYWORD_DEFAULTS.ptr != named:
        return go_on(record, arguments, nargsf, names)
    k = 0
    while k < keywords:
        if names.TUPLE_ITEMS.ptr[k] != record.NAMES.ptr[k]:
            return go_on(record, arguments, nargsf, names)
        k += 1
    made.ptr = null
    made.ptr[1] = null
    k = 0
    while k < record.COUNT.i64:
        source = record.SOURCES.i64[k]
        if source >= 0:
            values.ptr[k] = arguments.ptr[source]
        elif source >= KEYWORD_DEFAULT:
            value = record.FIXED.ptr[k]
            if source == KEYWORD_DEFAULT and PyDict_GetItem(named, record.PARAMETERS.ptr[k]) != value:
                drop(made)
                return go_on(record, arguments, nargsf, names)
            values.ptr[k] = value
        else:
            place = made
            if source == REST:
                made.ptr = rest(record, arguments)
            else:
                place = made + 8
                made.ptr[1] = collected(record, arguments)
            if place.ptr == null:
                drop(made)
                return null
            values.ptr[k] = place.ptr
        k += 1
    record.LAST.ptr.i64 = record.FORM.i64
    result = PyObject_Vectorcall(record.TARGET.ptr, values, record.COUNT.i64, null)
    drop(made)
    return result
"""

_CONSTANTS: Final[dict[str, int]] = {
    "FUNCTION_DEFAULTS": Layout.FUNCTION_DEFAULTS,
    "FUNCTION_KEYWORD_DEFAULTS": Layout.FUNCTION_KEYWORD_DEFAULTS,
    "KEYWORD_DEFAULT": _KEYWORD_DEFAULT,
    "REST": _REST,
    "VALUES": MAX_PARAMETERS,
}
