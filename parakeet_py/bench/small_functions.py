"""Fifty small functions as packages are full of, each with arguments: what a program calls a few times.

A call of one takes microseconds. `cold.py` calls each ten times in a fresh process, decorated and not: compiling them
cannot pay, so this measures what a decorator costs where it is of no use. They are written for reading, not for any
compiler: some take strings and dicts, some raise, some hand work to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[Callable[..., Any], tuple[Any, ...]] = {}  # each with the arguments of a call

_RAMP = np.linspace(0.0, 1.0, 50)
_WAVE = np.sin(np.arange(64.0))
_SQUARE = np.arange(16.0).reshape(4, 4) + 4.0 * np.eye(4)
_POINTS = np.arange(30.0).reshape(10, 3) % 7.0


def _small(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function] = arguments
        return function

    return note


# ---- arguments and options -------------------------------------------------------------------------------------------


@_small("Linear")
def kind_code(name: str) -> int:
    return {"nearest": 0, "linear": 1, "cubic": 3}[name.strip().lower()]


@_small(3)
def as_pair(value: Any) -> tuple[Any, Any]:
    return tuple(value) if isinstance(value, tuple | list) else (value, value)


@_small(_RAMP, "values")
def check_finite(values: Any, name: str) -> Any:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite")
    return values


@_small(_SQUARE, -1)
def normal_axis(values: Any, axis: int) -> Any:
    if not -values.ndim <= axis < values.ndim:
        raise IndexError(f"axis {axis} is out of range")
    return axis % values.ndim


@_small({"order": 3, "mode": "same"}, "order", 1)
def option(options: dict[str, Any], name: str, default: Any) -> Any:
    value = options.get(name)
    return default if value is None else value


@_small((2, 3, 4))
def count_of(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


@_small(5)
def odd_window(length: int) -> int:
    if length < 1:
        raise ValueError("the window is empty")
    return length if length % 2 else length + 1


@_small("3.5 km")
def parse_quantity(text: str) -> tuple[float, str]:
    number, _, unit = text.partition(" ")
    return float(number), unit


@_small([1, 2, 3], (3, 2, 1))
def same_items(first: Any, second: Any) -> bool:
    return sorted(first) == sorted(second)


@_small(["a", "b", "c"])
def positions(names: list[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


# ---- scalars ---------------------------------------------------------------------------------------------------------


@_small(48, 36)
def common_divisor(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@_small(0.3, 1.0, 5.0)
def interpolate(t: float, low: float, high: float) -> float:
    return low + t * (high - low)


@_small(100.0)
def decibels(power: float) -> float:
    return 10.0 * math.log10(power)


@_small(2.0, -3.0, 1.0)
def real_roots(a: float, b: float, c: float) -> tuple[float, ...]:
    inside = b * b - 4.0 * a * c
    if inside < 0.0:
        return ()
    root = math.sqrt(inside)
    return (-b - root) / (2.0 * a), (-b + root) / (2.0 * a)


@_small(370.5)
def wrap_degrees(angle: float) -> float:
    return (angle + 180.0) % 360.0 - 180.0


@_small(1998)
def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@_small(10, 4)
def binomial(n: int, k: int) -> int:
    result = 1
    for step in range(min(k, n - k)):
        result = result * (n - step) // (step + 1)
    return result


@_small(37.2)
def grade(score: float) -> str:
    if score >= 90.0:
        return "A"
    return "B" if score >= 50.0 else "C"


@_small(0.7)
def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@_small(0.1, 0.0, 0.5)
def clamp(value: float, low: float, high: float) -> float:
    return max(low, min(value, high))


# ---- vectors ---------------------------------------------------------------------------------------------------------


@_small(_RAMP)
def standardize(x: Any) -> Any:
    return (x - x.mean()) / x.std()


@_small(_WAVE)
def root_mean_square(x: Any) -> Any:
    return np.sqrt(np.mean(x * x))


@_small(_WAVE, 5)
def moving_average(x: Any, width: int) -> Any:
    return np.convolve(x, np.ones(width) / width, mode="valid")


@_small(_RAMP, _RAMP**2)
def trapezoid(x: Any, y: Any) -> Any:
    return float(np.sum((y[1:] + y[:-1]) * np.diff(x)) / 2.0)


@_small(_WAVE)
def zero_crossings(x: Any) -> Any:
    return np.flatnonzero(np.signbit(x[1:]) != np.signbit(x[:-1]))


@_small(_WAVE, 0.5)
def soft_threshold(x: Any, limit: float) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - limit, 0.0)


@_small(_RAMP)
def softmax(x: Any) -> Any:
    shifted = np.exp(x - x.max())
    return shifted / shifted.sum()


@_small([1.0, -2.0, 0.5], 3.0)
def horner(coefficients: list[float], x: float) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


@_small(_WAVE)
def energy_by_loop(x: Any) -> float:
    total = 0.0
    for value in x:
        total += value * value
    return total


@_small(_WAVE, 4)
def decimate(x: Any, factor: int) -> Any:
    return x[: len(x) // factor * factor].reshape(-1, factor).mean(axis=1)


@_small(_WAVE)
def local_maxima(x: Any) -> list[int]:
    return [i for i in range(1, len(x) - 1) if x[i - 1] < x[i] > x[i + 1]]


@_small(16)
def hann(length: int) -> Any:
    return 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / (length - 1))


@_small(_RAMP, _WAVE[:50])
def correlation(x: Any, y: Any) -> Any:
    return np.corrcoef(x, y)[0, 1]


@_small(_WAVE, 3)
def pad_edges(x: Any, width: int) -> Any:
    return np.pad(x, width, mode="edge")


@_small(_RAMP, 10)
def histogram(x: Any, bins: int) -> Any:
    return np.bincount(np.minimum((x * bins).astype(np.int64), bins - 1), minlength=bins)


@_small(np.array([3, 1, 3, 2, 1]))
def most_frequent(labels: Any) -> Any:
    values, counts = np.unique(labels, return_counts=True)
    return values[np.argmax(counts)]


@_small(_WAVE)
def quartile_range(x: Any) -> Any:
    low, high = np.percentile(x, [25.0, 75.0])
    return high - low


@_small(_RAMP)
def gamma_curve(channel: Any) -> Any:
    return np.where(channel <= 0.0031308, 12.92 * channel, 1.055 * np.power(channel, 1.0 / 2.4) - 0.055)


# ---- matrices and points ---------------------------------------------------------------------------------------------


@_small(_SQUARE)
def is_symmetric(a: Any) -> bool:
    return bool(np.allclose(a, a.T))


@_small(_SQUARE)
def condition(a: Any) -> Any:
    return np.linalg.norm(a) * np.linalg.norm(np.linalg.inv(a))


@_small(_POINTS)
def pairwise_distances(points: Any) -> Any:
    difference = points[:, None, :] - points[None, :, :]
    return np.sqrt((difference**2).sum(axis=-1))


@_small(_POINTS)
def bounding_box(points: Any) -> Any:
    return points.min(axis=0), points.max(axis=0)


@_small(0.3)
def rotation(angle: float) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@_small(_POINTS[:4])
def polygon_area(points: Any) -> float:
    total = 0.0
    for i in range(len(points)):
        (x0, y0), (x1, y1) = points[i - 1, :2], points[i, :2]
        total += x0 * y1 - x1 * y0
    return total / 2.0


@_small(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
def angle_between(u: Any, v: Any) -> Any:
    return np.arccos(np.clip(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)), -1.0, 1.0))


@_small(_SQUARE, np.ones(4))
def kalman_gain(covariance: Any, row: Any) -> Any:
    return covariance @ row / (row @ covariance @ row + 1.0)


@_small(4)
def finite_differences(n: int) -> Any:
    return np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)


@_small(_SQUARE)
def normalize_rows(a: Any) -> Any:
    length = np.linalg.norm(a, axis=1, keepdims=True)
    return np.divide(a, length, out=np.zeros_like(a), where=length > 0.0)


@_small({0: [1, 2], 1: [2], 2: []})
def in_degrees(graph: dict[int, list[int]]) -> dict[int, int]:
    counts = dict.fromkeys(graph, 0)
    for targets in graph.values():
        for target in targets:
            counts[target] += 1
    return counts


@_small(np.array([0.2, 0.5, 0.3]))
def entropy(p: Any) -> Any:
    positive = p[p > 0.0]
    return -np.sum(positive * np.log2(positive))
