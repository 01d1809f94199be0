"""Memory of a device that calls have given up, kept for the next ones.

What a lane has given up may be used again in the same lane at once, as its stream does one thing after the other. Sizes
are rounded up to `GRANULE`s, and to an eighth of the next power of two, so that sizes that differ little share. What is
kept is bounded, and given back where memory runs out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

GRANULE = 512  # bytes


@lru_cache(maxsize=1024)
def rounded(size: int) -> int:
    """The size of the memory that is made for so many bytes."""
    if size <= 8 * GRANULE:
        return -(-size // GRANULE) * GRANULE
    step = 1 << (size - 1).bit_length() - 4
    return -(-size // step) * step


class MemoryPool:
    """The memory of one device that is kept.

    Parameters
    ----------
    most : bytes that are kept
    close : gives memory at an address back to the driver
    """

    def __init__(self, most: int, close: Callable[[int], None]) -> None:
        self._most, self._close = most, close
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, int], list[int]] = {}  # addresses, by lane and size
        self.bytes = 0

    def take(self, lane: int, size: int) -> int | None:
        """Memory of a (rounded) size that is kept; None if there is none."""
        found = self._kept.get((lane, size))
        if not found:
            return None
        try:
            address = found.pop()
        except IndexError:  # another thread has it
            return None
        self.bytes -= size
        return address

    def give(self, lane: int, size: int, address: int) -> None:
        """Memory that is not used any more after what the lane has been asked for."""
        if self.bytes + size > self._most:
            self._close(address)
            return
        self.bytes += size
        self._kept.setdefault((lane, size), []).append(address)

    def trim(self) -> bool:
        """Give all back; whether there was any."""
        with self._lock:
            kept, self._kept, self.bytes = self._kept, {}, 0
        for addresses in kept.values():
            for address in addresses:
                self._close(address)
        return bool(kept)
