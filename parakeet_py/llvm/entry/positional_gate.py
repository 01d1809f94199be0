"""A gate for calls with keywords, or without some arguments that have defaults: it puts them into positional form.

    gate = PositionalGate(function, target, given=1, names=("axis",))
    gate.address                 # a vectorcall function, as that of any gate
    gate.follow(other)           # where calls go that are not its own

The entry stubs of machine code take calls in positional form only. A call in another form would reach the dispatcher,
which brings it into that form in Python and lets it enter again: some two microseconds. This gate does the same for one
form of calls, so many arguments by position and these keyword names in this order, and enters `target`, the decorated
function itself or what takes calls in positional form for it. It lets calls pass when the function has got other
defaults.
"""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import Any, Final

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.gate_record import GateRecord
from parakeet_py.llvm.runtime.object_layout import Layout

MAX_PARAMETERS: Final = 16
_DEFAULT, _KEYWORD_DEFAULT = -1, -2  # the source of a parameter that gets its default
_Words = ctypes.c_int64 * MAX_PARAMETERS


class PositionalGate(GateRecord):
    """See the head of this file. The fields are read by native code.

    Parameters
    ----------
    function : without `*args` and `**kwargs`, with at most `MAX_PARAMETERS` parameters
    target : what is called in positional form
    given : how many arguments are given by position
    names : of those given by keyword, in order; with the defaults they make a call that Python accepts
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
        ("parameters", _Words),
        ("names", _Words),
        ("sources", _Words),
        ("fixed", _Words),
    )
    entry = "positional"
    called = ("PyDict_GetItem",)

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
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._kept: list[object] = [function, target, names, defaults, named, last, parameters]
        self.function, self.target = id(function), id(target)
        self.defaults = 0 if defaults is None else id(defaults)
        self.keyword_defaults = 0 if named is None else id(named)
        self.given, self.named, self.count = given, len(names), len(parameters)
        self.form, self.last = form, ctypes.addressof(last)
        first = code.co_argcount - len(defaults or ())  # parameter with a default
        for place, name in enumerate(names):
            self.names[place] = id(name)
        for place, name in enumerate(parameters):
            self.parameters[place] = id(name)
            if place < given:
                self.sources[place] = place
                continue
            if name in names:
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

def positional(holder: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    record = holder.HEADER.ptr
    values = alloca(ptr, VALUES)
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
    k = 0
    while k < record.COUNT.i64:
        source = record.SOURCES.i64[k]
        if source < 0:
            value = record.FIXED.ptr[k]
            if source == KEYWORD_DEFAULT and PyDict_GetItem(named, record.PARAMETERS.ptr[k]) != value:
                return go_on(record, arguments, nargsf, names)
            values.ptr[k] = value
        else:
            values.ptr[k] = arguments.ptr[source]
        k += 1
    record.LAST.ptr.i64 = record.FORM.i64
    return PyObject_Vectorcall(record.TARGET.ptr, values, record.COUNT.i64, null)
"""

_CONSTANTS: Final[dict[str, int]] = {
    "FUNCTION_DEFAULTS": Layout.FUNCTION_DEFAULTS,
    "FUNCTION_KEYWORD_DEFAULTS": Layout.FUNCTION_KEYWORD_DEFAULTS,
    "KEYWORD_DEFAULT": _KEYWORD_DEFAULT,
    "VALUES": MAX_PARAMETERS,
}
