"""NumPy's loops and the C library's functions as primitives: their names, values, and what is known of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parakeet_py.base import exact_loops
from parakeet_py.base.foreign_code import numpy_loops


def test_names() -> None:
    assert exact_loops.is_loop("ufunc.exp.11") and exact_loops.is_loop("libm.exp") and not exact_loops.is_loop("exp")
    assert exact_loops.moves("ufunc.power.101") == (True, False, True)
    assert exact_loops.arity("ufunc.power.101") == exact_loops.arity("libm.pow") == 2
    assert exact_loops.arity("ufunc.exp.11") == exact_loops.arity("libm.sin") == 1
    assert exact_loops.family_of(np.exp) == "ufunc" and exact_loops.ufunc_named("ufunc.exp.11") is np.exp
    assert exact_loops.ufunc_named("ufunc.nothing") is None and exact_loops.ufunc_named("ufunc.matmul") is None


def test_types() -> None:
    assert exact_loops.result_dtype("ufunc.exp", ("float32",)) == "float32"
    assert exact_loops.result_dtype("ufunc.absolute", ("complex128",)) == "float64"
    assert exact_loops.result_dtype("ufunc.exp", ("int64",)) is None
    assert exact_loops.result_dtype("libm.pow", ("float64", "float32")) is None


def test_values() -> None:
    x = np.float64(0.7)
    assert exact_loops.evaluate("libm.sin", [x]) == math.sin(0.7)
    assert exact_loops.evaluate("libm.pow", [x, np.float64(3.3)]) == 0.7**3.3
    assert type(exact_loops.evaluate("libm.exp", [np.float32(1)])) is np.float32
    assert exact_loops.evaluate("ufunc.sinh.11", [x]) == np.sinh(x)
    z = np.complex128(0.3 + 0.1j)
    assert exact_loops.evaluate("ufunc.square.00", [z]) == np.square(z)
    assert exact_loops.evaluate("ufunc.power.101", [x, np.float64(2)]) == np.power(np.array([x, x]), 2.0)[0]


def test_what_is_rounded_once() -> None:
    assert exact_loops.has_one_result(np.add, ["float64"] * 3)
    assert not exact_loops.has_one_result(np.multiply, ["complex128"] * 3)
    assert exact_loops.has_one_result(np.power, ["int64"] * 3)
    assert not exact_loops.has_one_result(np.exp, ["float32"] * 2)


def test_layouts() -> None:
    assert exact_loops.layout_matters("ufunc.exp", ("float16",)) == (True, True)
    assert exact_loops.layout_matters("ufunc.sqrt", ("float64",)) == (False, False)


def test_addresses() -> None:
    dtypes = ("float64", "float64")
    assert numpy_loops.resolve(numpy_loops.symbol("ufunc.exp", dtypes))
    assert numpy_loops.resolve(numpy_loops.symbol("libm.exp", ("float64",)))
    assert numpy_loops.resolve(numpy_loops.symbol("libm.nothing", ("float64",))) is None
    with pytest.raises(AssertionError):
        exact_loops.evaluate("ufunc.nothing.11", [np.float64(1)])
