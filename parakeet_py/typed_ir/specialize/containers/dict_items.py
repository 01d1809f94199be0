"""Dicts that arguments or variables hold: their items are fields of them, as attributes are of other objects.

`params["W"]` reads a hidden argument (`fields`), so a signature holds of a dict what the function uses: the items under
keys that are known when it is compiled, and all keys in their order where it asks for these (`in`, `len`, loops,
`items()`). Assigning an item that is there is assigning a field (`assigned_attributes`): the dict gets it when the call
ends. What else changes a dict, keys that are not known and keys that are not there are left to Python, and with an
operation of Python's that could change dicts all of them are. So is all that changes a dict that a variable holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parakeet_py.signature.attribute_sources import KEYS, item_name
from parakeet_py.signature.specs import Source
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    DictV,
    IteratorV,
    ObjectV,
    TupleV,
    Unknown,
    Value,
    known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

VIEWS = ("items", "keys", "values")


def source_of(s: Context, value: Value) -> Source | None:
    """Where a dict that is an argument, or part of one, is read from; None for other values."""
    found = known_object(s, value) if isinstance(value, ObjectV) else None
    return found[1] if found is not None and found[0] is dict else None


def keys_of(s: Context, source: Source) -> tuple[Any, ...]:
    """All keys of a dict, in their order."""
    keys: tuple[Any, ...] = known(s.hidden_value((*source, KEYS)))
    return keys


def item(s: Context, value: Value, index: Value) -> Value | None:
    """value[index]; None if it is not the item of a dict under a known key."""
    source, name = source_of(s, value), _name(index)
    if source is None or name is None:
        return None
    if (*source, KEYS) in s.arguments.hidden and known(index) not in keys_of(s, source):
        raise s.hand_back(f"a dict without the key {known(index)!r}")
    return _held(s, source, name)


def _held(s: Context, source: Source, name: str) -> Value:
    return assigned_attributes.now(s, (*source, name), s.hidden_value((*source, name)))


def _name(index: Value) -> str | None:
    try:
        return item_name(known(index))
    except Unknown:
        return None


def set_item(s: Context, value: ObjectV, index: Value, new: Value) -> bool:
    """value[index] = new; False if the dict does not have that item, or is no argument."""
    source, name = source_of(s, value), _name(index)
    if source is None or source[0] != "field" or name is None or s.guards or s.elements.in_body or s.procedures.active:
        return False
    if known(index) not in keys_of(s, source):
        return False
    held = _held(s, source, name)
    if not (isinstance(held, ArrayV) and isinstance(new, ArrayV) and held.var is new.var):
        assigned_attributes.assign(s, dict, (*source, name), new)
    return True


def contents(s: Context, value: Value) -> DictV | None:
    """A dict that is an argument with all its items, as they are now; None for other values."""
    source = source_of(s, value)
    if source is None:
        return None
    return DictV(tuple((key, _held(s, source, item_name(key) or "")) for key in keys_of(s, source)))


def view(s: Context, value: Value) -> tuple[list[Value], Source, str] | None:
    """The keys of a dict that is iterated over, where it is read from, and which of its parts are asked for."""
    kind = "keys"
    if isinstance(value, IteratorV) and value.kind in VIEWS:
        kind, (value,) = value.kind, value.items
    source = source_of(s, value)
    return None if source is None else ([lift(key) for key in keys_of(s, source)], source, kind)


def part(s: Context, source: Source, kind: str, key: Value) -> Value:
    """What an iteration over a dict gives for one key."""
    if kind == "keys":
        return key
    held = _held(s, source, _name(key) or "")
    return held if kind == "values" else TupleV((key, held))


def listed(s: Context, value: Value, lazily: bool = False) -> Value:
    """What goes through a dict, as a list of what it gives now (or `lazily`); other values as they are."""
    found = view(s, value)
    if found is None:
        return value
    keys, source, kind = found
    if lazily and kind != "keys":
        if any(one[: len(source)] == source for one in s.assigned.before):
            raise s.unsupported("an iterator over a dict whose items are assigned")  # which shows what they are later
        s.assigned.listed.append(source)
    return TupleV(tuple(part(s, source, kind, key) for key in keys), "list")


def method(s: Context, obj: ObjectV, name: str, args: list[Value]) -> Value | None:
    """obj.name(*args) of a dict that is an argument; None if that is left to Python."""
    source = source_of(s, obj)
    if source is None:
        return None
    if name in VIEWS and not args:
        return IteratorV(name, (obj,))
    if name == "copy" and not args:
        return contents(s, obj)
    if name in ("get", "setdefault") and args and (key := _name(args[0])) is not None:
        if known(args[0]) in keys_of(s, source):
            return _held(s, source, key)
        if name == "get":
            return args[1] if len(args) > 1 else NONE
    return None
