"""Python's `sorted`, `min` and `max` of records: tuples of numbers, or whatever numbers or tuples of them are keys of.

The items become columns (`grown_lists`), as do their keys. The first column of a key counts most: the last is sorted
first, and each stable sort keeps what the ones before have found. Python compares NaNs as its algorithm happens to meet
them, so it takes over where there are some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import PYBOOL, Scalar
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps, nested_lists
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.paths.templates import Structure, Template
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ComprehensionV,
    GrowV,
    IteratorV,
    ListV,
    MapV,
    MethodV,
    RangeV,
    ScalarV,
    Static,
    TupleV,
    Value,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def in_order(s: Context, value: Value, key: Value | None, reverse: Value | None) -> Value | None:
    """The sorted list; None where the items or their keys are no such records."""
    down = reverse is not None and bool(s.static(reverse, "reverse"))
    found = _both(s, value, key)
    if found is None:
        return None
    items, keys = found
    instance_lists.must_stay(s, items.item)
    order = _order(s, keys, down)
    columns = tuple(_taken(s, column, order) for column in _in_use(s, items))
    return GrowV(items.length, columns, items.item, nested_lists.copied_pools(s, items.pools))


def extreme(s: Context, value: Value, key: Value | None, which: str) -> Value:
    """min or max: the first item that has the least or greatest key."""
    found = _both(s, value, key)
    if found is None:
        raise s.unsupported(f"{which}() of what has no order that is known")
    items, keys = found
    s.call_library(f"python_{which}", [keys[0]])  # says that there is none
    if len(keys) == 1:
        place = s.call(Static(np.argmin if which == "min" else np.argmax), [keys[0]], {})
    else:
        order = _order(s, keys, which == "max")

        place = s.subscript(order, py(0))
    number = s.as_python(place)
    assert isinstance(number, ScalarV)
    return dynamic_lists.item_at(s, items, number.operand)


def _both(s: Context, value: Value, key: Value | None) -> tuple[GrowV, list[ArrayV]] | None:
    """The items, and the columns of their keys."""
    mark = s.checkpoint()
    items = _records(s, value)
    if items is not None:
        source = dynamic_lists.shown(s, items) if isinstance(items.item, Scalar) else items
        if isinstance(key, MethodV) and key.name == "get" and key.object is value:
            key = MethodV(value, "__getitem__")  # which gives no None
        keyed = items if key is None else _records(s, ComprehensionV("list", source, key, None, False))
        keys = None if keyed is None else _key_columns(s, keyed)
        if keys is not None:
            return items, keys
    s.rollback(mark)
    return None


def _records(s: Context, value: Value) -> GrowV | None:
    """Items in columns; None if they have no type in common, or there are none."""
    if isinstance(value, IteratorV):
        value = s.call(Static(list), [value], {})
    value = s.as_list(value)
    if isinstance(value, MapV):
        value = hash_maps.keys(value)
    if isinstance(value, RangeV):
        value = ListV(_line(s, value))
    if isinstance(value, ArrayV) and value.rank == 1:
        return GrowV(ScalarV(value.extents[0]), (value,), Scalar(value.dtype))
    if isinstance(value, ListV) and value.array.rank == 1 and value.items in ("", value.array.dtype):
        return GrowV(ScalarV(value.array.extents[0]), (value.array,), Scalar(value.array.dtype, not value.items))
    known = iterables.static_items(value)
    if known:
        value = TupleV(tuple(known), "list")
        if any(isinstance(part, TupleV) and part.kind == "list" for part in known):
            return None  # the very lists are sorted
        try:
            value = dynamic_lists.as_grown(s, value, dynamic_lists.item_template(s, value))
        except UnsupportedError:
            return None
    return value if isinstance(value, GrowV) and value.columns else None


def _line(s: Context, value: Value) -> ArrayV:
    made = s.as_array(value)
    assert isinstance(made, ArrayV)
    return made


def _key_columns(s: Context, keys: GrowV) -> list[ArrayV] | None:
    """Columns whose order, one after the other, is that of the keys."""
    if not _has_order(keys.item):
        return None
    columns = _in_use(s, keys)
    for column in columns:
        if np.dtype(column.dtype).kind == "f":
            some = s.call(Static(np.any), [s.call(Static(np.isnan), [column], {})], {})
            s.check(s.builder.prim("not", s.truth(some), type=PYBOOL), "Deoptimize", "an order of floats with a NaN")
    return columns


def _has_order(template: Template) -> bool:
    match template:
        case Scalar(dtype):
            return np.dtype(dtype).kind != "c"
        case Structure(TupleV() | CharV(), parts):
            return bool(parts) and all(map(_has_order, parts))
    return False


def _in_use(s: Context, grown: GrowV) -> list[ArrayV]:
    length, one = grown.length.operand, py(1).operand
    return [make_view(s, column, (ZERO,), [(0, length, one)]) for column in grown.columns]


def _order(s: Context, keys: list[ArrayV], down: bool) -> ArrayV:
    """The places of the items in order; those with equal keys stay in theirs, also downwards."""
    order: Value | None = None
    for key in reversed(keys):
        column: Value = s.call(Static(np.flip), [key], {}) if down else key
        if order is not None:
            column = s.call(Static(np.take), [column, order], {})
        places = s.call(Static(np.argsort), [column], {"kind": lift("stable")})
        order = places if order is None else s.call(Static(np.take), [order, places], {})
    assert order is not None
    if down:
        last = s.binary("sub", ScalarV(keys[0].extents[0]), py(1))
        order = s.call(Static(np.flip), [s.binary("sub", last, order)], {})
    assert isinstance(order, ArrayV)
    return order


def _taken(s: Context, column: ArrayV, order: ArrayV) -> ArrayV:
    found = s.call(Static(np.take), [column, order], {})
    assert isinstance(found, ArrayV)
    return found


__all__ = ["extreme", "in_order"]
