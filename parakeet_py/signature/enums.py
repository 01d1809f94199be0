"""Members of enums that compiled code knows by who they are.

What a member is compared with, its name and its value are then known when code is compiled, and code is made for each
member that is met. Enums that say themselves what their members are equal to, or what their names and values are, are
objects like any other.
"""

from __future__ import annotations

import enum
import types
from functools import lru_cache
from typing import Any

_OF_OBJECTS = {"__format__", "__hash__", "__str__", "__repr__", "__dir__", "__reduce_ex__", "__new__", "__doc__"}
_VALUES = (int, float, complex, str, bool, types.NoneType)


def is_member(value: object) -> bool:
    """Is this a member of an enum whose comparisons, names and values are those of `enum`, with a plain value?"""
    return isinstance(value, enum.Enum) and _is_plain(type(value)) and type(value.value) in _VALUES


@lru_cache(maxsize=256)
def _is_plain(cls: type[enum.Enum]) -> bool:
    base: Any = int if issubclass(cls, int) else str if issubclass(cls, str) else object
    own: Any = cls
    named = all(_found(cls, name) is vars(enum.Enum)[name] for name in ("name", "value"))
    return named and own.__eq__ is base.__eq__ and own.__ne__ is base.__ne__


def _found(cls: type, name: str) -> object:
    return next((vars(one)[name] for one in cls.__mro__ if name in vars(one)), None)


def number_of(value: object) -> int | None:
    """The number that a member of an IntEnum is in arithmetic; None of all else, and if its class has operators."""
    if not isinstance(value, int) or not is_member(value):
        return None
    cls: Any = type(value)
    return int(value) if _counts_as_int(cls) else None


@lru_cache(maxsize=256)
def _counts_as_int(cls: type[Any]) -> bool:
    own = cls.__mro__[: cls.__mro__.index(int)]
    operators = {name for name in vars(int) if name.startswith("__")} - _OF_OBJECTS
    return not any(name in vars(one) for one in own for name in operators if name not in vars(object))
