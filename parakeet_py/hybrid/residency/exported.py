"""Arrays on a device that leave a call, as other libraries have them."""

from __future__ import annotations

import importlib
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.hybrid.residency.arrays import strides_of
from parakeet_py.hybrid.residency.device_array import DeviceArray, asdevice


def exported(array: DeviceArray, kind: Any) -> Any:
    """An array as the library of `kind` has them."""
    class_: Any = type(kind)
    library = _library_of(class_)
    if library in ("cupy", "cupyx"):
        return importlib.import_module("cupy").from_dlpack(array)
    if library == "torch":
        return importlib.import_module("torch").from_dlpack(_forward(array))
    if library in ("jax", "jaxlib"):
        return importlib.import_module("jax.dlpack").from_dlpack(_compact(array))
    if library == "numba":
        return importlib.import_module("numba.cuda").as_cuda_array(array)
    return array


@lru_cache(maxsize=128)
def _library_of(kind: Hashable) -> str:
    return str(getattr(kind, "__module__", "")).partition(".")[0]


def _forward(array: DeviceArray) -> DeviceArray:
    """The array, copied if a stride is negative: PyTorch has none such."""
    return array if all(stride >= 0 for stride in array.strides) else _compact(array)


def _compact(array: DeviceArray) -> DeviceArray:
    """The array, copied if it is not C-contiguous."""
    if not array.size or array.strides == strides_of(array.shape, array.dtype.itemsize):
        return array
    return asdevice(np.ascontiguousarray(array), array._place)
