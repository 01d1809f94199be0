"""Loops of the real ufuncs that are not primitives, over scalars of the loop's dtypes.

float16 is computed in float32 and rounded once, as NumPy does. Conditions select between values that are both computed,
so that the loops stay free of branches; loops over bits are left to a few integer functions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy._core.umath import clip as clip_ufunc

from parakeet_py.library.intrinsics import cast, check, constant, dtype_of, is_known, prim
from parakeet_py.library.math.complex_ufunc_loops import complex_clip, complex_power, complex_reciprocal, complex_sign
from parakeet_py.library.registry import helper, scalar_function_of, static

INFINITY = math.inf
LN2 = math.log(2)
LOG2E = 1 / math.log(2)
BIT_PAIRS, BIT_FOURS, BIT_BYTES = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F


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
    a = magnitude(x)
    b = magnitude(y)
    while b != constant(0, "uint64"):
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


def magnitude(x):
    """The absolute value of an integer; dividing 64 bits takes a machine no longer than dividing fewer."""
    return cast(cast(prim("abs", x), unsigned_kind(dtype_of(x))), "uint64")


@scalar_function_of(np.bitwise_count)
def bitwise_count(x):
    """The bits of pairs, then of fours and of bytes, are added side by side; a product adds up the bytes."""
    bits = magnitude(x)
    pairs, fours = constant(BIT_PAIRS, "uint64"), constant(BIT_FOURS, "uint64")
    bits = bits - ((bits >> constant(1, "uint64")) & pairs)
    bits = (bits & fours) + ((bits >> constant(2, "uint64")) & fours)
    bits = (bits + (bits >> constant(4, "uint64"))) & constant(BIT_BYTES, "uint64")
    return cast((bits * constant(0x0101010101010101, "uint64")) >> constant(56, "uint64"), "uint8")


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


@static
def float_form(kind):
    """The integers of a float's width, the bits of its mantissa and the bias of its exponent."""
    return ("int64", 52, 1023) if kind == np.float64 else ("int32", 23, 127)


@static
def two_to(exponent):
    return 2.0**exponent


@static
def fields(mantissa, bias):
    """The bits of a float's exponent, and those of an exponent of -1."""
    return (2 * bias + 1) << mantissa, (bias - 1) << mantissa


def power_of_two(exponent, kind):
    """2.0 ** exponent, for exponents of normal numbers."""
    integers, mantissa, bias = float_form(kind)
    return prim("from_bits", (exponent + constant(bias, integers)) << constant(mantissa, integers))


@scalar_function_of(np.ldexp)
def ldexp(x, exponent):
    kind = working_kind(dtype_of(x))
    integers, mantissa, bias = float_form(kind)
    value = cast(x, kind)
    left = cast(min(max(int(exponent), -2200), 2200), integers)
    most, least, lift = constant(bias, integers), constant(1 - bias, integers), constant(bias - 2 - mantissa, integers)
    up, down = constant(two_to(bias), kind), constant(two_to(2 + mantissa - bias), kind)
    # Two steps before the last keep a mantissa's bits above the subnormal range, so that only the last one rounds.
    for _ in (1, 2):
        large = left > most
        small = left < least
        value = prim("select", large, value * up, prim("select", small, value * down, value))
        left = prim("select", large, left - most, prim("select", small, left + lift, left))
    return cast(value * power_of_two(np.minimum(np.maximum(left, least), most), kind), dtype_of(x))


@scalar_function_of(np.frexp)
def frexp(x):
    kind = working_kind(dtype_of(x))
    integers, mantissa, bias = float_form(kind)
    value = cast(x, kind)
    zero = constant(0.0, kind)
    plain = prim("isfinite", value) & (value != zero)
    tiny = prim("abs", value) < constant(two_to(1 - bias), kind)
    lift = mantissa + 2
    bits = prim("bits", prim("select", tiny, value * constant(two_to(lift), kind), value))
    exponents, half = fields(mantissa, bias)
    field = constant(exponents, integers)
    exponent = ((bits & field) >> constant(mantissa, integers)) - constant(bias - 1, integers)
    exponent = prim("select", tiny, exponent - constant(lift, integers), exponent)
    fraction = prim("from_bits", (bits & ~field) | constant(half, integers))
    exponent = cast(prim("select", plain, exponent, constant(0, integers)), "int32")
    return cast(prim("select", plain, fraction, value), dtype_of(x)), exponent


@static
def compares_zeros(kind):
    """Whether there are processors on which NumPy's `minimum` takes -0.0 to be below 0.0; its `clip` never does."""
    return kind.kind == "f" and kind.itemsize > 2


@scalar_function_of(clip_ufunc)
def clip(x, low, high):
    if dtype_of(x).kind == "c":
        return complex_clip(x, low, high)
    if compares_zeros(dtype_of(x)):
        return prim("at_most", prim("at_least", x, low), high)
    return np.minimum(np.maximum(x, low), high)


@helper
def int_quotient(x, y):
    """Python's int / int, rounded once: by long division, until the quotient has bits to round and one for the rest."""
    negative = (x < 0) != (y < 0)
    a, b = prim("abs", cast(x, "int64")), prim("abs", cast(y, "int64"))
    a, b = cast(a, "uint64"), cast(b, "uint64")
    quotient, rest = a // b, a % b
    enough, none, one = constant(1 << 55, "uint64"), constant(0, "uint64"), constant(1, "uint64")
    scale = constant(1.0, "float64")
    while (quotient < enough) & ((quotient | rest) != none):
        rest = rest + rest
        fits = rest >= b
        quotient = quotient + quotient + prim("select", fits, one, none)
        rest = prim("select", fits, rest - b, rest)
        scale = scale * constant(0.5, "float64")
    value = cast(quotient | prim("select", rest != none, one, none), "float64") * scale
    return prim("select", negative, -value, value)


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
