"""Arrays of records (of a structured dtype): arguments, what arguments and variables hold, and what NumPy makes.

An array of records stays an object; each field that the function reads is a hidden argument, an ordinary array over the
memory of the records (`attribute_sources.column_name`). Columns of one array of records share their leading extents,
those of `RECORDS`, and no memory. `p[i]` is a `RecordV`, whose fields are elements of columns when they are read; it is
a view for NumPy, too. Where the index is an array or a mask, NumPy makes a copy: its fields are read later here, as
long as nothing has been stored. Where records are more than their fields (returned, stored to as a copy, given to a
method), the walk begins again, and NumPy applies the index (`RecordsOfPython`).

Of an array of records that an operation of Python's gives, the columns are results, too (`RecordsSpec`). They are
known by the variable of the object, so that where paths meet the array is an object like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.messages.arrays import UNUSUAL_ARRAY
from parakeet_py.signature.attribute_sources import FIELDS, RECORDS, column_name, is_column
from parakeet_py.signature.specs import ObjectSpec, Source
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.forms import parts_of
from parakeet_py.typed_ir.specialize.restarts import RecordsNeeded, RecordsOfPython
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ObjectV,
    RecordV,
    ScalarV,
    SliceV,
    Static,
    TupleV,
    Unknown,
    Value,
    known,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

ALL = Static(Ellipsis)


def source_of(s: Context, value: Value) -> Source | None:
    """Where an array of records is read from; None of other values."""
    found = known_object(s, value) if isinstance(value, ObjectV) else None
    if found is None or not isinstance(value, ObjectV) or not issubclass(found[0], np.ndarray):
        return None
    spec = s.arguments.spec(s.arguments.leaf_param[value.var])
    of_records = isinstance(spec, ObjectSpec) and (spec.whole or spec.type is np.recarray)
    return found[1] if of_records else None


def note(s: Context, records: ObjectV, names: Sequence[str], rank: int, columns: Sequence[Value]) -> None:
    """Note the columns of an array of records that Python has given."""
    s.arguments.has_unaligned = True
    arrays = {name: column for name, column in zip(names, columns, strict=True) if isinstance(column, ArrayV)}
    first = next(iter(arrays.values())).extents[:rank]
    s.arguments.records[records.var] = (
        rank,
        {name: replace(one, extents=(*first, *one.extents[rank:])) for name, one in arrays.items()},
    )


def _given(s: Context, value: Value) -> tuple[int, dict[str, ArrayV]] | None:
    """The rank and the columns of an array of records that Python has given; None of other values."""
    return s.arguments.records.get(value.var) if isinstance(value, ObjectV) else None


def is_records(s: Context, value: Value) -> bool:
    """Is this an array of records whose columns can be read?"""
    return _given(s, value) is not None or source_of(s, value) is not None


def shape_of(s: Context, value: Value) -> ArrayV | None:
    """An array that has the shape of an array of records, or of some of its records; None of other values."""
    if isinstance(value, RecordV) and not value.of_list:
        whole = shape_of(s, value.records)
        some = None if whole is None else indexing.read(s, whole, value.index)
        return some if isinstance(some, ArrayV) else None
    if (given := _given(s, value)) is not None:
        rank, columns = given
        column = min(columns.values(), key=lambda one: one.rank)
        inner = TupleV((ALL, *(py(0) for _ in range(column.rank - rank))))
        found = column if column.rank == rank else indexing.read(s, column, inner)
        return found if isinstance(found, ArrayV) else None
    source = source_of(s, value)
    return None if source is None else _taken(s, source, RECORDS)


def subscript(s: Context, value: Value, index: Value) -> Value | None:
    """value[index]: a field, or some of the records; None if it is neither."""
    if isinstance(value, RecordV):
        found = _column(s, value.records, index)
        if found is None:
            raise as_object(s, value)
        need_unchanged(s, value)
        return indexing.read(s, found, value.index)
    if _is_list_of_places(index) and source_of(s, value) is not None:
        index = s.call(Static(np.array), [index], {})
    selects = isinstance(index, ArrayV) and index.rank > 0 and np.dtype(index.dtype).kind in "biu"
    if selects and _given(s, value) is not None:
        return None  # NumPy makes the copy
    shape = shape_of(s, value) if isinstance(value, ObjectV) and (selects or _is_basic(index)) else None
    if shape is not None and isinstance(value, ObjectV):
        site = (*s.frame.path, s.frame.function.filename, s.frame.pos)
        if RecordsOfPython(site) in s.facts.known:
            return None
        indexing.read(s, shape, index)  # is it in range?
        return RecordV(value, index, copied=_done(s) if selects else None, site=site)
    return _column(s, value, index)


def as_object(s: Context, value: RecordV) -> UnsupportedError:
    """What says that records are used as an object: NumPy has to make it, where the index is applied."""
    if value.of_list:
        return s.unsupported("an item of a list, as an object")
    if value.site is None or s.python.strict:
        return s.unsupported(UNUSUAL_ARRAY)
    needed: Any = RecordsNeeded.at(s.frame.function, s.builder.pos, UNUSUAL_ARRAY)
    needed.site = value.site
    return needed  # type: ignore[no-any-return]


def places_of(s: Context, value: RecordV) -> ArrayV | None:
    """The places in the array of records that some of them have, in order; None where these are of several axes."""
    whole = shape_of(s, value.records)
    if whole is None or whole.rank != 1 or value.of_list:
        return None
    every = s.call(Static(np.arange), [ScalarV(whole.extents[0])], {})
    assert isinstance(every, ArrayV)
    places = indexing.read(s, every, value.index)
    return places if isinstance(places, ArrayV) and places.rank == 1 else None


def stay_inside(s: Context, values: Iterable[Value], outside: int) -> None:
    """Refuse values with records of an array that Python has given in a block that they leave: any but the first
    `outside` ones that are open."""
    if not s.arguments.records:
        return
    staying = s.builder.scopes[:outside]
    for value in values:
        if isinstance(value, RecordV) and value.records.var in s.arguments.records:
            home = s.builder.home.get(value.records.var)
            if not any(home is scope for scope in staying):
                raise as_object(s, value)
        stay_inside(s, parts_of(value), outside)


def need_unchanged(s: Context, value: RecordV) -> None:
    """Refuse to go on if what copies of records are read from may have been changed since."""
    if value.copied not in (None, _done(s)):
        raise as_object(s, value)


def at(s: Context, value: RecordV, places: ArrayV, index: ir.Operand) -> RecordV:
    """One of some records, inside a loop over them, which must not change what those that are copies are read from."""
    place = indexing.read(s, places, ScalarV(index))
    copied = None if value.copied is None else _done(s)
    return RecordV(value.records, place, copied=copied, site=value.site)


def _done(s: Context) -> tuple[int, int]:
    """How often memory may have been changed that arguments have, and in how many loops this is."""
    return s.python.changes, s.loops.looping + s.elements.in_body


def set_item(s: Context, value: Value, index: Value, new: Value) -> bool:
    """value[index] = new, of a field; False if it is none."""
    records, places = (value.records, value.index) if isinstance(value, RecordV) else (value, ALL)
    found = _column(s, records, index)
    if isinstance(value, RecordV) and (found is None or value.copied is not None):
        raise as_object(s, value)
    if found is None:
        return _set_record(s, value, index, new)
    if not (isinstance(new, ArrayV) and new.var is found.var):  # else `p["x"] += 1` has changed it in place
        indexing.write(s, found, places, new)
    return True


def _set_record(s: Context, value: Value, index: Value, new: Value) -> bool:
    """value[index] = new, of one record, with those of another or a tuple; False if it is none."""
    if not isinstance(value, ObjectV) or not _is_basic(index) or not isinstance(new, RecordV | TupleV):
        return False
    names, place = _names_of(s, value), subscript(s, value, index)
    if names is None or not isinstance(place, RecordV) or shape_of(s, place) is not None:
        return False
    items = new.items if isinstance(new, TupleV) and new.kind == "tuple" else None
    if isinstance(new, RecordV) and not new.of_list and _names_of(s, new.records) == names:
        items = fields_of(s, new)
    columns = [_column(s, value, Static(name)) for name in names]
    if items is None or len(items) != len(names) or not all(isinstance(item, ScalarV) for item in items):
        raise s.unsupported(UNUSUAL_ARRAY)
    for column, item in zip(columns, items, strict=True):
        if column is None:
            raise s.unsupported(UNUSUAL_ARRAY)
        indexing.write(s, column, place.index, item)
    return True


def fields_of(s: Context, value: RecordV) -> tuple[Value, ...] | None:
    """What one record holds, in the order of its fields; None of several records."""
    names = None if value.of_list else _names_of(s, value.records)
    if names is None or shape_of(s, value) is not None:
        return None
    found = [subscript(s, value, Static(name)) for name in names]
    return tuple(one for one in found if one is not None)


def _names_of(s: Context, records: Value) -> tuple[str, ...] | None:
    """The names of the fields of an array of records that are columns."""
    if (given := _given(s, records)) is not None:
        return tuple(given[1])
    source = source_of(s, records)
    if source is None:
        return None
    whole = (*source, FIELDS)
    value = s.taken(whole) if source[0] == "field" and len(source) == 2 else s.hidden_value(whole)
    try:
        names = known(value)
    except Unknown:
        return None
    return names if type(names) is tuple else None


def attribute(s: Context, value: Value, name: str) -> Value | None:
    """value.name, of an array of records or some of its records; None if that is left to Python."""
    records = value.records if isinstance(value, RecordV) else value
    if name in ("shape", "size", "ndim"):
        shape = shape_of(s, value)
        return None if shape is None else s.attribute(shape, name)
    if not _is_recarray(s, records) or hasattr(np.recarray, name):
        return None
    return subscript(s, value, Static(name))


def set_attribute(s: Context, value: Value, name: str, new: Value) -> bool:
    """value.name = new, of a field of a `numpy.recarray`; False if it is none."""
    records = value.records if isinstance(value, RecordV) else value
    if not _is_recarray(s, records) or hasattr(np.recarray, name):
        return False
    return set_item(s, value, Static(name), new)


def _is_recarray(s: Context, records: Value) -> bool:
    if not isinstance(records, ObjectV):
        return False
    if _given(s, records) is not None:
        return s.arguments.object_specs[records.var].type is np.recarray
    found = known_object(s, records)
    return found is not None and found[0] is np.recarray


def _column(s: Context, value: Value, index: Value) -> ArrayV | None:
    """The column of an array of records under a name that is known."""
    source = source_of(s, value)
    try:
        name = known(index)
    except Unknown:
        return None
    if type(name) is not str:
        return None
    if (given := _given(s, value)) is not None:
        return given[1].get(name)
    if source is None:
        return None
    column = _taken(s, source, column_name(name))
    others = [one for one in s.arguments.hidden if one[:-1] == source and is_column(one[-1])]
    if column is None or len(others) == 1:
        return column
    shape = _taken(s, source, RECORDS)
    if shape is None or shape.rank > column.rank:
        return None
    extents = (*shape.extents, *column.extents[shape.rank :])
    return replace(column, extents=extents)


def _taken(s: Context, source: Source, name: str) -> ArrayV | None:
    whole = (*source, name)
    of_argument = source[0] == "field" and len(source) == 2  # which stays what it is
    value = s.taken(whole) if of_argument else s.hidden_value(whole)
    return value if isinstance(value, ArrayV) else None


def _is_basic(index: Value) -> bool:
    """Is this an index of integers and slices?"""
    items = index.items if isinstance(index, TupleV) and index.kind == "tuple" else (index,)
    return bool(items) and all(isinstance(item, SliceV) or _is_integer(item) for item in items)


def _is_list_of_places(index: Value) -> bool:
    """Is this a list of numbers, and not one of names, which selects several fields?"""
    if not isinstance(index, TupleV) or index.kind != "list":
        return False
    return bool(index.items) and all(isinstance(item, ScalarV) for item in index.items)


def _is_integer(item: Value) -> bool:
    return isinstance(item, ScalarV) and item.dtype != "bool" and np.dtype(item.dtype).kind in "iu"
