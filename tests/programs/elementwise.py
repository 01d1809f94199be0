"""Elementwise chains: one fused kernel, exact to the bit, over every dtype and memory layout."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import ELEMENTARY, case, each, large, program

VECTORS = variants(arr("f8", 7), "f4 i8 i4 u1 b1 c16 f2", "reversed stepped inner readonly broadcast", "special")
SHORT = [arr("f8", 0), arr("f8", 1), arr("f4", 1, layout="reversed")]
MATRICES = [
    *variants(arr("f8", 3, 4), "f4 i4", "F reversed stepped transposed inner"),
    arr("f8", 0, 4),
    arr("f8", 3, 1),
]


@program(each(VECTORS + SHORT), kernels=1)
def double_and_add(x):
    return x * 2 + x


@program([(arr(a), arr(b)) for a, b in (("f8", "f8"), ("f4", "f8"), ("i4", "i8"), ("b1", "u1"))])
def zero_dimensional_chain(x, y):
    """0-d arrays give scalars, and no kernel."""
    return x * 2 + y, x + y, (x, y)


@program(
    [
        (2.5, arr("f8", 9), arr("f8", 9, seed=1)),
        (2.5, arr("f4", 9), arr("f4", 9, seed=1)),
        (3, arr("i8", 9), arr("i4", 9, seed=1)),
        (3, arr("i4", 9), arr("f4", 9, seed=1)),
        (True, arr("u1", 9), arr("u1", 9, seed=1)),
        (arr("f8"), arr("f8", 9, layout="reversed"), arr("f8", 9, layout="stepped")),
        (np.float64(1.5), arr("f4", 9), arr("f4", 9, seed=1)),
        large(2.5, arr("f8", 60_000), arr("f8", 60_000, seed=1)),
    ],
    kernels=1,
)
def axpy(a, x, y):
    return a * x + y


@program(each(VECTORS[:3] + MATRICES), kernels=1)
def polynomial(x):
    """No contraction of a product and a sum into one rounding is allowed."""
    return x * x * x - 2.0 * x * x + 3.0 * x - 1.0


@program(
    [
        (arr("f8", 6), arr("f8", 6, seed=1)),
        (arr("f4", 6), arr("f4", 6, seed=1)),
        (arr("i4", 6), arr("f4", 6, seed=1)),
        (arr("f8", 6, values="special"), arr("f8", 6, values="special", seed=1)),
        large(arr("f4", 70_001), arr("f4", 70_001, seed=1)),
    ],
    kernels=1,
)
def distance(x, y):
    return np.sqrt(x * x + y * y)


@program(
    [
        (arr("f8", 3), arr("f8", 4)),
        (arr("f4", 1), arr("f4", 5, layout="reversed")),
        (arr("f8", 0), arr("f8", 4)),
        (arr("i8", 3), arr("f4", 2)),
    ],
    kernels=1,
)
def outer_difference(x, y):
    return x[:, None] - y[None, :]


@program(
    [
        (arr("f8", 3, 4), arr("f8", 4)),
        (arr("f8", 3, 4), arr("f8", 3, 1)),
        (arr("f8", 3, 1), arr("f8", 1, 4)),
        (arr("f8", 2, 3, 4), arr("f8", 3, 1)),
        (arr("f8", 1, 1), arr("f8", 2, 3)),
        (arr("f8"), arr("f8", 3, 4)),
        (arr("f8", 0, 4), arr("f8", 1, 4)),
        (arr("f8", 1, 0), arr("f8", 3, 1)),
        (arr("f8", 3, 4, layout="F"), arr("f8", 3, 4)),
        (arr("f8", 3, 4, layout="F"), arr("f8", 3, 4, layout="F", seed=1)),
        (arr("f8", 3, 4, layout="F"), arr("f8", 4)),
    ],
    kernels=1,
)
def broadcast_sum(x, y):
    return x + y * 0.5


@program(
    [
        (arr(dtype, *shape), k)
        for dtype in ("i4", "i8", "u8", "f4", "f8")
        for shape, k in (((2, 1), 1), ((9, 1), 9), ((1, 9), 1), ((11, 13), 20))
    ],
)
def long_body_of_corners(x, k):
    """Whether a row of the corner is read again is known at run time, outside the loop over its elements."""
    y = x[:k, :k]
    z = x[:k]
    sums = x * y + x * x * x - y * y * 3 + (x + 1) * (y + 2) * (x - 3)
    return sums + np.maximum(x + y, z * 3) * 7 + np.minimum(x * 5, y - 2)


@program(
    [(arr("f8", 5), arr("f8", 5, seed=1)), (arr("f4", 0), arr("f4", 0)), (arr("f8", 2, 2), arr("f8", 2, seed=1))],
    kernels=1,
)
def two_results(x, y):
    """Two results over one index space are one kernel."""
    return x + y, x - y


@program(each(variants(arr("f8", 8, values="nonzero"), "f4 i4")), kernels=1)
def reused_temporary(x):
    shifted = x + 1.5
    squared = shifted * shifted
    return squared / (shifted - 0.5) + shifted


@program(each(variants(arr("f8", 6), "f4 i8 i4 u1 c16", "stepped", "special")), kernels=1, ulp=2)
def signs(x):
    return -x + np.abs(x) + (+x)


@program(each(variants(arr("f8", 6), "f4 i8 b1 u1 c16 f2", "", "special")), opaque=None)
def parts(x):
    return np.real(x), np.imag(x), np.conj(x), x.real


@program(each(variants(arr("f8", 3, 4, values="positive"), "f4", "F stepped")), kernels=1, ulp=ELEMENTARY * 4)
def damped_wave(x):
    return np.exp(-x) * np.cos(3 * x) / np.sqrt(1 + x)


@program(
    [
        (arr("f8", 12, values="positive"), 0.05, 0.2),
        (arr("f4", 12, values="positive"), np.float32(0.05), np.float32(0.2)),
        large(arr("f8", 50_000, values="positive"), 0.05, 0.2),
    ],
    ulp=32,
)
def log_return(s, rate, vol):
    d1 = (np.log(s + 4) + rate + 0.5 * vol**2) / vol
    return d1 - vol, np.exp(-rate) * 1.25


@program(
    [(arr("f8", 5), arr("f8", 5, seed=1)), (arr("f4", 2, 3), arr("f4", 3)), (arr("i8", 5), arr("i8", 5))], mutates=(0,)
)
def in_place_chain(x, y):
    x += y
    x *= 2
    x -= 1
    return None


@program(
    [(arr("f8", 5), arr("f8", 5)), (arr("f8", 3, 2, layout="F"), arr("f8", 3, 2)), (arr("f8", 0), arr("f8", 0))],
    mutates=(1,),
)
def into_argument(x, out):
    out[:] = x * x + 1


@program(each([*variants(arr("f8", 4), "f4 i8 b1"), arr("f8", 2, 3, layout="F"), arr("f8")]))
def ufunc_results_are_scalars_for_0d(x):
    """A ufunc of a 0-d array gives a NumPy scalar, not a 0-d array."""
    return np.add(x, x), x * 1


@program(
    [(arr("f8", 4), arr("f8", 4, seed=1)), (arr("i4", 4), arr("i4", 4, seed=1)), (arr("b1", 4), arr("b1", 4, seed=1))]
)
def ufunc_with_out(x, y):
    out = np.empty_like(x)
    same = np.add(x, y, out=out)
    np.multiply(out, y, out)
    return out, same is out


@program([(arr("f8", 5), arr("f8", 5, seed=1)), (arr("f4", 2, 2), arr("f4", 2))], mutates=(0,))
def ufunc_out_is_argument(x, y):
    np.subtract(x, y, out=x)
    return np.multiply(x, 3, out=x)


@program([case(arr("f8", 6), arr("f8", 6, seed=1), arr("b1", 6))], mutates=(0,))
def ufunc_where(x, y, mask):
    return np.add(x, y, out=x, where=mask)


@program([(arr("f8", 5),), (arr("f4", 5),), (arr("i8", 5),), (np.float32(2),), (3,), (2.0,)])
def scalar_and_array_mixture(x):
    one = x + 1
    return one * np.float64(2), one / 2


@program(
    [
        (arr("f8", 40, 3), arr("f8", 3)),
        large(arr("f8", 3000, 33), arr("f8", 33)),
        large(arr("f4", 400, 300, layout="F"), arr("f4", 300)),
    ]
)
def normalised_columns(table, weights):
    return (table - weights) / (1 + weights * weights)


@program([(arr("f8", 3, 4, layout="transposed"), arr("f8", 4, 3)), (arr("f4", 2, 2), arr("f4", 2, 2, layout="F"))])
def transposed_operand(x, y):
    return x + y.T * 2


@program(
    [(arr("c16", 5), arr("c16", 5, seed=1)), (arr("c8", 5), arr("c8", 5, seed=1)), (arr("f8", 5), arr("c16", 5))],
    ulp=ELEMENTARY,
)
def complex_arithmetic(z, c):
    return z * z + c, z * (1 + 2j), z / (c + 4), abs(z), z.conjugate() * c.real


@program([(arr("c16", 4),), (arr("c8", 4),), (arr("c16", 4, values="special"),)], opaque=None)
def complex_parts_written(z):
    w = z.copy()
    w.real = z.imag
    w.imag[1:] = 7
    return w, w == z, w != z


_ZEROS = [0.0, -0.0, 0.0, -0.0, 1.0, -1.0]
_OTHERS = [-0.0, 0.0, 0.0, -0.0, -0.0, 0.0]


@program([(arr(kind, 6, values=_ZEROS), arr(kind, 6, values=_OTHERS)) for kind in ("f8", "f4", "f2")])
def extrema_of_zeros(x, y):
    """The second of two zeros of both signs (in float16 the first), whichever of them is known."""
    lows = np.minimum(x, y), np.minimum(x, 0.0), np.minimum(-0.0, x), np.minimum(x, y[0])
    return *lows, np.maximum(y, x), np.maximum(0.0, x), np.maximum(x, -0.0), np.maximum(x[1], y)


@program([(arr(kind, 6, values=_ZEROS), arr(kind, 6, values=_OTHERS)) for kind in ("f8", "f4", "f2")])
def clipped_zeros(x, y):
    """Between scalars a zero stays as it is."""
    return np.clip(x, 0.0, 1.0), np.clip(x, -1.0, -0.0), x.clip(y[0], None), np.clip(x, y, y), x.clip(y[1], y[2])


@program([(arr(kind, 3), k) for kind, k in (("u1", 0), ("u1", -3), ("u1", 2), ("i1", -128), ("i1", 127), ("i8", 0))])
def clipped_between_an_int_and_a_zero(x, k):
    """A bound that has no effect on integers is left out, and the zero of the other one replaces one of its sign."""
    return np.clip(x, k, -0.0), x.clip(np.array([0.0, -0.0, 1.0]), max=k)


@program([(arr("f8", 4, values="special"), np.nan), (arr("f4", 4, values=[1.0, -0.0, np.nan, np.inf]), 2.0)])
def clipped_by_nan(x, bound):
    return np.clip(x, bound, 3.0), np.clip(x, -3.0, bound)


@program([(arr("u1", 4), arr("u1")), (arr("i2", 3, 4), arr("i2"))])
def narrow_elements_beside_an_array_of_one(x, y):
    return np.maximum(x, y), x + y[()] * 2


EXPONENTS = (2, -1, 0.5, 1, 0, 2.0, np.float64(0.5), np.float32(-1), np.int64(2), True)
POWERS = [(arr(kind, 9, values="special"), p) for kind in ("f8", "f4") for p in EXPONENTS]
LARGE_POWERS = [large(arr("f8", 1003), p) for p in EXPONENTS]


@program([*POWERS, *LARGE_POWERS, (arr("f8", values=[-0.0]), 0.5), (arr("f8", 3, 4, layout="F"), -1)], kernels=None)
def powers_by_one_exponent(x, p):
    """NumPy takes products and square roots for exponents that only the run tells, and only there."""
    y = x + 0
    y **= p
    return x**p, np.power(x.T, p), np.power(x, p, out=np.empty_like(x)), x ** np.asarray(p), y


@program([(arr(kind, 9, values="special"),) for kind in ("f8", "f4")])
def powers_by_one_known_exponent(x):
    roots = x**0.5, np.power(x, 0.5), x ** np.float64(0.5), x ** np.array(0.5), x ** np.array([0.5])
    inverse = x + 0
    inverse **= -1
    return roots, inverse, x**2, x**2.0, x**1, x**0


@program(
    [(arr("f2", 9, values="special"), p) for p in (2, -1, 0.5)] + [(arr("c16", 9), p) for p in (2, -1, 0.5)],
    ulp=ELEMENTARY,
)
def powers_by_the_operator(x, p):
    """The operator has shortcuts for half precision and complex numbers; the ufunc has none."""
    return x**p


@program(
    [(arr("f8", 3, 5), arr("f8", 3, 1, values=[2, 0.5, -1])), (arr("f4", 2, 4), arr("f4", 4, values=[2, 1]))],
    ulp=ELEMENTARY,
)
def powers_by_many_exponents(x, p):
    return abs(x) ** p


@program([(arr("f8", 4, 9, values="special"), (2.0, 0.5, -1, 1.5))], ulp=ELEMENTARY)
def powers_of_rows(x, exponents):
    out = np.empty_like(x)
    for i in range(4):
        out[i] = abs(x[i]) ** exponents[i]
    return out


PARTS = [0.0, -0.0, 1.0, -2.5, np.nan, np.inf, -np.inf]
EVERY_COMPLEX = [complex(real, imag) for real in PARTS for imag in PARTS]
BOUNDS = [
    (1 + 2j, 3 + 0j),
    (complex(-1, np.nan), 3 + 0j),
    (0j, complex(np.nan, 1)),
    (complex(np.inf, np.nan), 1j),
    (None, 3),
]


@program([(arr("c16", 49, values=EVERY_COMPLEX), low, high) for low, high in BOUNDS])
def clipped_complex(x, low, high):
    return np.clip(x, low, high)


POWERS = [
    1,
    2,
    3,
    4,
    -1,
    1000.0,
    2.5,
    -1.5,
    3 + 0j,
    complex(np.inf, np.nan),
    complex(np.inf, np.inf),
    complex(-np.inf, 1),
    0.5 + 2j,
]


@program([(arr("c16", 49, values=EVERY_COMPLEX), exponent) for exponent in POWERS])
def complex_powers_of_infinities(x, exponent):
    y = np.power(x, exponent)
    return np.isnan(y.real), np.isnan(y.imag), np.isinf(y.real), np.isinf(y.imag)


EXTREMES = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 4.0]
ENDS = {"f4": [1e-45, 1e-38, 2e-26, 1e-25, 3e38], "f8": [5e-324, 1e-308, 2e-206, 1e-205, 1.7e308]}


@program([(arr(kind, 13, values=EXTREMES + ends),) for kind, ends in ENDS.items()], ulp=ELEMENTARY)
def half_powers_of_extremes(x):
    return x**-1.5, x**1.5, x**-0.5, x**0.5, x[-4] ** -1.5
