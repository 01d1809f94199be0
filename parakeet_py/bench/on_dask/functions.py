"""Twelve programs as a user writes them for NumPy arrays; `parakeet_py` runs them on Dask arrays as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def black_scholes(price: Array, strike: Array, years: Array) -> Array:
    d1 = (np.log(price / strike) + (0.03 + 0.045) * years) / (0.3 * np.sqrt(years))
    d2 = d1 - 0.3 * np.sqrt(years)
    n1, n2 = 0.5 + 0.5 * np.tanh(0.797884 * d1), 0.5 + 0.5 * np.tanh(0.797884 * d2)
    return price * n1 - strike * np.exp(-0.03 * years) * n2


def arc_distance(theta1: Array, phi1: Array, theta2: Array, phi2: Array) -> Array:
    part = np.sin((theta2 - theta1) / 2) ** 2 + np.cos(theta1) * np.cos(theta2) * np.sin((phi2 - phi1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(part), np.sqrt(1 - part))


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=1)[:, None])
    return shifted / shifted.sum(axis=1)[:, None]


def covariance(x: Array) -> Array:
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (x.shape[0] - 1)


def principal_component(x: Array, times: int) -> Array:
    centred = x - x.mean(axis=0)
    product = centred.T @ centred
    v = np.ones(x.shape[1])
    for _ in range(times):
        v = product @ v
        v = v / np.sqrt((v * v).sum())
    return v


def prefix_sum(x: Array) -> Array:
    return np.cumsum(x)


def histogram(x: Array, bins: int) -> Array:
    found = np.zeros(bins, np.int64)
    np.add.at(found, (x * bins).astype(np.int64), 1)
    return found


def spmv(values: Array, columns: Array, x: Array) -> Array:
    return (values * x[columns]).sum(axis=1)


def nbody(at: Array, others: Array, mass: Array) -> Array:
    apart = others[None, :, :] - at[:, None, :]
    inverse = ((apart * apart).sum(axis=2) + 1e-3) ** -1.5
    return (apart * (inverse * mass[None, :])[:, :, None]).sum(axis=1)


def heat_3d(x: Array, times: int) -> Array:
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1, 1:-1, 1:-1] = u[1:-1, 1:-1, 1:-1] + 0.125 * (
            u[2:, 1:-1, 1:-1]
            + u[:-2, 1:-1, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 1:-1, 2:]
            + u[1:-1, 1:-1, :-2]
            - 6.0 * u[1:-1, 1:-1, 1:-1]
        )
        u, v = v, u
    return u


def hotspot(temperature: Array, power: Array, times: int) -> Array:
    t, next_t = temperature.copy(), temperature.copy()
    for _ in range(times):
        next_t[1:-1, 1:-1] = t[1:-1, 1:-1] + 0.1 * (
            power[1:-1, 1:-1]
            + (t[2:, 1:-1] + t[:-2, 1:-1] - 2.0 * t[1:-1, 1:-1])
            + (t[1:-1, 2:] + t[1:-1, :-2] - 2.0 * t[1:-1, 1:-1])
            + 0.05 * (80.0 - t[1:-1, 1:-1])
        )
        t, next_t = next_t, t
    return t


def kmeans(points: Array, centres: Array, rounds: int) -> Array:
    for _ in range(rounds):
        distances = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        labels = np.argmin(distances, axis=1)
        centres = np.zeros_like(centres)
        counts = np.zeros(len(centres))
        np.add.at(centres, labels, points)
        np.add.at(counts, labels, 1.0)
        centres = centres / np.maximum(counts, 1.0)[:, None]
    return centres
