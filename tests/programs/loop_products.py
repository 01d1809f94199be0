"""Loops of dot products and vector-matrix products, which may become products of matrices, and such as must not."""

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, large, program, raising


def _not_a_number_above(rows, columns=None, kind="f8"):
    """A matrix whose elements on and above the diagonal are NaN and infinite: no sum over those below may meet them."""
    a = arr(kind, rows, columns or rows, seed=3).make()
    a[np.triu_indices(rows, 0, columns or rows)] = np.nan
    a[0] = np.inf
    return a


def by_machine(make):
    """A case that is too big for the interpreters."""
    return Case(make, native_only=True)


def _lower(n):
    return np.tril(arr("f8", n, n, values="unit").make()) + n * np.eye(n)


def _definite(n):
    a = arr("f8", n, n, values="unit").make()
    return a @ a.T + n * np.eye(n)


# ---- products --------------------------------------------------------------------------------------------------------


@program(
    [
        (2.0, arr("f8", 5, 5), arr("f8", 5, 3)),
        (2.0, arr("i8", 5, 5), arr("i8", 5, 3)),
        (2.0, arr("f8", 0, 0), arr("f8", 0, 3)),
        (2.0, arr("f8", 3, 3), arr("f8", 3, 0)),
        large(2.0, arr("f8", 70, 70), arr("f8", 70, 41, seed=1)),
        large(2.0, arr("f4", 65, 70, layout="F"), arr("f4", 65, 33, layout="F", seed=1)),
        large(2.0, arr("c16", 40, 40, layout="stepped"), arr("c16", 40, 20, layout="reversed", seed=1)),
        large(2.0, arr("i8", 40, 40), arr("i8", 40, 20, seed=1)),
        large(2.0, arr("i4", 40, 40), arr("f8", 40, 20, seed=1)),
        lambda: (1.0, _not_a_number_above(6), arr("f8", 6, 3).make()),
        by_machine(lambda: (1.0, _not_a_number_above(70), arr("f8", 70, 40).make())),
    ],
    sums=256,
    mutates=(2,),
)
def triangular_product(alpha, a, b):
    if b.dtype.kind == "i":
        alpha = 2
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha


@program(
    [
        raising(IndexError, arr("f8", 40, 30), arr("f8", 40, 20)),
        raising(ValueError, arr("f8", 45, 50), arr("f8", 40, 20)),
        large(arr("f8", 40, 45), arr("f8", 40, 20)),
    ],
    sums=256,
    mutates=(1,),
    message=True,
)
def triangular_product_of_misfits(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])


@program(
    [
        (arr("f8", 6, 5),),
        large(arr("f8", 50, 140)),
        large(arr("f8", 30, 150, layout="F")),
        large(arr("f4", 50, 60, layout="stepped")),
        large(arr("c8", 33, 40)),
        large(arr("i8", 33, 40)),
        (arr("f8", 0, 20),),
    ],
    sums=256,
)
def products_of_columns(data):
    made = np.zeros((data.shape[1], data.shape[1]), data.dtype)
    for i in range(data.shape[1]):
        made[i:, i] = made[i, i:] = data[:, i] @ data[:, i:] * 2
    return made


@program([(arr("f8", 6, 5),), large(arr("f8", 50, 140)), large(arr("f8", 20, 1)), large(arr("f8", 20, 17))], sums=256)
def products_with_columns_behind(data):
    n = data.shape[1]
    made = np.eye(n, dtype=data.dtype)
    for i in range(n - 1):
        made[i + 1 : n, i] = made[i, i + 1 : n] = data[:, i] @ data[:, i + 1 : n]
    return made


@program(
    [
        (arr("f8", 2, 3, 4), arr("f8", 4, 4)),
        large(arr("f8", 3, 140, 20), arr("f8", 20, 20)),
        large(arr("f8", 3, 20, 17, layout="F"), arr("f8", 17, 17, layout="F")),
        raising(ValueError, arr("f8", 3, 20, 17), arr("f8", 17, 16)),
        raising(ValueError, arr("f8", 3, 20, 17), arr("f8", 16, 17)),
    ],
    sums=256,
    mutates=(0,),
)
def rows_times_a_matrix_in_place(a, c):
    for r in range(a.shape[0]):
        for q in range(a.shape[1]):
            a[r, q, :] = a[r, q, :] @ c


@program(
    [
        (arr("f8", 2, 3, 4), arr("f8", 4, 4)),
        (arr("f8", 2, 0, 4), arr("f8", 4, 4)),
        (arr("i8", 2, 3, 4), arr("i8", 4, 4)),
        large(arr("f8", 3, 70, 20), arr("f8", 20, 20)),
        large(arr("f8", 3, 20, 17, layout="F"), arr("f8", 17, 17, layout="F")),
        large(arr("f4", 3, 20, 17, layout="stepped"), arr("f4", 17, 17)),
    ],
    sums=256,
    mutates=(0,),
)
def stack_of_rows_times_a_matrix(a, c):
    a[:] = np.reshape(np.reshape(a, (a.shape[0], a.shape[1], 1, a.shape[2])) @ c, a.shape)


@program(
    [(2.0, 3.0, arr("f8", 4, 3), arr("f8", 4, 4), arr("f8", 4, 3, seed=1)),
     large(2.0, 3.0, arr("f8", 50, 40), arr("f8", 50, 50), arr("f8", 50, 40, seed=1)),
     large(2.0, 3.0, arr("f8", 40, 50, layout="F"), arr("f8", 40, 40), arr("f8", 40, 50, layout="F", seed=1))],
    sums=4096,
    mutates=(2,),
)  # fmt: skip
def symmetric_product(alpha, beta, c, a, b):
    sums = np.empty((c.shape[1],), dtype=c.dtype)
    c *= beta
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            sums[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * sums


@program(
    [
        (arr("f8", 5, 4), arr("f8", 4)),
        large(arr("f8", 150, 40), arr("f8", 40)),
        large(arr("f8", 150, 40, layout="F"), arr("f8", 40, layout="reversed")),
        large(arr("f8", 40, 40, layout="reversed"), arr("f8", 40, layout="stepped")),
        lambda: (np.broadcast_to(arr("f8", 40).make(), (30, 40)), np.broadcast_to(np.float64(2.5), (40,))),
    ],
    sums=64,
)
def rows_times_a_vector(a, x):
    y = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        y[i] = a[i] @ x
    return y


# ---- recurrences -----------------------------------------------------------------------------------------------------


@program(
    [
        lambda: (_lower(6), np.zeros(6), arr("f8", 6).make()),
        by_machine(lambda: (_lower(90), np.zeros(90), arr("f8", 90).make())),
        by_machine(lambda: (np.asfortranarray(_lower(90)), np.zeros(90), arr("f8", 90).make())),
    ],
    sums=64,
    mutates=(1,),
)
def forward_substitution(lower, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]


@program(
    [lambda: (_lower(6).T, arr("f8", 6).make()), by_machine(lambda: (_lower(90).T, arr("f8", 90).make()))],
    sums=64,
)
def backward_substitution(upper, b):
    x = np.zeros_like(b)
    for i in range(b.shape[0] - 1, -1, -1):
        x[i] = (b[i] - upper[i, i + 1 :] @ x[i + 1 :]) / upper[i, i]
    return x


@program(
    [
        by_machine(lambda: (_definite(70),)),
        by_machine(lambda: (np.asfortranarray(_definite(50)),)),
        lambda: (_definite(6),),
    ],
    sums=4096,
    mutates=(0,),
)
def factors(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@program([by_machine(lambda: (_definite(70),)), lambda: (_definite(6),)], sums=4096, mutates=(0,))
def square_root(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@program([large(arr("f8", 60, 40, values="unit")), (arr("f8", 5, 3),)], sums=4096, mutates=(0,))
def orthogonal_columns(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


# ---- what only looks like a product ----------------------------------------------------------------------------------

SMALL_FACTORS = arr("f8", 40, 40, values="unit")


@program([large(SMALL_FACTORS, arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=4096, mutates=(1,))
def vector_read_while_it_changes(a, x):
    a = a / 40
    for i in range(x.shape[0]):
        x[i] = a[i] @ x


@program([large(SMALL_FACTORS, arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=4096, mutates=(1,))
def vector_read_before_it_changes(a, x):
    for i in range(x.shape[0]):
        x[i] = a[i, i + 1 :] @ x[i + 1 :]


@program([large(SMALL_FACTORS, arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=4096, mutates=(0,))
def row_changed_before_it_is_read(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        a[i, i] = 100.0 * i
        y[i] = a[i] @ x
    return y


@program([large(SMALL_FACTORS, arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=4096, mutates=(0,))
def row_behind_changed(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0] - 1):
        y[i] = a[i] @ x
        a[i + 1, 2] += y[i] / 64
    return y


@program([large(SMALL_FACTORS, arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=4096, mutates=(0,))
def row_changed_after_it_is_read(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        y[i] = a[i] @ x
        a[i, 2] += y[i]
        a[0, 0] = 7.0
    return y


@program([large(arr("f8", 40, 20), arr("f8", 60)), (arr("f8", 4, 20), arr("f8", 24))], sums=4096, mutates=(1,))
def vector_changed_by_the_first_iteration_alone(a, x):
    y = np.zeros(a.shape[0])
    z = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(i):  # does not run in the first
            z[j] += 1.0
        y[i] = a[i] @ x[:20]
        x[i + 19] = y[i] / 64
    return y, z


@program([large(arr("f8", 40, 30), arr("f8", 40)), (arr("f8", 4, 3), arr("f8", 4))], sums=4096, mutates=(0,))
def products_read_by_two_loops(a, x):
    y = np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        products = np.empty(2)
        np.matmul(a.T[j : j + 1], x, out=products[:1])
        np.matmul(x, a[:, j : j + 1], out=products[1:])
        y[j] = products[0] - 2 * products[1]
        a[:, j] += y[j] / 64
    return y


def _twice(n, m):
    a = arr("f8", n, m, values="unit").make() / n
    return a, a


def _overlapping(n, m):
    a = arr("f8", n + 1, m, values="unit").make() / n
    return a[:-1], a[1:]


@program(
    [by_machine(lambda: _twice(40, 40)), by_machine(lambda: _overlapping(40, 40)), lambda: _twice(4, 4)],
    sums=4096,
    mutates=(0, 1),
)
def product_into_an_operand(a, b):
    for i in range(a.shape[0]):
        b[i] = a[i] @ b


@program(
    [by_machine(lambda: _twice(40, 40)), by_machine(lambda: _overlapping(40, 40)), lambda: _twice(4, 4)],
    sums=4096,
    mutates=(0, 1),
)
def triangular_product_of_views(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])


@program([large(arr("f8", 60), arr("f8", 20)), (arr("f8", 6), arr("f8", 2))], sums=64)
def sliding_products(x, weights):
    k = weights.shape[0]
    y = np.empty(x.shape[0] - k + 1)
    for i in range(x.shape[0] - k + 1):
        y[i] = x[i : i + k] @ weights
    return y


@program([large(arr("f8", 40, 40), arr("f8", 40)), (arr("f8", 4, 4), arr("f8", 4))], sums=256)
def band_times_a_vector(a, x):
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(3, n - 20):
        y[i] = a[i, i - 3 : i + 20] @ x[i - 3 : i + 20]
    return y


@program([large(arr("f8", 40, 30), arr("f8", 30, 20)), (arr("f8", 4, 3), arr("f8", 3, 2))], sums=256)
def last_of_the_products(a, b):
    last = np.zeros(b.shape[1])
    total = 0.0
    for i in range(a.shape[0]):
        last = a[i] @ b
        total += last[0]
    return last, total


@program([large(arr("f8", 40, 30), arr("f8", 30, 20)), (arr("f8", 4, 3), arr("f8", 3, 2))], sums=4096)
def changed_products(a, b):
    made = np.zeros((a.shape[0], b.shape[1]))
    total = 0.0
    for i in range(a.shape[0]):
        row = a[i] @ b
        row += i
        row[0] = total
        total += row[1]
        made[i] = row
    return made


@program([large(arr("f8", 40, 30), arr("f8", 30)), (arr("f8", 4, 3), arr("f8", 3))], sums=4096)
def products_summed_up(a, x):
    total = 0.0
    signs = 0
    for i in range(a.shape[0]):
        total += a[i] @ x
        if total < 0:
            signs += 1
    return total, signs


@program([large(arr("f8", 40, 30), arr("f8", 30), 25), (arr("f8", 4, 3), arr("f8", 3), 2)], sums=4096)
def products_until(a, x, limit):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        if i > limit:
            break
        y[i] = a[i] @ x
    return y


@program(
    [
        raising(IndexError, arr("f8", 40, 30), arr("f8", 30), arr("f8", 35)),
        large(arr("f8", 40, 30), arr("f8", 30), arr("f8", 45)),
    ],
    sums=256,
    mutates=(2,),
)
def products_into_what_is_short(a, x, y):
    for i in range(a.shape[0]):
        y[i] = a[i] @ x


@program([large(arr("f8", 40, 30), arr("f8", 30), 2), large(arr("f8", 40, 30), arr("f8", 30), -3)], sums=256)
def products_of_every_other_row(a, x, step):
    y = np.zeros(a.shape[0])
    for i in range(0, a.shape[0], 2):
        y[i] = a[i, ::step] @ x[::step]
    for i in range(a.shape[0] - 1, 20, -1):
        y[i] = a[i, ::-1] @ x[::-1]
    return y


@program(
    [
        large(
            arr("f8", 40, 30),
        ),
        (arr("i8", 40, 30),),
        (arr("f4", 4, 3),),
    ]
)
def sums_in_the_order_of_the_loop(a):
    n = a.shape[0]
    made = np.zeros((n, n), a.dtype)
    for i in range(n):
        for j in range(n):
            for k in range(a.shape[1]):
                made[i, j] += a[i, k] * a[j, k]
    return made


@program([large(arr("f8", 40, 30), arr("f8", 30)), (arr("f8", 3, 5), arr("f8", 5))], regrouped=32)
def sums_in_numpys_order(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        y[i] = (a[i] * x).sum()
    return y
