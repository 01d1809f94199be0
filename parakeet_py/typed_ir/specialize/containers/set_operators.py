"""Operators and methods of sets that make new sets or compare two: `a & b`, `a.union(b)`, `a <= b`.

Both are sets of `hash_maps`. The loops are in `library/python/hash_tables.py`. A set that is made so has another
history than Python's, and so perhaps another order: it is good for all that does not show it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.typed_ir.specialize.containers import hash_maps
from parakeet_py.typed_ir.specialize.values import MapV, ScalarV, TupleV, Value, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_METHODS = {
    **{"intersection": "and", "union": "or", "difference": "sub", "symmetric_difference": "xor"},
    **{"issubset": "le", "issuperset": "ge", "isdisjoint": "isdisjoint"},
}


def is_set(value: Value) -> bool:
    return isinstance(value, MapV) and value.kind != "dict"


def method(s: Context, value: MapV, name: str, other: Value) -> Value | None:
    """value.name(other); None if that is not one of these."""
    return operator(s, _METHODS[name], value, other) if name in _METHODS and is_set(other) else None


def operator(s: Context, op: str, left: Value, right: Value) -> Value | None:
    """left op right; None where Python has to find out."""
    if not (isinstance(left, MapV) and isinstance(right, MapV) and is_set(left) and is_set(right)):
        return None
    make = _OPERATORS.get(op)
    mark = s.checkpoint()
    try:
        made = None if make is None else make(s, left, right)
    except UnsupportedError:
        made = None
    if made is None:
        s.rollback(mark)
    if isinstance(made, MapV):
        return hash_maps.with_table(s, made)
    return made


def _given(s: Context, one: MapV, other: MapV, there: bool) -> list[Value]:
    """The arguments of a function of the library that looks for the items of one set in another."""
    columns, others = hash_maps.comparable_columns(s, one, other)
    return [TupleV(columns, "list"), one.entries.length, TupleV(others, "list"), other.table, py(there)]


def _chosen(s: Context, a: MapV, b: MapV, there: bool) -> MapV:
    """The items of a set that are in another one, or are not."""
    if not a.entries.columns or not b.entries.columns:
        return hash_maps.emptied(s) if there else a
    found = s.call_library("chosen_entries", _given(s, a, b, there))
    assert isinstance(found, TupleV)
    columns, count = found.items
    return hash_maps.with_entries(s, a, columns, count)


def _common(s: Context, a: MapV, b: MapV) -> MapV:
    """The items of two sets that are in both: those of the smaller one, as it is that which Python goes through."""
    if not (hash_maps.has_floats(a) and a.entries.columns and b.entries.columns):
        return _chosen(s, a, b, True)

    def of(one: MapV, other: MapV) -> list[Value]:
        found = _chosen(s, one, other, True).entries
        return [TupleV(found.columns, "list"), found.length]

    larger = s.truth(s.compare("gt", b.entries.length, a.entries.length))
    columns, count = s.branch(larger, lambda: of(a, b), lambda: of(b, a))
    return hash_maps.with_entries(s, a, columns, count)


def _together(s: Context, a: MapV, b: MapV) -> MapV:
    """The items of two sets that have none in common."""
    if not a.entries.columns or not b.entries.columns:
        return b if b.entries.columns else a
    columns, others = (TupleV(one, "list") for one in hash_maps.comparable_columns(s, a, b))
    count = ScalarV(s.builder.index_add(a.entries.length.operand, b.entries.length.operand))
    made = s.call_library("entries_of_both", [columns, a.entries.length, others, b.entries.length])
    return hash_maps.with_entries(s, a, made, count)


def _all(s: Context, a: MapV, b: MapV, there: bool) -> Value:
    """Are all items of a set in another one, or are none?"""
    if not a.entries.columns:
        return py(True)
    if not b.entries.columns:
        return s.compare("eq", a.entries.length, py(0)) if there else py(True)
    return s.call_library("are_entries", _given(s, a, b, there))


def _both(s: Context, op: str, a: MapV, b: MapV, found: Value) -> Value:
    return s.binary("and", s.compare(op, a.entries.length, b.entries.length), found)


_OPERATORS: dict[str, Callable[[Context, MapV, MapV], Value]] = {
    "and": _common,
    "sub": lambda s, a, b: _chosen(s, a, b, False),
    "or": lambda s, a, b: _together(s, a, _chosen(s, b, a, False)),
    "xor": lambda s, a, b: _together(s, _chosen(s, a, b, False), _chosen(s, b, a, False)),
    "le": lambda s, a, b: _all(s, a, b, True),
    "ge": lambda s, a, b: _all(s, b, a, True),
    "lt": lambda s, a, b: _both(s, "lt", a, b, _all(s, a, b, True)),
    "gt": lambda s, a, b: _both(s, "gt", a, b, _all(s, b, a, True)),
    "eq": lambda s, a, b: _both(s, "eq", a, b, _all(s, a, b, True)),
    "isdisjoint": lambda s, a, b: _all(s, a, b, False),
}
