"""Dicts and sets that a function changes by keys computed at run time: counters, memos, what has been seen.

The frontend makes every change a new value, as for lists (`frontend/ownership`). As long as all keys are
known such a dict is a `DictV`. From the first key on that is not it is a `MapV`: its entries are a grown list
(`dynamic_lists`) of keys or (key, value) pairs, in the order of insertion, beside a hash table of their numbers
(`library/python/hash_tables.py`). Keys are integers, floats (but nan) or tuples of these, for which Python's equality
is that of their values; all keys of a dict have one type, so that it gives the objects back that it was given.

Sets are not iterated: the order of their items is that of CPython's own table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.errors import KEY
from parakeet_py.base.types import PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import array_store
from parakeet_py.typed_ir.specialize.compile_time_values import is_demandable
from parakeet_py.typed_ir.specialize.containers import array_lists, dynamic_lists, nested_lists, set_operators, strings
from parakeet_py.typed_ir.specialize.forms import FORMS, Form, form_of
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.paths.templates import ArrayT, Structure, Template, template_of, types_of
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    CharV,
    ComprehensionV,
    DictV,
    ItemAt,
    MapV,
    NeverV,
    ScalarV,
    TupleV,
    Value,
    grows,
    is_known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

SMALLEST = 16  # places of a table


def new_set(s: Context, items: Sequence[Value]) -> MapV:
    made = _empty(s, "set")
    for item in items:
        made = put(s, made, item, None)
    return made


def displayed(s: Context, items: Sequence[Value]) -> MapV:
    """A set that is written out; where Python is given it as it is, Python makes it of the items, without a table."""
    made = new_set(s, items)
    s.python.displays[id(made)] = made, tuple(items)
    return made


def set_of(s: Context, value: Value) -> MapV:
    """set(value)"""
    if isinstance(value, ComprehensionV):
        value = s.as_list(value)
    if isinstance(value, MapV):  # in another order than that of Python
        made = replace(value, entries=dynamic_lists.copied(s, dynamic_lists.keys(value)), kind="reordered")
        return replace(made, table=_table(s, made))
    items = iterables.static_items(value)
    if items is not None:
        return new_set(s, items)
    item = form_of(value).item(value)
    characters = strings.are_characters(item)
    numbers = array_lists.line(s, dynamic_lists.with_items(value, PYINT) if characters else value)
    if numbers is None or not _is_whole(Scalar(numbers.array.dtype)):
        raise s.hand_back(f"a set of {s.describe(value)}")
    found = s.call_library("distinct", [numbers.array])
    assert isinstance(found, TupleV)
    column, count, table = found.items
    assert isinstance(column, ArrayV) and isinstance(count, ScalarV) and isinstance(table, ArrayV)
    kind = item if characters else array_lists.in_a_column(numbers).item
    length = s.builder.as_count(count.operand)
    return MapV(dynamic_lists.of_columns(length, (column,), kind), table, "set")


def copied(s: Context, value: MapV) -> MapV:
    """dict(value)"""
    made = replace(value, entries=dynamic_lists.copied(s, value.entries))
    return replace(made, table=_table(s, made)) if made.entries.columns else _empty(s, "dict")


def _empty(s: Context, kind: str) -> MapV:
    table = s.call_library("empty_table", [py(SMALLEST)])
    assert isinstance(table, ArrayV)
    return MapV(dynamic_lists.of_columns(ZERO, (), None), table, kind)


# ---- templates -------------------------------------------------------------------------------------------------------


def is_map(value: Value) -> bool:
    return isinstance(value, MapV | DictV)


def joined(s: Context, left: Structure, right: Structure) -> Structure:
    """The template of a dict or set that has different keys on two paths."""
    kinds = [one.like.kind if isinstance(one.like, MapV) else "dict" for one in (left, right)]
    if kinds[0] != kinds[1] and "dict" in kinds:
        raise s.unsupported("a name is a dict on one path and a set on another")
    some = any(isinstance(one.like, MapV) for one in (left, right))
    roots: frozenset[int] = frozenset() if some else frozenset({s.memory.new_root()})
    entries = []
    for one in (left, right):
        if isinstance(one.like, MapV):
            held, table = one.parts
            assert isinstance(held, Structure) and isinstance(table, ArrayT)
            roots |= table.roots
        else:
            assert isinstance(one.like, DictV)
            held = template_of(_pairs(one.like), varying=True)
            assert isinstance(held, Structure)
        entries.append(held)
    grown = dynamic_lists.grown_template(s, *entries)
    assert grows(grown.like)
    table = ArrayT(Array("int64", 1, "C"), (None,), roots, False, (False,), ())
    like = MapV(grown.like, _NO_TABLE, kinds[0] if kinds[0] == kinds[1] else "reordered")
    return Structure(like, (grown, table))


_NO_TABLE = ArrayV(ir.Var("table", Array("int64", 1, "C")), (ZERO,), frozenset())


def _pairs(value: DictV) -> TupleV:
    return TupleV(tuple(TupleV((strings.as_key(lift(key)), item)) for key, item in value.items), "list")


def as_map(s: Context, value: Value, item: Template) -> MapV:
    """A dict of known keys, or one whose entries have another template."""
    if isinstance(value, MapV):
        return replace(value, entries=dynamic_lists.as_grown(s, value.entries, item))
    assert isinstance(value, DictV)
    entries = dynamic_lists.as_grown(s, _pairs(value), item)
    if not value.items:
        return replace(_empty(s, "dict"), entries=entries)
    made = MapV(entries, _NO_TABLE, "dict")
    return replace(made, table=_table(s, made))


def _table(s: Context, value: MapV) -> ArrayV:
    """A new table of the entries."""
    columns = TupleV(tuple(_key_columns(s, value)), "list")
    table = s.call_library("table_of", [columns, value.entries.length])
    assert isinstance(table, ArrayV)
    return table


# ---- keys ------------------------------------------------------------------------------------------------------------


def _is_whole(kind: Scalar) -> bool:
    return np.dtype(kind.dtype).kind in "iub" and kind.dtype != "uint64"


def _is_key(kind: Scalar) -> bool:
    return _is_whole(kind) or np.dtype(kind.dtype).kind == "f"


def is_whole(value: MapV) -> bool:
    """Are the keys integers?"""
    template = dynamic_lists.key_template(value)
    return template is None or (isinstance(template, Scalar) and _is_whole(template))


def _key_columns(s: Context, value: MapV) -> list[ArrayV]:
    kinds = types_of(dynamic_lists.key_template(value))
    if not all(isinstance(kind, Scalar) and _is_key(kind) for kind in kinds) or not kinds:
        raise s.unsupported("dict keys and items of sets that are no numbers")
    return list(value.entries.columns[: len(kinds)])


def _key_parts(s: Context, key: Value) -> list[Value]:
    """The integers that a key consists of; for floats, those that have the same bits."""
    b = s.builder
    parts = key.items if isinstance(key, TupleV) and key.kind == "tuple" else (key,)
    found: list[Value] = []
    for part in parts:
        part = part.code if isinstance(part, CharV) else part
        if not isinstance(part, ScalarV) or not _is_key(part.type):
            raise s.unsupported(f"{s.describe(key)} as a key of a dict or an item of a set")
        operand = part.operand
        if not _is_whole(part.type):
            wide = Scalar("float64")
            operand = b.prim("add", b.cast(operand, wide), ir.Const(0.0, wide), type=wide)  # there is one zero
            s.check(b.prim("eq", operand, operand), "Deoptimize", "a nan as a key")
            operand = b.prim("bits", operand, type=Scalar("int64"))
        found.append(ScalarV(b.cast(operand, PYINT)))
    return found


def _find(s: Context, value: MapV, key: Value) -> tuple[ir.Operand, ir.Operand]:
    """The number of an entry (-1: there is none) and its place in the table."""
    key = strings.as_key(key)
    parts = _key_parts(s, key)
    columns = _key_columns(s, value) if value.entries.item is not None else []
    if columns and _kinds(template_of(key, varying=True)) != _kinds(dynamic_lists.key_template(value)):
        raise s.unsupported("keys of different kinds in one dict")
    if columns and len(columns) != len(parts):
        raise s.unsupported("keys of different lengths in one dict")
    given = key.items if isinstance(key, TupleV) else (key,)
    given = tuple(part.code if isinstance(part, CharV) else part for part in given)
    whole = [_is_whole(part.type) for part in given if isinstance(part, ScalarV)]
    if columns and whole != [_is_whole(Scalar(column.dtype)) for column in columns]:
        raise s.unsupported("integers and floats as keys of one dict")
    if not columns:
        return ir.Const(-1, PYINT), ZERO
    found = s.call_library("find_entry", [value.table, TupleV(tuple(columns), "list"), TupleV(tuple(parts), "list")])
    assert isinstance(found, TupleV)
    entry, place = found.items
    assert isinstance(entry, ScalarV) and isinstance(place, ScalarV)
    for operand in (entry.operand, place.operand):
        if isinstance(operand, ir.Var):
            s.builder.small.add(operand)
    return entry.operand, place.operand


def comparable_columns(s: Context, one: MapV, other: MapV) -> tuple[tuple[ArrayV, ...], tuple[ArrayV, ...]]:
    """The columns of the keys of two, which must be of one type: that of the items of either is that of the result."""
    if _types(dynamic_lists.key_template(one)) != _types(dynamic_lists.key_template(other)):
        raise s.unsupported("sets of different types")
    return tuple(_key_columns(s, one)), tuple(_key_columns(s, other))


def _types(template: Template) -> object:
    """What two templates of keys have in common whose items are of one type."""
    match template:
        case Structure(TupleV(kind=kind, named=named), parts):
            return kind, named, tuple(map(_types, parts))
        case Structure(like, parts):
            return type(like), tuple(map(_types, parts))
    return template


def has_floats(value: MapV) -> bool:
    """May keys be equal that are not the same number, as zeros are?"""
    return any(isinstance(kind, Scalar) and not _is_whole(kind) for kind in types_of(dynamic_lists.key_template(value)))


def with_entries(s: Context, like: MapV, columns: Value, count: Value) -> MapV:
    """A set with such items, which has no table yet."""
    assert isinstance(columns, TupleV) and isinstance(count, ScalarV)
    arrays = [column for column in columns.items if isinstance(column, ArrayV)]
    length = s.builder.as_count(count.operand)
    return MapV(dynamic_lists.of_columns(length, arrays, like.entries.item), _NO_TABLE, "reordered")


def emptied(s: Context) -> MapV:
    """A set that has had items."""
    return _empty(s, "reordered")


def with_table(s: Context, value: MapV) -> MapV:
    """A new set of these items, whose order is not that of Python's."""
    if value.table is _NO_TABLE:
        return replace(value, table=_table(s, value))
    return replace(copied(s, value), kind="reordered")


def _kinds(template: Template) -> object:
    """What keys must have in common to be compared by their numbers: tuples and characters are no numbers."""
    match template:
        case Structure(like, parts):
            return type(like), tuple(map(_kinds, parts))
    return None


def _present(s: Context, entry: ir.Operand) -> ir.Operand:
    return s.builder.prim("ge", entry, ZERO, type=PYBOOL)


# ---- reading ---------------------------------------------------------------------------------------------------------


def wants_table(s: Context, value: DictV, key: Value) -> bool:
    """Is this a key computed at run time, of a dict of known integers?"""
    if isinstance(key, CharV):
        return all(type(own) is str and len(own) == 1 for own, _ in value.items)
    if not isinstance(key, ScalarV | TupleV) or is_known(key):
        return False
    asked = isinstance(key, ScalarV) and isinstance(key.operand, ir.Var) and is_demandable(s, key.operand)
    if asked and not (all(isinstance(item, ScalarV) for _, item in value.items) and _fits(key, value)):
        return False
    return all(type(own) in (int, bool) for own, _ in value.items)


def _fits(key: Value, value: DictV) -> bool:
    """Is this an integer, or a key of a dict without entries?"""
    return not value.items or (isinstance(key, ScalarV) and _is_whole(key.type))


def table_for(s: Context, value: DictV) -> MapV:
    return as_map(s, value, _item_of(s, value))


def contains(s: Context, value: MapV, key: Value) -> ir.Operand:
    return _present(s, _find(s, value, key)[0])


def _value_at(s: Context, value: MapV, entry: ir.Operand) -> Value:
    pair = dynamic_lists.item_at(s, value.entries, entry)
    assert isinstance(pair, TupleV)
    return shared_containers.read(s, pair.items[1], value)


def subscript(s: Context, value: MapV, key: Value) -> Value:
    """value[key]"""
    if value.kind != "dict":
        raise s.unsupported("an item of a set")
    entry = entry_of(s, value, key)
    return NeverV() if entry is None else _value_at(s, value, entry)


def entry_of(s: Context, value: MapV, key: Value) -> ir.Operand | None:
    """The number of an entry that has to be there; None if there is none ever."""
    entry, _ = _find(s, value, key)
    if isinstance(key, ScalarV) and key.python and key.dtype == "int64":
        s.check(_present(s, entry), "KeyError", KEY, [key.operand])
    elif s.guards and s.guards[-1].catches(KeyError) and not s.guards[-1].keeps:
        s.check(_present(s, entry), "KeyError", "")
    else:
        s.check(_present(s, entry), "Deoptimize", "a key that is not there")
    return None if s.dead else entry


def method(s: Context, value: MapV, name: str, args: Sequence[Value]) -> Value:
    match name, args:
        case "items", [] if value.kind == "dict":
            shared_containers.may_be(s, value.entries, value)
            return value.entries
        case "keys", [] if value.kind == "dict":
            return dynamic_lists.keys(value)
        case "values", [] if value.kind == "dict":
            shared_containers.may_be(s, listed := dynamic_lists.values(value), value)
            return listed
        case "__getitem__", [key]:
            return subscript(s, value, key)
        case "get", [key, *default] if value.kind == "dict" and len(default) < 2:
            entry, _ = _find(s, value, key)
            other = default[0] if default else NONE
            if isinstance(entry, ir.Const):
                return other
            [found] = s.branch(_present(s, entry), lambda: [_value_at(s, value, entry)], lambda: s.settle([other]))
            return found
    if value.kind != "dict" and len(args) == 1:
        made = set_operators.method(s, value, name, args[0])
        if made is not None:
            return made
    if name in _READING:
        raise s.hand_back(f".{name}() of a {'dict' if value.kind == 'dict' else 'set'}")
    raise s.unsupported(f".{name}() of a {'dict' if value.kind == 'dict' else 'set'}")


_READING = frozenset(
    ["union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint", "copy"]
)


# ---- changes ---------------------------------------------------------------------------------------------------------


def change(s: Context, held: MapV | DictV, change: str, args: Sequence[Value]) -> list[Value]:
    """The outs of a change (see `list_changes.change`)."""
    value = held if isinstance(held, MapV) else as_map(s, held, _item_of(s, held))
    is_dict = value.kind == "dict"
    match change, args:
        case "set", [key, item] if is_dict:
            return [put(s, value, key, item)]
        case "add", [item] if not is_dict:
            return [put(s, value, item, None)]
        case "clear", []:
            return [DictV(()) if is_dict else _empty(s, "reordered")]
        case "delete", [key] if is_dict:
            entry = entry_of(s, value, key)
            return [NeverV()] if entry is None else [_without(s, value, entry)]
        case "remove", [key] if not is_dict:
            entry = entry_of(s, value, key)
            return [NeverV()] if entry is None else [_without(s, value, entry)]
        case "discard", [key] if not is_dict:
            found, _ = _find(s, value, key)
            if isinstance(found, ir.Const):
                return [value]
            reordered = replace(value, kind="reordered")
            return s.branch(_present(s, found), lambda: [_without(s, value, found)], lambda: [reordered])
        case "pop", [key] if is_dict:
            entry = entry_of(s, value, key)
            if entry is None:
                return [NeverV(), NeverV()]
            return [_value_at(s, value, entry), _without(s, value, entry)]
        case "setdefault", [key, default] if is_dict:
            value = _fitting(s, value, key, default)
            entry, _ = _find(s, value, key)
            there = _present(s, entry)
            return s.branch(
                there, lambda: [_value_at(s, value, entry), value], lambda: [default, put(s, value, key, default)]
            )
    raise s.unsupported(f".{change}() of a {'dict' if is_dict else 'set'}")


def _item_of(s: Context, held: DictV) -> Template:
    return dynamic_lists.join_items(s, [template_of(pair, varying=True) for pair in _pairs(held).items])


def _fitting(s: Context, value: MapV, key: Value, item: Value | None) -> MapV:
    """The same with a template that an entry fits."""
    key = strings.as_key(key)
    _key_parts(s, key)
    entry = key if item is None else TupleV((key, item))
    old = [] if value.entries.item is None else [value.entries.item]
    template = dynamic_lists.join_items(s, [*old, template_of(entry, varying=True)])
    made = as_map(s, value, template)
    _key_columns(s, made)
    return made


def put(s: Context, value: MapV, key: Value, item: Value | None) -> MapV:
    """With an entry for a key: a new one, or the old one with another value."""
    b = s.builder
    key = strings.as_key(key)
    value = _fitting(s, value, key, item)
    entry, place = _find(s, value, key)
    entries, table = value.entries, value.table
    own = len(types_of(dynamic_lists.key_template(value)))

    def added() -> list[Value]:
        grown = dynamic_lists.append(s, entries, key if item is None else TupleV((key, item)))
        s.will_store(table)
        number = b.cast(grown.length.operand, Scalar("int64"))
        b.emit(ir.Store(table.var, (place,), number))
        twice = b.index_mul(grown.length.operand, ir.Const(2, PYINT))
        full = b.prim("gt", twice, table.extents[0], type=PYBOOL)
        larger = s.branch(full, lambda: [_table(s, replace(value, entries=grown))], lambda: [table])
        return [grown, *larger]

    def kept() -> list[Value]:
        if item is not None:
            template = entries.item.parts[1]
            pools = list(entries.pools)
            leaves = nested_lists.leaves_in(s, item, template, pools)
            array_store.store_leaves(s, entries.columns[own:], entry, leaves)
            return [replace(entries, pools=tuple(pools)), table]
        return [entries, table]

    if isinstance(entry, ir.Const):
        found = added()
    else:
        found = s.branch(b.prim("lt", entry, ZERO, type=PYBOOL), added, kept)
    grown, larger = found
    assert grows(grown) and isinstance(larger, ArrayV)
    return MapV(grown, larger, value.kind)


def _without(s: Context, value: MapV, entry: ir.Operand) -> MapV:
    """Without an entry; those behind it move up, and the table is made anew."""
    entries = dynamic_lists.without(s, value.entries, entry)
    made = MapV(entries, value.table, "dict" if value.kind == "dict" else "reordered")
    return replace(made, table=_table(s, made))


__all__ = ["change", "contains", "joined", "method", "new_set", "set_of", "subscript"]


def _places(s: Context, value: MapV) -> tuple[ir.Operand, ItemAt] | None:
    if value.kind != "dict":
        return None
    listed = dynamic_lists.keys(value)
    return listed.length.operand, lambda index: dynamic_lists.item_at(s, listed, index)


FORMS[MapV] = Form(
    lambda one: (one.entries, one.table),
    lambda one, parts: MapV(parts[0], parts[1], one.kind),
    lambda one: (one.entries.item, one.kind),
    places=_places,
    length=lambda s, value: value.entries.length.operand,
    subscript=subscript,
    convert=lambda s, like, value: as_map(s, value, like.entries.item) if is_map(value) else value,
)
