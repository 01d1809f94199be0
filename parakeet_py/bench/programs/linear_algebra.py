"""Matrices: products by loops and by `@`, dot, a sparse matrix times a vector, covariance, a small neural network."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, Tolerance, prange


def matmul_loops(a: Array, b: Array) -> Array:
    rows, inner = a.shape
    columns = b.shape[1]
    result = np.zeros((rows, columns))
    for i in range(rows):
        for k in range(inner):
            for j in range(columns):
                result[i, j] += a[i, k] * b[k, j]
    return result


def matmul_prange(a: Array, b: Array) -> Array:
    rows, inner = a.shape
    columns = b.shape[1]
    result = np.zeros((rows, columns))
    for i in prange(rows):
        for k in range(inner):
            for j in range(columns):
                result[i, j] += a[i, k] * b[k, j]
    return result


def matmul(a: Array, b: Array) -> Array:
    return a @ b


def dot(a: Array, b: Array) -> np.float64:
    return np.dot(a, b)


def spmv(starts: Array, columns: Array, values: Array, x: Array) -> Array:
    y = np.empty(len(starts) - 1)
    for i in range(len(y)):
        row = slice(starts[i], starts[i + 1])
        y[i] = np.sum(values[row] * x[columns[row]])
    return y


def spmv_loops(starts: Array, columns: Array, values: Array, x: Array) -> Array:
    n = len(starts) - 1
    y = np.empty(n)
    for i in prange(n):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


def covariance(data: Array) -> Array:
    centred = data - np.mean(data, axis=0)
    return centred.T @ centred / (data.shape[0] - 1)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def softmax_rows(x: Array) -> Array:
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return shifted / np.sum(shifted, axis=-1, keepdims=True)


def softmax(x: Array) -> Array:
    top = np.max(x, axis=-1, keepdims=True)
    exponentials = np.exp(x - top)
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array) -> Array:
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax_rows(x @ w3 + b3)


def conv2d(image: Array, weights: Array, bias: Array) -> Array:
    k = weights.shape[0]
    batch, height, width, _ = image.shape
    output = np.empty((batch, height - k + 1, width - k + 1, weights.shape[3]), dtype=np.float32)
    for i in range(height - k + 1):
        for j in range(width - k + 1):
            window = image[:, i : i + k, j : j + k, :, np.newaxis]
            output[:, i, j, :] = np.sum(window * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return output + bias


def conv2d_loops(image: Array, weights: Array, bias: Array) -> Array:
    k = weights.shape[0]
    batch, height, width, channels = image.shape
    filters = weights.shape[3]
    output = np.empty((batch, height - k + 1, width - k + 1, filters), dtype=np.float32)
    for i in prange(height - k + 1):
        for n in range(batch):
            for j in range(width - k + 1):
                for f in range(filters):
                    output[n, i, j, f] = bias[f]
                for di in range(k):
                    for dj in range(k):
                        for c in range(channels):
                            for f in range(filters):
                                output[n, i, j, f] += image[n, i + di, j + dj, c] * weights[di, dj, c, f]
    return output


def matrices(rng: np.random.Generator, n: int) -> Arguments:
    return rng.random((n, n)), rng.random((n, n))


def vectors(rng: np.random.Generator, n: int) -> Arguments:
    return rng.random(n), rng.random(n)


def spmv_inputs(rng: np.random.Generator, n: int, per_row: int) -> Arguments:
    counts = rng.integers(1, 2 * per_row, n)
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    entries = int(starts[-1])
    return starts, rng.integers(0, n, entries), rng.random(entries), rng.random(n)


def covariance_inputs(rng: np.random.Generator, n: int, features: int) -> Arguments:
    return (rng.random((n, features)),)


def softmax_inputs(rng: np.random.Generator, batch: int, heads: int, length: int) -> Arguments:
    return (rng.random((batch, heads, length, length), dtype=np.float32),)


def mlp_inputs(rng: np.random.Generator, batch: int, c0: int, c1: int, c2: int, c3: int) -> Arguments:
    def layer(rows: int, columns: int) -> tuple[Array, Array]:
        weights = rng.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(rows))
        return weights, rng.standard_normal(columns, dtype=np.float32)

    return rng.random((batch, c0), dtype=np.float32), *layer(c0, c1), *layer(c1, c2), *layer(c2, c3)


def conv2d_inputs(rng: np.random.Generator, batch: int, side: int, channels: int, filters: int, k: int) -> Arguments:
    return (
        rng.random((batch, side, side, channels), dtype=np.float32),
        rng.random((k, k, channels, filters), dtype=np.float32),
        rng.random(filters, dtype=np.float32),
    )


SINGLE = Tolerance(rtol=2e-5, atol=1e-6)

PROGRAMS = (
    Program(
        name="matmul_loops",
        summary="matrix product in three Python loops",
        function=matmul_loops,
        inputs=matrices,
        sizes={"XS": (8,), "S": (48,), "M": (256,), "L": (1_024,)},
        numpy=matmul,
        numpy_checks_only=True,
        loops=matmul_prange,
        c=True,
    ),
    Program(
        name="matmul",
        summary="matrix product by @",
        function=matmul,
        inputs=matrices,
        sizes={"XS": (8,), "S": (48,), "M": (512,), "L": (1_024,)},
        jax=True,
    ),
    Program(
        name="dot",
        summary="inner product of two vectors",
        function=dot,
        inputs=vectors,
        sizes={"XS": (50,), "S": (10_000,), "M": (4_000_000,), "L": (20_000_000,)},
        jax=True,
    ),
    Program(
        name="spmv",
        summary="sparse matrix (CSR) times vector, row slices and a gather",
        function=spmv,
        inputs=spmv_inputs,
        sizes={"XS": (12, 3), "S": (500, 10), "M": (10_000, 40), "L": (100_000, 60)},
        loops=spmv_loops,
    ),
    Program(
        name="covariance",
        summary="covariance matrix of columns",
        function=covariance,
        inputs=covariance_inputs,
        sizes={"XS": (12, 4), "S": (500, 20), "M": (20_000, 100), "L": (100_000, 200)},
        jax=True,
    ),
    Program(
        name="softmax",
        summary="softmax over the last of four axes, single precision",
        function=softmax,
        inputs=softmax_inputs,
        sizes={"XS": (1, 2, 5), "S": (2, 4, 32), "M": (8, 8, 192), "L": (16, 16, 320)},
        tolerance=SINGLE,
        jax=True,
    ),
    Program(
        name="mlp",
        summary="three dense layers, relu, softmax, single precision",
        function=mlp,
        inputs=mlp_inputs,
        sizes={
            "XS": (3, 4, 5, 5, 3),
            "S": (8, 16, 64, 32, 10),
            "M": (64, 128, 1_024, 1_024, 100),
            "L": (256, 512, 2_048, 2_048, 1_000),
        },
        tolerance=SINGLE,
        jax=True,
    ),
    Program(
        name="conv2d",
        summary="convolution of images with filters and bias, window by window",
        function=conv2d,
        inputs=conv2d_inputs,
        sizes={"XS": (1, 6, 2, 3, 3), "S": (1, 16, 3, 8, 3), "M": (4, 32, 3, 16, 5), "L": (8, 64, 3, 32, 5)},
        tolerance=SINGLE,
        loops=conv2d_loops,
    ),
)
