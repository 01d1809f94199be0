"""A search that goes on when a program ends the process: by a signal, as a null pointer in machine code would.

The search runs in a process of its own, which keeps what it is about to run and how far it has come in two files; when
it dies, its parent writes the program down, made smaller in further processes, and starts the search again behind it.
The parent compiles nothing, so that its children begin without threads.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def in_process(run: Callable[[], object], seconds: float | None = None) -> int:
    """Run it in a process of its own; its exit status, negative for the signal that ended it.

    A process that takes longer is ended: -SIGALRM.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            run()
            status = 0
        except KeyboardInterrupt:
            status = 130
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while end is not None and time.monotonic() < end:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        if end is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGALRM
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGINT)
        os.waitpid(pid, 0)
        raise


def save(path: Path, value: Any) -> None:
    """Written at once: what reads it after a crash finds the whole of it."""
    new = path.with_suffix(".new")
    new.write_bytes(pickle.dumps(value))
    new.replace(path)


def load(path: Path) -> Any:
    return pickle.loads(path.read_bytes())
