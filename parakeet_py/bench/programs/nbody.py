"""Gravitation between all pairs of n bodies: broadcast differences, a power, row sums; one leap-frog step."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def nbody(position: Array, velocity: Array, mass: Array, dt: float, softening: float) -> tuple[Array, Array]:
    x = position[:, 0]
    y = position[:, 1]
    z = position[:, 2]
    dx = x[None, :] - x[:, None]
    dy = y[None, :] - y[:, None]
    dz = z[None, :] - z[:, None]
    pull = mass * (dx**2 + dy**2 + dz**2 + softening**2) ** -1.5
    acceleration = np.stack((np.sum(dx * pull, axis=1), np.sum(dy * pull, axis=1), np.sum(dz * pull, axis=1)), axis=1)
    velocity = velocity + dt * acceleration
    return position + dt * velocity, velocity


def nbody_loops(position: Array, velocity: Array, mass: Array, dt: float, softening: float) -> tuple[Array, Array]:
    n = len(position)
    new_position = np.empty_like(position)
    new_velocity = np.empty_like(velocity)
    for i in prange(n):
        ax = 0.0
        ay = 0.0
        az = 0.0
        for j in range(n):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening * softening
            pull = mass[j] / (square * np.sqrt(square))
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        new_velocity[i, 0] = velocity[i, 0] + dt * ax
        new_velocity[i, 1] = velocity[i, 1] + dt * ay
        new_velocity[i, 2] = velocity[i, 2] + dt * az
        for c in range(3):
            new_position[i, c] = position[i, c] + dt * new_velocity[i, c]
    return new_position, new_velocity


def inputs(rng: np.random.Generator, n: int) -> Arguments:
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3)) * 0.1, rng.uniform(0.5, 1.5, n) / n, 0.01, 0.1


PROGRAM = Program(
    name="nbody",
    summary="one step of n bodies under gravitation, by broadcasting",
    function=nbody,
    inputs=inputs,
    sizes={"XS": (12,), "S": (128,), "M": (1_024,), "L": (2_048,)},
    tolerance=Tolerance(rtol=1e-9, atol=1e-11),
    loops=nbody_loops,
    jax=True,
    c=True,
)
