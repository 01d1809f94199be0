"""The twelve programs as they are written for Dask by hand: with `dask.array`, and with `map_blocks` and numba.

Where `dask.array` takes the NumPy function as it is, that is its form; stencils use `map_overlap`, the rest what Dask's
documentation shows for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import dask.array as da
import numpy as np

from parakeet_py.bench.on_dask import functions as own


@lru_cache(maxsize=64)
def compiled(function: Callable[..., Any]) -> Any:
    """A function of NumPy arrays, compiled by numba where a worker first needs it."""
    import numba

    return numba.njit(nogil=True)(function)


def in_numba(function: Callable[..., Any], *args: Any) -> Any:
    """What numba computes; functions travel as they are."""
    return compiled(function)(*args)


# ---- dask.array ------------------------------------------------------------------------------------------------------


def _heat_step(u: Any) -> Any:
    v = u.copy()
    v[1:-1, 1:-1, 1:-1] = u[1:-1, 1:-1, 1:-1] + 0.125 * (
        u[2:, 1:-1, 1:-1]
        + u[:-2, 1:-1, 1:-1]
        + u[1:-1, 2:, 1:-1]
        + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:]
        + u[1:-1, 1:-1, :-2]
        - 6.0 * u[1:-1, 1:-1, 1:-1]
    )
    return v


def _hotspot_step(t: Any, power: Any) -> Any:
    made = t.copy()
    made[1:-1, 1:-1] = t[1:-1, 1:-1] + 0.1 * (
        power[1:-1, 1:-1]
        + (t[2:, 1:-1] + t[:-2, 1:-1] - 2.0 * t[1:-1, 1:-1])
        + (t[1:-1, 2:] + t[1:-1, :-2] - 2.0 * t[1:-1, 1:-1])
        + 0.05 * (80.0 - t[1:-1, 1:-1])
    )
    return made


def heat_3d(x: Any, times: int) -> Any:
    for _ in range(times):
        x = da.map_overlap(_heat_step, x, depth=(1, 0, 0), boundary="none", dtype=x.dtype)
    return x


def hotspot(temperature: Any, power: Any, times: int) -> Any:
    for _ in range(times):
        temperature = da.map_overlap(
            _hotspot_step, temperature, power, depth=(1, 0), boundary="none", dtype=power.dtype, align_arrays=False
        )
    return temperature


def histogram(x: Any, bins: int) -> Any:
    return da.histogram(x, bins=bins, range=(0.0, 1.0))[0]


def spmv(values: Any, columns: Any, x: Any) -> Any:
    return da.map_blocks(own.spmv, values, columns, x, drop_axis=1, dtype=values.dtype)


def kmeans(points: Any, centres: Any, rounds: int) -> Any:
    for _ in range(rounds):
        labels = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        member = labels[:, None] == np.arange(len(centres))
        counts = member.sum(axis=0)
        centres = (member.T.astype(float) @ points) / da.maximum(counts, 1)[:, None]
        (centres,) = (centres.compute(),)
    return da.from_array(centres, chunks=-1)


# ---- map_blocks and numba --------------------------------------------------------------------------------------------


def _blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function, or one of rows, in blocks of all arguments."""

    def call(*args: Any) -> Any:
        return da.map_blocks(_in_block, *args, function=function, dtype=float)

    return call


def _in_block(*args: Any, function: Callable[..., Any]) -> Any:
    return in_numba(function, *args)


def softmax_rows(x: Any) -> Any:
    made = np.empty_like(x)
    for i in range(x.shape[0]):
        high = x[i].max()
        total = 0.0
        for j in range(x.shape[1]):
            made[i, j] = np.exp(x[i, j] - high)
            total += made[i, j]
        for j in range(x.shape[1]):
            made[i, j] /= total
    return made


def heat_3d_numba(x: Any, times: int) -> Any:
    for _ in range(times):
        x = da.map_overlap(_in_block, x, function=_heat_step, depth=(1, 0, 0), boundary="none", dtype=x.dtype)
    return x


def hotspot_numba(temperature: Any, power: Any, times: int) -> Any:
    for _ in range(times):
        temperature = da.map_overlap(
            _in_block,
            *(temperature, power),
            function=_hotspot_step,
            depth=(1, 0),
            boundary="none",
            dtype=power.dtype,
            align_arrays=False,
        )
    return temperature


def spmv_rows(values: Any, columns: Any, x: Any) -> Any:
    made = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            made[i] += values[i, k] * x[columns[i, k]]
    return made


def spmv_numba(values: Any, columns: Any, x: Any) -> Any:
    return da.map_blocks(_in_block, values, columns, x, function=spmv_rows, drop_axis=1, dtype=values.dtype)


def counts_of(x: Any, bins: int) -> Any:
    found = np.zeros((1, bins), np.int64)
    for i in range(x.shape[0]):
        found[0, int(x[i] * bins)] += 1
    return found


def histogram_numba(x: Any, bins: int) -> Any:
    counts = da.map_blocks(
        _in_block, x, bins, function=counts_of, dtype=np.int64, new_axis=1, chunks=((1,) * x.numblocks[0], (bins,))
    )
    return counts.sum(axis=0)


def pulls(at: Any, others: Any, mass: Any) -> Any:
    made = np.zeros_like(at)
    for i in range(at.shape[0]):
        for j in range(others.shape[0]):
            dx, dy, dz = others[j, 0] - at[i, 0], others[j, 1] - at[i, 1], others[j, 2] - at[i, 2]
            by = mass[j] * (dx * dx + dy * dy + dz * dz + 1e-3) ** -1.5
            made[i, 0] += dx * by
            made[i, 1] += dy * by
            made[i, 2] += dz * by
    return made


def nbody_numba(at: Any, others: Any, mass: Any) -> Any:
    return da.map_blocks(_in_block, at, others, mass, function=pulls, dtype=float)


def sums_of(points: Any, centres: Any) -> Any:
    k, d = centres.shape
    found = np.zeros((1, k, d + 1))
    for i in range(points.shape[0]):
        best, nearest = np.inf, 0
        for j in range(k):
            distance = 0.0
            for c in range(d):
                distance += (points[i, c] - centres[j, c]) ** 2
            if distance < best:
                best, nearest = distance, j
        found[0, nearest, d] += 1
        for c in range(d):
            found[0, nearest, c] += points[i, c]
    return found


def kmeans_numba(points: Any, centres: Any, rounds: int) -> Any:
    k, d = centres.shape
    for _ in range(rounds):
        chunks = ((1,) * points.numblocks[0], (k,), (d + 1,))
        parts = da.map_blocks(_in_block, points, centres, function=sums_of, dtype=float, new_axis=1, chunks=chunks)
        total = parts.sum(axis=0).compute()
        centres = total[:, :d] / np.maximum(total[:, d:], 1.0)
    return da.from_array(centres, chunks=-1)


DASK: dict[str, Callable[..., Any]] = {
    "black_scholes": own.black_scholes,
    "arc_distance": own.arc_distance,
    "softmax": own.softmax,
    "covariance": own.covariance,
    "principal_component": own.principal_component,
    "prefix_sum": da.cumsum,
    "histogram": histogram,
    "spmv": spmv,
    "nbody": own.nbody,
    "heat_3d": heat_3d,
    "hotspot": hotspot,
    "kmeans": kmeans,
}
NUMBA: dict[str, Callable[..., Any]] = {
    "black_scholes": _blocks(own.black_scholes),
    "arc_distance": _blocks(own.arc_distance),
    "softmax": _blocks(softmax_rows),
    "histogram": histogram_numba,
    "spmv": spmv_numba,
    "nbody": nbody_numba,
    "heat_3d": heat_3d_numba,
    "hotspot": hotspot_numba,
    "kmeans": kmeans_numba,
}
