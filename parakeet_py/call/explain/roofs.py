"""The roofs of this machine: bytes a second by how much memory is gone through, operations a second; measured.

A kernel whose arrays are in a cache moves more bytes a second than memory allows, so bandwidth is measured at
footprints of four sizes, between which it is interpolated (by logarithms). `operations` is what vector code of
additions and multiplications of float64 reaches, each counted for itself; `products` what BLAS reaches.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model, CACM 52(4), 2009; with caches: Ilic,
Pratas, Sousa, IEEE CAL 13(1), 2014.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from parakeet_py.base import config
from parakeet_py.base.fast_dataclass import record
from parakeet_py.hybrid.devices import calibration

FOOTPRINTS = (1 << 15, 1 << 19, 1 << 23, 1 << 27)  # bytes of two arrays together
_ROUNDS = 8
_MOVED = 1 << 24  # bytes of one measurement, about
_LENGTH = 1 << 14
_TURNS = 50


@record
class Roofs:
    """What this machine can do with so many threads.

    Attributes
    ----------
    threads : int
    bandwidths : tuple of (int, float)
        Bytes that are gone through again and again, and the bytes a second that are read and written.
    operations, products : float
        Operations a second of vector code on float64, and in matrix products.
    """

    threads: int
    bandwidths: tuple[tuple[int, float], ...]
    operations: float
    products: float

    def bandwidth(self, footprint: float) -> float:
        """Bytes a second of what goes through so many bytes."""
        first, last = self.bandwidths[0], self.bandwidths[-1]
        if footprint <= first[0]:
            return first[1]
        for (low, slow), (high, fast) in pairwise(self.bandwidths):
            if footprint <= high:
                share = math.log(footprint / low) / math.log(high / low)
                return slow * math.exp(math.log(fast / slow) * share)
        return last[1]


def roofs(accelerate: Callable[..., Any]) -> Roofs:
    """Those that are stored of this machine, or else measured now (in some seconds) and stored."""
    threads = config.current().thread_count
    names = [_name(threads, size) for size in FOOTPRINTS]
    found = [calibration.stored(name) for name in (*names, _name(threads, 0))]
    if all(one is not None for one in found):
        known = [one for one in found if one is not None]
        bandwidths = tuple((size, one[1]) for size, one in zip(FOOTPRINTS, known, strict=False))
        return Roofs(threads, bandwidths, known[-1][0], known[-1][1])
    return measure_roofs(accelerate)


def measure_roofs(accelerate: Callable[..., Any]) -> Roofs:
    """Measure, with functions that `accelerate` compiles, and store what is found."""
    compiled, threads = accelerate(when="now", tiers=False, devices="cpu"), config.current().thread_count
    bandwidths = tuple((size, _bandwidth(size, compiled(_back_and_forth))) for size in FOOTPRINTS)
    made = Roofs(threads, bandwidths, _operations(compiled(_polynomials)), _products(compiled(_product)))
    speeds = {_name(threads, size): (1.0, rate, 0.0) for size, rate in bandwidths}
    calibration.store(speeds | {_name(threads, 0): (made.operations, made.products, 0.0)})
    return made


def _name(threads: int, footprint: int) -> str:
    return f"cpu, {threads} threads, {footprint} bytes" if footprint else f"cpu, {threads} threads, peak"


def _best(function: Callable[..., Any], *args: Any) -> float:
    """Seconds of the fastest of some calls; of one thread it is its own time that counts, other processes or not."""
    clock = time.process_time if config.current().thread_count == 1 else time.perf_counter
    times = []
    for _ in range(_ROUNDS + 1):  # the first one is compiled
        started = clock()
        function(*args)
        times.append(clock() - started)
    return max(min(times), 1e-9)


def _bandwidth(footprint: int, back_and_forth: Callable[..., Any]) -> float:
    x, y = (np.ones(footprint // 16) for _ in range(2))
    turns = max(1, _MOVED // (2 * footprint))
    return 2 * turns * footprint / _best(back_and_forth, x, y, turns)


def _back_and_forth(x: Any, y: Any, turns: int) -> None:
    for _ in range(turns):  # shifted, so that no turn can be done together with the next one
        y[1:] = 0.5 * (x[:-1] + 1.0)
        x[1:] = 0.5 * (y[:-1] + 1.0)


def _operations(polynomials: Callable[..., Any]) -> float:
    x = np.full(_LENGTH, 0.5)
    return 2 * 16 * _TURNS * x.size / _best(polynomials, x, _TURNS)


def _polynomials(x: Any, turns: int) -> None:
    for _ in range(turns):
        for i in range(x.size):
            y = x[i]
            for _ in range(16):
                y = y * 0.5 + 0.25
            x[i] = y


def _products(product: Callable[..., Any]) -> float:
    a = np.full((512, 512), 0.5)
    return 2 * float(len(a)) ** 3 / _best(product, a, a)


def _product(a: Any, b: Any) -> Any:
    return a @ b
