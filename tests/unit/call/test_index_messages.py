"""Of several index arrays out of range that one is named that NumPy names: it goes through one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


def together(x: Any, i: Any, j: Any) -> Any:
    return x[i, j]


def across(x: Any, i: Any, j: Any) -> Any:
    return x[i[:, None], j]


def stored(x: Any, i: Any, j: Any) -> None:
    x[i, j] = 1


def caught(x: Any, i: Any, j: Any) -> str:
    try:
        return str(x[i, j])
    except IndexError as error:
        return str(error)


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(call(*args)).tolist()
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("f", [together, across, stored, caught])
def test_the_first_array_is_named_first(f: Callable[..., Any]) -> None:
    compiled = accelerate(f)
    for one, other in [([0, 5], [9, 1]), ([0, 0], [0, 4]), ([-1, -4], [-5, 0]), ([2, 0], [0, 3]), ([3, 0], [9, 9])]:
        for first, second in ((one, other), (other, one)):
            args = np.arange(12.0).reshape(3, 4), np.array(first), np.array(second)
            assert outcome(compiled, *args) == outcome(f, *args)
