"""Python's `sorted`, `min` and `max` by a key, and the methods of lists that search and sort, over numbers.

What they go through becomes an array of numbers of one type (`line`), its keys likewise. Python's order of floats among
which there is a NaN depends on its algorithm: Python takes over then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL
from parakeet_py.typed_ir.builder import may_raise
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array
from parakeet_py.typed_ir.specialize.containers import dynamic_lists, hash_maps, records
from parakeet_py.typed_ir.specialize.python.table import builtin
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    GrowV,
    IteratorV,
    ListV,
    MapV,
    MethodV,
    NeverV,
    RangeV,
    ScalarV,
    Static,
    TupleV,
    Value,
    is_known,
    is_none,
    known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


ABSENT = "{0} is not in list"


def line(s: Context, value: Value) -> ListV | None:
    """The numbers that an iterable gives, as a list; None if they are not numbers of one type."""
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    if isinstance(value, MapV):
        value = hash_maps.keys(value)
    if dynamic_lists.is_table(value):
        return None
    value = dynamic_lists.shown(s, value)
    if isinstance(value, TupleV) and value.items and dynamic_lists.is_uniform(value):
        first = value.items[0]
        assert isinstance(first, ScalarV)
        array = s.as_array(value)
        assert isinstance(array, ArrayV)
        return ListV(array, "" if first.python else first.dtype)
    if isinstance(value, RangeV):
        array = s.as_array(value)
        assert isinstance(array, ArrayV)
        return ListV(array)
    if isinstance(value, ArrayV) and value.rank == 1:
        return ListV(value, value.dtype)
    if isinstance(value, ListV) and value.array.rank == 1 and value.items in ("", value.array.dtype):
        return value
    return None


def of_set(s: Context, value: Value) -> Value:
    """The list of what a comprehension makes of the items of a set, for those who do not mind their order: of ints that
    are computed without raising. Other values as they are."""
    if not isinstance(value, ComprehensionV) or value.flatten or not isinstance(value.iterable, MapV):
        return value
    held = value.iterable
    if held.kind == "dict" or not hash_maps.is_whole(held):
        return value
    start, stores = len(s.builder.scopes[-1].statements), s.elements.stores_of_elements
    listed = s.as_list(replace(value, iterable=hash_maps.keys(held)))
    raises = may_raise(s.builder.scopes[-1].statements[start:]) or s.elements.stores_of_elements > stores
    if raises or not isinstance(listed, ListV) or listed.items or listed.array.dtype not in ("int64", "bool"):
        raise s.unsupported("iteration over a set")
    return listed


def _ordered(s: Context, value: Value) -> ListV | None:
    """A line of numbers that have an order."""
    found = line(s, value)
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
    items = line(s, value)
    keyed = key is not None and not is_none(key)
    if items is None or keyed:
        found = records.in_order(s, value, key if keyed else None, reverse)
        if found is not None:
            return found
    if items is None:
        raise s.hand_back("sorted of what is no line of numbers")
    keys = _ordered(s, ComprehensionV("list", _gone_through(s, value), key, None, False) if keyed and key else items)
    if keys is None:
        raise s.hand_back("sorted by what is no number")
    down = reverse is not None and bool(s.static(reverse, "reverse"))
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
    return ListV(copy_array(s, array) if down else array, items.items, own=True)


def _gone_through(s: Context, value: Value) -> Value:
    return dynamic_lists.shown(s, hash_maps.keys(value)) if isinstance(value, MapV) else value


def by_key(s: Context, value: Value, key: Value, which: str) -> Value:
    """min or max of an iterable of run-time length by a key: the first one that wins."""
    if isinstance(value, IteratorV):
        value = s.call(Static(list), [value], {})
    if dynamic_lists.is_table(value) or isinstance(key, MethodV):
        return records.extreme(s, value, key, which)
    keys = _ordered(s, ComprehensionV("list", _gone_through(s, value), key, None, False))
    if keys is None:
        return records.extreme(s, value, key, which)
    s.call_library(f"python_{which}", [keys.array])  # says that there is none
    place = s.call(Static(np.argmin if which == "min" else np.argmax), [keys.array], {})
    return s.subscript(_gone_through(s, value), s.as_python(place))


def or_default(s: Context, value: Value, default: Value, found: object) -> Value:
    """min or max of an iterable of run-time length that may be empty; `found()` is that of one which is not."""
    items = line(s, value)
    if items is None or not callable(found):
        raise s.unsupported(f"min() or max() of {s.describe(value)} with a default")
    some = s.builder.prim("gt", items.array.extents[0], ZERO, type=PYBOOL)
    [made] = s.branch(some, lambda: [found(items)], lambda: [default])
    return made


# ---- methods of lists ------------------------------------------------------------------------------------------------


def _equal_to(s: Context, value: ListV, item: Value) -> ArrayV:
    own = value.array.dtype
    if value.array.rank != 1 or value.items == "table" or not isinstance(item, ScalarV):
        raise s.unsupported(f"{s.describe(item)} searched in such a list")
    whole = all(np.dtype(kind).kind in "iub" and kind != "uint64" for kind in (own, item.dtype))
    if own != item.dtype and not whole:  # Python compares by value
        raise s.unsupported(f"{s.describe(item)} searched in a list of {own}")
    equal = s.compare("eq", value.array, item)
    assert isinstance(equal, ArrayV)
    return equal


def place_of(s: Context, value: ListV, item: Value, message: str = ABSENT) -> ScalarV | None:
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


def count(s: Context, value: ListV, item: Value) -> Value:
    return s.as_python(s.call(Static(np.count_nonzero), [_equal_to(s, value, item)], {}))


def list_method(s: Context, value: Value, name: str, args: list[Value], absent: str = ABSENT) -> Value:
    """value.index(...), .count(...) and .copy(); `absent`: the message about an item that is not there."""
    if isinstance(value, ListV):
        match name, args:
            case "index", [item]:
                return place_of(s, value, item, absent) or NeverV()
            case "count", [item]:
                return count(s, value, item)
            case "copy", []:
                return s.call(Static(list), [value], {})
    raise s.unsupported(f".{name}() of a list with these arguments")


def sort(s: Context, value: Value) -> ListV | GrowV:
    made = _sorted(s, value)
    if not isinstance(made, ListV | GrowV):
        raise s.unsupported(".sort() of such a list")
    return made


__all__ = ["by_key", "line", "list_method", "of_set", "or_default", "place_of", "sort"]
