"""Python's search for reference cycles, put off while a function is compiled.

Compiling makes hundreds of thousands of objects in a burst, all of which are freed by their reference counts or kept:
looking for cycles among them again and again is a tenth of the time and finds nothing. Nor is there a search among all
of them at the end: what is new then counts as old, and is looked at when everything is.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from parakeet_py.base import compiler_thread

__all__ = ["put_off"]

_lock = threading.Lock()
_blocks = 0  # that are open, in any thread
_was_on = False
_some_are_frozen = False


@contextmanager
def put_off() -> Iterator[None]:
    """No collection starts by itself in this block; blocks of several threads may overlap. Off the path of calls, whose
    cycles have to be found meanwhile, nothing is put off."""
    global _blocks, _was_on
    if compiler_thread.is_here():
        yield
        return
    with _lock:
        if _blocks == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks = max(0, _blocks - 1)  # 0 where the process has forked since
            if _blocks == 0 and _was_on:
                _make_old()
                gc.enable()


def _make_old() -> None:
    """Move all objects to the oldest generation, which takes no time; not where some are frozen on purpose.

    Frozen objects are counted one by one, so a process that has some is not asked again.
    """
    global _some_are_frozen
    _some_are_frozen = _some_are_frozen or gc.get_freeze_count() > 0
    if not _some_are_frozen:
        gc.freeze()
        gc.unfreeze()


def _start_again() -> None:
    """A child has only the thread that forked: the blocks of others are not closed there."""
    global _lock, _blocks
    _lock = threading.Lock()
    if _blocks and _was_on:
        gc.enable()
    _blocks = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
