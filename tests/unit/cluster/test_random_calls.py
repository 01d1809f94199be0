"""Random calls with NumPy and Dask arrays beside each other, in chunks of random extents, against plain Python.

`PARAKEET_TEST_DASK=all` makes some hundreds of them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("dask.array")

from tests.corpus import outcome
from tests.dask_arrays import LeftToPython, assert_alike, called_on_dask
from tests.unit.cluster.random_calls import RandomCall

FOUND = (66, 93, 144, 198, 230)  # what was wrong: empty chunks in sorts, and where an index has one element
SEEDS = range(400) if os.environ.get("PARAKEET_TEST_DASK") == "all" else (*range(5), *FOUND)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_call(seed: int) -> None:
    made = RandomCall(seed)
    expected = outcome(made.function, tuple(one.copy() if isinstance(one, np.ndarray) else one for one in made.arrays))
    try:
        actual = called_on_dask(made.function, made.given(), {})
    except LeftToPython as left:
        pytest.skip(f"left to Python: {left}")
    assert_alike(expected, actual, 4, 64)
