"""What Dask arrays are typed as: NumPy arrays of their dtype and extents, of which nothing is read or written."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from parakeet_py.hybrid.devices.device_detection import leaves_of
from parakeet_py.signature import specs
from parakeet_py.signature.device_classes import class_is_of_dask

_READ_ONLY = hasattr(mmap, "PROT_READ")
_standing: ContextVar[Mapping[int, np.ndarray[Any, Any]] | None] = ContextVar("parakeet_py_of_dask", default=None)
_others = specs.stand_in.of


def _stand_in(value: Any) -> np.ndarray[Any, Any] | None:
    found = _standing.get()
    return _others(value) if found is None or id(value) not in found else found[id(value)]


specs.stand_in.of = _stand_in


@contextmanager
def stand_ins(values: Sequence[Any], unknown: int | None = None) -> Iterator[None]:
    """Within it, Dask arrays among some values, in containers too, are typed as NumPy's; extents that are not known are
    taken for `unknown`.

    Raises
    ------
    ValueError
        There are such, and no number for them.
    """
    found: dict[int, np.ndarray[Any, Any]] = {}
    for value in leaves_of(values):
        if class_is_of_dask(type(value)) and id(value) not in found and value.dtype.isnative:
            shape = value.shape
            if is_of_unknown_extents(value):
                if unknown is None:
                    raise ValueError(f"a Dask array of shape {shape} has chunks of unknown size")
                shape = tuple([unknown if extent != extent else extent for extent in shape])
            found[id(value)] = _reserved(shape, value.dtype)
    token = _standing.set(found)
    try:
        yield
    finally:
        _standing.reset(token)


def is_of_unknown_extents(array: Any) -> bool:
    """Whether some chunks of a Dask array have sizes that are not known."""
    return any(extent != extent for extent in array.shape)


def _reserved(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array in memory that is only reserved: nothing reads or writes it."""
    size = dtype.itemsize
    for extent in shape:
        size *= int(extent)
    if size == 0 or dtype.hasobject:
        return np.empty(shape, dtype)
    return np.asarray(_Reserved(size)).view(dtype).reshape(shape)


class _Reserved:
    """Addresses of so many bytes that an array seems to have. Memory that may only be read counts nowhere as memory
    that might be needed, so there may be more of it than the machine has."""

    def __init__(self, size: int) -> None:
        read_only: dict[str, Any] = {}
        if _READ_ONLY:
            read_only = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, "prot": mmap.PROT_READ}
        self._memory = np.frombuffer(mmap.mmap(-1, size, **read_only), np.uint8)
        self.__array_interface__ = {
            "data": (self._memory.ctypes.data, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }
