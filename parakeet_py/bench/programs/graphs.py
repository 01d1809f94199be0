"""Shortest paths between all vertices of a graph: an outer sum and a minimum in place, repeated."""

from __future__ import annotations

import numpy as np

from parakeet_py.bench.program import Arguments, Array, Program, prange


def floyd_warshall(path: Array) -> None:
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, np.add.outer(path[:, k], path[k, :]))


def floyd_warshall_loops(path: Array) -> None:
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            through = path[i, k]
            for j in range(n):
                path[i, j] = min(path[i, j], through + path[k, j])


def inputs(rng: np.random.Generator, n: int) -> Arguments:
    path = rng.integers(1, 1_000, (n, n), dtype=np.int32)
    path[rng.random((n, n)) < 0.8] = 100_000
    np.fill_diagonal(path, 0)
    return (path,)


PROGRAM = Program(
    name="floyd_warshall",
    summary="all shortest paths, a minimum over an outer sum per vertex",
    function=floyd_warshall,
    inputs=inputs,
    sizes={"XS": (9,), "S": (48,), "M": (200,), "L": (600,)},
    mutates=(0,),
    loops=floyd_warshall_loops,
)
