"""Matrix products through BLAS and through loops, for every dtype, rank, layout and degenerate size."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from parakeet_py import accelerate, options
from parakeet_py.base.config import available_cpus
from parakeet_py.base.types import Array
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import matmul
from parakeet_py.llvm.codegen.blas_products import ALIGNMENT, LEAST_PART, MOST_PARTS
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.runtime import blas
from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.typed_ir.ir import Var
from tests.helpers.native_functions import POS, Native, function

RANKS = [(2, 2), (2, 1), (1, 2)]
SIZES = [(1, 1, 1), (3, 4, 5), (17, 33, 9), (1, 7, 4), (5, 1, 1), (0, 3, 2), (3, 0, 2), (3, 2, 0), (2, 1, 6)]


def product(ranks: tuple[int, int], dtype: str, layouts: str) -> ir.Function:
    left, right = (
        Var(name, Array(dtype, rank, layout)) for name, rank, layout in zip("ab", ranks, layouts, strict=False)
    )
    out = Var("out", Array(dtype, sum(ranks) - 2, layouts[2]))
    roots = {left: frozenset({0}), right: frozenset({1}), out: frozenset({2})}
    return function([left, right, out], [ir.Matmul(out, left, right, POS)], roots=dict(roots))


def random(shape: tuple[int, ...], dtype: str, rng: Any) -> Any:
    value = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        value = value + 1j * rng.standard_normal(shape)
    return value.astype(dtype)


def arrangements(value: Any, layout: str) -> list[Any]:
    """The same values in memory of a layout."""
    if layout == "C":
        return [np.ascontiguousarray(value)]
    if layout == "F":
        return [np.asfortranarray(value)]
    spread = np.zeros([2 * n + 1 for n in value.shape], value.dtype)[tuple(slice(0, 2 * n, 2) for n in value.shape)]
    spread[...] = value
    backwards = np.flip(np.flip(value).copy())
    forms = [np.ascontiguousarray(value), np.asfortranarray(value), spread, backwards]
    if value.ndim == 2:
        padded = np.zeros((value.shape[0], value.shape[1] + 3), value.dtype)[:, : value.shape[1]]
        padded[...] = value
        forms += [padded, np.ascontiguousarray(padded.T).T, np.flipud(np.flipud(value).copy())]
    packed = np.zeros(value.shape, [("pad", "i1" if value.itemsize < 4 else "i4"), ("x", value.dtype)])["x"]
    packed[...] = value
    return [*forms, packed]


def check(native: Native, ranks: tuple[int, int], dtype: str, layouts: str) -> None:
    rng = np.random.default_rng(0)
    for m, k, n in SIZES:
        a = random((m, k)[2 - ranks[0] :], dtype, rng)
        b = random((k, n)[: ranks[1]], dtype, rng)
        wanted = a @ b
        tolerance = 8 * np.finfo(wanted.real.dtype).eps * max(k, 1)
        for left in arrangements(a, layouts[0]):
            for right in arrangements(b, layouts[1]):
                for out in arrangements(np.full(wanted.shape, np.nan, dtype), layouts[2]):
                    native(left, right, out)
                    np.testing.assert_allclose(out, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layouts", ["CCC", "FCC", "CFC", "FFF", "AAC", "CAA", "SSS"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("ranks", RANKS)
def test_product(ranks: tuple[int, int], dtype: str, layouts: str) -> None:
    ones = "".join(
        "C" if rank == 1 and layout == "F" else layout
        for rank, layout in zip((*ranks, sum(ranks) - 2), layouts, strict=True)
    )
    if "S" in ones:
        ones = ones.replace("S", "C") if 1 in ranks else ones
        rng = np.random.default_rng(1)
        if 1 not in ranks:  # rows anywhere, elements of a row together
            a, b = random((4, 6), dtype, rng), random((6, 5), dtype, rng)
            native = Native(product(ranks, dtype, ones))
            for left in (a, np.flipud(a), np.broadcast_to(a[:1], a.shape)):
                out = np.flipud(np.zeros((4, 5), dtype))
                native(left, b[::-1], out)
                np.testing.assert_allclose(out, left @ b[::-1], 1e-4)
            return
    check(Native(product(ranks, dtype, ones)), ranks, dtype, ones)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("ranks", RANKS)
def test_loops_without_blas(ranks: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul.blas, "find", lambda: None)
    layouts = "AAC" if ranks == (2, 2) else "CCC"
    native = Native(product(ranks, dtype, layouts))
    assert not any("cblas" in symbol for symbol in native.code.symbols)
    check(native, ranks, dtype, layouts)
    rng = np.random.default_rng(2)
    a, b = random((150, 70)[2 - ranks[0] :], dtype, rng), random((70, 90)[: ranks[1]], dtype, rng)
    if ranks[0] == 1:
        a = a[:70]
    out = np.zeros((a @ b).shape, dtype)
    native(a, b, out, threads=2)
    np.testing.assert_allclose(
        out, a @ b, rtol=0.02 if dtype == "float16" else 1e-3, atol=0.1 if dtype == "float16" else 1e-3
    )


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_text_for_blas_with_narrow_integers(
    ranks: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul.blas, "find", lambda: blas.Blas("", "cblas_", "", "i32"))
    code = generate(product(ranks, dtype, "AAA"), compiler.host())
    letter = blas.LETTERS[dtype]
    assert f"cblas_{letter}{'gemm' if ranks == (2, 2) else 'gemv'}" in code.symbols
    compiler.compile_ir(code.text)


def test_numpys_own_blas_is_found() -> None:
    found = blas.find()
    if found is None:
        pytest.skip("this NumPy has no BLAS that we know")
    address = blas.resolve(found.symbol("dgemm"))
    assert address
    assert blas.resolve("cblas_nonsense") is None
    assert blas.resolve("exp") is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("layouts", ["FCC", "CFC", "AAF"])
def test_matrix_times_its_transpose_is_symmetric(dtype: str, layouts: str) -> None:
    fn = product((2, 2), dtype, layouts)
    left, right, out = fn.params
    native = Native(
        function(
            fn.params, fn.body.statements, roots={left: frozenset({0}), right: frozenset({0}), out: frozenset({1})}
        )
    )
    assert any("syrk" in symbol for symbol in native.code.symbols)
    rng = np.random.default_rng(3)
    for shape in ((5, 3), (3, 70), (70, 3), (1, 4), (0, 3), (3, 0)):
        a = random(shape, dtype, rng)
        first, second = {"F": (a.T, a), "C": (a, a.T), "A": (a.T, a)}[layouts[0]]
        result = np.full((first.shape[0],) * 2, np.nan, dtype, order=layouts[2])
        native(first, second, result)
        np.testing.assert_allclose(result, first @ second, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(result, result.T)
        other = random(second.shape, dtype, rng)
        other = np.asfortranarray(other) if layouts[1] == "F" else other
        native(first, other, result)
        np.testing.assert_allclose(result, first @ other, rtol=1e-4, atol=1e-4)


# ---- threads -----------------------------------------------------------------------------------------------------


class Watched:
    """Functions in the place of the BLAS's own for its number of threads, which note what is set."""

    def __init__(self, threads: int) -> None:
        self.threads, self.set_to = threads, [threads]
        self.get = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: self.threads)
        self.set = ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._set)
        symbols = runtime().symbols
        self.begin_ = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, *[ctypes.c_void_p] * 2)(symbols["pk_blas_begin"])
        self.end = ctypes.CFUNCTYPE(None, ctypes.c_int32)(symbols["pk_blas_end"])

    def _set(self, threads: int) -> None:
        self.threads = threads
        self.set_to.append(threads)

    def begin(self, most: int) -> int:
        get, set_ = (ctypes.cast(function, ctypes.c_void_p) for function in (self.get, self.set))
        return self.begin_(most, get, set_)


def test_limits_of_calls_that_overlap() -> None:
    """While any call has a limit, the number of threads is within all limits; then it is what it was."""
    watched = Watched(8)
    assert [watched.begin(most) for most in (8, 9, 0)] == [0, 0, 0]
    assert watched.set_to == [8]
    assert watched.begin(4) and watched.threads == 4
    assert watched.begin(1) and watched.threads == 1
    assert watched.begin(2) and watched.threads == 1  # counted, so that it cannot grow under it
    for _ in range(2):
        watched.end(1)
        assert watched.threads == 1
    watched.end(0)
    watched.end(1)
    assert watched.set_to == [8, 4, 1, 8]
    assert not watched.begin(8)


def test_products_of_many_python_threads_under_limits() -> None:
    library = blas.find()
    if library is None or library.limits is None:
        pytest.skip("no OpenBLAS")
    get_name, set_name = library.limits
    get = ctypes.CFUNCTYPE(ctypes.c_int32)(blas.resolve(get_name) or 0)
    set_ = ctypes.CFUNCTYPE(None, ctypes.c_int32)(blas.resolve(set_name) or 0)
    before = get()
    set_(max(before, 2))
    usual = get()
    try:
        left, right = (random((90, 90), "float64", np.random.default_rng(k)) for k in (1, 2))
        expected = left @ right
        multiply = Native(product((2, 2), "float64", "CCC"))

        def work(threads: int) -> None:
            for _ in range(40):
                out = np.empty_like(expected)
                multiply(left, right, out, threads=threads)
                np.testing.assert_allclose(out, expected, rtol=1e-12)

        work(usual)
        assert get() == usual
        running = [threading.Thread(target=work, args=(1 + k % 3,)) for k in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert get() == usual
    finally:
        set_(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(230, 255, 300), (300, 84, 33), (377, 46, 67), (72, 385, 277)])
def test_products_do_not_depend_on_the_number_of_threads(dtype: str, shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(0)
    a, b = random((rows, inner), dtype, rng), random((inner, columns), dtype, rng)
    for left, right in [(a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (a, a.T), (a.T, a), (a, b[:, 0])]:
        layouts = ["C" if x.flags.c_contiguous else "F" for x in (left, right)]
        multiply = Native(product((2, right.ndim), dtype, f"{layouts[0]}{layouts[1] if right.ndim == 2 else 'A'}C"))
        results = []
        for threads in (1, 2, 5):
            out = np.empty((left.shape[0], *right.shape[1:]), dtype)
            multiply(left, right, out, threads=threads)
            results.append(out)
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
        bound = 16 * left.shape[1] * np.finfo(dtype).eps
        np.testing.assert_allclose(results[0], left @ right, rtol=0, atol=bound)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("shape", [(130, 70, 90), (300, 65, 33), (97, 200, 401)])
def test_large_products_are_the_bits_of_their_parts(shape: tuple[int, int, int], dtype: str, threads: int) -> None:
    """Each part is what NumPy's BLAS gives for it on one thread, whatever order its kernels add in."""
    random = np.random.default_rng(0)
    a = random.standard_normal(shape[:2]).astype(dtype)
    b = random.standard_normal(shape[1:]).astype(dtype)
    rows, _, columns = shape
    even = -(-max(rows, columns) // min(available_cpus(), MOST_PARTS))
    length = max(-(-even // ALIGNMENT["gemm"]) * ALIGNMENT["gemm"], LEAST_PART["gemm"])
    cuts = range(length, max(rows, columns), length)
    with threadpool_limits(1):
        if rows >= columns:
            expected = np.vstack([part @ b for part in np.split(a, cuts)])
        else:
            expected = np.hstack([a @ part for part in np.split(b, cuts, axis=1)])
    with options(threads=threads, when="now"):
        found = accelerate(lambda a, b: a @ b)(a, b)
    assert found.tobytes() == expected.tobytes()
