"""Which classes are those of arrays on devices: asked of every class of arguments, before the rest is loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

_OF_NUMPY = tuple(getattr(kind, "__dlpack_device__", None) for kind in (np.ndarray, np.generic))


def class_lives_elsewhere(kind: Any) -> bool:
    """Whether instances of a class may be arrays on devices."""
    return _class_lives_elsewhere(kind)


def class_is_of_dask(kind: Any) -> bool:
    """Whether instances of a class are Dask arrays; classes that derive from it mean something of their own."""
    return _class_is_of_dask(kind)


def some_are_labelled(values: Sequence[Any]) -> bool:
    """Whether one of some arguments is a `DataArray` of xarray."""
    return any(class_is_labelled(type(value)) for value in values)


def class_is_labelled(kind: Any) -> bool:
    """Whether a class is `DataArray` of xarray."""
    return getattr(kind, "__name__", "") == "DataArray" and kind.__module__.startswith("xarray.")


@functools.lru_cache(maxsize=128)
def _class_is_of_dask(kind: Any) -> bool:
    return getattr(kind, "__name__", "") == "Array" and kind.__module__.startswith("dask.array")


@functools.lru_cache(maxsize=128)
def _class_lives_elsewhere(kind: Hashable) -> bool:
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    asks = getattr(kind, "__dlpack_device__", None)  # classes that derive from NumPy's have its own
    return asks is not None and asks not in _OF_NUMPY


class _ArrayOperations:
    """What computes with arrays on devices for those who hold them; the stage that compiles says how it is loaded."""

    load: Callable[[], Any]


array_operations = _ArrayOperations()
