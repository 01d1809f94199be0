"""Calls on a cluster of processes: code travels, exceptions show the user's line, data on disk."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.base.errors import ParakeetError  # noqa: E402

X = np.random.default_rng(1).random((80, 30))
# Workers in this process: without a limit, as the memory of all that the tests have done would count as theirs.
INSIDE = {"threads_per_worker": 1, "processes": False, "dashboard_address": None, "memory_limit": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    settings = {"distributed.comm.timeouts.connect": "60s", "distributed.scheduler.allowed-failures": 10}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def standardized(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def steps_of_heat(x, times):
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def settled(x, tolerance):
    steps = 0
    while True:
        y = x.copy()
        y[1:-1] = 0.5 * (x[:-2] + x[2:])
        steps += 1
        if np.abs(y - x).max() < tolerance or steps == 7:
            return y, steps
        x = y


def test_on_two_processes(client: Any) -> None:
    x = da.from_array(X, chunks=(20, 30))
    np.testing.assert_allclose(accelerate(standardized)(x).compute(), standardized(X), rtol=1e-11)
    assert np.array_equal(accelerate(steps_of_heat)(x, 3).compute(), steps_of_heat(X, 3))


def test_rounds_keep_what_is_needed(client: Any) -> None:
    line = np.linspace(0, 1, 60) ** 2
    y, steps = accelerate(settled)(da.from_array(line, chunks=20), 1e-9)
    want, count = settled(line, 1e-9)
    assert steps == count == 7
    np.testing.assert_allclose(y.compute(), want)


def test_a_client_that_is_closed() -> None:
    local = INSIDE | {"n_workers": 1}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster, set_as_default=False) as other:
        x = other.persist(da.from_array(X, chunks=(20, 30)))
        x.sum().compute(scheduler=other)
    with pytest.raises(ParakeetError, match=r"chunks that standardized reads were computed by a Client .* is closed"):
        accelerate(standardized)(x)


def test_what_workers_send_each_other_is_the_halo() -> None:
    workers, rows, columns, steps = 8, 300, 500, 3
    fast = accelerate(when="now", strict=True)(steps_of_heat)
    halo = {}
    for count in (workers, 8 * workers):  # weak scaling: what a border sends does not depend on how many there are
        grid = da.zeros((rows * count, columns), chunks=(rows, columns))
        halo[count] = fast.explain(grid, steps).device.moved
        wide, last = 2 * columns, columns - 2  # two steps in one task, and a third
        assert halo[count] == (count - 1) * 2 * (wide + last) * 8
    local = INSIDE | {"n_workers": workers}
    settings = {
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.bandwidth": 1,  # so that where a task goes is decided by bytes, however busy workers are
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster) as other,
    ):
        values = np.random.default_rng(4).random((rows * workers, columns))
        homes = sorted(cluster.scheduler.workers)
        parts = [
            other.scatter(part, workers=home, hash=False)
            for part, home in zip(np.split(values, workers), homes, strict=True)
        ]
        chunks = [da.from_delayed(part, (rows, columns), float) for part in parts]
        held = other.persist(fast(da.concatenate(chunks), steps))
        distributed.wait(held, timeout=100)
        sent = [entry for worker in cluster.workers.values() for entry in worker.transfer_incoming_log]
        assert sum(sum(entry["keys"].values()) for entry in sent) == halo[workers]
        last = other.compute(held[-1]).result(timeout=100)
    np.testing.assert_array_equal(last, steps_of_heat(values, steps)[-1])


def other_version() -> None:
    """Let a worker take its package for another version."""
    from parakeet_py.cluster.worker import kernel

    kernel.package_key = lambda: "another"  # type: ignore[assignment]


def test_a_worker_of_another_version() -> None:
    local = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster, set_as_default=False) as other:
        other.run(other_version)
        lazy = accelerate(when="now")(standardized)(da.from_array(X, chunks=(20, 30)))
        with pytest.raises(ParakeetError, match="another version of parakeet_py than the client"):
            other.compute(lazy).result(timeout=100)


def test_an_exception_of_a_worker_shows_the_users_line(client: Any) -> None:
    def taken(x: Any, k: Any) -> Any:
        return x[k]

    lazy = accelerate(when="now")(taken)(da.from_array(X[:, 0], chunks=40), da.from_array(np.array([1, 99]), chunks=1))
    with pytest.raises(IndexError, match="99 is out of bounds") as caught:
        lazy.compute()
    assert caught.traceback[-1].name == "taken"


def sorted_sums(x, k):
    kept = sorted([v * 2 for v in x])
    x[0] = 7
    return np.array(kept) + k


def test_a_call_that_tasks_leave_to_python(client: Any) -> None:
    values = np.where(np.arange(9.0) == 4, np.nan, np.arange(9.0))
    want = sorted_sums(values.copy(), 1.0)
    np.testing.assert_array_equal(accelerate(when="now")(sorted_sums)(da.from_array(values, chunks=3), 1.0), want)


def test_data_on_disk(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    source, target = str(tmp_path / "in.zarr"), str(tmp_path / "out.zarr")
    da.from_array(X, chunks=(20, 30)).to_zarr(source)
    accelerate(steps_of_heat)(da.from_zarr(source), 2).to_zarr(target)
    assert np.array_equal(da.from_zarr(target).compute(), steps_of_heat(X, 2))


def on_devices(names: str) -> None:
    """Let a worker's parts run on a device, and count them, and the chunks that they find there."""
    import os

    from parakeet_py.cluster.worker import resident

    os.environ["PARAKEET_DEVICES"] = names
    resident.LEAST, resident.parts, resident.found = 0, 0, 0  # type: ignore[attr-defined]
    run, there = resident.DevicePart.run, resident._there
    if hasattr(run, "__wrapped__"):
        return

    def counted(*args: Any) -> Any:
        resident.parts += 1  # type: ignore[attr-defined]
        return run(*args)

    def seen(device: Any, value: Any) -> Any:
        found = there(device, value)
        resident.found += found is not None  # type: ignore[attr-defined]
        return found

    counted.__wrapped__ = run  # type: ignore[attr-defined]
    resident.DevicePart.run, resident._there = counted, seen  # type: ignore[method-assign]


def counts_of_parts() -> tuple[int, int]:
    from parakeet_py.cluster.worker import resident

    return resident.parts, resident.found  # type: ignore[attr-defined]


def sums_of(x, keys):
    found = np.zeros(8)
    np.add.at(found, keys, x[:, 0])
    return found, np.cumsum(x[:, 1]), x[:, 2][x[:, 2] > 0.5], x.max()


def test_parts_run_on_the_devices_of_workers_and_chunks_stay_there(client: Any) -> None:
    keys = np.arange(80) % 8
    client.run(on_devices, "emulated")
    try:
        for function, args in ((standardized, (X,)), (steps_of_heat, (X, 2)), (sums_of, (X, keys))):
            lazy = [da.from_array(arg, chunks=40) if isinstance(arg, np.ndarray) else arg for arg in args]
            given = accelerate(when="now", strict=True)(function)(*lazy)
            want = function(*args)
            several = given if isinstance(want, tuple) else (given,)
            for found, expected in zip(
                dask.compute(*several), want if isinstance(want, tuple) else (want,), strict=True
            ):
                assert type(found) in (np.ndarray, np.float64) and found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, rtol=1e-12)
        parts, found = zip(*client.run(counts_of_parts).values(), strict=True)
        assert sum(parts) > 15 and sum(found) > 5
    finally:
        client.run(on_devices, "cpu")


def test_chunks_on_devices_travel_by_way_of_the_host() -> None:
    from distributed.protocol import deserialize, serialize

    from parakeet_py import asdevice
    from parakeet_py.cluster.worker.resident import _register

    _register()
    for values in (X, X[:0], X[3, 4:5], np.arange(6).reshape(2, 3) > 2):
        header, frames = serialize(asdevice(values, "emulated"))
        assert header["serializer"] == "dask"
        found = deserialize(header, frames)
        assert type(found) is np.ndarray and found.dtype == values.dtype and np.array_equal(found, values)
    assert dask.sizeof.sizeof(asdevice(X, "emulated")) == X.nbytes


def test_the_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("zarr")
    path = Path(__file__).parents[3] / "examples" / "cluster_kmeans.py"
    spec = importlib.util.spec_from_file_location("cluster_kmeans", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cluster_kmeans", module)
    spec.loader.exec_module(module)
    middles = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    points = middles[np.arange(400) % 8] + np.random.default_rng(2).normal(0, 0.05, (400, 3))
    lazy = da.from_array(points, chunks=(100, 3))
    with dask.config.set(scheduler="sync"):
        centres, counts = dask.compute(*module.kmeans(lazy, middles + 0.1, 2))
    np.testing.assert_allclose(centres, module.kmeans.__wrapped__(points, middles + 0.1, 2)[0])
    assert counts.sum() == 400
