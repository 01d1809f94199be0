"""Loops along rows around operators across them: recurrences along the last axis, written with whole arrays."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import Case, large, program

SHAPES = [(9, 7), (4, 5), (5, 3), (3, 8), (1, 6), (6, 2), (6, 1), (0, 5)]
PAIRS = [(arr("f8", *shape), arr("f8", *shape)) for shape in SHAPES]
SPECIAL = (arr("f8", 6, 9, values="special"), arr("f8", 6, 9, values="special"))
OTHERS = [(arr("f4", 5, 7), arr("f8", 5, 7)), (arr("f8", 5, 7, layout="F"), arr("f8", 5, 7))]


def _twice(*shape):
    a = np.random.default_rng(3).random(shape)
    return a, a


def _overlapping():
    a = np.random.default_rng(3).random((9, 12))
    return a[:, :-2], a[:, 2:]


def _rows_apart():
    a = np.random.default_rng(3).random((9, 12))
    return a[:-1], a[1:]


def _unequal():
    return np.ones((5, 4)), np.ones((5, 7))


ALIASED = [
    Case(lambda: _twice(6, 7)),
    Case(_overlapping),
    Case(_rows_apart),
    Case(_unequal, raises=IndexError),
]


@program([*PAIRS, SPECIAL, *OTHERS, *ALIASED, large(arr("f8", 203, 150), arr("f8", 203, 150))], mutates=(0, 1))
def filtered_along_rows(x, y):
    """Two terms of the input and two of what has been computed, as in recursive filters; x may end before y."""
    for k in range(2, y.shape[1]):
        y[:, k] = 0.5 * x[:, k] + 0.25 * x[:, k - 1] + 0.125 * y[:, k - 1] - 0.5 * y[:, k - 2]


@program([*PAIRS, SPECIAL, Case(lambda: _twice(6, 7))], mutates=(0, 1))
def filtered_backwards(x, y):
    n = x.shape[1]
    for k in range(n - 3, -1, -1):
        y[:, k] = x[:, k + 1] + 0.25 * x[:, k + 2] - 0.5 * y[:, k + 1] + 0.125 * y[:, k + 2]


@program([(arr("f8", *shape),) for shape in SHAPES] + [(m,) for m in variants(arr("f8", 6, 8), "f4 c16", "F reversed")])
def between_neighbours(a):
    """Reads what is not stored yet, and what has been."""
    b = a.copy()
    for k in range(1, b.shape[1] - 1):
        b[:, k] = 0.5 * b[:, k + 1] + b[:, k] - 0.25 * b[:, k - 1]
    return b


@program([(arr("i8", 6, 9),), (arr("u1", 5, 9),), (arr("i8", 7, 2),)], mutates=(0,))
def every_second_column(a):
    for k in range(2, a.shape[1], 2):
        a[:, k] += a[:, k - 2] + a[:, k - 1]


@program(
    [(arr("f8", 3, n, 6), arr("f8", 3, n, 6), arr("f8", 4, n, 6), 0.5) for n in (9, 4, 3, 0)]
    + [
        (arr("f8", 3, 5, 2), arr("f8", 3, 5, 2), arr("f8", 4, 5, 2), 0.5),
        (arr("f8", 3, 5, 6), arr("f8", 3, 5, 5), arr("f8", 4, 5, 6), 0.5),
        (arr("f8", 3, 5, 6, values="special"), arr("f8", 3, 5, 6), arr("f8", 4, 5, 6), 0.0),
        Case((arr("f8", 3, 5, 6), arr("f8", 3, 5, 4), arr("f8", 4, 5, 6), 0.5), raises=IndexError),
        Case((arr("f8", 3, 5, 6), arr("f8", 3, 4, 6), arr("f8", 4, 5, 6), 0.5), raises=ValueError),
        Case((arr("f8", 3, 5, 1), arr("f8", 3, 5, 6), arr("f8", 4, 5, 6), 0.5)),
    ],
    mutates=(0,),
)
def columns_solved(out, rhs, wind, step):
    """A tridiagonal solver in every column: an elimination, and a substitution that keeps a plane."""
    n, m, depth = out.shape
    upper = np.zeros((n, m, depth))
    right = np.zeros((n, m, depth))
    kept = np.zeros((n, m))
    for k in range(1, depth):
        g = 0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        upper[:, :, k] = g * step
        right[:, :, k] = rhs[:, :, k - 1] + out[:, :, k] * g
        scale = 1.0 / (2.0 - upper[:, :, k - 1] * g)
        upper[:, :, k] = upper[:, :, k] * scale
        right[:, :, k] = (right[:, :, k] - right[:, :, k - 1] * g) * scale
    for k in range(depth - 1, -1, -1):
        column = right[:, :, k] - upper[:, :, k] * kept
        kept[:] = column
        out[:, :, k] = step * (column - out[:, :, k])
    return kept


@program(
    [(arr("f8", n, m), arr("f8", m, n), arr("f8", m)) for n, m in [(6, 6), (5, 9), (9, 3), (4, 1)]]
    + [
        Case((arr("f8", 5, 9), arr("f8", 8, 5), arr("f8", 9)), raises=IndexError),
        Case((arr("f8", 5, 9), arr("f8", 9, 5), arr("f8", 6)), raises=IndexError),
    ],
    mutates=(0,),
)
def across_and_along(p, v, w):
    """One array goes along its rows, another one down its columns, one has a number for each round."""
    for k in range(1, p.shape[1]):
        p[:, k] = (p[:, k - 1] - v[k, :]) * w[k] + p[:, 0]


@program(
    [(arr("f8", 6, 7), arr("f8", 6)), (arr("f8", 5, 0), arr("f8", 5)), (arr("f8", 0, 3), arr("f8", 0))], mutates=(1,)
)
def one_number_for_each_row(a, total):
    for k in range(a.shape[1]):
        total[:] = total * 0.5 + a[:, k]


@program(
    [(arr("f8", 6, 7), 1), (arr("f8", 6, 7), 0), (arr("f8", 6, 7), 6), Case((arr("f8", 6, 7), 9), raises=IndexError)]
)
def rows_that_meet(a, j):
    """Rows that belong to other points, too, and one column that all rounds store to: these stay as they are."""
    b = a.copy()
    for k in range(1, b.shape[1]):
        b[1:, k] = b[:-1, k - 1] + b[1:, k]
    for k in range(b.shape[1]):
        b[:, j] = b[:, k] + 1.0
    return b


@program([(arr("f8", 6, 7), 3), (arr("f8", 6, 7), -2), (arr("f8", 2, 7), 7), (arr("f8", 6, 7), 0)], mutates=(0,))
def single_rounds(a, n):
    """Loops of one round, and of one or none."""
    for k in range(n, n + 1):
        a[:, 0] += k
    for _ in range(1):
        a[:, 1] *= 2.0
    last = -1
    for k in range(a.shape[1] - 1, a.shape[1] - 2, -1):
        a[:, k] -= 1.0
        last = k
    for _ in range(n, 1):
        a[:, 2] += 1.0
    return last
