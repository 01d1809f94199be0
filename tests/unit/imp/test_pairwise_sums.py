"""Sums in NumPy's order: equal bits for all lengths, dtypes, layouts and numbers of threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

Array = np.ndarray[Any, Any]
LENGTHS = (*range(20), *range(120, 140), 250, 255, 256, 257, 271, 300, 1000, 4095, 4097, 8191, 8193, 20000, 70001)


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    return (values + 1j * values[..., ::-1] if np.dtype(dtype).kind == "c" else values).astype(dtype)


def total(x: Array) -> Any:
    return np.sum(x)


def of_squares(x: Array) -> Any:
    return np.sum(x.real * x.real)


def sum_and_maximum(x: Array) -> Any:
    return np.sum(x), np.max(x.real, initial=0.0)


def in_double(x: Array) -> Any:
    return np.sum(x, dtype=np.float64)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("function", [total, of_squares, sum_and_maximum, in_double])
def test_lengths(function: Callable[..., Any], dtype: str) -> None:
    if function is in_double and np.dtype(dtype).kind == "c":
        pytest.skip("not of complex numbers")
    compiled = accelerate(function, when="now")
    for length, step in itertools.product(LENGTHS, (1, -1, 3)):
        x = numbers((3 * length,), dtype)[:: 1 if abs(step) == 1 else 3][:length][:: 1 if step > 0 else -1]
        for threads in (1, 2):
            with options(threads=threads):
                np.testing.assert_array_equal(compiled(x), function(x), err_msg=f"{length} {step}")


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "transposed": lambda x: x.transpose(1, 2, 0),
    "rows": lambda x: x[::2],
    "columns": lambda x: x[..., ::2],
    "backwards": lambda x: x[:, ::-1, ::-1],
    "one": lambda x: x[:, :1],
}


def by_axes(x: Array) -> Any:
    return x.sum(), x.sum(axis=0), x.sum(axis=1), x.sum(axis=-1), x.sum(axis=(0, 2)), x.sum(axis=(1, 2))


def spreads(x: Array) -> Any:
    return x.mean(), x.var(), x.mean(axis=0), x.std(axis=2), (x + 1).sum(axis=(0, 1)), x.mean(axis=1, dtype="f8")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("function", "dtype"), [(by_axes, "f2"), (by_axes, "f8"), (spreads, "i4")])
def test_layouts(function: Callable[..., Any], dtype: str, layout: str) -> None:
    compiled = accelerate(function, when="now")
    for shape in ((4, 5, 6), (2, 3, 300), (150, 4, 40), (3, 2, 9001)):
        x = LAYOUTS[layout](numbers(shape, dtype))
        for got, wanted in zip(compiled(x), function(x), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=str(shape))
            assert np.asarray(got).dtype == np.asarray(wanted).dtype


def test_cancellation() -> None:
    x = np.array([1e16, *np.ones(1000), -1e16])
    assert accelerate(total, when="now")(x) == np.sum(x) == 986.0
