"""k-means over points on disk, on a Dask cluster of this machine: an ordinary NumPy function, given a Dask array.

    python examples/cluster_kmeans.py --points 4000000 --workers 2

The points are written to a Zarr store, chunk by chunk, and read the same way: no process ever has all of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_py import accelerate


@accelerate
def kmeans(points: Any, centres: Any, rounds: int) -> Any:
    """The centres after some rounds, and how many points belong to each."""
    counts = np.zeros(len(centres))
    for _ in range(rounds):
        distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        labels = np.argmin(distances, axis=1)
        sums = np.zeros_like(centres)
        counts = np.zeros(len(centres))
        np.add.at(sums, labels, points)
        np.add.at(counts, labels, 1.0)
        centres = sums / np.maximum(counts, 1.0)[:, None]
    return centres, counts


def write_points(path: Path, count: int, chunk: int, middles: Any) -> None:
    """Points around some middles, in a Zarr store."""
    import zarr

    store = zarr.create_array(str(path), shape=(count, middles.shape[1]), chunks=(chunk, middles.shape[1]), dtype="f8")
    for number, start in enumerate(range(0, count, chunk)):
        rng = np.random.default_rng(number)
        size = min(chunk, count - start)
        store[start : start + size] = middles[rng.integers(0, len(middles), size)] + rng.normal(0.0, 0.05, (size, 3))


def main(points: int = 2_000_000, chunk: int = 250_000, workers: int = 2, rounds: int = 5) -> Any:
    """Cluster points and print what came of it; gives the centres, sorted."""
    import dask.array as da
    from distributed import Client, LocalCluster, progress

    middles = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        print(f"dashboard: {client.dashboard_link}")
        path = Path(folder) / "points.zarr"
        write_points(path, points, chunk, middles)
        lazy = da.from_zarr(str(path))
        print(f"{lazy.nbytes / 1e6:.0f} MB in {lazy.npartitions} chunks on disk")
        centres, counts = kmeans(lazy, middles + 0.1, rounds)
        print(kmeans.explain(lazy, middles + 0.1, rounds).device)
        start = time.perf_counter()
        persisted: Any = client.persist([centres, counts])
        progress(*persisted, notebook=False)
        results: Any = client.compute(persisted, sync=True)
        found, sizes = results
        print(f"\n{rounds} rounds in {time.perf_counter() - start:.1f} s; {sizes.astype(int)} points")
    order = np.lexsort(np.round(found).T[::-1])
    print(np.round(found[order], 3))
    return found[order]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2_000_000)
    parser.add_argument("--chunk", type=int, default=250_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    main(**vars(parser.parse_args()))
