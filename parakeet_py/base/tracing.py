"""Calls under debuggers, coverage tools and profilers.

Machine code has no lines. While a thread is traced (`sys.settrace`: pdb, coverage), accelerated functions run as plain
Python in it. While it is profiled (`sys.setprofile`: cProfile), they run as ever, inside a frame with the name and
place of the function, so that the profiler sees each call and return.

Gates look at two words of CPython's thread state, which are not null while the main thread has a tracer or a profiler.
They are found by their values, as the layout of that structure is CPython's own. Other threads that are traced or
profiled while the main thread is not are not noticed by compiled code, nor are tools of `sys.monitoring`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import types
from array import array
from collections.abc import Callable
from typing import Any

from parakeet_py.base.tracebacks import unseen

_NOTHING = array("Q", [0, 0])
_cell = array("Q", [_NOTHING.buffer_info()[0]])  # where the words are
_WORDS = 64  # of a thread state, in which they are looked for


def cell_address() -> int:
    """Address of a pointer to two words, one of which is not 0 while the main thread is traced or profiled."""
    look()
    return _cell.buffer_info()[0]


def look() -> None:
    """Find the words, if this is the main thread."""
    if _cell[0] != _NOTHING.buffer_info()[0] or threading.current_thread() is not threading.main_thread():
        return
    state = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", ctypes.pythonapi))()
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
    if len(found) == 1 and words[found[0] + 1] == beside:
        _cell[0] = state + 8 * found[0]  # the profiler's object, and behind it the tracer's


def _quiet(*event: Any) -> None:
    """A profiler that sees nothing."""


def _after_fork() -> None:
    _cell[0] = _NOTHING.buffer_info()[0]
    look()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Entering(threading.local):
    now = False  # the next call is that of a frame made here


_entering = _Entering()


def is_watched() -> bool:
    """Does this thread run under a tool that asks for events?"""
    return sys.getprofile() is not None or sys.gettrace() is not None


def is_traced() -> bool:
    """Does this thread run under a debugger or a coverage tool?"""
    return sys.gettrace() is not None


def wants_frame() -> bool:
    """Should a profiler see the call that is being made? Not of the one that a frame made here makes."""
    return sys.getprofile() is not None and not _entering.now


def asks_for_frame() -> bool:
    """`wants_frame`, asked once: the function that asks makes the frame, or is in it."""
    wanted, _entering.now = wants_frame(), False
    return wanted


def go_on(entering: bool = True) -> None:
    """The next call is part of one that the profiler knows."""
    _entering.now = entering and sys.getprofile() is not None


def framed(function: types.FunctionType, target: Callable[..., Any]) -> Callable[..., Any]:
    """`target`, called in a frame that looks like the function's to a profiler."""
    made = types.FunctionType(_call.__code__, {"target": target, "go_on": go_on})
    code = function.__code__
    made.__code__ = _call.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    return made


def target(*args: Any, **kwargs: Any) -> Any:
    """What the frame calls: another one in each `framed`."""


@unseen
def _call(*args: Any, **kwargs: Any) -> Any:
    go_on()
    try:
        return target(*args, **kwargs)
    finally:
        go_on(False)
