"""Windows of tasks: put together from pieces, without what is stored into anyway."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.cluster import stretches  # noqa: E402
from parakeet_py.cluster.block_tasks import BlockTasks  # noqa: E402
from parakeet_py.cluster.windows import TaskInputs  # noqa: E402
from parakeet_py.cluster.worker.buffers import Piece, WindowSpec, window, without  # noqa: E402


def test_boxes_without_others() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        ends = [np.sort(rng.integers(0, 6, 2)).tolist() for _ in range(4)]
        whole, skipped = tuple(map(tuple, ends[:2])), tuple(map(tuple, ends[2:]))
        inside = set(itertools.product(*(range(*one) for one in whole)))
        out = set(itertools.product(*(range(*one) for one in skipped)))
        found = [point for box in without(whole, skipped) for point in itertools.product(*(range(*one) for one in box))]
        assert len(found) == len(set(found)) and set(found) == inside - out


def test_windows_take_what_is_needed() -> None:
    values = np.arange(48.0).reshape(6, 8)
    pieces = (Piece(0, ((2, 5), (1, 8)), (0, 1)), Piece(1, ((5, 8), (1, 8)), (0, 1)))
    spec = WindowSpec("float64", ((2, 8), (1, 8)), pieces, True, ((3, 7), (2, 8)))
    made = window(spec, [values[:3], values[3:]])
    assert np.array_equal(made[0], values[0, 1:]) and np.array_equal(made[5], values[5, 1:])
    assert np.array_equal(made[:, 0], values[:, 1])


def smoothed(x: Any, times: int) -> Any:
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1, 2:] = 0.25 * (u[:-2, 2:] + u[2:, 2:] + u[1:-1, :-2] + u[1:-1, 1:-1])
        u, v = v, u
    return u


def far(x: Any, y: Any) -> Any:
    return x[:-7] * y[7:, :1] + x[7:, ::-1], x[::-1] - y


def roots(x: Any) -> Any:
    made = np.empty(x.shape[0] - 2)
    for i in range(1, x.shape[0] - 1):
        if x[i, 0] < 0:
            raise ValueError("negative")
        made[i - 1] = x[i - 1, 1] + x[i + 1, 2]
    return made


def test_blocks_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(2).random((60, 14)), np.random.default_rng(3).random((60, 14))
    found = []
    own = stretches.stretches_of

    def noted(*args: Any) -> Any:
        found.append(own(*args))
        return found[-1]

    monkeypatch.setattr(stretches, "LEAST", 0)
    monkeypatch.setattr("parakeet_py.cluster.block_tasks.stretches_of", noted)
    calls: list[tuple[Any, ...]] = [(smoothed, x, 3), (far, x, y), (roots, x)]
    with dask.config.set(scheduler="sync"):
        for function, *args in calls:
            for chunks in ((20, -1), (13, 5), ((30, 1, 29), (14,))):
                lazy = [da.from_array(arg, chunks=chunks) if isinstance(arg, np.ndarray) else arg for arg in args]
                got, want = accelerate(when="now", strict=True)(function)(*lazy), function(*args)
                for one, other in zip(got, want, strict=True) if isinstance(want, tuple) else ((got, want),):
                    assert np.array_equal(one.compute(), other)
        bad = x.copy()
        bad[25, 0] = -1
        with pytest.raises(ValueError, match="negative"):
            accelerate(when="now", strict=True)(roots)(da.from_array(bad, chunks=(20, -1))).compute()
    assert {len(one) for one in found} >= {0, 2, 3}


def _unaligned(values: Any) -> Any:
    """A copy that lies at an odd address."""
    found = np.frombuffer(bytearray(values.nbytes + 1), values.dtype, offset=1).reshape(values.shape)
    found[...] = values
    assert not found.flags.aligned
    return found


def test_chunks_may_lie_at_any_address() -> None:
    """They are not copied for machine code, but where NumPy's or BLAS's loops read them."""
    values = np.random.default_rng(1).random((40, 8))
    chunk = _unaligned(values)
    spec = WindowSpec("float64", ((0, 40), (0, 8)), (Piece(0, ((0, 40), (0, 8)), (0, 0)),), False)
    assert window(spec, [chunk], anywhere=True) is chunk and window(spec, [chunk]) is not chunk

    def everything(x: Any) -> Any:
        shifted = x.copy()
        shifted[1:-1] = (x[:-2] + x[2:]) / 2
        counts = np.zeros(8, np.int64)
        np.add.at(counts, (x[:, 0] * 8).astype(np.int64), 1)
        some = x[:, 1][x[:, 1] > 0.5]
        return shifted, counts, np.cumsum(x, axis=0), x.T @ x, np.sort(x, axis=1), some, np.argmin(x, axis=1)

    pieces = [da.from_delayed(dask.delayed(_unaligned)(part), part.shape, part.dtype) for part in np.split(values, 4)]
    with dask.config.set(scheduler="sync"):
        found = dask.compute(*accelerate(when="now", strict=True)(everything)(da.concatenate(pieces)))
    for got, want in zip(found, everything(values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_windows_that_are_one_chunk_are_those_of_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    run, compared = BlockTasks._block, []

    def compare(self: BlockTasks, place: Any) -> Any:
        for number, windows in enumerate(self.one_chunk):
            found = windows and windows.of(place, TaskInputs(), None)
            if found:
                compared.append(found)
                assert found == self._window(TaskInputs(), number, place)
        return run(self, place)

    monkeypatch.setattr(BlockTasks, "_block", compare)
    x = np.random.default_rng(1).random((23, 9))
    fast = accelerate(when="now", strict=True)(far_apart)
    for chunks in ((5, 9), (7, 4), (1, 9)):
        np.testing.assert_allclose(fast(da.from_array(x, chunks=chunks)).compute(), far_apart(x))
    assert len(compared) > 50


def far_apart(x: Any) -> Any:
    return (x[2:, ::-1] - x[:3].sum()) / x.std(axis=1)[:-2, None]
