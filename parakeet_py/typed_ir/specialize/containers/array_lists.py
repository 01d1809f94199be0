"""Lists kept as an array: what they are where an array is needed, their items, and items that are assigned; and lists
in columns (`dynamic_lists`) for those who know lists as arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.callee_effects import effects_of
from parakeet_py.base.types import PYBOOL, PYINT, TWICE_ROUNDED, Scalar, is_integer
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import index_entries, indexing
from parakeet_py.typed_ir.specialize.arrays.array_store import copy_array, new_array, store_array
from parakeet_py.typed_ir.specialize.arrays.convert import check_numbers, check_some
from parakeet_py.typed_ir.specialize.arrays.elementwise import generate
from parakeet_py.typed_ir.specialize.arrays.views import make_view
from parakeet_py.typed_ir.specialize.containers import dynamic_lists, ragged_arrays
from parakeet_py.typed_ir.specialize.forms import FORMS, Form
from parakeet_py.typed_ir.specialize.paths import tagged_scalars
from parakeet_py.typed_ir.specialize.paths.templates import EitherT, Structure, describe
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    Columns,
    ComprehensionV,
    ItemAt,
    ListValue,
    Ownership,
    RangeV,
    Rows,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TupleV,
    Value,
    grows,
    is_ragged,
    is_rows,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

SHOWN, OWN, ONCE = Ownership.SHOWN, Ownership.OWN, Ownership.ONCE
_WALKING = (len, enumerate, zip, reversed, list)


def as_array(s: Context, value: ListValue, dtype: str | None) -> ArrayV:
    array = value.array
    check_some(s, array.extents[0], array.rank, dtype is not None or array.dtype == "float64")
    if value.ownership is ONCE and dtype in (None, array.dtype):
        return replace(array, roots=frozenset({s.memory.new_root()}), readonly=False)
    if value.kind != "array":
        check_numbers(s, array, dtype)
    if not value.kind and array.dtype == "int64" and dtype in TWICE_ROUNDED:
        array = copy_array(s, array, "float64")  # as NumPy asks each of Python's ints for a float
    return copy_array(s, array, dtype)


def line(s: Context, value: Value) -> ListValue | None:
    """The numbers that an iterable gives, as a list; None if they are not numbers of one type."""
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    if dynamic_lists.is_table(value):
        return None
    value = shown(s, value)
    if isinstance(value, TupleV) and value.items and dynamic_lists.is_uniform(value):
        first = value.items[0]
        assert isinstance(first, ScalarV)
        array = s.as_array(value)
        assert isinstance(array, ArrayV)
        return ListValue.rows(array, "" if first.python else first.dtype)
    if isinstance(value, RangeV):
        array = s.as_array(value)
        assert isinstance(array, ArrayV)
        return ListValue.rows(array)
    if isinstance(value, ArrayV) and value.rank == 1:
        return ListValue.rows(value, value.dtype)
    if is_rows(value) and value.array.rank == 1 and value.kind in ("", value.array.dtype):
        return value
    return None


def in_a_column(value: ListValue) -> ListValue:
    """A list of scalars as one in columns, of which the array is the only one."""
    return ListValue.grown(ScalarV(value.array.extents[0]), (value.array,), Scalar(value.array.dtype, not value.kind))


def of_argument(array: ArrayV) -> ListValue:
    """A list of Python's numbers that is an argument, read into an array that nothing else shows."""
    return ListValue.rows(replace(array, readonly=False))


def borrowed(value: Value) -> ListValue | None:
    """A list kept as an array, as a function sees it that is given it; None for other values."""
    return ListValue.rows(value.array, value.kind) if is_rows(value) else None


def of_scalars(array: ArrayV, kind: Scalar) -> ListValue:
    """The list of the elements of a new array, which are taken to be of this type."""
    return ListValue.rows(array, "" if kind.python else kind.dtype, OWN)


def of_rows(array: ArrayV, row: Value, own: bool) -> ListValue:
    """The list of the rows of an array, each an item like this one."""
    return ListValue.rows(array, _kind_of_rows(row), OWN if own else SHOWN)


def _kind_of_rows(row: Value) -> str:
    """What a list of such rows holds: see `Rows`."""
    match row:
        case ArrayV() if row.rank > 0:
            return "array"
        case ListValue(form=Rows(kind)) if kind != "array":
            return kind
        case TupleV(items, "list") if all(isinstance(item, ScalarV) for item in items):
            types = {item.type for item in items if isinstance(item, ScalarV)}
            if len(types) == 1:
                only = types.pop()
                return "" if only.python else only.dtype
    return "table"


def subscript(s: Context, value: ListValue, index: Value) -> Value:
    if not isinstance(index, SliceV):
        number = s.numeric(index)
        if not isinstance(number, ScalarV) or not (is_integer(number.dtype) or number.type == PYBOOL):
            raise s.unsupported(f"{s.describe(index)} as an index of a list")
        position = index_entries.check_index(s, number, value.array.extents[0], 0, message="list index out of range")
        return item_of(s, value, indexing.read(s, value.array, ScalarV(position)))
    found = indexing.read(s, value.array, index)
    assert isinstance(found, ArrayV)
    shared_containers.copied(s, value)
    if (value.ownership is OWN and found.rank == 1) or found.roots & s.arguments.list_roots.keys():
        return ListValue.rows(copy_array(s, found), value.kind, OWN)
    return _kept(value, found)


def item_of(s: Context, value: Value, found: Value) -> Value:
    """The item of a list that its array has as an element or a row; of an array, the element itself."""
    if not is_rows(value):
        return found
    of_one_type(s, value)
    if not isinstance(found, ArrayV):
        return found if value.kind else s.as_python(found)
    return found if value.kind == "array" else shared_containers.read(s, _kept(value, found), value)


def listed(s: Context, value: Value, made: bool) -> Value | None:
    """list(value), of run-time length; `made`: it has been made for this. None for what is gone through otherwise."""
    match value:
        case ListValue(form=Columns()):
            return value if made else dynamic_lists.copied(s, value)
        case ListValue(form=Rows(kind), columns=(array,)):
            if made or value.ownership is ONCE:
                return value
            shared_containers.copied(s, value)
            if array.rank > 1:
                s.give_list("a list of lists copied whose items are assigned")  # they are those of the other list
            return ListValue.rows(copy_array(s, array), kind, SHOWN if array.rank > 1 else OWN)
        case RangeV():
            numbers = s.as_array(value, "int64")
            assert isinstance(numbers, ArrayV)
            return ListValue.rows(numbers, ownership=OWN)
        case ArrayV(rank=1):
            return ListValue.rows(copy_array(s, value), value.dtype, OWN)
    return None


def _store(s: Context, target: ListValue, index: Value, value: Value) -> bool:
    """An item assigned of a list that the function has made, which keeps its type."""
    s.need_whole(target)
    if target.ownership is not OWN:
        return False
    array = target.array
    kind = Scalar(array.dtype, not target.kind)
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
    return isinstance(value, RangeV) or (is_rows(value) and not value.kind)


def is_of_lists(value: Value) -> bool:
    return is_rows(value) and value.array.rank > 1 and value.kind != "array"


def of_one_type(s: Context, value: Value) -> Value:
    """The value, which must not be a list of items of several types."""
    if is_rows(value) and value.kind == "table":
        raise s.unsupported("a list whose items are of different types")
    return value


# ---- lists in columns as arrays --------------------------------------------------------------------------------------


def shown(s: Context, value: Value) -> Value:
    """A grown list as the rows of an array; all else as it is."""
    if is_ragged(value):
        return ragged_arrays.stacked(s, value)
    if not grows(value):
        return value
    length = value.length.operand
    parts = [dynamic_lists.in_use(s, column, length) for column in value.columns]
    match value.item:
        case None:
            return TupleV((), "list")
        case Scalar() as kind:
            return ListValue.rows(parts[0], "" if kind.python else kind.dtype)
        case EitherT(kinds):
            return ListValue.rows(_common(s, value, kinds, parts[0]), "table")
        case Structure(TupleV(kind="list"), ()):
            return ListValue.rows(new_array(s, (length, ZERO), "float64", "rows"), "table", ONCE)
        case Structure(TupleV()) if all(isinstance(part, Scalar) for part in value.item.parts):
            dtype = np.result_type(*(np.dtype(part.dtype) for part in parts)).name
            array = new_array(s, (length, ir.Const(len(parts), PYINT)), dtype, "rows")
            for place, part in enumerate(parts):
                store_array(s, make_view(s, array, (ZERO, ir.Const(place, PYINT)), [(0, length, ONE)]), part)
            return ListValue.rows(array, "table", ONCE)
    what = f"a list each of whose items is {describe(value.item)}, where an array of numbers is needed"
    raise s.unsupported(what, "go through the items in a loop")


def _common(s: Context, grown: ListValue, kinds: Sequence[Scalar], tags: ArrayV) -> ArrayV:
    """The items of a list of scalars of several types as one array, of the type that NumPy gives it: the common type
    of those that there are, here taken to be that of all types there may be."""
    dtype = np.result_type(*(np.dtype(kind.dtype) for kind in kinds)).name
    wide = [number for number, kind in enumerate(kinds) if kind.dtype == dtype]
    for needed in [wide] if wide else [[number] for number in range(len(kinds))]:
        found = functools.reduce(
            lambda a, b: s.binary("or", a, b), [s.compare("eq", tags, py(number)) for number in needed]
        )
        some = s.truth(s.call(Static(np.any), [found], {}))
        s.check(some, "Deoptimize", "a list that might hold a wider type than it does")

    def element(point: tuple[ir.Var, ...]) -> list[ir.Operand]:
        item = dynamic_lists.item_at(s, grown, point[0])
        assert isinstance(item, TaggedScalar)
        return [tagged_scalars.as_type(s, item, Scalar(dtype))]

    return generate(s, (grown.length.operand,), element)[0]


def arguments(s: Context, function: Value, values: list[Value]) -> list[Value]:
    """The arguments of a call: grown lists are shown, but only to functions that will not keep them."""
    if not any(map(_is_kept_by_length, values)):
        return values
    target = function.object if isinstance(function, Static) else None
    module = str(getattr(target, "__module__", None) or "")
    if target is len or module.startswith("parakeet_py.library."):
        return values
    effects = effects_of(target)
    if effects.keeps and not effects.lazy:
        values = [shown(s, value) if dynamic_lists.is_table(value) else value for value in values]
        if not any(map(_is_kept_by_length, values)):
            return values  # arrays made for the call
        raise s.unsupported("a list that is changed, given to a function", "give the function an array")
    return [_given(s, target, value) for value in values]


def _is_kept_by_length(value: Value) -> bool:
    return isinstance(value, ListValue) and not is_rows(value)


def _given(s: Context, target: object, value: Value) -> Value:
    if is_ragged(value) and target in (len, enumerate, zip, reversed):
        return value
    if dynamic_lists.is_table(value) and target in (len, enumerate, zip, reversed, list, sorted, min, max):
        return value
    if grows(value) and not isinstance(value.item, Scalar | None) and target in _WALKING:
        return value
    if is_ragged(value) and target in (np.concatenate, np.hstack) and len(value.columns) == 2:
        some = s.builder.prim("gt", value.length.operand, ZERO, type=PYBOOL)
        s.check(some, "Deoptimize", "an array of an empty list")
        return TupleV((ragged_arrays.flat(s, value),), "list")
    return shown(s, value)


def keywords(s: Context, function: Value, values: dict[str, Value]) -> dict[str, Value]:
    """The same for keyword arguments."""
    return dict(zip(values, arguments(s, function, list(values.values())), strict=True))


# ---- forms -----------------------------------------------------------------------------------------------------------


def _places(s: Context, value: ListValue) -> tuple[ir.Operand, ItemAt]:
    return value.array.extents[0], lambda index: subscript(s, value, ScalarV(index))


def _read(value: ListValue, once: bool) -> ListValue:
    if not once and value.ownership is not ONCE:
        return value
    return ListValue.rows(value.array, value.kind, ONCE if once else SHOWN)


def _kept(value: ListValue, array: ArrayV) -> ListValue:
    """The same list of another array; one that is read once is not, then."""
    return ListValue.rows(array, value.kind, OWN if value.ownership is OWN else SHOWN)


FORMS[Rows] = Form(
    lambda one: (one.array,),
    lambda one, parts: _kept(one, parts[0]),
    lambda one: (one.kind, one.array.dtype, one.array.rank),
    lambda one, other: one if other.ownership is OWN else replace(one, ownership=SHOWN),
    noun="list",
    type=list,
    length=lambda s, value: value.array.extents[0],
    places=_places,
    subscript=subscript,
    store=_store,
    array=as_array,
    elements=lambda value: value.array,
    own=lambda value: value.ownership is OWN,
    nested=lambda value: value.array.rank > 1 and value.kind != "array",
    read=_read,
)
