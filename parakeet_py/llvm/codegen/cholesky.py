"""Cholesky factors of large matrices by blocks of columns, on our threads; low-level Python.

    i32 pk_cholesky(ptr ctx, ptr call, i32 threads)        1: the matrix is not positive definite

NumPy's own loop copies the matrix to the order of LAPACK's, column by column, and back: a third of the time of large
ones. Here the lower triangle is copied row by row (`copy`), and what follows works where it is, each step on parts of
the rows that threads share, with one thread of BLAS each:

    for each block of columns:
        block and what is below -= L[its rows, left] @ L[rows of the block, left].T        `update`: gemm
        the block itself := NumPy's loop of it
        what is below := X with X @ block.T = it                                           `solve`: trsm

The parts do not depend on the number of threads, so neither do the bits. `call` is a table of what is said below.
"""

from __future__ import annotations

from functools import lru_cache

from parakeet_py.base import machine
from parakeet_py.llvm.engine import compiler, disk_cache, low_level_python
from parakeet_py.llvm.engine.lasting_code import lasting_code
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import thread_pool
from parakeet_py.llvm.runtime.blas import Blas

NAME = "pk_cholesky"
LEAST = 256  # rows: below, NumPy's loop is as fast
WIDTH = 128  # columns of a block
ROUTINES = {  # of BLAS, and their parameters
    "dgemm": "i32, i32, i32, i64, i64, i64, double, ptr, i64, ptr, i64, double, ptr, i64",
    "dtrsm": "i32, i32, i32, i32, i32, i64, i64, double, ptr, i64, ptr, i64",
}
FIELDS = (
    *("OUT", "IN", "ROWS", "STRIDE", "PARTS"),  # addresses, the rows, bytes between the rows of the input, parts
    *("GEMM", "TRSM", "LOOP", "DATA", "PARALLEL"),  # functions, and what NumPy's loop is called with
    *("LESS", "ONE"),  # -1.0 and 1.0
    *("FIRST", "AFTER"),  # of the columns of the block
)

_SOURCE = Source(
    """
def feclearexcept(which: i32) -> i32: ...
def fetestexcept(which: i32) -> i32: ...

@internal
def copy(ctx: ptr, call: ptr, low: i64, high: i64):
    row = low
    rows = call.ROWS.i64
    while row < high:
        to = call.OUT.ptr + row * rows * 8
        some = (row + 1) * 8
        memcpy(to, call.IN.ptr + row * call.STRIDE.i64, some)
        memset(to + some, 0, rows * 8 - some)
        row += 1

@internal
def share(call: ptr, start: i64) -> i64:
    parts = call.PARTS.i64
    return ((call.ROWS.i64 - start + parts - 1) // parts + 31) // 32 * 32

@internal
def update(ctx: ptr, call: ptr, low: i64, high: i64):
    first = call.FIRST.i64
    width = call.AFTER.i64 - first
    rows = call.ROWS.i64
    out = call.OUT.ptr
    each = share(call, first)
    part = low
    while part < high:
        row = first + part * each
        some = smin(each, rows - row)
        if some > 0:
            left = out + row * rows * 8
            call.GEMM.ptr.void(
                i32(101), i32(111), i32(112), some, width, first, call.LESS.double, left, rows,
                out + first * rows * 8, rows, call.ONE.double, left + first * 8, rows)
        part += 1

@internal
def solve(ctx: ptr, call: ptr, low: i64, high: i64):
    first = call.FIRST.i64
    after = call.AFTER.i64
    rows = call.ROWS.i64
    out = call.OUT.ptr + first * 8
    each = share(call, after)
    part = low
    while part < high:
        row = after + part * each
        some = smin(each, rows - row)
        if some > 0:
            call.TRSM.ptr.void(
                i32(101), i32(142), i32(122), i32(112), i32(131), some, after - first, call.ONE.double,
                out + first * rows * 8, rows, out + row * rows * 8, rows)
        part += 1

def pk_cholesky(ctx: ptr, call: ptr, threads: i32) -> i32:
    rows = call.ROWS.i64
    parts = call.PARTS.i64
    parallel = call.PARALLEL.ptr
    parallel.void(ctx, copy, call, rows, 64, threads)
    arrays = alloca(i64, 2)
    sizes = alloca(i64, 2)
    strides = alloca(i64, 6)
    sizes.i64[0] = 1
    place = 0
    while place < 6:
        strides.i64[place] = 0 if place < 2 else 8 if place % 2 == 1 else rows * 8
        place += 1
    first = 0
    while first < rows:
        after = smin(first + WIDTH, rows)
        call.FIRST.i64 = first
        call.AFTER.i64 = after
        if first > 0:
            parallel.void(ctx, update, call, parts, 1, threads)
        block = call.OUT.ptr + first * (rows + 1) * 8
        arrays.ptr[0] = block
        arrays.ptr[1] = block
        sizes.i64[1] = after - first
        feclearexcept(INVALID)
        call.LOOP.ptr.void(arrays, sizes, strides, call.DATA.ptr)
        if fetestexcept(INVALID) != 0:
            return 1
        if after < rows:
            parallel.void(ctx, solve, call, parts, 1, threads)
        first = after
    return 0
""",
    {**{name: 8 * place for place, name in enumerate(FIELDS)}, "WIDTH": WIDTH, "INVALID": machine.INVALID},
)


def has(library: Blas | None, dtype: str) -> bool:
    """Whether this is how matrices of a dtype are factored: with the integers of OpenBLAS's wheels."""
    wide = library is not None and library.integer == "i64" and library.limits is not None
    return wide and dtype == "float64" and thread_pool.has_pool()


@lru_cache(maxsize=1)
def resolve() -> int:
    """The address of the function, compiled or loaded on first use."""

    def make() -> tuple[bytes, list[str]]:
        return compiler.compile_ir(low_level_python.translate(_SOURCE), level=0, vectorize=False), [NAME]

    return lasting_code(disk_cache.digest("cholesky", _SOURCE.key), NAME, make, [NAME])[NAME]
