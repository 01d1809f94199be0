"""Systems of equations and Cholesky factors by cuSOLVER: through `nvmath-python` where it is installed, else by the
library's own interface (`cusolver_library`).

The LAPACK of `numpy.linalg` is made of routines, which the host does for devices that have none. On a CUDA device
cuSOLVER does those of `solve`, `inv` and `cholesky` in the order of its stream, where it takes the matrices as they
lie, one matrix of a stack after the other; `library.linalg.lapack` has right-hand sides brought into its order before.
What is factored is a copy. Whether it has failed is looked at once for all: NumPy has to know.

cuSOLVER has matrices in column-major order: what lies in rows is its transpose there. `A x = b` is solved from the
factors of the transpose; the lower factor of a matrix in rows is the upper one of its transpose, which for a Hermitian
matrix is the conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.routines import BLOCKED
from parakeet_py.hybrid.libraries import cusolver_library
from parakeet_py.hybrid.libraries.device_library import DeviceLibrary, LibraryError, Memory, bindings
from parakeet_py.hybrid.residency.arrays import DeviceView

LARGEST = 1 << 15  # extent of a matrix: sizes of workspaces are ints
MOST = 256  # matrices of a stack, one after the other
PLAIN, TRANSPOSED = 0, 1  # cublasOperation_t
LOWER, UPPER = 0, 1  # cublasFillMode_t
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_PIVOT = 4  # bytes


class Work(NamedTuple):
    """What cuSOLVER is asked for.

    Attributes
    ----------
    letter, size : of the dtype, as LAPACK calls it; bytes of an element
    extent, columns : of matrices, and of right-hand sides; no columns: the factors are wanted
    how : the operation that makes the matrix out of what cuSOLVER sees; of factors, the triangle that it sees
    many : matrices
    matrices, given, results : addresses of the first matrix, right-hand side and result, and bytes to the next
    """

    letter: str
    size: int
    extent: int
    columns: int
    how: int
    many: int
    matrices: tuple[int, int]
    given: tuple[int, int]
    results: tuple[int, int]


class Cusolver(DeviceLibrary):
    """The cuSOLVER of one device."""

    instead = "LAPACK's routines are done by the CPU, not by cuSOLVER"

    def open(self) -> Any:
        library = bindings("cusolverDn", lambda: cusolver_library.find())
        self._handle = int(library.create())
        return library

    def run(self, memory: Memory, work: Work) -> bool | None:
        """Do the work; whether a matrix was singular, or not positive definite, None if cuSOLVER could not do it."""
        n, whole = work.extent, work.extent**2 * work.size
        infos = np.zeros((work.many, 2), np.int32)
        taken: list[int] = []

        def room(size: int) -> int:
            taken.append(memory.allocate(max(size, 16)))
            return taken[-1]

        try:
            elements = self.asked(memory, lambda stream: self._workspace(work))
            if elements is None:
                return None
            factors = (room(work.many * whole), whole) if work.columns else work.results
            space, pivots, said = room(elements * work.size), room(n * _PIVOT), room(infos.nbytes)
            for number in range(work.many):
                memory.copy_within(_at(factors, number), _at(work.matrices, number), whole)
                if work.columns:
                    size = n * work.columns * work.size
                    memory.copy_within(_at(work.results, number), _at(work.given, number), size)

            def calls(stream: int) -> bool:
                self.in_stream(stream)
                for number in range(work.many):
                    matrix, info = _at(factors, number), said + number * infos.strides[0]
                    if work.columns:
                        self.call("getrf", work.letter, n, n, matrix, n, space, pivots, info)
                        into = _at(work.results, number), n, info + infos.itemsize
                        self.call("getrs", work.letter, work.how, n, work.columns, matrix, n, pivots, *into)
                    else:
                        self.call("potrf", work.letter, work.how, n, matrix, n, space, elements, info)
                return True

            if self.asked(memory, calls) is None:
                return None
            memory.copy_out(infos.reshape(-1).view(np.uint8), said)
        finally:
            for address in taken:
                memory.free(address)
        if not work.columns:
            infos = infos[:, :1]
        if (infos < 0).any():
            self.give_up(LibraryError(f"cuSOLVER does not take its argument {-infos.min()}"))
            return None
        return bool(infos.any())

    def asked(self, memory: Memory, calls: Callable[[int], Any]) -> Any:
        """What calls of the library give, made in the order of the device's stream; None if one has failed."""
        with memory.library_order("cuSOLVER") as stream, self._lock:
            if self._library is None:
                return None
            try:
                return calls(stream)
            except Exception as error:
                self._give_up(error)
                return None

    def _workspace(self, work: Work) -> int:
        n, matrix = work.extent, work.matrices[0]
        if work.columns:
            return int(self.call("getrf_buffer_size", work.letter, n, n, matrix, n))
        return int(self.call("potrf_buffer_size", work.letter, work.how, n, matrix, n))

    def call(self, name: str, letter: str, *given: int) -> Any:
        """A call of the library's, for a dtype."""
        return getattr(self._library, letter + name)(self._handle, *given)

    def in_stream(self, stream: int) -> None:
        """What is asked next is done in the order of a stream."""
        self._library.set_stream(self._handle, stream)

    def give_up(self, error: Exception) -> None:
        """Never ask again."""
        with self._lock:
            self._give_up(error)


def _at(place: tuple[int, int], number: int) -> int:
    return place[0] + number * place[1]


def work_of(name: str, outs: Sequence[DeviceView], ins: Sequence[DeviceView]) -> Work | None:
    """What cuSOLVER would be asked for in the place of a routine (see `base.routines`); None if it has nothing."""
    name = BLOCKED.get(name, name)
    if name not in ("linalg.solve", "linalg.solve1", "linalg.cholesky_lo", "linalg.cholesky_up"):
        return None
    out, matrix = outs[0], ins[0]
    many, n, _ = matrix.shape
    if out.dtype not in LETTERS or any(one.dtype != out.dtype for one in ins):
        return None
    letter, size = LETTERS[out.dtype], np.dtype(out.dtype).itemsize
    if not 0 < n < LARGEST or not 0 < many <= MOST:
        return None
    in_rows, in_columns = (n * size, size), (size, n * size)
    own = matrix.strides[1:]
    if own not in (in_rows, in_columns):
        return None
    matrices, results = ((one.address, one.strides[0]) for one in (matrix, out))
    if len(ins) == 1:
        if own != in_rows or out.strides[1:] != in_rows:
            return None
        triangle = UPPER if name.endswith("_lo") else LOWER
        return Work(letter, size, n, 0, triangle, many, matrices, matrices, results)
    right = ins[1]
    columns = right.shape[2] if len(right.shape) == 3 else 1
    for one in (right, out):
        if (one.strides[1] != size and n > 1) or (columns > 1 and one.strides[2] != n * size):
            return None
    if columns < 1:
        return None
    operation = PLAIN if own == in_columns else TRANSPOSED
    return Work(letter, size, n, columns, operation, many, matrices, (right.address, right.strides[0]), results)
