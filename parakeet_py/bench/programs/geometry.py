"""Distances and rays: arcs on the globe, all pairs of points, rays against spheres, smoothing of a track."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def arc_distance(theta_1: Array, phi_1: Array, theta_2: Array, phi_2: Array) -> Array:
    half_chord = (
        np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * np.arctan2(np.sqrt(half_chord), np.sqrt(1 - half_chord))


def allpairs(a: Array, b: Array) -> Array:
    return np.sqrt(np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=2))


def allpairs_loops(a: Array, b: Array) -> Array:
    n, d = a.shape
    m = len(b)
    distances = np.empty((n, m))
    for i in prange(n):
        for j in range(m):
            total = 0.0
            for c in range(d):
                difference = a[i, c] - b[j, c]
                total += difference * difference
            distances[i, j] = np.sqrt(total)
    return distances


def ray_sphere(origin: Array, directions: Array, centres: Array, radii: Array) -> Array:
    nearest = np.full(len(directions), np.inf)
    for k in range(len(radii)):
        offset = origin - centres[k]
        b = np.sum(directions * offset, axis=1)
        discriminant = b * b - (np.sum(offset * offset) - radii[k] * radii[k])
        distance = -b - np.sqrt(np.maximum(discriminant, 0.0))
        hit = (discriminant >= 0.0) & (distance > 0.0) & (distance < nearest)
        nearest = np.where(hit, distance, nearest)
    return nearest


def ray_sphere_loops(origin: Array, directions: Array, centres: Array, radii: Array) -> Array:
    nearest = np.full(len(directions), np.inf)
    for i in prange(len(directions)):
        for k in range(len(radii)):
            b = 0.0
            square = 0.0
            for c in range(3):
                offset = origin[c] - centres[k, c]
                b += directions[i, c] * offset
                square += offset * offset
            discriminant = b * b - (square - radii[k] * radii[k])
            if discriminant >= 0.0:
                distance = -b - np.sqrt(discriminant)
                if 0.0 < distance < nearest[i]:
                    nearest[i] = distance
    return nearest


def smoothing(track: Array, passes: int) -> Array:
    smooth = track.copy()
    for _ in range(passes):
        smooth[2:-2] = (smooth[:-4] + 4.0 * smooth[1:-3] + 6.0 * smooth[2:-2] + 4.0 * smooth[3:-1] + smooth[4:]) / 16.0
    return smooth


def arc_inputs(rng: np.random.Generator, n: int) -> Arguments:
    return rng.random(n), rng.random(n), rng.random(n), rng.random(n)


def allpairs_inputs(rng: np.random.Generator, n: int, m: int, d: int) -> Arguments:
    return rng.random((n, d)), rng.random((m, d))


def ray_inputs(rng: np.random.Generator, rays: int, spheres: int) -> Arguments:
    directions = rng.normal(size=(rays, 3))
    directions /= np.sqrt(np.sum(directions**2, axis=1, keepdims=True))
    return np.zeros(3), directions, rng.normal(size=(spheres, 3)) * 8.0, rng.uniform(0.5, 2.0, spheres)


def smoothing_inputs(rng: np.random.Generator, n: int, passes: int) -> Arguments:
    return np.cumsum(rng.normal(size=n)), passes


PROGRAMS = (
    Program(
        name="arc_distance",
        summary="great-circle distances between pairs of points",
        function=arc_distance,
        inputs=arc_inputs,
        sizes={"XS": (50,), "S": (10_000,), "M": (500_000,), "L": (5_000_000,)},
        jax=True,
    ),
    Program(
        name="allpairs",
        summary="distances between all points of two sets, by broadcasting",
        function=allpairs,
        inputs=allpairs_inputs,
        sizes={"XS": (9, 7, 3), "S": (100, 80, 8), "M": (1_000, 1_000, 8), "L": (3_000, 3_000, 8)},
        loops=allpairs_loops,
        jax=True,
    ),
    Program(
        name="ray_sphere",
        summary="nearest hit of many rays among spheres",
        function=ray_sphere,
        inputs=ray_inputs,
        sizes={"XS": (40, 4), "S": (5_000, 8), "M": (100_000, 16), "L": (1_000_000, 16)},
        tolerance=Tolerance(rtol=1e-8, atol=1e-10),
        loops=ray_sphere_loops,
    ),
    Program(
        name="smoothing",
        summary="five-point binomial smoothing of a track, in place, repeated",
        function=smoothing,
        inputs=smoothing_inputs,
        sizes={"XS": (30, 2), "S": (5_000, 4), "M": (500_000, 5), "L": (5_000_000, 5)},
    ),
)
