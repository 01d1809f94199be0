"""Sums along short rows of what is computed for them: of eight rows at a time where there are as many, of a leaf at
most; beside a few rows, longer ones, and those that begin before the last eight."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, large, program

ROWS = [
    *variants(arr("f8", 9, 16), "f4 f2 i4", "F stepped reversed transposed readonly", "special"),
    *(arr(dtype, rows, length) for dtype in ("f8", "f4") for rows in (7, 8, 17) for length in (8, 15, 128)),
    arr("f8", 9, 7),
    arr("f8", 9, 129),
    arr("f8", 20, 0),
    arr("f8", 0, 16),
    arr("f8", 8, 8, values=[-0.0]),
    arr("f8", 8, 16, values=[1e16, 1.0, -1e16, 3.0, 1e-3]),
    arr("f4", 11, 23, values=[float("inf"), 1.0, float("-inf"), 3.0, float("nan")]),
    large(arr("f8", 5000, 24)),
]


@program(each(ROWS), regrouped=8)
def squares(x):
    return np.sum(x * x, axis=1), np.sum(-x, axis=-1), np.mean(np.abs(x) + 1, axis=1)


@program(each(ROWS), regrouped=8)
def two_sums_of_a_pass(x):
    y = x - x[:1]
    return np.sum(y * y, axis=1), np.sum(y, axis=1)


@program(
    [(arr("f8", 4, 9, 16), arr("f8", 16)), (arr("f4", 3, 17, 33), arr("f4", 33)), (arr("f8", 2, 8, 8), arr("f8", 8))],
    regrouped=8,
)
def weighted(x, w):
    return np.sum(x * w, axis=2), np.sum(x * w, axis=-1, keepdims=True), (x * w).sum(axis=-1).max(axis=0)


@program(
    [
        (arr("f8", 7, 16), arr("f8", 9, 16, seed=1)),
        (arr("f4", 7, 9), arr("f4", 8, 9, seed=1)),
        (arr("f8", 7, 16, values="special"), arr("f8", 70, 16, seed=1)),
        (arr("f8", 5, 8), arr("f8", 3, 8, seed=1)),
        (arr("f8", 5, 130), arr("f8", 20, 130, seed=1)),
        large(arr("f8", 3000, 16), arr("f8", 70, 16, seed=1)),
    ]
)
def nearest(points, centres):
    """The keys of an extremum are sums of rows."""
    apart = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
    return np.argmin(apart, axis=1), np.argmin(np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2), axis=1)


@program(each([arr("f8", 9, 16), arr("f8", 17, 12, layout="F"), arr("f4", 8, 9)]), mutates=(0,), regrouped=8)
def sums_in_a_loop(x):
    """In a region of one thread; the array changes in between."""
    found = np.zeros((3, len(x)), x.dtype)
    for turn in range(3):
        found[turn] = np.sum(x * x, axis=1)
        x[turn] = turn
    return found


@program(each([arr("c16", 9, 5), arr("c8", 12, 16)]), regrouped=8)
def complex_rows(z):
    return np.sum(-z, axis=1), np.sum(np.abs(z.real - z.imag), axis=1)


LENGTHS = np.array([0, 1, 7, 8, 9, 127, 128, 129, 150])


@program(
    [(arr("f8", 2, 150), LENGTHS), (arr("f4", 2, 150), LENGTHS), (arr("f8", 2, 150, layout="F"), LENGTHS)], regrouped=64
)
def sums_that_wait_for_one_another(x, lengths):
    before, sums = 0.5, np.zeros(len(lengths), x.dtype)
    for k, n in enumerate(lengths):
        sums[k] = np.sum(x[0, :n] - before) + x[1, :n].sum()
        before = sums[k] * 0.125
    return sums
