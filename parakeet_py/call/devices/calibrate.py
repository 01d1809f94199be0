"""Measuring how fast the CPU and the devices of this machine are: `parakeet doctor --calibrate`.

A function of known operations runs on each, at two lengths, and memory is copied there and back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base import config
from parakeet_py.call.accelerate import accelerate
from parakeet_py.call.devices.calls import call, team_plan_of
from parakeet_py.hybrid.devices.calibration import store
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.plan.part_cost import Rates

ROUNDS = 3


def calibrate(devices: Sequence[Machine]) -> dict[str, tuple[float, float, float]]:
    """Measure the CPU and devices, and store what is found; gives it, by name."""
    threads = config.current().thread_count
    rate, start = _operations(None, 1 << 20)
    found = {"cpu": (rate / threads, _bandwidth(), start)}
    for device in devices:
        small = device.name.startswith("emulated")
        rate, start = _operations(device, 1 << (15 if small else 22))
        found[device.name] = rate, _link(device, 1 << (18 if small else 26)), start
    store(found)
    return found


def _work(x: Any) -> Any:
    return x * x * 0.5 + x * 0.25 + np.sqrt(x + 1.0)


def _operations(device: Machine | None, length: int) -> tuple[float, float]:
    """Operations a second of a device, or of all threads, and the seconds of a part without any."""
    function: Any = accelerate(_work)
    team = (
        Team((), True, 0.0) if device is None else Team((device,), False)
    )  # forced: what is left to the CPU is not timed
    x = np.random.default_rng(1).random(length)
    plan = team_plan_of(function._dispatcher.compiled_for_normal((x,)))
    division, name = plan.regions[-1].divisions[0], "cpu" if device is None else device.name
    best: dict[int, float] = {}
    for _ in range(ROUNDS):
        for count in (length // 4, length):
            plan.rates = Rates()
            call(function._dispatcher, (x[:count],), team, in_regions=True)
            found = plan.rates.cost(id(division.part), name)
            assert found is not None
            best[count] = min(best.get(count, math.inf), found.of(count))
    (few, short), (many, long) = best.items()
    each = (long - short) / (many - few)
    if each <= 0:  # too short to tell
        each = long / many
    return division.cost / max(each, 1e-15), max(short - each * few, 1e-6)


def _bandwidth() -> float:
    """Bytes a second that the CPU reads and writes in large arrays, with all threads."""
    function: Any = accelerate(when="now")(_scaled)
    x = np.ones(1 << 24)
    times = []
    for _ in range(ROUNDS + 1):  # the first one is compiled
        start = time.perf_counter()
        function(x)
        times.append(time.perf_counter() - start)
    return 2 * x.nbytes / min(times)


def _scaled(x: Any) -> Any:
    x *= 1.5


def _link(device: Machine, size: int) -> float:
    """Bytes a second between the host's memory and a device's."""
    data = np.ones(size, np.uint8)
    address = device.allocate(size)
    times = []
    try:
        for _ in range(ROUNDS):
            start = device.mark()
            device.copy_in(address, data)
            device.copy_out(data, address)
            times.append(device.seconds(start, device.mark()))
    finally:
        device.free(address)
    return 2 * size / max(min(times), 1e-9)
