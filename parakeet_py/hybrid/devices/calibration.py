"""How fast the CPU and the devices of this machine are, as `call.devices.calibrate` has measured and stored it.

The file lies beside the cache of compiled code. What is in it takes the place of the assumptions in `plan.part_cost`
until parts of a call have been measured themselves. A file that is damaged counts as none.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache

from parakeet_py.base import config
from parakeet_py.base.cache_files import read_file, write_file
from parakeet_py.llvm.engine import disk_cache

FILE = "speeds.json"


def stored(name: str) -> tuple[float, float, float] | None:
    """(operations a second, bytes a second, seconds to start) of the CPU, for one thread, or of a device. The bytes are
    those of the CPU's memory, with all threads, and those of the link between a device and the host."""
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


def store(speeds: dict[str, tuple[float, float, float]]) -> None:
    """Add measured speeds to the file, if there is a folder for it."""
    folder = disk_cache.directory()
    if folder is not None:
        write_file(os.path.join(folder, FILE), json.dumps(_read(folder) | speeds, indent=1).encode())
        forget()
