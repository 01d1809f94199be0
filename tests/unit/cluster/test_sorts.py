"""Sorts of arrays in several chunks: in pieces, by blocks of lines, and what stands on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate, options  # noqa: E402
from parakeet_py.cluster import call_settings  # noqa: E402
from parakeet_py.cluster.host_ops import sorts  # noqa: E402
from parakeet_py.cluster.worker import sorting  # noqa: E402


@pytest.fixture(autouse=True)
def _no_array_is_small(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(call_settings, "LEAST", 0)
    with dask.config.set(scheduler="sync"):
        yield


RNG = np.random.default_rng(5)
LENGTH = 3000
DATA = {
    "floats": RNG.random(LENGTH),
    "few values": RNG.integers(0, 4, LENGTH),
    "one value": np.zeros(LENGTH),
    "in order": np.sort(RNG.random(LENGTH)),
    "reversed": np.sort(RNG.random(LENGTH))[::-1].copy(),
    "missing": np.where(RNG.random(LENGTH) < 0.3, np.nan, RNG.random(LENGTH)),
    "zeros of both signs": RNG.choice([0.0, -0.0, 1.0], LENGTH),
    "complex": RNG.integers(0, 3, LENGTH) + 1j * RNG.integers(0, 3, LENGTH),
    "truths": RNG.random(LENGTH) < 0.5,
    "half of one value": np.where(RNG.random(LENGTH) < 0.5, 7, RNG.integers(-100, 100, LENGTH)),
}
CHUNKS = [((1000, 1000, 1000),), ((1, 1, 2, 2996),), ((1500, 0, 1500),)]

in_order = accelerate(when="now", strict=True)(lambda x: np.sort(x))
distinct = accelerate(when="now", strict=True)(lambda x: np.unique(x))


def test_a_line_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorts, "SAMPLES", 4)  # so that several rounds are needed
    for name, values in DATA.items():
        for chunks in CHUNKS:
            lazy = in_order(da.from_array(values, chunks=chunks))
            assert lazy.dtype == values.dtype and lazy.shape == values.shape
            want = np.sort(values, kind="stable")
            assert np.array_equal(lazy.compute(), want, equal_nan=values.dtype.kind == "f"), (name, chunks)
            assert np.array_equal(np.signbit(lazy.compute().real), np.signbit(want.real)), (name, chunks)


def test_elements_of_ranks_are_found_whatever_the_runs_hold() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        runs = [np.sort(rng.integers(0, rng.integers(1, 60), rng.integers(0, 50))) for _ in range(rng.integers(1, 6))]
        total = sum(run.size for run in runs)
        ranks = tuple(sorted(rng.integers(0, total, 3).tolist())) if total else ()
        if not ranks:
            continue
        bounds = None
        for _ in range(sorts.rounds_for(total, 6)):
            bounds = sorting.closer(ranks, bounds, *(sorting.told(run, bounds, 3, 6) for run in runs))
        assert bounds is not None and bounds.found.all()
        assert bounds.low.tolist() == np.sort(np.concatenate(runs))[list(ranks)].tolist()
        cut = sorting.cuts(ranks, bounds, *(sorting.told(run, bounds, 3, 6) for run in runs))
        assert cut.sum(axis=1).tolist() == list(ranks)


def test_nothing_is_gathered() -> None:
    values = DATA["floats"]
    x = da.from_array(values, chunks=500)
    with options(gather_limit=values.nbytes - 1):
        assert np.array_equal(in_order(x).compute(), np.sort(values))
        assert np.array_equal(distinct(x).compute(), np.unique(values))
        median = accelerate(when="now", strict=True)(lambda x: np.median(x))
        for some in (values, DATA["missing"]):
            got = median(da.from_array(some, chunks=500))
            assert np.array_equal(np.asarray(got), np.median(some), equal_nan=True)
        few = accelerate(when="now", strict=True)(lambda x: (np.percentile(x, 30), np.percentile(x, [5, 80])))
        got, both = few(x)
        assert np.asarray(got) == np.percentile(values, 30)
        assert np.array_equal(both.compute(), np.percentile(values, [5, 80]))
    report = in_order.explain(x).device
    assert "sort.quicksort" in str(report) and "1 x 6 blocks, partitions" in str(report)


def test_places_of_a_line_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorts, "SAMPLES", 4)
    places = accelerate(when="now", strict=True)(lambda x: np.argsort(x))
    for name, values in DATA.items():
        for chunks in CHUNKS[:2]:
            lazy = places(da.from_array(values, chunks=chunks))
            assert lazy.dtype == np.intp and np.array_equal(lazy.compute(), np.argsort(values, kind="stable")), name
    assert "partitions" in str(places.explain(da.from_array(DATA["floats"], chunks=500)).device)


def test_places_of_several_lines() -> None:
    for function in (
        lambda x: np.argsort(x, axis=0),
        lambda x: np.argsort(x, axis=1),
        lambda x: np.lexsort((x[1], x[0])),
    ):
        for values in (RNG.random((40, 30)), RNG.random((3, 50))):
            for chunks in (7, (7, -1), (-1, 4)):
                lazy = accelerate(when="now", strict=True)(function)(da.from_array(values, chunks=chunks))
                assert np.array_equal(lazy.compute(), function(values))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_lines(axis: int | None) -> None:
    fast = accelerate(when="now", strict=True)(lambda x: np.sort(x, axis=axis))
    for values in (RNG.random((40, 30)), RNG.integers(0, 5, (3, 50))):
        for chunks in (7, (7, -1), (-1, 4)):
            assert np.array_equal(fast(da.from_array(values, chunks=chunks)).compute(), np.sort(values, axis=axis))


def test_in_place() -> None:
    @accelerate(when="now", strict=True)
    def sorted_here(x: Any) -> None:
        x.sort()

    x = da.from_array(DATA["floats"].copy(), chunks=700)
    sorted_here(x)
    assert np.array_equal(x.compute(), np.sort(DATA["floats"]))
