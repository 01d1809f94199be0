"""Strides of axes of one element in results: those that `x[:, None]` puts in are 0, as NumPy has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

ARRAYS = [
    np.arange(5.0),
    np.ones((3, 4)),
    np.ones((4, 3)).T,
    np.ones((1, 3)),
    np.ones(8, "f4")[::2],
    np.ones((2, 3, 4), "i2"),
    np.ones(1),
]
VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x[:, None],
    lambda x: x[None],
    lambda x: x[..., None],
    lambda x: x[None, :, None],
    lambda x: x[:, None][::2],
    lambda x: x[:, None].T,
    lambda x: x[:, None][0],
    lambda x: x[::2, None],
    lambda x: x.T[:, None],
    lambda x: (x * 2)[:, None],
    lambda x: x[:, None].reshape(-1),
    lambda x: x[None].swapaxes(0, 1),
]


@pytest.mark.parametrize("devices", ["", "emulated"])
@pytest.mark.parametrize("view", VIEWS)
def test_steps(view: Callable[[Any], Any], devices: str) -> None:
    compiled: Any = accelerate(view)
    for x in ARRAYS:
        want = view(x)
        with options(devices=devices or None, check=True):
            got = compiled(x)
        assert (got.shape, got.strides, got.dtype) == (want.shape, want.strides, want.dtype)
        assert (got.base is x) == (want.base is x)
        assert got.flags.c_contiguous == want.flags.c_contiguous and np.array_equal(got, want)


def test_the_same_view_twice() -> None:
    @accelerate
    def twice(x: Any) -> Any:
        y = x[:, None]
        y[0] = 7
        return y, y, x[:, None]

    x = np.ones(3)
    first, second, third = twice(x)
    assert first is second and first.strides == third.strides == (8, 0)
    assert x[0] == third[0, 0] == 7
