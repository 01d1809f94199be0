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


class Stock:
    """Addresses of memory of one lane and one size.

    Attributes
    ----------
    pool : that counts the bytes
    """

    __slots__ = ("addresses", "pool", "size")

    def __init__(self, pool: MemoryPool, size: int) -> None:
        self.pool, self.size = pool, size
        self.addresses: list[int] = []

    def take(self) -> int | None:
        """One of them; None if there is none."""
        if not self.addresses:
            return None
        try:
            address = self.addresses.pop()
        except IndexError:  # another thread has it
            return None
        self.pool.bytes -= self.size
        return address

    def take_this(self, address: int) -> bool:
        """Take the memory at an address; whether it is there."""
        addresses = self.addresses
        try:
            last = addresses.pop()
            if last != address:
                addresses.append(last)
                addresses.remove(address)
        except (IndexError, ValueError):
            return False
        self.pool.bytes -= self.size
        return True


class MemoryPool:
    """The memory of one device that is kept.

    Parameters
    ----------
    most : bytes that are kept
    close : gives memory at an address back to the driver
    """

    def __init__(self, most: int, close: Callable[[int], None]) -> None:
        self._most, self._close = most, close
        self._lock = threading.RLock()  # garbage may be collected meanwhile, see `relieve` of devices
        self._kept: dict[tuple[int, int], Stock] = {}  # by lane and size
        self.bytes = 0

    def stock(self, lane: int, size: int) -> Stock:
        """What is kept, now and later, of memory of a (rounded) size."""
        found = self._kept.get((lane, size))
        return self._kept.setdefault((lane, size), Stock(self, size)) if found is None else found

    def take(self, lane: int, size: int) -> int | None:
        """Memory of a (rounded) size that is kept; None if there is none."""
        found = self._kept.get((lane, size))
        return None if found is None else found.take()

    def give(self, stock: Stock, address: int) -> None:
        """Memory that is not used any more after what the lane has been asked for."""
        size = stock.size
        if self.bytes + size > self._most:
            self._close(address)
            return
        self.bytes += size
        stock.addresses.append(address)

    def trim(self) -> bool:
        """Give all back; whether there was any."""
        any_kept = False
        with self._lock:
            for stock in [*self._kept.values()]:
                while (address := stock.take()) is not None:
                    any_kept = True
                    self._close(address)
        return any_kept
