"""Data on disk that is larger than the memory of a cluster:

python -m tests.driver.cluster_memory --mb 4000 --limit 1GB

Zarr arrays are made on disk, and k-means and a chain of stencils run on them with workers of limited memory which may
not spill to disk; a worker that reaches its limit is ended, and with it the run. What is told are seconds, and the
most memory that each worker has had. Results of less than a gigabyte are compared with NumPy's.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from parakeet_py import accelerate

WITHOUT_SPILLING = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": 0.85,
    "distributed.worker.memory.terminate": 0.98,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.comm.timeouts.connect": "120s",
}


def kmeans(points: Any, centres: Any, rounds: int) -> Any:
    for _ in range(rounds):
        labels = np.argmin(np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2), axis=1)
        centres, counts = np.zeros_like(centres), np.zeros(len(centres))
        np.add.at(centres, labels, points)
        np.add.at(counts, labels, 1.0)
        centres = centres / np.maximum(counts, 1.0)[:, None]
    return centres


def smoothed(grid: Any, times: int) -> Any:
    u, v = grid.copy(), grid.copy()
    for _ in range(times):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def most_memory() -> int:
    """Bytes that this process has had at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(mb: float, workers: int, limit: str, chunk_mb: float, folder: Path, say: Any = print) -> dict[str, int]:
    """Make the data, run both programs; gives the most bytes that each worker has had.

    Raises
    ------
    ArithmeticError
        A result differs from NumPy's.
    """
    from distributed import Client, LocalCluster

    columns = 2000
    rows, points = int(mb * 1e6 / 8 / columns), int(mb * 1e6 / 8 / 8)
    high, long = max(int(chunk_mb * 1e6 / 8 / columns), 2), int(chunk_mb * 1e6 / 8 / 8)
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, memory_limit=limit, processes=True, dashboard_address=None
    )
    with dask.config.set(WITHOUT_SPILLING), cluster, Client(cluster) as client:
        random = da.random.default_rng(1)
        start = time.perf_counter()
        plain: dict[str, Any] = {"compressors": None}
        random.random((points, 8), chunks=(long, 8)).to_zarr(str(folder / "points"), **plain)
        random.random((rows, columns), chunks=(high, columns)).to_zarr(str(folder / "grid"), **plain)
        say(f"two arrays of {mb:.0f} MB made in {time.perf_counter() - start:.0f} s", flush=True)
        first, grid = np.random.default_rng(2).random((5, 8)), da.from_zarr(str(folder / "grid"))
        lazy = da.from_zarr(str(folder / "points"))
        start = time.perf_counter()
        centres = accelerate(when="now", strict=True)(kmeans)(lazy, first, 3).compute()
        say(f"k-means of 3 rounds: {time.perf_counter() - start:.0f} s", flush=True)
        start = time.perf_counter()
        target = str(folder / "smooth")
        accelerate(when="now", strict=True)(smoothed)(grid, 4).to_zarr(target, **plain)
        say(f"4 steps of a stencil, to disk: {time.perf_counter() - start:.0f} s", flush=True)
        most: dict[str, int] = client.run(most_memory)
        for number, nbytes in enumerate(most.values()):
            say(f"worker {number}: at most {nbytes / 1e6:.0f} MB of {parse_bytes(limit) / 1e6:.0f} MB", flush=True)
        if mb < 1000:
            with dask.config.set(scheduler="sync"):
                _compare(kmeans(lazy.compute(), first, 3), centres, "k-means")
                _compare(smoothed(grid.compute(), 4), da.from_zarr(target).compute(), "the stencil")
    return most


def _compare(want: Any, got: Any, name: str) -> None:
    if not np.allclose(want, got, rtol=1e-9):
        raise ArithmeticError(f"{name} differs")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=4000, help="megabytes of each array")
    parser.add_argument("--limit", default="1GB", help="memory of a worker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunk", type=float, default=32, help="megabytes of a chunk")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="parakeet-cluster-"))
    try:
        run(options.mb, options.workers, options.limit, options.chunk, folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
