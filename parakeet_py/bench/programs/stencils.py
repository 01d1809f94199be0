"""Grids updated from their neighbours, in slices: relaxation, hotspot and heat equations, FDTD, the game of life."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, prange


def relaxation_2d(old: Array, new: Array, rounds: int) -> None:
    for _ in range(rounds):
        new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
        old[1:-1, 1:-1] = 0.25 * (new[:-2, 1:-1] + new[2:, 1:-1] + new[1:-1, :-2] + new[1:-1, 2:])


def relaxation_2d_loops(old: Array, new: Array, rounds: int) -> None:
    rows, columns = old.shape
    for _ in range(rounds):
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                new[i, j] = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])
        for i in prange(1, rows - 1):
            for j in range(1, columns - 1):
                old[i, j] = 0.25 * (new[i - 1, j] + new[i + 1, j] + new[i, j - 1] + new[i, j + 1])


def hotspot(temperature: Array, power: Array, ambient: float, steps: int) -> Array:
    t = temperature
    for _ in range(steps):
        padded = np.empty((t.shape[0] + 2, t.shape[1] + 2))
        padded[1:-1, 1:-1] = t
        padded[0, 1:-1] = t[0]
        padded[-1, 1:-1] = t[-1]
        padded[1:-1, 0] = t[:, 0]
        padded[1:-1, -1] = t[:, -1]
        vertical = padded[:-2, 1:-1] + padded[2:, 1:-1] - 2.0 * t
        horizontal = padded[1:-1, :-2] + padded[1:-1, 2:] - 2.0 * t
        t = t + 0.1 * (power + 0.5 * vertical + 0.5 * horizontal + 0.05 * (ambient - t))
    return t


def heat_3d(a: Array, b: Array, rounds: int) -> None:
    for _ in range(rounds):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
            + b[1:-1, 1:-1, 1:-1]
        )


def fdtd_2d(ex: Array, ey: Array, hz: Array, source: Array) -> None:
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def game_of_life(board: Array, generations: int) -> None:
    for _ in range(generations):
        neighbours = (
            board[:-2, :-2]
            + board[:-2, 1:-1]
            + board[:-2, 2:]
            + board[1:-1, :-2]
            + board[1:-1, 2:]
            + board[2:, :-2]
            + board[2:, 1:-1]
            + board[2:, 2:]
        )
        board[1:-1, 1:-1] = (neighbours == 3) | ((board[1:-1, 1:-1] == 1) & (neighbours == 2))


def relaxation_inputs(rng: np.random.Generator, n: int, rounds: int) -> Arguments:
    grid = rng.random((n, n))
    return grid, grid.copy(), rounds


def hotspot_inputs(rng: np.random.Generator, n: int, steps: int) -> Arguments:
    return 320.0 + 10.0 * rng.random((n, n)), rng.random((n, n)), 300.0, steps


def heat_inputs(rng: np.random.Generator, n: int, rounds: int) -> Arguments:
    grid = rng.random((n, n, n))
    return grid, grid.copy(), rounds


def fdtd_inputs(rng: np.random.Generator, n: int, steps: int) -> Arguments:
    return rng.random((n, n + 1)), rng.random((n, n + 1)), rng.random((n, n + 1)), np.sin(np.arange(steps) * 0.1)


def life_inputs(rng: np.random.Generator, n: int, generations: int) -> Arguments:
    board = np.zeros((n + 2, n + 2), dtype=np.uint8)
    board[1:-1, 1:-1] = rng.random((n, n)) < 0.3
    return board, generations


PROGRAMS = (
    Program(
        name="relaxation_2d",
        summary="four-neighbour mean, repeated between two grids",
        function=relaxation_2d,
        inputs=relaxation_inputs,
        sizes={"XS": (11, 2), "S": (128, 4), "M": (1_000, 5), "L": (4_096, 2)},
        mutates=(0, 1),
        loops=relaxation_2d_loops,
        c=True,
    ),
    Program(
        name="hotspot",
        summary="heat on a chip: padded borders, sources, cooling",
        function=hotspot,
        inputs=hotspot_inputs,
        sizes={"XS": (9, 3), "S": (64, 10), "M": (512, 10), "L": (2_048, 5)},
    ),
    Program(
        name="heat_3d",
        summary="seven-point heat equation in three dimensions",
        function=heat_3d,
        inputs=heat_inputs,
        sizes={"XS": (7, 2), "S": (20, 4), "M": (80, 5), "L": (200, 3)},
        mutates=(0, 1),
    ),
    Program(
        name="fdtd_2d",
        summary="electromagnetic waves on three staggered grids",
        function=fdtd_2d,
        inputs=fdtd_inputs,
        sizes={"XS": (8, 3), "S": (64, 10), "M": (400, 20), "L": (1_500, 10)},
        mutates=(0, 1, 2),
    ),
    Program(
        name="game_of_life",
        summary="generations of a dead-bordered board of bytes",
        function=game_of_life,
        inputs=life_inputs,
        sizes={"XS": (10, 3), "S": (100, 10), "M": (1_000, 10), "L": (4_000, 5)},
        mutates=(0,),
    ),
)
