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
