"""The C baselines with the NumPy functions' own signatures.

Each binding makes the result arrays a NumPy function would make, inside the call: fresh memory is part of the job.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py.bench.c import BuildError, library
from parakeet_py.bench.program import Array

_REAL = ctypes.c_double
_INTEGER = ctypes.c_int64
_POINTER = ctypes.c_void_p
_THREADS = ctypes.c_int


def baseline(name: str, threads: int) -> Callable[..., Any]:
    """The C function `name` on `threads` threads, with the signature of the program it stands beside.

    Raises
    ------
    BuildError
        There is no such function, or no library on this machine.
    """
    if name not in _BINDINGS:
        raise BuildError(f"no C baseline for {name}")
    signature, returns, bind = _BINDINGS[name]
    function = getattr(library(), name)
    function.argtypes = [*signature, _THREADS]
    function.restype = returns
    return bind(function, threads)


def _pointer(array: Array) -> int:
    return array.ctypes.data


def _black_scholes(function: Any, threads: int) -> Callable[..., Any]:
    def call(price: Array, strike: Array, years: Array, rate: float, volatility: float) -> tuple[Array, Array]:
        calls, puts = np.empty_like(price), np.empty_like(price)
        function(
            *map(_pointer, (price, strike, years)),
            rate,
            volatility,
            _pointer(calls),
            _pointer(puts),
            len(price),
            threads,
        )
        return calls, puts

    return call


def _sum_of_squared_differences(function: Any, threads: int) -> Callable[..., Any]:
    def call(a: Array, b: Array) -> np.float64:
        return np.float64(function(_pointer(a), _pointer(b), len(a), threads))

    return call


def _relaxation_2d(function: Any, threads: int) -> Callable[..., Any]:
    def call(old: Array, new: Array, rounds: int) -> None:
        function(_pointer(old), _pointer(new), *old.shape, rounds, threads)

    return call


def _kmeans_assign(function: Any, threads: int) -> Callable[..., Any]:
    def call(points: Array, centres: Array) -> Array:
        labels = np.empty(len(points), dtype=np.int64)
        function(_pointer(points), _pointer(centres), _pointer(labels), *points.shape, len(centres), threads)
        return labels

    return call


def _mandelbrot(function: Any, threads: int) -> Callable[..., Any]:
    def call(left: float, right: float, bottom: float, top: float, width: int, height: int, limit: int) -> Array:
        image = np.empty((height, width), dtype=np.int64)
        function(left, right, bottom, top, width, height, limit, _pointer(image), threads)
        return image

    return call


def _nbody(function: Any, threads: int) -> Callable[..., Any]:
    def call(position: Array, velocity: Array, mass: Array, dt: float, softening: float) -> tuple[Array, Array]:
        new_position, new_velocity = np.empty_like(position), np.empty_like(velocity)
        pointers = map(_pointer, (position, velocity, mass))
        function(*pointers, dt, softening, _pointer(new_position), _pointer(new_velocity), len(position), threads)
        return new_position, new_velocity

    return call


def _matmul_loops(function: Any, threads: int) -> Callable[..., Any]:
    def call(a: Array, b: Array) -> Array:
        result = np.empty((a.shape[0], b.shape[1]))
        function(_pointer(a), _pointer(b), _pointer(result), *a.shape, b.shape[1], threads)
        return result

    return call


# name: (C arguments before `threads`, C result, how it is bound)
_BINDINGS: dict[str, tuple[list[Any], Any, Callable[[Any, int], Callable[..., Any]]]] = {
    "black_scholes": ([_POINTER] * 3 + [_REAL] * 2 + [_POINTER] * 2 + [_INTEGER], None, _black_scholes),
    "sum_of_squared_differences": ([_POINTER] * 2 + [_INTEGER], _REAL, _sum_of_squared_differences),
    "relaxation_2d": ([_POINTER] * 2 + [_INTEGER] * 3, None, _relaxation_2d),
    "kmeans_assign": ([_POINTER] * 3 + [_INTEGER] * 3, None, _kmeans_assign),
    "mandelbrot": ([_REAL] * 4 + [_INTEGER] * 3 + [_POINTER], None, _mandelbrot),
    "nbody": ([_POINTER] * 3 + [_REAL] * 2 + [_POINTER] * 2 + [_INTEGER], None, _nbody),
    "matmul_loops": ([_POINTER] * 3 + [_INTEGER] * 3, None, _matmul_loops),
}
