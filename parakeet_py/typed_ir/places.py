"""Places in the source that know their function: what tracebacks of compiled code are made of.

Functions are inlined where they are called. A statement of typed IR, and with it a check, is at a `Place`: a position,
the function that it is a position in, and the place from which that function was called.
"""

from __future__ import annotations

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.frames.tracebacks import TraceEntry
from parakeet_py.frontend.ssa import Function, Pos


@record
class Place(Pos):
    """A position in a function, which `caller` has called."""

    filename: str
    name: str
    first_line: int
    caller: Pos | None = None


def place(function: Function, pos: Pos, caller: Pos | None) -> Place:
    """A position in a function."""
    ends = pos.line, pos.column, pos.end_line, pos.end_column
    return Place(*ends, function.filename, function.name, function.first_line, caller)


def entries(pos: Pos | None) -> tuple[TraceEntry, ...]:
    """The lines of a traceback that ends at a place, outermost first; those of which nothing is known are left out."""
    found: list[TraceEntry] = []
    while isinstance(pos, Place):
        ends = (pos.line, pos.column, pos.end_line, pos.end_column)
        found.append(TraceEntry(pos.filename, pos.name, pos.first_line, *ends))
        pos = pos.caller
    return tuple(reversed(found))
