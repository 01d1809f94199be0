"""Addresses of C functions that generated code may call: the vector and scalar math libraries and the C library.

Looked up by name through the dynamic linker, without llvmlite.  glibc's vector math library `libmvec` is there on
x86-64 and (since 2.40) aarch64; where it is not, its names are simply unknown.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from parakeet_py.base import machine


@lru_cache(maxsize=1)
def _libraries() -> tuple[ctypes.CDLL, ...]:
    loaded = []
    for name in machine.C_LIBRARIES:
        try:
            loaded.append(ctypes.CDLL(name))
        except OSError:
            continue
    if not machine.WINDOWS:
        loaded.append(ctypes.CDLL(None))
    return tuple(loaded)


@lru_cache(maxsize=1024)
def resolve(name: str) -> int | None:
    """The address of the C function `name` in this process, or None."""
    for library in _libraries():
        try:
            function = library[name]
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None
