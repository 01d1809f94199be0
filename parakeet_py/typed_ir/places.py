"""Places in the source that know their function: what tracebacks of compiled code are made of.

Functions are inlined where they are called. A statement of typed IR, and with it a check, is at a `Place`: a position,
the function that it is a position in, and the place from which that function was called.
"""

from __future__ import annotations

import os
from dataclasses import replace

from parakeet_py.base import package
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.frames.tracebacks import TraceEntry
from parakeet_py.frontend.ssa import Function, Pos

_LIBRARY = os.path.join(package.FOLDER, "library", "")
COMPREHENSION = ("element", "condition")  # names of the functions that comprehensions are made of


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


def by_way_of(here: Pos, place: Pos) -> Pos:
    """The place of an exception that has been raised again here, in the function that has handled it."""
    if not isinstance(here, Place) or not isinstance(place, Place):
        return here
    same = place.caller == here.caller  # in the same call of the same function
    return replace(place, caller=here if same or place.caller is None else by_way_of(here, place.caller))


def in_library(pos: Pos | None) -> bool:
    """Is this a place in a function of the library?"""
    return isinstance(pos, Place) and pos.filename.startswith(_LIBRARY)


def outside_library(pos: Pos) -> Pos:
    """The place from which the library was called, for one in it; any other as it is."""
    while isinstance(pos, Place) and in_library(pos) and pos.caller is not None:
        pos = pos.caller
    return pos


def entries(pos: Pos | None) -> tuple[TraceEntry, ...]:
    """The lines of a traceback that ends at a place, outermost first; those of which nothing is known are left out, and
    those of the library.

    So are those of comprehensions, whose place is in the line of the function around them.
    """
    found: list[TraceEntry] = []
    inner: Place | None = None
    while isinstance(pos, Place):
        if in_library(pos):
            pos = pos.caller
            continue
        at = inner if inner is not None and _is_around(pos, inner) else pos
        ends = (at.line, at.column, at.end_line, at.end_column)
        if _is_comprehension(pos):
            inner = at
        else:
            found.append(TraceEntry(pos.filename, pos.name, pos.first_line, *ends))
            inner = None
        pos = pos.caller
    return tuple(reversed(found))


def _is_comprehension(pos: Place) -> bool:
    """Is this in the function that comprehensions are made of, and not in one of the user's of the same name?"""
    if pos.name not in COMPREHENSION or pos.caller is None:
        return False
    caller = outside_library(pos.caller)
    return isinstance(caller, Place) and _is_around(caller, pos)


def _is_around(outer: Place, inner: Place) -> bool:
    return (
        outer.filename == inner.filename
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )
