"""NumPy's warnings of what compiled code has come across: `divide by zero encountered in divide`, once for each place.

When a call has set floating-point flags that are new (`llvm.error_state`), Python runs it once more, for its warnings
alone: NumPy itself warns, in its own words, at the user's line, into the registry of the user's module, and Python's
filters decide whether that is shown, raised, or dropped. If the flags came from lanes whose results are not used, there
is no warning. The call's result stays that of compiled code.

Only functions without effects are run again: those that store into no argument, draw no random number, set no
attribute and hand nothing back to Python. Others give no warnings, nor does what runs on devices, or on processors
other than x86-64, whose flags are not read.

A gate does so once for each kind of flag, until the warning filters change; so it does where a second place of the
same function comes across the same kind only in a later call. Where filters ask for every warning (`always`, `error`),
it does so in every call that sets a flag. As loops that compiled code is done with at once may keep Python busy for
long, it is stopped after a short while: what it has said until then is all. Calls that are short by what their
arguments say (`pricing`) are not watched for that, as it takes ten times as long as they do.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from types import FrameType, FunctionType
from typing import Any, Literal

from parakeet_py.call.pricing import MOST, size_of, size_of_code
from parakeet_py.llvm.runtime.error_state import Record
from parakeet_py.signature.positional import python_form, takes_positions_only

PATIENCE = 0.05  # seconds of a processor, whatever else the machine does
SHORT = 1e6  # ns


class _Enough(BaseException):
    """Python has run for long enough."""


def warn(function: FunctionType, args: tuple[Any, ...], record: Record) -> Warning | None:
    """Let NumPy warn of what a call has met; gives the warning if it is to be raised."""
    flags, wanted = record.present, _wanted()
    if wanted != "every" or record.told:
        record.settle(0 if wanted == "every" else flags)
    if wanted == "none":
        return None
    largest, plain = _known_of(function)
    watched = size_of(args) > largest
    former = sys.gettrace() if watched else None
    if watched:
        sys.settrace(_tracer(time.thread_time() + PATIENCE))
    try:
        if plain:
            function(*args)
        else:
            positional, named = python_form(function, args)
            function(*positional, **named)
    except Warning as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        return error
    except (Exception, _Enough):
        pass  # compiled code has come to an end
    finally:
        if watched:
            sys.settrace(former)
    return None


@lru_cache(maxsize=256)
def _known_of(function: FunctionType) -> tuple[int, bool]:
    """The size of arguments up to which calls are short; are they all by position?"""
    size = size_of_code(function)
    largest = -1 if size.open_ended else size.largest(SHORT) if size.loops else MOST
    return largest, takes_positions_only(function.__code__)


def _tracer(end: float) -> Callable[[FrameType, str, Any], Any]:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if time.thread_time() > end:
            raise _Enough
        return trace

    return trace


def _wanted() -> Literal["every", "new", "none"]:
    """Which warnings about numbers the filters may let through: all, those of new places, or none."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action in ("always", "all", "error"):
                return "every"
            if message is None and module is None and not line:
                return "none" if action == "ignore" else "new"
    return "new"
