"""Compiling off the path: calls of a function go on in Python while it is compiled in a thread of its own.

The thread has Python's lock for half of the time at most, so that no call waits for it much longer than
`sys.getswitchinterval()`, where one that compiles waits for all of it, in a new process for the import of the compiler,
too. Another process would have to import NumPy and the function's module first, which takes longer than most functions
take to be compiled, and would have neither its globals nor its closure.

One function is compiled at a time, for a call that has been made. What that reads of arguments and globals is part of a
signature, which later calls are compared with, so they may change meanwhile. What goes wrong is begun anew by a call
that waits for it. That is also what calls do that take longer in Python, that run on a single CPU, in a child of a
fork, under a debugger or profiler of all threads, or on an interpreter without Python's lock.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Final

from parakeet_py.base import compiler_thread

__all__ = ["begin", "is_busy", "wait"]

PATIENCE: Final = 10.0  # seconds that a fork, or the end of the process, waits for the thread at most
_thread: threading.Thread | None = None
_over = False  # nothing is begun any more


def begin(work: Callable[[], None], cpus: int) -> bool:
    """Do something in the thread, under the present settings; False if that cannot be now."""
    global _thread
    if _over or cpus < 2 or is_busy() or compiler_thread.is_here() or sys.is_finalizing():
        return False
    if threading.gettrace() is not None or threading.getprofile() is not None or "free-threading" in sys.version:
        return False
    try:
        _thread = threading.Thread(
            target=copy_context().run, args=(_run, work), name="parakeet_py-compiler", daemon=True
        )
        _thread.start()
    except RuntimeError:  # the system, or this interpreter, allows no more threads
        _thread = None
        return False
    return True


def is_busy() -> bool:
    """Is the thread at work?"""
    return _thread is not None


def wait(seconds: float | None = None) -> None:
    """Wait until the thread has nothing to do."""
    thread = _thread
    if thread is not None and thread is not threading.current_thread():
        thread.join(seconds)


def _run(work: Callable[[], None]) -> None:
    global _thread
    try:
        with compiler_thread.is_this(), suppress(BaseException):  # `Interrupted`, for one: calls compile what they need
            work()
    finally:
        _thread = None


def _stop() -> None:
    """The child of a fork has no other thread, but the locks of all."""
    if _thread is not None:
        compiler_thread.stop()
        try:
            wait(PATIENCE)
        finally:
            compiler_thread.stop(False)


def _end() -> None:
    global _over
    _over = True
    _stop()


def _in_child() -> None:
    global _over, _thread
    _over, _thread = True, None


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop, after_in_child=_in_child)
