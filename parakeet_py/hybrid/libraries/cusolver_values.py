"""Singular values, and eigenvalues of Hermitian matrices, by cuSOLVER.

These do not depend on what computes them. The vectors that belong to them do: those of LAPACK, which NumPy has, may
have other signs, and in degenerate spaces be others. So what gives vectors stays with the host.

cuSOLVER sees the transpose of a matrix that lies in rows, which has the same values, and wants at least as many rows as
columns. What it makes of NaN and infinities need not be NumPy's exception, so where a value is NaN the host is asked
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from parakeet_py.hybrid.libraries.cusolver import LARGEST, LETTERS, LOWER, MOST, UPPER, Cusolver
from parakeet_py.hybrid.libraries.device_library import LibraryError, Memory
from parakeet_py.hybrid.residency.arrays import DeviceView

NO_VECTORS, NONE_OF_THEM = 0, ord("N")  # cusolverEigMode_t; what gesvd is asked for of vectors
_ROUTINES = {"linalg.svd": "gesvd", "linalg.eigvalsh_lo": "syevd", "linalg.eigvalsh_up": "syevd"}
_INFO = 4  # bytes


class Values(NamedTuple):
    """What cuSOLVER is asked for.

    Attributes
    ----------
    call, letter, size : its name, the dtype's as LAPACK calls it, bytes of an element
    rows, columns : of matrices as cuSOLVER sees them, without gaps
    triangle : that it looks at
    many : matrices
    matrices, results : addresses of the first matrix and its values, and bytes to the next
    kind, length : the dtype of values, and how many a matrix has
    """

    call: str
    letter: str
    size: int
    rows: int
    columns: int
    triangle: int
    many: int
    matrices: tuple[int, int]
    results: tuple[int, int]
    kind: str
    length: int


def values_of(name: str, outs: Sequence[DeviceView], ins: Sequence[DeviceView]) -> Values | None:
    """What cuSOLVER would be asked for in the place of a routine (see `base.routines`); None if it has nothing."""
    call = _ROUTINES.get(name)
    if call is None or len(outs) != 1:
        return None
    out, matrix = outs[0], ins[0]
    many, rows, columns = matrix.shape
    letter, kind = LETTERS.get(matrix.dtype), np.dtype(out.dtype)
    if letter is None or np.dtype(matrix.dtype).type(0).real.dtype != kind:
        return None
    size = np.dtype(matrix.dtype).itemsize
    if not 0 < min(rows, columns) <= max(rows, columns) < LARGEST or not 0 < many <= MOST:
        return None
    own, in_rows = matrix.strides[1:], (columns * size, size)
    turned = own == in_rows and max(rows, columns) > 1
    if not turned and own != (size, rows * size):
        return None
    if turned:
        rows, columns = columns, rows
    if rows < columns or (out.shape[1] > 1 and out.strides[1] != kind.itemsize):
        return None
    if call == "syevd" and letter in "cz":
        call = "heevd"
    triangle = UPPER if name.endswith("_lo") == turned else LOWER
    places = (matrix.address, matrix.strides[0]), (out.address, out.strides[0])
    return Values(call, letter, size, rows, columns, triangle, many, *places, kind.name, out.shape[1])


def run(cusolver: Cusolver, memory: Memory, work: Values) -> bool | None:
    """Compute values; whether a matrix has none that could be found, None if cuSOLVER could not do it."""
    m, n, whole = work.rows, work.columns, work.rows * work.columns * work.size
    singular = work.call == "gesvd"
    infos = np.zeros(work.many, np.int32)
    values = np.empty(work.length, work.kind)
    taken: list[int] = []

    def room(size: int) -> int:
        taken.append(memory.allocate(max(size, 16)))
        return taken[-1]

    def sized(stream: int) -> int:
        given = (m, n) if singular else (NO_VECTORS, work.triangle, n, work.matrices[0], n, work.results[0])
        return int(cusolver.call(f"{work.call}_buffer_size", work.letter, *given))

    try:
        elements = cusolver.asked(memory, sized)
        if elements is None:
            return None
        matrix, space, said = room(whole), room(elements * work.size), room(infos.nbytes)
        rest = room(work.size * n)  # that gesvd wants of complex matrices
        for number in range(work.many):
            given, result = (start + number * step for start, step in (work.matrices, work.results))
            memory.copy_within(matrix, given, whole)
            info = said + number * _INFO

            def calls(stream: int, result: int = result, info: int = info) -> bool:
                cusolver.in_stream(stream)
                if singular:
                    vectors = NONE_OF_THEM, NONE_OF_THEM
                    more = result, 0, m, 0, n, space, elements, rest, info
                    cusolver.call("gesvd", work.letter, *vectors, m, n, matrix, m, *more)
                else:
                    where = matrix, n, result, space, elements, info
                    cusolver.call(work.call, work.letter, NO_VECTORS, work.triangle, n, *where)
                return True

            if cusolver.asked(memory, calls) is None:
                return None
        memory.copy_out(infos.view(np.uint8), said)
        if (infos < 0).any():
            cusolver.give_up(LibraryError(f"cuSOLVER does not take its argument {-infos.min()}"))
            return None
        for number in range(work.many):
            memory.copy_out(values.view(np.uint8), work.results[0] + number * work.results[1])
            if not np.isfinite(values).all():
                return None
    finally:
        for address in taken:
            memory.free(address)
    return bool(infos.any())
