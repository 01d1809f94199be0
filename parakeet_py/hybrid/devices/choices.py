"""Who has which calls, as it has been decided for the functions of this user: kept on the disk.

The file lies beside the speeds of devices (`calibration`). A function is known by the text of its typed IR, a call by
the size class of its arguments and the names of the devices. A file that is damaged counts as none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from parakeet_py.base import config
from parakeet_py.base.cache_files import read_file, write_file
from parakeet_py.llvm.engine import disk_cache

FILE = "choices.json"
MOST = 4096  # that are kept
WAYS = range(3)  # see `cpu_only_calls`


def known(identity: str, sizes: Sequence[Any], devices: str) -> tuple[int, float] | None:
    """Which way calls like this one go, and how many times faster the CPU is than is assumed; None if nothing is
    known."""
    settings = config.current()
    found = _stored(settings.cache, settings.cache_dir).get(_name(identity, sizes, devices))
    return None if found is None else (int(found[0]), float(found[1]))


def keep(identity: str, sizes: Sequence[Any], devices: str, way: int, factor: float) -> None:
    """Remember a decision, if there is a folder for it."""
    folder = disk_cache.directory()
    if folder is None:
        return
    all_ = _read(folder) | {_name(identity, sizes, devices): (way, factor)}
    while len(all_) > MOST:
        del all_[next(iter(all_))]
    write_file(os.path.join(folder, FILE), json.dumps(all_).encode())
    forget()


def forget() -> None:
    """Read the file anew."""
    _stored.cache_clear()


def _name(identity: str, sizes: Sequence[Any], devices: str) -> str:
    threads = config.current().thread_count
    return hashlib.sha256(repr((identity, tuple(sizes), devices, threads)).encode()).hexdigest()[:32]


@lru_cache(maxsize=8)
def _stored(cache: bool, cache_dir: object) -> dict[str, tuple[int, float]]:
    """What is stored, by the settings that say where."""
    folder = disk_cache.directory()
    return {} if folder is None else _read(folder)


def _read(folder: str) -> dict[str, tuple[int, float]]:
    try:
        data = read_file(os.path.join(folder, FILE))
        found = json.loads(b"{}" if data is None else data[0])
        return {
            str(name): (int(way), float(factor)) for name, (way, factor) in found.items() if factor > 0 and way in WAYS
        }
    except (ValueError, TypeError, AttributeError):
        return {}
