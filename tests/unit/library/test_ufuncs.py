"""Ufuncs that are functions of the library, against NumPy: integers, special numbers, complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.helpers.library_run import Cases, numbers

CASES = Cases()

SPECIAL = np.array([0.0, -0.0, 1, -1, 2.5, -3.75, np.inf, -np.inf, np.nan, 1e-3, 300, 5e-5, 1e-7])
FLOATS, INTEGERS = ("f2", "f4", "f8"), ("i1", "u1", "i2", "i4", "u4", "i8", "u8")


def values(dtype: str) -> Any:
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            return SPECIAL.astype(dtype)
    info = np.iinfo(dtype)
    listed = [0, 1, 2, 3, 7, 12, 5, info.max, info.min, info.max - 1, *([] if info.min == 0 else [-1, -5])]
    return np.array(listed, dtype)


def sign(x):
    return np.sign(x)


def reciprocal(x):
    return np.reciprocal(x)


def count_of_bits(x):
    return np.bitwise_count(x)


def angles(x):
    return np.deg2rad(x), np.rad2deg(x), np.radians(x), np.degrees(x)


def pieces(x):
    return np.modf(x), np.frexp(x), np.spacing(x)


def logs_of_sums(x, y):
    return np.logaddexp(x, y), np.logaddexp2(x, y), np.heaviside(x, y)


def divisors(x, y):
    return np.gcd(x, y), np.lcm(x, y)


def quotients(x, y):
    return np.divmod(x, y), divmod(x, y)


def powers(x, y):
    return x**y, np.power(x, y)


def square_and_cube(x):
    return x**2, np.power(x, 3), x**0


def shifted_exponents(x, n):
    return np.ldexp(x, n)


for dtype in (*FLOATS, *INTEGERS):
    x = values(dtype)
    CASES.add(sign, x)
    CASES.add(reciprocal, x)
    CASES.add(quotients, x[:, None], x)
    if dtype in FLOATS:
        CASES.add(angles, x)
        CASES.add(pieces, x)
        CASES.add(logs_of_sums, x[:, None], x)
        exponents = np.array([0, 1, -1, 5, -30, 1100, -1075, -1080], "i4")
        CASES.add(shifted_exponents, x[:, None], exponents, ulps=0)
    else:
        CASES.add(count_of_bits, x)
        CASES.add(divisors, x[:, None], x)
        CASES.add(powers, x[:, None], np.arange(6, dtype=dtype))
        CASES.add(square_and_cube, x)
CASES.add(powers, np.array([2, 3]), np.array([1, -1]))
CASES.add(powers, 2, np.array([1, -1]))


def compared_across_signs(x, y):
    return x > y, x <= y, y >= x, x == y, x != y, x > 3, x == -1


CASES.add(compared_across_signs, np.array([0, 3, 4, 2**63 + 1], "u8"), np.array([-1, 3, 5, 9]))

PLANE = numbers("c16", 60)
PLANE = np.concatenate([PLANE, PLANE * 1e-3, np.exp(1j * np.linspace(-3, 3, 30))])
CORNERS = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
CORNERS_OF_PLANE = np.array([complex(a, b) for a in CORNERS for b in CORNERS])


def complex_exponentials(z):
    return np.exp(z), np.expm1(z), np.exp2(z), np.sinh(z), np.cosh(z), np.tanh(z), np.sin(z), np.cos(z), np.tan(z)


def complex_logarithms(z):
    return np.log(z), np.log2(z), np.log10(z), np.log1p(z), np.sqrt(z)


def complex_inverses(z):
    return np.arcsin(z), np.arccos(z), np.arctan(z), np.arcsinh(z), np.arccosh(z), np.arctanh(z)


def complex_pieces(z):
    return (
        np.sign(z),
        np.abs(z),
        np.reciprocal(z),
        np.square(z),
        np.rint(z),
        np.angle(z),
        np.conj(z),
        z.real + 1,
        z.imag * 2,
    )


def complex_order(z, w):
    return z < w, z <= w, z > w, z >= w, np.maximum(z, w), np.minimum(z, w), np.fmax(z, w), np.fmin(z, w)


def complex_powers(z, w):
    return z**w, np.float_power(z, w)


for own in (complex_exponentials, complex_logarithms, complex_inverses, complex_pieces):
    CASES.add(own, PLANE, ulps=8)
    CASES.add(own, PLANE.astype("c8"), ulps=8)
for own in (complex_logarithms, complex_pieces):
    CASES.add(own, CORNERS_OF_PLANE)
CASES.add(complex_order, CORNERS_OF_PLANE[:, None], CORNERS_OF_PLANE[::3])
EXPONENTS = np.array([0, 1, 2, 3, 5, -2, 0.5, 1j, 2.5 + 1j, -7])
CASES.add(complex_powers, PLANE[:20, None], EXPONENTS, ulps=50)
CASES.add(complex_powers, np.zeros(10, complex), EXPONENTS)


def closeness(a, b):
    return np.isclose(a, b), np.allclose(a, b), np.array_equal(a, b), np.isclose(a, b, rtol=0.1, equal_nan=True)


MISSING = np.array([1, np.nan, np.inf, -np.inf, 0])
REAL = numbers("f8", 3, 4)
for pair in ((REAL, REAL + 1e-9), (MISSING, MISSING), (MISSING, MISSING + 1), (REAL, 1), (1, 1.0), ([1, 2], [1, 2])):
    CASES.add(closeness, *pair)
CASES.add(closeness, REAL, REAL[:2])


def rounding(a):
    return np.round(a), a.round(2), np.around(a, -1), np.fix(a), np.round(a, 1)


CASES.each(rounding, [REAL * 100, (REAL * 7).astype(int), (REAL * 100).astype("f4"), (REAL * 10).astype("f2")])


def special_values(a):
    return np.sinc(a), np.nan_to_num(a), np.nan_to_num(a, nan=1, posinf=2, neginf=3.0), np.isposinf(a), np.isneginf(a)


CASES.each(special_values, [REAL, MISSING, np.arange(3), MISSING.astype("f4"), 0.0, np.float16(2.5)])


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_powers_that_vanish_have_numpy_zeros(kind: type[np.complexfloating[Any, Any]], level: int) -> None:
    x, exponent = np.array([0.5, -0.5j, 0.25], kind), kind(complex(np.inf, 3))
    with options(check=level), np.errstate(all="ignore"):
        found, expected = accelerate(lambda x, exponent: x**exponent)(x, exponent), x**exponent
    assert str(found) == str(expected)
