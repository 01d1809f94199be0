"""Operators and methods of sets that make new sets or compare two: `a & b`, `a.union(b)`, `a <= b`.

Both are sets of `hash_maps`. The loops are in `library/reductions/ufunc_methods.py`. A set that is made so has another
history than Python's, and so perhaps another order: it is good for all that does not show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.typed_ir.specialize.containers import hash_maps
from parakeet_py.typed_ir.specialize.values import MapV, Value, py

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
    return replace(made, kind="worn") if isinstance(made, MapV) else made


def _chosen(s: Context, a: MapV, b: MapV, there: bool) -> Value:
    return s.call_plain("chosen_items", [hash_maps.keys(a), b, py(there)])


def _union(s: Context, a: Value, b: Value) -> Value:
    assert isinstance(a, MapV) and isinstance(b, MapV)
    return s.call_plain("joined_items", [hash_maps.keys(a), hash_maps.keys(b)])


def _all(s: Context, a: MapV, b: MapV, there: bool) -> Value:
    return s.call_plain("all_items", [hash_maps.keys(a), b, py(there)])


def _same_length(s: Context, op: str, a: MapV, b: MapV) -> Value:
    return s.compare(op, a.entries.length, b.entries.length)


def _both(s: Context, one: Value, other: Value) -> Value:
    return s.binary("and", one, other)


_OPERATORS: dict[str, Callable[[Context, MapV, MapV], Value]] = {
    "and": lambda s, a, b: _chosen(s, a, b, True),
    "sub": lambda s, a, b: _chosen(s, a, b, False),
    "or": _union,
    "xor": lambda s, a, b: _union(s, _chosen(s, a, b, False), _chosen(s, b, a, False)),
    "le": lambda s, a, b: _all(s, a, b, True),
    "ge": lambda s, a, b: _all(s, b, a, True),
    "lt": lambda s, a, b: _both(s, _same_length(s, "lt", a, b), _all(s, a, b, True)),
    "gt": lambda s, a, b: _both(s, _same_length(s, "gt", a, b), _all(s, b, a, True)),
    "eq": lambda s, a, b: _both(s, _same_length(s, "eq", a, b), _all(s, a, b, True)),
    "isdisjoint": lambda s, a, b: _all(s, a, b, False),
}
