"""Whether an argument may be, or have in it, an array on a device: asked of every call that no entry stub takes, so it
must cost nothing where there is none."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from parakeet_py.signature.attribute_sources import is_plain
from parakeet_py.signature.device_classes import class_is_of_dask, class_lives_elsewhere, is_here
from parakeet_py.signature.specs import MAX_ITEMS

_HERE = frozenset((np.ndarray, np.float64, float, int, bool, complex, str, type(None)))  # most arguments are such
_CONTAINERS = frozenset((tuple, list, dict))
DEEPEST = 4  # containers in containers


def lives_elsewhere(value: Any, depth: int = 0) -> bool:
    """Whether a value, or one in a tuple, list or dict or held by an object, may be an array on a device; its class
    decides, unless its library says that this one is in the host's memory."""
    kind: Any = type(value)
    if kind in _HERE:
        return False
    inside = items_of(value)
    if not inside:
        return class_lives_elsewhere(kind) and not is_here(value)
    if depth >= DEEPEST:
        return False
    if len(inside) > MAX_ITEMS:
        inside = _of_long(inside)
    return not _HERE.issuperset(map(type, inside)) and any(lives_elsewhere(item, depth + 1) for item in inside)


def _of_long(items: Sequence[Any]) -> Sequence[Any]:
    """The items of a long container that are containers, and of each other class one; all, if some may be on devices.

    No call looks into the attributes of so many objects; those that hold an array on a device compute with it there.
    """
    kinds = set(map(type, items))
    if kinds <= _HERE:
        return ()
    if kinds.isdisjoint(_CONTAINERS):
        if any(map(class_lives_elsewhere, kinds)):
            return items
        return [*{type(item): item for item in items}.values()] if len(kinds) > 1 else items[:1]
    others = {type(item): item for item in items if type(item) not in _CONTAINERS}
    return [*others.values(), *[item for item in items if type(item) in _CONTAINERS]]


@functools.lru_cache(maxsize=256)
def _has_attributes(kind: type) -> bool:
    return is_plain(kind) and "__dict__" in dir(kind) and not class_lives_elsewhere(kind)


def items_of(value: Any) -> Sequence[Any]:
    """What is in a container: a tuple, list or dict, or an object of a class without special attributes."""
    kind: Any = type(value)
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
        found: Sequence[Any] = value
        return found
    if kind is dict:
        return [*value.values()]
    return [*vars(value).values()] if _has_attributes(kind) else ()


def is_changeable(value: Any) -> bool:
    """Whether a value is a list, a dict or an object of a class without special attributes, empty ones included."""
    kind: Any = type(value)
    return kind is list or kind is dict or _has_attributes(kind)


def some_live_elsewhere(values: Sequence[Any]) -> bool:
    """Whether one of some values may be, or have in it, an array on a device."""
    return not _HERE.issuperset(map(type, values)) and any(map(lives_elsewhere, values))


def some_are_of_dask(values: Sequence[Any]) -> bool:
    """Whether one of some values is, or has in it, a Dask array."""
    return not _HERE.issuperset(map(type, values)) and any(map(_is_of_dask, values))


def _is_of_dask(value: Any, depth: int = 0) -> bool:
    kind: Any = type(value)
    if kind in _HERE:
        return False
    if class_is_of_dask(kind):
        return True
    inside = items_of(value) if depth < DEEPEST else ()
    if len(inside) > MAX_ITEMS:
        inside = _of_long(inside)
    return not _HERE.issuperset(map(type, inside)) and any(_is_of_dask(item, depth + 1) for item in inside)


def leaves_of(values: Sequence[Any], depth: int = 0) -> Iterator[Any]:
    """Values, and those in containers."""
    for value in values:
        kind: Any = type(value)
        inside = items_of(value) if kind not in _HERE and depth <= DEEPEST and not class_is_of_dask(kind) else ()
        if inside:
            yield from leaves_of(inside, depth + 1)
        else:
            yield value
