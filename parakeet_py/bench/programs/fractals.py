"""Escape-time fractals: mandelbrot as scalar loops with an early exit, julia as masked array stores."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def mandelbrot(left: float, right: float, bottom: float, top: float, width: int, height: int, limit: int) -> Array:
    image = np.zeros((height, width), dtype=np.int64)
    for row in range(height):
        y = bottom + (top - bottom) * row / height
        for column in range(width):
            x = left + (right - left) * column / width
            re = 0.0
            im = 0.0
            steps = 0
            while steps < limit and re * re + im * im <= 4.0:
                re, im = re * re - im * im + x, 2.0 * re * im + y
                steps += 1
            image[row, column] = steps
    return image


def mandelbrot_masks(
    left: float, right: float, bottom: float, top: float, width: int, height: int, limit: int
) -> Array:
    x = (left + (right - left) * np.arange(width) / width)[None, :]
    y = (bottom + (top - bottom) * np.arange(height) / height)[:, None]
    re = np.zeros((height, width))
    im = np.zeros((height, width))
    image = np.zeros((height, width), dtype=np.int64)
    inside = np.ones((height, width), dtype=bool)
    for _ in range(limit):
        inside &= re * re + im * im <= 4.0
        if not inside.any():
            break
        re_next = np.where(inside, re * re - im * im + x, re)
        im = np.where(inside, 2.0 * re * im + y, im)
        re = re_next
        image[inside] += 1
    return image


def mandelbrot_prange(
    left: float, right: float, bottom: float, top: float, width: int, height: int, limit: int
) -> Array:
    image = np.zeros((height, width), dtype=np.int64)
    for row in prange(height):
        y = bottom + (top - bottom) * row / height
        for column in range(width):
            x = left + (right - left) * column / width
            re = 0.0
            im = 0.0
            steps = 0
            while steps < limit and re * re + im * im <= 4.0:
                re, im = re * re - im * im + x, 2.0 * re * im + y
                steps += 1
            image[row, column] = steps
    return image


def julia(plane: Array, c: complex, limit: int) -> Array:
    z = plane.copy()
    steps = np.zeros(plane.shape, dtype=np.int64)
    for _ in range(limit):
        inside = z.real * z.real + z.imag * z.imag <= 4.0
        z = np.where(inside, z * z + c, z)
        steps += inside
    return steps


def julia_loops(plane: Array, c: complex, limit: int) -> Array:
    rows, columns = plane.shape
    steps = np.zeros((rows, columns), dtype=np.int64)
    for i in prange(rows):
        for j in range(columns):
            z = plane[i, j]
            n = 0
            while n < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = z * z + c
                n += 1
            steps[i, j] = n
    return steps


def mandelbrot_inputs(rng: np.random.Generator, width: int, height: int, limit: int) -> Arguments:
    return -2.0, 0.5, -1.25, 1.25, width, height, limit


def julia_inputs(rng: np.random.Generator, width: int, height: int, limit: int) -> Arguments:
    x = np.linspace(-1.5, 1.5, width)
    y = np.linspace(-1.0, 1.0, height)
    return x[None, :] + 1j * y[:, None], -0.4 + 0.6j, limit


PROGRAMS = (
    Program(
        name="mandelbrot",
        summary="escape times, as scalar loops (NumPy: masks)",
        function=mandelbrot,
        inputs=mandelbrot_inputs,
        sizes={"XS": (12, 9, 20), "S": (100, 80, 50), "M": (500, 400, 100), "L": (1_000, 1_000, 100)},
        tolerance=Tolerance(peer_mismatch=0.002),
        numpy=mandelbrot_masks,
        loops=mandelbrot_prange,
        c=True,
    ),
    Program(
        name="julia",
        summary="escape times of z*z + c, over whole complex arrays",
        function=julia,
        inputs=julia_inputs,
        sizes={"XS": (12, 9, 20), "S": (100, 80, 50), "M": (300, 200, 100), "L": (800, 600, 150)},
        tolerance=Tolerance(peer_mismatch=0.002),
        loops=julia_loops,
        jax=True,
    ),
)
