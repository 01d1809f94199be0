"""cuBLAS by its C interface, for machines that have the library (a CUDA toolkit, CuPy or PyTorch bring it) and not
`nvmath-python`: the few calls of `nvmath.bindings.cublas` that `cublas` makes, under the same names.
"""

from __future__ import annotations

import ctypes
from typing import Any

from parakeet_py.hybrid.libraries.device_library import call_of, loaded

_NAMES = {"sgemm": "cublasSgemm_v2", "dgemm": "cublasDgemm_v2", "cgemm": "cublasCgemm_v2", "zgemm": "cublasZgemm_v2"}
_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_SIZES = (_POINTER, _INT, _INT, _INT, _INT, _INT, _POINTER)
_GEMM = (*_SIZES, *(_POINTER, _INT, _POINTER, _INT, _POINTER, _POINTER, _INT))
_FAR = ctypes.c_longlong  # from one matrix of a batch to the next
_BATCHED = (*_SIZES, *(_POINTER, _INT, _FAR, _POINTER, _INT, _FAR, _POINTER, _POINTER, _INT, _FAR, _INT))
_TYPED = _POINTER, _INT, _INT  # a matrix whose elements are said to be of some type
_GEMM_EX = (*_SIZES, *_TYPED, *_TYPED, _POINTER, *_TYPED, _INT, _INT)


class Library:
    """The calls of a loaded library.

    Raises
    ------
    AttributeError
        It is another version, without one of these calls.
    """

    def __init__(self, library: Any) -> None:
        self._create = call_of(library, "cublasCreate_v2", _POINTER)
        self.set_stream = call_of(library, "cublasSetStream_v2", _POINTER, _POINTER)
        self.set_math_mode = call_of(library, "cublasSetMathMode", _POINTER, _INT)
        for name, symbol in _NAMES.items():
            setattr(self, name, call_of(library, symbol, *_GEMM))
            batched = symbol.replace("gemm_v2", "gemmStridedBatched")
            setattr(self, f"{name}_strided_batched", call_of(library, batched, *_BATCHED))
        self.gemm_ex = call_of(library, "cublasGemmEx", *_GEMM_EX)

    def create(self) -> int:
        handle = ctypes.c_void_p()
        self._create(ctypes.byref(handle))
        return int(handle.value or 0)


def find() -> Library:
    """The library, see `device_library.loaded`, which says what is raised if there is none."""
    return Library(loaded("cublas"))
