"""Elementwise programs whose arrays lie along different axes, over spaces of every width."""

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, large, program

PAIRS = [
    (arr("f8", 5, 7), arr("f8", 7, 5)),
    (arr("f4", 40, 33), arr("f4", 33, 40)),
    (arr("i2", 3, 70), arr("i4", 70, 3)),
    (arr("f8", 5, 7, layout="F"), arr("f8", 7, 5)),
    (arr("f8", 5, 7, layout="F"), arr("f8", 7, 5, layout="F")),
    (arr("f8", 5, 7, layout="reversed"), arr("f8", 7, 5, layout="stepped")),
    (arr("f8", 0, 7), arr("f8", 7, 0)),
    large(arr("c16", 100, 131), arr("f4", 131, 100)),
]


@program(PAIRS, kernels=1)
def plus_transposed(a, b):
    return a.T + b


@program(PAIRS)
def store_transposed(a, b):
    b = b.astype(np.complex128)
    b.T[1:, :] = a[1:, :] * 2
    return b


@program(PAIRS)
def plus_own_transposed(a, b):
    c = a * 2 + b.T
    n = min(a.shape)
    return c[:n, :n] - c[:n, :n].T


@program([(arr("f8", 9, 12), arr("f8", 12, 9)), (arr("f4", 65, 34), arr("f4", 34, 65))], kernels=1)
def parts_of_transposed(a, b):
    return a[1:, 2:].T * b[2:, 1:] - b[:-2, :-1]


CUBES = [
    (arr("f8", 4, 5, 6),),
    (arr("f4", 2, 35, 40),),
    (arr("f4", 40, 2, 35),),
    (arr("f8", 3, 4, 5, layout="F"),),
    (arr("i4", 70, 3, 2),),
    (arr("i4", 1, 1, 9),),
]


@program(CUBES)
def axes_turned(a):
    return a.transpose(2, 0, 1) + 1, a.transpose(0, 2, 1) * 2, a.transpose(1, 2, 0) - 1, a.T + 0


@program(CUBES)
def turned_and_not(a):
    return a.transpose(1, 0, 2)[:2, :2, :2] + a[:2, :2, :2] * a.T[:2, :2, :2]


@program([(arr("i8", n), arr("i8", m)) for n, m in ((1, 300), (2, 300), (300, 1), (300, 2), (5, 9), (31, 33), (70, 6))])
def outer_sum(a, b):
    return a[:, None] + b[None, :], a[:, None, None] - b[None, :, None] * a[None, None, :3]


COLUMNS = [(arr("f8", *shape),) for shape in ((5, 1), (1, 5), (1, 1), (3, 4), (0, 4), (1, 3, 1), (4,))]


@program([*COLUMNS, (arr("f8", 1, 1, layout="inner"),), (arr("f8", 4, 3, layout="F"),)], mutates=(0,), order=False)
def columns_lie_in_both_orders(a):
    b, c = np.asfortranarray(a), np.asarray(a, order="F")
    b[...] = 1
    c += 2
    return a, b, c, a.astype(a.dtype, "F", copy=False), np.ascontiguousarray(a)


@program(
    [
        (arr("f8", 3, 4, 5, layout="rotated"), arr("f8", 3, 4, 5)),
        (arr("f4", 3, 4, 5), arr("f8", 3, 4, 5, layout="rotated")),
        (arr("i4", 3, 1, 5, layout="rotated"), arr("f8", 3, 4, 5, layout="F")),
        (arr("i4", 3, 4, 2, layout="rotated"), arr("f8", 3, 4, 2, layout="rotated")),
    ],
    regrouped=4,
)
def arguments_in_any_order(a, b):
    """Results lie as NumPy's do, whatever the order of the arguments' axes."""
    made = a * 2, a + b, np.where(a > 0, a, b), np.zeros_like(a), a.copy("K"), a[::-1] - 1, np.asfortranarray(b) * 2
    return made, a.sum(0), b.mean(1, keepdims=True), np.stack([b, b], 1), np.concatenate([b, b], 2), b[[1, 0]]


@program(
    [(arr("u1", 3, 4, layout=layout), i, j) for layout in ("F", "C", "inner") for i, j in ((0, 2), (1, 2), (2, 2))]
)
def rows_joined_that_may_be_one(a, i, j):
    rows, columns = a[i:j], a[:, i:j]
    joined = np.vstack([rows, rows]), np.concatenate([columns * 2, columns], 1), np.hstack([rows, rows])
    return joined, np.stack([rows, rows], 1), np.dstack([columns, columns]), np.vstack([a, rows])


@program([(arr("f8", 3, 4, layout=layout),) for layout in ("C", "F", "inner")], sums=4)
def kronecker_products_with_numbers(a):
    once = np.kron(2, a[::2, ::-1])
    return once, np.kron(once, True), np.kron(np.kron(once.T, 0.5), a[:2]), once + 1


@program([(arr("i8", 4), arr("i8", 3))])
def transposed_after_broadcasting(x, y):
    """Axes along which memory does not move say nothing about the order, also of a view of such an array."""
    a = np.broadcast_to(x, (3, 4))
    b = np.broadcast_to(y[:, None], (3, 4))
    c = np.broadcast_to(x, (2, 3, 4))
    return a.T + 1, b.T | a.T, b.T + 1, (a + b).T + a.T, c.transpose(2, 0, 1) * 2, c[:, ::2].T - 1


def spread(recipe, axes, shape):
    """What an array is broadcast to whose axes are exchanged."""
    x = recipe.make() / 3
    x = x * 10.0 ** (np.arange(x.size).reshape(x.shape) % 7)
    return np.broadcast_to(x.transpose(axes), shape)


STILL = [
    Case(lambda: (spread(arr("f8", 17, 40, 1), (1, 0, 2), (40, 17, 2)), np.ones((40, 17, 2)))),
    Case(lambda: (spread(arr("f8", 17, 1, 30), (2, 1, 0), (30, 9, 17)), np.ones((17, 9, 30)).T)),
    Case(lambda: (spread(arr("f4", 1, 3, 1), (1, 2, 0), (3, 130, 8))[:, ::-1], np.ones((3, 130, 8)))),
    Case(lambda: (spread(arr("f8", 5, 6, 7), (2, 0, 1), (7, 5, 6)), np.ones((7, 5, 6)))),
]


@program(STILL, regrouped=1)
def sums_of_broadcast_arguments(a, b):
    return a.sum(), a.sum(0), a.sum(1), a.sum((0, 1)), a.sum((1, 2)), a.sum((0, 2)), (a * b).sum(1), (a + b.T.T).mean()


@program(STILL)
def made_of_broadcast_arguments(a, b):
    return a + 1, a * b, a.copy(), np.cumsum(a, 1), (a - b).T * 2, np.maximum(a[1:], b[1:]), a[:, ::2] * 2
