"""Products of matrices by cuBLAS: through `nvmath-python` where it is installed (the `cublas` extra), else by the
library's own interface (`cublas_library`).

A kernel that is a whole product says so (`Kernel.product`); when it is launched on a CUDA device and cuBLAS can take
the matrices as they lie, cuBLAS computes it in the kernel's place, in the order of the same stream. Everything else
(matrices without a unit stride, integers) stays with the kernel. cuBLAS is looked for when the first
product is met, and never asked again once it has failed. The calls are those of nvmath-python 1.0.

cuBLAS has matrices in column-major order: what lies in rows is its transpose there, so `out = left @ right` is asked
for as `out.T = right.T @ left.T`. float32 is multiplied in float32; with `fastmath=True` tensor cores may round its
factors to TF32 (10 bits) first. Stacks of matrices that lie at one distance are one call (strided batched). float16 is
multiplied exactly and summed in float32, as NumPy does.
"""

from __future__ import annotations

import ctypes
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.libraries import cublas_library
from parakeet_py.hybrid.libraries.device_library import DeviceLibrary, bindings
from parakeet_py.hybrid.residency.arrays import DeviceView

LIMIT = 1 << 31  # of extents and distances
DEFAULT_MATH, TF32_MATH = 0, 3  # cublasMath_t
PLAIN, TRANSPOSED = 0, 1  # cublasOperation_t
MOST_CALLS = 64  # for one product, of batches whose axes do not lie at one distance
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
        return bool(_products(left, right, out)) and self.ready()

    def multiply(self, stream: int, left: DeviceView, right: DeviceView, out: DeviceView, tf32: bool) -> bool:
        """out = left @ right in the order of a stream; whether cuBLAS could take it."""
        products = _products(left, right, out)
        if not products or not self.ready():
            return False
        with self._lock:
            try:
                self._library.set_stream(self._handle, stream)
                self._library.set_math_mode(self._handle, TF32_MATH if tf32 else DEFAULT_MATH)
                for call, given in products:
                    getattr(self._library, call)(self._handle, *given)
            except Exception as error:
                self._give_up(error)
                return False
        return True


def _products(left: Any, right: Any, out: Any) -> list[tuple[str, list[int]]]:
    """The calls that compute out = left @ right, and their arguments; none if cuBLAS has none. Axes in front of the
    last two are those of a batch."""
    if len(out.shape) > 2:
        return _batches(left, right, out)
    product = _product(left, right, out)
    return [] if product is None else [product]


def _batches(left: Any, right: Any, out: Any) -> list[tuple[str, list[int]]]:
    """One call for as many axes of the batch, the last ones first, as lie at one distance in all three arrays; as many
    calls as the others have places."""
    sides = left, right, out
    *batch, rows, columns = out.shape
    if out.dtype not in _CALLS or {left.dtype, right.dtype} != {out.dtype} or not all(batch):
        return []
    if (*left.shape[:-2], left.shape[-2]) != (*batch, rows) or (*right.shape[:-2], right.shape[-1]) != (
        *batch,
        columns,
    ):
        return []
    distances = [side.strides[:-2] for side in sides]
    axis, count = len(batch) - 1, batch[-1]
    while axis and all(own[axis - 1] == batch[axis] * own[axis] for own in distances):
        axis -= 1
        count *= batch[axis]
    size = np.dtype(out.dtype).itemsize
    steps = [own[-1] for own in distances]
    if count >= LIMIT or math.prod(batch[:axis]) > MOST_CALLS or any(step < 0 or step % size for step in steps):
        return []
    if count > 1 and steps[2] == 0:
        return []
    found = []
    for place in np.ndindex(*batch[:axis]):
        starts = [side.address + sum(map(operator.mul, place, own)) for side, own in zip(sides, distances, strict=True)]
        matrices = [
            _Matrix(start, side.dtype, side.shape[-2:], side.strides[-2:])
            for start, side in zip(starts, sides, strict=True)
        ]
        product = _product(*matrices)
        if product is None:
            return []
        call, (turned, other, *sizes, one, a, lda, b, ldb, zero, c, ldc) = product
        first, second, result = (steps[which] // size for which in (1, 0, 2))
        factors = [a, lda, first, b, ldb, second]
        given = [turned, other, *sizes, one, *factors, zero, c, ldc, result, count]
        found.append((f"{call}_strided_batched", given))
    return found


class _Matrix(NamedTuple):
    """One matrix of a batch."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _product(left: Any, right: Any, out: Any) -> tuple[str, list[int]] | None:
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


def operand_of(matrix: Any) -> Operand | None:
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


def _itemsize(matrix: Any) -> int:
    return int(np.dtype(matrix.dtype).itemsize)
