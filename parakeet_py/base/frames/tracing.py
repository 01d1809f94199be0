"""Calls under debuggers, coverage tools and profilers.

Machine code has no lines. In a thread that is traced (`sys.settrace`), and while a debugger, a coverage tool or another
one that asks for lines is known to `sys.monitoring`, accelerated functions run as plain Python. Under a profiler
(`sys.setprofile`, other tools of `sys.monitoring`) they run as ever, inside a frame with the name and place of the
function, so that the profiler sees each call and return.

Gates look at what CPython itself keeps: two words in the state of the thread that calls, its profiler and its tracer,
and the names of the tools of `sys.monitoring` in the state of the interpreter. The layouts of both structures are
CPython's own, so the places are found by the values that stand there. Where they are not found (other implementations;
tools of `sys.monitoring` where the system has no /proc/self/mem), compiled code does not notice such tools.
From 3.12 on the interpreter counts the threads that have a profiler and those that have a tracer, shortly before these
names: while both counts are 0, gates need not ask which thread they are in.

The call that such a frame makes must not get another one: `llvm.entry.framed_gate` writes the thread that makes it into
a word beside these places, which gates take for "not watched", and what takes the call clears it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import types
from array import array
from collections.abc import Callable
from typing import Any, Final

from parakeet_py.base.frames.hidden_frames import hidden

TOOLS: Final = 8  # words that hold the names of tools, in the interpreter's state
_WORDS: Final = 64  # of a thread's state, in which its tools are looked for
_BYTES: Final = 1 << 20  # of the interpreter's state

_nothing = array("Q", [0] * TOOLS)
_some = array("Q", [1, 1])
# A mask for the address of a thread's state, and what to add to it; where the names of tools are; the state of a thread
# whose next call is made in the frame that its profiler sees; where the counts of threads are.
_places = array("Q", [0, _nothing.buffer_info()[0], _nothing.buffer_info()[0], 0, _some.buffer_info()[0]])
_thread_state = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", ctypes.pythonapi))
FRAMED: Final = 3  # the place of that word
COUNTS: Final = 4
_BEFORE: Final = 512  # words before the names of tools, in which the counts are looked for
_lock = threading.Lock()


def places_address() -> int:
    """Address of the words by which gates find what watches a call.

    The words that are not 0 while a thread is traced or profiled are two, at the address of its state, masked by the
    first word, plus the second; those that are not 0 while `sys.monitoring` knows a tool are `TOOLS`, at the third. The
    word at `FRAMED` is the state of a thread whose next call is none that a profiler has to see, or 0. While the two at
    the address in the word at `COUNTS` are 0, no thread is traced or profiled.
    """
    look()
    return _places.buffer_info()[0]


def look() -> None:
    """Find the places, as far as they are not known."""
    nothing = _nothing.buffer_info()[0]
    with _lock:
        if _places[0] == 0 and (offset := _place_in_thread()) is not None:
            _places[1], _places[0] = offset, 2**64 - 1
        if _places[2] == nothing and (address := _place_of_tools()) is not None:
            _places[2] = address
            if (address := _place_of_counts(address)) is not None:
                _places[COUNTS] = address


def _place_of_counts(names: int) -> int | None:
    """Address of the numbers of threads that have a profiler and, behind it, a tracer, before the names of tools.

    Each is one more while this thread has what it counts, and nothing else there is.
    """
    if sys.getprofile() is not None or sys.gettrace() is not None:
        return None
    count = min(_BEFORE, (names - _interpreter()) // 8)
    start, size = names - 8 * count, 8 * count
    try:
        before = ctypes.string_at(start, size)
        sys.setprofile(_quiet)
        profiled = ctypes.string_at(start, size)
        sys.setprofile(None)
        sys.settrace(_quiet)
        traced = ctypes.string_at(start, size)
    finally:
        sys.setprofile(None)
        sys.settrace(None)
    after = ctypes.string_at(start, size)
    words = [struct.unpack(f"{count}Q", data) for data in (before, profiled, traced, after)]
    both = [tuple(there[place] - words[0][place] for there in words[1:]) for place in range(count)]
    found = [place for place in range(count - 1) if both[place : place + 2] == [(1, 0, 0), (0, 1, 0)]]
    return start + 8 * found[0] if len(found) == 1 else None


def _place_in_thread() -> int | None:
    """Where a thread's state has the profiler's object and behind it the tracer's."""
    state = _thread_state()
    words = (ctypes.c_uint64 * _WORDS).from_address(state)

    profiler, tracer = sys.getprofile(), sys.gettrace()
    try:
        if profiler is None:
            sys.setprofile(_quiet)
        given = id(sys.getprofile())
        found = [place for place in range(8, _WORDS - 1) if words[place] == given]
    finally:
        if profiler is None:
            sys.setprofile(None)
    beside = 0 if tracer is None else id(tracer)
    return 8 * found[0] if len(found) == 1 and words[found[0] + 1] == beside else None


def _interpreter() -> int:
    """The address of the interpreter's state."""
    return ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", ctypes.pythonapi))() or 0


def _quiet(*event: Any) -> None:
    """A profiler that sees nothing."""


if sys.version_info >= (3, 12):
    _MONITORING = sys.monitoring
    _KINDS = range(6)  # tools that can be registered
    OTHER_TOOLS = range(2, 6)  # than debuggers and coverage tools, which ask for lines
    events_of, local_events_of = _MONITORING.get_events, _MONITORING.get_local_events
    _DEBUGGERS = (_MONITORING.DEBUGGER_ID, _MONITORING.COVERAGE_ID)
    LINES = sum(getattr(_MONITORING.events, name) for name in ("LINE", "INSTRUCTION", "JUMP", "BRANCH"))

    def _place_of_tools() -> int | None:
        """Address of the names of the tools: that of a tool registered for a moment is looked for."""
        names = [_MONITORING.get_tool(kind) for kind in _KINDS]
        if None not in names:
            return None
        free = len(names) - 1 - names[::-1].index(None)
        names[free] = name = " ".join(("parakeet_py", "looks"))
        state = _interpreter()
        try:
            _MONITORING.use_tool_id(free, name)
        except ValueError:  # taken meanwhile
            return None
        try:
            with open("/proc/self/mem", "rb", buffering=0) as memory:
                memory.seek(state)
                data = memory.read(_BYTES)
        except OSError:
            return None
        finally:
            _MONITORING.free_tool_id(free)
        words = struct.unpack(f"{len(data) // 8}Q", data[: len(data) // 8 * 8])
        wanted = tuple(0 if given is None else id(given) for given in names)
        at = [
            place - free
            for place, word in enumerate(words)
            if word == wanted[free] and words[place - free : place - free + len(wanted)] == wanted
        ]
        return state + 8 * at[0] if len(at) == 1 else None

    def _tools() -> list[int]:
        return [kind for kind in _KINDS if _MONITORING.get_tool(kind) is not None]

    def _asks_for_lines(code: types.CodeType) -> bool:
        return any(
            kind in _DEBUGGERS or (_MONITORING.get_events(kind) | _MONITORING.get_local_events(kind, code)) & LINES
            for kind in _tools()
        )

    def _is_monitored() -> bool:
        return any(_MONITORING.get_tool(kind) is not None for kind in _KINDS)

else:
    OTHER_TOOLS = range(0)
    LINES = 0
    events_of = local_events_of = None

    def _place_of_tools() -> int | None:
        return None

    def _asks_for_lines(code: types.CodeType) -> bool:
        return False

    def _is_monitored() -> bool:
        return False


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_watched() -> bool:
    """Does this thread run under a tool that asks for events?"""
    return sys.getprofile() is not None or sys.gettrace() is not None or _is_monitored()


def is_traced(code: types.CodeType) -> bool:
    """Does this thread run under a tool that asks for the lines of `code`?"""
    return sys.gettrace() is not None or _asks_for_lines(code)


def wants_frame() -> bool:
    """Should a profiler see the call that is being made? Not of the one that a frame made here makes."""
    return (sys.getprofile() is not None or _is_monitored()) and _places[FRAMED] != _thread_state()


def asks_for_frame() -> bool:
    """`wants_frame`, asked once: the function that asks makes the frame, or is in it."""
    wanted = wants_frame()
    if not wanted:
        go_on(False)
    return wanted


def go_on(entering: bool = True) -> None:
    """The next call is part of one that the profiler knows."""
    watched = sys.getprofile() is not None or _is_monitored()
    if watched:
        _places[FRAMED] = (_thread_state() or 0) if entering else 0


def framed(function: types.FunctionType, target: Callable[..., Any], marks: bool = False) -> Callable[..., Any]:
    """`target`, called in a frame that looks like the function's to a profiler, and is seen by nothing else.

    `marks`: the target says by itself that gates are not to make another frame.
    """
    code = function.__code__
    made = types.FunctionType(
        (_call_only if marks else _call).__code__, {"__name__": __name__, "target": target, "go_on": go_on}
    )
    made = hidden(made)
    made.__code__ = made.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    return made


def target(*args: Any, **kwargs: Any) -> Any:
    """What the frame calls: another one in each `framed`."""


def _call(*args: Any, **kwargs: Any) -> Any:
    go_on()
    try:
        return target(*args, **kwargs)
    finally:
        go_on(False)


def _call_only(*args: Any, **kwargs: Any) -> Any:
    return target(*args, **kwargs)
