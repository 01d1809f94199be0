"""Lists kept as an array: what they are where an array is needed, their items, and items that are assigned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, Scalar, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array
from parakeet_py.typed_ir.specialize.arrays.convert import check_numbers, check_some
from parakeet_py.typed_ir.specialize.arrays.index_entries import check_index
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.forms import FORMS, Form
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ComprehensionV,
    GrowV,
    ItemAt,
    ListV,
    RangeV,
    ScalarV,
    SliceV,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def as_array(s: Context, value: ListV, dtype: str | None) -> ArrayV:
    array = value.array
    check_some(s, array.extents[0], array.rank, dtype is not None or array.dtype == "float64")
    if value.once and dtype in (None, array.dtype):
        return replace(array, roots=frozenset({s.memory.new_root()}), readonly=False)
    if value.items != "array":
        check_numbers(s, array, dtype)
    return copy_array(s, array, dtype)


def line(s: Context, value: Value) -> ListV | None:
    """The numbers that an iterable gives, as a list; None if they are not numbers of one type."""
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
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


def in_a_column(value: ListV) -> GrowV:
    """A list of scalars as one in columns, of which the array is the only one."""
    return GrowV(ScalarV(value.array.extents[0]), (value.array,), Scalar(value.array.dtype, not value.items))


def of_argument(array: ArrayV) -> ListV:
    """A list of Python's numbers that is an argument, read into an array that nothing else shows."""
    return ListV(replace(array, readonly=False))


def borrowed(value: Value) -> ListV | None:
    """A list kept as an array, as a function sees it that is given it; None for other values."""
    return ListV(value.array, value.items) if isinstance(value, ListV) else None


def of_scalars(array: ArrayV, kind: Scalar) -> ListV:
    """The list of the elements of a new array, which are taken to be of this type."""
    return ListV(array, "" if kind.python else kind.dtype, own=True)


def of_rows(array: ArrayV, row: Value, own: bool) -> ListV:
    """The list of the rows of an array, each an item like this one."""
    return ListV(array, _items_of_rows(row), own=own)


def _items_of_rows(row: Value) -> str:
    """What a list of such rows holds: see `ListV`."""
    match row:
        case ArrayV() if row.rank > 0:
            return "array"
        case ListV(_, items) if items != "array":
            return items
        case TupleV(items, "list") if all(isinstance(item, ScalarV) for item in items):
            kinds = {item.type for item in items if isinstance(item, ScalarV)}
            if len(kinds) == 1:
                kind = kinds.pop()
                return "" if kind.python else kind.dtype
    return "table"


def subscript(s: Context, value: ListV, index: Value) -> Value:
    if not isinstance(index, SliceV):
        number = s.numeric(index)
        if not isinstance(number, ScalarV) or not (is_integer(number.dtype) or number.type == PYBOOL):
            raise s.unsupported(f"{s.describe(index)} as an index of a list")
        position = check_index(s, number, value.array.extents[0], 0, message="list index out of range")
        return item_of(s, value, indexing.read(s, value.array, ScalarV(position)))
    found = indexing.read(s, value.array, index)
    assert isinstance(found, ArrayV)
    if (value.own and found.rank == 1) or found.roots & s.arguments.list_roots.keys():
        return ListV(copy_array(s, found), value.items, own=True)
    return ListV(found, value.items, own=value.own)


def item_of(s: Context, value: Value, found: Value) -> Value:
    """The item of a list that its array has as an element or a row; of an array, the element itself."""
    if not isinstance(value, ListV):
        return found
    of_one_type(s, value)
    if not isinstance(found, ArrayV):
        return found if value.items else s.as_python(found)
    return found if value.items == "array" else ListV(found, value.items, own=value.own)


def listed(s: Context, value: Value, made: bool) -> Value | None:
    """list(value), of run-time length; `made`: it has been made for this. None for what is gone through otherwise."""
    match value:
        case GrowV():
            return value if made else dynamic_lists.copied(s, value)
        case ListV() if made or value.once:
            return value
        case ListV(array, items) if array.rank > 1:
            s.give_list("a list of lists copied whose items are assigned")  # they are those of the other list
            return ListV(copy_array(s, array), items)
        case ListV(array, items):
            return ListV(copy_array(s, array), items, own=True)
        case RangeV():
            numbers = s.as_array(value, "int64")
            assert isinstance(numbers, ArrayV)
            return ListV(numbers, own=True)
        case ArrayV(rank=1):
            return ListV(copy_array(s, value), value.dtype, own=True)
    return None


def _store(s: Context, target: ListV, index: Value, value: Value) -> bool:
    """An item assigned of a list that the function has made, which keeps its type."""
    s.need_whole(target)
    if not target.own:
        return False
    array = target.array
    kind = Scalar(array.dtype, not target.items)
    if array.rank != 1 or not isinstance(value, ScalarV) or value.type != kind:
        raise s.unsupported(f"{s.describe(value)} assigned to an item of such a list")
    if isinstance(index, SliceV):
        raise s.unsupported("a slice of a list assigned")
    if s.python.lists_given:
        raise s.unsupported("items assigned of a list that Python or a copy of it shows")
    s.python.lists_stored = True
    dynamic_lists.replace_item(s, in_a_column(target), index, value)
    return True


def is_of_python(value: Value) -> bool:
    """Are the items numbers of Python's, in lists or not?"""
    return isinstance(value, RangeV) or (isinstance(value, ListV) and not value.items)


def is_of_lists(value: Value) -> bool:
    return isinstance(value, ListV) and value.array.rank > 1 and value.items != "array"


def of_one_type(s: Context, value: Value) -> Value:
    """The value, which must not be a list of items of several types."""
    if isinstance(value, ListV) and value.items == "table":
        raise s.unsupported("a list whose items are of different types")
    return value


def _places(s: Context, value: ListV) -> tuple[ir.Operand, ItemAt]:
    return value.array.extents[0], lambda index: subscript(s, value, ScalarV(index))


def _read(value: ListV, once: bool) -> ListV:
    return ListV(value.array, value.items, once) if once or value.once else value


FORMS[ListV] = Form(
    lambda one: (one.array,),
    lambda one, parts: ListV(parts[0], one.items, own=one.own),
    lambda one: (one.items, one.array.dtype, one.array.rank),
    lambda one, other: one if other.own else replace(one, own=False),
    noun="list",
    type=list,
    length=lambda s, value: value.array.extents[0],
    places=_places,
    subscript=subscript,
    store=_store,
    array=as_array,
    elements=lambda value: value.array,
    own=lambda value: value.own,
    read=_read,
)
