"""Addresses of all functions that generated code may call.

Those of the C libraries come first, then functions of our own libraries, loops of NumPy's and routines of its BLAS.
"""

from __future__ import annotations

from functools import lru_cache

from parakeet_py.llvm.engine import c_symbols
from parakeet_py.llvm.runtime import blas


@lru_cache(maxsize=1024)
def resolve(name: str) -> int | None:
    """The address of the function `name` in this process, or None."""
    found = c_symbols.resolve(name)
    if found is not None:
        return found
    if name.startswith("pk_math_"):
        from parakeet_py.llvm.math import library as vector_math_library

        return vector_math_library.resolve(name)
    if name.startswith("pk_pack_"):
        from parakeet_py.llvm.runtime import pack_library

        return pack_library.resolve(name)
    if name.startswith("pk_pairwise_"):
        from parakeet_py.llvm.runtime import pairwise_library

        return pairwise_library.resolve(name)
    if name == "pk_cholesky":
        from parakeet_py.llvm.codegen import cholesky

        return cholesky.resolve()
    if name.startswith("pk_numpy"):
        from parakeet_py.base.foreign_code import numpy_loops

        return numpy_loops.resolve(name)
    return blas.resolve(name)
