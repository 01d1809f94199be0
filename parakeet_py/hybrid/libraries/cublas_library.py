"""cuBLAS by its C interface, for machines that have the library (a CUDA toolkit, CuPy or PyTorch bring it) and not
`nvmath-python`: the few calls of `nvmath.bindings.cublas` that `cublas` makes, under the same names.
"""

from __future__ import annotations

import ctypes
from typing import Any

_NAMES = {"sgemm": "cublasSgemm_v2", "dgemm": "cublasDgemm_v2", "cgemm": "cublasCgemm_v2", "zgemm": "cublasZgemm_v2"}
_INT, _POINTER = ctypes.c_int, ctypes.c_void_p
_SIZES = (_POINTER, _INT, _INT, _INT, _INT, _INT, _POINTER)
_GEMM = (*_SIZES, *(_POINTER, _INT, _POINTER, _INT, _POINTER, _POINTER, _INT))
_TYPED = _POINTER, _INT, _INT  # a matrix whose elements are said to be of some type
_GEMM_EX = (*_SIZES, *_TYPED, *_TYPED, _POINTER, *_TYPED, _INT, _INT)


class CublasError(RuntimeError):
    """A call that has failed; the status is one of `cublasStatus_t`."""


class Library:
    """The calls of a loaded library.

    Raises
    ------
    AttributeError
        It is another version, without one of these calls.
    """

    def __init__(self, library: Any) -> None:
        self._create = _call(library, "cublasCreate_v2", _POINTER)
        self._set_stream = _call(library, "cublasSetStream_v2", _POINTER, _POINTER)
        self._set_math_mode = _call(library, "cublasSetMathMode", _POINTER, _INT)
        self._products = {name: _call(library, symbol, *_GEMM) for name, symbol in _NAMES.items()}
        self._products["gemm_ex"] = _call(library, "cublasGemmEx", *_GEMM_EX)

    def create(self) -> int:
        handle = ctypes.c_void_p()
        _checked("cublasCreate", self._create(ctypes.byref(handle)))
        return int(handle.value or 0)

    def set_stream(self, handle: int, stream: int) -> None:
        _checked("cublasSetStream", self._set_stream(handle, stream))

    def set_math_mode(self, handle: int, mode: int) -> None:
        _checked("cublasSetMathMode", self._set_math_mode(handle, mode))

    def __getattr__(self, name: str) -> Any:
        """A product, by its name in BLAS."""
        product = self.__dict__.get("_products", {}).get(name)
        if product is None:
            raise AttributeError(name)
        return lambda *given: _checked(name, product(*given))


def find() -> Library:
    """The library as cuda-python finds it: already loaded, in a wheel, in conda or in the system.

    Raises
    ------
    ImportError, RuntimeError, OSError, AttributeError
        There is none.
    """
    from cuda.pathfinder import load_nvidia_dynamic_lib

    path = load_nvidia_dynamic_lib("cublas").abs_path
    if path is None:
        raise OSError("libcublas is loaded, from an unknown file")
    return Library(ctypes.CDLL(path))


def _call(library: Any, symbol: str, *types: Any) -> Any:
    function = getattr(library, symbol)
    function.argtypes, function.restype = types, ctypes.c_int
    return function


def _checked(name: str, status: int) -> None:
    if status != 0:
        raise CublasError(f"{name} gives status {status}")
