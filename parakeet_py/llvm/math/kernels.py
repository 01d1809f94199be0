"""Elementary functions from basic operations, without branches: the kernels of the vector math library.

A kernel takes its arguments' lanes and gives a `Result`: the value, and possibly a mask of *odd* lanes that the value
is wrong for, with the code that puts it right (run only if there is such a lane; the C library, lane by lane, if there
is no such code). In the end everything is right in every lane: infinities, NaN, signed zeros, subnormal numbers.

The methods are the classical ones: argument reduction by Cody and Waite with fused multiply-add, minimax polynomials
(`coefficients`), and a low-order part carried along where the last addition would lose it (P. T. P. Tang's
and FDLIBM's formulas). Errors stay below 1.3 units in the last place (tanh, exp2, atan, erf: 1.6). A CPU computes
results of float32 in double, with short polynomials, to 0.7 units; the commonest (exp, log, pow) it computes in
float32, as a GPU does all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from parakeet_py.base.fast_dataclass import record
from parakeet_py.llvm.math import coefficients as tables
from parakeet_py.llvm.math.lanes import Lanes


@record
class Result:
    """What a kernel wrote: a value; `repair` writes the right value of the lanes in the mask `odd`."""

    value: str
    odd: str | None = None
    repair: Callable[[], str] | None = None


Kernel = Callable[..., Result]

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LN2_HIGH_SINGLE, LN2_LOW_SINGLE = 0.693145751953125, 1.428606765330187e-06
# pi/2 in three parts; x - n * (the first) is exact in both
_PI_2 = (1.5707963267341256, 6.077100506506192e-11, 3.5215598651832e-27)
_PI_2_SINGLE = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
_TRIGONOMETRIC_LIMIT, _TRIGONOMETRIC_LIMIT_SINGLE = 1.0e6, 4.0e4  # beyond, there are not enough parts


def table(k: Lanes, name: str) -> tuple[float, ...]:
    """The coefficients of a polynomial, as many as the result's precision needs."""
    found: tuple[float, ...] = getattr(tables, name + ("32" if k.short else "64"))
    return found


def ln2(k: Lanes) -> tuple[float, float]:
    """ln(2) in two parts, the first short enough that its product with an exponent is exact."""
    return (LN2_HIGH, LN2_LOW) if k.double else (LN2_HIGH_SINGLE, LN2_LOW_SINGLE)


# ---- exponentials ----------------------------------------------------------------------------------------------------


def exp(k: Lanes, x: str) -> Result:
    """exp(x) = 2**n exp(r), |r| <= ln(2)/2."""
    x = k.at_least(k.at_most(x, 130.0 if k.short else 720.0), -130.0 if k.short else -760.0)
    n, n_bits = k.round_to_integer(k.mul(x, k.constant(LOG2_E)))
    minus_n = k.neg(n)
    high, low = ln2(k)
    r = k.fma(minus_n, k.constant(high), x)
    r = k.fma(minus_n, k.constant(low), r)
    tail = k.polynomial(table(k, "EXP"), r)
    p = k.add(k.fma(tail, k.mul(r, r), r), k.constant(1.0))
    return Result(k.times_power_of_two(p, n, n_bits))


def exp2(k: Lanes, x: str) -> Result:
    """2**x = 2**n 2**r, |r| <= 1/2, r exact."""
    x = k.at_least(k.at_most(x, 180.0 if k.short else 1040.0), -180.0 if k.short else -1100.0)
    n, n_bits = k.round_to_integer(x)
    p = _power_of_fraction(k, k.sub(x, n))
    return Result(k.times_power_of_two(p, n, n_bits))


def _power_of_fraction(k: Lanes, r: str) -> str:
    return k.fma(k.polynomial(table(k, "EXP2"), r), r, k.constant(1.0))


def tanh(k: Lanes, x: str) -> Result:
    """(exp(2|x|) - 1)/(exp(2|x|) + 1), of exp(2|x|) = 2**n (1 + r + tail): 2**n (1 + r) - 1 is rounded once."""
    size = k.absolute(x)
    twice = k.at_most(k.add(size, size), 60.0)
    n, n_bits = k.round_to_integer(k.mul(twice, k.constant(LOG2_E)))
    minus_n = k.neg(n)
    high, low = ln2(k)
    r, r_low = k.fma(minus_n, k.constant(high), twice), k.mul(minus_n, k.constant(low))  # r is exact
    rest = k.add(r, r_low)
    tail = k.fma(k.two_chains(table(k, "EXPM1"), rest), k.mul(rest, rest), r_low)
    power = k.times_power_of_two(k.constant(1.0), n, n_bits)
    two = k.constant(2.0)
    less, more = k.fma(power, r, k.sub(power, k.constant(1.0))), k.mul(power, tail)
    above, above_low = k.fast_two_sum(less, more)
    below, below_low = k.two_sum(two, above)
    inverse = k.div(k.constant(1.0), below)
    quotient = k.mul(above, inverse)
    rest = k.fma(k.neg(quotient), below_low, k.fma(k.neg(quotient), below, above))
    return Result(k.copysign(k.fma(k.add(rest, above_low), inverse, quotient), x))


# ---- logarithms ------------------------------------------------------------------------------------------------------


def _log_parts(k: Lanes, x: str) -> tuple[str, str, str, str, str]:
    """x = 2**n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): n, f, s = f/(2+f), half f**2, and the tail with
    log(1+f) = f - (half - s (half + tail)). Wrong for subnormal numbers."""
    bits = k.to_bits(x)
    root = 0x3FE6A09E667F3BCD if k.double else 0x3F3504F3  # the bits of sqrt(1/2)
    exponent = k.integer("ashr", k.integer("sub", bits, k.bits(root)), k.bits(k.mantissa))
    mantissa = k.integer("sub", bits, k.integer("shl", exponent, k.bits(k.mantissa)))
    n = k.integer_to_float(exponent)
    f = k.sub(k.from_bits(mantissa), k.constant(1.0))
    s = k.div(f, k.add(f, k.constant(2.0)))
    z = k.mul(s, s)
    tail = k.mul(z, k.polynomial(table(k, "LOG"), z))
    half = k.mul(k.mul(k.constant(0.5), f), f)
    return n, f, s, half, tail


def irregular(k: Lanes, x: str) -> str:
    """One comparison that finds zero, subnormal and negative numbers, infinity and NaN."""
    least = 1 << k.mantissa
    count = ((2 * k.bias + 1) << k.mantissa) - least
    above = k.integer("sub", k.to_bits(x), k.bits(least))
    return k.f.value(f"icmp uge {k.of(k.integers)} {above}, {k.bits(count)}")


def pole(k: Lanes, mask: str) -> str:
    """Infinity in the lanes of a mask, by a division by zero, which sets the processor's flag; else 1."""
    one = k.constant(1.0)
    return k.div(one, k.select(mask, k.constant(0.0), one))


def no_number(k: Lanes, mask: str) -> str:
    """NaN in the lanes of a mask, by a root that sets the processor's flag; else 1."""
    return k.call("sqrt", k.select(mask, k.constant(-1.0), k.constant(1.0)))


def _logarithm(k: Lanes, x: str, formula: Callable[[str, str | None], str]) -> Result:
    """A logarithm by `formula(x, shift)`, which adds `shift` to the exponent of x."""
    odd = irregular(k, x)

    def repair() -> str:
        factor = k.mantissa + 2
        tiny = k.compare("olt", x, k.constant(2.0 ** (1 - k.bias)))
        scaled = k.select(tiny, k.mul(x, k.constant(2.0**factor)), x)
        result = formula(scaled, k.select(tiny, k.constant(float(-factor)), k.constant(0.0)))
        infinity, zero = k.constant(math.inf), k.constant(0.0)
        result = k.select(k.compare("oeq", x, infinity), infinity, result)
        at_zero, below = k.compare("oeq", x, zero), k.compare("olt", x, zero)
        result = k.select(at_zero, k.neg(pole(k, at_zero)), result)
        result = k.select(below, no_number(k, below), result)
        return k.select(k.compare("uno", x, x), x, result)

    return Result(formula(x, None), odd, repair)


def log(k: Lanes, x: str) -> Result:
    def formula(x: str, shift: str | None) -> str:
        n, f, s, half, tail = _log_parts(k, x)
        n = n if shift is None else k.add(n, shift)
        high, low = ln2(k)
        inner = k.fma(s, k.add(half, tail), k.mul(n, k.constant(low)))
        return k.fma(n, k.constant(high), k.sub(f, k.sub(half, inner)))

    return _logarithm(k, x, formula)


def _scaled_log(k: Lanes, x: str, per_e: float, per_e_low: float, per_2: float, per_2_low: float) -> Result:
    """log(x) in another base: `per_e` is the logarithm of e in it, `per_2` that of 2, each in two parts."""

    factor, factor_low = k.pair(per_e, per_e_low)
    if not k.double:  # a shorter high part: its product with n is exact
        short = math.floor(per_2 * 2.0**16) / 2.0**16
        per_2, per_2_low = short, per_2 - short + per_2_low

    def formula(x: str, shift: str | None) -> str:
        n, f, s, half, tail = _log_parts(k, x)
        n = n if shift is None else k.add(n, shift)
        high = k.sub(f, half)
        low = k.fma(s, k.add(half, tail), k.sub(k.sub(f, high), half))
        head = k.mul(high, factor)
        rest = k.fma(high, factor, k.neg(head))
        rest = k.fma(high, factor_low, rest)
        rest = k.fma(low, factor, rest)
        whole = k.mul(n, k.constant(per_2))
        if per_2_low:
            rest = k.fma(n, k.constant(per_2_low), rest)
        total = k.add(whole, head)
        return k.add(total, k.add(rest, k.add(k.sub(whole, total), head)))

    return _logarithm(k, x, formula)


def log2(k: Lanes, x: str) -> Result:
    return _scaled_log(k, x, 1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0)


def log10(k: Lanes, x: str) -> Result:
    # the high part of log10(2) has 42 bits, so that its product with n is exact
    return _scaled_log(k, x, 0.4342944819032518, 1.098319650216765e-17, 0.30102999566395283, 2.8363394551044964e-14)


# ---- trigonometry ----------------------------------------------------------------------------------------------------


class Reduced(NamedTuple):
    """x = n pi/2 + high + low. `turns`: an integer whose low bits are those of n; `odd`: where x is too large."""

    high: str
    low: str
    turns: str
    odd: str | None


Reduction = Callable[[Lanes, str], Reduced]


def reduce(k: Lanes, x: str) -> Reduced:
    """Reduce arguments of moderate size."""
    n, n_bits = k.round_to_integer(k.mul(x, k.constant(2 / math.pi)))
    minus_n = k.neg(n)
    one, two, three = (k.constant(part) for part in (_PI_2 if k.double else _PI_2_SINGLE))
    first = k.fma(minus_n, one, x)  # exact
    # near a multiple of pi/2 almost all of `first` cancels, and what is left has to be exact too
    product = k.mul(minus_n, two)
    high, lost = k.two_sum(first, product)
    product_low = k.fma(minus_n, two, k.neg(product))
    low = k.add(k.fma(minus_n, three, product_low), lost)
    limit = _TRIGONOMETRIC_LIMIT if k.double else _TRIGONOMETRIC_LIMIT_SINGLE
    odd = k.compare("uge", k.absolute(x), k.constant(limit))
    return Reduced(high, low, n_bits, odd)


def sine_and_cosine(k: Lanes, high: str, low: str) -> tuple[str, str, str, str]:
    """sin = high + sine part, cos = base + cosine part, of an argument high + low in [-pi/4, pi/4]."""
    z = k.mul(high, high)
    odd_tail = k.mul(k.mul(high, z), k.polynomial(table(k, "SIN"), z))
    # sin(high + low) = sin(high) + low cos(high), cos(high) = 1 - z/2
    half = k.mul(z, k.constant(0.5))
    sine = k.add(odd_tail, k.fma(k.neg(low), half, low))
    base = k.sub(k.constant(1.0), half)
    lost = k.sub(k.sub(k.constant(1.0), base), half)
    even_tail = k.fma(k.mul(z, z), k.polynomial(table(k, "COS"), z), lost)
    cosine = k.fma(k.neg(high), low, even_tail)
    return high, sine, base, cosine


def _trigonometric(k: Lanes, x: str, quarter_turns: int, reduction: Reduction) -> tuple[str, str | None]:
    high, low, n_bits, odd = reduction(k, x)
    head, sine, base, cosine = sine_and_cosine(k, high, low)
    turns = k.integer("add", n_bits, k.bits(quarter_turns)) if quarter_turns else n_bits
    even = k.is_zero(k.integer("and", turns, k.bits(1)))
    result = k.add(k.select(even, head, base), k.select(even, sine, cosine))
    sign = k.integer("shl", k.integer("and", turns, k.bits(2)), k.bits(62 if k.double else 30))
    result = k.from_bits(k.integer("xor", k.to_bits(result), sign))
    return result, odd


def sin(k: Lanes, x: str, reduction: Reduction = reduce) -> Result:
    result, odd = _trigonometric(k, x, 0, reduction)
    # n is 0 for a zero, but high is x - 0 and its sine part +0: -0 must be kept
    return Result(k.select(k.compare("oeq", x, k.constant(0.0)), x, result), odd)


def cos(k: Lanes, x: str, reduction: Reduction = reduce) -> Result:
    result, odd = _trigonometric(k, x, 1, reduction)
    return Result(result, odd)


def tan(k: Lanes, x: str, reduction: Reduction = reduce) -> Result:
    """tan of what is left of x, or -1/tan at odd multiples of pi/2; the quotient is corrected once."""
    high, low, n_bits, odd = reduction(k, x)
    z = k.mul(high, high)
    one = k.constant(1.0)
    slope = k.fma(z, k.constant(1.3), one)  # about 1 + tan**2
    tail = k.fma(k.mul(high, z), k.two_chains(table(k, "TAN"), z), k.mul(low, slope))
    total, rest = k.fast_two_sum(high, tail)
    even = k.is_zero(k.integer("and", n_bits, k.bits(1)))
    divisor = k.select(even, one, total)  # where it is not wanted, nothing is divided by zero
    inverse = k.div(k.constant(-1.0), divisor)
    wrong = k.fma(inverse, rest, k.fma(inverse, divisor, one))
    result = k.select(even, total, k.fma(inverse, wrong, inverse))
    return Result(k.select(k.compare("oeq", x, k.constant(0.0)), x, result), odd)


def atan(k: Lanes, x: str) -> Result:
    """By the reciprocal beyond 1: atan(x) = pi/2 - atan(1/x)."""
    size = k.absolute(x)
    large = k.compare("ogt", size, k.constant(1.0))
    inverse = k.div(k.constant(1.0), size)
    t = k.select(large, inverse, size)
    z = k.mul(t, t)
    tail = k.mul(k.mul(t, z), k.polynomial(table(k, "ATAN"), z))
    # what rounding took from 1/x, so that the subtraction from pi/2 is of the exact reciprocal
    lost = k.mul(k.fma(k.neg(inverse), size, k.constant(1.0)), inverse)
    lost = k.select(k.compare("one", size, k.constant(math.inf)), lost, k.constant(0.0))
    small = k.add(t, tail)
    quarter, quarter_low = k.pair(math.pi / 2, 6.123233995736766e-17)
    turned = k.add(k.sub(quarter, t), k.sub(quarter_low, k.add(tail, lost)))
    return Result(k.copysign(k.select(large, turned, small), x))


# ---- remainder -------------------------------------------------------------------------------------------------------


def fmod(k: Lanes, x: str, y: str) -> Result:
    """x - trunc(x/y) y, exactly.

    The rounded quotient, cut to an integer q, is the true one or 1 too large in size. The remainder is a number of the
    format in the first case, hence a fused product and sum gives it; in the second it is y too small, which is a number
    of the format too (a multiple of y's last place no larger than y, or a difference of neighbours).
    """
    q = k.call("trunc", k.div(x, y))
    r = k.fma(k.neg(q), y, x)
    zero = k.constant(0.0)
    beyond = k.compare("olt", k.copysign(k.constant(1.0), x), zero)
    # r on the other side of zero than x: one divisor back
    crossed = k.select(beyond, k.neg(r), r)
    r = k.select(k.compare("olt", crossed, zero), k.add(r, k.copysign(k.absolute(y), x)), r)
    large = k.compare("uge", k.absolute(q), k.constant(2.0**k.mantissa))
    endless = k.compare("oeq", k.absolute(y), k.constant(math.inf))
    return Result(k.copysign(r, x), k.either(large, endless))


# ---- the error function ----------------------------------------------------------------------------------------------


def erf(k: Lanes, x: str) -> Result:
    """x + x p(x**2) up to 1, 1 - 2**p(|x| - 2) beyond."""
    size = k.at_most(k.absolute(x), 4.0 if k.short else 6.0)
    z = k.mul(size, size)
    small = k.fma(size, k.polynomial(table(k, "ERF_SMALL"), z), size)
    power = k.polynomial(table(k, "ERF_LARGE"), k.sub(size, k.constant(2.0)))
    n, n_bits = k.round_to_integer(power)
    fraction = _power_of_fraction(k, k.sub(power, n))
    scaled = k.integer("add", k.to_bits(fraction), k.integer("shl", n_bits, k.bits(k.mantissa)))
    large = k.sub(k.constant(1.0), k.from_bits(scaled))
    result = k.select(k.compare("olt", size, k.constant(1.0)), small, large)
    return Result(k.copysign(k.select(k.compare("uno", x, x), x, result), x))


KERNELS: dict[str, tuple[Kernel, int]] = {
    "exp": (exp, 1),
    "exp2": (exp2, 1),
    "log": (log, 1),
    "log2": (log2, 1),
    "log10": (log10, 1),
    "sin": (sin, 1),
    "cos": (cos, 1),
    "tan": (tan, 1),
    "atan": (atan, 1),
    "erf": (erf, 1),
    "tanh": (tanh, 1),
    "fmod": (fmod, 2),
}
SINGLE = frozenset({"exp", "log", "pow"})  # whose float32 forms compute in float32
