"""k-means clustering: the broadcast assignment step alone, and whole iterations with the update of the centres."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def kmeans_assign(points: Array, centres: Array) -> Array:
    distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
    return np.argmin(distances, axis=1)


def kmeans_assign_loops(points: Array, centres: Array) -> Array:
    n, d = points.shape
    labels = np.empty(n, dtype=np.int64)
    for i in prange(n):
        best = np.inf
        label = 0
        for j in range(len(centres)):
            distance = 0.0
            for c in range(d):
                difference = points[i, c] - centres[j, c]
                distance += difference * difference
            if distance < best:
                best = distance
                label = j
        labels[i] = label
    return labels


def kmeans(points: Array, centres: Array, iterations: int) -> tuple[Array, Array]:
    centres = centres.copy()
    labels = np.zeros(len(points), dtype=np.int64)
    for _ in range(iterations):
        distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        labels = np.argmin(distances, axis=1)
        for j in range(len(centres)):
            members = labels == j
            count = np.sum(members)
            if count > 0:
                centres[j] = np.sum(points * members[:, None], axis=0) / count
    return centres, labels


def kmeans_loops(points: Array, centres: Array, iterations: int) -> tuple[Array, Array]:
    n, d = points.shape
    k = len(centres)
    centres = centres.copy()
    labels = np.zeros(n, dtype=np.int64)
    for _ in range(iterations):
        for i in prange(n):
            best = np.inf
            label = 0
            for j in range(k):
                distance = 0.0
                for c in range(d):
                    difference = points[i, c] - centres[j, c]
                    distance += difference * difference
                if distance < best:
                    best = distance
                    label = j
            labels[i] = label
        sums = np.zeros((k, d))
        counts = np.zeros(k)
        for i in range(n):
            counts[labels[i]] += 1.0
            for c in range(d):
                sums[labels[i], c] += points[i, c]
        for j in range(k):
            if counts[j] > 0.0:
                centres[j] = sums[j] / counts[j]
    return centres, labels


def clusters(rng: np.random.Generator, n: int, d: int, k: int) -> tuple[Array, Array]:
    """`n` points around `k` centres, and a first guess of the centres: `k` different points."""
    centres = rng.normal(size=(k, d)) * 4.0
    points = centres[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    return points, points[rng.choice(n, k, replace=False)].copy()


def inputs(rng: np.random.Generator, n: int, d: int, k: int, iterations: int) -> Arguments:
    return (*clusters(rng, n, d, k), iterations)


PROGRAMS = (
    Program(
        name="kmeans_assign",
        summary="nearest of k centres for n points, by broadcasting",
        function=kmeans_assign,
        inputs=clusters,
        sizes={"XS": (40, 3, 4), "S": (1_000, 16, 8), "M": (20_000, 16, 32), "L": (100_000, 16, 32)},
        loops=kmeans_assign_loops,
        jax=True,
        c=True,
    ),
    Program(
        name="kmeans",
        summary="iterations of k-means: assignment and new centres",
        function=kmeans,
        inputs=inputs,
        sizes={"XS": (40, 3, 4, 2), "S": (1_000, 8, 8, 3), "M": (10_000, 16, 16, 4), "L": (100_000, 16, 16, 4)},
        tolerance=Tolerance(rtol=1e-9, atol=1e-9),
        loops=kmeans_loops,
    ),
)
