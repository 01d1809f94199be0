"""`math` on Python floats: their parts, neighbours and remainders, and distances."""

from __future__ import annotations

import math

import numpy as np

from parakeet_py.library.intrinsics import (
    cast,
    check,
    constant,
    dtype_of,
    hand_back,
    is_array,
    is_sequence,
    is_weak,
    prim,
    python_scalar,
)
from parakeet_py.library.math import real_ufunc_loops
from parakeet_py.library.registry import helper, implements, plain

EXACT = 2.0**53  # whole numbers below are floats


def real_of(x):
    """A number as float64; not a complex one."""
    if dtype_of(x).kind == "c" or (is_array(x) and x.ndim > 0):
        hand_back("a real number from something else")
    return cast(x, np.float64)


@implements(math.modf)
def modf(x):
    x = cast(x, np.float64)
    zero = constant(0.0, np.float64)
    integral = prim("trunc", x)
    fraction = prim("select", prim("isinf", x), zero, x - integral)
    return python_scalar(prim("copysign", fraction, x)), python_scalar(prim("copysign", integral, x))


@implements(math.cbrt)
def cbrt(x):
    return python_scalar(prim("cbrt", cast(x, np.float64)))


@implements(math.ulp)
def ulp(x):
    x = prim("abs", cast(x, np.float64))
    up = prim("nextafter", x, constant(math.inf, np.float64)) - x
    down = x - prim("nextafter", x, constant(0.0, np.float64))
    largest = prim("isinf", up)
    finite = prim("select", largest, down, up)
    return python_scalar(prim("select", prim("isfinite", x), finite, x))


@implements(math.frexp)
def frexp(x):
    fraction, exponent = real_ufunc_loops.frexp(real_of(x))
    return python_scalar(fraction), python_scalar(cast(exponent, np.int64))


@implements(math.ldexp)
def ldexp(x, i):
    x = real_of(x)
    if not (is_weak(i) and dtype_of(i).kind in "ib"):
        hand_back("an exponent that is no integer")
    result = real_ufunc_loops.ldexp(x, i)
    fits = prim("isfinite", result) | prim("not", prim("isfinite", x))
    check(fits, "OverflowError", "math range error")
    return python_scalar(result)


@implements(math.nextafter)
def nextafter(x, y):
    return python_scalar(prim("nextafter", real_of(x), real_of(y)))


@implements(math.remainder)
def remainder(x, y):
    x = real_of(x)
    y = real_of(y)
    zero = constant(0.0, np.float64)
    half = constant(0.5, np.float64)
    two = constant(2.0, np.float64)
    known = prim("not", prim("isnan", x) | prim("isnan", y))
    check(prim("not", known & (prim("isinf", x) | (y == zero))), "ValueError", "math domain error")
    size = prim("abs", x)
    divisor = prim("abs", y)
    rest = prim("fmod", size, divisor)
    other = divisor - rest
    # Half way between two multiples, the even one: (|x| - rest) / 2 is a multiple of |y| if that is an even multiple.
    even = rest - two * prim("fmod", half * (size - rest), divisor)
    nearest = prim("select", rest < other, rest, prim("select", rest > other, -other, even))
    nearest = prim("copysign", constant(1.0, np.float64), x) * nearest
    return python_scalar(prim("select", prim("isinf", y) & known, x, nearest))


def halves(x):
    """A float as the sum of two with half its digits (Dekker)."""
    split = constant(134217729.0, np.float64) * x
    high = split - (split - x)
    return high, x - high


@helper
def round_to_digits(x, scale):
    """A float rounded to decimal digits, as Python does it: the exact value, halves to even. `scale`: 1 to 10 ** 22.

    The product by the power of ten is exact in two parts. Below 2 ** 53 the whole number next to it is, and so is the
    power: their quotient is the float next to the decimal number. From there on the float itself is.
    """
    x = cast(x, np.float64)
    scale = cast(scale, np.float64)
    zero, one, half = constant(0.0, np.float64), constant(1.0, np.float64), constant(0.5, np.float64)
    product = x * scale
    (high, low), (tens, ones) = halves(x), halves(scale)
    rest = ((high * tens - product) + high * ones + low * tens) + low * ones
    whole = prim("rint", product)
    off = product - whole
    whole = whole + prim("select", (off == half) & (rest > zero), one, zero)
    whole = whole - prim("select", (off == -half) & (rest < zero), one, zero)
    fits = prim("abs", product) < constant(EXACT, np.float64)
    return python_scalar(prim("select", fits, prim("copysign", whole / scale, x), x))


@plain(math.dist)
def dist(p, q):
    if not (is_sequence(p) and is_sequence(q)):
        hand_back("points that are no tuples or lists of known length")
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return math.hypot(*[float(x) - float(y) for x, y in zip(p, q)])
