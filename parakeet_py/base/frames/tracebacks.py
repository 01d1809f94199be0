"""Tracebacks as Python would show them: the user's functions in them, and none of the package's own.

Compiled code has no Python frames. When a call of it ends in an exception, entries are made for the functions that it
was compiled from: each has a frame that never ran, of a code object with the file, name and positions of the user's
function, as Cython makes them. That happens only then: calls that return cost nothing.

A call also passes through functions of the package (what compiles, what runs a call in Python). `shown` takes their
entries off an exception's traceback. The function that does so raises the exception anew by a `raise` of its own, for
which CPython adds no entry.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from parakeet_py.base import package
from parakeet_py.base.fast_dataclass import record

_FOLDER = os.path.join(package.FOLDER, "")
_BETWEEN = ("contextlib", "functools")  # what package functions are called through
_IMPORTS = ("importlib._bootstrap", "importlib._bootstrap_external")
_INNER = 4  # entries of the package's own above which an exception is a failure of the package itself


@record
class TraceEntry:
    """A line of a traceback: a function, named by its file, name and first line, and the place in it.

    Lines count from 1, columns (UTF-8 bytes) from 0; an `end_line` of 0 leaves columns out.
    """

    filename: str
    name: str
    first_line: int
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    def __iter__(self) -> Iterator[str | int]:
        return (getattr(self, name) for name in type(self).__match_args__)


def placed(entries: Sequence[TraceEntry], inner: types.TracebackType | None = None) -> types.TracebackType | None:
    """A traceback of `entries`, outermost first, and behind them `inner`."""
    for entry in reversed(entries):
        inner = types.TracebackType(inner, stand_in(entry), 0 if entry.end_line else -1, entry.line)
    return inner


def in_frames(
    function: Callable[..., Any], entries: Sequence[TraceEntry], user: types.FunctionType
) -> Callable[..., Any]:
    """`function`, which reads no globals, in frames that show `entries` of the user's code, outermost first."""
    for number, entry in enumerate(reversed(entries or own_entry(user))):
        python = function if number == 0 else _calling(function)
        assert isinstance(python, types.FunctionType)
        namespace = user.__globals__ if entry.filename == user.__code__.co_filename else _namespace_of(entry.filename)
        units = len(python.__code__.co_code) // 2
        function = types.FunctionType(
            _placed(python.__code__, entry, units), namespace, entry.name, None, python.__closure__
        )
    return function


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return function(*args)

    return call


def own_entry(function: types.FunctionType) -> tuple[TraceEntry, ...]:
    """A function in which the place is not known."""
    code = function.__code__
    return (TraceEntry(code.co_filename, code.co_name, code.co_firstlineno, code.co_firstlineno),)


def entry_at(traceback: types.TracebackType) -> TraceEntry:
    """The first line of a traceback."""
    code = traceback.tb_frame.f_code
    ends = next(itertools.islice(code.co_positions(), traceback.tb_lasti // 2, None), (None,) * 4)
    line, end_line, column, end_column = ends
    where = (column or 0, end_line or 0, end_column or 0) if None not in ends else ()
    return TraceEntry(code.co_filename, code.co_name, code.co_firstlineno, line or traceback.tb_lineno, *where)


@lru_cache(maxsize=256)
def stand_in(entry: TraceEntry) -> types.FrameType:
    """A frame that says it is at a place of the user's function; it never ran, and has no variables.

    All exceptions from there share it: tracebacks are new ones, but what they show is the same.
    """
    new, thread = _frame_functions()
    module = _module_of(entry.filename)
    frame: types.FrameType = new(thread(), _code(entry), {"__name__": module, "__file__": entry.filename}, {})
    return frame


@lru_cache(maxsize=1)
def _frame_functions() -> tuple[Callable[..., Any], Callable[[], int]]:
    """CPython's `PyFrame_New` and `PyThreadState_Get`."""
    api = ctypes.pythonapi
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, *[ctypes.py_object] * 3)(("PyFrame_New", api))
    return new, ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", api))


def _code(entry: TraceEntry) -> types.CodeType:
    """Code that does nothing, at the place of an entry."""
    code = compile("", entry.filename, "exec")
    return _placed(code, entry, len(code.co_code) // 2)


def _placed(code: types.CodeType, entry: TraceEntry, units: int) -> types.CodeType:
    return code.replace(
        co_filename=entry.filename,
        co_name=entry.name,
        co_qualname=entry.name,
        co_firstlineno=entry.first_line,
        co_linetable=bytes(_linetable(entry, units)),
    )


def _linetable(entry: TraceEntry, units: int) -> Iterator[int]:
    """The table of positions (CPython, Objects/locations.md) that has all instructions of a code at one place."""
    delta = entry.line - entry.first_line
    while units > 0:
        length = min(units, 8)
        if entry.end_line:
            yield 0x80 | 14 << 3 | length - 1
            yield from _signed(delta)
            yield from _unsigned(entry.end_line - entry.line)
            yield from _unsigned(entry.column + 1)
            yield from _unsigned(entry.end_column + 1)
        else:
            yield 0x80 | 13 << 3 | length - 1
            yield from _signed(delta)
        delta, units = 0, units - length


def _unsigned(value: int) -> Iterator[int]:
    while value >= 64:
        yield 64 | value & 63
        value >>= 6
    yield value


def _signed(value: int) -> Iterator[int]:
    return _unsigned(-value << 1 | 1 if value < 0 else value << 1)


def _module_of(filename: str) -> str:
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == filename:
            return name
    return "__main__"


def _namespace_of(filename: str) -> dict[str, Any]:
    module = sys.modules.get(_module_of(filename))
    return {} if module is None else vars(module)


# ---- the package's own functions -------------------------------------------------------------------------------------


def is_own(frame: types.FrameType) -> bool:
    """Is this a frame of one of the package's own functions?"""
    name = frame.f_globals.get("__name__")
    named = isinstance(name, str) and (name == package.NAME or name.startswith(package.NAME + "."))
    return named or frame.f_code.co_filename.startswith(_FOLDER)


def shown(error: BaseException) -> types.TracebackType | None:
    """The traceback of an exception that leaves the package, without the package's own functions at its beginning.

    Where there is nothing else in it, it stays as it is if the package itself has failed. Exceptions that the package
    has caught on the way (their tracebacks begin in it) are no longer its context.
    """
    inner = error
    while (context := inner.__context__) is not None:
        if context.__traceback__ is not None and is_own(context.__traceback__.tb_frame):
            inner.__context__ = context.__context__
        else:
            inner = context
    rest, count = error.__traceback__, 0
    while rest is not None and is_own(rest.tb_frame):
        rest, count = rest.tb_next, count + 1
    if rest is None and count > _INNER and not type(error).__module__.startswith(package.NAME):
        return error.__traceback__
    return rest


def user_level() -> int:
    """The `stacklevel`, for a warning given by the caller, of the innermost function that is not the package's own."""
    frame: types.FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None:
        imports = frame.f_globals.get("__name__") in _IMPORTS  # whose frames `warn` does not count
        if not (imports or is_own(frame) or frame.f_globals.get("__name__") in _BETWEEN):
            break
        frame, level = frame.f_back, level + (not imports)
    return level
