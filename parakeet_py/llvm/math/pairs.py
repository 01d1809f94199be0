"""Arithmetic of about twice the precision, on unevaluated sums of two values, and exp and log in it.

The methods are those of T. J. Dekker ("A floating-point technique for extending the available precision", 1971) with
fused multiply-add, which gives the exact error of a product. Functions whose errors would grow (a power multiplies the
logarithm's by the exponent) are built from these.
"""

from __future__ import annotations

from parakeet_py.llvm.math.kernels import LOG2_E, ln2, table
from parakeet_py.llvm.math.lanes import Lanes, Pair

TWO_THIRDS = 0.6666666666666666, 3.700743415417188e-17
PI = 3.141592653589793, 1.2246467991473532e-16


def fast_sum(k: Lanes, large: str, small: str) -> Pair:
    """large + small exactly, for |large| >= |small| (or large = 0)."""
    total = k.add(large, small)
    return total, k.add(k.sub(large, total), small)


def product(k: Lanes, left: str, right: str) -> Pair:
    """left * right exactly."""
    high = k.mul(left, right)
    return high, k.fma(left, right, k.neg(high))


def sum_of_pairs(k: Lanes, left: Pair, right: Pair) -> Pair:
    high, lost = k.two_sum(left[0], right[0])
    return fast_sum(k, high, k.add(lost, k.add(left[1], right[1])))


def times(k: Lanes, left: Pair, right: str) -> Pair:
    high, low = product(k, left[0], right)
    return fast_sum(k, high, k.fma(left[1], right, low))


def product_of_pairs(k: Lanes, left: Pair, right: Pair) -> Pair:
    high, low = product(k, left[0], right[0])
    return fast_sum(k, high, k.add(low, k.fma(left[0], right[1], k.mul(left[1], right[0]))))


def quotient_of_pairs(k: Lanes, left: Pair, right: Pair) -> Pair:
    """Not finite quotients have a low part of NaN."""
    high = k.div(left[0], right[0])
    rest = k.add(k.fma(k.neg(high), right[0], left[0]), k.fma(k.neg(high), right[1], left[1]))
    return high, k.div(rest, right[0])


def polynomial(k: Lanes, name: str, x: Pair) -> Pair:
    """A polynomial whose first coefficients have low parts, with its first terms in pairs."""
    coefficients, low = table(k, name), table(k, name + "_LOW")
    count = len(low)
    tail = k.mul(x[0], k.polynomial(coefficients[count:], x[0]))
    head, rest = k.pair(coefficients[count - 1], low[-1])
    total, lost = k.two_sum(head, tail)
    value = total, k.add(lost, rest)
    for place in reversed(range(count - 1)):
        value = sum_of_pairs(k, k.pair(coefficients[place], low[place]), product_of_pairs(k, value, x))
    return value


def square_root(k: Lanes, high: str, low: str) -> Pair:
    """The square root of a pair, of 0 too."""
    root = k.call("sqrt", high)
    rest = k.add(k.fma(k.neg(root), root, high), low)
    # the divisor of a root of 0 is 1: its low part is 0
    twice = k.select(k.compare("oeq", root, k.constant(0.0)), k.constant(1.0), k.add(root, root))
    return root, k.div(rest, twice)


def split_exponent(k: Lanes, x: str) -> Pair:
    """x = 2**n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for a normal number: (n, f)."""
    bits = k.to_bits(x)
    root = 0x3FE6A09E667F3BCD if k.double else 0x3F3504F3  # the bits of sqrt(1/2)
    exponent = k.integer("ashr", k.integer("sub", bits, k.bits(root)), k.bits(k.mantissa))
    mantissa = k.integer("sub", bits, k.integer("shl", exponent, k.bits(k.mantissa)))
    return k.integer_to_float(exponent), k.sub(k.from_bits(mantissa), k.constant(1.0))


def logarithm(k: Lanes, x: Pair, shift: str | None = None) -> Pair:
    """log of a positive normal number, of 2**shift times it; the error is about 2**-65 of the result (float: 2**-36).

    With s = f/(2+f): log(1+f) = s (2 + z (2/3 + z q(z))), z = s*s; all but z*q in pairs.
    """
    n, f = split_exponent(k, x[0])
    two = k.constant(2.0)
    bottom, bottom_low = fast_sum(k, two, f)
    inverse = k.div(k.constant(1.0), bottom)  # the only division: these are slow
    s = k.mul(f, inverse)
    s_low = k.mul(k.fma(k.neg(s), bottom_low, k.fma(k.neg(s), bottom, f)), inverse)
    z, z_low = product(k, s, s)
    z_low = k.fma(k.add(s, s), s_low, z_low)
    third, third_low = k.pair(*TWO_THIRDS)
    inner, inner_low = fast_sum(k, third, k.mul(z, k.polynomial(table(k, "LOG_FAR"), z)))
    middle, middle_low = product_of_pairs(k, (inner, k.add(inner_low, third_low)), (z, z_low))
    outer, outer_low = fast_sum(k, two, middle)
    head, rest = product_of_pairs(k, (outer, k.add(outer_low, middle_low)), (s, s_low))
    n = n if shift is None else k.add(n, shift)
    high, low = ln2(k)
    small = k.mul(n, k.constant(low))
    if x[1] != k.constant(0.0):
        small = k.fma(n, k.constant(low), k.div(x[1], x[0]))
    rest = k.add(rest, small)
    total, lost = fast_sum(k, k.mul(n, k.constant(high)), head)
    return fast_sum(k, total, k.add(lost, rest))


def exponential(k: Lanes, x: Pair) -> tuple[Pair, str, str]:
    """exp of a pair of moderate size: a number near 1 (error about 2**-57; float: 2**-28), and the power of two that it
    must be multiplied by, as `Lanes.times_power_of_two` takes it."""
    n, n_bits = k.round_to_integer(k.mul(x[0], k.constant(LOG2_E)))
    minus_n = k.neg(n)
    high, low = ln2(k)
    r, lost = k.two_sum(k.fma(minus_n, k.constant(high), x[0]), k.mul(minus_n, k.constant(low)))
    one, rest = fast_sum(k, k.constant(1.0), r)
    rest = k.fma(k.polynomial(table(k, "EXP"), r), k.mul(r, r), rest)
    # the low part multiplies: exp(r + e) = exp(r) + e exp(r)
    value = k.add(one, rest)
    return fast_sum(k, one, k.fma(k.add(lost, x[1]), value, rest)), n, n_bits
