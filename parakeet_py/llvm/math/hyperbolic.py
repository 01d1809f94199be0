"""expm1, log1p, the hyperbolic functions and their inverses, as kernels (see `vector_math_kernels`).

Near zero they are odd polynomials, elsewhere exp or log of an argument in two parts. Errors stay below 1.6 units in the
last place.
"""

from __future__ import annotations

import math

from parakeet_py.llvm.math import pairs
from parakeet_py.llvm.math.kernels import LOG2_E, Result, ln2, table
from parakeet_py.llvm.math.lanes import Lanes


def _odd(k: Lanes, name: str, x: str) -> str:
    """x + x z p(z), z = x*x."""
    z = k.mul(x, x)
    return k.fma(k.mul(x, z), k.polynomial(table(k, name), z), x)


def _exp_and_rest(k: Lanes, x: str) -> tuple[str, str, str, str]:
    """exp(x) = 2**n (1 + r + rest): r, rest, n and its bits."""
    n, n_bits = k.round_to_integer(k.mul(x, k.constant(LOG2_E)))
    minus_n = k.neg(n)
    high, low = (k.constant(part) for part in ln2(k))
    first = k.fma(minus_n, high, x)
    r = k.fma(minus_n, low, first)
    lost = k.fma(minus_n, low, k.sub(first, r))
    return r, k.fma(k.polynomial(table(k, "EXP"), r), k.mul(r, r), lost), n, n_bits


def expm1(k: Lanes, x: str) -> Result:
    """2**n (r + rest) + (2**n - 1), in which 2**n is halved for the last exponent before overflow."""
    largest = k.bias + 1.0
    limited = k.at_least(k.at_most(x, largest * math.log(2)), -60.0)
    r, rest, n, n_bits = _exp_and_rest(k, limited)
    last = k.compare("oeq", n, k.constant(largest))
    whole = k.integer("sub", n_bits, k.bits(k.magic_bits))
    whole = k.select(last, k.bits(k.bias), whole, k.integers)
    power = k.power_of_two(whole)
    unit = k.select(last, k.constant(0.5), k.constant(1.0))
    left, right = k.mul(power, r), k.sub(power, unit)
    total, lost = k.two_sum(right, left)
    total = k.add(total, k.fma(power, rest, lost))
    result = k.mul(total, k.select(last, k.constant(2.0), k.constant(1.0)))
    over = k.compare("ogt", x, k.constant(largest * math.log(2)))
    result = k.select(over, k.constant(math.inf), result)
    return Result(k.select(k.compare("oeq", x, k.constant(0.0)), x, result))


def _half_exp(k: Lanes, size: str) -> str:
    """exp(size) / 2, also where exp(size) is too large a number."""
    size = k.at_most(size, 95.0 if k.short else 720.0)
    r, rest, n, n_bits = _exp_and_rest(k, size)
    p = k.add(k.add(r, rest), k.constant(1.0))
    one = k.integer("sub", n_bits, k.bits(1))
    return k.times_power_of_two(p, k.sub(n, k.constant(1.0)), one)


def sinh(k: Lanes, x: str) -> Result:
    size = k.absolute(x)
    half = _half_exp(k, size)
    large = k.sub(half, k.div(k.constant(0.25), half))
    small = k.compare("olt", size, k.constant(1.0))
    return Result(k.copysign(k.select(small, _odd(k, "SINH", size), large), x))


def cosh(k: Lanes, x: str) -> Result:
    half = _half_exp(k, k.absolute(x))
    return Result(k.add(half, k.div(k.constant(0.25), half)))


# ---- logarithms ------------------------------------------------------------------------------------------------------


def _log_of_parts(k: Lanes, n: str, f: str, low: str) -> str:
    """n log(2) + log(1 + f) + low."""
    s = k.div(f, k.add(f, k.constant(2.0)))
    z = k.mul(s, s)
    tail = k.mul(z, k.polynomial(table(k, "LOG"), z))
    half = k.mul(k.mul(k.constant(0.5), f), f)
    ln2_high, ln2_low = ln2(k)
    inner = k.fma(s, k.add(half, tail), k.fma(n, k.constant(ln2_low), low))
    return k.fma(n, k.constant(ln2_high), k.sub(f, k.sub(half, inner)))


def _log_of_sum(k: Lanes, v: str, low: str) -> str:
    """log(1 + v + low) for v > -1 below infinity."""
    u, lost = k.two_sum(k.constant(1.0), v)
    n, f = pairs.split_exponent(k, u)
    near = k.compare("oeq", n, k.constant(0.0))
    f = k.select(near, v, f)
    low = k.add(low, k.select(near, k.constant(0.0), lost))
    return _log_of_parts(k, n, f, k.div(low, u))


def log1p(k: Lanes, x: str) -> Result:
    infinity = k.constant(math.inf)
    result = _log_of_sum(k, x, k.constant(0.0))
    result = k.select(k.compare("oeq", x, infinity), infinity, result)
    result = k.select(k.compare("oeq", x, k.constant(-1.0)), k.constant(-math.inf), result)
    result = k.select(k.compare("ult", x, k.constant(-1.0)), k.constant(math.nan), result)
    return Result(k.select(k.compare("oeq", x, k.constant(0.0)), x, result))


def _log_of_double(k: Lanes, x: str) -> str:
    """log(2 x) of a large number."""
    n, f = pairs.split_exponent(k, x)
    return _log_of_parts(k, k.add(n, k.constant(1.0)), f, k.constant(0.0))


def _large(k: Lanes) -> float:
    """Numbers whose squares are not overflowing, and so large that 1 is nothing beside them and their logarithm."""
    return 2.0**60 if k.double else 2.0**30


def _finite_or_itself(k: Lanes, x: str, result: str) -> str:
    """The result, but infinity and NaN are their own."""
    return k.select(k.compare("olt", x, k.constant(math.inf)), result, x)


def asinh(k: Lanes, x: str) -> Result:
    """log(|x| + sqrt(x*x + 1)), the argument in two parts."""
    size = k.absolute(x)

    def of_moderate() -> str:
        square, low = pairs.product(k, size, size)
        total, lost = k.two_sum(square, k.constant(1.0))
        root, root_low = pairs.square_root(k, total, k.add(low, lost))
        argument, lost = k.two_sum(size, root)
        n, f = pairs.split_exponent(k, argument)
        return _log_of_parts(k, n, f, k.div(k.add(lost, root_low), argument))

    def of_others() -> str:
        large = k.compare("oge", size, k.constant(_large(k)))
        return k.either_way(large, lambda: _log_of_double(k, size), of_moderate)

    small = k.compare("olt", size, k.constant(0.5))
    result = k.either_way(small, lambda: _odd(k, "ASINH", size), of_others)
    return Result(k.copysign(_finite_or_itself(k, size, result), x))


def acosh(k: Lanes, x: str) -> Result:
    """log(1 + t + sqrt(2 t + t*t)), t = x - 1."""

    def of_moderate() -> str:
        t = k.sub(x, k.constant(1.0))
        square, low = pairs.product(k, t, t)
        total, lost = k.two_sum(k.add(t, t), square)
        root, root_low = pairs.square_root(k, total, k.add(low, lost))
        argument, lost = k.two_sum(t, root)
        return _log_of_sum(k, argument, k.add(lost, root_low))

    large = k.compare("oge", x, k.constant(_large(k)))
    result = k.either_way(large, lambda: _log_of_double(k, x), of_moderate)
    result = _finite_or_itself(k, x, result)
    return Result(k.select(k.compare("ult", x, k.constant(1.0)), k.constant(math.nan), result))


def atanh(k: Lanes, x: str) -> Result:
    """log((1 + |x|) / (1 - |x|)) / 2, the quotient in two parts."""
    size = k.absolute(x)
    one = k.constant(1.0)

    def of_large() -> str:
        top, lost = pairs.fast_sum(k, one, size)
        bottom = k.sub(one, size)  # exact
        quotient = k.div(top, bottom)
        rest = k.div(k.add(k.fma(k.neg(quotient), bottom, top), lost), bottom)
        n, f = pairs.split_exponent(k, quotient)
        return k.mul(k.constant(0.5), _log_of_parts(k, n, f, k.div(rest, quotient)))

    small = k.compare("olt", size, k.constant(0.5))
    result = k.either_way(small, lambda: _odd(k, "ATANH", size), of_large)
    result = k.select(k.compare("oeq", size, one), k.constant(math.inf), result)
    result = k.select(k.compare("ugt", size, one), k.constant(math.nan), result)
    return Result(k.copysign(result, x))
