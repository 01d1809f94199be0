"""Type promotion as NEP 50 has it: Python scalars are weak, NumPy scalars and arrays are not."""

import math

import numpy as np

from tests.arrays import arr
from tests.corpus import each, program, raising

ALL = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
NUMBERS = [arr(dtype, 5) for dtype in ALL]
NOT_BOOL = NUMBERS[1:]
INTEGERS = NUMBERS[1:9]
PAIRS = ["i8 u8", "i4 u4", "i1 u1", "u8 i1", "i2 f2", "i8 f4", "c8 f8", "b1 i1"]
SCALARS = [np.dtype(dtype).type(3) for dtype in ALL]


@program(each(NUMBERS + SCALARS + [3, 3.5, True]))
def plus_python_int(x):
    return x + 1, 1 + x, x * 2


@program(each(NUMBERS + SCALARS + [3, 3.5, True]))
def plus_python_float(x):
    return x + 1.5, 2.0 * x


@program(each(NUMBERS + SCALARS + [3, 3.5, True]), ulp=1)
def plus_python_complex(x):
    return x + 1j, x * 2j


@program(each(NUMBERS))
def plus_python_bool(x):
    return x + True, x * False


@program(each(NUMBERS))
def plus_numpy_float32(x):
    return x + np.float32(1.5), x * np.int8(2)


@program(each(NUMBERS))
def plus_numpy_float64(x):
    """A NumPy scalar is as strong as an array."""
    return x + np.float64(1.5)


@program([(arr(a, 5), arr(b, 5, seed=1)) for a, b in zip(ALL, ALL[3:] + ALL[:3], strict=True)])
def sum_of_different_dtypes(x, y):
    return x + y, x * y


@program([(arr(a, 4), arr(b, 4)) for a, b in map(str.split, PAIRS)])
def mixed_pairs(x, y):
    return x + y, np.maximum(x.real, y.real), x == y


@program(each(NUMBERS))
def true_division(x):
    """Integers and bools divide to a float: int8 by int8 to float16 in np.true_divide's table, int64 to float64."""
    return x / 2, x / x.dtype.type(1)


@program(each(INTEGERS))
def integer_floor_division(x):
    return x // 2, x % 3, divmod(x, 4)


@program(
    each(
        [
            arr("i1", 4, values=[127, -128, 100, -1]),
            arr("u1", 4, values=[255, 0, 128, 1]),
            arr("i4", 2, values=[2**31 - 1, 5]),
        ]
    )
)
def integers_wrap(x):
    return x + 1, x - 1, x * 3, -x


@program([(np.int64(2**40), np.int64(2**40)), (np.int32(2**20), np.int32(2**20)), (np.uint8(200), np.uint8(100))])
def numpy_scalars_wrap(a, b):
    return a * b, a + b


@program([raising(OverflowError, arr("i1", 3)), raising(OverflowError, arr("u1", 3))], fell_back=None)
def python_int_out_of_range(x):
    return x + 300


@program([raising(OverflowError, arr("u1", 3)), raising(OverflowError, arr("u8", 3))], fell_back=None)
def negative_python_int_with_unsigned(x):
    return x + -1


@program([(arr("u1", 4), 300), (arr("i1", 4), -200), (arr("u1", 4), -1), (arr("u8", 4), -1)])
def comparison_with_out_of_range_int(x, k):
    """Comparisons with a Python int are by value, whatever the dtype."""
    return x < k, x == k, x >= k


@program([(arr("i8", 3, values=[-1, 0, 2**62]), arr("u8", 3, values=[2**64 - 1, 0, 2**62]))])
def comparison_of_signed_with_unsigned(x, y):
    return x < y, x == y, x >= y


@program([(arr("b1", 6), arr("b1", 6, seed=1))])
def bools_add_as_or(x, y):
    return x + y, x * y, x | y, x ^ y


@program([raising(TypeError, arr("b1", 3), arr("b1", 3))], message=True, fell_back=None)
def bools_do_not_subtract(x, y):
    return x - y


@program([raising(TypeError, arr("b1", 3))], message=True, fell_back=None)
def bools_have_no_negative(x):
    return -x


@program(
    [
        (a, b)
        for a in (True, 7, 2.5, np.float32(2), np.int8(3), np.bool(True))
        for b in (False, 3, 1.5, np.float64(2), np.uint8(5))
    ]
)
def scalar_sums(a, b):
    return a + b, a * b


@program([(a, b) for a in (7, -7, np.int32(7), 7.5, np.float32(-7.5), True) for b in (2, -2, np.int64(2), 2.5)])
def scalar_divisions(a, b):
    return a / b, a // b, a % b


@program(
    [*each([100.5, -2.7, np.float64(300.5), np.float32(-2.5), 3])]
    + [raising(OverflowError, x) for x in (300.5, -200.5, 1e20, math.inf)]
    + [raising(ValueError, math.nan)],
    message=True,
)
def narrow_integer(x):
    """A float of Python's has to fit; one of NumPy's is cast."""
    return np.int8(x)


@program([(2.5,), (1.8e19,), (-0.5,), raising(OverflowError, -1.0), raising(OverflowError, 2e19)], message=True)
def unsigned_integer(x):
    return np.uint64(x)


@program(
    [(1 + 2j, np.float64(2.5)), (1 + 2j, np.float32(2.5)), (2j, np.int64(3)), (2j, 1.5), (1j, np.complex128(2))], ulp=4
)
def complex_beside(z, x):
    """float64 is a float of Python's for Python's complex numbers, if they stand on the left."""
    total = 0j
    for k in range(3):
        total += x * k
    return z + x, x + z, z - x, z * x, z / x, x / z, z**x, z == x, x != z, total


@program([raising(ZeroDivisionError, np.float64(0)), (np.float32(0),)])
def complex_over(x):
    return 1j / x


@program(each([7, 2.0, True, np.int8(5), np.float32(2), np.bool(True)]), ulp=1)
def scalar_powers(a):
    return a**2, a**3, a**0.5


@program([(2, 10), (2, -2), (-3, 3), (7, 0), (2.0, 3), (0, 0), (True, 5)], ulp=1)
def python_powers(a, b):
    """int ** negative int is a float."""
    return a**b


@program([raising(ValueError, arr("i8", 3), -1), raising(ValueError, np.int64(2), np.int64(-1))], message=True)
def integer_to_negative_power(x, k):
    return x**k


@program(each(NUMBERS))
def where_with_python_scalars(x):
    return np.where(x != 0, x, 0), np.where(x != 0, 1, 2), np.where(x != 0, 1.0, x)


@program(each(NUMBERS[:12]))
def extrema_with_python_scalars(x):
    return np.maximum(x, 1), np.minimum(x, 2.5), np.clip(x, 0, 1)


@program(each([arr("f4", 4), arr("i4", 4), arr("u1", 4)]))
def ufuncs_of_small_types(x):
    """float16 for 8-bit integers, float32 for 16-bit ones, float64 for the others."""
    return np.sqrt(x).dtype == np.float64, np.floor(x), np.true_divide(x, x.dtype.type(3))


@program(each(NUMBERS), ulp=4)
def sine_of_every_dtype(x):
    return np.sin(x)


@program(
    [
        (arr("i4", 3), arr("f8", 3)),
        (arr("f4", 3), arr("f8", 3)),
        (arr("u1", 3), arr("i4", 3)),
        (arr("f8", 3), arr("i8", 3)),
    ]
)
def conversions(x, y):
    return x.astype(y.dtype), y.astype(x.dtype), x.astype(np.float32), y.astype(int), x.astype(bool), y.astype("u1")


@program(each([arr("f8", 6, values=[1.9, -1.9, 0.0, -0.0, 255.0, 2.5]), arr("f4", 3), arr("i8", 3)]))
def float_to_integer(x):
    return x.astype(np.int64), x.astype(np.int32), x.astype(np.int8)


@program(
    [
        (arr("f8", 3), arr("f4", 3)),
        (arr("i8", 3), arr("i4", 3)),
        (arr("i4", 3), arr("b1", 3)),
        (arr("c16", 3), arr("f8", 3)),
    ],
    mutates=(0,),
)
def in_place_keeps_dtype(x, y):
    x += y
    x *= 2
    return x


@program(
    [
        raising(np._core._exceptions._UFuncOutputCastingError, arr("i8", 3), arr("f8", 3)),
        raising(np._core._exceptions._UFuncOutputCastingError, arr("u1", 3), arr("i8", 3)),
    ],
    message=True,
    fell_back=None,
)
def in_place_refuses_unsafe_cast(x, y):
    x += y


@program([(arr("f4", 3), 1.1), (arr("i4", 3), 7), (arr("f4", 3), np.float64(1.1)), (arr("u1", 3), 2)], mutates=(0,))
def in_place_with_scalar(x, a):
    x += 1 if x.dtype == np.uint8 else a
    return x


@program(
    [
        (arr("i8", 4), 2.9),
        (arr("f4", 4), 1e-3),
        (arr("i4", 4), True),
        (arr("b1", 4), 5),
        (arr("i8", 4), np.float64(-2.9)),
        (arr("c16", 4), 3),
    ],
    mutates=(0,),
)
def stored_scalar_is_cast(x, a):
    x[1] = a
    x[2:] = a


@program(
    [
        (arr("f4", 4), arr("f8", 4)),
        (arr("i8", 4), arr("f8", 4)),
        (arr("u1", 4), arr("i8", 4)),
        (arr("b1", 4), arr("f8", 4)),
    ],
    mutates=(0,),
)
def stored_array_is_cast(x, y):
    x[:] = y * 10


@program(
    [(np.float32(1.25), 2), (np.int8(100), 100), (np.float64(0.5), np.float32(3)), (np.uint8(3), 2.5), (np.int64(3), 4)]
)
def scalar_results(a, b):
    """Python scalar, NumPy scalar: the result type says which."""
    return a + 0, b * a, a < b, -a if a.dtype.kind != "u" else a, abs(a)


@program([(3, 4), (3.0, 4), (True, 2), (np.float64(3), 4), (np.int32(3), np.int32(4))])
def result_of_one_branch_type(a, b):
    return (a + b) * 2 - b, a == b, not a


@program([(arr("b1", 3), 2), (arr("b1", 3), 3), (arr("b1", 0), 1), (arr("b1"), 2)])
def powers_of_bools(x, n):
    """Squares are int8, other powers int64."""
    return x**2, x**3, np.power(x, 2), x**n, x**2.0


MIXED = [(np.array([1, -2, 3], dtype),) for dtype in ("f4", "i1", "f8", "i8")]


@program(MIXED)
def array_of_items_of_several_types(x):
    """NumPy takes the common type of the items that there are."""
    some = [0.0 if v < 0 else v for v in x]
    kept = np.array([(0 if v < 0 else v) for v in x if v != 3])
    return np.array(some), kept, np.array([[0.0 if v < 0 else v for v in x] for _ in range(2)]), some


@program(MIXED)
def array_of_a_grown_list_of_several_types(x):
    values = [1.0]
    for v in x:
        values.append(v * 2)
    return np.array(values)


@program([(x, c) for (x,) in MIXED for c in (1, 0)])
def array_of_a_number_of_several_types(x, c):
    first = x[0] if c else 0.1
    return np.array([first, x[1]]), np.array([first, 2.5])


@program([(arr("f8", 5),), (arr("f4", 1),), (arr("i4", 3),), (arr("f8", 0),)])
def handed_on_to_the_next_iteration(x):
    """The last item but one is the Python float until the loop has run twice."""
    last = before = 0.0
    for v in x:
        before, last = last, v
    return before, last


@program([(arr("f8", 5), [1.0, 2.0], 8.0), (arr("f8", 0), [1.0], 8.0)], regrouped=16, fell_back=None, opaque=None)
def goertzel(samples, frequencies, rate):
    """A recurrence of two values that trade places."""
    power = {}
    for frequency in frequencies:
        factor = 2 * np.cos(2 * np.pi * int(0.5 + len(samples) * frequency / rate) / max(len(samples), 1))
        last = before = 0.0
        for v in samples:
            before, last = last, v + factor * last - before
        power[frequency] = last * last + before * before - factor * last * before
    return power


@program(
    [
        (a, b)
        for a in (np.complex64(complex(np.inf, np.nan)), np.complex128(complex(-1.5, np.nan)), np.complex64(2.5))
        for b in (1, 2.5, np.float32(2.5), np.int64(-2), np.complex128(complex(np.nan, 1)), 2.5 + 1j)
    ]
)
def order_of_complex_scalars(a, b):
    return a < b, a <= b, a > b, b >= a, min(a, b), max(b, a)


@program([(np.array([200, 3], "u1"), k, j) for k in (1, 0, 2) for j in (0, 1) if k != 2 or j == 0], opaque=None)
def powers_of_two_beyond_float16(x, k, j):
    m = np.uint64(2**63) if k == 0 else 2**62 if k == 1 else x[1]
    n = np.float16(3) if j == 0 else 300
    return m % n


@program(
    [
        (np.True_, np.complex64(complex(-1.5, np.nan))),
        (np.False_, np.complex128(complex(0, np.nan))),
        (True, np.complex64(complex(-1.5, np.nan))),
        (np.complex64(complex(-1.5, np.nan)), np.True_),
        (np.float32(1), np.complex64(complex(1, np.nan))),
    ]
)
def order_of_complex_scalars_with_nan(a, b):
    return a > b, a >= b, a < b, max(a, b), min(a, b)


BETWEEN = 2**60 + 2**36 + 1  # a float64 of it lies halfway between two float32


@program([(arr("f4", 2, values=[1, 2]), n, [n, -n]) for n in (BETWEEN, -BETWEEN)], mutates=(0,))
def ints_that_are_rounded_twice(x, n, numbers):
    """NumPy asks Python's ints for a float; an int64 array is converted at once."""
    made = (
        x * n,
        n - x,
        np.full(2, n, "f4"),
        np.array([n, 1], "c8"),
        np.float32(n),
        np.maximum(x, n),
        np.array(numbers, "f4"),
    )
    once = np.where(x > 0, n, x), np.choose([1, 0], [n, x[0]]), np.select([x < 2], [n], x), np.array([n]).astype("f4")
    x[0] = n
    x[1:] = [n]
    y = x.copy()
    y[:] = numbers
    np.put(x, 1, numbers)
    return made, once, y


@program([(arr("f4", 3, values=[1, 2, 3]), n) for n in (BETWEEN, 7)], mutates=(0,))
def ints_of_a_loop_are_rounded_twice(x, n):
    for i in range(n, n + 3):
        x[i - n] = i
    return np.array([k + n for k in range(2)], "f4")
