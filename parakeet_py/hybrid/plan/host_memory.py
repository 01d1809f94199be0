"""NumPy arrays in memory of compiled code, which keeps freed memory for later: fresh pages of the system are dear."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER
from parakeet_py.llvm.runtime.native_runtime import runtime

LARGE = 1 << 16  # bytes: less is NumPy's own memory


@lru_cache(maxsize=1)
def _functions() -> tuple[Any, Any, Any]:
    symbols = runtime().symbols
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(symbols["pk_alloc"])
    free = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(symbols["pk_free"])
    return allocate, free, ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 2)(symbols["pk_detach"])


class Payload:
    """Memory that is freed with this object."""

    __slots__ = ("_free", "address")

    def __init__(self, address: int) -> None:
        self.address, self._free = address, _functions()[1]

    def __del__(self) -> None:
        self._free(self.address)


class _Bytes:
    """The bytes of an array, which hold their memory."""

    __slots__ = ("__array_interface__", "payload")

    def __init__(self, payload: Payload, address: int, nbytes: int) -> None:
        self.payload = payload
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


def kept_block(block: int, context: int) -> Payload:
    """A block of a call that has been made, which is not freed with it."""
    _functions()[2](context, block)
    return Payload(block + BLOCK_HEADER)


def array_in(payload: Payload, address: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Bytes in some memory, from an address on."""
    return np.asarray(_Bytes(payload, address, nbytes))


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """An array in C order, as `np.empty` makes it."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    address = _functions()[0](nbytes)
    if not address:
        raise MemoryError(f"unable to allocate {nbytes} bytes")
    return np.ndarray(tuple(shape), dtype, array_in(Payload(address), address, nbytes))
