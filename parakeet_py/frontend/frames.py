"""Frames of Python functions: stand-ins for those that did not exist, and functions that cannot do without theirs."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parakeet_py.frontend import ssa
from parakeet_py.frontend.ssa import Function


def reads_its_frame(function: Function) -> bool:
    """Does a function use what only means something in its own Python frame?"""
    for let in function.statements():
        match let.op:
            case ssa.Global("locals" | "globals" | "eval" | "exec" | "super" | "breakpoint"):
                return True
            case ssa.Attribute(_, "_getframe" | "currentframe" | "bmat"):
                return True
    return False


def stand_in(filename: str, name: str) -> types.FrameType:
    """A frame that says it belongs to a function of the user."""
    code = compile("frame = own()", filename, "exec").replace(co_name=name)
    scope: dict[str, Any] = {"own": lambda: sys._getframe(1)}
    exec(code, scope)
    frame: types.FrameType = scope["frame"]
    return frame


@contextmanager
def deep_recursion(wanted: bool = True) -> Iterator[None]:
    """An interpreter makes several calls for one of the program's: inside, Python lets it."""
    limit = sys.getrecursionlimit()
    try:
        if wanted:
            sys.setrecursionlimit(limit * 20)
        yield
    finally:
        sys.setrecursionlimit(limit)
