"""pow, cbrt, hypot and the exact remainder, as kernels (see `vector_math_kernels`)."""

from __future__ import annotations

import math

from parakeet_py.llvm.math import coefficients as tables
from parakeet_py.llvm.math import pairs
from parakeet_py.llvm.math.kernels import LOG2_E, Result, irregular, ln2, no_number, pole, table
from parakeet_py.llvm.math.kernels import fmod as short_fmod
from parakeet_py.llvm.math.lanes import Lanes

# the bits of 1, less 9 2/3 sixteenths of a power of two
_LEAST_MANTISSA = 0x3FF0000000000000 - (29 << 48) // 3
_LEAST_MANTISSA_SINGLE = 0x3F800000 - (29 << 19) // 3
_MODERATE_SINGLE = 80.0
_MODERATE = 700.0  # powers of e up to which numbers are neither very large nor very small

# less a third of the bits of m: 1/cbrt(m), to 4 per cent
_CUBE_ROOT_START, _CUBE_ROOT_START_SINGLE = 0x553EE00000000000, 0x54A1EAAA


def pow(k: Lanes, x: str, y: str) -> Result:
    """exp(y log|x|), the logarithm and its product in two parts; C's table of special values."""
    zero, one, infinity = (k.constant(value) for value in (0.0, 1.0, math.inf))
    size = k.absolute(x)
    tiny = k.compare("olt", size, k.constant(2.0 ** (1 - k.bias)))
    factor = k.mantissa + 2
    normal = k.select(tiny, k.mul(size, k.constant(2.0**factor)), size)
    shift = k.select(tiny, k.constant(float(-factor)), zero)
    high, low = pairs.logarithm(k, (normal, zero), shift)
    limit = k.constant(150.0 if k.short else 800.0)
    head, rest = pairs.product(k, high, y)
    rest = k.fma(low, y, rest)
    beyond = k.compare("ogt", k.absolute(head), limit)
    head = k.select(beyond, k.copysign(limit, head), head)
    rest = k.select(beyond, zero, rest)
    (value, tail), n, n_bits = pairs.exponential(k, (head, rest))
    result = k.times_power_of_two(k.add(value, tail), n, n_bits)

    # where |x| is 0 or infinite, or y is infinite: 0, 1 or infinity
    up = k.compare("ogt", size, one)
    grows = k.f.value(f"icmp eq {k.of('i1')} {up}, {k.compare('ogt', y, zero)}")
    limited = k.select(grows, infinity, zero)
    limited = k.select(k.compare("oeq", size, one), one, limited)
    at_zero = k.both(k.compare("oeq", size, zero), k.compare("olt", y, zero))
    at_zero = k.both(at_zero, k.compare("one", y, k.constant(-math.inf)))
    limited = k.select(at_zero, pole(k, at_zero), limited)
    endless = k.compare("oeq", k.absolute(y), infinity)
    edge = k.either(k.compare("oeq", size, zero), k.compare("oeq", size, infinity))
    result = k.select(k.either(edge, endless), limited, result)

    # the sign: of odd whole exponents; other exponents of negative numbers have no result
    whole = k.compare("oeq", k.call("trunc", y), y)
    half = k.mul(y, k.constant(0.5))
    odd = k.both(whole, k.compare("one", k.call("trunc", half), half))
    signed = k.select(odd, k.copysign(result, x), result)
    no_result = k.both(k.compare("olt", x, zero), k.f.value(f"xor {k.of('i1')} {whole}, {k.spread('i1', 'true')}"))
    no_result = k.both(no_result, k.compare("one", size, infinity))
    signed = k.select(no_result, no_number(k, no_result), signed)
    signed = k.select(k.compare("uno", x, y), k.add(x, y), signed)
    trivial = k.either(k.compare("oeq", y, zero), k.compare("oeq", x, one))
    return Result(k.select(trivial, one, signed))


def power(k: Lanes, x: str, y: str) -> Result:
    """The same for CPUs: ordinary arguments are quick, `pow` puts the others right.

    |x| = 2**n z, and log(z) = log(c) + log(1 + d), where c is one of 16 numbers: 1/c and log(c) are looked up.
    """
    if not k.double:
        return _single_power(k, x, y)
    odd = irregular(k, x)
    bits = k.to_bits(x)
    moved = k.integer("sub", bits, k.bits(_LEAST_MANTISSA))
    part = k.integer("lshr", moved, k.bits(k.mantissa - 4))
    exponent = k.integer("ashr", moved, k.bits(k.mantissa))
    z = k.from_bits(k.integer("sub", bits, k.integer("shl", exponent, k.bits(k.mantissa))))
    n = k.integer_to_float(exponent)
    reciprocal = k.lookup("reciprocal", tables.RECIPROCAL, part)
    log_c = k.lookup("log", tables.RECIPROCAL_LOG, part)
    one, ln2_high, ln2_low = (k.constant(number) for number in (1.0, *ln2(k)))
    if k.short:
        d = k.fma(z, reciprocal, k.neg(one))
        tail = k.fma(k.polynomial(table(k, "LOG_NEAR"), d), d, k.constant(-0.5))
        near = k.fma(k.mul(d, d), tail, d)
        log = k.add(k.fma(n, k.constant(math.log(2)), log_c), near)
        head = k.mul(log, y)
        odd = k.either(odd, k.f.value(f"fcmp uge {k.kind} {k.absolute(head)}, {k.constant(_MODERATE)}"))
        turns, turns_bits = k.round_to_integer(k.mul(head, k.constant(LOG2_E)))
        r = k.fma(k.neg(turns), k.constant(math.log(2)), head)
        value = k.add(k.fma(k.polynomial(table(k, "EXP"), r), k.mul(r, r), r), one)
    else:
        # d + lost = z/c - 1 exactly, and log(1 + d + lost) = log(1 + d) + lost (1 - d + d*d)
        quotient, lost = pairs.product(k, z, reciprocal)
        d = k.sub(quotient, one)
        slope = k.fma(k.sub(d, one), d, one)
        half = k.mul(k.constant(0.5), d)
        square, square_low = pairs.product(k, half, d)
        near, near_low = pairs.fast_sum(k, d, k.neg(square))
        whole = k.fma(n, ln2_high, log_c)  # exact
        log, log_low = pairs.fast_sum(k, whole, near)
        far = k.fma(n, ln2_low, k.lookup("log_low", tables.RECIPROCAL_LOG_LOW, part))
        far = k.fma(lost, slope, k.sub(k.add(far, near_low), square_low))
        cube = k.mul(k.mul(d, d), d)
        far = k.add(k.fma(cube, k.polynomial(table(k, "LOG_NEAR"), d), far), log_low)
        log, log_low = pairs.fast_sum(k, log, far)
        head, rest = pairs.product(k, log, y)
        rest = k.fma(log_low, y, rest)
        odd = k.either(odd, k.f.value(f"fcmp uge {k.kind} {k.absolute(head)}, {k.constant(_MODERATE)}"))
        turns, turns_bits = k.round_to_integer(k.mul(head, k.constant(LOG2_E)))
        back = k.neg(turns)
        r, lost = pairs.fast_sum(k, k.fma(back, ln2_high, head), k.fma(back, ln2_low, rest))
        total, total_low = pairs.fast_sum(k, one, r)
        tail = k.fma(k.polynomial(table(k, "EXP"), r), k.mul(r, r), total_low)
        value = k.add(total, k.fma(lost, total, tail))
    result = k.times_power_of_two(value, turns, turns_bits)
    return Result(result, odd, lambda: k.select(odd, pow(k, x, y).value, result))


def _single_power(k: Lanes, x: str, y: str) -> Result:
    """`power` in arithmetic of float32, on twice as many lanes as in doubles: the logarithm is a pair of numbers."""
    odd = irregular(k, x)
    bits = k.to_bits(x)
    moved = k.integer("sub", bits, k.bits(_LEAST_MANTISSA_SINGLE))
    part = k.integer("lshr", moved, k.bits(k.mantissa - 4))
    exponent = k.integer("ashr", moved, k.bits(k.mantissa))
    z = k.from_bits(k.integer("sub", bits, k.integer("shl", exponent, k.bits(k.mantissa))))
    n = k.integer_to_float(exponent)
    reciprocal = k.lookup("reciprocal", tables.RECIPROCAL_SINGLE, part)
    log_c = k.lookup("log", tables.RECIPROCAL_LOG_SINGLE, part)
    log_c_low = k.lookup("log_low", tables.RECIPROCAL_LOG_LOW_SINGLE, part)
    one, ln2_high, ln2_low = (k.constant(number) for number in (1.0, *ln2(k)))
    # d + lost = z/c - 1 exactly, and log(1 + d + lost) = log(1 + d) + lost (1 - d + d*d)
    quotient, lost = pairs.product(k, z, reciprocal)
    d = k.sub(quotient, one)
    slope = k.fma(k.sub(d, one), d, one)
    minus_half = k.mul(k.constant(-0.5), d)
    near = k.fma(minus_half, d, d)
    near_low = k.fma(minus_half, d, k.sub(d, near))
    log, log_low = pairs.fast_sum(k, k.fma(n, ln2_high, log_c), near)  # of which the first is exact
    far = k.fma(lost, slope, k.fma(n, ln2_low, log_c_low))
    cube = k.mul(k.mul(d, d), d)
    rest = k.fma(cube, k.polynomial(table(k, "LOG_NEAR"), d), near_low)
    log_low = k.add(far, k.add(rest, log_low))
    head, rest = pairs.product(k, log, y)
    rest = k.fma(log_low, y, rest)
    odd = k.either(odd, k.f.value(f"fcmp uge {k.kind} {k.absolute(head)}, {k.constant(_MODERATE_SINGLE)}"))
    magic = k.constant(k.magic)
    shifted = k.fma(head, k.constant(LOG2_E), magic)
    turns = k.sub(shifted, magic)
    back = k.neg(turns)
    head, rest = k.fma(back, ln2_high, head), k.fma(back, ln2_low, rest)
    r = k.add(head, rest)
    tail = k.fma(k.polynomial(table(k, "EXP"), r), k.mul(r, r), rest)
    result = k.times_power_of_two(k.add(one, k.add(head, tail)), turns, k.to_bits(shifted))
    return Result(result, odd, lambda: k.select(odd, pow(k, x, y).value, result))


def cbrt(k: Lanes, x: str) -> Result:
    """By the reciprocal cube root of the mantissa: two steps of fourth order, then c = m y*y corrected once."""
    size = k.absolute(x)
    tiny = k.compare("olt", size, k.constant(2.0 ** (1 - k.bias)))
    lift = 3 * (k.mantissa // 3 + 1)
    normal = k.select(tiny, k.mul(size, k.constant(2.0**lift)), size)
    bits = k.to_bits(normal)
    # |x| = 2**(3 q) m, 1 <= m < 8
    biased = k.integer("lshr", bits, k.bits(k.mantissa))
    offset = 3 * k.bias  # keeps the dividend positive, and 3 divides it
    dividend = k.integer("add", biased, k.bits(offset - k.bias))
    q = k.integer("sub", k.integer("udiv", dividend, k.bits(3)), k.bits(offset // 3))
    m = k.from_bits(k.integer("sub", bits, k.integer("shl", k.integer("mul", q, k.bits(3)), k.bits(k.mantissa))))
    start = k.bits(_CUBE_ROOT_START if k.double else _CUBE_ROOT_START_SINGLE)
    y = k.from_bits(k.integer("sub", start, k.integer("udiv", k.to_bits(m), k.bits(3))))
    for _ in range(2):
        # m y**3 = 1 - e, and (1 - e)**(-1/3) = 1 + e/3 + 2 e**2/9 + 14 e**3/81
        e = k.fma(k.neg(k.mul(k.mul(y, y), m)), y, k.constant(1.0))
        series = k.fma(k.fma(e, k.constant(14 / 81), k.constant(2 / 9)), e, k.constant(1 / 3))
        y = k.fma(k.mul(y, e), series, y)
    square = k.mul(y, y)
    root = k.mul(m, square)
    head, low = pairs.product(k, root, root)
    rest = k.fma(k.neg(low), root, k.fma(k.neg(head), root, m))
    root = k.fma(k.mul(rest, square), k.constant(1 / 3), root)
    scale = k.select(tiny, k.bits(-(lift // 3)), k.bits(0), k.integers)
    result = k.copysign(k.mul(root, k.power_of_two(k.integer("add", q, scale))), x)
    finite = k.both(k.compare("olt", size, k.constant(math.inf)), k.compare("one", x, k.constant(0.0)))
    return Result(k.select(finite, result, k.add(x, x)))


def hypot(k: Lanes, x: str, y: str) -> Result:
    """sqrt(x*x + y*y) with the bits of the C library's (glibc 2.35 and later), which NumPy and Python's `abs` call.

    The root of the rounded sum of squares is h; x*x + y*y - h*h comes from differences that are exact or nearly so, by
    which of the sides is close to h, and a step of Newton's method with it leaves an error of little more than half a
    unit (C. F. Borges, "An Improved Algorithm for hypot(a, b)", 2019). Sides are scaled by a power of two where
    squares would leave the range, and of sides far apart the sum is the result. float32 that is computed in doubles
    needs none of this.
    """
    infinity = k.constant(math.inf)
    endless = k.either(k.compare("oeq", k.absolute(x), infinity), k.compare("oeq", k.absolute(y), infinity))
    root = _root_of_squares(k, x, y) if k.short and k.double else _scaled_hypot(k, x, y)
    return Result(k.select(endless, infinity, root))


def _root_of_squares(k: Lanes, x: str, y: str) -> str:
    return k.call("sqrt", k.add(k.mul(x, x), k.mul(y, y)))


def _scaled_hypot(k: Lanes, x: str, y: str) -> str:
    a, b = k.absolute(x), k.absolute(y)
    swap = k.compare("ogt", b, a)
    large, small = k.select(swap, b, a), k.select(swap, a, b)
    together = k.add(large, small)
    most, down, least, up = (511, 600, -459, 600) if k.double else (60, 70, -60, 96)
    one, two, four = k.constant(1.0), k.constant(2.0), k.constant(4.0)
    over = k.compare("ogt", large, k.constant(2.0**most))
    under = k.compare("olt", small, k.constant(2.0**least))
    scale = k.select(over, k.constant(2.0**-down), k.select(under, k.constant(2.0**up), one))
    unscale = k.select(over, k.constant(2.0**down), k.select(under, k.constant(2.0**-up), one))
    large, small = k.mul(large, scale), k.mul(small, scale)
    apart = k.compare("ole", small, k.mul(large, k.constant(2.0 ** -(k.mantissa + 2))))
    h = _root_of_squares(k, large, small)
    near = k.compare("ole", h, k.mul(two, small))
    off = k.sub(h, k.select(near, small, large))
    # Of sides like each other, h*h - x*x - y*y in terms of h less the smaller; else of h less the larger.
    first = k.mul(large, k.sub(k.mul(two, off), large))
    second = k.mul(k.sub(off, k.mul(two, k.sub(large, small))), off)
    other_first = k.mul(k.mul(two, off), k.sub(large, k.mul(two, small)))
    other_second = k.add(k.mul(k.sub(k.mul(four, off), small), small), k.mul(off, off))
    excess = k.add(k.select(near, first, other_first), k.select(near, second, other_second))
    h = k.sub(h, k.div(excess, k.mul(two, h)))
    result = k.select(apart, together, k.mul(h, unscale))
    return k.select(k.compare("uno", x, y), k.add(x, y), result)


def fmod(k: Lanes, x: str, y: str) -> Result:
    """The remainder for quotients of any size: the divisor times falling powers of two is taken away, at most so many
    times that the count and the remainder are exact."""
    short = short_fmod(k, x, y)
    zero, infinity = k.constant(0.0), k.constant(math.inf)
    step = k.mantissa - 2

    def exponent(size: str) -> str:
        return k.integer("lshr", k.to_bits(size), k.bits(k.mantissa))

    def repair() -> str:
        size, divisor = k.absolute(x), k.absolute(y)
        field = exponent(divisor)
        tiny = k.integer("sub", exponent(k.mul(divisor, k.constant(2.0**k.mantissa))), k.bits(k.mantissa))
        field = k.select(k.is_zero(field), tiny, field, k.integers)
        start = k.integer("sub", k.integer("sub", exponent(size), field), k.bits(step))

        def more(rest: str, shift: str) -> str:
            return k.f.value(f"icmp sgt {k.integers} {shift}, {-step}")

        def reduced(rest: str, shift: str) -> tuple[str, str]:
            count = k.f.value(f"icmp sgt {k.integers} {shift}, 0")
            positive = k.select(count, shift, k.bits(0), k.integers)
            # in three factors, as 2**shift itself may be too large a number
            part = k.integer("udiv", positive, k.bits(3))
            last = k.integer("sub", positive, k.integer("add", part, part))
            factor = k.power_of_two(part)
            scaled = k.mul(k.mul(k.mul(divisor, factor), factor), k.power_of_two(last))
            q = k.call("trunc", k.div(rest, scaled))
            r = k.fma(k.neg(q), scaled, rest)
            r = k.select(k.compare("olt", r, zero), k.add(r, scaled), r)
            return r, k.integer("sub", shift, k.bits(step))

        rest, _ = k.loop((k.part, k.integers), (size, start), more, reduced)
        rest = k.copysign(rest, x)
        rest = k.select(k.compare("oeq", divisor, infinity), x, rest)
        # nothing is left of infinity or by zero, NaN stays
        bad = k.either(k.compare("ueq", size, infinity), k.compare("ueq", divisor, zero))
        bad = k.either(bad, k.compare("uno", y, y))
        return k.select(bad, k.constant(math.nan), rest)

    return Result(short.value, short.odd, repair)
