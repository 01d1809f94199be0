"""Reductions: with and without axis, keepdims and dtype; empty, NaN, ties; fused with what produces their input."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import case, each, large, program, raising

VECTORS = [
    *variants(arr("f8", 9), "f4 i8 i4 u1 b1 c16 f2", "reversed stepped readonly"),
    arr("f8"),
    arr("f8", 0),
    arr("f8", 1),
]
REAL_VECTORS = [*variants(arr("f8", 9), "f4 i8 i4 u1 b1", "reversed stepped", "special"), arr("f8"), arr("f8", 1)]
MATRICES = [*variants(arr("f8", 3, 5), "f4 i4 b1", "F stepped transposed"), arr("f8", 3, 0), arr("f8", 1, 4)]
CUBES = variants(arr("f8", 2, 3, 4), "f4 i8", "F stepped")


@program(
    each([*VECTORS, arr("f8", 300), arr("f4", 1000), large(arr("f8", 300_001)), large(arr("f4", 200_000))][:14]),
    regrouped=8,
)
def total(x):
    return np.sum(x), x.sum()


LONG = [
    *variants(arr("f8", 3, 700), "f4 f2 i8 u1 b1", "F stepped reversed", "special ascending"),
    arr("f8", 3, 700, values=[0.0] * 650 + [float("nan"), -1.0, float("nan"), float("inf")]),
    arr("f8", 2, 600, values=[float("-inf")]),
    arr("f4", 3, 50, values=[float("-inf"), 3e38, 3e38, float("inf"), 2.0]),
    arr("b1", 2, 600, values=[False] * 599 + [True]),
    arr("i8", 2, 5000, values=[7, 7, -9, 9, 9]),
]


@program(each(LONG))
def places_of_extrema_in_long_rows(x):
    return np.argmax(x, axis=1), np.argmin(x, axis=1), np.argmax(x), np.argmin(x), np.argmin(x, axis=0)


@program(each([recipe for recipe in LONG if recipe.values != "special"]))
def extrema_of_long_rows(x):
    return np.max(x, axis=1), np.min(x, axis=1), np.fmax.reduce(x, axis=1), np.fmin.reduce(x, axis=None), x.max()


@program(
    [
        large(arr("f8", 300_001)),
        large(arr("f4", 100_000, values=[1.0, 2.0, -3.0, float("nan"), 5.0])),
        large(arr("i4", 99_999)),
        large(arr("b1", 99_999, values=[False])),
    ]
)
def large_extrema(x):
    return np.max(x), np.min(x), np.argmax(x), np.argmin(x), np.fmin.reduce(x)


@program(
    [
        large(arr("f8", 300_001)),
        large(arr("f4", 200_000)),
        large(arr("f4", 300_000, layout="stepped")),
        large(arr("i4", 99_999)),
    ],
    regrouped=8,
)
def large_total(x):
    return np.sum(x), np.sum(x * x), x.max()


@program(each([v for v in VECTORS if v.dtype != "f2"]), regrouped=8)
def product(x):
    return np.prod(x), x.prod()


@program(each(REAL_VECTORS + CUBES))
def extremes(x):
    return np.min(x), np.max(x), x.min(), x.max(), np.amax(x)


@program(each(REAL_VECTORS + CUBES[:2]))
def positions_of_extremes(x):
    """The first one of equals; the first NaN."""
    return np.argmin(x), np.argmax(x), x.argmax()


POINTS = [
    *map(large, variants(arr("f8", 70, 3), "f4 i4", "F reversed", "special")),
    arr("f8", 5, 130),
    large(arr("f4", 131, 9)),
    large(arr("f8", 66, 2, values=[1.0, 2.0, 1.0, 0.0, -0.0])),
    large(arr("f8", 65, 1, values=[1.0] * 64 + [float("nan")])),
    arr("f8", 9, 3, values="special"),
    arr("f8", 1, 4),
    arr("f8", 3, 0),
]


SHORT = [
    *variants(arr("f8", 70, 5), "f4 f2 i8 i4 u1 i2 b1", "F reversed stepped", "special"),
    arr("f8", 3, 21, 7, values=[3, 1, 1, 2]),
    arr("f4", 1, 2, values="special"),
    arr("c16", 20, 4),
    arr("f8", 7, 3),
]


@program(each(SHORT))
def places_of_extrema_in_short_rows(x):
    """The first of equals, the first NaN, for several rows side by side."""
    return np.argmin(x, axis=-1), np.argmax(x, axis=-1), np.argmax(x, axis=0)


@program(each(POINTS), kernels=1)
def nearest_other_point(x):
    """Keys that are sums: those of a block are computed before they are compared."""
    return np.argmin(np.sum((x[:, None, :] - x[None, :, :] - 1) ** 2, axis=2), axis=1)


@program(each(POINTS))
def farthest_points(x):
    far = np.argmax(np.sum(np.abs(x[:, None, :] - x[None, :, :]), axis=2), axis=0)
    return far, np.argmin(np.max(x + 1, axis=1, initial=0)), np.argmax(np.any(x > 1, axis=1))


@program(each([arr("f8", 6, values=[3, 1, 1, 3, 2, 1]), arr("b1", 5), arr("i4", 4, values=[7])]))
def first_of_equals(x):
    return x.argmin(), x.argmax()


@program(each([*VECTORS[:8], arr("f8", 3, 4), arr("f4", 100), arr("i4", 2, 3)]), regrouped=8)
def averages(x):
    """The mean of integers is float64, of float32 float32, of float16 float16 summed in float32."""
    return np.mean(x), x.mean()


@program(each([v for v in VECTORS[:7] if v.dtype != "c16"] + [arr("f8", 3, 4), arr("f4", 100)]), regrouped=16)
def spreads(x):
    return np.var(x), np.std(x), x.var(), x.std()


@program(each([arr("f8", 8), arr("f8", 4, 3)]), regrouped=16)
def sample_variance(x):
    return np.var(x, ddof=1), np.std(x, ddof=1), x.std(axis=0, ddof=1)


@program(each(REAL_VECTORS))
def range_of_values(x):
    return np.ptp(x) if x.dtype != bool else 0


@program(each([*VECTORS[:9], arr("b1", 0), arr("f8", 3, values=[0.0, -0.0, 0.0]), arr("f8", 2, values=[np.nan])]))
def truth(x):
    return np.all(x), np.any(x), x.all(), x.any(), np.count_nonzero(x)


@program(each(MATRICES), regrouped=8)
def sums_by_axis(x):
    return np.sum(x, axis=0), np.sum(x, axis=1), np.sum(x, axis=-1), x.sum(0)


@program(each(MATRICES[:7]), regrouped=8)
def sums_kept(x):
    return np.sum(x, axis=1, keepdims=True), x.sum(axis=0, keepdims=True), x.sum(keepdims=True)


@program(each(CUBES), regrouped=8)
def sums_over_two_axes(x):
    return np.sum(x, axis=(0, 2)), np.sum(x, axis=(-1, 1)), x.sum(axis=(0, 1, 2)), x.sum(axis=())


@program(each(CUBES))
def extremes_by_axis(x):
    return np.max(x, axis=0), np.min(x, axis=-1), x.max(axis=(1, 2)), x.min(axis=1, keepdims=True)


@program(each([*CUBES, arr("f8", 3, 4, values="special"), arr("b1", 2, 3)]))
def positions_by_axis(x):
    return np.argmax(x, axis=0), np.argmin(x, axis=-1), x.argmin(axis=1)


@program(each(CUBES), regrouped=8)
def means_by_axis(x):
    return np.mean(x, axis=0), np.mean(x, axis=(1, 2), keepdims=True), x.mean(axis=-1)


@program(each(CUBES[:4]), regrouped=16)
def spreads_by_axis(x):
    return np.std(x, axis=0), np.var(x, axis=(0, 1)), x.std(axis=-1, keepdims=True)


@program(each([arr("b1", 3, 4), arr("f8", 3, 4), arr("i4", 0, 4)]))
def truth_by_axis(x):
    return np.all(x, axis=0), np.any(x, axis=1), np.count_nonzero(x, axis=0), x.all(axis=1, keepdims=True)


@program(each([arr("f4", 50), arr("i4", 50), arr("u1", 50, values=[255]), arr("b1", 9), arr("i1", 9)]), regrouped=8)
def sums_with_dtype(x):
    """Small integers are summed in int64 or uint64 unless a dtype is given."""
    return x.sum(dtype=np.float64), np.sum(x, dtype=np.int32), x.sum(), np.prod(x[:3], dtype="f4"), x.mean(dtype="f8")


@program(each([arr("i8", 3, values=[2**62]), arr("u1", 300, values=[255])]))
def integer_sums_wrap(x):
    return x.sum(), np.prod(x[:2])


@program(each([arr("f8", 0), arr("i4", 0), arr("f8", 0, 3)]))
def empty_sums(x):
    return x.sum(), x.prod(), x.all(), x.any(), x.sum(axis=0)


@program([raising(ValueError, arr("f8", 0)), raising(ValueError, arr("i4", 2, 0))], message=True)
def maximum_of_nothing(x):
    return x.max()


@program([raising(ValueError, arr("f8", 0)), raising(ValueError, arr("f8", 0, 3))], message=True)
def position_in_nothing(x):
    return np.argmin(x)


@program(
    [raising(np.exceptions.AxisError, arr("f8", 3)), raising(np.exceptions.AxisError, arr("f8"))],
    message=True,
    fell_back=None,
)
def axis_out_of_range(x):
    return np.sum(x, axis=1)


@program(each([arr("f8", 0), arr("f4", 0)]))
def mean_of_nothing(x):
    return np.mean(x)


@program(
    [
        (arr("f8", 9), arr("f8", 9, seed=1)),
        (arr("f4", 9), arr("f4", 9, seed=1)),
        (arr("i4", 9), arr("i4", 9, seed=1)),
        (arr("f8", 0), arr("f8", 0)),
        large(arr("f8", 100_000), arr("f8", 100_000, seed=1)),
    ],
    kernels=1,
    regrouped=16,
)
def sum_of_squared_differences(x, y):
    return np.sum((x - y) ** 2)


@program(each([arr("f8", 9), arr("f4", 9), arr("i4", 9), large(arr("f8", 100_000))][:3]), kernels=1, regrouped=16)
def two_sums_in_one_pass(x):
    """Two reductions over one index space are one kernel."""
    return np.sum(x), np.sum(x * x)


@program([(arr("f8", 9), 0.5), (arr("f4", 9), 1), (arr("f8", 9, values="special"), 0.0)], regrouped=8)
def masked_sum(x, limit):
    return np.sum(x[x > limit]), np.sum(np.where(x > limit, x, 0))


@program(
    each([arr("f8", 12, values="positive"), arr("f4", 12, values="positive"), arr("f8", 3, 4, values="positive")]),
    ulp=32,
)
def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@program(each([arr("f8", 3, 4), arr("f4", 3, 4), arr("f4", 2, 3, 4), arr("f8", 3, 4, layout="F")]), ulp=32)
def softmax_of_rows(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


ROWS = each([arr("f8", 5, 20), arr("f4", 2, 3, 40), arr("f8", 20, 3, layout="F"), arr("f4", 0, 20)])


@program(ROWS, ulp=64)
def weights_of_long_rows(x):
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - top)
    return e, e / e.sum(axis=-1, keepdims=True), top[..., 0]


@program(ROWS, regrouped=64)
def centred_long_rows(x):
    y = x - x.mean(axis=-1, keepdims=True)
    return y * (y * y).sum(axis=-1, keepdims=True), y.argmax(axis=-1)


@program(each([arr("i8", 5, 20), arr("i4", 20, 20)]), mutates=(0,))
def rows_that_change_amid(x):
    top = x.max(axis=1)
    x[0, 1] = 1000
    left = top - x.sum(axis=1)
    return (x - top[:, None]).sum(axis=1), x * left[:, None], top[::-1] + left


@program(
    each([arr("f8", 9, values="positive"), arr("f4", 9, values="positive"), arr("f8", 2, 5, values="positive")]),
    regrouped=16,
)
def standardise(x):
    return (x - x.mean()) / (x.std() + 1)


@program(
    [
        (arr("f8", 7, 3), arr("f8", 4, 3, seed=1)),
        (arr("f4", 7, 2), arr("f4", 3, 2, seed=1)),
        large(arr("f8", 3000, 3), arr("f8", 8, 3, seed=1)),
    ]
)
def nearest_centre(points, centres):
    """k-means' assignment: no matrix of distances is needed."""
    return np.argmin(np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2), axis=1)


@program(
    [(arr("f8", 6), arr("f8", 6, seed=1)), (arr("f4", 6), arr("f4", 6, seed=1)), (arr("i8", 6), arr("i8", 6, seed=1))],
    regrouped=16,
)
def correlation(x, y):
    dx, dy = x - np.mean(x), y - np.mean(y)
    return np.sum(dx * dy) / np.sqrt(np.sum(dx * dx) * np.sum(dy * dy))


@program(each([arr("f8", 6), arr("f8", 3, 4), arr("f4", 5), arr("i4", 5), arr("f8", 0)]), regrouped=16)
def norms(x):
    return np.linalg.norm(x), np.sqrt(np.sum(np.abs(x) ** 2))


@program(each([arr("f8", 3, 4), arr("f4", 3, 4)]), regrouped=16)
def norms_by_axis(x):
    return np.linalg.norm(x, axis=1), np.linalg.norm(x, axis=0, keepdims=True)


@program(
    each([arr("f8", 8, values="special"), arr("f8", 6), arr("f4", 3, 4, values="special"), arr("i4", 5)]),
    regrouped=8,
    opaque=None,
)
def ignoring_nan(x):
    return np.nansum(x[x < 10]), np.nanmax(x), np.nanmin(x)


@program(each([arr("f8", 7), arr("i4", 7), arr("f8", 3, 4), arr("b1", 5)]), regrouped=8)
def ufunc_reduce(x):
    return np.add.reduce(x), np.maximum.reduce(x), np.logical_and.reduce(x)


@program([case(arr("f8", 3, 4), arr("f8", 3)), case(arr("f4", 3, 4), arr("f4", 3))], regrouped=8, mutates=(1,))
def sum_with_out(x, out):
    np.sum(x, axis=1, out=out)
    return np.max(x, axis=1, out=out) is out


@program([(arr("f8", 6), arr("b1", 6)), (arr("i4", 6), arr("b1", 6))], regrouped=8)
def sum_where(x, mask):
    return np.sum(x, where=mask, initial=10), np.max(x, initial=0)


@program(
    [(arr("c16", 6), complex(np.nan, 2)), (arr("c8", 6), 1j), (np.array([1, complex(0, np.nan)]), complex(np.nan, 1))]
)
def first_of_complex_nans(x, start):
    """The NaN that comes first stays, and what a reduction begins with comes first."""
    return np.max(x, initial=start), np.min(x, initial=start), np.max(x, initial=start + 1)


@program(
    [
        (arr("f8", 3, 0), 0),
        (arr("f8", 0, 3, 0), (1,)),
        raising(ValueError, arr("f8", 0, 0), 0),
        raising(ValueError, arr("i4", 0, 3, 0), (0,)),
        raising(ValueError, arr("b1", 0, 3, 0), (1, 2)),
    ],
    message=True,
)
def extrema_of_nothing(x, axis):
    """No elements along the reduced axes are an error, whether or not there are results."""
    return np.min(x, axis=axis), x.max(axis)


@program([(arr("f8", 3, 4),), raising(ZeroDivisionError, arr("f8", 2, 0))], message=True, regrouped=8)
def average_of_no_columns(x):
    return np.average(x, axis=0)


@program(
    [
        (arr("f2", 4, values=[300.0, 1.0, 2.0, 300.0]),),
        (arr("f2", 2, values=[60000.0, 60000.0]),),
        (arr("f2", 3, values=[1.0, 2.0, 4.0]),),
        (arr("f2", 3, 4),),
    ],
    regrouped=8,
)
def spread_of_half_floats(x):
    """Variances are computed in float16, and their squares may be too large for it; means are not."""
    return x.std(), np.var(x, axis=0), np.mean(x, dtype=np.float32), x.var(dtype=np.float32)


@program(
    [
        (arr("f8", 3), arr("b1", 3)),
        (arr("f8", 2, 3), arr("b1", 3)),
        (arr("f8", 2, 3), arr("b1", 2, 1)),
        raising(ValueError, arr("f8", 3), arr("b1", 2, 3)),
        raising(ValueError, arr("f8", 3), arr("b1", 4)),
        raising(ValueError, arr("f8", 1, 3), arr("b1", 2, 3)),
        raising(TypeError, arr("f8", 3), arr("i8", 3)),
    ],
    fell_back=None,
    opaque=None,
)
def sum_under_mask(x, mask):
    return np.sum(x, where=mask)


@program([(np.float32(2), arr("f4"), arr("i8")), (np.float32(0), arr("f4"), arr("i8"))], mutates=(1, 2), opaque=None)
def scalar_into_an_array(s, out, place):
    """NumPy's scalars have methods of their own, which give scalars even where `out` is filled; ufuncs do not."""
    found = np.sum(s, out=out), np.max(s, axis=0, out=out), np.mean(s, out=out), np.round(s, out=out)
    return found, np.argmin(s, out=place), np.clip(s, 1, 3, out=out), np.add.reduce(s, out=out)


@program([(arr("u8", 1, 2, layout="reversed"),), (arr("f8", 3, 2),)], regrouped=4)
def one_of_several_minima(a):
    lowest = np.min(a, axis=0, keepdims=True)
    return np.trace(lowest, -1, 1, 0)


@program([(arr("f4"), 2), (arr("i8"), 0), (arr("f8"), 0)])
def sum_where_a_number_is(a, k):
    return np.sum(a, axis=-1, initial=k, where=a > 0), np.sum(a[()], where=a > k), (a > 0) is True, k is a[()]


NAN = float("nan")
COMPLEX_NANS = arr("c16", 3, values=[complex(2.5, -0.0), complex(-0.0, -1.5), complex(-1.5, NAN)])


@program(
    [
        (COMPLEX_NANS, complex(NAN, NAN)),
        (COMPLEX_NANS, complex(1.0, NAN)),
        (arr("c16", 0), complex(NAN, 2.0)),
        (COMPLEX_NANS, 1j),
        (arr("c16", 2, values=[complex(NAN, 1.0), complex(NAN, NAN)]), complex(-2.0, NAN)),
    ]
)
def first_of_several_complex_nans(x, start):
    return np.max(x, initial=start), np.stack((x, -x)).min(0, initial=start), (-x).min(initial=start)


INFINITE = complex(float("-inf"), 1.0)


@program(
    [(arr("c16", 1, values=[INFINITE]), 2 - 1j), (arr("c16", 0), INFINITE), (arr("c16", 2, values=[3 - 2j, 1j]), 1.5)]
)
def complex_products_from_a_number_on(x, start):
    return np.prod(x, initial=start), np.stack((x, x * x)).prod(0, initial=start), x.prod(initial=start)


@program([(COMPLEX_NANS,), (arr("c16", 2, values=[complex(NAN, 1.0), INFINITE]),)], opaque=None)
def complex_numbers_that_are_none(x):
    """Of nothing but NaNs the first is the largest number that is there; a product leaves out what a mask does."""
    return np.fmax.reduce(x[-1:]), np.fmin.accumulate(x), np.fmin.reduce(x[:1]), np.prod(x, where=x.real < 0)


def _complex_rows(kind):
    rng = np.random.default_rng(5)
    z = np.round(rng.random((4, 300)) * 3) + 1j * np.round(rng.random((4, 300)) * 4)  # many are equal
    match kind:
        case "rising":
            z = np.sort(z, axis=1)
        case "falling":
            z = -np.sort(-z, axis=1)
        case "not numbers":
            z[1, 7], z[2, 200:202], z[3, 0] = complex(np.nan, 1), (complex(9, np.nan), np.nan), complex(0, np.nan)
    return z


@program([(_complex_rows(kind),) for kind in ("equal", "rising", "falling", "not numbers")] + [(arr("c8", 3, 5),)])
def complex_extrema(z):
    """In order, by a branch that is seldom taken, or always."""
    running = np.maximum.accumulate(z, axis=1), np.minimum.accumulate(z, axis=0)
    return np.max(z, axis=1), np.min(z, axis=1), z.argmax(axis=1), z.argmin(axis=0), np.max(z), z.argmin(), running


@program(
    [(arr("f8", 4, 3), np.bool_), raising(TypeError, arr("f8", 4, 3), np.zeros(3, bool))], opaque=None, fell_back=None
)
def dtype_behind_the_axis(x, kind):
    """The methods take a dtype there, where the functions take the array for the result."""
    return x.all(0, kind), x.any(0, kind, None, True)


def _turned(*axes):
    """A cube of float32 whose sums depend on the order in which they are taken."""
    cube = np.random.default_rng(7).standard_normal((33, 33, 33)).astype("f4") * 1e6
    return cube.transpose(axes)


@program(
    [(_turned(*axes),) for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1))] + [(_turned(1, 2, 0)[::-1, ::2],)],
    regrouped=64,
)
def sums_of_diagonals(x):
    """NumPy takes the axes in the order of their steps, and a diagonal has the longer step of two axes."""
    return np.trace(x), np.diagonal(x, 1, 0, 2).sum(-1), np.diagonal(x, -2, 2, 1).mean(0)


@program(
    [(_turned(0, 1, 2),), (_turned(2, 1, 0),), (_turned(1, 0, 2)[:, ::2],), (_turned(0, 1, 2).astype("c16"),)],
    regrouped=64,
)
def sums_of_segments(x):
    """Each begins with its first element, to which the sum of the others is added."""
    places = [0, 3, 20, 7]
    return np.add.reduceat(x[0, 0], places[:2]), np.add.reduceat(x, places[1:], 2), np.add.reduceat(x, places[:3], 0)


@program(
    [(arr(kind, 300),) for kind in ("f2", "f4", "f8")]
    + [(np.full(40, -0.0, kind),) for kind in ("f2", "f4", "f8", "c16")]
    + [(arr("f2", 300, layout="reversed"),), (arr("f2", 3, 140),), (arr("i4", 30),)],
    regrouped=8,
)
def segments_to_the_bit(x):
    sums = np.add.reduceat(x, [0, 3, 5], axis=-1)
    return sums, np.signbit(sums.real)


@program([(arr("f8", 5), arr("f8", 5)), raising(ValueError, arr("f8", 5), arr("f8", 4))], mutates=(0,))
def ranges_before_and_after_a_store(x, y):
    """What is computed twice is computed once only while nothing is stored."""
    first = x.max() - x.min()
    both = x + y
    again = x.max() - x.min()
    x[2] = 100.0
    return first, again, x.max() - x.min(), both
