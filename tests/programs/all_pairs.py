"""Sums over all pairs of points whose coordinates lie side by side: columns that are read again for every point."""

import numpy as np

from tests.arrays import arr
from tests.corpus import large, program


@program(
    [
        (arr("f8", 9, 3), arr("f8", 9, seed=1)),
        (arr("f8", 130, 3), arr("f8", 130, seed=1)),
        (arr("f8", 9, 3, layout="F"), arr("f8", 9, seed=1)),
        (arr("f4", 20, 3), arr("f4", 20, seed=1)),
        (arr("f8", 20, 3, values="special"), arr("f8", 20, seed=1)),
        (arr("f8", 1, 3), arr("f8", 1)),
        (arr("f8", 0, 3), arr("f8", 0)),
        large(arr("f8", 700, 3), arr("f8", 700, seed=1)),
    ],
    regrouped=8,
)
def forces(position, mass):
    x, y, z = position[:, 0], position[:, 1], position[:, 2]
    dx, dy, dz = x[None, :] - x[:, None], y[None, :] - y[:, None], z[None, :] - z[:, None]
    square = dx**2 + dy**2 + dz**2 + 0.5**2
    pull = mass / (square * np.sqrt(square))
    return np.sum(dx * pull, axis=1), np.sum(dy * pull, axis=1), np.sum(dz * pull, axis=1)


@program(
    [
        (arr("f8", 9, 3), arr("f8", 14, 2, seed=1)),
        (arr("f8", 0, 3), arr("f8", 14, 2, seed=1)),
        (arr("f8", 9, 3), arr("f8", 0, 2, seed=1)),
        (arr("f8", 9, 3), arr("f8", 140, 2, seed=1)),
    ],
    regrouped=8,
)
def of_two_sets(points, others):
    """Some points and others of another number, none of either."""
    apart = (points[:, 0, None] - others[None, :, 1]) ** 2 + (points[:, 1, None] - others[None, :, 0]) ** 2
    near = 1 / (1 + apart) / np.sqrt(1 + apart)
    return np.sum(near, axis=1), np.max(near, axis=1, initial=0.0)


@program([(arr("f8", 12, 3),), (arr("f8", 12, 5),), (arr("f8", 12, 5, layout="F"),)], mutates=(0,), regrouped=8)
def rounds_that_move_the_points(points):
    """The columns are other ones in each round."""
    for _ in range(3):
        apart = (points[:, 0, None] - points[None, :, 0]) ** 2 + (points[:, 1, None] - points[None, :, 1]) ** 2
        points[:, 0] += np.sum(1 / np.sqrt(1 + apart) / (1 + apart), axis=1)
    return points[:, 0] * 2


@program([(arr("f8", 6, 3), 0), (arr("f8", 6, 3), 2), (arr("f8", 6, 3), 3), (arr("f8", 0, 3), 3)], regrouped=8)
def a_column_that_may_not_be_there(points, k):
    try:
        apart = points[:, k][:, None] - points[:, k][None, :]
        return np.sum(1 / np.sqrt(1 + apart**2) / (1 + apart**2), axis=1)
    except IndexError as error:
        return str(error)
