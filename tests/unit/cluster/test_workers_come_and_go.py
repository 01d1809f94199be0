"""Workers that are killed in the middle of programs, and workers that come: results are right, and the new one works.

`PARAKEET_TEST_KILLS=all` kills one at three moments of each of the twelve programs of `make bench-cluster`; else it is
one moment of a few programs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
from distributed.diagnostics.plugin import SchedulerPlugin  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.bench.on_dask import functions  # noqa: E402
from parakeet_py.bench.on_dask.compare import NAMES, arguments  # noqa: E402

WORKERS = 2
EVERY = os.environ.get("PARAKEET_TEST_KILLS") == "all"
MOMENTS = (0.2, 0.5, 0.8)  # of the tasks
SOME = {"softmax": 0.5, "kmeans": 0.8}
KILLS = [(name, moment) for name in NAMES for moment in MOMENTS if EVERY or SOME.get(name) == moment]


class Watch(SchedulerPlugin):  # type: ignore[misc]
    """Counts tasks as they end, by worker, and does something once so many have."""

    name = "watch"

    def __init__(self) -> None:
        self.done, self.at, self.action = Counter[str](), -1, threading.Event()
        self.victim: Any = None

    def begin(self, at: int = -1, victim: Any = None) -> None:
        self.done.clear()
        self.at, self.victim = at, victim
        self.action.clear()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **more: Any) -> None:
        if start == "processing" and finish == "memory":
            self.done[str(more.get("worker"))] += 1
            if self.done.total() == self.at:
                if self.victim is not None:
                    os.kill(self.victim.pid, signal.SIGKILL)
                self.action.set()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # so long after a worker is lost, the cluster looks whether it is there again and gives its process up if it is not:
    # with a kill every few seconds, that finds one that has just been killed once more, and nobody starts others
    settings = {
        "distributed.deploy.lost-worker-timeout": "1h",
        "distributed.scheduler.no-workers-timeout": "180s",
        "distributed.comm.timeouts.connect": "60s",
        "distributed.scheduler.allowed-failures": 100,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made),
    ):
        made.watch = Watch()
        made.scheduler.add_plugin(made.watch)
        yield made


def workers_that_are_there(cluster: Any) -> set[str]:
    """The addresses of all workers, once one that was killed by the test before is there again."""
    for _ in range(12_000):
        found = set(cluster.scheduler.workers)
        if len(found) >= WORKERS and found == {nanny.worker_address for nanny in cluster.workers.values()}:
            return found
        time.sleep(0.01)
    raise AssertionError("a worker that was killed has not come back")


_known: dict[str, tuple[Any, int]] = {}


def run(name: str) -> Any:
    """A program's result, computed on the cluster."""
    lazy = accelerate(when="now", strict=True)(getattr(functions, name))(*arguments(name, 0.004, 6))
    return dask.compute(lazy)[0]


def known(cluster: Any, name: str) -> tuple[Any, int]:
    """What a program gives where no worker is killed, and how many tasks it takes."""
    if name not in _known:
        given = [np.asarray(one) if isinstance(one, da.Array) else one for one in arguments(name, 0.004, 6)]
        cluster.watch.begin()
        run(name)
        _known[name] = getattr(functions, name)(*given), cluster.watch.done.total()
    return _known[name]


@pytest.mark.parametrize(("name", "moment"), KILLS)
def test_a_worker_is_killed(cluster: Any, name: str, moment: float) -> None:
    want, tasks = known(cluster, name)
    workers_that_are_there(cluster)
    cluster.watch.begin(max(round(moment * tasks), 1), next(iter(cluster.workers.values())))
    np.testing.assert_allclose(run(name), want, rtol=1e-9, atol=1e-9)
    assert cluster.watch.action.is_set()


def _when_there(block: Any, path: str) -> Any:
    for _ in range(6000):
        if os.path.exists(path):
            break
        time.sleep(0.01)
    return block


def test_a_worker_that_comes_is_used(cluster: Any, tmp_path: Path) -> None:
    before, go = workers_that_are_there(cluster), tmp_path / "go"
    x = da.from_array(np.random.default_rng(1).random((400, 8)), chunks=(10, 8))
    waiting = da.concatenate([x[:100], da.map_blocks(_when_there, x[100:], str(go), meta=np.empty((0, 0)))])
    cluster.watch.begin(3)
    held = dask.persist(accelerate(when="now", strict=True)(functions.softmax)(waiting))[0]
    assert cluster.watch.action.wait(120)
    cluster.scale(len(before) + 1)
    cluster.wait_for_workers(len(before) + 1, timeout=120)
    go.touch()
    np.testing.assert_allclose(held.compute(), functions.softmax(x.compute()))
    (new,) = set(cluster.scheduler.workers) - before
    assert cluster.watch.done[new] > 0
