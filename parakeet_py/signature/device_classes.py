"""Which classes are those of arrays on devices: asked of every class of arguments, before the rest is loaded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.cuda_probe import has_driver

_CPU = 1  # DLPack's number
# Libraries that have arrays on CUDA devices only where there is a driver, and mostly are on the host.
_WITHOUT_OWN_DRIVER = frozenset(("torch", "jax", "jaxlib", "tensorflow"))
_OF_NUMPY = tuple(getattr(kind, "__dlpack_device__", None) for kind in (np.ndarray, np.generic))


def class_lives_elsewhere(kind: Any) -> bool:
    """Whether instances of a class may be arrays on devices."""
    return _class_lives_elsewhere(kind)


def is_here(value: Any) -> bool:
    """Whether an array of a library that has arrays on devices, too, is in the host's memory: Python's own affair."""
    kind: Any = type(value)
    library = _library_with_both(kind)
    if not library:
        return False
    try:
        return bool(value.is_cpu if library == "torch" else value.__dlpack_device__()[0] == _CPU)
    except Exception:  # of what such a library cannot say
        return False


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
def _library_with_both(kind: Hashable) -> str:
    """The library of a class of arrays that may be on the host, too; "" of others."""
    roots = [str(getattr(base, "__module__", "")).partition(".")[0] for base in getattr(kind, "__mro__", (kind,))]
    known = next((root for root in roots if root in _WITHOUT_OWN_DRIVER), "")
    on_devices_alone = hasattr(kind, "__cuda_array_interface__") or not hasattr(kind, "__dlpack_device__")
    return known or ("" if on_devices_alone else roots[0])


@functools.lru_cache(maxsize=128)
def _class_lives_elsewhere(kind: Hashable) -> bool:
    if _library_with_both(kind) in _WITHOUT_OWN_DRIVER and not has_driver():
        return False
    if hasattr(kind, "__cuda_array_interface__"):
        return True
    asks = getattr(kind, "__dlpack_device__", None)  # classes that derive from NumPy's have its own
    return asks is not None and asks not in _OF_NUMPY


class _ArrayOperations:
    """What computes with arrays on devices for those who hold them; the stage that compiles says how it is loaded."""

    load: Callable[[], Any]


array_operations = _ArrayOperations()
