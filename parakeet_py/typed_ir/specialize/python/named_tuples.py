"""Named tuples that a function makes: tuples that remember their class.

What `collections.namedtuple` and `typing.NamedTuple` make is a tuple whose items have names, so it is a `TupleV` with
the class as `named`. Methods of such a class are called with that tuple. A class that defines how its values are made,
or an operator of its own, is left to Python.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from parakeet_py.signature.attribute_sources import behaves_as_tuple, in_class
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.values import DictV, ObjectV, Static, TupleV, Value, lift

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

OWN_METHODS = ("_replace", "_asdict")
_VALUES = (bool, int, float, complex, str, type(None))


def is_plain(cls: Any) -> TypeGuard[type]:
    """Is it a class of named tuples that behave as tuples in all but their names, and are made of their items?"""
    if type(cls) is not type or not issubclass(cls, tuple) or not isinstance(getattr(cls, "_fields", None), tuple):
        return False
    made_plainly = getattr(cls.__new__, "__globals__", {}).get("_tuple_new") is tuple.__new__
    return made_plainly and behaves_as_tuple(cls)


def has_method(cls: type, name: str) -> bool:
    """Is this the name of a method, of tuples or of the class?"""
    found = in_class(cls, name)
    return isinstance(found, types.FunctionType | staticmethod | classmethod | types.MethodDescriptorType)


def make(s: Context, cls: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> TupleV:
    """cls(*args, **kwargs)"""
    fields: tuple[str, ...] = cls._fields
    given = dict(zip(fields, args, strict=False)) | dict(kwargs)
    if len(given) != len(args) + len(kwargs) or not given.keys() <= set(fields):
        raise s.hand_back(f"{cls.__name__} with these arguments")
    defaults = cls._field_defaults
    if not set(fields) <= given.keys() | defaults.keys():
        raise s.hand_back(f"{cls.__name__} with these arguments")
    if not all(type(defaults[name]) in _VALUES for name in defaults.keys() - given.keys()):
        raise s.hand_back(f"{cls.__name__} with a default that could be changed")
    return TupleV(tuple(given[name] if name in given else lift(defaults[name]) for name in fields), "tuple", cls)


def class_of_maker(target: Any) -> Any:
    """The class whose `_make` this is, if it is one of plain named tuples."""
    if isinstance(target, types.MethodType) and target.__name__ == "_make" and is_plain(target.__self__):
        return target.__self__
    return None


def make_of(s: Context, cls: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> TupleV:
    """cls._make(items)"""
    items = s.call(Static(tuple), list(args), dict(kwargs)) if len(args) == 1 and not kwargs else None
    if not isinstance(items, TupleV) or len(items.items) != len(cls._fields):
        raise s.hand_back(f"{cls.__name__}._make with these arguments")
    return TupleV(items.items, "tuple", cls)


def method(s: Context, value: TupleV, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """value.name(*args, **kwargs) of a named tuple; None if its class has no such method."""
    cls = value.named
    if name == "_replace" and not args and kwargs.keys() <= set(cls._fields):
        items = zip(cls._fields, value.items, strict=True)
        return TupleV(tuple(kwargs.get(field, item) for field, item in items), "tuple", cls)
    if name == "_asdict" and not args and not kwargs:
        return DictV(tuple(zip(cls._fields, value.items, strict=True)))
    if name in OWN_METHODS or not is_plain(cls):
        return None
    raw = in_class(cls, name)
    if isinstance(raw, types.FunctionType):
        return s.call(s.attribute(Static(cls), name), [value, *args], kwargs)
    if isinstance(raw, staticmethod | classmethod):
        return s.call(s.attribute(Static(cls), name), args, kwargs)
    return None


def named_fields(s: Context, value: ObjectV) -> TupleV | None:
    """The items of a named tuple that an argument is or holds."""
    known = known_object(s, value)
    if known is None or not issubclass(known[0], tuple) or known[0].__iter__ is not tuple.__iter__:
        return None
    fields = getattr(known[0], "_fields", ())
    cls = known[0] if is_plain(known[0]) else None
    return TupleV(tuple(s.attribute(value, name) for name in fields), "tuple", cls) if fields else None
