"""asin, acos and atan2, as kernels (see `vector_math_kernels`). Errors stay below 1.5 units in the last place.

Beyond 1/2, asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2)), in which (1 - x)/2 is exact.
"""

from __future__ import annotations

import math

from parakeet_py.llvm.math.kernels import Result, table
from parakeet_py.llvm.math.lanes import Lanes, Pair

_HALF_PI = math.pi / 2, 6.123233995736766e-17
_PI = math.pi, 1.2246467991473532e-16


def _arc(k: Lanes, size: str) -> tuple[str, str, str]:
    """For t = size, or beyond 1/2 t = sqrt((1 - size)/2): asin(t) = t + tail. Gives (beyond, t, tail)."""
    beyond = k.compare("ogt", size, k.constant(0.5))
    folded = k.mul(k.sub(k.constant(1.0), size), k.constant(0.5))
    z = k.select(beyond, folded, k.mul(size, size))
    t = k.select(beyond, k.call("sqrt", z), size)
    return beyond, t, k.mul(k.mul(t, z), k.polynomial(table(k, "ASIN"), z))


def _from(k: Lanes, angle: Pair, times: float, t: str, tail: str) -> str:
    """angle + times * (t + tail), |times| 1 or 2, for an angle larger than that."""
    factor = k.constant(times)
    head = k.fma(factor, t, angle[0])
    lost = k.fma(factor, t, k.sub(angle[0], head))
    return k.add(head, k.add(lost, k.fma(factor, tail, angle[1])))


def asin(k: Lanes, x: str) -> Result:
    size = k.absolute(x)
    beyond, t, tail = _arc(k, size)
    turned = _from(k, k.pair(*_HALF_PI), -2.0, t, tail)
    return Result(k.copysign(k.select(beyond, turned, k.add(t, tail)), x))


def acos(k: Lanes, x: str) -> Result:
    beyond, t, tail = _arc(k, k.absolute(x))
    positive = k.compare("ogt", x, k.constant(0.0))
    from_half = _from(k, k.pair(*_HALF_PI), 1.0, k.copysign(t, k.neg(x)), k.copysign(tail, k.neg(x)))
    near_one = k.mul(k.constant(2.0), k.add(t, tail))
    near_minus_one = _from(k, k.pair(*_PI), -2.0, t, tail)
    return Result(k.select(beyond, k.select(positive, near_one, near_minus_one), from_half))


def atan2(k: Lanes, y: str, x: str) -> Result:
    """atan of the smaller over the larger, turned to its octant."""
    zero, one = k.constant(0.0), k.constant(1.0)
    width, height = k.absolute(x), k.absolute(y)
    steep = k.compare("ogt", height, width)
    large, small = k.select(steep, height, width), k.select(steep, width, height)
    t = k.div(small, large)
    # what rounding took from the quotient
    lost = k.div(k.fma(k.neg(t), large, small), large)
    lost = k.select(k.compare("olt", k.absolute(lost), one), lost, zero)  # not NaN, of infinities and overflow
    same = k.compare("oeq", small, large)  # the quotient of two zeros is taken for 0, of two infinities for 1
    t = k.select(same, k.select(k.compare("oeq", large, zero), zero, one), t)
    z = k.mul(t, t)
    tail = k.fma(k.mul(t, z), k.polynomial(table(k, "ATAN"), z), k.div(lost, k.add(z, one)))
    left = k.f.value(f"icmp slt {k.of(k.integers)} {k.to_bits(x)}, {k.bits(0)}")
    # angles from the positive x axis: a, pi/2 - a, pi/2 + a, pi - a
    half, half_low = k.pair(*_HALF_PI)
    whole, whole_low = k.pair(*_PI)
    base = k.select(steep, half, k.select(left, whole, zero))
    base_low = k.select(steep, half_low, k.select(left, whole_low, zero))
    against = k.f.value(f"xor {k.of('i1')} {steep}, {left}")
    head, rest = k.select(against, k.neg(t), t), k.select(against, k.neg(tail), tail)
    total = k.add(base, head)
    angle = k.add(total, k.add(k.add(k.sub(base, total), head), k.add(base_low, rest)))
    plain = k.select(k.either(steep, left), angle, k.add(t, tail))
    unordered = k.compare("uno", x, y)
    return Result(k.select(unordered, k.add(x, y), k.copysign(plain, y)))
