"""Lists of many strings, that are arguments or held by these: their characters are read like columns.

Such a list stays an object. The code points of all strings are a hidden argument, one array that is made at every call
(`attribute_sources.TEXT_CODES`), and so are the places where each begins. `words[i]` is a string as those that are
arguments are (`containers.strings`), a part of the array. As with `instance_columns` it is right as long as the call
does not change the list, and pays where loops in loops look at characters or strings; else the walk begins again with
the items as objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.errors import MissingValue
from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.signature.attribute_sources import TEXT_CODES, TEXT_ENDS
from parakeet_py.signature.facts import ObjectsInList, place_of
from parakeet_py.signature.specs import Source
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE
from parakeet_py.typed_ir.specialize.arrays import index_entries, views
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.values import ArrayV, ObjectV, ScalarV, TextV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _columns(s: Context, value: Value) -> tuple[ArrayV, ArrayV] | None:
    """Code points and ends of a list of many strings; None of other values."""
    found = known_object(s, value) if isinstance(value, ObjectV) else None
    if found is None or found[0] is not list or found[1][0] != "field":
        return None
    sources: list[Source] = [(*found[1], name) for name in (TEXT_ENDS, TEXT_CODES)]
    if ObjectsInList(place_of(found[1])) in s.facts.known:
        return None
    if sources[0] not in s.arguments.hidden:
        try:
            s.arguments.extended(s.arguments.signature, sources[0])
        except MissingValue:
            return None
    ends, codes = map(s.taken, sources)
    if not isinstance(codes, ArrayV) or not isinstance(ends, ArrayV) or codes.rank != 1 or ends.rank != 1:
        return None
    return codes, ends


def length(s: Context, value: Value) -> ir.Operand | None:
    """How many strings there are in a list; None of other values."""
    found = _columns(s, value)
    if found is None:
        return None
    count = s.builder.index_add(found[1].extents[0], ONE, -1)
    if isinstance(count, ir.Var):
        s.builder.as_count(count)
    return count


def at(s: Context, value: Value, index: ir.Operand) -> TextV:
    """The string at a place that is in range."""
    found, b = _columns(s, value), s.builder
    assert found is not None
    codes, ends = found
    s.arguments.columns_pay |= s.loops.looping + s.elements.in_body > 1
    first, last = (
        b.cast(b.emit1(ir.Load(ends.var, (place,)), Scalar("int64")), PYINT)
        for place in (index, b.index_add(index, ONE))
    )
    count = b.index_add(last, first, -1)
    if isinstance(count, ir.Var):
        b.as_count(count)
    return TextV(views.make_view(s, codes, [first], [(0, count, ONE)]))


def subscript(s: Context, value: Value, index: Value) -> TextV | None:
    """value[index], of a list of strings and an integer."""
    count = length(s, value) if isinstance(value, ObjectV) and isinstance(index, ScalarV) else None
    if count is None or not isinstance(index, ScalarV) or index.dtype not in ("int64", "bool") or not index.python:
        return None
    return at(s, value, index_entries.check_index(s, index, count, 0, message="list index out of range"))
