"""Stencils and sweeps over grids, written with slices and with loops."""

import numpy as np

from tests.arrays import arr
from tests.corpus import large, program

GRIDS = [(arr("f8", 6, 7),), (arr("f4", 6, 7),), (arr("f8", 6, 7, layout="F"),), (arr("f8", 3, 3),), (arr("f8", 2, 5),)]
STEPS = [(arr("f8", 6, 7), 3), (arr("f4", 5, 5), 2), (arr("f8", 6, 7), 0), large(arr("f8", 200, 150), 4)]
LINES = [(arr("f8", 9), arr("f8", 9), 3), (arr("f4", 9), arr("f4", 9), 2), (arr("f8", 2), arr("f8", 2), 1)]


@program([*GRIDS, large(arr("f8", 300, 200)), large(arr("f4", 301, 203, layout="F"))], kernels=1)
def four_neighbour_mean(u):
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


@program(STEPS, mutates=(0,))
def relaxation(u, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


@program(STEPS[:3])
def relaxation_of_copies(u, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        u = v
    return u


@program(LINES, mutates=(0, 1))
def jacobi_1d(a, b, steps):
    for _ in range(steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@program([(arr("f8", 5, 6), arr("f8", 5, 6), 2), (arr("f4", 4, 4), arr("f4", 4, 4), 1)], mutates=(0, 1))
def jacobi_2d(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@program(
    [
        (arr("f8", 4, 5, 6), arr("f8", 4, 5, 6), 2),
        (arr("f4", 4, 4, 4), arr("f4", 4, 4, 4), 1),
        (arr("f8", 3, 4, 21), arr("f8", 3, 4, 21), 2),  # rows of two vectors and a rest, of two vectors, of one number
        (arr("f8", 3, 4, 18, values="special"), arr("f8", 3, 4, 18), 1),
        (arr("f4", 4, 3, 23), arr("f4", 4, 3, 23), 2),
        (arr("f8", 4, 4, 3), arr("f8", 4, 4, 3), 1),
        (arr("f8", 4, 4, 2), arr("f8", 4, 4, 2), 1),
    ],
    mutates=(0, 1),
)
def heat_3d(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a, b = b, a


@program(
    [
        (arr("f8", 3, 13), arr("f8", 3, 13), 2.0),
        (arr("f4", 3, 37), arr("f4", 3, 37), np.float32(0.5)),
        (arr("f8", 2, 9, layout="F"), arr("f8", 2, 9), np.inf),
        (arr("f8", 3, 0), arr("f8", 3, 0), 1.0),
        (arr("f8", 4, 18, layout="reversed"), arr("f8", 4, 18, layout="stepped"), 1.0),
        (arr("i4", 2, 11), arr("i8", 2, 11), 3),
    ],
    mutates=(0, 1),
)
def powers_of_rows(u, v, w):
    """Long bodies over short rows, in place: the last elements of a row are done in another way than the first."""
    u[:] = ((((u * v - u) * v + w) * v - u) * u + v) * (u - w) - v * (u + v) * (v - w)
    v[:, 1:] = ((u[:, 1:] * v[:, :-1] - u[:, :-1]) * v[:, 1:] + w) * u[:, 1:] - (u[:, :-1] - v[:, 1:]) * (
        u[:, 1:] + v[:, :-1]
    )


@program([(arr("f8", 5, 6), arr("f8", 5, 6, seed=1), arr("f8", 5, 6, seed=2), arr("f8", 3))], mutates=(0, 1, 2))
def fdtd_2d(ex, ey, hz, source):
    for t in range(source.shape[0]):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@program([(arr("u1", 6, 7, values=[0, 1, 1, 0, 0, 1, 0, 1]), 2), (arr("i4", 5, 5, values=[0, 1, 1, 0, 0]), 3)])
def game_of_life(cells, steps):
    for _ in range(steps):
        n = np.zeros_like(cells)
        n[1:-1, 1:-1] = (
            cells[:-2, :-2] + cells[:-2, 1:-1] + cells[:-2, 2:] + cells[1:-1, :-2]
            + cells[1:-1, 2:] + cells[2:, :-2] + cells[2:, 1:-1] + cells[2:, 2:]
        )  # fmt: skip
        cells = ((n == 3) | ((cells == 1) & (n == 2))).astype(cells.dtype)
    return cells


@program([(arr("b1", 6, 5), 2), (arr("b1", 3, 3), 1)])
def game_of_life_by_roll(cells, steps):
    for _ in range(steps):
        count = sum(np.roll(np.roll(cells.astype(int), i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        cells = (count == 3) | (cells & (count == 2))
    return cells


@program(GRIDS[:3])
def laplacian_by_loops(u):
    out = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            out[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
    return out


@program([(arr("f8", 5, 6), 2), (arr("f4", 4, 4), 1)], mutates=(0,))
def seidel_2d(a, steps):
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1]
            for j in range(1, a.shape[1] - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@program([(arr("f8", 8), arr("f8", 3)), (arr("f4", 8), arr("f4", 2)), (arr("i4", 5), arr("i4", 5))])
def convolution_by_loops(x, kernel):
    k = kernel.shape[0]
    out = np.zeros(x.shape[0] - k + 1, x.dtype)
    for i in range(out.shape[0]):
        for j in range(k):
            out[i] += x[i + j] * kernel[j]
    return out


@program([(arr("f8", 6, 7), arr("f8", 3, 3)), (arr("f4", 5, 5), arr("f4", 2, 2))], regrouped=16)
def convolution_by_windows(image, kernel):
    h, w = kernel.shape
    out = np.empty((image.shape[0] - h + 1, image.shape[1] - w + 1), image.dtype)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(image[i : i + h, j : j + w] * kernel)
    return out


@program([(arr("f8", 5, 6),), (arr("f4", 5, 6),)], ulp=1)
def sobel(image):
    gx = image[:-2, 2:] - image[:-2, :-2] + 2 * (image[1:-1, 2:] - image[1:-1, :-2]) + image[2:, 2:] - image[2:, :-2]
    gy = image[2:, :-2] - image[:-2, :-2] + 2 * (image[2:, 1:-1] - image[:-2, 1:-1]) + image[2:, 2:] - image[:-2, 2:]
    return np.sqrt(gx * gx + gy * gy)


@program([(arr("f8", 6, 5), 2), (arr("f4", 4, 6), 1)], mutates=(0,))
def boundary_conditions(p, steps):
    for _ in range(steps):
        p[1:-1, 1:-1] += 0.1 * (p[1:-1, 2:] - p[1:-1, :-2])
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = 0
        p[-1] = p[-2] * 0.5


@program([(arr("f8", 6, 7),), (arr("f8", 6, 7, layout="stepped"),)])
def laplacian_of_laplacian(u):
    lap = 4.0 * u[1:-1, 1:-1] - (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    flux = lap[1:, :] - lap[:-1, :]
    return np.where(flux * (u[2:-1, 1:-1] - u[1:-2, 1:-1]) > 0, 0, flux)


@program([(arr("f8", 4, 5, values="positive"), arr("f8", 4, 5), 2)], ulp=2, mutates=(0,))
def hotspot(temperature, power, steps):
    for _ in range(steps):
        padded = np.empty((temperature.shape[0] + 2, temperature.shape[1] + 2))
        padded[1:-1, 1:-1] = temperature
        padded[0], padded[-1] = padded[1], padded[-2]
        padded[:, 0], padded[:, -1] = padded[:, 1], padded[:, -2]
        temperature += 0.1 * (
            power + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * temperature
        )


@program([(arr("f8", 8), 2, 0.5), (arr("f4", 8), 3, 0.25)])
def periodic_diffusion(u, steps, c):
    for _ in range(steps):
        u = u + c * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


@program([(arr("f8", 60), arr("f8", 5, seed=1)), (arr("f8", 30), arr("f8", 25, seed=1))], sums=8)
def convolved(x, window):
    return np.convolve(x, window), np.convolve(window, x, "same"), np.correlate(x, window)


@program([(arr("i2", 4), window) for window in (2 + 1j, complex(float("inf"), 0.0), complex(1.0, float("nan")))])
def convolved_with_what_may_not_be_finite(x, number):
    return np.convolve(x, [number, 1]), np.correlate(x[:3] * 0.5, [number, 1], "full")


@program(
    [
        (arr("f8", 5, 7), 3),
        (arr("f8", 1, 1), 2),
        (arr("f8", 1, 4), 1),
        (arr("f8", 2, 3), 2),
        (arr("f8", 0, 3), 1),
    ]
)
def torus(u, times):
    """Remainders of what is out of range by less than the divisor, and of what is farther out."""
    n, m = u.shape
    for _ in range(times):
        v = np.empty_like(u)
        for i in range(n):
            for j in range(m):
                v[i, j] = (
                    u[(i + 1) % n, j] - u[(i - 1) % n, (j + 1) % m] + 2 * u[i, (j - 1) % m] + u[(i + 3) % n, j - 1]
                )
        u = v
    return u


@program([(arr("i8", 6), 4), (arr("i8", 1), 2), (arr("i8", 5), 0)], mutates=(0,))
def generations(u, times):
    """New memory is apart from what was there before, not from what comes after."""
    older, shared = u, u
    for t in range(times):
        new = np.zeros_like(u)
        for i in range(1, len(u)):
            new[i] = u[i - 1] + older[i] - shared[(i + t) % len(u)]
        older, u = u, new
        if t % 2:
            shared = new
        for i in range(1, len(u)):
            shared[i - 1] = u[i] + 1
    return older.copy(), u.copy(), shared.copy()


@program([(arr("i8", 5, 6), arr("f8", 5, 6)), (arr("i8", 1, 1), arr("f8", 1, 1)), (arr("i8", 1, 3), arr("f8", 1, 3))])
def neighbours(cells, x):
    """Short loops with bounds tests inside long ones; some turns count down, leave early, or go on from the last."""
    n, m = cells.shape
    total, alive, last = np.zeros_like(cells), np.zeros((n, m), np.int64), np.zeros_like(x)
    for i in range(n):
        for j in range(m):
            count, weight, seen = 0, 1.0, 0
            for di in range(-1, 2):
                for dj in range(1, -2, -1):
                    if di == 0 and dj == 0:
                        continue
                    if 0 <= i + di < n and 0 <= j + dj < m:
                        total[i, j] += cells[i + di, j + dj]
                        count += cells[i + di, j + dj] > 0
                        weight = weight * 0.5 + x[i + di, j + dj]
            for k in range(2):
                seen, count = count, seen + k
                if seen > 5:
                    break
            alive[i, j], last[i, j] = seen - count, weight
    return total, alive, last


@program(
    [
        (arr("f8", 3, 9), 1e-300, 1.0),
        (arr("f8", 2, 7, values="special"), 1e308, 0.0),
        (arr("f4", 2, 9), 3e38, np.float32(-0.0)),
        (arr("f4", 2, 6, values="special"), 1e-38, np.float32(2.0)),
        (arr("f8", 3, 1), 1.0, np.nan),
        (arr("f8", 0, 4), 1.0, 1.0),
    ],
    mutates=(0,),
)
def divided_in_turn(x, scale, t):
    """What a division gives goes into the next one: through memory, through a name, in a loop that ends early."""
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = (x[i, j] * scale + x[i, j - 1]) / 9.0
        for j in range(x.shape[1]):
            t = (x[i, j] - t) / -10
            x[i, j] += t / 0.1
        j = 0
        while j < x.shape[1] and abs(t) < 1e300:
            t = t / 7.0 - x[i, j]
            j += 1
    return t


@program([(arr("f8", 4, 64, 22),), (arr("f8", 3, 5, 4),), (arr("f8", 2, 64, 22),)], mutates=(0,))
def planes_read_again(a):
    """Rows go block by block where several planes do not fit into the first-level cache."""
    out = np.zeros_like(a)
    out[1:-1, 1:-1, 1:-1] = a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, :-2, 2:]
    a[1:-1, 1:-1, 1:-1] = out[2:, 1:-1, 1:-1] - out[:-2, 1:-1, 1:-1] * a[1:-1, 1:-1, 1:-1]
    return out
