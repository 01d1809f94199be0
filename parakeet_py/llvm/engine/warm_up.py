"""What the first compilation of a process needs beside its own code, made ready in a thread of its own.

LLVM has to be loaded, and on a new machine the runtime and what all gates share have to be compiled. That is half of
the first call of a short function, most of it outside of Python, which reads its modules and the function meanwhile.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from contextvars import copy_context

from parakeet_py.llvm.engine import compiler

# All that the thread imports of this package, so that it neither waits for who imports it nor sees the half of it.
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.runtime import native_runtime

__all__ = ["prepare"]

_thread: threading.Thread | None = None
_tried = False


def prepare(cpus: int) -> None:
    """Begin, if that has not been done and there are several CPUs to use. What needs something waits for it."""
    global _thread, _tried
    if _tried or cpus < 2:
        return
    _tried = True
    thread = threading.Thread(target=copy_context().run, args=(_prepare,))  # the settings say where the cache is
    if compiler.started_thread(thread):
        _thread = thread


def _prepare() -> None:
    with suppress(Exception):  # the thread that needs it finds the same, and reports it
        compiler.host()
        native_runtime.runtime()
        boxing.support()


def _finish() -> None:
    """A process that forks would leave its child with the locks that the thread holds."""
    if _thread is not None:
        _thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish)
