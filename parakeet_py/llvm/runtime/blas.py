"""The BLAS that NumPy brought along.

NumPy's wheels carry OpenBLAS, already loaded and with its threads running when we are called; a second BLAS would mean
a second pool of threads. It is found next to NumPy, or among the libraries mapped into this process, and is known by
the names of its CBLAS routines: with or without the prefix `scipy_`, with the suffix `64_` where integers have 64 bits.
Nothing is imported for it. `codegen_matmul` writes the calls; `resolve` gives their addresses to the loader.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from parakeet_py.base.fast_dataclass import record

_NAMINGS = (("scipy_cblas_", "64_"), ("cblas_", "64_"), ("scipy_cblas_", ""), ("cblas_", ""))
_LIBRARY = r"(?i)(blas|blis|mkl_rt|nvpl)[^/]*\.(so|dylib|dll)"
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@record
class Blas:
    """A loaded library with the CBLAS interface.

    Attributes
    ----------
    path : where it was loaded from
    prefix, suffix : of its routines' names
    integer : LLVM type of sizes and increments, i64 or i32
    limits : the functions that get and set its number of threads, if they are known
    """

    path: str
    prefix: str
    suffix: str
    integer: str
    limits: tuple[str, str] | None = None

    def symbol(self, routine: str) -> str:
        """The name of a routine such as `dgemm`."""
        return f"{self.prefix}{routine}{self.suffix}"


@lru_cache(maxsize=1)
def find() -> Blas | None:
    """The BLAS of this process, or None."""
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix in _NAMINGS:
            if all(hasattr(library, f"{prefix}{letter}gemm{suffix}") for letter in LETTERS.values()):
                wide = suffix == "64_" or _has_wide_integers(library)
                return Blas(path, prefix, suffix, "i64" if wide else "i32", _limits(library, prefix, suffix))
    return None


def of_numpy() -> Blas | None:
    """The BLAS that code for this process calls."""
    return find()


Finding = Callable[[], Blas | None]  # gives the BLAS that products call; None where they are to be loops


def resolve(name: str) -> int | None:
    """The address of a CBLAS routine, or of what sets its threads, by its full name; None if it is not one of ours."""
    if "cblas_" not in name and "openblas_" not in name:
        return None
    found = find()
    if found is None:
        return None
    try:
        return ctypes.cast(ctypes.CDLL(found.path)[name], ctypes.c_void_p).value
    except AttributeError:
        return None


def _candidates() -> Iterator[str]:
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and numpy.__file__:
        package = os.path.dirname(numpy.__file__)
        for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
            if os.path.isdir(folder):
                yield from sorted(
                    os.path.join(folder, name) for name in os.listdir(folder) if re.search(_LIBRARY, name)
                )
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            found = [line.split(maxsplit=5)[5].rstrip("\n") for line in file if re.search(_LIBRARY, line)]
    except OSError:
        return
    yield from dict.fromkeys(found)


def _limits(library: ctypes.CDLL, prefix: str, suffix: str) -> tuple[str, str] | None:
    """OpenBLAS's functions `int get(void)` and `void set(int)` for its number of threads, named as its routines are."""
    names = tuple(f"{prefix.replace('cblas', 'openblas')}{verb}_num_threads{suffix}" for verb in ("get", "set"))
    return (names[0], names[1]) if all(hasattr(library, name) for name in names) else None


def _has_wide_integers(library: ctypes.CDLL) -> bool:
    """Whether an OpenBLAS without name suffix was built with 64-bit integers."""
    for name in ("openblas_get_config", "scipy_openblas_get_config"):
        if hasattr(library, name):
            config = library[name]
            config.restype = ctypes.c_char_p
            return b"USE64BITINT" in (config() or b"")
    return False
