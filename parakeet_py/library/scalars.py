"""Loops of the real ufuncs that are not primitives, over scalars of the loop's dtypes.

float16 is computed in float32 and rounded once, as NumPy does. Conditions select between values that are both computed,
so that the loops stay free of branches; loops over bits are left to a few integer functions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy._core.umath import clip as clip_ufunc

from parakeet_py.library.complex_scalars import complex_power, complex_reciprocal, complex_sign
from parakeet_py.library.intrinsics import cast, check, constant, dtype_of, is_known, prim
from parakeet_py.library.registry import helper, scalar_function_of, static

INFINITY = math.inf
LN2 = math.log(2)
LOG2E = 1 / math.log(2)


@static
def working_kind(kind):
    """The float type a loop computes in."""
    return np.dtype("float32") if kind == np.float16 else kind


@static
def unsigned_kind(kind):
    return np.dtype(f"u{kind.name}") if kind.kind == "i" else kind


@static
def integer_reciprocal_of_zero(kind):
    with np.errstate(all="ignore"):
        return np.reciprocal(kind.type(0)).item()


@static
def bits_of(exponent):
    """The binary digits of a non-negative int, the lowest first."""
    return tuple(digit == "1" for digit in f"{int(exponent):b}"[::-1])


@static
def scaled_constant(numerator, denominator, kind):
    """numerator / denominator in the arithmetic of a float type."""
    return (kind.type(numerator) / kind.type(denominator)).item()


@scalar_function_of(np.sign)
def sign(x):
    kind = dtype_of(x)
    if kind.kind == "u":
        return cast(x > constant(0, kind), kind)
    zero = constant(0, kind)
    if kind.kind == "f":
        one = constant(1, kind)
        signed = prim("select", x > zero, one, prim("select", x < zero, prim("neg", one), zero))
        return prim("select", prim("isnan", x), x, signed)
    if kind.kind == "c":
        return complex_sign(x)
    return prim("sub", cast(x > zero, kind), cast(x < zero, kind))


@scalar_function_of(np.heaviside)
def heaviside(x, at_zero):
    kind = dtype_of(x)
    zero = constant(0, kind)
    step = prim("select", x > zero, constant(1, kind), prim("select", x < zero, zero, at_zero))
    return prim("select", prim("isnan", x), x, step)


@scalar_function_of(np.logaddexp)
def logaddexp(x, y):
    kind = working_kind(dtype_of(x))
    x = cast(x, kind)
    y = cast(y, kind)
    gap = x - y
    larger = prim("select", gap > constant(0, kind), x, y)
    apart = larger + prim("log1p", prim("exp", prim("neg", prim("abs", gap))))
    apart = prim("select", prim("isnan", gap), gap, apart)
    return prim("select", x == y, x + constant(LN2, kind), apart)


@scalar_function_of(np.logaddexp2)
def logaddexp2(x, y):
    kind = working_kind(dtype_of(x))
    x = cast(x, kind)
    y = cast(y, kind)
    gap = x - y
    larger = prim("select", gap > constant(0, kind), x, y)
    scale = constant(LOG2E, kind)
    apart = larger + scale * prim("log1p", prim("exp2", prim("neg", prim("abs", gap))))
    apart = prim("select", prim("isnan", gap), gap, apart)
    return prim("select", x == y, x + constant(1, kind), apart)


@scalar_function_of(np.deg2rad, np.radians)
def deg2rad(x):
    kind = working_kind(dtype_of(x))
    return cast(x, kind) * constant(scaled_constant(math.pi, 180, kind), kind)


@scalar_function_of(np.rad2deg, np.degrees)
def rad2deg(x):
    kind = working_kind(dtype_of(x))
    return cast(x, kind) * constant(scaled_constant(180, math.pi, kind), kind)


@scalar_function_of(np.reciprocal)
def reciprocal(x):
    kind = dtype_of(x)
    if kind.kind == "c":
        return complex_reciprocal(x)
    one = constant(1, kind)
    unit = x == one
    if kind.kind == "i":
        unit = unit | (x == constant(-1, kind))
    result = prim("select", unit, x, constant(0, kind))
    return prim("select", x == constant(0, kind), constant(integer_reciprocal_of_zero(kind), kind), result)


@scalar_function_of(np.power)
def integer_power(base, exponent):
    """base ** exponent by squaring, wrapping around."""
    kind = dtype_of(base)
    if kind.kind == "c":
        return complex_power(base, exponent)
    if kind.kind == "i":
        check(exponent >= constant(0, kind), "ValueError", "Integers to negative integer powers are not allowed.")
    result = constant(1, kind)
    if is_known(exponent):
        if exponent > 0:
            for bit in bits_of(exponent):
                if bit:
                    result = result * base
                base = base * base
        return result
    one = constant(1, kind)
    while exponent != constant(0, kind):
        result = prim("select", (exponent & one) == one, result * base, result)
        base = base * base
        exponent = exponent >> one
    return result


@scalar_function_of(np.gcd)
def gcd(x, y):
    kind = unsigned_kind(dtype_of(x))
    a = cast(prim("abs", x), kind)
    b = cast(prim("abs", y), kind)
    while b != constant(0, kind):
        a, b = b, a % b
    return cast(a, dtype_of(x))


@scalar_function_of(np.lcm)
def lcm(x, y):
    kind = unsigned_kind(dtype_of(x))
    divisor = cast(np.gcd(x, y), kind)
    one = constant(1, kind)
    divisor = prim("select", divisor == constant(0, kind), one, divisor)
    a = cast(prim("abs", x), kind)
    b = cast(prim("abs", y), kind)
    return cast(a // divisor * b, dtype_of(x))


@scalar_function_of(np.bitwise_count)
def bitwise_count(x):
    if dtype_of(x).kind == "i":
        x = prim("abs", x)
    bits = cast(cast(x, unsigned_kind(dtype_of(x))), "uint64")
    count = constant(0, "uint64")
    one = constant(1, "uint64")
    while bits != constant(0, "uint64"):
        bits = bits & (bits - one)
        count = count + one
    return cast(count, "uint8")


@scalar_function_of(np.divmod)
def divmod_(x, y):
    return prim("floordiv", x, y), prim("mod", x, y)


@scalar_function_of(np.modf)
def modf(x):
    whole = prim("trunc", x)
    fraction = prim("select", prim("isinf", x), constant(0, dtype_of(x)), x - whole)
    return prim("copysign", fraction, x), whole


@scalar_function_of(np.spacing)
def spacing(x):
    kind = dtype_of(x)
    infinity = constant(INFINITY, kind)
    if kind == np.float16:  # NumPy measures towards plus infinity here, away from zero elsewhere
        return prim("select", prim("isinf", x), infinity - infinity, prim("nextafter", x, infinity) - x)
    away = prim("nextafter", x, prim("copysign", infinity, x)) - x
    return prim("select", x == constant(0, kind), prim("abs", away), away)


def power_of_two(exponent):
    """2.0 ** exponent for -1022 <= exponent <= 1023, exact."""
    base = prim("select", exponent < 0, 0.5, 2.0)
    left = abs(exponent)
    result = 1.0
    while left > 0:
        result = prim("select", left % 2 == 1, result * base, result)
        left = left // 2
        base = prim("select", left > 0, base * base, base)
    return result


@scalar_function_of(np.ldexp)
def ldexp(x, exponent):
    kind = dtype_of(x)
    value = cast(x, "float64")
    left = min(max(int(exponent), -2200), 2200)
    # Two steps before the last keep 53 bits above the subnormal range, so that only the last one rounds.
    for _ in (1, 2):
        large = left > 1023
        small = left < -1022
        value = prim("select", large, value * 2.0**1023, prim("select", small, value * 2.0**-969, value))
        left = prim("select", large, left - 1023, prim("select", small, left + 969, left))
    return cast(value * power_of_two(min(max(left, -1022), 1023)), kind)


@scalar_function_of(np.frexp)
def frexp(x):
    value = float(x)
    plain = prim("isfinite", value) & (value != 0.0)
    tiny = abs(value) < 2.0**-1000
    safe = prim("select", plain, prim("select", tiny, value * 2.0**100, value), 0.5)
    exponent = int(prim("floor", prim("log2", abs(safe)))) + 1
    half = exponent // 2
    fraction = safe * power_of_two(-half) * power_of_two(half - exponent)
    # The logarithm may be one off next to a power of two.
    high = abs(fraction) >= 1.0
    low = abs(fraction) < 0.5
    fraction = prim("select", high, fraction * 0.5, prim("select", low, fraction * 2.0, fraction))
    exponent = exponent + int(high) - int(low)
    exponent = prim("select", plain & tiny, exponent - 100, exponent)
    return cast(prim("select", plain, fraction, value), dtype_of(x)), cast(exponent, "int32")


@scalar_function_of(clip_ufunc)
def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


@helper
def int_power(base, exponent):
    """Python's int ** non-negative int, by squaring."""
    result = 1
    while exponent > 0:
        if exponent & 1:
            result = result * base
        exponent = exponent >> 1
        if exponent > 0:
            base = base * base
    return result
