"""Frames of Python functions: those that cannot do without theirs, and how many there may be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from parakeet_py.frontend import ssa
from parakeet_py.frontend.ssa import Function


def reads_its_frame(function: Function) -> bool:
    """Does a function use what only means something in its own Python frame?"""
    for let in function.statements():
        match let.op:
            case ssa.Global(
                "locals" | "globals" | "eval" | "exec" | "super" | "breakpoint" | "_getframe" | "currentframe"
            ):
                return True
            case ssa.Global("vars" | "dir"):
                return True
            case ssa.Attribute(_, "_getframe" | "currentframe" | "bmat"):
                return True
    return False


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
