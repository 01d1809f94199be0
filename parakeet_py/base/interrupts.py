"""Exceptions that come from outside while the compiler works: those of signal handlers, and asynchronous ones.

A handler in Python runs between any two instructions, so its exception would unwind the compiler anywhere, and what
catches exceptions there would take it for one of its own. In a `deferring` block, handlers run when they always do, but
what they raise is kept: `poll`, which the compiler calls between its steps, unwinds it where nothing is half done, and
the exception is raised at the end of the block, whatever has become of the compiler in the meantime.

What another thread sets (`PyThreadState_SetAsyncExc`) cannot be kept; `came_from_outside` distinguishes such an
exception from an error of the compiler by its origin: the instruction it came from is none that raises.

`poll` also looks at the clock, where the compiler has a `deadline`, and ends what is compiled off the path of calls
where that has to stop (`compiler_thread`).
"""

from __future__ import annotations

import dis
import importlib
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parakeet_py.base import compiler_thread
from parakeet_py.base.lazy_modules import loading

__all__ = ["Interrupted", "OutOfTime", "came_from_outside", "deadline", "deferring", "poll"]

_signal: Any = importlib.import_module("_signal")  # `signal` catches ValueErrors in Python, those of handlers too
_pending: list[BaseException] = []  # what handlers have raised in the open block
_open = False
_latest: tuple[int, float] | None = None  # the thread that compiles, and when it has to be done
_SIGNALS: tuple[int, ...] = tuple(_signal.valid_signals())
_OTHER_INTERPRETER = "signal only works in main thread of the main interpreter"
_RAISING = frozenset({"RAISE_VARARGS", "RERAISE"})
_WITHOUT_ARGUMENTS = (StopIteration, GeneratorExit, MemoryError)  # that functions in C raise


class Interrupted(BaseException):
    """Unwinds the compiler; the exception that it stands for, if any, is raised at the end of the `deferring` block."""


class OutOfTime(BaseException):
    """Unwinds the compiler, which has taken longer than it may."""


class _Handler:
    """In the place of a signal's handler, which it calls."""

    def __init__(self, handler: Any) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: types.FrameType | None) -> None:
        if not _open:
            self.handler(number, frame)
            return
        try:
            self.handler(number, frame)
        except BaseException as error:
            _pending.append(error)


class _Deferring:
    """A block that keeps what handlers raise. (A generator could not raise a StopIteration of theirs.)"""

    def __init__(self) -> None:
        self.ours: dict[int, _Handler] | None = None

    def __enter__(self) -> None:
        global _open
        if _open or threading.current_thread() is not threading.main_thread():  # handlers run in the main thread only
            return
        self.ours = {}
        _open = True
        try:
            _replace_handlers(self.ours)
        except BaseException as error:
            if isinstance(error, ValueError) and str(error).startswith(_OTHER_INTERPRETER):
                return
            self.__exit__()
            raise  # by a handler that is not replaced yet

    def __exit__(self, *_: object) -> None:
        global _open
        if self.ours is None:
            return
        raised = _restore_handlers(self.ours)
        _open = False
        raised += _pending
        _pending.clear()
        if raised:
            raise raised[0] from None


def deferring() -> _Deferring:
    """Keep what handlers of signals raise until the end of this block, and raise it there."""
    return _Deferring()


def _replace_handlers(ours: dict[int, _Handler]) -> None:
    for number in _SIGNALS:
        handler = _signal.getsignal(number)
        if isinstance(handler, _Handler):  # left behind where restoring it was interrupted twice
            handler = handler.handler
        if callable(handler):
            ours[number] = _Handler(handler)
            _signal.signal(number, ours[number])


def _restore_handlers(ours: dict[int, _Handler]) -> list[BaseException]:
    """What handlers raise that are in their place again; the others are restored nevertheless."""
    raised: list[BaseException] = []
    while ours:
        try:
            while ours:
                number, own = next(iter(ours.items()))
                if _signal.getsignal(number) is own:
                    _signal.signal(number, own.handler)
                del ours[number]
        except BaseException as error:
            raised += [error]  # no call: handlers run after calls
    return raised


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Let `poll` raise `OutOfTime` in this block, after so many seconds of CPU time; None: however long it takes.

    What modules of the compiler take to be executed, as some are when they are used first, is not part of that.
    """
    global _latest
    before = _latest
    _latest = None if seconds is None else (threading.get_ident(), _now() + seconds)
    try:
        yield
    finally:
        _latest = before


def _now() -> float:
    taken = time.thread_time() if compiler_thread.is_here() else time.process_time()
    return taken - loading[0]


def poll(ahead: float = 0.0) -> None:
    """Unwind the compiler if a handler has raised, or the time is over; `ahead`: seconds of CPU time at least until it
    can be asked again."""
    if _latest is not None and _latest[0] == threading.get_ident() and _now() + ahead > _latest[1]:
        raise OutOfTime
    if _pending and threading.current_thread() is threading.main_thread():
        raise Interrupted
    if compiler_thread.must_stop():
        raise Interrupted


def came_from_outside(error: BaseException) -> bool:
    """Did a handler raise an exception outside of `deferring`, or did it arise at an instruction that raises none
    itself, as asynchronous ones do?"""
    codes, last = [], error.__traceback__
    while last is not None:
        codes.append(last.tb_frame.f_code)
        if last.tb_next is None:
            break
        last = last.tb_next
    if last is None or not _codes_of_handlers().isdisjoint(codes):
        return last is not None
    if isinstance(error, _WITHOUT_ARGUMENTS) or error.args:
        return False
    return dis.opname[codes[-1].co_code[last.tb_lasti]] not in _RAISING


def _codes_of_handlers() -> set[types.CodeType]:
    """The functions in Python that handle signals now."""
    found: set[types.CodeType] = set()
    for number in _SIGNALS:
        handler: Any = _signal.getsignal(number)
        handler = handler.handler if isinstance(handler, _Handler) else handler
        for function in (handler, getattr(handler, "__func__", None), vars(type(handler)).get("__call__")):
            if isinstance(function, types.FunctionType):
                found.add(function.__code__)
    return found
