"""What type checkers say of accelerated functions: `make lint` checks this file, nothing runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from parakeet_py import accelerate

Array = NDArray[np.float64]


@accelerate
def scale(x: Array, factor: float = 2.0) -> Array:
    return x * factor


@accelerate(strict=True, when="now")
def total(x: Array) -> float:
    return float(x.sum())


class Filter:
    def __init__(self, weight: float) -> None:
        self.weight = weight

    @accelerate
    def apply(self, x: Array) -> Array:
        return x * self.weight

    @accelerate
    @staticmethod
    def unit(x: Array) -> Array:
        return x - 1.0

    @classmethod
    def double(cls) -> Filter:
        return cls(2.0)


x = np.ones(3)
assert_type(scale(x, factor=3.0), Array)
assert_type(total(x), float)
assert_type(Filter(1.0).apply(x), Array)
assert_type(Filter.apply(Filter(1.0), x), Array)
assert_type(Filter.unit(x), Array)
assert_type(scale.opaque_calls, list[str])
assert_type(scale.fell_back, str | bool)
assert_type(accelerate(lambda a, b: a, when="now")(1, 2), Any)
print(scale.explain(x, 2.0), scale.typed_ir(x))
total.compile(x)
wrapped: Callable[..., Any] = scale

scale("text")  # type: ignore[arg-type]
scale()  # type: ignore[call-arg]
total.compile(1)  # type: ignore[arg-type]
Filter(1.0).apply()  # type: ignore[call-arg]
accelerate(fast=True)  # type: ignore[call-overload]
