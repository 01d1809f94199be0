"""Addresses of C functions that generated code may call: the vector and scalar math libraries and the C library.

Looked up by name through the dynamic linker, without llvmlite.  glibc's vector math library `libmvec` is there on
x86-64 and (since 2.40) aarch64; where it is not, its names are simply unknown. Functions of our own libraries,
loops of NumPy's and routines of its BLAS come last.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

from parakeet_py.llvm.runtime import blas

_LIBRARIES = {
    "linux": ("libmvec.so.1", "libm.so.6", "libc.so.6"),
    "darwin": ("libSystem.dylib",),
    "win32": ("ucrtbase.dll", "vcruntime140.dll"),
}


@lru_cache(maxsize=1)
def _libraries() -> tuple[ctypes.CDLL, ...]:
    loaded = []
    for name in _LIBRARIES.get(sys.platform, ()):
        try:
            loaded.append(ctypes.CDLL(name))
        except OSError:
            continue
    if sys.platform != "win32":
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
    if name.startswith("pk_math_"):
        from parakeet_py.llvm.math import (
            library as vector_math_library,
        )  # which loads its objects through this function

        return vector_math_library.resolve(name)
    if name.startswith("pk_pack_"):
        from parakeet_py.llvm.runtime import pack_library

        return pack_library.resolve(name)
    if name.startswith("pk_numpy"):
        from parakeet_py.base import numpy_loops

        return numpy_loops.resolve(name)
    return blas.resolve(name)
