"""Random calls with NumPy and Dask arrays beside each other, in chunks of random extents, against plain Python.

`PARAKEET_TEST_DASK=all` makes some hundreds of them.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")

from parakeet_py.base.errors import ClusterWarning  # noqa: E402
from tests.corpus import outcome  # noqa: E402
from tests.dask_arrays import LeftToPython, assert_alike, called_on_dask  # noqa: E402
from tests.unit.cluster.random_calls import RandomCall  # noqa: E402

FOUND = (66, 93, 144, 198, 230)  # what was wrong: empty chunks in sorts, and where an index has one element
SEEDS = range(400) if os.environ.get("PARAKEET_TEST_DASK") == "all" else (*range(5), *FOUND)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_call(seed: int) -> None:
    _compare(RandomCall(seed), RandomCall(seed).given())


@pytest.mark.parametrize("seed", SEEDS if len(SEEDS) > 100 else range(1000, 1004))
def test_chunks_of_unknown_sizes(seed: int) -> None:
    """Sizes are computed where a call asks for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        _compare(RandomCall(seed), RandomCall(seed).of_unknown_sizes())


def _compare(made: RandomCall, given: tuple[Any, ...]) -> None:
    expected = outcome(made.function, tuple(one.copy() if isinstance(one, np.ndarray) else one for one in made.arrays))
    try:
        actual = called_on_dask(made.function, given, {})
    except LeftToPython as left:
        pytest.skip(f"left to Python: {left}")
    assert_alike(expected, actual, 4, 64)
