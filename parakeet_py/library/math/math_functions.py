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
from parakeet_py.library.registry import helper, implements

EXACT = 2.0**53  # whole numbers below are floats
TINY, HUGE = 2.0**-600, 2.0**600
MOST = 16  # coordinates of points, whose code is written out


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


@implements(math.hypot)
def hypot(*coordinates):
    if len(coordinates) > MOST:
        hand_back("the norm of many numbers")
    return python_scalar(norm([prim("abs", real_of(x)) for x in coordinates]))


def norm(sizes):
    """The root of the sum of the squares of numbers that are not negative, in the arithmetic of CPython's `math`.

    Scaled so that the largest is below 1, they are squared in two parts each, and the high parts are added to 1, beside
    the errors of these additions. A step of Newton's method with what the square of the root leaves corrects it.
    """
    zero, one, two = constant(0.0, np.float64), constant(1.0, np.float64), constant(2.0, np.float64)
    infinity = constant(math.inf, np.float64)
    if len(sizes) == 0:
        return zero
    if len(sizes) == 1:
        return sizes[0]
    largest, unknown = zero, zero  # unknown: NaN if one is
    for x in sizes:
        largest = prim("fmax", largest, x)
        unknown = unknown + prim("select", prim("isnan", x), x, zero)
    # Both factors are powers of two: the first makes subnormal numbers normal, and the second's reciprocal a float.
    tiny, huge = largest < constant(TINY, np.float64), largest > constant(HUGE, np.float64)
    lower = prim("select", huge, constant(TINY, np.float64), one)
    lift = prim("select", tiny, constant(HUGE, np.float64), lower)
    ordinary = prim("isfinite", largest) & (largest > zero)
    exponent = prim("bits", prim("select", ordinary, largest * lift, one)) >> constant(52, np.int64)
    scale = prim("from_bits", (constant(2045, np.int64) - exponent) << constant(52, np.int64))
    total, products, additions = one, zero, zero
    for x in sizes:
        high, low = square(x * lift * scale)
        products = products + low
        total, low = sum_of_two(total, high)
        additions = additions + low
    root = prim("sqrt", total - one + (products + additions))
    high, low = square(root)
    total, addition = sum_of_two(total, -high)
    rest = total - one + ((products - low) + (additions + addition))
    root = (root + rest / (two * root)) * (one / scale) * (one / lift)
    result = prim("select", prim("isnan", unknown), unknown, prim("select", ordinary, root, largest))
    return prim("select", largest == infinity, infinity, result)


def square(x):
    """x * x, rounded, and the error (Dekker)."""
    product = x * x
    high, low = halves(x)
    return product, ((high * high - product) + (high * low + low * high)) + low * low


def sum_of_two(large, small):
    """The sum of a number and one that is not larger, rounded, and the error (Dekker)."""
    total = large + small
    return total, (large - total) + small


@implements(math.dist)
def dist(p, q):
    if not (is_sequence(p) and is_sequence(q)):
        hand_back("points that are no tuples or lists of known length")
    if len(p) != len(q):
        check(False, "ValueError", "both points must have the same number of dimensions")
    return hypot(*[real_of(x) - real_of(y) for x, y in zip(p, q)])
