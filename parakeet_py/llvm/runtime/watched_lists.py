"""Lists whose items compiled code has read, and that an operation handed back to Python may change all the same.

A list that is an argument is read into an array, or item by item, when a call begins. Python code may know it by
another name: as another argument, a global variable, an attribute. So where an operation may change anything at all,
its site is given the objects that such lists are read from (`OpaqueSite.watched`), and what the lists hold is compared
before the first operation of a call and behind each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from parakeet_py.llvm.runtime.object_layout import Layout
from parakeet_py.signature.attribute_sources import read_field

_word = ctypes.c_int64.from_address
_DEEPEST = 4  # lists in lists whose items compiled code knows, see `specs`


class WatchedLists:
    """What some lists, or tuples with lists in them, held when this was made."""

    __slots__ = ("_before", "_kept", "_lists")

    def __init__(self, holders: Sequence[Any], names: Sequence[tuple[str, ...]]) -> None:
        self._lists = [read_field(holder, path) for holder, path in zip(holders, names, strict=True)]
        self._kept = [_copy(value) for value in self._lists]  # so that no other object gets an item's address
        self._before = [*map(_held, self._lists)]

    def have_changed(self) -> bool:
        """Does one of them hold other objects by now?"""
        return [*map(_held, self._lists)] != self._before


def _copy(value: Any, depth: int = 0) -> Any:
    inside = () if depth >= _DEEPEST or len(value) > _MANY else (_copy(one, depth + 1) for one in value if _holds(one))
    return tuple(value), *inside


def _held(value: Any, depth: int = 0) -> Any:
    """Which objects a list holds, as bytes; those in it that hold lists, likewise."""
    first = id(value) + Layout.TUPLE_ITEMS if type(value) is tuple else _word(id(value) + Layout.LIST_ITEMS).value
    items = ctypes.string_at(first, 8 * len(value)) if len(value) else b""
    if depth >= _DEEPEST or len(value) > _MANY:
        return items
    return items, *(_held(one, depth + 1) for one in value if _holds(one))


_MANY = 32  # items, of which none is looked into


def _holds(value: Any) -> bool:
    return type(value) in (list, tuple)
