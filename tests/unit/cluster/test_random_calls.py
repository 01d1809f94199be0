"""Random calls with NumPy and Dask arrays beside each other, in chunks of random extents, against plain Python.

`PARAKEET_TEST_DASK=all` makes some hundreds of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate, options  # noqa: E402
from tests.corpus import Comparison, Outcome, _same_exception, outcome  # noqa: E402
from tests.dask_arrays import LeftToPython, assert_alike, called_on_dask, computed  # noqa: E402
from tests.unit.cluster.random_calls import RandomCall  # noqa: E402

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


@pytest.mark.parametrize("seed", SEEDS if len(SEEDS) > 100 else range(1000, 1004))
def test_chunks_of_unknown_sizes(seed: int) -> None:
    """Calls with such arrays do what Python and Dask do; they are refused where that is no answer."""

    def done(strict: bool, function: Callable[..., Any]) -> Outcome:
        def call(*args: Any) -> Any:
            with dask.config.set(scheduler="sync"), options(strict=strict):
                result = computed(function(*args))
                return result, [computed(arg) for arg in args]

        return outcome(call, RandomCall(seed).of_unknown_sizes())

    made = RandomCall(seed)
    unknown = [one for one in made.of_unknown_sizes() if isinstance(one, da.Array) and np.isnan(one.shape).any()]
    fast = accelerate(when="now")(made.function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, actual, refused = done(False, made.function), done(False, fast), done(True, fast)
    _same_exception(expected.exception, actual.exception, False)
    if expected.exception is None:
        Comparison(4, 0.0, False).value(expected.result, actual.result, "the result")
    if unknown:
        assert "compute_chunk_sizes" in str(refused.exception)
