"""Arrays made from nothing or from lists: dtypes, orders and values of the creation functions."""

import itertools

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, each, program, raising

LIKES = [
    arr("f8", 4),
    arr("i4", 2, 3),
    arr("f4", 2, 3, layout="F"),
    arr("u1", 0),
    arr("c16", 2),
    arr("b1", 2),
    arr("f8", 4, layout="reversed"),
    arr("f8"),
]


@program([(0,), (3,), (np.int32(4),)])
def zeros_and_ones(n):
    return np.zeros(n), np.ones(n), np.zeros((n, 2)), np.ones((2, n), dtype=np.int32)


@program([(2, 3), (0, 2)])
def zeros_of_dtypes(n, m):
    return np.zeros((n, m), np.float32), np.zeros([n, m], dtype=complex), np.ones(n, bool), np.zeros((n, m), order="F")


@program([(3, 2.5), (3, 7), (2, True), (2, np.float32(1)), (0, 1), (2, 1j)])
def full_arrays(n, value):
    return np.full(n, value), np.full((n, 2), value, dtype=complex), np.full((2, n), value, order="F")


@program([(3, 1.5), (2, -7.9)])
def full_casts_to_dtype(n, value):
    return np.full(n, value, dtype=int), np.full(n, value, dtype=bool)


@program(each(LIKES))
def likes(x):
    return np.zeros_like(x), np.ones_like(x), np.full_like(x, 3), np.zeros_like(x, dtype="f4")


@program(each(LIKES))
def empties_filled(x):
    a, b = np.empty_like(x), np.empty(x.shape, x.dtype)
    a[...] = x
    b.fill(1)
    return a, b


@program([(2, 3), (0, 1)])
def empty_then_written(n, m):
    a = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            a[i, j] = i - j
    return a


@program([(5,), (0,), (-3,), (2.5,), (np.int32(4),), (np.float32(3),)])
def ranges_to(n):
    return np.arange(n)


@program([(2, 9), (2, 2), (9, 2), (0.5, 3), (-2, 3.5)])
def ranges_between(a, b):
    return np.arange(a, b), np.arange(a, b, dtype=np.float32)


@program([(0, 10, 3), (10, 0, -3), (0.0, 1.0, 0.1), (1, 2, 0.25), (5, 5, 1), (0, -5, 2)])
def ranges_with_steps(a, b, step):
    return np.arange(a, b, step)


@program([(np.float16(v), 4) for v in (float("inf"), float("-inf"), float("nan"), 1.5)], opaque=None)
def ranges_of_half_precision(a, b):
    try:
        return np.arange(a, b)
    except ValueError as error:
        return str(error)


@program([raising(ZeroDivisionError, 0)])
def range_with_zero_step(step):
    return np.arange(0, 4, step)


@program([(0.0, 1.0, 5), (0, 10, 11), (-1, 1, 1), (3, 1, 4), (0, 1, 0), (0.1, 0.7, 7)])
def evenly_spaced(a, b, n):
    return np.linspace(a, b, n)


@program([(0, 1, 4), (2.0, -2.0, 3)])
def evenly_spaced_options(a, b, n):
    return np.linspace(a, b, n, endpoint=False), np.linspace(a, b, num=n, dtype=np.float32), np.linspace(a, b).shape


@program([(3,), (0,), (1,)])
def identities(n):
    return np.eye(n), np.identity(n), np.eye(n, dtype=np.int32), np.eye(n, n + 2, k=1), np.eye(n, k=-1)


@program([(1, 2.5), (1, 2), (True, False), (np.float32(1), np.float32(2)), (1, 2j), (np.int8(1), 300)])
def array_of_scalars(a, b):
    return np.array([a, b]), np.array((b, a, a)), np.array(a)


@program([(1.5, 2), (1, 2)])
def nested_lists(a, b):
    return np.array([[a, b], [b, a]]), np.array([[a, 0], [0, b]], dtype=np.float32), np.array([[[a]]])


@program([(arr("f8", 3), arr("f8", 3, seed=1)), (arr("i4", 3), arr("f4", 3)), (arr("f8", 0), arr("f8", 0))])
def array_of_rows(x, y):
    return np.array([x, y]), np.array([x[0:1], y[0:1]])


@program(each(LIKES))
def copies(x):
    """np.array and copy() copy, asarray of an array is that array; a method copy is C-ordered."""
    return np.array(x), x.copy(), np.copy(x), np.asarray(x) is x, np.asarray(x, dtype=x.dtype)


@program(each(LIKES))
def same_memory_or_not(x):
    return np.asarray(x), np.ascontiguousarray(x), np.array(x, copy=True), x.astype(x.dtype, copy=False)


@program(each([arr("f8", 2, 3), arr("f8", 2, 3, layout="F"), arr("i4", 3)]))
def casts_are_copies(x):
    return x.astype(np.float64), x.astype("f4"), x.astype(complex), np.asarray(x, dtype=np.float32)


@program([(3, 2), (0, 2), (1, 1)])
def index_grids(n, m):
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    return i * 10 + j, (i + j) % 2 == 0


@program([(3, 2), (1, 4)], opaque=None)
def grids(n, m):
    y, x = np.mgrid[0:n, 0:m]
    return x + 10 * y


@program([(arr("f8", 3), arr("f8", 4)), (arr("i4", 2), arr("f4", 1))], opaque=None)
def meshes(x, y):
    a, b = np.meshgrid(x, y)
    return a + b


@program(each([arr("f8", 3, 4), arr("i4", 3, 3), arr("f8", 2, 2, layout="F")]))
def triangles(x):
    return np.tril(x), np.triu(x), np.triu(x, k=1), np.tril(x, -1)


@program(each([arr("f8", 4), arr("i4", 2)]))
def diagonal_matrix(x):
    return np.diag(x)


@program([(3,), (0,)])
def constructor(n):
    a = np.ndarray((n, 2), dtype=np.float64)
    a[:] = 1.5
    return a


@program([raising(ValueError, -1)], message=True)
def negative_extent(n):
    return np.zeros(n)


@program([raising(TypeError, 2.5)], fell_back=None)
def fractional_extent(n):
    return np.zeros(n)


@program([(0,), (5,)])
def constants(n):
    return np.pi * n, np.e, np.inf, -np.inf, np.nan, np.zeros(1)[0] + np.pi


@program([(3.7,), (-2,), (np.float32(2.5),)])
def numpy_scalar_constructors(x):
    return np.float32(x), np.float64(x), np.int64(x), np.int32(x), np.bool(x), np.complex128(x), np.float16(x)


@program([(300,), (3.7,)])
def dtype_objects(x):
    """dtypes are values that calls are specialized by."""
    kind = np.dtype("f4")
    return np.ones(2, kind) * x, np.zeros(2, dtype=kind.type).dtype == kind


@program([(arr("f8"), 2), (arr("i4"), 1.5)], order=False)
def at_least_one_axis(x, c):
    return np.asfortranarray(x), np.ascontiguousarray(x), np.asfortranarray(c), np.ascontiguousarray(c)


@program([(2.0, 3.0, arr("f8", 2)), (arr("f8", 2), 3.0, arr("f8", 2))], ulp=ELEMENTARY, opaque=None)
def logspace_of_several_bases(start, stop, base):
    return (
        np.logspace(start, stop, num=4, base=np.abs(base), axis=-1),
        np.logspace(start, stop, num=3, base=[2.0, 3.0]),
    )


@program([(arr("f8", 3, 4),)], opaque=2)
def pad_by_dict(x):
    return np.pad(x, {1: (1, 2)}), np.pad(x, {-1: 2}), np.pad(x, ((1, 0), (0, 1)))


FITTING = (arr("f8", 4, values=(1.5, 2.0, -3.25, 100.0)), 3)


@program(
    [
        FITTING,
        (arr("f4", 4, values=(1, 2, 3, 4)), 0),
        raising(OverflowError, arr("f8", 4, values=(1, 2, 300, 4)), 3),
        raising(ValueError, arr("f8", 4, values=(1, 2, np.nan, 4)), 3),
        raising(OverflowError, arr("f8", 4, values=(1, 2, 3, 4)), 90),
    ],
    message=True,
    mutates=(0,),
)
def numbers_of_lists_that_have_to_fit(x, k):
    """The numbers of a sequence are made integers one by one, and what does not fit raises; arrays wrap around."""
    into = np.zeros((2, 4), "i1")
    into[0] = [v * 0.5 + k for v in x]
    into[1] = [k, k + 1, 2 * k, 1]
    made = np.array([int(v) for v in x], "i1"), np.array([v for v in x], "i2"), np.asarray(range(k), "i1")
    x[0] = 7
    into.flat = [k]
    return into, made, np.insert(into, 0, [v for v in x[:1]]), (x * 100).astype("i2").astype("i1")


@program(
    [
        (arr("f8", 5, values="positive"), 3, 5),
        (arr("i4", 5), 0, 0),
        raising(ValueError, arr("f8", 5), 3, 6),
        raising(OverflowError, arr("f8", 5, values=(1e300,)), 3, 5),
    ],
    message=True,
)
def arrays_of_what_iterators_give(x, k, n):
    squares = np.fromiter((i * i for i in range(k)), "i4")
    some = np.fromiter((v for v in x if v > 0), float, count=-1)
    first = np.fromiter(itertools.count(k), dtype=np.int16, count=k)
    last = np.fromiter((10.0 / (5 - i) for i in range(9)), "f4", n if n < 6 else 5)
    return squares, some, first, last, np.fromiter((float(v) for v in x), int, n), np.fromiter([k, 2.5], complex)


@program([(a, b) for a in (np.uint8(100), np.int8(-100), np.int64(2), 2.5) for b in (4, np.int8(100))], opaque=None)
def arange_that_wraps_around(a, b):
    return np.arange(a, b)


@program([raising(TypeError, 4)], opaque=None)
def arange_from_none(n):
    return np.arange(None, n)


@program([raising(ValueError, arr("i8", 3), arr("i8", 1)), (arr("i8", 3), arr("i8"))], mutates=(0,), fell_back=None)
def filled_with_an_array(x, value):
    x.fill(value)
