"""Python's `sorted`, `min` and `max` by a key, and the methods of lists that search and sort.

What they go through becomes an array of numbers of one type (`array_lists.line`), its keys likewise. Python's order of
floats among which there is a NaN depends on its algorithm: Python takes over then.

Records, that is tuples of numbers or whatever numbers or tuples of them are keys of, become columns, as do their keys.
The first column of a key counts most: the last is sorted first, and each stable sort keeps what the ones before have
found.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import PYBOOL, Scalar
from parakeet_py.typed_ir.builder import may_raise
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists, hash_maps, membership, nested_lists
from parakeet_py.typed_ir.specialize.forms import array_of
from parakeet_py.typed_ir.specialize.instances import instance_lists
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.paths.templates import Structure, Template
from parakeet_py.typed_ir.specialize.python.table import builtin
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    ComprehensionV,
    IteratorV,
    ListValue,
    MapV,
    MethodV,
    NeverV,
    Ownership,
    RangeV,
    ScalarV,
    Static,
    TupleV,
    Value,
    grows,
    is_known,
    is_none,
    is_rows,
    known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


ABSENT = "{0} is not in list" if sys.version_info < (3, 14) else "list.index(x): x not in list"


def _line(s: Context, value: Value) -> ListValue | None:
    """The numbers of an iterable, a dict's keys among them, as a list; None if they are not numbers of one type."""
    return array_lists.line(s, dynamic_lists.keys(value) if isinstance(value, MapV) else value)


def of_set(s: Context, value: Value) -> Value:
    """The list of what a comprehension makes of the items of a set, for those who do not mind their order: of ints that
    are computed without raising. Other values as they are."""
    if not isinstance(value, ComprehensionV) or value.flatten or not isinstance(value.iterable, MapV):
        return value
    held = value.iterable
    if held.kind == "dict" or not hash_maps.is_whole(held):
        return value
    start, stores = len(s.builder.scopes[-1].statements), s.elements.stores_of_elements
    listed = s.as_list(replace(value, iterable=dynamic_lists.keys(held)))
    raises = may_raise(s.builder.scopes[-1].statements[start:]) or s.elements.stores_of_elements > stores
    if raises or not is_rows(listed) or listed.kind or listed.array.dtype not in ("int64", "bool"):
        raise s.unsupported("iteration over a set")
    return listed


def _ordered(s: Context, value: Value) -> ListValue | None:
    """A line of numbers that have an order."""
    found = _line(s, value)
    if found is None or np.dtype(found.array.dtype).kind == "c":
        return None
    if np.dtype(found.array.dtype).kind == "f":
        some = s.call(Static(np.any), [s.call(Static(np.isnan), [found.array], {})], {})
        s.check(s.builder.prim("not", s.truth(some), type=PYBOOL), "Deoptimize", "an order of floats with a NaN")
    return found


def _flipped(s: Context, array: Value) -> Value:
    return s.call(Static(np.flip), [array], {})


@builtin(sorted)
def _sorted(s: Context, value: Value, *, key: Value | None = None, reverse: Value | None = None) -> Value:
    if key is None and is_known(value) and (reverse is None or is_known(reverse)):
        try:
            return lift(sorted(known(value), reverse=reverse is not None and known(reverse)))
        except TypeError:
            raise s.hand_back("sorted of what has no order") from None
    if key is None or is_none(key):
        value = of_set(s, value)
    if isinstance(value, ComprehensionV | IteratorV):
        value = s.call(Static(list), [value], {})
    if isinstance(value, TupleV) and not value.items and (reverse is None or is_known(reverse)):
        return lift(sorted((), reverse=reverse is not None and known(reverse)))  # the key is never called
    items = _line(s, value)
    keyed = key is not None and not is_none(key)
    if items is None or keyed:
        found = records_in_order(s, value, key if keyed else None, reverse)
        if found is not None:
            return found
    if items is None:
        raise s.hand_back("sorted of what is no line of numbers")
    keys = _ordered(s, ComprehensionV("list", _gone_through(s, value), key, None, False) if keyed and key else items)
    if keys is None:
        raise s.hand_back("sorted by what is no number")
    down = _is_down(s, reverse)
    stable = {"kind": lift("stable")}
    array: Value = _flipped(s, keys.array) if down else keys.array  # equal ones keep their order both ways
    if keyed:
        order = s.call(Static(np.argsort), [array], stable)
        source: Value = _flipped(s, items.array) if down else items.array
        array = s.call(Static(np.take), [source, order], {})
    else:
        array = s.call(Static(np.sort), [array], stable)
    array = _flipped(s, array) if down else array
    assert isinstance(array, ArrayV)
    return ListValue.rows(copy_array(s, array) if down else array, items.kind, Ownership.OWN)


def _is_down(s: Context, reverse: Value | None) -> bool:
    """The order that is asked for."""
    down = False if reverse is None else s.static(reverse, "reverse")
    if not isinstance(down, int):
        raise s.hand_back(f"an order that is a {type(down).__name__}")  # not every version of Python takes it
    return bool(down)


def _gone_through(s: Context, value: Value) -> Value:
    return array_lists.shown(s, dynamic_lists.keys(value)) if isinstance(value, MapV) else value


def by_key(s: Context, value: Value, key: Value, which: str) -> Value:
    """min or max of an iterable of run-time length by a key: the first one that wins."""
    if isinstance(value, IteratorV):
        value = s.call(Static(list), [value], {})
    if dynamic_lists.is_table(value) or isinstance(key, MethodV):
        return extreme_record(s, value, key, which)
    keys = _ordered(s, ComprehensionV("list", _gone_through(s, value), key, None, False))
    if keys is None:
        return extreme_record(s, value, key, which)
    s.call_library(f"python_{which}", [keys.array])  # says that there is none
    place = s.call(Static(np.argmin if which == "min" else np.argmax), [keys.array], {})
    return s.subscript(_gone_through(s, value), s.as_python(place))


def or_default(s: Context, value: Value, default: Value, found: object) -> Value:
    """min or max of an iterable of run-time length that may be empty; `found()` is that of one which is not."""
    items = _line(s, value)
    if items is None or not callable(found):
        raise s.unsupported(f"min() or max() of {s.describe(value)} with a default")
    some = s.builder.prim("gt", items.array.extents[0], ZERO, type=PYBOOL)
    [made] = s.branch(some, lambda: [found(items)], lambda: [default])
    return made


# ---- methods of lists ------------------------------------------------------------------------------------------------


def _equal_to(s: Context, value: Value, item: Value) -> ArrayV:
    own = value.array.dtype if is_rows(value) else ""
    if not is_rows(value) or value.array.rank != 1 or value.kind == "table" or not isinstance(item, ScalarV):
        raise s.unsupported(f"{s.describe(item)} searched in such a list")
    whole = all(np.dtype(kind).kind in "iub" and kind != "uint64" for kind in (own, item.dtype))
    if own != item.dtype and not whole:  # Python compares by value
        raise s.unsupported(f"{s.describe(item)} searched in a list of {own}")
    membership.must_not_be_nan(s, item)
    equal = s.compare("eq", value.array, item)
    assert isinstance(equal, ArrayV)
    return equal


def place_of(s: Context, value: Value, item: Value, message: str = ABSENT) -> ScalarV | None:
    """The place of the first item that is equal; None if there is none ever."""
    equal = _equal_to(s, value, item)
    there = s.truth(s.call(Static(np.any), [equal], {}))
    assert isinstance(item, ScalarV)
    if item.python and item.dtype == "int64":
        s.check(there, "ValueError", message, [item.operand])
    elif "{" not in message:
        s.check(there, "ValueError", message)
    else:
        s.check(there, "Deoptimize", "an item that is not in a list")
    if s.dead:
        return None
    place = s.as_python(s.call(Static(np.argmax), [equal], {}))
    assert isinstance(place, ScalarV)
    return place


def count(s: Context, value: Value, item: Value) -> Value:
    return s.as_python(s.call(Static(np.count_nonzero), [_equal_to(s, value, item)], {}))


def list_method(s: Context, value: Value, name: str, args: list[Value], absent: str = ABSENT) -> Value:
    """value.index(...), .count(...) and .copy(); `absent`: the message about an item that is not there."""
    if is_rows(value):
        match name, args:
            case "index", [item]:
                return place_of(s, value, item, absent) or NeverV()
            case "count", [item]:
                return count(s, value, item)
            case "copy", []:
                return s.call(Static(list), [value], {})
    raise s.unsupported(f".{name}() of a list with these arguments")


def sort(s: Context, value: Value) -> ListValue:
    made = _sorted(s, value)
    if not isinstance(made, ListValue):
        raise s.unsupported(".sort() of such a list")
    return made


# ---- records ---------------------------------------------------------------------------------------------------------


def records_in_order(s: Context, value: Value, key: Value | None, reverse: Value | None) -> Value | None:
    """The sorted list; None where the items or their keys are no such records."""
    down = _is_down(s, reverse)
    found = _both(s, value, key)
    if found is None:
        return None
    items, keys = found
    instance_lists.must_stay(s, items.item)
    shared_containers.copied(s, items)
    order = _order_of(s, keys, down)
    columns = tuple(_taken(s, column, order) for column in _parts_in_use(s, items))
    return ListValue.grown(items.length, columns, items.item, nested_lists.copied_pools(s, items.pools))


def extreme_record(s: Context, value: Value, key: Value | None, which: str) -> Value:
    """min or max: the first item that has the least or greatest key."""
    found = _both(s, value, key)
    if found is None:
        raise s.unsupported(f"{which}() of what has no order that is known")
    items, keys = found
    s.call_library(f"python_{which}", [keys[0]])  # says that there is none
    if len(keys) == 1:
        place = s.call(Static(np.argmin if which == "min" else np.argmax), [keys[0]], {})
    else:
        order = _order_of(s, keys, which == "max")

        place = s.subscript(order, py(0))
    number = s.as_python(place)
    assert isinstance(number, ScalarV)
    return dynamic_lists.item_at(s, items, number.operand)


def _both(s: Context, value: Value, key: Value | None) -> tuple[ListValue, list[ArrayV]] | None:
    """The items, and the columns of their keys."""
    mark = s.checkpoint()
    items = _records(s, value)
    if items is not None:
        source = array_lists.shown(s, items) if isinstance(items.item, Scalar) else items
        if isinstance(key, MethodV) and key.name == "get" and key.object is value:
            key = MethodV(value, "__getitem__")  # which gives no None
        keyed = items if key is None else _records(s, ComprehensionV("list", source, key, None, False))
        keys = None if keyed is None else _key_columns(s, keyed)
        if keys is not None:
            return items, keys
    s.rollback(mark)
    return None


def _records(s: Context, value: Value) -> ListValue | None:
    """Items in columns; None if they have no type in common, or there are none."""
    if isinstance(value, IteratorV):
        value = s.call(Static(list), [value], {})
    value = s.as_list(value)
    if isinstance(value, MapV):
        value = dynamic_lists.keys(value)
    if isinstance(value, RangeV) or array_of(value) is not None:
        numbers = array_lists.line(s, value)
        if numbers is not None:
            return array_lists.in_a_column(numbers)
    known = iterables.static_items(value)
    if known:
        value = TupleV(tuple(known), "list")
        if any(isinstance(part, TupleV) and part.kind == "list" for part in known):
            return None  # the very lists are sorted
        try:
            value = dynamic_lists.as_grown(s, value, dynamic_lists.item_template(s, value))
        except UnsupportedError:
            return None
    return value if grows(value) and value.columns else None


def _key_columns(s: Context, keys: ListValue) -> list[ArrayV] | None:
    """Columns whose order, one after the other, is that of the keys."""
    if not _has_order(keys.item):
        return None
    columns = _parts_in_use(s, keys)
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


def _parts_in_use(s: Context, grown: ListValue) -> list[ArrayV]:
    length, one = grown.length.operand, py(1).operand
    return [make_view(s, column, (ZERO,), [(0, length, one)]) for column in grown.columns]


def _order_of(s: Context, keys: list[ArrayV], down: bool) -> ArrayV:
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


__all__ = ["by_key", "extreme_record", "list_method", "of_set", "or_default", "place_of", "sort"]
