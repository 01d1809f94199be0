"""erfc, gamma and its logarithm, as kernels (see `vector_math_kernels`), for one lane.

gamma has a polynomial between 3/2 and 5/2; from there up to `_FAR` and down to its negative, arguments move by
gamma(x + 1) = x gamma(x), the factors multiplied in pairs of values. Beyond it is Stirling's series, in pairs too, and
below it gamma(-x) = -pi / (x sin(pi x) gamma(x)). Errors stay below 2 units in the last place; those of `lgamma`, whose
negative zeros have no closed form, below 1e-16 (float: 1e-8) there.
"""

from __future__ import annotations

import math

from parakeet_py.llvm.math import pairs
from parakeet_py.llvm.math.kernels import Result, sine_and_cosine, table
from parakeet_py.llvm.math.lanes import Lanes, Pair

_FAR = 12.0
_HALF_LOG_TWO_PI = 0.9189385332046728, -3.8782941580672414e-17
_LOG_PI = 1.1447298858494002, 1.6488180152155055e-17


def erfc(k: Lanes, x: str) -> Result:
    """exp(-x*x) p(t) / (x + 3), t = (x - 3)/(x + 3), and 1 - erf(x) up to 1/2."""
    size = k.at_most(k.absolute(x), 10.5 if k.short else 28.0)

    def near_zero() -> str:
        z = k.mul(x, x)
        erf = k.fma(x, k.polynomial(table(k, "ERF_SMALL"), z), x)
        return k.sub(k.constant(1.0), erf)

    def others() -> str:
        three, one = k.constant(3.0), k.constant(1.0)
        square, square_low = pairs.product(k, size, size)
        power, n, n_bits = pairs.exponential(k, (k.neg(square), k.neg(square_low)))
        inverse = pairs.quotient_of_pairs(k, (one, k.constant(0.0)), k.two_sum(size, three))
        t = pairs.product_of_pairs(k, inverse, k.two_sum(size, k.neg(three)))
        factor = pairs.polynomial(k, "ERFC", t)  # in pairs, as for large x the first terms cancel each other
        value = pairs.product_of_pairs(k, factor, inverse)
        value = pairs.product_of_pairs(k, value, power)
        below = k.times_power_of_two(value[0], n, n_bits)
        whole = k.sub(k.constant(2.0), below)
        return k.select(k.compare("olt", x, k.constant(0.0)), whole, below)

    small = k.compare("olt", size, k.constant(0.5))
    result = k.either_way(small, near_zero, others)
    return Result(k.select(k.compare("uno", x, x), x, result))


# ---- gamma -----------------------------------------------------------------------------------------------------------


def _to_middle(k: Lanes, x: str) -> tuple[str, str, Pair, str]:
    """Move x, |x| < _FAR, to [3/2, 5/2]: t and its low part (the place less 2), the product of the factors that were
    passed, and whether x came from above (gamma(x) is the product times gamma(2 + t); else that over the product)."""
    one, start = k.constant(1.0), (k.part,) * 4
    above = k.compare("ogt", x, k.constant(2.5))

    def high(*values: str) -> str:
        return k.compare("ogt", values[0], k.constant(2.5))

    def descend(place: str, low: str, product: str, rest: str) -> tuple[str, ...]:
        lower = k.sub(place, one)  # exact
        return lower, low, *pairs.times(k, (product, rest), lower)

    def under(*values: str) -> str:
        return k.compare("olt", values[0], k.constant(1.5))

    def ascend(place: str, low: str, product: str, rest: str) -> tuple[str, ...]:
        product, rest = pairs.product_of_pairs(k, (product, rest), (place, low))
        return *pairs.sum_of_pairs(k, (place, low), (one, k.constant(0.0))), product, rest

    zero = k.constant(0.0)
    values = k.loop(start, (x, zero, one, zero), high, descend)
    place, low, product, rest = k.loop(start, values, under, ascend)
    return k.sub(place, k.constant(2.0)), low, (product, rest), above


def _stirling(k: Lanes, x: str, add: float) -> Pair:
    """log(gamma(x + 1/2 + add)), add 1/2 or -1/2: (x + add) (log(x) - 1) + add + log(2 pi)/2 + p(1/(x*x))/x."""
    log = pairs.logarithm(k, (x, k.constant(0.0)))
    less, lost = pairs.fast_sum(k, log[0], k.constant(-1.0))
    head, low = pairs.fast_sum(k, x, k.constant(add))
    product = pairs.product_of_pairs(k, (head, low), (less, k.add(lost, log[1])))
    inverse = k.div(k.constant(1.0), x)
    tail = k.mul(inverse, k.polynomial(table(k, "STIRLING"), k.mul(inverse, inverse)))
    constant = pairs.sum_of_pairs(k, k.pair(*_HALF_LOG_TWO_PI), (k.constant(add), k.constant(0.0)))
    total, lost = k.two_sum(product[0], constant[0])
    rest = k.add(k.add(product[1], constant[1]), k.add(lost, tail))
    return pairs.fast_sum(k, total, rest)


def _sine_of_half_turns(k: Lanes, y: str) -> Pair:
    """|sin(pi y)|."""
    nearest = k.call("rint", y)
    r = k.absolute(k.sub(y, nearest))
    turned = k.compare("ogt", r, k.constant(0.25))
    angle = k.select(turned, k.sub(k.constant(0.5), r), r)
    high, low = pairs.times(k, k.pair(*pairs.PI), angle)
    head, sine, base, cosine = sine_and_cosine(k, high, low)
    return pairs.fast_sum(k, k.select(turned, base, head), k.select(turned, cosine, sine))


def _is_whole(k: Lanes, x: str) -> str:
    return k.compare("oeq", k.call("floor", x), x)


def gamma(k: Lanes, x: str) -> Result:
    zero, infinity, nothing = (k.constant(value) for value in (0.0, math.inf, math.nan))
    size = k.absolute(x)

    def moved() -> str:
        t, low, product, above = _to_middle(k, x)
        tail = k.mul(t, k.polynomial(table(k, "GAMMA"), t))
        # the derivative, roughly, times the low part
        tail = k.fma(k.fma(t, k.constant(0.9), k.constant(0.42)), low, tail)
        middle = pairs.fast_sum(k, k.constant(1.0), tail)

        def multiply() -> str:
            return pairs.product_of_pairs(k, middle, product)[0]

        def divide() -> str:
            high, low = pairs.quotient_of_pairs(k, middle, product)
            finite = k.compare("olt", k.absolute(high), infinity)
            return k.select(finite, k.add(high, low), high)

        return k.either_way(above, multiply, divide)

    def far() -> str:
        return k.either_way(k.compare("ogt", x, zero), far_above, far_below)

    def far_above() -> str:
        (value, low), n, n_bits = pairs.exponential(k, _stirling(k, k.at_most(x, 40.0 if k.short else 180.0), -0.5))
        return k.times_power_of_two(k.add(value, low), n, n_bits)

    def far_below() -> str:
        y = k.at_most(size, 50.5 if k.short else 190.5)  # there the result is 0
        log, rest = _stirling(k, y, 0.5)
        power, n, n_bits = pairs.exponential(k, (k.neg(log), k.neg(rest)))
        quotient = pairs.quotient_of_pairs(k, k.pair(*pairs.PI), _sine_of_half_turns(k, y))
        result = k.times_power_of_two(pairs.product_of_pairs(k, quotient, power)[0], n, n_bits)
        half = k.mul(k.call("floor", size), k.constant(0.5))
        return k.select(k.compare("oeq", k.call("floor", half), half), k.neg(result), result)

    result = k.either_way(k.compare("olt", size, k.constant(_FAR)), moved, far)
    result = k.select(k.both(k.compare("olt", x, zero), _is_whole(k, x)), nothing, result)
    return Result(k.select(k.compare("oeq", x, zero), k.copysign(infinity, x), result))


def lgamma(k: Lanes, x: str) -> Result:
    zero, infinity = k.constant(0.0), k.constant(math.inf)
    size = k.absolute(x)

    def moved() -> str:
        t, low, (product, rest), above = _to_middle(k, x)
        place = pairs.fast_sum(k, t, low)
        middle = pairs.product_of_pairs(k, place, pairs.polynomial(k, "LGAMMA", place))
        rest = k.select(k.compare("olt", product, zero), k.neg(rest), rest)
        product = k.absolute(product)
        tiny = k.compare("olt", product, k.constant(2.0 ** (k.mantissa + 4 - k.bias)))
        factor = k.select(tiny, k.constant(2.0 ** (2 * k.mantissa)), k.constant(1.0))
        shift = k.select(tiny, k.constant(-2.0 * k.mantissa), zero)
        log, log_low = pairs.logarithm(k, (k.mul(product, factor), k.mul(rest, factor)), shift)
        log, log_low = (k.select(above, part, k.neg(part)) for part in (log, log_low))
        return pairs.sum_of_pairs(k, (log, log_low), middle)[0]

    def far() -> str:
        return k.either_way(k.compare("ogt", x, zero), far_above, far_below)

    def far_above() -> str:
        large = k.compare("ogt", x, k.constant(2.0**60 if k.double else 2.0**30))

        def product() -> str:
            log, low = pairs.logarithm(k, (x, zero))
            less, lost = pairs.fast_sum(k, log, k.constant(-1.0))
            head = k.mul(x, less)
            return k.select(k.compare("olt", head, infinity), k.fma(x, k.add(low, lost), head), infinity)

        return k.either_way(large, product, lambda: _stirling(k, x, -0.5)[0])

    def far_below() -> str:
        y = k.at_most(size, 2.0 ** (k.mantissa + 1))  # a whole number
        log, log_low = _stirling(k, y, 0.5)
        sine, sine_low = pairs.logarithm(k, _sine_of_half_turns(k, y))
        head, low = pairs.sum_of_pairs(k, k.pair(*_LOG_PI), (k.neg(sine), k.neg(sine_low)))
        return pairs.sum_of_pairs(k, (head, low), (k.neg(log), k.neg(log_low)))[0]

    result = k.either_way(k.compare("olt", size, k.constant(_FAR)), moved, far)
    pole = k.both(k.compare("ole", x, zero), _is_whole(k, x))
    result = k.select(k.either(pole, k.compare("oeq", x, infinity)), infinity, result)
    return Result(k.select(k.compare("uno", x, x), x, result))
