"""Functions of NumPy: what the table of tests/numpy_table has found to differ, as programs of their own."""

from __future__ import annotations

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, program, raising

MATRIX = arr("f8", 3, 4)
FORTRAN = arr("f8", 3, 4, layout="F")


@program([(arr("f8"), arr("?")), (arr("i4"), arr("?"))])
def masked_sum_of_one(a, m):
    return np.sum(a, initial=2, where=m), np.max(a, initial=2, where=m)


@program([(arr("c16"),)])
def product_of_one(a):
    return np.prod(a)


@program([(MATRIX, arr("?", 3, 4))], regrouped=16)
def masked_variance(a, m):
    return np.var(a, axis=0, where=m), np.std(a, where=m, ddof=1)


@program([(arr("i1", 6), [2, 3]), (arr("i4", 6), [2, 3])])
def differences_with_ends(a, end):
    return np.ediff1d(a, to_begin=1, to_end=end)


@program([(arr("f4", 3),)])
def polynomial_at_a_python_float(p):
    return np.polyval(p, 1.5)


@program([(arr("f2", 3),), (arr("f4", 3),)])
def outer_with_a_python_float(a):
    return np.add.outer(a, 2.5), np.multiply.outer(2.5, a)


@program([(FORTRAN,), (arr("i8", 3, 4, layout="F"),), (arr("f8", 2, 3, 4, layout="F"),)])
def scaled_by_dot(a):
    return np.dot(a, 2), np.inner(a, 2)


@program([(FORTRAN,), (MATRIX,)])
def orders_of_results(a):
    return np.pad(a, 1), np.pad(a, 1, mode="edge"), np.iscomplex(a), a.compress([True, False, True], 0)


@program([(arr("i1", 3, 4),), (arr("i8", 2, 3, 4),)])
def greatest_common_divisors(a):
    return np.gcd.reduce(a), np.gcd.reduce(a, 1)


@program([(arr("f8", 3, 0),)])
def norm_of_no_columns(a):
    return np.linalg.norm(a, 1)


@program([(arr("f8", 3, 4, values=(1.0, np.nan, -2.0, 5.0, 4.0)),)])
def extrema_among_numbers(a):
    return np.nanargmax(a), np.nanargmin(a, axis=0)


@program([(arr("?", 3),)], raises=TypeError, fell_back=None)
def int_into_bools(a):
    np.copyto(a, 3)


@program([(MATRIX,)], regrouped=8)
def cumulative_with_initial(a):
    return np.cumulative_sum(a, axis=1, include_initial=True), np.cumulative_prod(a[0])


@program([(arr("f8", 40, values="special"),), (arr("i4", 3, 4),), (arr("c16", 30, values="special"),), (FORTRAN,)])
def sorted_copies(a):
    return np.sort(a, axis=-1, kind="stable"), np.argsort(a, axis=0, kind="stable")


@program([(arr("f8", 50),), (arr("u1", 3, 30, layout="stepped"),)], mutates=(0,))
def sorted_in_place(a):
    a.sort()


@program(
    [(arr("f8", 31),), (MATRIX,), (arr("i8", 40),), (arr("f4", 3, 5, layout="F"),), (arr("f8", 9, values="special"),)]
)
def medians(a):
    return np.median(a), np.median(a, axis=0), np.median(a, axis=-1, keepdims=True)


@program([(arr("i8", 30), arr("f8", 30))])
def sorted_by_two_keys(a, b):
    return np.lexsort((b, a))


@program([(arr("f8", 5), arr("f8", 3, 4))])
def other_names(v, a):
    shifted = np.fft.fftshift(v), np.fft.ifftshift(a), np.fft.fftshift(a, 0)
    return shifted, np.linalg.outer(v, v), np.linalg.trace(a), np.linalg.matrix_transpose(a), np.tril_indices_from(a, 1)


@np.vectorize
def above(x, y=1):
    return x * 2 if x > y else x - y


of_several_kinds = np.vectorize(lambda x: 0 if x < 1 else x / 2)


@program([(arr("f8", 3, 4),), (arr("i8", 5),), raising(ValueError, arr("f8", 0))])
def vectorized_globals(a):
    return above(a), above(a, 2), above(3.5)


@program([(arr("f8", 3, 4),), (arr("f4", 5),)], opaque=1)
def vectorized_of_several_kinds(a):
    return of_several_kinds(np.abs(a)) + a * 2


@program(
    [(arr("f8", 3, 4),), (arr("f4", 2, 5, layout="F"),), raising(ZeroDivisionError, arr("f8", 2, 2, values=[0, 1]))]
)
def vectorized_locals(a):
    def weight(x, y):
        total = 0.0
        for k in range(3):
            total += x**k / y
        return total

    return np.vectorize(weight)(a, a[0]), np.vectorize(lambda x: x > 1, otypes=[float])(a)


@program([(arr("f8", 3, 4),), (arr("i8", 2, 3, layout="F"),), (arr("f8", 0, 3),)], mutates=(0,))
def points(a):
    total = 0
    for i, j in np.ndindex(a.shape):
        a[i, j] *= i - j
    for place, x in np.ndenumerate(a):
        total += x * place[0]
        a[place] = x + 1
    return total


@program(
    [
        *[(arr("f8", 3, 4, layout=layout), arr("i8", 3, 4)) for layout in ("C", "F", "stepped", "reversed")],
        (arr("f8", 5, layout="reversed"), arr("f8", 5, layout="reversed")),
        (arr("f4", 2, 3, 4, layout="F"), arr("f4", 4)),
        (2.5, arr("f8", 3)),
        raising(ValueError, arr("f8", 0), 1.5),
    ],
    opaque=None,
    fell_back=None,
)
def elements_in_memory_order(a, b):
    visited = []
    for x in np.nditer(a):
        visited.append(x * 2)
    for x, y in np.nditer((a, b)):
        visited.append(float(x) - y)
    return visited


@program([(arr("f8", 3, 4),), (arr("f8", 2, 3, layout="F"),), (arr("f8", 4, layout="reversed"),)], mutates=(0,))
def stores_by_iterator(a):
    doubled = np.zeros_like(a)
    for x in np.nditer(a, op_flags=["readwrite"]):
        x[...] = x * 2 + 1
    for x, y in np.nditer([a, doubled], op_flags=[["readonly"], ["writeonly"]], order="C"):
        y[...] = x * 2
    return doubled


@program([(arr("f8", 3, 4),), (arr("f8", 2, 3, 4, layout="F"),), raising(ValueError, arr("f8", 3, 0))], regrouped=8)
def along_axes(a):
    def scaled(line, by):
        return (line - line.mean()) * by

    return np.apply_along_axis(scaled, 0, a, 2), np.apply_along_axis(lambda x: x.max() - x[0], -1, a)


@program([(arr("f8", 3, values=[-1.0, -0.0]),), (arr("f4", 4, values=[0.0, -2.0, -0.0]),)])
def histogram_up_to_negative_zero(a):
    return np.histogram(a, 4)


@program([(arr("f8", 5), np.float32(2.5)), (arr("f8", 5), np.int8(3)), (arr("f8", 5), np.float16(0.1))])
def range_of_other_types(x, k):
    return np.histogram(x, bins=3, range=(0, k))[0]


@program([(arr("f8", 3, 4),), (arr("i4", 2, 3, layout="F"),)])
def several_numbers_of_each_line(x):
    ends = np.apply_along_axis(lambda line: (line.min(), line.max()), 1, x)
    return ends, np.apply_along_axis(lambda line: [v * 2 for v in line], 0, x), np.common_type(x, ends)


@program([(arr("f8", 2, 7, values=(1, 0, 2)),), (arr("i2", 3, 5, values=(1, 0, 2), layout="F"),)])
def sorted_by_the_rows_of_a_matrix(keys):
    return keys.T[np.lexsort(keys)], np.isdtype(keys.dtype, ("integral", "bool"))


@program([(arr("f8", 4), "max"), (arr("i8", 4), "sum")])
def functions_by_their_name(x, name):
    return getattr(np, name)(x), getattr(x, name)(), getattr(x, "nothing", 3)


@program([(arr("f8", 5, values=(-2, 3, -4)),), (arr("i8", 5),)], ulp=ELEMENTARY)
def segments_of_a_single_element(x):
    """Nothing is computed of them."""
    return np.hypot.reduceat(x, [0, 1, 2, 4, 1])


@program([(arr("f8", 3), 0), (arr("f8", 3, values=(-1, 2)), 0)], fell_back=None, opaque=None)
def one_of_numbers_of_two_types(x, k):
    """What `vectorize` makes has the type of the first value."""
    return np.vectorize(max)(x, k), np.full(2, max(float(x[0]), k))


RANDOM_POINTS = np.random.default_rng(5).uniform(-0.5, 3.5, 700)


@program([lambda k=k: (np.sort(RANDOM_POINTS[:k]), RANDOM_POINTS[:k], np.arange(0.0, 3.0, 0.1)) for k in (5, 300, 700)])
def interpolated_in_order_and_not(ordered, points, samples):
    values = samples * samples
    return np.interp(ordered, samples, values), np.interp(points, samples, values, left=-1.0)


@program([(arr("f8", values="special"),), (arr("f4", 2, 3, values="special"),), (arr("i4", values=[3]),)], mutates=(0,))
def numbers_in_place(x):
    return np.nan_to_num(x, copy=False)


SIGNED_ZEROS = [arr(dtype, 4, values=[0.0, -0.0, -2, 3]) for dtype in ("f8", "f4", "i8", "i1")]


@program([(x, high) for x in SIGNED_ZEROS for high in (np.array(-0.0), np.float32(-0.0), -0.0)])
def zeros_that_are_clipped(x, high):
    """Bounds without axes do not replace a zero of the other sign, whatever is converted."""
    return np.clip(x, -5, high), x.clip(np.float64(-0.0), 2), x[2:].clip(0.0, np.array(5))


@program([(x, arr("f8", 4, values=[-1, 2, 0.0, -0.0])) for x in SIGNED_ZEROS[:3]])
def zeros_of_products_by_subscripts(x, y):
    return np.einsum("i,i->i", x, y), np.einsum("i,->i", x, -0.0), np.einsum("i,j->ij", y, x), np.einsum("i->i", y)


@program(
    [
        raising(TypeError, arr("i8", 3), arr("c8", 3, values=[0, 1, 2])),
        (arr("i8", 3), arr("i8", 2, values=[2**53 + 1, 2**53 + 1])),
        raising(ValueError, arr("f8", 3), arr("f8", 3, values=[1, 3, 2])),
    ],
)
def places_among_bins(x, bins):
    return np.digitize(x, bins)
