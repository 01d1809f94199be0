"""Accelerated functions called in functions that numba compiles."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.export.errors import ExportError

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


@numba.njit
def power(x, n):
    if n < 0:
        raise ValueError("negative")
    return x**n


@numba.njit
def is_even(n):
    return n % 2 == 0


@numba.njit
def drawn(x):
    return np.random.rand() * x


def powers(x, n):
    s = 0.0
    for i in range(len(x)):
        s += power(x[i], n - i)
    return s


def stored(x, n):
    for i in range(len(x)):
        x[i] = power(x[i], n - i)
    return x[0]


def caught(x, n):
    try:
        return power(x[1], n)
    except ValueError as error:
        return str(error)


def parities(x, n):
    return [is_even(i) for i in range(n)], is_even(n), power(np.float32(0.5), 2)


def outcome(function, *args):
    try:
        return repr(function(*args)), repr(args)
    except ValueError as error:
        return repr(error), repr(args)


@pytest.mark.parametrize("function", [powers, stored, caught, parities], ids=lambda one: one.__name__)
def test_native_entries(function) -> None:
    """Values, exceptions and changed arguments are those of calls through numba's dispatcher."""
    fast = accelerate(when="now")(function)
    for n in (9, 9, 1, -1):
        assert outcome(fast, np.arange(4.0), n) == outcome(function, np.arange(4.0), n)
    assert fast.specializations and not fast.opaque_calls and not fast.fell_back
    with options(devices="emulated"):
        assert outcome(fast, np.arange(4.0), 9) == outcome(function, np.arange(4.0), 9)


def test_functions_with_effects_are_handed_back(tmp_path) -> None:
    @accelerate(when="now")
    def draws(x):
        return drawn(x) + 1.0

    assert [1.0 <= draws(2.0) <= 3.0 for _ in range(3)] == [True] * 3
    assert len(draws.opaque_calls) == 1
    with pytest.raises(ExportError, match="numba has compiled"):
        accelerate(powers).export(tmp_path, np.arange(4.0), 3)
