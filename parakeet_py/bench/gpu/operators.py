"""One small function per operator, as programs: what a kernel reaches when nothing else is in its way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.bench.program import Arguments, Array, Program, Size, Tolerance

HALF = Tolerance(rtol=2e-3, atol=2e-2)  # a unit in the last place
SINGLE = Tolerance(rtol=2e-4, atol=2e-4)  # sums of float32 in another order
# M and L are several times the caches of GPUs (50 MB): what is measured is memory.
LINE: dict[Size, tuple[int, ...]] = {"XS": (3_000,), "S": (1 << 16,), "M": (1 << 26,), "L": (1 << 28,)}
PLANE: dict[Size, tuple[int, ...]] = {"XS": (40, 70), "S": (256, 256), "M": (8_192, 8_192), "L": (16_384, 16_384)}
SQUARE: dict[Size, tuple[int, ...]] = {"XS": (48,), "S": (256,), "M": (2_048,), "L": (8_192,)}


# What the CPU takes seconds for, too, as its results are looked at.
SORTED: dict[Size, tuple[int, ...]] = {"XS": (900,), "S": (1 << 16,), "M": (1 << 24,), "L": (1 << 26,)}
HALVES: dict[Size, tuple[int, ...]] = {"XS": (48,), "S": (256,), "M": (1_024,), "L": (2_048,)}


@record
class Operator:
    """A program for one operator.

    Attributes
    ----------
    flops : floating-point operations, from the dimensions
    scalar : the same for one element, with numba's signature of it, where numba's `vectorize` can say it
    """

    program: Program
    flops: Callable[..., float]
    scalar: tuple[str, Callable[..., Any]] | None = None


def axpy(x: Array, y: Array) -> Any:
    return np.float32(2.5) * x + y


def axpy_element(x: float, y: float) -> Any:
    return np.float32(2.5) * x + y


def waves(x: Array) -> Any:
    return np.exp(-x) * np.sin(x)


def waves_element(x: float) -> float:
    return math.exp(-x) * math.sin(x)


def turned_sum(x: Array, y: Array) -> Any:
    return x.T + y


def ramp(x: Array) -> Any:
    return np.arange(len(x), dtype=np.float32) * np.float32(0.5)


def total(x: Array) -> Any:
    return np.sum(x)


def total_of_rows(x: Array) -> Any:
    return np.sum(x, axis=1)


def total_of_columns(x: Array) -> Any:
    return np.sum(x, axis=0)


def place_of_least(x: Array) -> Any:
    return np.argmin(x)


def running_total(x: Array) -> Any:
    return np.cumsum(x)


def running_float(x: Array) -> Any:
    return np.cumsum(x, dtype=np.float32)


def positive(x: Array) -> Any:
    return x[x > 0]


def counts(i: Array) -> Any:
    return np.bincount(i, minlength=256)


def gather(x: Array, i: Array) -> Any:
    return x[i]


def five_points(x: Array) -> Any:
    out = np.zeros_like(x)
    out[1:-1, 1:-1] = np.float32(0.2) * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return out


def product(x: Array, y: Array) -> Any:
    return x @ y


def in_order(x: Array) -> Any:
    return np.sort(x)


def order_of(x: Array) -> Any:
    return np.argsort(x, kind="stable")


def half_product(x: Array, y: Array) -> Any:
    return x @ y


def floats(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape, dtype=np.float32)


def one(rng: Any, *shape: int) -> Arguments:
    return (floats(rng, *shape),)


def two(rng: Any, *shape: int) -> Arguments:
    return floats(rng, *shape), floats(rng, *shape)


def a_turned_one(rng: Any, n: int, m: int) -> Arguments:
    return floats(rng, n, m), floats(rng, m, n)


def whole_numbers(rng: Any, n: int) -> Arguments:
    return (rng.integers(-1_000, 1_000, n),)


def steps(rng: Any, n: int) -> Arguments:
    """Whole numbers, whose sums are exact in float32: NumPy's own running sum of so many fractions is not."""
    return (rng.integers(-3, 4, n).astype(np.float32),)


def small_numbers(rng: Any, n: int) -> Arguments:
    return (rng.integers(0, 256, n),)


def places(rng: Any, n: int) -> Arguments:
    return floats(rng, n), rng.integers(0, n, n)


def matrices(rng: Any, n: int) -> Arguments:
    return floats(rng, n, n), floats(rng, n, n)


def halves(rng: Any, n: int) -> Arguments:
    return floats(rng, n, n).astype(np.float16), floats(rng, n, n).astype(np.float16)


def _operator(
    function: Any,
    summary: str,
    inputs: Any,
    sizes: Any,
    flops: Callable[..., float],
    tolerance: Tolerance = SINGLE,
    scalar: tuple[str, Callable[..., Any]] | None = None,
    jax: bool = True,
) -> Operator:
    return Operator(Program(function.__name__, summary, function, inputs, sizes, (), tolerance, jax=jax), flops, scalar)


OPERATORS: tuple[Operator, ...] = (
    _operator(
        axpy,
        "map: two arrays, one result",
        two,
        LINE,
        lambda n: 2 * n,
        scalar=("float32(float32, float32)", axpy_element),
    ),
    _operator(
        waves,
        "map: elementary functions",
        one,
        LINE,
        lambda n: 3 * n,
        scalar=("float32(float32)", waves_element),
    ),
    _operator(turned_sum, "map: one operand transposed", a_turned_one, PLANE, lambda n, m: n * m),
    _operator(ramp, "map: from indices alone", one, LINE, lambda n: n, jax=False),
    _operator(total, "reduce: all elements", one, LINE, lambda n: n),
    _operator(total_of_rows, "reduce: the last axis", one, PLANE, lambda n, m: n * m),
    _operator(total_of_columns, "reduce: the first axis", one, PLANE, lambda n, m: n * m),
    _operator(place_of_least, "reduce: a place", one, LINE, lambda n: n),
    _operator(running_total, "scan: integers", whole_numbers, LINE, lambda n: n),
    _operator(running_float, "scan: floats", steps, LINE, lambda n: n),
    _operator(positive, "compress", one, LINE, lambda n: n, jax=False),
    _operator(counts, "histogram", small_numbers, LINE, lambda n: n, jax=False),
    _operator(gather, "gather", places, LINE, lambda n: 0.0),
    _operator(five_points, "stencil", one, PLANE, lambda n, m: 5 * n * m, jax=False),
    _operator(product, "matrix product", matrices, SQUARE, lambda n: 2 * n**3),
    _operator(half_product, "matrix product: float16", halves, HALVES, lambda n: 2 * n**3, HALF),
    _operator(in_order, "sort", one, SORTED, lambda n: 0.0),
    _operator(order_of, "sort: places", one, SORTED, lambda n: 0.0),
)

# Operations of the benchmark programs; elementary functions, square roots and comparisons count as one each.
FLOPS: dict[str, Callable[..., float]] = {
    "black_scholes": lambda n: 60 * n,
    "sum_of_squared_differences": lambda n: 3 * n,
    "dot": lambda n: 2 * n,
    "matmul": lambda n: 2 * n**3,
    "matmul_loops": lambda n: 2 * n**3,
    "nbody": lambda n: 20 * n * n,
    "allpairs": lambda n, m, d: 3 * n * m * d,
    "kmeans_assign": lambda n, k, d: 3 * n * k * d,
    "relaxation_2d": lambda n, steps: 4 * n * n * steps,
    "floyd_warshall": lambda n: 2 * n**3,
    "covariance": lambda n, m: 2 * n * m * m,
}
