"""Fingerprints of memory: whether bytes are what they were.

An array that is read-only may still change: its flag can be set back, and views taken before it was set can be written
to. So what a device keeps of it is used again only if its bytes are the same. They are summed, each word mixed with its
place by steps that can be undone (an exclusive or, multiplications by odd numbers, shifts onto itself), so a change of
one word always shows and two different contents agree by chance once in 2**64. The call layer compiles the
sum (`compile_with`), so that it runs on all threads as fast as memory is read, which is faster than any copy to a
device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_compiler: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
_sum: Callable[..., Any] | None = None


def compile_with(compiler: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """State what compiles the sum when it is first needed."""
    global _compiler
    _compiler = compiler


def fingerprint(memory: np.ndarray[Any, Any]) -> tuple[int, bytes]:
    """The fingerprint of some bytes."""
    global _sum
    if _sum is None:
        _sum = _mixed if _compiler is None else _compiler(_mixed)
    whole = len(memory) & -8
    return int(_sum(memory[:whole].view(np.uint64))), memory[whole:].tobytes()


def _mixed(words: Any) -> Any:
    places = np.arange(len(words), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (words ^ places) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.sum(mixed ^ (mixed >> np.uint64(29)))
