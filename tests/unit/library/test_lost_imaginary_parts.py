"""Where imaginary parts are lost NumPy warns, also in stores by lists and masks; exceptions have Python's `args`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate

Z = np.arange(4) * (1 + 2j)


def by_list(x: Any, z: Any) -> Any:
    x[[0, 1]] = z[:2]
    return x


def by_array(x: Any, z: Any) -> Any:
    x[np.array([2, 0])] = z[1]
    return x


def by_mask(x: Any, z: Any) -> Any:
    x[x > 1] = z[:2]
    return x


def behind_an_ellipsis(x: Any, z: Any) -> Any:
    x[..., [0, 1]] = z[:2]
    return x


def as_single(x: Any, z: Any) -> Any:
    return x + np.float32(z[1])


def as_whole(x: Any, z: Any) -> Any:
    return x + np.int64(z[1])


def as_double(x: Any, z: Any) -> Any:
    return x + np.float64(z[1] * x[1])


FUNCTIONS: list[Callable[..., Any]] = [
    by_list, by_array, by_mask, behind_an_ellipsis, as_single, as_whole, as_double
]  # fmt: skip


def outcome(function: Callable[..., Any], dtype: str) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(np.arange(4).astype(dtype), Z)
    return result.tolist(), result.dtype, [(one.category, str(one.message)) for one in caught]


@pytest.mark.parametrize("dtype", ["f8", "i8", "f4", "c16"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_lost_imaginary_parts_are_told(function: Callable[..., Any], dtype: str) -> None:
    fast = accelerate(function)
    for _ in range(3):
        assert outcome(fast, dtype) == outcome(function, dtype)


def test_arguments_of_overflow_errors() -> None:
    fast: Any = accelerate(lambda x, y: x**y)
    for _ in range(2):
        with pytest.raises(OverflowError) as found:
            fast(10.0, 400.0)
        assert found.value.args == (34, "Numerical result out of range")
