"""`exact=True`: which code calls run, what is handed back, products of matrices, and what the disk keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parakeet_py import accelerate, options


def numbers(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).normal(size=shape)


def cubes(x: Any) -> Any:
    return x**3


def test_settings_choose_the_code() -> None:
    function = accelerate(when="now")(cubes)
    x = numbers(500)
    usual = function(x)
    with options(exact=True):
        assert np.array_equal(function(x), cubes(x))
        assert np.array_equal(function(x), cubes(x))
        assert "ufunc.power" in function.typed_ir(x)
        assert len(function.specializations) == 1
    assert np.array_equal(function(x), usual) and "ufunc" not in function.typed_ir(x)
    with options(exact=True), options(check=2):
        assert np.array_equal(function(x), cubes(x))


def test_decorator() -> None:
    function = accelerate(exact=True, when="now")(cubes)
    x = numbers(500)
    for _ in range(2):
        assert np.array_equal(function(x), cubes(x))
    with options(threads=1):
        assert np.array_equal(function(x), cubes(x))
    with options(devices="emulated"):
        assert np.array_equal(function(x), cubes(x))
    assert len(function.specializations) == 1


def test_arrays_that_go_backwards() -> None:
    def backwards(x: Any) -> Any:
        return np.exp(x[::-1]) + 1.0

    x = numbers(500)
    function = accelerate(exact=True, when="now")(backwards)
    for _ in range(2):
        assert np.array_equal(function(x), backwards(x))
    assert "goes backwards" in function.opaque_calls[0]
    given = accelerate(exact=True, when="now")(lambda x: np.exp(x) + 1.0)
    for _ in range(2):
        assert np.array_equal(given(x[::2]), np.exp(x[::2]) + 1.0)
        assert np.array_equal(given(x[::-1]), np.exp(x[::-1]) + 1.0)


def test_products_of_matrices() -> None:
    function = accelerate(exact=True, when="now")(lambda a, b: a @ b)
    a, b = numbers(7, 30), numbers(30, 5)
    for left, right in ((a, b), (a[0], b), (a, b[:, 1]), (a[0], b[:, 1]), (a.T, a), (a, a.T), (a[::2], b)):
        got, want = function(left, right), left @ right
        assert np.array_equal(got, want) and np.shape(got) == np.shape(want)
    assert not function.opaque_calls


def test_loops_are_no_products() -> None:
    def loop(a: Any, x: Any) -> Any:
        out = np.zeros(len(a))
        for i in range(len(a)):
            out[i] = np.sum(a[i] * x)
        return out

    a, x = numbers(40, 300), numbers(300)
    assert np.array_equal(accelerate(exact=True, when="now")(loop)(a, x), loop(a, x))


def test_numbers() -> None:
    def program(v: float, w: Any, z: complex) -> Any:
        return (
            v**2.0,
            math.pow(v, 0.5),
            w**3.0,
            w**v,
            np.float32(w) ** np.float32(2.2),
            z * z,
            abs(z),
            np.exp(w),
            v**-1.5,
        )

    function = accelerate(exact=True, when="now")(program)
    for v in (0.3, 1.7, 2.9e-5):
        got, want = (f(v, np.float64(v * 3), complex(v, 0.1)) for f in (function, program))
        assert got == want and [*map(type, got)] == [*map(type, want)]


def test_what_is_handed_back() -> None:
    def program(x: Any) -> Any:
        return np.prod(x), np.dot(x, x), np.sum(x, where=x > 0), math.gamma(x[0])

    function = accelerate(exact=True, when="now")(program)
    x = numbers(300)
    for _ in range(2):
        assert function(x) == program(x)
    assert len(function.opaque_calls) == 4
