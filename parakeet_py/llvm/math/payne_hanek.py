"""Reduction of the largest arguments of sin, cos and tan.

x is a whole number m of few bits times a power of two. Of 2/pi, only a window of bits matters: higher ones, times x,
are whole turns, and lower ones are too small. Their product is a number of quarter turns with its fraction, in integers
(M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric functions", 1983).
"""

from __future__ import annotations

import math

from parakeet_py.llvm.math.kernels import Reduced, reduce
from parakeet_py.llvm.math.lanes import Lanes

_WORDS = {64: 20, 32: 8}  # of the table: one of zeros, then as many as the largest exponent needs
# 2/pi, 1216 bits after the point
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424d"
    "d2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639"
    "835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f46"
    "3f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)


def reduce_all(k: Lanes, x: str) -> Reduced:
    """Reduce a number of any size (of one lane)."""
    high, low, turns, odd = reduce(k, x)
    assert odd is not None
    f = k.f
    large, done = f.label("large"), f.label("reduced")
    before = f.block
    f.branch_if(odd, large, done)
    f.begin(large)
    with f.inner():
        values = _reduce_large(k, x)
    f.branch(done)
    f.begin(done)
    joined = [
        f.value(f"phi {kind} [ {small}, %{before} ], [ {value}, %{large} ]")
        for kind, small, value in zip((k.part, k.part, k.integers), (high, low, turns), values, strict=True)
    ]
    return Reduced(joined[0], joined[1], joined[2], None)


def _table(k: Lanes) -> str:
    """The words of 2/pi, the highest first, as a constant of the module."""
    bits = 64 if k.double else 32
    count, module = _WORDS[bits], k.f.module
    name = f"pk_math_two_over_pi_{bits}"
    if module.is_new(name):
        mask = (1 << bits) - 1
        words = [0, *(_TWO_OVER_PI >> 1216 - bits * (place + 1) & mask for place in range(count - 1))]
        listed = ", ".join(f"i{bits} {word}" for word in words)
        module.functions.append(f"@{name} = internal unnamed_addr constant [{count} x i{bits}] [{listed}]")
    return f"@{name}"


def _reduce_large(k: Lanes, x: str) -> tuple[str, str, str]:
    f, width = k.f, 64 if k.double else 32
    word, wide = k.integers, f"i{2 * width}"
    bits = k.integer("and", k.to_bits(x), k.bits((1 << width - 1) - 1))
    field = k.integer("lshr", bits, k.bits(k.mantissa))
    m = k.integer("or", k.integer("and", bits, k.bits((1 << k.mantissa) - 1)), k.bits(1 << k.mantissa))
    # x = m 2**e. The bits of 2/pi before the (e - 1)th make multiples of four quarter turns; the table has `width`
    # more in front. Infinity and NaN would read beyond its end.
    finite = f.value(f"icmp ult {word} {field}, {2 * k.bias + 1}")
    start = k.integer("sub", field, k.bits(k.bias + k.mantissa + 2 - width))
    start = k.select(finite, start, k.bits(0), word)
    place = k.integer("lshr", start, k.bits(width.bit_length() - 1))
    shift = k.integer("and", start, k.bits(width - 1))
    table = _table(k)
    loaded = []
    for offset in range(4):
        index = k.integer("add", place, k.bits(offset))
        address = f.value(f"getelementptr {word}, ptr {table}, {word} {index}")
        loaded.append(f.value(f"load {word}, ptr {address}"))
    window = [_funnel(k, loaded[i], loaded[i + 1], shift) for i in range(3)]

    # m * window, of which the upper three words' worth counts
    def extend(value: str) -> str:
        return f.value(f"zext {word} {value} to {wide}")

    def upper(value: str) -> str:
        return f.value(f"lshr {wide} {value}, {width}")

    def cut(value: str) -> str:
        return f.value(f"trunc {wide} {value} to {word}")

    last = f.value(f"mul {wide} {extend(m)}, {extend(window[2])}")
    middle = f.value(f"mul {wide} {extend(m)}, {extend(window[1])}")
    middle = f.value(f"add {wide} {middle}, {upper(last)}")
    first = k.integer("add", k.integer("mul", m, window[0]), cut(upper(middle)))
    second, third = cut(middle), cut(last)
    # two bits of quarter turns, then the fraction, from here on with a sign: it is less than a half
    quarters = k.integer("lshr", first, k.bits(width - 2))
    two = k.bits(2)
    one, other = _funnel(k, first, second, two), _funnel(k, second, third, two)
    negative = k.integer("ashr", one, k.bits(width - 1))
    quarters = k.integer("sub", quarters, negative)
    one, other = k.integer("xor", one, negative), k.integer("xor", other, negative)
    zeros = _leading_zeros(k, one)
    one, other = _funnel(k, one, other, zeros), k.integer("shl", other, zeros)

    # to floats: the leading bits, and the rest
    kept = width - 1 - k.mantissa
    head = f.value(f"uitofp {word} {k.integer('lshr', one, k.bits(kept))} to {k.part}")
    rest = f.value(f"uitofp {word} {_funnel(k, one, other, k.bits(width - kept))} to {k.part}")
    sign = k.integer("xor", negative, k.integer("ashr", k.to_bits(x), k.bits(width - 1)))
    scale = k.power_of_two(k.integer("sub", k.bits(kept - width), zeros))
    scale = k.from_bits(k.integer("or", k.to_bits(scale), k.integer("and", sign, k.bits(-1 << width - 1))))
    head, rest = k.mul(head, scale), k.mul(k.mul(rest, scale), k.constant(2.0**-width))
    factor, factor_low = k.pair(math.pi / 2, 6.123233995736766e-17)
    high = k.mul(head, factor)
    low = k.fma(head, factor, k.neg(high))
    low = k.add(low, k.fma(head, factor_low, k.mul(rest, factor)))
    nothing = k.constant(math.nan)
    reverse = k.integer("ashr", k.to_bits(x), k.bits(width - 1))
    turns = k.integer("sub", k.integer("xor", quarters, reverse), reverse)
    return k.select(finite, high, nothing), k.select(finite, low, nothing), turns


def _funnel(k: Lanes, left: str, right: str, amount: str) -> str:
    """The upper word of (left, right) shifted left."""
    return k.f.intrinsic("fshl", k.integers, left, right, amount)


def _leading_zeros(k: Lanes, value: str) -> str:
    word = k.integers
    function = k.f.module.declare(word, f"llvm.ctlz.{word}", f"{word}, i1", "")
    return k.f.value(f"call {word} {function}({word} {value}, i1 false)")
