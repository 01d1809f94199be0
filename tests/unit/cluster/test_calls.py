"""Calls on Dask arrays: results, what is known without computing, tasks and bytes, tokens, settings, errors."""

from __future__ import annotations

import gc
import math
import pickle
import re
import subprocess
import sys
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
from dask.base import tokenize  # noqa: E402

from parakeet_py import accelerate, options  # noqa: E402
from parakeet_py.base.errors import (  # noqa: E402
    ClusterWarning,
    DeoptimizedError,
    FallbackWarning,
    GatherLimitError,
    ParakeetError,
    UnsupportedError,
)
from parakeet_py.cluster.worker import given_up  # noqa: E402
from parakeet_py.cluster.worker.kernel import Kernel  # noqa: E402


@pytest.fixture(autouse=True)
def _here_and_now() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


X = np.random.default_rng(1).random((60, 37))
V = np.random.default_rng(2).random(100) - 0.5


def in_chunks(value: Any, chunks: Any) -> Any:
    return da.from_array(value, chunks=chunks) if isinstance(value, np.ndarray) else value


def same(lazy: Any, want: Any) -> bool:
    return np.array_equal(np.asarray(lazy), np.asarray(want))


def normalized(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def heat(x, times):
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def far(x):
    return x[:-10] + x[5:-5] + x[10:]


def running(x):
    return np.cumsum(x), np.maximum.accumulate(x), np.cumsum(x[::-1])


def selected(x):
    y = x[x > 0]
    return y, y * 2, y.sum()


def counted(keys):
    found = np.zeros(12, np.int64)
    for key in keys:
        found[key % 12] += 1
    return found


def weighted(keys, weights):
    found = np.zeros(12)
    np.add.at(found, keys % 12, weights)
    return found


def product(x):
    return x.T @ x, x @ x[0]


def extremes(x):
    return x.argmax(), x.argmin(axis=1), x.max(), x.min(axis=0)


def until_it_settles(x, tolerance):
    steps = 0
    while True:
        y = x.copy()
        y[1:-1] = 0.5 * (x[:-2] + x[2:])
        steps += 1
        if np.abs(y - x).max() < tolerance or steps > 20:
            return y, steps
        x = y


def rolled(x):
    return np.roll(x, 3) + x


def reshaped(x):
    return x.reshape(-1)[::3] + 1, x.reshape(x.shape[1], x.shape[0]).sum(axis=0)


def transposed(x):
    return x.T, x[::-1, ::2], x[:, None, 3]


def sorted_rows(x):
    return np.sort(x, axis=1), np.median(x)


KEYS = np.random.default_rng(3).integers(0, 1000, 100)
CALLS = [
    (normalized, X),
    (heat, X, 3),
    (far, V),
    (running, V),
    (selected, V),
    (counted, KEYS),
    (weighted, KEYS, V),
    (product, X),
    (extremes, X),
    (until_it_settles, V, 1e-2),
    (rolled, V),
    (reshaped, X),
    (transposed, X),
    (sorted_rows, X),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_what_numpy_gives(call: tuple[Any, ...]) -> None:
    function, *args = call
    fast = accelerate(when="now", strict=True)(function)
    expected = function(*args)
    for chunks in (-1, 23, 3):
        given = fast(*(in_chunks(arg, chunks) for arg in args))
        pairs = zip(expected, given, strict=True) if isinstance(expected, tuple) else [(expected, given)]
        for want, lazy in pairs:
            got = lazy.compute() if isinstance(lazy, da.Array) else lazy
            if isinstance(lazy, da.Array):
                assert lazy.dtype == np.asarray(want).dtype == np.asarray(got).dtype
                assert lazy.ndim == np.ndim(want)
                assert lazy.shape == np.shape(want) or np.isnan(lazy.shape).any()
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_what_needs_no_other_grouping_has_the_same_bits() -> None:
    fast = accelerate(when="now")(heat)
    for chunks in (-1, (20, 37), (13, 11)):
        assert same(fast(in_chunks(X, chunks), 3), heat(X, 3))
    assert same(accelerate(when="now")(lambda x: x.sum(axis=1))(in_chunks(X, (7, -1))), X.sum(axis=1))


def test_nothing_is_computed() -> None:
    ran: list[Any] = []

    def noted(block: Any) -> Any:
        if block.size:
            ran.append(block.shape)
        return block

    x = in_chunks(X, 20).map_blocks(noted, dtype=float, meta=np.empty((0, 0)))
    result = accelerate(when="now")(normalized)(x)
    total = accelerate(when="now")(lambda x: x.sum())(x)
    assert not ran
    assert (result.dtype, result.shape, result.chunks) == (X.dtype, X.shape, x.chunks)
    assert (total.dtype, total.shape) == (X.dtype, ())
    assert isinstance(result._meta, np.ndarray)
    np.testing.assert_allclose(result, normalized(X), rtol=1e-11)
    assert ran


def test_arrays_may_be_larger_than_any_memory() -> None:
    x = da.zeros((1 << 41, 4), chunks=(1 << 37, 4))  # 64 TB

    def rows(x: Any) -> Any:
        return (x - x.mean(axis=0))[::2]

    assert accelerate(rows)(x).shape == (1 << 40, 4)


def test_layouts_of_calls_with_other_chunks_are_apart() -> None:
    call = accelerate(lambda x, y: (x[1:] - x[:-1]) * y.max(axis=0))
    random = np.random.default_rng(3)
    for chunks in (40, 13, 40, 9, 13):
        x, y = random.random((90, 3)), random.random((20, 3))
        got = call(da.from_array(x, chunks=(chunks, 3)), da.from_array(y, chunks=(7, 2)))
        assert (got.compute() == (x[1:] - x[:-1]) * y.max(axis=0)).all()


def test_names_are_the_same_again() -> None:
    fast = accelerate(when="now")(normalized)
    x = in_chunks(X, 20)
    assert fast(x).name == fast(x).name != fast(in_chunks(X, 19)).name
    assert set(fast(x).dask) == set(fast(x).dask)
    assert tokenize(fast) == tokenize(accelerate(when="now")(normalized)) != tokenize(accelerate(normalized))
    assert tokenize(fast) != tokenize(accelerate(when="now")(heat))


def test_tokens_know_what_functions_hold() -> None:
    def scaled(by: float) -> Callable[..., Any]:
        return accelerate(lambda x: x * by)

    assert tokenize(scaled(2.0)) == tokenize(scaled(2.0)) != tokenize(scaled(3.0))


def test_explain() -> None:
    fast = accelerate(when="now")(heat)
    report = fast.explain(in_chunks(X, (20, 37)), 2).device
    rows = 4 * 35 * X.itemsize  # up and down at two borders
    moved = [region.moved for region in report.regions if region.moved]
    assert len(moved) == 2 and all(rows <= one <= 4 * 40 * X.itemsize for one in moved)
    assert report.rounds == 0
    assert "3 x 1 blocks, side by side" in str(report)
    assert "runs on Dask" in fast.explain(in_chunks(X, 20), 2).html()


def test_one_task_for_each_chunk() -> None:
    def chain(x, y):
        return np.sqrt(x * x + y * y) * np.exp(-x) + np.where(x > y, x, y)

    x, y = in_chunks(X, 20), in_chunks(X[::-1].copy(), 20)
    ours, theirs = accelerate(when="now")(chain)(x, y), chain(x, y)

    def tasks(array: Any) -> int:
        return len(array.__dask_optimize__(array.dask, array.__dask_keys__()))

    assert tasks(ours) <= tasks(theirs) + 1 and len(ours.dask) < len(theirs.dask) / 2  # one holds the machine code
    np.testing.assert_allclose(ours, theirs)


def test_numpy_arguments_beside_them() -> None:
    fast = accelerate(when="now")(lambda x, weights: (x * weights).sum(axis=1))
    weights = np.arange(37.0)
    np.testing.assert_allclose(fast(in_chunks(X, 20), weights), (X * weights).sum(axis=1))


def test_arrays_in_containers_and_names() -> None:
    held = in_chunks(X, 20)

    @accelerate(when="now")
    def summed(pair: Any) -> Any:
        return {"sum": pair[0] + pair[1], "twice": [pair[0] * 2]}

    found = summed((held, held))
    np.testing.assert_allclose(found["sum"], X + X)
    np.testing.assert_allclose(found["twice"][0], X * 2)


def test_stores_into_arguments_show_in_them() -> None:
    @accelerate(when="now", strict=True)
    def negate(x: Any) -> None:
        x[1:] = -x[1:]

    x, y = in_chunks(V, 30), V.copy()
    before = x + 0
    assert negate(x) is None
    y[1:] = -y[1:]
    assert same(x, y) and same(before, V)


def test_numpy_arguments_on_dask() -> None:
    @accelerate(when="now")
    def both(x: Any) -> Any:
        x[0] = 7
        return x * 2, x.sum()

    x, y = X.copy(), X.copy()
    with options(engine="dask", chunks=1000):
        report = both.explain(x).device
        doubled, total = both(x)
    assert max(max(region.blocks) for region in report.regions) > 1
    want, sum_ = both.__wrapped__(y)
    assert type(doubled) is np.ndarray and np.array_equal(doubled, want) and np.array_equal(x, y)
    assert type(total) is np.float64 and total == pytest.approx(sum_)


def test_an_exception_in_a_task_is_the_users_own() -> None:
    taken = accelerate(when="now")(lambda x, k: x[k])
    lazy = taken(in_chunks(V, 30), in_chunks(np.array([3, 200, 1]), 1))
    with pytest.raises(IndexError, match="200 is out of bounds for axis 0 with size 100"):
        lazy.compute()
    with pytest.raises(ValueError, match="broadcast"):
        accelerate(when="now")(lambda x, y: x + y)(in_chunks(V, 30), in_chunks(V[:7], 3))


def test_checks_are_made_whatever_else_needs_them() -> None:
    @accelerate(when="now")
    def looked_at(x: Any, k: Any) -> Any:
        x[k]
        return x * 2

    with pytest.raises(IndexError):
        looked_at(in_chunks(V, 30), in_chunks(np.array([3, 200]), 1)).compute()


def test_what_has_to_be_in_one_place() -> None:
    table, keys = in_chunks(np.arange(300_000.0), 100_000), in_chunks(KEYS, 30)
    taken = accelerate(when="now")(lambda table, keys: table[keys] + 1)
    with pytest.warns(ClusterWarning, match="2400000 bytes are gathered"):
        assert same(taken(table, keys), np.arange(300_000.0)[KEYS] + 1)
    with options(gather_limit="1MB"), pytest.raises(GatherLimitError, match="2400000 bytes of an array in one place"):
        taken(table, keys)
    limited = accelerate(when="now", gather_limit="1MB", chunks="1 MB")(lambda table, keys: table[keys])
    with pytest.raises(GatherLimitError, match="gather_limit=1000000"):
        limited(table, keys)


def test_what_python_has_to_do() -> None:
    @accelerate(when="now")
    def odd(x: Any) -> Any:
        return eval("x") + 1

    with pytest.warns(FallbackWarning):
        assert same(odd(in_chunks(V, 30)), V + 1)
    with options(strict=True), pytest.raises(UnsupportedError):
        odd(in_chunks(V, 30))


def in_bytes(x: Any, k: Any) -> Any:
    made = np.array([int(v) for v in x * k], "i1")
    x += 1
    return made, x * 2


@pytest.mark.parametrize("strict", [False, True])
def test_tasks_that_leave_a_call_to_python(strict: bool) -> None:
    fast = accelerate(when="now", strict=strict)(in_bytes)
    values = np.arange(6.0)
    for got, want in zip(fast(in_chunks(values, 2), 3.0), in_bytes(values.copy(), 3.0), strict=True):
        assert same(got, want)
    x = in_chunks(values, 2)
    for lazy in (*fast(x, 300.0), x):  # nothing is computed by the call
        with pytest.raises(OverflowError, match="300 out of bounds for int8"):
            lazy.compute()


def first_sorted(x: Any, k: Any) -> Any:
    kept = sorted([v * 2 for v in x])
    x[0] = 7
    return np.array(kept) + k, x


def test_tasks_that_leave_a_call_to_python_get_its_results() -> None:
    values = np.array([3.0, np.nan, 1.0, 2.0, -1.0])
    fast = accelerate(when="now", strict=True)(first_sorted)
    want = first_sorted(values.copy(), 1.0)
    x = in_chunks(values, 2)
    with pytest.warns(ClusterWarning, match="only Python can go on with first_sorted: 40 bytes"):
        got = fast(x, 1.0)[0].compute()
    assert np.array_equal(got, want[0], equal_nan=True) and np.array_equal(x, want[1], equal_nan=True)
    with options(gather_limit=16), pytest.raises(DeoptimizedError, match="have 40 bytes, more than gather_limit=16"):
        fast(in_chunks(values, -1), 1.0)[0].compute()


def test_tasks_that_leave_a_call_to_python_are_waited_for_where_parts_of_the_result_are_known() -> None:
    def counted(x: Any) -> Any:
        return np.array(sorted([v * 2 for v in x])), "all", len(x)

    fast, values = accelerate(when="now", strict=True)(counted), np.array([3.0, 5.0, 1.0])
    got, *known = fast(in_chunks(values, 2))
    assert same(got, np.sort(values) * 2) and known == ["all", 3]
    values[1] = np.nan
    with pytest.warns(ClusterWarning, match="gathered in one place"):
        got, *known = fast(in_chunks(values, 2))
    assert np.array_equal(got.compute(), counted(values)[0], equal_nan=True) and known == ["all", 3]
    with options(engine="dask", chunks=16):
        assert np.array_equal(fast(values)[0], counted(values)[0], equal_nan=True)


def test_points_of_a_few_coordinates() -> None:
    def moved(points, centre):
        apart = points[2:] - points[:-2]
        points[1:-1] += 0.5 * apart * np.sqrt((apart * apart).sum(axis=1))[:, None]
        return points[3:9] - centre, points[:, 1] * points[:, 2], points.T + centre.T

    x, centre = X[:12, :3].copy(), X[:1, :3].copy()
    plain = x.copy()
    want = moved(plain, centre)
    for chunks in ((5, 3), (4, 2), ((1, 11), (1, 2))):
        given = in_chunks(x, chunks)
        got = accelerate(when="now", strict=True)(moved)(given, centre)
        assert all(map(same, got, want)) and same(given, plain)


def scaled(x):
    out = np.empty(len(x), np.int64)
    for i in range(len(x)):
        out[i] = int(math.sqrt(x[i]) * 1e6)  # may not fit, which only Python knows how to go on from
    return out


@pytest.mark.parametrize("limit", ["1MB", "1B"])
@pytest.mark.parametrize(("negative", "large"), [(3, 17), (17, 3)])
def test_what_comes_first_is_raised_where_results_wait_for_each_other(limit: str, negative: int, large: int) -> None:
    x = np.ones(24)
    x[negative], x[large] = -1, np.inf
    with pytest.raises((ValueError, OverflowError)) as expected:
        scaled(x)
    with options(gather_limit=limit, strict=True):
        result = accelerate(when="now")(scaled)(in_chunks(x, 2))
    with warnings.catch_warnings(), pytest.raises(expected.type, match=re.escape(str(expected.value))) as raised:
        warnings.simplefilter("ignore", ClusterWarning)
        result.compute()
    assert any(entry.name == "scaled" for entry in raised.traceback)


def test_what_is_given_up_travels_with_its_traceback() -> None:
    try:
        scaled(-np.ones(1))
    except ValueError as error:
        there = pickle.loads(pickle.dumps(given_up.GivenUp(error)))
    frames = [frame.name for frame in traceback.extract_tb(there.error.__traceback__)]
    assert frames[-1] == "scaled" and str(there.error) == "math domain error"


def test_numpy_arguments_raise_what_comes_first() -> None:
    def checked(x, y):
        for i in range(len(x)):
            y[i] = np.sqrt(x[i])
            if x[i] == 1:
                raise KeyError("one")
            if x[i] == 2:
                raise ValueError("two")
        return y.sum()

    x, y = np.full(40, 4.0), np.zeros(40)
    x[[7, 12, 31]] = 2, 1, 2
    with options(engine="dask", chunks=64), dask.config.set(scheduler="sync"):
        with pytest.raises(ValueError, match="two"):
            accelerate(when="now")(checked)(x, y)
        assert y.tolist() == [2] * 7 + [np.sqrt(2)] + [0] * 32
        x[5] = 1
        with pytest.raises(KeyError, match="one"):
            accelerate(when="now")(checked)(x, y)


def test_unknown_chunks() -> None:
    x = in_chunks(V, 30)
    positive, kept = x[x > 0], V[V > 0]
    with options(strict=True), dask.config.set(scheduler=_fails):  # no size is asked for
        doubled = accelerate(when="now")(lambda x, by: np.sqrt(x) * by)(positive, 2)
        assert np.isnan(doubled.shape[0]) and doubled.numblocks == positive.numblocks
    assert same(doubled, np.sqrt(kept) * 2)
    with (
        options(strict=True),
        pytest.warns(ClusterWarning, match=r"shape \(nan,\) have unknown sizes, which"),
    ):
        share = accelerate(when="now")(lambda x: x / x.shape[0])(positive)
    assert same(share, kept / len(kept)) and positive.chunks == share.chunks
    first = in_chunks(V, 30)[x > 0]
    with options(strict=True), pytest.warns(ClusterWarning, match="unknown sizes"):
        assert same(accelerate(when="now")(lambda x, y: x + y)(first, positive), 2 * kept)


def _fails(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("nothing is to be computed")


class InUnits(da.Array):  # type: ignore[misc]
    """What packages derive from Dask's arrays: operations mean something else."""

    @accelerate(when="now")
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)

    @accelerate(when="now")
    def scaled(self, factor: float) -> Any:
        return type(self), self.shape, factor


def test_classes_that_derive_from_dask_arrays_are_left_to_python() -> None:
    x = in_chunks(V, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = InUnits(x.dask, x.name, x.chunks, x.dtype)
        itself = accelerate(when="now")(lambda x: x)
        for _ in range(3):
            assert itself(own) is own and type(itself(own)) is InUnits
            assert own.scaled(2.0) == (InUnits, (100,), 2.0)


def test_calls_that_are_refused_time_and_again_are_not_looked_at() -> None:
    class Unit:
        """What the compiler knows nothing of."""

    fast = accelerate(when="now")(lambda x, unit: (type(x), unit, [k for k in (yield_from(x))]))
    x, unit = in_chunks(V, 30), Unit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(12):
            kind, same_unit, _ = fast(x, unit)
            assert kind is type(x) and same_unit is unit
    assert fast._dispatcher.refused.on_dask == {(type(x), Unit): 8}


def test_calls_that_compute_nothing_are_left_to_python() -> None:
    fast = accelerate(when="now")(lambda x: x if x.ndim == 1 else x + 1)
    x = in_chunks(V, 30)
    for _ in range(12):
        assert fast(x) is x
    assert fast._dispatcher.refused.on_dask == {(type(x),): 8}
    doubled = accelerate(when="now")(lambda x: x * 2)
    for _ in range(12):
        assert same(doubled(x), V * 2)
    assert doubled._dispatcher.refused.on_dask[type(x),] < 0


@pytest.mark.parametrize(
    "asking", [lambda x: x if isinstance(x, da.Array) else x + 1, lambda x: x if hasattr(x, "chunks") else x + 1]
)
def test_whether_an_array_is_one_of_dasks_is_pythons_to_say(asking: Callable[..., Any]) -> None:
    fast = accelerate(when="now")(asking)
    x = in_chunks(V, 30)
    with pytest.warns(FallbackWarning, match="one of Dask's"):
        assert np.array_equal(fast(V), V + 1) and fast(x) is x and fast(x) is x


@pytest.mark.parametrize(
    "asking", [lambda x: x + 1 if isinstance(x, np.ndarray) else x, lambda x: x + 1 if type(x + 0) is np.ndarray else x]
)
def test_a_dask_array_is_none_of_numpys(asking: Callable[..., Any]) -> None:
    fast = accelerate(when="now")(asking)
    x = in_chunks(V, 30)
    assert np.array_equal(fast(V), V + 1) and not fast.fell_back
    with pytest.warns(FallbackWarning, match="which a Dask array is not"):
        assert fast(x) is x and fast(x) is x
    assert np.array_equal(fast(V), V + 1) and fast.specializations


def yield_from(x: Any) -> Any:
    class Rows:
        shape = x.shape

    return iter(Rows.shape)


def test_chunks_that_are_broadcast() -> None:
    fast = accelerate(when="now")(lambda x: x + 1)
    for made in (da.ones(10, chunks=3), da.full((5, 7), 1.0, chunks=(2, 3)), da.ones(1), da.ones((1, 1))):
        assert same(fast(made), np.full(made.shape, 2.0))


def test_empty_chunks() -> None:
    x = in_chunks(V, ((10, 0, 45, 45),))
    assert 0 in x.chunks[0]
    fast = accelerate(when="now")(far)
    assert same(fast(x), far(V))


def test_arrays_with_empty_chunks_in_other_forms() -> None:
    def counted_by(x: Any, centres: Any) -> Any:
        labels = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        sums, counts = np.zeros_like(centres), np.zeros(len(centres))
        np.add.at(sums, labels, x)
        np.add.at(counts, labels, 1)
        return (sums / np.maximum(counts, 1)[:, None]).reshape(-1)

    x, centres = in_chunks(X[:, :3], ((20, 0, 40), (0, 3))), in_chunks(X[:4, :3], ((0, 3, 1, 0), (1, 0, 1, 1)))
    found = accelerate(when="now", strict=True)(counted_by)(x, centres)
    np.testing.assert_allclose(found, counted_by(X[:, :3], X[:4, :3]))


def test_chunks_that_do_not_fit() -> None:
    x, y = in_chunks(X, ((7, 1, 1, 51), (37,))), in_chunks(X[::-1].copy(), ((20, 40), (30, 7)))
    assert same(accelerate(when="now", strict=True)(lambda x, y: x + y * 2)(x, y), X + X[::-1] * 2)
    line = in_chunks(V, ((1,) * 20 + (80,),))  # chunks shorter than a halo
    assert same(accelerate(when="now", strict=True)(far)(line), far(V))


def test_stores_along_a_diagonal_leave_the_rest() -> None:
    def filled(x: Any) -> Any:
        for i in range(x.shape[1]):
            x[i, i] = 7
        return x

    for chunks in (-1, 20, (33, -1)):
        assert same(accelerate(when="now", strict=True)(filled)(in_chunks(X.copy(), chunks)), filled(X.copy()))


def test_arrays_of_objects() -> None:
    x = da.from_array(np.array([1, None, "a"], object), chunks=2)
    with options(strict=True), pytest.raises(UnsupportedError, match="a Dask array of dtype object, whose"):
        accelerate(when="now")(lambda x: x + 1)(x)


def test_a_large_array_in_a_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parakeet_py.cluster.calls.LARGE", 100)
    monkeypatch.setattr("parakeet_py.cluster.calls.CONSTANT", 100)
    table = np.arange(50.0)
    with pytest.warns(ClusterWarning, match="table of .* is a NumPy array of 400 bytes, which travels with the graph"):
        found = accelerate(when="now")(lambda x: x[:50] + table)(in_chunks(V, 30))
    assert same(found, V[:50] + table)


def test_a_call_lets_go_of_its_arguments() -> None:
    def settled(x: Any) -> Any:
        while np.abs(x).max() > 1:
            x = x / 2
        return x, x.sum()

    gc.disable()  # no search for cycles
    try:
        for function in (normalized, settled, lambda x: heat(x, 3)):
            x = in_chunks(3 * X, 20)
            seen = weakref.ref(x)
            dask.compute(accelerate(when="now", strict=True)(function)(x))
            del x
            assert seen() is None
    finally:
        gc.enable()


def kernels_of(lazy: Any) -> list[Kernel]:
    """The machine code in the tasks of a Dask array."""
    args = [arg for task in lazy.dask.values() for arg in getattr(task, "args", ())]
    steps = [step for arg in args if isinstance(arg, tuple) for step in arg]
    inner = [
        arg for step in steps if isinstance(step, tuple) for some in step if isinstance(some, tuple) for arg in some
    ]
    return [arg for arg in (*args, *inner) if isinstance(arg, Kernel)]


def test_kernels_travel() -> None:
    kernels = kernels_of(accelerate(when="now")(normalized)(in_chunks(X, 20)))
    assert len(kernels) >= 3
    for kernel in kernels:
        data = pickle.dumps(kernel)
        assert len(data) < 20_000
        arrived = pickle.loads(data)
        assert pickle.loads(pickle.dumps(arrived)) is arrived  # known in this process
        assert arrived.native().code == kernel.native().code and arrived.function.name == kernel.function.name


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(kernels_of(accelerate(when="now")(normalized)(in_chunks(X, 20)))[0])
    monkeypatch.setattr("parakeet_py.cluster.worker.kernel.package_key", lambda: "another")
    arrived = pickle.loads(data)  # a worker that cannot unpickle a task is lost
    assert pickle.dumps(arrived) == data  # a scheduler passes it on
    with pytest.raises(ParakeetError, match="another version of parakeet_py"):
        arrived.native()


def test_in_blocks_of_others() -> None:
    fast = accelerate(when="now")(lambda x: np.sqrt(x) + 1)
    x = in_chunks(X, 20)
    assert same(x.map_blocks(fast), np.sqrt(X) + 1)


def test_without_dask_nothing_of_it_is_imported() -> None:
    code = (
        "import sys, numpy as np\n"
        "from parakeet_py import accelerate\n"
        "accelerate(when='now')(eval('lambda x: x + 1'))(np.ones(3))\n"
        "assert not any(name.startswith(('dask', 'parakeet_py.cluster')) for name in sys.modules)\n"
    )
    with warnings.catch_warnings():
        subprocess.run([sys.executable, "-c", code], check=True)


def test_of_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    fast = accelerate(when="now")(lambda x: np.sqrt(x) + 1)
    data = xarray.DataArray(in_chunks(X, 20), dims=("a", "b"), coords={"a": np.arange(60)})
    found = xarray.apply_ufunc(fast, data, dask="parallelized", output_dtypes=[float])
    assert same(found.data, np.sqrt(X) + 1) and found.coords.equals(data.coords)
    allowed = xarray.apply_ufunc(fast, data, dask="allowed")
    assert isinstance(allowed.data, da.Array) and same(allowed.data, np.sqrt(X) + 1)


def test_small_arrays_that_are_asked_for_many_numbers() -> None:
    def by_hand(x: Any) -> Any:
        total = 0.0
        while x.max() > 0:
            total += x.max()
            x = np.where(x == x.max(), 0.0, x)
        return total, x

    values = np.arange(60.0)
    with pytest.warns(ClusterWarning, match="gathered in one place"):
        total, left = accelerate(when="now")(by_hand)(in_chunks(values, 20))
    assert total == values.sum() and isinstance(left, da.Array) and not np.asarray(left).any()


def test_one_number_in_two_places() -> None:
    @accelerate(when="now", strict=True)
    def scaled(x: Any) -> Any:
        high = x.max()
        low = high
        return x * high + low * x[::-1]

    assert same(scaled(in_chunks(V, 30)), V * V.max() + V.max() * V[::-1])


def test_arrays_that_are_the_same_or_only_named_so() -> None:
    @accelerate(when="now")
    def stored(a: Any, b: Any) -> Any:
        a += 1
        return a + b

    one, x, y = da.arange(12.0, chunks=4), da.arange(12.0, chunks=4), da.arange(12.0, chunks=4)
    assert one.name == x.name == y.name
    twice, once = dask.compute(stored(one, one), stored(x, y))
    assert np.array_equal(twice, 2 * np.arange(1.0, 13)) and np.array_equal(once, 2 * np.arange(12.0) + 1)


def test_numpy_arrays_that_share_memory() -> None:
    @accelerate(when="now")
    def stored(a: Any, b: Any) -> Any:
        a[:] = 1
        return b.sum()

    values = np.arange(12.0)
    with options(engine="dask", chunks=32):
        assert stored(values[1:], values[:-1]) == 10


def test_strides_of_numpy_arrays_in_another_order() -> None:
    @accelerate(when="now")
    def corner(a: Any) -> Any:
        return np.lib.stride_tricks.as_strided(a, (2, 2), (a.strides[0], a.strides[1])) + 1

    values = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    with options(engine="dask", chunks=32):
        assert np.array_equal(corner(values), values[:2, :2] + 1)


def test_forms_of_arrays_that_have_changed_before_a_round() -> None:
    def flat(x: Any) -> Any:
        a = x.copy()
        r = a.reshape(12)
        a[0, 0] = 5.0
        a[1] += 7
        return r * 2 if x.sum() > 3 else r * 3

    values = np.arange(12.0).reshape(3, 4)
    assert same(accelerate(when="now", strict=True)(flat)(in_chunks(values, 2)), flat(values))


def test_what_fails_first_raises_though_what_fails_later_is_known_before() -> None:
    def converted(x: Any, k: int) -> Any:
        return int(x[0]) + x[k]

    def picked(x: Any, places: Any, k: int) -> Any:
        y = x[places]
        if k > 2:
            raise KeyError("large")
        return y

    with pytest.raises(ValueError, match="NaN"):
        accelerate(when="now", strict=True)(converted)(in_chunks(np.array([np.nan, 1, 2]), 2), 3)
    compiled = accelerate(when="now", strict=True)(picked)
    for place, error in ((7, IndexError), (1, KeyError)):
        with pytest.raises(error):
            compiled(in_chunks(V[:4], 2), in_chunks(np.array([0, place]), 1), 3)


def test_a_gate_takes_calls_that_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from parakeet_py.call.devices import cluster_calls
    from parakeet_py.llvm.entry.callable_type import gates_of
    from parakeet_py.llvm.entry.entry_kind import why_portable

    monkeypatch.setattr(cluster_calls, "gates_pay", lambda: True)

    @accelerate(when="now")
    def tagged(x: Any, name: Any) -> Any:
        return getattr(x, name, None)

    x = in_chunks(V, 7)
    for _ in range(cluster_calls.SETTLED + 4):
        assert tagged(x, "units") is None and tagged(x, name="units") is None
    assert why_portable() or any(getattr(gate, "is_lasting", False) for gate in gates_of(tagged))
    assert tagged(in_chunks(V, 50), "chunks") == ((50, 50),)
    assert tagged(V, "shape") == (100,) and tagged(np.float64(2.5), "real") == 2.5
