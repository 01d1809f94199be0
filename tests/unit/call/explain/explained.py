"""Functions for the tests of the page, at known lines."""

import fractions
from statistics import NormalDist

import numpy as np

from parakeet_py import accelerate
from tests.unit.call.explain.other_file import doubled


def norm(v):
    return v / np.sqrt((v * v).sum())


@accelerate(when="now")
def blend(image, weight, label):
    """Lines of every kind."""
    inner = image[1:-1, 1:-1]
    around = image[:-2, 1:-1] + image[2:, 1:-1]

    mixed = (1 - weight) * inner + weight * around / 2  # with <b>markup</b> & "quotes"
    rows = norm(mixed.mean(axis=1))
    share = fractions.Fraction(len(rows), 3)
    total = 0.0
    for r in rows:
        total += np.sqrt(r)
    return mixed, total, share, label


@accelerate(when="now")
def collects(n):
    found = []
    for i in range(n):
        found.append(lambda x: x + i)  # noqa: B023
    return found[0](1)


@accelerate(when="now")
def steps(x, n):
    for _ in range(n):
        x = x[::-1] * 0.5 + 1.0
    return x @ np.ones(30)


@accelerate(when="now")
def halved(x):
    return doubled(x) / 4.0


@accelerate
def scores(x):
    share = float(np.count_nonzero(x > 1.0)) / len(x)
    return x, NormalDist().inv_cdf(1.0 - share / 2.0)
