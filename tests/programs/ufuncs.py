"""Every ufunc of the library, by family, over the dtypes it takes and over special values."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import ELEMENTARY, each, program, raising

REALS = [*variants(arr("f8", 11), "f4 i8 i4 u1 b1 f2", "stepped reversed", "special"), arr("f4", 11, values="special")]
REALS += [arr("f8"), arr("f8", 0), np.float32(0.75), 0.75, 3, True]
POSITIVE = [*variants(arr("f8", 9, values="positive"), "f4 i4 u1"), arr("f8", 11, values="special"), 0.5]
UNIT = [*variants(arr("f8", 9, values="unit"), "f4"), arr("f8", 11, values="special"), 0.5]
COMPLEX = [arr("c16", 5), arr("c8", 5), 1 + 2j]
PAIRS = [
    (arr("f8", 7), arr("f8", 7, seed=1)),
    (arr("f4", 7), arr("f4", 7, seed=1)),
    (arr("i8", 7), arr("i8", 7, seed=1)),
    (arr("i4", 7), arr("u1", 7)),
    (arr("u1", 7), arr("u1", 7, seed=1)),
    (arr("b1", 7), arr("b1", 7, seed=1)),
    (arr("f8", 11, values="special"), arr("f8", 11, values="special", layout="reversed")),
    (arr("f8", 11, values="special"), 0.0),
    (arr("f4", 7), 2),
    (2.5, arr("i8", 7)),
    (np.float64(1.5), np.float64(-2.5)),
]
INTEGERS = [
    (arr("i8", 7), arr("i8", 7, seed=1)),
    (arr("i4", 7), arr("i8", 7)),
    (arr("u1", 9, values="special"), arr("u1", 9)),
    (arr("i1", 7, values="special"), 3),
    (arr("b1", 6), arr("b1", 6, seed=1)),
    (arr("u4", 4, values="special"), np.uint32(5)),
]


@program(each(REALS), ulp=ELEMENTARY)
def trigonometry(x):
    return np.sin(x), np.cos(x), np.tan(x)


@program(each(UNIT), ulp=ELEMENTARY)
def inverse_trigonometry(x):
    return np.arcsin(x), np.arccos(x), np.arctan(x)


@program(each(REALS[:6]), ulp=ELEMENTARY)
def hyperbolic(x):
    return np.sinh(x), np.cosh(x), np.tanh(x)


@program(each(UNIT[:3]), ulp=ELEMENTARY)
def inverse_hyperbolic(x):
    return np.arcsinh(x), np.arccosh(x + 2), np.arctanh(x)


@program([(arr("c16", 5, values=[1 + 1e-310j, 1 - 3e-200j, -1 + 1e-90j, 1e-310 + 1j, 1 + 0j]),)], ulp=ELEMENTARY)
def beside_a_pole(x):
    return np.arctanh(x), np.arctan(x)


@program(each(REALS), ulp=ELEMENTARY)
def exponentials(x):
    return np.exp(x), np.exp2(x), np.expm1(x)


@program(each(POSITIVE), ulp=ELEMENTARY)
def logarithms(x):
    return np.log(x), np.log2(x), np.log10(x), np.log1p(x)


@program(each([arr("f8", 8, values=[0.5, 710, -745.2, 1e-320, 709.5, -750, 1e-8, 88])]), ulp=ELEMENTARY)
def exponential_edges(x):
    return np.exp(x), np.expm1(x), np.log(np.abs(x)), np.tanh(x)


@program(each([arr("f8", 6, values=[1e5, 1e9, -1e16, 1e22, 1e300, 3.141592653589793])]), ulp=ELEMENTARY)
def sine_of_large_arguments(x):
    return np.sin(x), np.cos(x), np.tan(x)


@program(each([*POSITIVE, np.float32(2.0), 16, True]))
def square_roots(x):
    """Exact to the last bit."""
    return np.sqrt(x), np.square(x)


@program(each(REALS[:6]), ulp=ELEMENTARY)
def cube_root(x):
    return np.cbrt(x)


@program(each([arr("f8", 6, values="nonzero"), arr("f4", 6, values="nonzero"), arr("f8", 11, values="special"), 4.0]))
def reciprocal(x):
    return np.reciprocal(x)


@program(each(REALS))
def rounding(x):
    return np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)


@program(each([arr("f8", 8, values=[0.5, 1.5, 2.5, -0.5, -1.5, 2.675, -2.5, 1e300]), arr("f4", 5), arr("i8", 5), 2.5]))
def round_half_to_even(x):
    return np.round(x), np.round(x, 2), np.around(x)


@program(each([*REALS, arr("i1", 7, values="special")]))
def magnitude(x):
    return np.abs(x), np.absolute(x)


@program(
    each([*(r for r in REALS if r is not True and getattr(r, "dtype", "") != "b1"), arr("i1", 7, values="special")])
)
def signs(x):
    return np.negative(x), np.positive(x), np.sign(x)


@program(each([*(r for r in REALS if getattr(r, "dtype", "") != "b1"), arr("c16", 5)]), ulp=0)
def classified(x):
    return np.isnan(x), np.isinf(x), np.isfinite(x)


@program(each([arr("f8", 11, values="special"), arr("f4", 11, values="special"), -0.0]))
def sign_bits(x):
    return np.signbit(x), np.copysign(1.5, x), np.fabs(x), np.copysign(x, -1.0)


@program(PAIRS)
def comparisons(x, y):
    return x < y, x <= y, x > y, x >= y, x == y, x != y


@program(PAIRS[:8])
def named_comparisons(x, y):
    return np.less(x, y), np.greater_equal(x, y), np.equal(x, y), np.not_equal(x, y)


@program([*PAIRS[:7], *PAIRS[8:], (arr("f8", 11, values="special"), 0.5)])
def extrema(x, y):
    """maximum spreads NaN, fmax does not. (Of zeros of different sign NumPy takes either, by the machine.)"""
    return np.maximum(x, y), np.minimum(x, y), np.fmax(x, y), np.fmin(x, y)


@program(PAIRS)
def logic(x, y):
    return np.logical_and(x, y), np.logical_or(x, y), np.logical_xor(x, y), np.logical_not(x)


@program([p for p in PAIRS if getattr(p[0], "dtype", "") != "b1"])
def floor_divide_and_remainder(x, y):
    """Signs and zeros as Python's: the remainder has the sign of the divisor; integers by zero give 0."""
    return x // y, x % y, np.fmod(x, y)


@program([p for p in PAIRS if getattr(p[0], "dtype", "") != "b1"])
def division_pairs(x, y):
    quotient, remainder = np.divmod(x, y)
    return quotient, remainder, np.true_divide(x, y), np.remainder(x, y)


@program(
    [
        (
            arr("i8", 8, values=[-7, 7, -7, 7, 0, 5, -(2**63), -(2**63)]),
            arr("i8", 8, values=[2, -2, -2, 2, 3, 0, -1, 0]),
        ),
        (arr("i1", 4, values=[-128, -128, 127, -7]), arr("i1", 4, values=[-1, 0, -1, 2])),
        (arr("i4", 3, values=[-9, 9, -(2**31)]), -1),
    ]
)
def integer_division_edges(x, y):
    return x // y, x % y, np.fmod(x, y), x / y


@program(
    [
        (arr("f8", 9, values="positive"), arr("f8", 9)),
        (arr("f4", 9, values="positive"), 2.5),
        (arr("f8", 9), 3),
        (arr("f8", 9), 2),
        (arr("f8", 9, values="positive"), 0.5),
        (arr("f8", 9, values="nonzero"), -1),
        (arr("f8", 11, values="special"), 2.0),
        (arr("f8", 11, values="special"), arr("f8", 11, values="special", layout="reversed")),
        (2.0, arr("f8", 5)),
        (np.float64(2), np.float64(0.5)),
    ],
    ulp=ELEMENTARY,
)
def float_powers(x, y):
    return x**y, np.power(x, y)


@program(
    [(arr("f8", 6), 2), (arr("f4", 6), 2), (arr("i8", 6), 2), (arr("u1", 6), 2), (arr("f8", 6), 2.0), (arr("f8", 6), 1)]
)
def small_powers(x, k):
    """x**2 is x*x to the bit."""
    return x**k


@program(
    [
        (arr("i8", 6), 3),
        (arr("i4", 6), 5),
        (arr("u1", 6), 4),
        (3, arr("i8", 6, values="positive")),
        (arr("i8", 4), arr("u1", 4)),
    ]
)
def integer_powers(x, y):
    return x**y, np.power(x, y)


@program(PAIRS[:4] + PAIRS[6:8], ulp=ELEMENTARY)
def angles(y, x):
    return np.arctan2(y, x), np.hypot(x, y)


@program(each([arr("f8", 5), arr("f4", 5), 180.0, arr("i8", 5)]), ulp=1)
def degrees(x):
    return np.radians(x), np.degrees(x), np.deg2rad(x), np.rad2deg(x)


@program([(arr("f8", 5), arr("f8", 5, seed=1)), (arr("f4", 5), arr("f4", 5, seed=1))], ulp=16)
def log_sum_of_two(x, y):
    return np.logaddexp(x, y)


@program(INTEGERS)
def bits(x, y):
    return x & y, x | y, x ^ y, ~x


@program(INTEGERS[:3])
def named_bits(x, y):
    return np.bitwise_and(x, y), np.bitwise_or(x, y), np.bitwise_xor(x, y), np.invert(x)


@program(
    [
        (arr("i8", 6), 3),
        (arr("i4", 6), arr("i4", 6, values=[0, 1, 31, 32, 40, 5])),
        (arr("u1", 6, values="special"), np.uint8(3)),
        (arr("u1", 6), 9),
        (arr("i8", 4, values=[-1, -5, 7, 2**62]), arr("i8", 4, values=[63, 64, 65, 1])),
    ]
)
def shifts(x, k):
    """A shift by the width or more gives 0 (or -1 to the right of a negative number)."""
    return x << k, x >> k, np.left_shift(x, k), np.right_shift(x, k)


@program([(arr("i8", 6), arr("i8", 6, seed=1)), (arr("i4", 6), 6), (arr("u1", 4), arr("u1", 4, seed=1))])
def divisors(x, y):
    return np.gcd(x, y), np.lcm(x, y)


@program(each(COMPLEX), ulp=8)
def complex_functions(z):
    return np.exp(z), np.sqrt(z), np.abs(z), np.conjugate(z)


@program(each([arr("c16", 5), arr("c8", 5), arr("f8", 5), 1 - 1j]), ulp=ELEMENTARY, opaque=None)
def complex_angle(z):
    return np.angle(z), np.real(z), np.imag(z)


@program(
    [(arr("f8", 5), arr("f8", 5, seed=1)), (arr("i8", 5), 2), (arr("c16", 3), 1j), (arr("b1", 4), arr("b1", 4, seed=1))]
)
def named_arithmetic(x, y):
    return np.add(x, y), np.multiply(x, y), np.divide(x, 4)


@program([(arr("f8", 5), arr("f8", 5, seed=1)), (arr("u1", 5), arr("u1", 5, seed=1)), (arr("i4", 5), 2)])
def named_subtraction(x, y):
    return np.subtract(x, y), np.absolute(np.subtract(y, x))


@program([(arr("f8", 4), arr("f8", 4, seed=1)), (arr("i8", 4), arr("i8", 4, seed=1)), (arr("f4", 4), 0.5)])
def heaviside_and_differences(x, y):
    return np.heaviside(x, y), np.where(x > y, x - y, y - x)


@program([(arr("i4", 5), arr("i4", 5, seed=1)), (arr("f8", 5), arr("f8", 5, seed=1))])
def explicit_dtype(x, y):
    return np.add(x, y, dtype=np.float64), np.multiply(x, y, dtype="f4") if x.dtype == np.int16 else np.sqrt(abs(y))


@program([(arr("i8", 4),), (arr("i1", 4),), (arr("i4", 0),)])
def weak_with_the_default_integer(x):
    """A Python int beside int64 is weak all the same: ldexp takes it as float16."""
    return np.ldexp(5, x), np.ldexp(1.5, x), np.ldexp(np.float32(2), x)


@program(
    [
        (arr("f8", 3), arr("f8", 3), arr("f8", 3)),
        (arr("f8", 1, 3), arr("f8", 1, 3), arr("f8", 2, 3)),
        (arr("f8", 1, 3), arr("f8", 3), arr("f8", 2, 2, 3)),
        raising(ValueError, arr("f8", 3), arr("f8", 3), arr("f8", 4)),
        raising(ValueError, arr("f8", 3), arr("f8", 3), arr("f8", 1)),
        raising(ValueError, arr("f8", 2, 3), arr("f8", 3), arr("f8", 1, 3)),
        raising(ValueError, arr("f8", 2, 3), arr("f8", 3), arr("f8", 3)),
        raising(ValueError, arr("f8", 5, 3), arr("f8", 4, 3), arr("f8", 1, 3)),
    ],
    message=True,
    mutates=(2,),
)
def sum_into(x, y, out):
    """Operands are broadcast to the output too, but an output is not."""
    return np.add(x, y, out=out)


@program(
    [
        (arr("f8", 3), arr("b1", 3), arr("f8", 3)),
        (arr("f8", 3), arr("b1", 1), arr("f8", 3)),
        (arr("f8", 3), arr("b1", 2, 1), arr("f8", 2, 3)),
        raising(ValueError, arr("f8", 3), arr("b1", 4), arr("f8", 3)),
        raising(ValueError, arr("f8", 3), arr("b1", 2, 3), arr("f8", 3)),
        raising(ValueError, arr("f8", 2, 3), arr("b1", 5, 1), arr("f8", 2, 3)),
        raising(ValueError, arr("f8", 2, 3), arr("b1", 2, 4), arr("f8", 2, 3)),
        raising(TypeError, arr("f8", 3), arr("i8", 3), arr("f8", 3)),
    ],
    message=True,
    mutates=(2,),
    opaque=None,
)
def negative_where(x, mask, out):
    return np.negative(x, out=out, where=mask)


@program([(arr("f8", 4), arr("f8", 3)), (arr("i4", 5), arr("i4", 3))], mutates=(0,))
def added_at_places_of_a_list(a, values):
    np.add.at(a, [0, 2, 0], values)
    np.subtract.at(a, -1, 2)
    np.negative.at(a, [1])


@program([(arr("f8", 3, 4),)], mutates=(0,), opaque=2)
def added_at_other_places(a):
    np.add.at(a, (slice(None), [0, 1, 1]), 2)
    np.add.at(a, slice(0, 2), 1)


@program(
    [(arr("u8", 2, layout="readonly"), -1), (arr("u8", 0, layout="readonly"), -1)], raises=ValueError, message=True
)
def read_only_output_is_asked_before_the_number(a, k):
    for _ in range(2):
        np.add(a, k, out=a)


@program([(arr("u8", 2, layout="readonly"),)], raises=ValueError, message=True)
def clipped_into_what_is_read_only(a):
    for _ in range(2):
        np.clip(a, 0, -1, out=a)


@program([lambda: (np.array([2, 3, 4]), np.array([2, -1, 3]), np.array([True, False, True]))], opaque=1)
def masked_power(a, b, mask):
    """A negative exponent that is not taken is none."""
    return np.power(a, b, where=mask, out=np.zeros(3))


@program([(arr("f8", 3, 4), arr("i4", 3, 4)), (arr("f4", 3, 4, layout="F"), arr("i4", 3, 4, layout="F"))])
def options_of_ufuncs(a, b):
    into = np.zeros((3, 4), "i2")
    np.add(a, b, out=into, casting="unsafe")
    made = np.add(a, b, dtype="i8", casting="unsafe"), np.multiply(a, 2, order="F"), np.multiply(a, b, order="C")
    return into, made, np.sqrt(b * b, subok=False, casting="safe"), np.modf(a, order="F", casting="safe")


@program([(arr("f8", 3),)], raises=TypeError, message=True, fell_back=None)
def outputs_of_two_are_a_tuple(a):
    return np.modf(a, out=None)


@program([lambda: ([[1, 2]],), lambda: ([],), lambda: ((0, 2),)], fell_back=None, opaque=None)
def open_meshes(rows):
    return np.ix_(rows[0] if rows and isinstance(rows[0], list) else rows, [True, False])


def _rows_to_add(rows: int) -> tuple[object, ...]:
    return arr("f8", 3, 4).make(), np.array([0, 2, 0, -1]), arr("f8", rows, 4).make(), np.arange(12)


@program([lambda: _rows_to_add(4), lambda: _rows_to_add(1)], mutates=(0,))
def rows_added_where_they_belong(a, rows, values, n):
    """One index for each row, masks, indices of several axes, and values that are broadcast."""
    np.add.at(a, rows, values)
    np.multiply.at(a, a > 1, 2)
    np.add.at(a, ([[0], [1]], [3, 3]), [[0.5, 1], [2, 4]])
    np.negative.at(a, [1, 1, 2])
    n = n.reshape(3, 4).copy()
    np.add.at(n, rows[:2], 100)
    return n


@program(
    [(arr("f8", 7), np.array([1, 2, 2, 5, 0, 1, 3])), (arr("i4", 7), np.array([6, 0, 0, 0, 1, 1, 1]))], mutates=(0,)
)
def added_to_itself(a, places):
    """What is added is read before anything is changed."""
    np.add.at(a, places, a)
    np.maximum.at(a, places[:3], a[2:5])


@program([(arr("i2", 3, values=[7, 8, 9]), np.int32(1073741823)), (arr("u1", 3, values=[7, 8, 9]), 3)], mutates=(0,))
def scalar_result_cast_into_an_output(r, m):
    np.multiply(m, 2, out=r[0:1], casting="unsafe")
