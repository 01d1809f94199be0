"""Reductions and scans: sum of squared differences, histogram, prefix sums."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def sum_of_squared_differences(a: Array, b: Array) -> np.float64:
    return np.sum((a - b) ** 2)


def sum_of_squared_differences_loops(a: Array, b: Array) -> float:
    total = 0.0
    for i in prange(len(a)):
        difference = a[i] - b[i]
        total += difference * difference
    return total


def histogram(samples: Array, bins: int) -> Array:
    counts, _ = np.histogram(samples, bins, (0.0, 1.0))
    return counts


def prefix_sum(amounts: Array) -> Array:
    running = np.cumsum(amounts)
    return running / running[-1]


def two_vectors(rng: np.random.Generator, n: int) -> Arguments:
    return rng.random(n), rng.random(n)


def histogram_inputs(rng: np.random.Generator, n: int, bins: int) -> Arguments:
    return rng.random(n), bins


def prefix_inputs(rng: np.random.Generator, n: int) -> Arguments:
    return (rng.random(n),)


PROGRAMS = (
    Program(
        name="sum_of_squared_differences",
        summary="sum((a - b)**2) without a temporary",
        function=sum_of_squared_differences,
        inputs=two_vectors,
        sizes={"XS": (100,), "S": (10_000,), "M": (2_000_000,), "L": (10_000_000,)},
        loops=sum_of_squared_differences_loops,
        jax=True,
        c=True,
    ),
    Program(
        name="histogram",
        summary="np.histogram with equal bins",
        function=histogram,
        inputs=histogram_inputs,
        sizes={"XS": (60, 7), "S": (10_000, 50), "M": (1_000_000, 100), "L": (10_000_000, 100)},
    ),
    Program(
        name="prefix_sum",
        summary="running share of a total, by cumsum",
        function=prefix_sum,
        inputs=prefix_inputs,
        sizes={"XS": (50,), "S": (10_000,), "M": (2_000_000,), "L": (20_000_000,)},
        tolerance=Tolerance(rtol=1e-9),
        jax=True,
    ),
)
