"""Scans and recurrences: cumulative ufuncs, differences, and loops that carry a value from element to element."""

import numpy as np

from tests.arrays import arr, variants
from tests.corpus import each, large, program

VECTORS = [
    *variants(arr("f8", 9), "f4 i8 i4 u1 b1 c16", "reversed stepped readonly"),
    arr("f8"),
    arr("f8", 0),
    arr("f8", 1),
]
MATRICES = [*variants(arr("f8", 3, 5), "f4 i4 b1", "F stepped"), arr("f8", 3, 0)]


@program(each([*VECTORS, arr("f8", 7, values=[1.0, np.inf, -np.inf, np.nan, 2.0])]), regrouped=8)
def running_total(x):
    return np.cumsum(x), x.cumsum()


@program([large(arr("f8", 200_000)), large(arr("f4", 100_000)), large(arr("i4", 150_001))], regrouped=16)
def large_running_total(x):
    return np.cumsum(x)


@program(each(VECTORS), sums=8)  # complex products: the last bit depends on how they are fused
def running_product(x):
    return np.cumprod(x)


@program(each(MATRICES), regrouped=8)
def running_totals_by_axis(x):
    return np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumsum(x), x.cumsum(axis=-1)


@program(each([arr("i4", 5), arr("f4", 5), arr("u1", 5), arr("b1", 5)]), regrouped=8)
def running_total_with_dtype(x):
    return np.cumsum(x, dtype=np.float64), x.cumprod(dtype=np.int64), np.cumsum(x)


@program(each([*VECTORS[:7], arr("f8", 3, 4), arr("f8", 1)]))
def differences(x):
    """Bools differ by !=."""
    return np.diff(x)


@program(each([arr("f8", 6), arr("i4", 6), arr("f8", 3, 5)]))
def higher_differences(x):
    return np.diff(x, n=2), np.diff(x, axis=0), np.diff(x, axis=-1)


@program(each([arr("f8", 7), arr("f4", 7), arr("i4", 7), arr("f8", 3, 4)]))
def running_extremes(x):
    return np.maximum.accumulate(x), np.minimum.accumulate(x), np.add.accumulate(x) > 100


@program(each([arr("f8", 7), arr("f4", 7), arr("f8", 1), arr("i8", 7)]), mutates=(0,))
def prefix_sum_by_loop(x):
    for i in range(1, len(x)):
        x[i] += x[i - 1]
    return x


@program([(arr("f8", 9), 0.25), (arr("f4", 9), 0.25), (arr("f4", 9), np.float64(0.25)), (arr("f8", 1), 1.0)])
def exponential_smoothing(x, alpha):
    y = np.empty_like(x)
    y[0] = x[0]
    for t in range(1, x.shape[0]):
        y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
    return y


@program([(arr("f8", 4, 6), 0.5), (arr("f8", 4, 6, layout="F"), 0.5), (arr("f4", 4, 1), 2.0)], mutates=(0,))
def recurrence_along_columns(a, c):
    """Serial along one axis, parallel over the other."""
    for j in range(1, a.shape[1]):
        a[:, j] += c * a[:, j - 1]


@program([(arr("f8", 5, 4), 0.5), large(arr("f8", 300, 200), 0.5)], mutates=(0,))
def recurrence_along_rows(a, c):
    for i in range(1, a.shape[0]):
        a[i] = a[i] * c + a[i - 1]


@program(each([arr("f8", 8), arr("f4", 8)]), mutates=(0,))
def backward_recurrence(x):
    for i in range(len(x) - 2, -1, -1):
        x[i] = x[i] - 0.5 * x[i + 1]


@program([(arr("f8", 6, values="positive"), 0.01, 3), (arr("f8", 1), 0.5, 0)], mutates=(0,))
def logistic_map(x, r, steps):
    for _ in range(steps):
        x[:] = r * x * (1 - x)
    return x


@program([(10,), (0,), (1,), (90,)])
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program([(arr("f8", 7, values="positive"),), (arr("f4", 7, values="positive"),)])
def running_maximum_drop(x):
    best, worst = x[0], 0.0
    for v in x:
        best = max(best, v)
        worst = max(worst, best - v)
    return best, worst


@program([(arr("f8", 6), 2.0), (arr("i4", 6), 3), (arr("f8", 0), 1.0)])
def horner(coefficients, x):
    value = 0.0
    for c in coefficients[::-1]:
        value = value * x + c
    return value


@program([(arr("b1", 12),), (arr("i4", 12, values=[1, 1, 0, 1]),), (arr("b1", 0),)])
def longest_run(flags):
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


@program(
    [
        (arr("f8", 5), arr("f8", 5, values="nonzero"), arr("f8", 5, seed=1)),
        (arr("f4", 3), arr("f4", 3, values="nonzero"), arr("f4", 3)),
    ]
)
def linear_recurrence(a, b, c):
    x = np.zeros_like(a)
    for i in range(1, a.size):
        x[i] = (a[i] + b[i] * x[i - 1]) / (2.5 + c[i] * c[i])
    return x


@program(
    [
        (np.array([complex(np.inf, 0)]),),
        (np.array([complex(np.inf, 0), 1, 2j]),),
        (np.array([complex(-0.0, 0), complex(-0.0, 0)]),),
        (np.array([complex(1, 2), complex(-0.0, -0.0)], dtype="c8"),),
        (arr("c16", 3, 4),),
        (arr("c16", 4, 2, 3, layout="F"),),
        (arr("c16", 0, 3),),
    ],
    ulp=4,
)
def complex_products(x):
    """A factor of 1 changes complex infinities and zeros: products begin where NumPy's do."""
    return np.prod(x), np.prod(x, axis=0), np.cumprod(x, axis=-1), np.cumsum(x, axis=0), np.prod(x, axis=-1)


@program([(arr("f8", 0),), (arr("f8", 0, 3),), (arr("f4", 2, 0),)])
def initial_zero_with_sign(x):
    return np.sum(x, axis=0, initial=-0.0), np.sum(x, initial=-0.0), np.sum(x)
