"""Counting, searching in order and interpolation of the library against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.helpers.library_run import Cases, numbers

CASES = Cases()

REAL = numbers("f8", 4, 5)


def counted(x):
    return np.bincount(x), np.bincount(x, minlength=10)


CASES.each(counted, [np.array([1, 2, 2, 5]), np.zeros(0, int), np.array([3, 1], "u1"), np.array([1, -1]), [1, 2]])


def weighted(x, w):
    return np.bincount(x, w), np.bincount(x, weights=w, minlength=3)


for weights in (np.array([0.5, 1, 2]), np.array([1, 2, 3]), np.array([1.0, 2])):
    CASES.add(weighted, np.array([1, 2, 2]), weights)


def searched(a, v):
    return np.searchsorted(a, v), np.searchsorted(a, v, side="right")


for sought in (2, 2.5, np.array([0, 2, 9]), np.array([[1.5, 3], [np.nan, 2]]), [1, 2]):
    CASES.add(searched, np.array([1, 2, 2, 3]), sought)
    CASES.add(searched, np.array([1, 2, 3, np.nan]), sought)
CASES.add(searched, np.zeros(0), 1.0)


def digitized(x, bins):
    return np.digitize(x, bins), np.digitize(x, bins, right=True)


for edges in (np.array([0, 1, 2.5]), np.array([2.5, 1, 0]), np.array([1, 0, 2]), np.array([1, 1, 1]), [0, 1, 2]):
    CASES.add(digitized, np.array([-1, 0, 1, 2, 2.5, 3]), edges)
    CASES.add(digitized, 1.5, edges)


def interpolated(x, xp, fp):
    return np.interp(x, xp, fp), np.interp(x, xp, fp, left=-1, right=9.5)


for points in (0.5, np.array([-1, 0, 0.5, 1, 2, 3, 3.5, 9, np.nan]), 3, [1, 2.5]):
    CASES.add(interpolated, points, np.array([0.0, 1, 3]), np.array([1.0, 5, -2]))
    CASES.add(interpolated, points, np.array([0, 1, 3]), np.array([1, 5, 2]))
    CASES.add(interpolated, points, [1.0], [2.0])
CASES.add(interpolated, 1.0, np.array([1.0, 2]), np.array([1.0]))
CASES.add(interpolated, 1.0, np.zeros(0), np.zeros(0))


def histograms(a):
    return np.histogram(a), np.histogram(a, bins=4, range=(-1, 1)), np.histogram(a, [-1, 0, 0.5, 2]), np.histogram(a, 3)


def densities(a):
    return np.histogram(a, 3, density=True)


RANDOM = np.random.default_rng(0)
DATA = [REAL, REAL[0], RANDOM.integers(0, 9, 30), REAL.astype("f4"), np.ones(3), np.zeros(0), np.arange(11) / 10]
CASES.each(histograms, [*DATA, RANDOM.random(300), np.array([1.0, np.nan])])
CASES.each(densities, DATA)


def histogram_over(a, n, limits):
    return np.histogram(a, n, limits)


for n, limits in ((5, None), (0, None), (3, (2, 1)), (3, (0, np.inf)), (4, (0.0, 0.0)), (7, (0, 3))):
    CASES.add(histogram_over, REAL, n, limits)


def weighted_histograms(a, w):
    return np.histogram(a, 5, weights=w), np.histogram(a, [-1.0, 0, 1], weights=w)


@pytest.mark.parametrize("count", [65536, 200_000])
def test_weights_of_even_bins_are_added_in_numpys_order(count):
    a, w = np.random.default_rng(2).standard_normal((2, count))
    compiled = accelerate(when="now")(lambda a, w: np.histogram(a, 12, weights=w)[0])
    for threads in (1, 2):
        with options(threads=threads):
            assert np.array_equal(compiled(a, w), np.histogram(a, 12, weights=w)[0])


CASES.add(weighted_histograms, REAL, np.ones((4, 5)))
CASES.add(weighted_histograms, REAL[0], np.arange(5))
CASES.add(weighted_histograms, REAL[0], np.ones(4))


def covariances(a):
    return np.cov(a), np.cov(a, rowvar=False), np.cov(a, bias=True), np.cov(a, ddof=0)


CASES.each(covariances, [REAL, REAL.astype("f4"), RANDOM.integers(0, 5, (3, 4))], ulps=16)


def integrals(y, x):
    return np.trapezoid(y), np.trapezoid(y, x), np.trapezoid(y, dx=0.5)


CASES.add(integrals, REAL, np.arange(5.0))


def slopes(y):
    return np.gradient(y), np.gradient(y, 2.0)


CASES.each(slopes, [REAL[0], np.arange(4), REAL[0, :1]])


def slopes_of_matrices(y):
    return np.gradient(y), np.gradient(y, 2.0, 0.5), np.gradient(y, axis=0), np.gradient(y, 0.5, axis=-1)


CASES.each(slopes_of_matrices, [REAL, REAL.T, REAL[:1], np.arange(12).reshape(3, 4), REAL.astype("f4")])


def added_at(a, i, b):
    np.add.at(a, i, b)
    np.maximum.at(a, i, b)
    return a


CASES.add(added_at, np.zeros(5), np.array([0, 1, 1, -1]), np.array([1.0, 2, 3, 4]))
CASES.add(added_at, np.zeros(5), np.array([0, 1, 1, -1]), 1.5)
CASES.add(added_at, np.zeros(5, int), np.array([0, 1, 1, -1]), 2)
CASES.add(added_at, np.zeros(5), np.array([0, 7]), 1.5)


def added_at_pairs(a, i, j, b):
    np.add.at(a, (i, j), b)
    return a


CASES.add(added_at_pairs, np.zeros((3, 4)), np.array([0, 1, 1, 2]), np.array([0, -1, -1, 3]), np.arange(4.0))
CASES.add(added_at_pairs, np.zeros((3, 4)), np.array([0, 1]), np.array([0, 9]), 1)


def outer(a, b):
    return np.add.outer(a, b), np.multiply.outer(a, b), np.subtract.outer(a, 3), np.less.outer(a, b)


CASES.add(outer, REAL, np.arange(3))


@pytest.mark.parametrize("function", CASES.functions())
def test_typed_ir(function: Callable[..., Any]) -> None:
    CASES.check_typed_ir(function)


@pytest.mark.parametrize("function", CASES.functions())
def test_native(function: Callable[..., Any]) -> None:
    CASES.check_native(function)
