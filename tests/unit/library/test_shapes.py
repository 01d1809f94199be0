"""Shapes changed by the library against NumPy: views stay views, copies stay copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.library_run import Cases

CASES = Cases()

MATRICES = [
    np.arange(12.0).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(24.0).reshape(3, 8)[:, ::2],
    np.zeros((3, 4), "i1"),
    np.arange(12.0).reshape(3, 4)[::-1],
]


def reshaped(a):
    return a.reshape(4, 3), np.reshape(a, (2, -1)), a.reshape(-1), a.reshape((2, 2, 3)), a.reshape([6, 2]), a.ravel()


def flattened(a):
    return a.flatten(), a.ravel("F"), a.flatten("F"), np.ravel(a) + 1


def reshaped_by(a, n):
    return a.reshape(n, -1)


def reshaped_wrong(a, n):
    return a.reshape(n, 5)


CASES.each(reshaped, MATRICES, compiled=False)
CASES.each(flattened, MATRICES)
for matrix in MATRICES:
    for n in (2, 5, 0):
        CASES.add(reshaped_by, matrix, n, compiled=False)
    CASES.add(reshaped_wrong, matrix, 3, compiled=False)


def stores_through_reshapes(a):
    a.reshape(-1)[0] = 99
    a.ravel()[1] = 98
    a.T.reshape(-1)[2] = 97
    a.flatten()[3] = 96
    a.reshape(3, 2, 2)[1] = 5
    return a


CASES.each(stores_through_reshapes, MATRICES[:2], compiled=False)


def permuted(a):
    return a.T, np.transpose(a), a.transpose((1, 0)), np.swapaxes(a, 0, -1), np.moveaxis(a, 0, -1), np.rollaxis(a, 1)


def permuted_cube(a):
    return a.transpose(2, 0, 1), np.moveaxis(a, [0, 1], [-1, 0]), np.rollaxis(a, 2, 1), np.transpose(a, (1, 2, 0))


CASES.each(permuted, MATRICES)
CASES.add(permuted_cube, np.arange(24.0).reshape(2, 3, 4))


def unit_axes(a):
    return np.expand_dims(a, 0), np.expand_dims(a, (0, 2)), np.squeeze(a[None]), np.squeeze(a[:, None, :], 1)


def at_least(a):
    return np.atleast_1d(a, 3), np.atleast_2d(a[0]), np.atleast_3d(a), np.atleast_3d(a[0]), np.atleast_2d(2.5)


def broadcast(a):
    return np.broadcast_to(a, (2, 3, 4)) + 1, np.broadcast_to(a[0], (3, 4)), np.broadcast_to(3, (2, 2))


def flipped(a):
    return np.flip(a), np.flip(a, 0), np.flip(a, (0, 1)), np.fliplr(a), np.flipud(a)


def turned(a):
    return np.rot90(a), np.rot90(a, 2), np.rot90(a, 3), np.rot90(a, -1)


for own in (unit_axes, at_least, broadcast, flipped, turned):
    CASES.each(own, MATRICES)


def squeezed(a):
    return np.squeeze(a), np.squeeze(a, 0)


CASES.each(squeezed, [np.ones((1, 3, 1)), np.ones((2, 3)), np.ones((1, 1))])


def stores_through_views(a):
    np.flip(a, 0)[0] = 5
    np.swapaxes(a, 0, 1)[0, 1] = -3
    np.expand_dims(a, 1)[2] = 9
    np.rot90(a)[0, 0] = -7
    return a


CASES.each(stores_through_views, MATRICES[:2])


def what_it_is(a):
    return (
        np.shape(a),
        np.ndim(a),
        np.size(a),
        np.size(a, 0),
        np.isscalar(a),
        np.iscomplexobj(a),
        np.result_type(a, 1.0),
    )


CASES.each(what_it_is, MATRICES)


def joined(a, b):
    return np.concatenate((a, b)), np.concatenate([a, b, a], axis=0), np.concatenate((a, b), axis=None), np.append(a, b)


for pair in (
    (np.arange(3.0), np.arange(4)),
    (np.ones((2, 3)), np.zeros((4, 3), "f4")),
    (np.ones((2, 3)), np.ones((2, 4))),
    (np.ones(2), np.ones((2, 3))),
    (np.ones(0), np.arange(3)),
):
    CASES.add(joined, *pair)


def side_by_side(a, b):
    return (
        np.concatenate((a, b), axis=1),
        np.hstack((a, b)),
        np.vstack((a, a)),
        np.dstack((a, a)),
        np.column_stack((a, b)),
    )


CASES.add(side_by_side, np.ones((2, 3)), np.zeros((2, 4), int))


def stacked(a, b):
    return np.stack((a, b)), np.stack([a, b], axis=1), np.vstack((a, b)), np.hstack((a, b)), np.dstack((a, b))


CASES.add(stacked, np.arange(3.0), np.arange(3))
CASES.add(stacked, np.arange(3.0), np.arange(4))


def with_scalars(a):
    return np.hstack([a, 1, 2.5]), np.append(a, 3), np.stack([1, 2, 3]), np.vstack([1, 2])


CASES.add(with_scalars, np.arange(3))


def repeated(a):
    return np.repeat(a, 3), np.repeat(a, 2, axis=0), a.repeat(2, axis=-1), np.tile(a, 2), np.tile(a, (2, 1, 2))


def repeated_by(a, n):
    return np.repeat(a, n), np.tile(a, n)


CASES.each(repeated, MATRICES)
for n in (4, 0, -1):
    CASES.add(repeated_by, np.arange(3), n)


def rolled(a):
    return np.roll(a, 1), np.roll(a, -1, axis=0), np.roll(a, 7, axis=1), np.roll(a, (1, 2), axis=(0, 1)), np.roll(a, 0)


def rolled_by(a, k):
    return np.roll(a, k)


CASES.each(rolled, MATRICES)
for k in (0, 1, -1, 5, -7):
    CASES.add(rolled_by, np.arange(5), k)
    CASES.add(rolled_by, np.ones(0), k)


def split(a):
    return np.split(a, 3), np.array_split(a, 4), np.split(a, [1, 2]), np.hsplit(a, 2), np.vsplit(a, 3)


def split_in_five(a):
    return np.split(a, 5)


CASES.each(split, MATRICES)
CASES.each(split_in_five, [np.arange(12), np.arange(10)])


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)
