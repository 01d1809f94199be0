"""Calls so small that a team leaves them to its CPU: entry stubs take them, as if no devices had been named.

Under settings that name devices, stubs ask Python whether they may take a call. For a team that has the CPU the answer
is a `word`: which team it is, and the CPU's threads. Once it is known that the CPU has calls of some size (see
`hybrid.execute.cpu_only_calls`), the stub of their signature is given a `SmallCalls` for that team: arrays with at most
such extents, the same ints. What is no larger takes no longer, so that the CPU would have it, too.

In memory, as 8-byte words: the team's number (0: no calls), how many arguments are looked at, and for each its place,
its rank and extents, or -1 and an int.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import Lock
from types import NoneType

import numpy as np

from parakeet_py.base.config import Config

MAX_RANK = 8
MOST = 16  # times that a stub is told other sizes
TEAMS = (1 << 15) - 1
_THREADS = (1 << 16) - 1
_OTHERS = (float, complex, bool, str, NoneType)  # whose values decide nothing

_numbers: dict[str, int] = {}  # of teams, by their names
_last: tuple[Config | None, int] = None, 0
_lock = Lock()


def word(config: Config) -> int:
    """What stubs are told of settings that name devices: 0, or below 0 the number of the team and the CPU's threads."""
    global _last
    known, found = _last
    if known is not config:
        number = _number(config)
        found = -(number << 16 | min(config.thread_count, _THREADS)) if number else 0
        _last = config, found
    return found


def _number(config: Config) -> int:
    """The number of a team; 0 if the CPU does not have small calls."""
    name = config.devices or ""
    if config.engine or config.split is not None or "cpu" not in map(str.strip, name.split(",")):
        return 0
    with _lock:
        return _numbers.setdefault(name, len(_numbers) + 1) if len(_numbers) < TEAMS else _numbers.get(name, 0)


class SmallCalls:
    """The calls of one stub that a team leaves to the CPU; `address` is where the stub looks."""

    __slots__ = ("_told", "_words", "address")

    def __init__(self, count: int) -> None:
        self._words = (ctypes.c_int64 * (2 + count * (2 + MAX_RANK)))()
        self._told = 0
        self.address = ctypes.addressof(self._words)

    def take(self, config: Config, args: Sequence[object]) -> None:
        """Let the stub take calls that are no larger than one under these settings; nothing if that can't be said."""
        number = -word(config) >> 16
        found: list[int] = []
        count = 0
        for place, value in enumerate(args):
            if type(value) is np.ndarray:
                if value.ndim > MAX_RANK:
                    return
                found += [place, value.ndim, *value.shape]
            elif type(value) is int:
                if not -1 << 63 <= value < 1 << 63:
                    return
                found += [place, -1, value]
            elif isinstance(value, np.generic) or type(value) in _OTHERS:
                continue
            else:
                return
            count += 1
        if number <= 0 or self._told >= MOST or 2 + len(found) > len(self._words):
            return
        self._told += 1
        self._words[0] = 0  # other threads may be looking
        self._words[1 : 2 + len(found)] = [count, *found]
        self._words[0] = number
