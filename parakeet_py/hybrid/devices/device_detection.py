"""Whether an argument may be an array on a device: asked of every call that no gate takes, so it must cost nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

_HERE = frozenset((np.ndarray, np.float64, float, int, bool, complex, str, type(None)))  # most arguments are such


def lives_elsewhere(value: Any) -> bool:
    """Whether a value, or one in a tuple or list, may be an array on a device; its class alone decides."""
    kind: Any = type(value)
    if kind in _HERE:
        return False
    if kind is tuple or kind is list:
        return any(map(lives_elsewhere, value))
    return _class_lives_elsewhere(kind)


@functools.lru_cache(maxsize=128)
def _class_lives_elsewhere(kind: Any) -> bool:
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    return hasattr(kind, "__dlpack_device__") and kind.__module__.partition(".")[0] != "numpy"


def some_live_elsewhere(values: Sequence[Any]) -> bool:
    """Whether one of some values may be, or have in it, an array on a device."""
    return not _HERE.issuperset(map(type, values)) and any(map(lives_elsewhere, values))


def leaves_of(values: Sequence[Any]) -> Iterator[Any]:
    """Values, and those in tuples and lists."""
    for value in values:
        if type(value) in (tuple, list):
            yield from leaves_of(value)
        else:
            yield value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with whatever is in its tuples and lists changed."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(one, change) for one in value))
    if type(value) in (tuple, list):
        return type(value)(mapped(one, change) for one in value)
    return change(value)
