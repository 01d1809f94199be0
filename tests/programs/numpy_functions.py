"""Functions of NumPy: what the table of tests/numpy_table has found to differ, as programs of their own."""

from __future__ import annotations

import numpy as np

from tests.arrays import arr
from tests.corpus import program

MATRIX = arr("f8", 3, 4)
FORTRAN = arr("f8", 3, 4, layout="F")


@program([(arr("f8"), arr("?")), (arr("i4"), arr("?"))])
def masked_sum_of_one(a, m):
    return np.sum(a, initial=2, where=m), np.max(a, initial=2, where=m)


@program([(arr("c16"),)])
def product_of_one(a):
    return np.prod(a)


@program([(MATRIX, arr("?", 3, 4))], sums=16)
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
