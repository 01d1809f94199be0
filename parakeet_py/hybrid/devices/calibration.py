"""How fast the CPU and the devices of this machine are: measured once, stored for the user, read when it is asked for.

`parakeet doctor --calibrate` runs a function of known operations on each, at two lengths, and copies memory there and
back. What is found stands in a file beside the cache of compiled code, and takes the place of the assumptions in
`plan.part_cost` until parts of a call have been measured themselves. A file that is damaged counts as none.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from parakeet_py import config
from parakeet_py.hybrid.devices.device import Machine
from parakeet_py.llvm import disk_cache
from parakeet_py.llvm.cache_files import read_file, write_file

FILE = "speeds.json"
ROUNDS = 3


def stored(name: str) -> tuple[float, float, float] | None:
    """(operations a second, bytes a second, seconds to start) of the CPU, for one thread, or of a device."""
    settings = config.current()
    return _speeds(settings.cache, settings.cache_dir).get(name)


def forget() -> None:
    """Read the file anew."""
    _speeds.cache_clear()


@lru_cache(maxsize=8)
def _speeds(cache: bool, cache_dir: object) -> dict[str, tuple[float, float, float]]:
    """What is stored, by the settings that say where."""
    folder = disk_cache.directory()
    return {} if folder is None else _read(folder)


def _read(folder: str) -> dict[str, tuple[float, float, float]]:
    try:
        data = read_file(os.path.join(folder, FILE))
        found = json.loads(b"{}" if data is None else data[0])
        speeds = {str(name): (float(rate), float(link), float(start)) for name, (rate, link, start) in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
    return {name: speed for name, speed in speeds.items() if speed[0] > 0 and min(speed[1:]) >= 0}


def calibrate(devices: Sequence[Machine]) -> dict[str, tuple[float, float, float]]:
    """Measure the CPU and devices, and store what is found; gives it, by name."""
    threads = config.current().thread_count
    rate, start = _operations(None, 1 << 20)
    found = {"cpu": (rate / threads, 0.0, start)}
    for device in devices:
        small = device.name.startswith("emulated")
        rate, start = _operations(device, 1 << (15 if small else 22))
        found[device.name] = rate, _link(device, 1 << (18 if small else 26)), start
    folder = disk_cache.directory()
    if folder is not None:
        write_file(os.path.join(folder, FILE), json.dumps(_read(folder) | found, indent=1).encode())
        forget()
    return found


def _work(x: Any) -> Any:
    return x * x * 0.5 + x * 0.25 + np.sqrt(x + 1.0)


def _operations(device: Machine | None, length: int) -> tuple[float, float]:
    """Operations a second of a device, or of all threads, and the seconds of a part without any."""
    from parakeet_py import accelerate
    from parakeet_py.hybrid.devices.team import Team
    from parakeet_py.hybrid.execute.team_calls import call_on_team, divided_plan_of
    from parakeet_py.hybrid.plan.part_cost import Rates

    function: Any = accelerate(_work)
    team = (
        Team((), True, 0.0) if device is None else Team((device,), False)
    )  # forced: what is left to the CPU is not timed
    x = np.random.default_rng(1).random(length)
    plan = divided_plan_of(function._dispatcher.compiled_for_normal((x,)))
    division, name = plan.regions[-1].divisions[0], "cpu" if device is None else device.name
    best: dict[int, float] = {}
    for _ in range(ROUNDS):
        for count in (length // 4, length):
            plan.rates = Rates()
            call_on_team(function._dispatcher, (x[:count],), team)
            found = plan.rates.cost(id(division.part), name)
            assert found is not None
            best[count] = min(best.get(count, math.inf), found.of(count))
    (few, short), (many, long) = best.items()
    each = (long - short) / (many - few)
    if each <= 0:  # too short to tell
        each = long / many
    return division.cost / max(each, 1e-15), max(short - each * few, 1e-6)


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
