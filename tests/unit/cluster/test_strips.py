"""Parts of one task strip by strip: the same results, the same exceptions; scans of a line in two passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.bench.on_dask import functions  # noqa: E402
from parakeet_py.bench.on_dask.compare import arguments  # noqa: E402
from parakeet_py.cluster.worker import strips  # noqa: E402


def _computed(function: Callable[..., Any], args: Any, size: int) -> tuple[Any, int]:
    """What a call gives in strips of so many bytes, and how many lines of parts ran in strips."""
    lines: list[int] = []
    run = strips.Strips.run

    def counted(self: strips.Strips) -> Any:
        found = run(self)
        lines.append(self.steps)
        return found

    sizes = patch.multiple(strips, LEAST=0, STRIP=size)
    with dask.config.set(scheduler="sync"), sizes, patch.object(strips.Strips, "run", counted):
        return dask.compute(accelerate(when="now", strict=True)(function)(*args))[0], len(lines)


def smoothed(x: Any) -> Any:
    mean = (x[:-2] + x[1:-1] + x[2:]) / 3
    return mean / mean.max(axis=1)[:, None]


def counted_in_two_ways(x: Any) -> Any:
    near = np.argmin(np.abs(x[:, None] - np.arange(8) / 8), axis=1)
    found, weights = np.zeros(8, np.int64), np.zeros(8)
    np.add.at(found, near, 1)
    np.add.at(weights, near, x)
    return np.concatenate((found, weights))


@pytest.mark.parametrize("name", ["softmax", "kmeans", "smoothed", "counted_in_two_ways"])
def test_strips_give_what_whole_blocks_give(name: str) -> None:
    function = getattr(functions, name, None) or globals()[name]
    if function is getattr(functions, name, None):
        args = arguments(name, 0.004, 3)
        args = (*args[:-1], 2) if name == "kmeans" else args
    else:
        x = np.random.default_rng(1).random((900, 5) if name == "smoothed" else 9000)
        args = (da.from_array(x, chunks=(-(-len(x) // 3), *x.shape[1:])),)
    want, none = _computed(function, args, 1 << 40)
    got, lines = _computed(function, args, 3000)
    assert lines > none == 0
    np.testing.assert_array_equal(got, want)


def failing(x: Any, places: Any, table: Any) -> Any:
    shifted = x - x.max(axis=1)[:, None]
    scaled = shifted.sum(axis=1) * table[places]
    return shifted / scaled[:, None]


def test_what_fails_in_a_strip_raises_what_python_raises() -> None:
    x, places = np.random.default_rng(1).random((60, 5)), np.arange(60) % 9
    lazy = da.from_array(x, chunks=(20, 5)), da.from_array(places, chunks=20), np.arange(9.0) + 1
    got, lines = _computed(failing, lazy, 200)
    assert lines and np.array_equal(got, failing(x, places, lazy[2]))
    places[37] = 9
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        _computed(failing, (lazy[0], da.from_array(places, chunks=20), lazy[2]), 200)


def scanned(x: Any) -> Any:
    return np.cumsum(x), np.maximum.accumulate(x)


def test_a_line_is_scanned_from_what_comes_before_its_blocks() -> None:
    random = np.random.default_rng(3)
    compiled = accelerate(when="now", strict=True)(scanned)
    for x in (random.integers(-5, 6, 40_000), random.random(3000) * 1e-3 + 1, np.array([2.0, np.nan, 3] * 9)):
        for chunk in (len(x) // 3 + 1, len(x) // 25):  # blocks of ints that threads share, and a tree of totals
            with dask.config.set(scheduler="sync"):
                found = dask.compute(*compiled(da.from_array(x, chunks=chunk)))
            for got, want in zip(found, scanned(x), strict=True):
                np.testing.assert_allclose(got, want, rtol=0 if x.dtype.kind == "i" else 1e-12)
