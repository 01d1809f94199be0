"""What handlers of signals raise in loops that have handlers of exceptions around them.

Python raises it between any two instructions. Compiled code does it where a loop inside `try` begins an iteration:
there stands a call of `look`, guarded as any other statement of the body. Compiled code that finds an exception at it
(`typed_ir.ir.Interrupted`) leaves the rest of the call to Python, which raises it there. For Python by itself it does
nothing.
"""

from __future__ import annotations

from typing import Any

from parakeet_py.base.frames.hidden_frames import hidden


@hidden
def look() -> None:
    """Raise what a handler of a signal has raised, in compiled code."""


LOOK: Any = look  # stands for itself among literals

_OF_PROGRAMS = (
    ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError, LookupError, MemoryError,
    NameError, ReferenceError, StopIteration, SyntaxError, SystemError, TypeError, ValueError,
)  # fmt: skip


def may_come(kind: type[BaseException]) -> bool:
    """May handlers of signals raise what this class catches? They do not raise builtin errors of operations."""
    return kind.__module__ != "builtins" or not issubclass(kind, _OF_PROGRAMS)
