"""The thread that compiles while calls go on in Python, as far as it concerns the compiler.

`call.dispatch.background` starts it. What compiling takes is measured there by the time of the thread, as the clock
goes on while others have the interpreter; and it is asked to `stop` where the process ends or forks.
"""

from __future__ import annotations

import time
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NONE: Final = 0  # no thread's identifier
_identifier = _NONE
_stops = False


def is_here() -> bool:
    """Is this the thread?"""
    return _identifier == get_ident()


@contextmanager
def is_this() -> Iterator[None]:
    """What is done in this block is done off the path of calls; one thread at a time."""
    global _identifier
    _identifier = get_ident()
    try:
        yield
    finally:
        _identifier = _NONE


def clock() -> float:
    """Seconds that compiling takes, from one call of this to the next."""
    return time.thread_time() if is_here() else time.perf_counter()


def stop(now: bool = True) -> None:
    """Let the thread give up what it compiles, at its next step; or no longer."""
    global _stops
    _stops = now


def must_stop() -> bool:
    """Is this the thread, and has it been asked to give up?"""
    return _stops and is_here()
