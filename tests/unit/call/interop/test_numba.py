"""Accelerated functions called in functions that numba compiles."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from parakeet_py import accelerate

numba = pytest.importorskip("numba")


@accelerate
def square(x):
    return x * x + 1.0


@accelerate(when="now")
def total(values):
    s = 0.0
    for value in values:
        s += square(value)
    return s


def test_numba_compiles_the_function() -> None:
    @numba.njit
    def sums(n, values):
        s = 0.0
        for i in range(n):
            s += square(i * 1.0)
        return s, total(values)

    gc.collect()
    values = np.arange(4.0)
    assert sums(10, values) == (sum(i * i + 1.0 for i in range(10)), total(values))
    assert sums.signatures
    assert square._numba_type_ == square._numba_type_


def test_functions_are_arguments_too() -> None:
    @numba.njit
    def apply(f, x):
        return f(x)

    assert apply(square, 3.0) == 10.0


def test_low_level_callables_of_scipy() -> None:
    """A function pointer, by way of numba, which SciPy's loops in C call without Python."""
    integrate = pytest.importorskip("scipy.integrate")
    ndimage = pytest.importorskip("scipy.ndimage")
    from scipy import LowLevelCallable

    pointer = numba.cfunc("f8(f8)")(lambda x: square(x))
    assert integrate.quad(LowLevelCallable(pointer.ctypes), 0, 3) == integrate.quad(square, 0, 3)

    @numba.cfunc("intc(CPointer(f8), intp, CPointer(f8), voidptr)")
    def of_window(window, size, result, _):
        result[0] = total(numba.carray(window, size))
        return 1

    image = np.arange(30.0).reshape(5, 6)
    found = ndimage.generic_filter(image, LowLevelCallable(of_window.ctypes), size=3)
    assert np.array_equal(found, ndimage.generic_filter(image, total, size=3))
