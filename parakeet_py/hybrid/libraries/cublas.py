"""Products of matrices by cuBLAS: through `nvmath-python` where it is installed (the `cublas` extra), else by the
library's own interface (`cublas_library`).

A kernel that is a whole product says so (`Kernel.product`); when it is launched on a CUDA device and cuBLAS can take
the matrices as they lie, cuBLAS computes it in the kernel's place, in the order of the same stream. Everything else
(matrices without a unit stride, integers) stays with the kernel. cuBLAS is looked for when the first
product is met, and never asked again once it has failed. The calls are those of nvmath-python 1.0.

cuBLAS has matrices in column-major order: what lies in rows is its transpose there, so `out = left @ right` is asked
for as `out.T = right.T @ left.T`. float32 is multiplied in float32; with `fastmath=True` tensor cores may round its
factors to TF32 (10 bits) first. float16 is multiplied exactly and summed in float32, as NumPy does.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.libraries import cublas_library
from parakeet_py.hybrid.libraries.device_library import DeviceLibrary, bindings
from parakeet_py.hybrid.residency.arrays import DeviceView

LIMIT = 1 << 31  # of extents and distances
DEFAULT_MATH, TF32_MATH = 0, 3  # cublasMath_t
PLAIN, TRANSPOSED = 0, 1  # cublasOperation_t
_CALLS = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
_ONE: dict[str, ctypes.Array[Any]] = {
    "float32": (ctypes.c_float * 1)(1),
    "float64": (ctypes.c_double * 1)(1),
    "complex64": (ctypes.c_float * 2)(1, 0),
    "complex128": (ctypes.c_double * 2)(1, 0),
}
_ZERO = (ctypes.c_double * 2)(0, 0)
HALF, SINGLE = 2, 0  # cudaDataType_t: CUDA_R_16F, CUDA_R_32F
IN_SINGLE, ANY_WAY = 68, -1  # CUBLAS_COMPUTE_32F of cublasComputeType_t, CUBLAS_GEMM_DEFAULT of cublasGemmAlgo_t


class Operand(NamedTuple):
    """A matrix as cuBLAS sees its transpose: where it is, how it is turned, how far apart its columns are."""

    address: int
    turned: int
    distance: int


class Cublas(DeviceLibrary):
    """The cuBLAS of one device."""

    instead = "products of matrices are computed by kernels, not by cuBLAS"

    def open(self) -> Any:
        library = bindings("cublas", lambda: cublas_library.find())
        self._handle = int(library.create())
        return library

    def takes(self, left: DeviceView, right: DeviceView, out: DeviceView) -> bool:
        """Whether there is cuBLAS, and it has products of matrices that lie so."""
        return _product(left, right, out) is not None and self.ready()

    def multiply(self, stream: int, left: DeviceView, right: DeviceView, out: DeviceView, tf32: bool) -> bool:
        """out = left @ right in the order of a stream; whether cuBLAS could take it."""
        product = _product(left, right, out)
        if product is None or not self.ready():
            return False
        call, given = product
        with self._lock:
            try:
                self._library.set_stream(self._handle, stream)
                self._library.set_math_mode(self._handle, TF32_MATH if tf32 else DEFAULT_MATH)
                getattr(self._library, call)(self._handle, *given)
            except Exception as error:
                self._give_up(error)
                return False
        return True


def _product(left: DeviceView, right: DeviceView, out: DeviceView) -> tuple[str, list[int]] | None:
    """The call that computes out = left @ right, and its arguments; None if there is none."""
    first, second, result = (operand_of(matrix) for matrix in (right, left, out))
    if first is None or second is None or result is None or result.turned:
        return None
    rows, columns = out.shape
    sizes = columns, rows, left.shape[1]
    if not 0 < left.shape[1] < LIMIT:
        return None
    dtypes = {left.dtype, right.dtype}
    of_factor: tuple[int, ...]
    of_result: tuple[int, ...]
    how: tuple[int, ...]
    if dtypes == {out.dtype} and out.dtype in _CALLS:
        call, of_factor, of_result, how = _CALLS[out.dtype], (), (), ()
    elif dtypes == {"float16"} and out.dtype == "float32":
        call, of_factor, of_result, how = "gemm_ex", (HALF,), (SINGLE,), (IN_SINGLE, ANY_WAY)
    else:
        return None
    one, zero = ctypes.addressof(_ONE[out.dtype]), ctypes.addressof(_ZERO)
    turned = first.turned, second.turned
    factors = [item for each in (first, second) for item in (each.address, *of_factor, each.distance)]
    return call, [*turned, *sizes, one, *factors, zero, result.address, *of_result, result.distance, *how]


def operand_of(matrix: DeviceView) -> Operand | None:
    """A matrix for cuBLAS; None if it does not lie so that it can be one."""
    if len(matrix.shape) != 2 or 0 in matrix.shape or max(matrix.shape) >= LIMIT:
        return None
    size = _itemsize(matrix)
    for unit, other, turned in ((1, 0, PLAIN), (0, 1, TRANSPOSED)):
        extent, distance = matrix.shape[unit], matrix.strides[other]
        beside = matrix.strides[unit] == size
        if beside and distance % size == 0 and extent <= distance // size < LIMIT:
            return Operand(matrix.address, turned, distance // size)
    return None


def _itemsize(matrix: DeviceView) -> int:
    return np.dtype(matrix.dtype).itemsize
