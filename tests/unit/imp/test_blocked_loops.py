"""Loops in blocks that call NumPy's loops: results to the bit, around the length of a block, and how they are cut."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.interpreters import run_imp

LENGTHS = (0, 1, 5, 1024, 1025, 2500)


def chained(x: Any) -> Any:
    return np.exp(np.sin(x) * 2.0) + x * 0.5


def kept_for_later(x: Any) -> Any:
    y = x / 3.0 + 1.0  # dear enough to be kept for two later stages
    return np.cos(np.sin(y) + y) * y


def several_results(x: Any) -> Any:
    y = np.exp(x)
    return y, y * np.log1p(np.abs(x)), np.arctan2(x, y)


def in_place(x: Any) -> Any:
    x[:] = np.tanh(x)
    x[1:] = np.exp(-x[1:])
    return x


def shifted(x: Any) -> Any:
    x[1:] = np.sin(x[:-1])
    return x


def beside_numbers(x: Any) -> Any:
    return np.power(x * x, 1.3) + np.power(2.5, x) + x**2.0 + np.hypot(x, 3.0)


def summed(x: Any) -> Any:
    return np.sum(np.exp(x)), np.max(np.cbrt(x), initial=0.0), np.mean(np.log1p(x * x))


def chosen(x: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            out[i] = np.exp(x[i])
        else:
            out[i] = math.exp(x[i])
    return out


def carried(x: Any) -> Any:
    total = 0.25
    for i in range(len(x)):
        total = np.sin(total + x[i])
    return total


def rows(x: Any) -> Any:
    table = np.stack((x, x + 1.0, x * x))
    return np.exp(table - table.max(axis=0)), np.exp(table.T[::2])


PROGRAMS = (
    *(chained, kept_for_later, several_results, in_place, shifted, beside_numbers, summed, chosen, carried, rows),
)


def numbers(length: int, dtype: str = "f8") -> Any:
    return np.random.default_rng(length).normal(size=length).astype(dtype)


def bits(value: Any) -> Any:
    return [bits(one) for one in value] if isinstance(value, tuple) else np.asarray(value).tobytes()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_bits(program: Callable[[Any], Any]) -> None:
    exact = accelerate(exact=True, when="now")(program)
    for dtype in ("f8", "f4"):
        for length in LENGTHS:
            if program in (rows, summed) and length == 0:  # NumPy warns, or raises
                continue
            with options(threads=1 + length % 2):
                assert bits(exact(numbers(length, dtype))) == bits(program(numbers(length, dtype))), (dtype, length)
    assert not exact.opaque_calls and not exact.fell_back


def test_interpreter() -> None:
    for program in (chained, kept_for_later, several_results, in_place, shifted):
        exact = accelerate(exact=True)(program)
        assert bits(run_imp(exact, (numbers(1500),))) == bits(program(numbers(1500))), program.__name__


def test_what_lies_side_by_side_is_not_copied() -> None:
    exact = accelerate(exact=True)(lambda x: np.exp(x))
    text = exact.imp(numbers(5))
    assert text.count("ufunc.exp(") == 1 and "new stack" not in text
    text = accelerate(exact=True)(chained).imp(numbers(5))
    assert text.count("ufunc.sin(") == text.count("ufunc.exp(") == 1
    assert text.count("new stack") == 3  # what the sine gives, what exp takes and gives


def test_values_are_kept_or_computed_again() -> None:
    text = accelerate(exact=True)(kept_for_later).imp(numbers(5))
    assert text.count(" = div ") == 1


def test_complex_numbers() -> None:
    def program(z: Any, w: Any) -> Any:
        return z * w + np.exp(z) / abs(w), np.square(z), z[0] * w[0], np.square(z[1]), abs(z[2])

    exact = accelerate(exact=True, when="now")(program)
    for dtype in ("c8", "c16"):
        z, w = [(numbers(1100) + 1j * numbers(1101)[1:]).astype(dtype) * scale for scale in (1, 2j + 1)]
        assert bits(exact(z, w)) == bits(program(z, w))
