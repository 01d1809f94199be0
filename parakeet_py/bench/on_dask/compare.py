"""`make bench-cluster`: the twelve programs on a LocalCluster, beside those written by hand; times in turns, and tasks.

python -m parakeet_py.bench.on_dask.compare --workers 2 --threads 1 --size 1.0 kmeans heat_3d

Tasks are counted by the scheduler, all that workers have run, in rounds too, and in graphs as they are built, before
Dask makes one of several. With `--overhead`, each program runs on one worker with one thread beside the same call in
this process on one thread, with chunks that take over 50 ms each.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np

from parakeet_py import accelerate, options
from parakeet_py.bench.on_dask import functions, peers
from parakeet_py.bench.on_dask.task_counts import Counter, Tasks, wait

ROUNDS, STEPS = 5, 20
CHUNKS = 4  # in `overhead`
LEAST = 0.06  # seconds of each there
TURNS = {"kmeans": ROUNDS, "heat_3d": 2, "hotspot": 2}  # how often all chunks are run there
NAMES = tuple(peers.DASK)


def arguments(name: str, size: float, pieces: int = 4) -> tuple[Any, ...]:
    """The arguments of a program: large arrays are Dask arrays in so many chunks along their first axis."""
    random = np.random.default_rng(1)
    n = max(int(size * 1_000_000), 64)

    def cut(*shape: int) -> Any:
        return da.from_array(random.random(shape), chunks=(-(-shape[0] // pieces), *shape[1:]))

    match name:
        case "black_scholes":
            return tuple(cut(n) + 0.5 for _ in range(3))
        case "arc_distance":
            return tuple(cut(n) for _ in range(4))
        case "softmax" | "covariance":
            return (cut(n // 32, 64),)
        case "principal_component":
            return cut(n // 32, 64), ROUNDS
        case "prefix_sum":
            return (cut(4 * n),)
        case "histogram":
            return cut(4 * n), 64
        case "spmv":
            rows, entries = n // 4, 8
            columns = random.integers(0, 10_000, (rows, entries))
            chunk = -(-rows // pieces)
            return cut(rows, entries), da.from_array(columns, chunks=(chunk, entries)), random.random(10_000)
        case "nbody":
            count = max(int((n * 4) ** 0.5), 16)
            at = random.random((count, 3))
            return da.from_array(at, chunks=(-(-count // pieces), 3)), at, random.random(count)
        case "heat_3d":
            edge = max(int((n * 2) ** (1 / 3)), 12)
            return cut(edge, edge, edge), STEPS
        case "hotspot":
            edge = max(int((n * 2) ** 0.5), 16)
            return cut(edge, edge), cut(edge, edge), STEPS
        case "kmeans":
            return cut(n // 2, 4), random.random((8, 4)), ROUNDS
    raise ValueError(f"no program {name}; there are {', '.join(NAMES)}")


def forms(name: str) -> dict[str, Callable[..., Any]]:
    """The implementations of a program."""
    found = {
        "parakeet": accelerate(when="now", strict=True)(getattr(functions, name)),
        "dask.array": peers.DASK[name],
    }
    if name in peers.NUMBA:
        found["numba"] = peers.NUMBA[name]
    return found


def tasks_of(array: Any) -> int:
    """How many tasks a scheduler gets for an array."""
    return len(array.__dask_optimize__(array.dask, array.__dask_keys__()))


def measured(name: str, size: float, repeats: int, counter: Counter) -> dict[str, tuple[float, Tasks]]:
    """Median seconds of a program in each form, and its tasks; results are compared.

    Raises
    ------
    ArithmeticError
        Two forms differ by more than sums may.
    """
    given = dask.persist(*arguments(name, size))
    seconds: dict[str, list[float]] = {form: [] for form in forms(name)}
    counts: dict[str, Tasks] = {}
    results: dict[str, Any] = {}
    made = forms(name)
    for turn in range(repeats + 1):
        for form, function in made.items():
            start = time.perf_counter()
            lazy = function(*given)
            value = dask.compute(lazy)[0] if name in ("kmeans",) else _reduced(lazy)
            if turn:  # the first one compiles
                seconds[form].append(time.perf_counter() - start)
            else:
                results[form] = value
                counts[form] = counter.of(function, given)
    for form, value in results.items():
        if not np.allclose(value, results["parakeet"], rtol=1e-8, atol=1e-8):
            raise ArithmeticError(f"{name}: {form} differs")
    return {form: (statistics.median(some), counts[form]) for form, some in seconds.items()}


class Overhead(NamedTuple):
    """Seconds that a chunk takes, and least seconds of a call in one process and on Dask, by the clock and of CPU
    time."""

    chunk: float
    here: float
    there: float
    cpu_here: float
    cpu_there: float


def overhead(name: str, repeats: int) -> Overhead:
    """A program in this process on one thread, and on one worker with one thread, which has the chunks and keeps those
    of the result; CPU time there is that of the worker and of this process, which has the scheduler.

    The chunks are copies that the worker has made, as tasks make them: what has come with a graph lies in memory
    without large pages, where the same code takes up to twice the time.
    """
    function, size = forms(name)["parakeet"], 0.25
    turns = TURNS.get(name, 1)
    given: tuple[Any, ...] = ()
    arrays: tuple[Any, ...] = ()
    while True:
        del given, arrays  # of programs that read much, these are gigabytes
        given = arguments(name, size, CHUNKS)
        if name in ("heat_3d", "hotspot"):
            given = *given[:-1], turns
        with dask.config.set(scheduler="sync"):
            arrays = dask.compute(*given)
        with options(threads=1):
            function(*arrays)
            start = time.process_time()
            function(*arrays)
            alone = time.process_time() - start
            if alone > LEAST * CHUNKS * turns or size > 64:
                break
        size *= 2
    held = dask.persist(*(one.map_blocks(np.copy) if isinstance(one, da.Array) else one for one in given))
    wait(held)
    del given
    found: list[tuple[float, ...]] = []
    for _ in range(repeats + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        with options(threads=1):
            function(*arrays)
        here, cpu_here = time.perf_counter() - wall, time.process_time() - cpu
        cpu = _cpu_of_all()
        wall = time.perf_counter()
        wait(dask.persist(function(*held)))
        found.append((here, time.perf_counter() - wall, cpu_here, _cpu_of_all() - cpu))
    here, there, cpu_here, cpu_there = (min(some) for some in zip(*found[1:], strict=True))
    return Overhead(cpu_here / turns / CHUNKS, here, there, cpu_here, cpu_there)


def _cpu_of_all() -> float:
    """CPU seconds of this process and of the workers so far."""
    return time.process_time() + float(sum(distributed.default_client().run(time.process_time).values()))


def _reduced(lazy: Any) -> Any:
    """Compute all of an array, and bring a little of it here."""
    if lazy.nbytes < 1 << 20:
        return lazy.compute()
    (held,) = dask.persist(lazy)
    return np.asarray(held[tuple(slice(None, None, max(extent // 8, 1)) for extent in held.shape)])


def main(arguments_: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="programs, all by default")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--overhead", action="store_true", help="beside the same work in one process")
    chosen = parser.parse_args(arguments_)
    workers, threads = (1, 1) if chosen.overhead else (chosen.workers, chosen.threads)
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        if chosen.overhead:
            print("| program | ms of a chunk | one process, ms | Dask, ms | ratio | ratio of CPU time |")
            print("|---|---|---|---|---|---|")
            for name in chosen.names or NAMES:
                one = overhead(name, chosen.repeats)
                times = f"{1e3 * one.chunk:.0f} | {1e3 * one.here:.0f} | {1e3 * one.there:.0f}"
                print(
                    f"| {name} | {times} | {one.there / one.here:.2f} | {one.cpu_there / one.cpu_here:.2f} |",
                    flush=True,
                )
            return
        counter = Counter()
        cluster.scheduler.add_plugin(counter)
        print("| program | parakeet, ms | dask.array | map_blocks + numba | tasks run | as built |")
        print("|---|---|---|---|---|---|")
        for name in chosen.names or NAMES:
            found = measured(name, chosen.size, chosen.repeats, counter)
            own = found["parakeet"][0]
            cells = [f"{found[form][0] / own:.2f}" if form in found else "" for form in ("dask.array", "numba")]
            run, built = (" / ".join(str(tasks[at]) for _, tasks in found.values()) for at in range(2))
            print(f"| {name} | {1e3 * own:.0f} | {' | '.join(cells)} | {run} | {built} |", flush=True)
        print("Tasks: of parakeet, dask.array, and numba.")


if __name__ == "__main__":
    main()
