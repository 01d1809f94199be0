"""Python's own numbers: ints that never wrap, floor division, float formatting of types, math, cmath, builtins."""

import cmath
import math

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, each, program, raising

INTS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3), (2**62, 3), (True, 2), (6, 3)]
FLOATS = [
    (7.5, 2.0),
    (-7.5, 2),
    (7, -2.5),
    (-0.0, 3.0),
    (1e300, 1e-10),
    (5.0, math.inf),
    (-5.0, math.inf),
    (math.nan, 1.0),
]


@program([p for p in INTS if p != (2**62, 3)] + FLOATS)
def arithmetic(a, b):
    return a + b, a - b, a * b, a / b


@program(INTS + FLOATS)
def floor_arithmetic(a, b):
    """The quotient rounds down, the remainder has the sign of the divisor."""
    return a // b, a % b, divmod(a, b)


@program(INTS)
def bit_operators(a, b):
    return a & b, a | b, a ^ b, ~a, -a, +a, abs(a)


@program([(3, 4), (-5, 2), (1, 62), (-1, 63), (5, 0), (2**62, 70), (-8, 100)])
def shifts(a, k):
    return a >> k, (a % 2) << (k % 61)


@program([raising(ValueError, 3, -1)], message=True)
def negative_shift(a, k):
    return a << k


@program(INTS + FLOATS + [(2, 2.0), (True, 1), (2**53 + 1, float(2**53))])
def comparisons(a, b):
    """An int and a float compare by exact value."""
    return a < b, a == b, a >= b, a != b


@program([(2**62, 2), (2**63 - 1, 1), (-(2**62), 3)], overflow=True)
def product_overflows(a, b):
    return a * (b + 1) * 2


@program([(2**63 - 1, 1), (2**62, 2**62)], overflow=True)
def sum_overflows(a, b):
    return a + b


@program([(-(2**63), 1), (-(2**63), 5)], overflow=True)
def difference_overflows(a, b):
    return a - b


@program([(-(2**63),)], overflow=True)
def negation_overflows(a):
    return -a


@program([(-(2**63),)], overflow=True)
def abs_overflows(a):
    return abs(a)


@program([(-(2**63), -1)], overflow=True)
def floor_division_overflows(a, b):
    return a // b


@program([(2, 63), (3, 41), (-2, 65)], overflow=True)
def power_overflows(a, b):
    return a**b


@program([(1, 63), (3, 62)], overflow=True)
def shift_overflows(a, k):
    return a << k


@program([(93,)], overflow=True)
def loop_overflows(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program([(arr("f8", 3), 2**62)], overflow=True)
def overflow_beside_arrays(x, n):
    m = n * 4
    return x * (m / n)


@program([(arr("f8", 3), 2**62)], overflow=True, mutates=(0,))
def overflow_after_a_store(x, n):
    x[0] = 5
    return n * 4


@program([(3, 40), (arr("f8", 3), 2)], fell_back=True)
def hash_of_64_bits(x, n):
    """Intermediate results are longer than 64 bits."""
    h = 0xCBF29CE484222325
    for i in range(n):
        h = ((h ^ i) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h, x


@program([(5,), (-5,), (2.5,), (-(2**63),), (2**63 - 1,)], opaque=None, fell_back=None)
def beside_long_ints(x):
    """Known ints beyond 64 bits: compared, computed with, converted."""
    return x < 2**64, x >= -(2**70), 10**20 // 10**18, x + float(10**20), (1 << 64) - 1 - (1 << 63), x * 2**64


@program([(5,), (-5,), (2**63 - 1,)], opaque=1)
def masked_with_64_ones(x):
    return x & 0xFFFFFFFFFFFFFFFF


@program([(arr("u8", 4),), (arr("f8", 4),), (arr("f4", 3),)], mutates=(0,))
def long_int_in_an_array(x):
    x[0] = 0x9E3779B97F4A7C15
    return x + 0xCBF29CE484222325, np.uint64(0xCBF29CE484222325), abs(-(2**63)) == 2**63


@program([(2,), (3,)], overflow=True)
def sum_of_static_ints_overflows(x):
    return sum([2**62, 2**62, x])


@program([(1e30,), (np.float64(-1e19),), (np.uint64(2**63),)], overflow=True)
def long_int_of_a_number(x):
    return int(x)


@program([(2**62, -(2**62)), (2**63 - 1, -(2**63)), (-(2**63), 0)])
def near_the_edge(a, b):
    return a + b, a // 3, b % 7, a | b


@program(each([2.5, -2.5, 3.7, -3.7, 0.5, 1.5, 7, True, np.float32(2.5), np.int16(-4), -0.0]))
def conversions(x):
    return int(x), float(x), bool(x), complex(x), round(x)


@program([(2.675, 2), (1234.5678, -2), (2.5, 0), (-0.5, 0), (1e22, 3)], fell_back=None)
def rounded_float(x, digits):
    return round(x, digits)


@program([(17, -1), (25, -1), (35, -1), (-17, 0)], opaque=None)
def rounded(x, digits):
    return round(x, digits)


@program(
    [raising(ValueError, math.nan), raising(OverflowError, math.inf), raising(OverflowError, -math.inf)], message=True
)
def int_of_non_finite(x):
    return int(x)


@program([raising(OverflowError, math.inf), raising(ValueError, math.nan)], message=True)
def floor_of_non_finite(x):
    return math.floor(x)


@program(each([np.int64(2**53 + 1), np.int64(-(2**53) - 1), np.uint64(2**53 + 1), np.int32(7), 2**53 + 1]))
def floor_of_integers(x):
    return math.floor(x), math.ceil(x)


@program(
    [(3, 5), (2.5, 1), (1, 1.0), (1.0, 1), (math.nan, 1.0), (1.0, math.nan), (-0.0, 0.0), (True, 0), (np.float32(2), 3)]
)
def min_max(a, b):
    """The first of equals wins, and NaN by position."""
    return min(a, b), max(a, b), min(a, b, 2), max(3, a, b)


@program(each([(3, 1, 2), (2.5, 1), (1, 2.0, 3), [4, 2]]))
def builtins_of_sequences(t):
    return sum(t), min(t), max(t), len(t), sum(t, 10), any(t), all(t)


@program(each([arr("f8", 5), arr("i4", 5), arr("f4", 1), arr("b1", 4)]))
def builtins_of_arrays(x):
    return sum(x), min(x), max(x), len(x), any(x > 0), all(x > 0), abs(x)


@program([(2, 10), (2.0, 3), (7, 0), (2.5, -1)], ulp=1)
def pow_builtin(a, b):
    return pow(a, b)


@program([(3, 4, 5), (-2, 3, 7), (7, -1, 5)], fell_back=None, opaque=None)
def pow_with_modulus(a, b, m):
    return pow(a, b, m)


@program([(0.5,), (1,), (np.float32(0.25),), (np.float64(0.75),), (True,)], ulp=ELEMENTARY)
def math_functions(x):
    return math.sin(x), math.exp(x), math.log(x), math.atan2(x, 2), math.tanh(x), math.pow(x, 2)


@program([(0.5,), (-0.25,), (0,), (1,)], ulp=ELEMENTARY)
def more_math_functions(x):
    return math.asin(x), math.cosh(x), math.log1p(x + 1), math.expm1(x), math.hypot(x, 3), math.erf(x)


@program([(16,), (2.25,), (0,), (np.float64(2),), (True,)])
def exact_math(x):
    """math takes and gives Python floats."""
    return math.sqrt(x), math.fabs(x), math.floor(x), math.ceil(x), math.trunc(x), math.copysign(x, -1)


@program([(7.5, 2.0), (-7.5, 2.0), (7.5, -2), (0.0, 1)])
def math_remainders(x, y):
    return math.fmod(x, y), math.modf(x), math.isnan(x), math.isfinite(y)


@program(
    [
        (7.5, 2.0),
        (-5, 2),
        (3.0, -2.0),
        (1e-310, math.inf),
        (-0.0, 1),
        (np.float32(0.75), True),
        (math.nan, 2.0),
        raising(ValueError, math.inf, 2.0),
        raising(ValueError, 1.5, 0.0),
    ],
    message=True,
    ulp=1,
)
def math_parts(x, y):
    remainder = math.remainder(x, y), math.remainder(x, math.inf)
    return remainder, math.frexp(x), math.ldexp(x, 3), math.ldexp(x, -1070), math.nextafter(x, y), math.hypot(x, y, 3)


@program([(1.5, 3), (-0.75, -2000), (True, 2), raising(OverflowError, 1.5, 5000), (math.inf, 5000)], message=True)
def scaled_by_power(x, n):
    return math.ldexp(x, n)


@program(
    [
        *each([0.5, -0.5, 5, 171.5, 1e-300, -20.25, math.inf, math.nan]),
        *(raising(ValueError, x) for x in (0.0, -3, -math.inf)),
        raising(OverflowError, 172.0),
    ],
    message=True,
    ulp=ELEMENTARY,
)
def math_gamma(x):
    return math.gamma(x), math.lgamma(x)


@program([((1.5, 2), [4, 6.0]), ([1], (np.float32(3),)), ((), ()), raising(ValueError, (1, 2), (1,))], message=True)
def distance(p, q):
    return math.dist(p, q)


@program(
    [
        (1.0, 1, 0.1),
        (2.7, -1.3, 1e-9),
        (1e308, -1.5e308, 3.0),
        (5e-324, 1e-310, 0.0),
        (math.inf, math.nan, 1.0),
        (math.nan, 1.0, True),
        (np.float32(0.3), np.int8(-7), 0.5),
    ]
)
def norms(x, y, z):
    """To the last bit, of any number of coordinates."""
    return math.hypot(x, y), math.hypot(x, y, z, x, y), math.hypot(z), math.hypot(), math.dist((x, y, z), (y, z, 0.5))


@program(
    [(3.0, 4.0), (1.0, 1.0), (-2.75, 1e-3), (1e308, math.inf), raising(OverflowError, 1e308, -1.6e308)],
    message=True,
)
def absolute_value_too_large(x, y):
    """Of Python's numbers; NumPy's are infinite then."""
    z = complex(x, y)
    count = 0
    while abs(z) < 1e3 and count < 50:
        z = z * z + 0.1
        count += 1
    return count, abs(complex(x, y)), abs(np.complex64(complex(x, y) / 1e300))


@program(
    [
        (1 + 2j,),
        (-1.5,),
        (0.25j,),
        (complex(-1.5, -0.0),),
        (2,),
        (True,),
        (np.complex64(0.5 - 1j),),
        (np.float32(0.3),),
    ],
    ulp=ELEMENTARY,
)
def complex_functions(z):
    powers = cmath.exp(z), cmath.log(z), cmath.log10(z), cmath.sqrt(z), cmath.log(z, 10)
    circle = cmath.sin(z), cmath.cos(z), cmath.tan(z), cmath.asin(z), cmath.acos(z), cmath.atan(z)
    line = cmath.sinh(z), cmath.cosh(z), cmath.tanh(z), cmath.asinh(z), cmath.acosh(z)
    r, phi = cmath.polar(z)
    questions = cmath.isnan(z), cmath.isinf(z), cmath.isfinite(z), cmath.isclose(z, z * (1 + 1e-10))
    return powers, circle, line, cmath.phase(z), r, phi, cmath.rect(r, phi), questions


INFINITE = complex(math.inf, -math.inf)


@program(
    [(1, INFINITE), (2, -INFINITE)]
    + [raising(ValueError, k, z) for k, z in [(0, 0j), (3, 1), (0, 1), (1, 1j), (2, INFINITE)]]
    + [raising(OverflowError, k, z) for k, z in [(2, 1000), (3, 1000j)]],
    message=True,
)
def complex_functions_refuse(k, z):
    if k == 0:
        return cmath.log(z, z)
    if k == 1:
        return cmath.tanh(z), cmath.atan(z)
    if k == 2:
        return cmath.sqrt(z), cmath.exp(z)
    return cmath.atanh(z), cmath.sin(z)


try:  # CPython's patch releases differ
    _FIFTH_POWER = (1e200 + 1j, 5) if (1e200 + 1j) ** 5 else ()
except OverflowError:
    _FIFTH_POWER = raising(OverflowError, 1e200 + 1j, 5)


@program(
    [
        *[(1 + 2j, w) for w in (0, 1, -2, 5, 101, 0.5, 1j, 2 - 0.5j, True)],
        *[(-1.5, 2j), (2, 0.5 + 1j), (0j, 3), (0j, 0), (0.0, 2 + 0j), (-0.0 + 0j, 1), (complex(math.nan, 1), 2)],
        *[raising(ZeroDivisionError, 0j, w) for w in (-1, 1j, -0.5)],
        raising(ZeroDivisionError, 1j + 1, complex(math.inf, 0)),
        *[raising(OverflowError, 1e200 + 1j, w) for w in (2, 2.5)],
        _FIFTH_POWER,
    ],
    message=True,
    ulp=32,
)
def complex_powers(z, w):
    return z**w


@program([(1 + 2j,), (complex(1, -0.0),), (0.5 - 0.25j,), (0j,), raising(OverflowError, 1e200 - 1j)], message=True)
def known_complex_powers(z):
    return z**0, z**1, z**2, z**3, z**7


@program([(12, 18), (0, 5), (-4, 6), (True, 3)])
def math_of_integers(a, b):
    return math.gcd(a, b), math.lcm(a, b), math.isqrt(abs(a)), math.factorial(abs(b) % 9)


MIXED = arr("f8", 21, values=[1.5, 2.0, 700.0, *[0.25] * 15, -1.0, 0.0, 3.0])


@program(
    [
        (arr("f8", 70, values="positive"), 0.5),
        (arr("f4", 5, values="positive"), 2.0),
        (arr("f8", 0), 0.0),
        raising(ValueError, MIXED, 0.5),
        raising(OverflowError, MIXED, 1.5),
        raising(ZeroDivisionError, arr("f8", 9, values="positive"), 0.0),
    ],
    ulp=ELEMENTARY,
    message=True,
)
def math_of_elements(x, u):
    """The loop is a vector loop, and runs once more if an iteration fails."""
    out = np.empty((len(x), 2))
    for i in range(len(x)):
        out[i, 0] = math.exp(u * x[i]) + u ** (3 - i)
        out[i, 1] = math.log(x[i]) if x[i] < 500 else math.sqrt(x[i])
    return out


@program(
    [
        (arr("f8", 70, values="positive"), arr("f8", 70)),
        (arr("f8", 0), arr("f8", 3)),
        raising(ValueError, MIXED, arr("f8", 21)),
        raising(OverflowError, arr("f8", 3, values=[0.5, -800.0, -900.0]), arr("f8", 3)),
        raising(IndexError, arr("f8", 5, values="positive"), arr("f8", 3)),
    ],
    ulp=ELEMENTARY,
    mutates=(1,),
)
def math_into(x, out):
    """All iterations are tested before the first; if one fails, those before it have stored."""
    for i in range(len(x)):
        if x[i] > 2.0:
            out[i] += math.sqrt(x[i] - 2.5) if x[i] > 2.5 else 0.0
        else:
            out[i] = math.exp(-x[i]) + math.log1p(x[i] * 2)


@program(
    [
        (arr("f8", 5), arr("f8", 5, values=[0.5, -0.5, 2.0, 0.0, 1.0])),
        raising(ValueError, arr("f8", 3), arr("i8", 3, values=[1, 9, 2])),
    ]
)
def guarded_elements(x, y):
    """What is accessed depends on the checks: these cannot wait."""
    out = np.zeros(len(y))
    for i in range(len(y)):
        place = int(y[i])
        if place >= len(x):
            raise ValueError("no such place")
        out[i] = x[place]
    return out


@program([raising(ValueError, -1.0), raising(ValueError, -2)], message=True)
def root_of_negative(x):
    return math.sqrt(x)


@program([raising(ValueError, 0.0), raising(ValueError, -1.0)])
def logarithm_of_nothing(x):
    return math.log(x)


@program([raising(OverflowError, 1000.0)], message=True)
def math_exp_overflows(x):
    return math.exp(x)


@program([raising(OverflowError, 10.0, 400), raising(OverflowError, 1e200, 2)])
def float_power_overflows(x, y):
    return x**y


@program([(1e200, 10.0), (1e308, 100)])
def float_product_is_infinite(x, y):
    return x * y * 1e100, x + x * y * 1e100


@program([(1 + 2j, 3 - 1j), (2j, 2), (1.5, -1j)], ulp=ELEMENTARY)
def python_complex(a, b):
    return a + b, a * b, a / b, abs(a + b), (a * b).conjugate(), (a - b).real, -a


ODD_PARTS = [complex(a, b) for a in (0.0, -0.0, 2.0, float("inf")) for b in (-0.0, -1.5, float("nan"))]


@program([(z, r) for z in ODD_PARTS for r in (-0.0, 2.0, float("inf"))], opaque=None, fell_back=None, overflow=True)
def complex_beside_real_numbers(z, r):
    """From Python 3.14 on the real number is not converted, which shows in zeros, infinities and NaN."""
    return z + r, r + z, z - r, r - z, z * r, r * z, z * z, r / (z + 1j), z / (r + 1)


@program([raising(TypeError, 1j, 2)], message=True, fell_back=None)
def complex_has_no_order(a, b):
    return a < b


@program([(True, False), (True, True), (1 == 1, 2)])
def bools(a, b):
    """and/or of bools give bools, arithmetic gives ints."""
    return a + b, a & b, a | b, a ^ b, -a, not a, a and b, a * 2.0


@program([(2.0,), (2.5,), (7,), (np.float64(3),)])
def number_methods(x):
    return x.real, x.imag, x.conjugate(), float(x).is_integer()


@program([(3, 2.0), (2**53, 1.0), (np.float64(1), 3)], ulp=2)
def int_and_float(n, x):
    return n + x, n * x, x - n, x / (n + 1), n**0.5


@program([(5,), (0,)])
def ranges(n):
    r = range(1, n, 2)
    return len(r), sum(r), 3 in r, r[0] if len(r) else -1


@program([(2, 3), (2.5, 2)], fell_back=None)
def identity_and_membership(a, b):
    return a in (1, 2, 3), b not in (a, 5), isinstance(a, int), isinstance(b, (float, int))


@program([(arr("f8", 5), 3), (arr("f8", 4), 0)])
def integer_index_arithmetic(x, k):
    n = len(x)
    return x[(k * 7 - 3) % n], x[-k % n], x[n // 2], x[n - 1 - k // 2]


@program([(arr("f8", 4), 1), (arr("f8", 4), -1)], opaque=None)
def word_chosen_by_a_condition(x, k):
    """One of two strings is an object, and may be equal to either."""
    mode = "fast" if k > 0 else "slow"
    if mode == "fast":
        return x * 2, mode != "slow"
    return x * 3, mode == "slow"


@program([(arr("f8", 3), np.float64(2), 1.0, 3), (arr("i4", 0), np.int8(2), 0, 2)], opaque=None, fell_back=None)
def compared_with_text_and_none(a, number, plain, k):
    text = f"{k}"
    return a == None, a != "x", number == None, number == "x", number != "x", plain == "x", text == "3", text != "3"  # noqa: E711


@program(
    [(arr("f8"),), raising(TypeError, arr("f8", 1)), raising(TypeError, arr("f8", 1, 1))], opaque=None, fell_back=None
)
def number_from_array(a):
    return float(a), int(a)


@program(
    [raising(TypeError, arr("i8", 3)), raising(TypeError, np.complex128(1.5j))],
    message=True,
    opaque=None,
    fell_back=None,
)
def round_of_what_cannot(a):
    c = round(a)
    a *= 2
    return c


@program([(0,), (1,), (-1,), (255,), (256,), (-(2**40) - 5,), (2**63 - 1,), (True,)])
def bits_of_ints(n):
    return n.bit_length(), n.bit_count(), (n * 0).bit_length()


@program([(3, 200, 13), (-3, 5, 7), (5, 0, 1), (2, 10, -7), (0, 0, 5), (True, 3, 4)])
def powers_with_a_modulus(a, b, m):
    return pow(a, b, m)


@program([(3, -1, 7), (10**9, 5, 10**12), raising(ValueError, 3, 2, 0), raising(ValueError, 2, -1, 4)], message=True)
def powers_with_a_modulus_for_python(a, b, m):
    return pow(a, b, m)


@program([(97,), (91,), (2,)])
def millers_test(n):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in (2, 3, 5, 7):
        if a >= n:
            continue
        x = pow(a, d, n)
        if x == 1 or x == n - 1:
            continue
        for _ in range(s - 1):
            x = pow(x, 2, n)
            if x == n - 1:
                break
        else:
            return False
    return True


@program(
    [(1.5 - 2j, np.float64(2.5)), (0j, np.float64(-0.0)), (2 + 0j, np.float64(2)), (1j, np.float32(3))], ulp=ELEMENTARY
)
def complex_beside_numpy(z, x):
    """To Python's complex numbers NumPy's float64 is the float that it is too; the other way round it is NumPy's."""
    return z + x, z - x, z * x, z == x, x + z, x * z, abs(z * x), z * np.float64(2) * x, z**x


@program([raising(ZeroDivisionError, 1j, np.float64(0)), (1j, np.float64(4)), (1j, np.float32(0))], fell_back=None)
def complex_divided_by_numpy(z, x):
    return z / x


@program([(10,), (-8,), (True,), (False,)])
def parts_of_ints(n):
    return n.conjugate(), n.real, n.imag, n.numerator, n.denominator


@program([(2**62, 5, 4), (-(2**63), 2**63 - 1, 63), (88172645463325252, -3, 17), (7, 0, 0)])
def masked(x, y, k):
    """Only low bits are wanted of what would not fit, in Python as here."""
    h = y
    for _ in range(9):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 7
        x ^= (x << 17) & 0x7FFFFFFFFFFFFFFF
        h = ((h ^ (x & 255)) * 0x100000001B3 - y) % 2**61
    return x, h, (x * y + (~x << k)) & 0xFFFF, (-x * 6364136223846793005) % 2**40, (x & y | x + y) & 31


_NEAR_HALVES = [2.675, 1.005, 0.125, -0.375, 0.5, -2.5, 1e300, 2.0**52 + 0.5, 2.0**45 + 0.005, 5e-324, -0.001]


@program([(list(_NEAR_HALVES),), ([-0.0, math.inf, math.nan],), ([k / 200 for k in range(-500, 500, 7)],)])
def rounded_to_digits(xs):
    """Decimal digits of the exact value, halves to even."""
    return [round(x, 2) for x in xs], [round(x, 0) + round(x, 15) for x in xs], round(xs[0], 22), round(len(xs), 1)


@program([(np.uint64(2**64 - 1),), (np.uint64(9),)], fell_back=None)
def large_unsigned_number(m):
    total = 0
    for i in range(m):
        total += i
        if i > 2:
            break
    return total, math.gcd(m, 6)


WHOLE = (2**53 + 1, 2**62 + 1, -(2**63), 2**63 - 1, -(2**53) - 1, 5, 0)


@program([(n, d) for n in WHOLE for d in (3, -7, 2**53 + 1, 2**61 + 1, -(2**63))])
def quotients_of_large_ints(n, d):
    n /= d
    return n, d / 3, d / 2**40, 1 / d


@program(
    [(2**53 + 1, 3, True), (2**53 + 1, 3, False), (5, 7, True), raising(ZeroDivisionError, 5, 0, True)], message=True
)
def quotients_of_ints_or_floats(n, d, k):
    m = n if k else 2.5
    return m / d, d / m, m // d, m % d
