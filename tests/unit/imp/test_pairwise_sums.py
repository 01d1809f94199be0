"""Sums in NumPy's order: equal bits for all lengths, dtypes, layouts and numbers of threads."""

from __future__ import annotations

import functools
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


compiled_once = functools.cache(functools.partial(accelerate, when="now"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("function", "dtype"), [(by_axes, "f2"), (by_axes, "f8"), (spreads, "i4")])
def test_layouts(function: Callable[..., Any], dtype: str, layout: str) -> None:
    compiled = compiled_once(function)  # some layouts are of one type
    for shape in ((4, 5, 6), (2, 3, 300), (150, 4, 40), (3, 2, 9001)):
        x = LAYOUTS[layout](numbers(shape, dtype))
        for got, wanted in zip(compiled(x), function(x), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=str(shape))
            assert np.asarray(got).dtype == np.asarray(wanted).dtype


ROWS = (*range(1, 21), 24, 40, *range(121, 139), 192, *range(255, 260), 263, 264, 271, 272, 1030)


def of_rows(x: Array) -> Any:
    return x.sum(axis=-1), (x * 1.5).sum(axis=1), (x - x[0]).mean(axis=-1)


def of_pairs(x: Array) -> Any:
    return (abs(x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2), np.sum(x.real * 3, axis=1), x.real.max(initial=0.0)


def row_by_row(x: Array) -> Any:
    sums = np.empty((2, len(x)), x.dtype)
    for i in range(len(x)):
        sums[0, i] = np.sum(x[i])
        sums[1, i] = (x[i] - x[0]).sum()
    return sums


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("function", [of_rows, of_pairs, row_by_row])
def test_rows(function: Callable[..., Any], dtype: str) -> None:
    if function is of_pairs and np.dtype(dtype).kind == "c":
        pytest.skip("absolute values of complex numbers may differ by a bit")
    compiled = accelerate(function, when="now")
    with np.errstate(all="ignore"):
        for length in ROWS:
            x = numbers((5, length), dtype)
            for got, wanted in zip(compiled(x), function(x), strict=True):
                np.testing.assert_array_equal(got, wanted, err_msg=str(length))


def windows(x: Array, w: Array) -> Any:
    k = w.shape[0]
    out = np.empty((2, len(x) - k + 1, x.shape[1]), x.dtype)
    for i in range(len(x) - k + 1):
        out[0, i] = np.sum(x[i : i + k, None, :] + w[:, :, None], axis=(0, 1))
        out[1, i] = np.sum(x[i : i + k] - w[:, :1], axis=0)
    return out


def short_axes(x: Array) -> Any:
    y = x + 1
    return (
        *(x.sum(axis=(0, 1)), y.sum(axis=(1, 2)), y.sum(axis=(1, 2, 3)), y.sum(axis=(0, 2)), y.sum(axis=(2, 3))),
        *((x.T + y.T).sum(axis=(1, 2)), np.sum(y[:, ::-1] - x, axis=(1, 3)), y.sum(), y[0].sum(), y[0, :2].sum()),
    )


@pytest.mark.parametrize("dtype", ["f2", "f8", "c16"])
def test_windows(dtype: str) -> None:
    compiled, by_axes_too = accelerate(windows, when="now"), accelerate(short_axes, when="now")
    with np.errstate(all="ignore"):
        for columns, shape in itertools.product((1, 8, 21), ((2, 3), (3, 3), (9, 20))):
            x, w = numbers((12, columns), dtype), numbers(shape, dtype)
            np.testing.assert_array_equal(compiled(x, w), windows(x, w), err_msg=f"{columns} {shape}")
        for shape4 in ((5, 3, 4, 2), (6, 3, 3, 30)):
            for x in (numbers(shape4, dtype), np.asfortranarray(numbers(shape4, dtype))):
                for place, (got, wanted) in enumerate(zip(by_axes_too(x), short_axes(x), strict=True)):
                    np.testing.assert_array_equal(got, wanted, err_msg=f"{place} {shape4}")


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_products(dtype: str) -> None:
    def products(x: Array) -> Any:
        return np.prod(x, axis=1), np.prod(x)

    compiled = accelerate(products, when="now")
    for length in (0, 1, 7, 8, 100, 129, 300):
        x = 1 + numbers((3, length), dtype) / 1e4
        for got, wanted in zip(compiled(x), products(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


@pytest.mark.parametrize("special", [-0.0, np.nan, np.inf, -np.inf])
def test_special_values(special: float) -> None:
    compiled = compiled_once(of_rows)
    with np.errstate(all="ignore"):
        for length in (1, 2, 7, 8, 9, 17, 128, 129, 300):
            alone = np.full((2, length), special)
            among = numbers((length, length), "f8")
            np.fill_diagonal(among, special)
            for x in (alone, among):
                for got, wanted in zip(compiled(x), of_rows(x), strict=True):
                    np.testing.assert_array_equal(got, wanted, err_msg=str(length))
                    numeric = ~np.isnan(wanted)
                    np.testing.assert_array_equal(np.signbit(got)[numeric], np.signbit(wanted)[numeric])


def test_cancellation() -> None:
    x = np.array([1e16, *np.ones(1000), -1e16])
    assert accelerate(total, when="now")(x) == np.sum(x) == 986.0
