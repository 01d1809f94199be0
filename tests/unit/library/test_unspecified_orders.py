"""Orders that NumPy leaves open: on a CPU they are NumPy's own. (GPUs sort stably whatever is asked for.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


def orders(x: Any) -> tuple[Any, ...]:
    few = x + x < 1
    return np.argsort(few), few.argsort(0), np.argsort(few, kind="heapsort"), np.lexsort((few.ravel(), x.ravel()))


compiled = accelerate(orders)


@pytest.mark.parametrize(
    "x",
    [
        np.random.default_rng(0).integers(-9, 9, (3, 60)).astype("i4"),
        np.random.default_rng(1).standard_normal(60)[::-1],
        np.random.default_rng(2).integers(0, 2, 40).astype(bool),
    ],
    ids=lambda x: f"{x.dtype}",
)
def test_places_of_equal_elements(x: np.ndarray) -> None:
    wanted, found = orders(x), compiled(x)
    assert any(np.any(order != np.argsort(x + x < 1, kind="stable")) for order in wanted[:1]), "no ties to tell apart"
    for one, other in zip(wanted, found, strict=True):
        assert np.array_equal(one, other)
