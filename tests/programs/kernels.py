"""Whole small kernels in the manner of scientific codes: dense solvers, particles, fractals, sparse, images."""

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, large, program

POSITIONS = arr("f8", 4, 3)


def _spd(n):
    a = arr("f8", n, n).make()
    return a @ a.T + n * np.eye(n)


@program([lambda: (_spd(4),), lambda: (_spd(1),), lambda: (np.asfortranarray(_spd(5)),)], regrouped=32, mutates=(0,))
def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@program([lambda: (_spd(4),), lambda: (_spd(2),)], regrouped=32, mutates=(0,))
def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@program([lambda: (np.tril(_spd(5)), arr("f8", 5).make(), np.zeros(5))], regrouped=32, mutates=(1,))
def triangular_solve(lower, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] + 1 - lower[i, :i] @ x[:i]) / lower[i, i]


@program([(arr("f8", 6, values="unit"),), (arr("f8", 2, values="unit"),)], sums=64)
def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@program([(arr("f8", 5, 3),), (arr("f8", 4, 4, layout="F"),)], sums=64, mutates=(0,))
def gramschmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@program([(1.5, 0.5, arr("f8", 4, 4), arr("f8", 4, 3))], regrouped=32, mutates=(2,))
def syrk(alpha, beta, c, a):
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


@program([(arr("f8", 5, 3),), (arr("f4", 6, 2),)], sums=64, mutates=(0,))
def covariance(data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((data.shape[1], data.shape[1]), data.dtype)
    for i in range(data.shape[1]):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
    return cov


@program([(arr("f8", 6, 2), 0.1), (arr("f8", 4, 3), 100.0)], regrouped=64, mutates=(0,))
def standardised_columns(data, floor):
    deviation = np.std(data, axis=0)
    deviation[deviation <= floor] = 1.0
    data -= np.mean(data, axis=0)
    data /= deviation
    return deviation


@program(
    [
        (POSITIONS, arr("f8", 4, values="positive"), 0.1),
        (arr("f4", 3, 3), arr("f4", 3, values="positive"), np.float32(0.5)),
    ],
    sums=256,
)
def nbody_acceleration(pos, mass, softening):
    dx = pos[:, 0:1].T - pos[:, 0:1]
    dy = pos[:, 1:2].T - pos[:, 1:2]
    dz = pos[:, 2:3].T - pos[:, 2:3]
    inv = dx**2 + dy**2 + dz**2 + softening**2
    inv[inv > 0] = inv[inv > 0] ** (-1.5)
    return np.stack(((dx * inv) @ mass, (dy * inv) @ mass, (dz * inv) @ mass), axis=1)


@program([(POSITIONS, arr("f8", 4, 3, seed=1), arr("f8", 4, values="positive"), 2)], regrouped=256, mutates=(0, 1))
def nbody_by_loops(pos, vel, mass, steps):
    for _ in range(steps):
        for i in range(pos.shape[0]):
            for j in range(pos.shape[0]):
                d = pos[j] - pos[i]
                r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.01
                vel[i] += 0.01 * mass[j] * d / (r2 * np.sqrt(r2))
        pos += 0.01 * vel


@program([(8, 5, 20), (1, 1, 3), large(120, 90, 40)])
def mandelbrot(width, height, limit):
    out = np.zeros((height, width), dtype=np.int64)
    for i in range(height):
        for j in range(width):
            cr, ci = -2.0 + 3.0 * j / width, -1.0 + 2.0 * i / height
            zr = zi = 0.0
            n = 0
            while n < limit and zr * zr + zi * zi <= 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                n += 1
            out[i, j] = n
    return out


@program([(9, 7, 12), (2, 3, 4)])
def mandelbrot_of_arrays(width, height, limit):
    x = np.linspace(-2, 0.5, width, dtype=np.float64)
    y = np.linspace(-1.25, 1.25, height)
    c = x + y[:, None] * 1j
    count = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for n in range(limit):
        inside = np.less(abs(z), 2.0)
        count[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    return count


@program([(arr("c16", 5, 4, values="unit"), -0.7 + 0.27j, 15)])
def julia(z, c, limit):
    out = np.zeros(z.shape, np.int32)
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            w = z[i, j]
            while abs(w) < 2 and out[i, j] < limit:
                w = w * w + c
                out[i, j] += 1
    return out


@program(
    [(arr("f8", 6), arr("u4", 6, values=[0, 2, 1, 3, 0, 2]), arr("u4", 5, values=[0, 2, 2, 5, 6]), arr("f8", 4))],
    regrouped=16,
)
def spmv(values, columns, starts, x):
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(starts.size - 1):
        cols = columns[starts[i] : starts[i + 1]]
        y[i] = values[starts[i] : starts[i + 1]] @ x[cols]
    return y


@program([(arr("u1", 9), 0x1021), (arr("u1", 0), 0x1021), (arr("u1", 6, values="special"), 0xA001)])
def crc16(data, poly):
    crc = 0xFFFF
    for b in data:
        current = 0xFF & b
        for _ in range(8):
            if (crc & 1) ^ (current & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            current >>= 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF


@program([(arr("u1", 9), 5), (arr("i8", 6, values="special"), -3), (arr("u4", 7), 1 << 40), (arr("i2", 0), 1)])
def choices_by_bits(data, mask):
    """Each is by a bit of what it changes: one side or both, of one name or two, of a NumPy number or Python's."""
    state, other, turns = 0x1234, 1, 0
    for b in data:
        n = int(b) & 0xFFFF
        for _ in range(5):
            if (state ^ n) & 1:
                state = (state >> 1) ^ mask
                other = state | 1
            else:
                state >>= 1
            if state & 2 == 0:
                state ^= 0x55
            if not n & 4:
                n = n >> 1
            else:
                n = (n >> 2) | 8
                turns += 1
            if b & 1:
                b = b >> 1
            else:
                b = ~b
        state &= 0xFFFFFFFF
    return state, other, turns


@program([(arr("i4", 9, values=[0, 1, 2, 3, 3, 1, 0, 2]),), (arr("i4", 2, values=[0, 3]),)])
def nussinov(seq):
    n = len(seq)
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            paired = 1 if seq[i] + seq[j] == 3 and i < j - 1 else 0
            table[i, j] = max(table[i, j], table[i + 1, j - 1] + paired)
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program([(arr("f8", 6, 2), arr("f8", 3, 2, seed=1), 3), (arr("f4", 8, 3), arr("f4", 2, 3, seed=1), 2)], regrouped=64)
def kmeans(points, centres, steps):
    centres = centres.copy()
    nearest = np.zeros(points.shape[0], np.int64)
    for _ in range(steps):
        nearest = np.argmin(np.sum((points[:, None] - centres) ** 2, 2), 1)
        for k in range(centres.shape[0]):
            members = points[nearest == k]
            if len(members):
                centres[k] = members.mean(axis=0)
    return nearest, centres


@program([(arr("f8", 6, values="unit"), arr("f8", 6, values="unit", seed=1), 1.0, 0.5)], ulp=256)
def arc_distance(theta_1, phi_1, theta_2, phi_2):
    t = np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(t), np.sqrt(1 - t))


@program([(arr("f4", 3, 5), arr("f4", 5, 4), arr("f4", 4), arr("f4", 4, 2), arr("f4", 2))], regrouped=256)
def mlp(x, w1, b1, w2, b2):
    x = np.maximum(x @ w1 + b1, 0)
    x = x @ w2 + b2
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@program([(arr("f4", 1, 5, 5, 2), arr("f4", 3, 3, 2, 4), arr("f4", 4))], regrouped=64)
def conv2d(image, weights, bias):
    k, n = weights.shape[0], image.shape[0]
    h, w = image.shape[1] - k + 1, image.shape[2] - k + 1
    out = np.empty((n, h, w, weights.shape[3]), dtype=np.float32)
    for i in range(h):
        for j in range(w):
            out[:, i, j, :] = np.sum(
                image[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return out + bias


@program([(arr("f4", 1, 4, 6, 2),)])
def maxpool(x):
    out = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            out[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return out


@program([(arr("f8", 5, 3), arr("f8", 3, values=[0.3, 0.5, 2.0]), 1.0)], regrouped=64)
def ray_sphere(directions, centre, radius):
    d = directions / np.sqrt(np.sum(directions * directions, axis=1))[:, None]
    b = d @ centre
    disc = b * b - (centre @ centre - radius * radius)
    return np.where(disc > 0, b - np.sqrt(np.where(disc > 0, disc, 0)), np.inf)


@program([(arr("f8", 4, 4),), (arr("f4", 3, 3),)], ulp=ELEMENTARY * 4)
def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@program([(arr("f8", 4, 5), 0.25), (arr("f4", 3, 4), 0.5)], ulp=512)
def deriche_rows(image, alpha):
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    b1, b2 = 2.0 ** (-alpha), -np.exp(-2.0 * alpha)
    y = np.empty_like(image)
    y[:, 0] = k * image[:, 0]
    y[:, 1] = k * image[:, 1] + b1 * y[:, 0]
    for j in range(2, image.shape[1]):
        y[:, j] = k * image[:, j] + b1 * y[:, j - 1] + b2 * y[:, j - 2]
    return y


@program([(arr("f8", 4, 5), arr("f8", 4, 5, seed=1), 2)], ulp=64, mutates=(0,))
def adi_sweep(u, v, steps):
    n = u.shape[1]
    p, q = np.zeros_like(u), np.zeros_like(u)
    for _ in range(steps):
        p[:, 0], q[:, 0] = 0.0, v[:, 0]
        for j in range(1, n - 1):
            p[:, j] = -0.5 / (0.5 * p[:, j - 1] + 2.5)
            q[:, j] = (u[:, j] + 0.5 * q[:, j - 1]) / (0.5 * p[:, j - 1] + 2.5)
        for j in range(n - 2, 0, -1):
            u[:, j] = p[:, j] * u[:, j + 1] + q[:, j]


@program([(arr("f8", 3, 2, 4), arr("f8", 4, 4)), (arr("f8", 1, 1, 2), arr("f8", 2, 2))], sums=32, mutates=(0,))
def doitgen(a, c4):
    r, q, p = a.shape
    a[:] = np.reshape(np.reshape(a, (r, q, 1, p)) @ c4, (r, q, p))


@program([(arr("i8", 3, 4), arr("i8", 3, 4, seed=1), 4, 3, 9)])
def clipped_sum(x, y, a, b, c):
    return np.clip(x, 2, 10) * a + y * b + c


@program([(arr("f8", 9, values="positive"), arr("f8", 9), 3)], regrouped=16)
def azimuthal_mean(radius, data, bins):
    highest = radius.max()
    out = np.zeros(bins)
    for i in range(bins):
        inner, outer = highest * i / bins, highest * (i + 1) / bins
        mask = np.logical_and(inner <= radius, radius < outer)
        out[i] = data[mask].mean() if mask.any() else 0
    return out
