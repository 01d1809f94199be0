"""The time that calls of accelerated functions have taken in Python, or waited for the compiler: each moment once.

A call adds what it has taken without what calls within it have added meanwhile. That is also its *own* time: summed
over all functions, own times are never more than what the process has run for. Machine code adds to the same word.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

booked = array("q", [0])  # nanoseconds


def address() -> int:
    """Where the sum is, an i64."""
    return booked.buffer_info()[0]


@contextmanager
def not_of_the_call() -> Iterator[None]:
    """What happens in this block, within a call, is the package's own work: no time of the calls around it."""
    before, start = booked[0], time.perf_counter_ns()
    try:
        yield
    finally:
        booked[0] += max(time.perf_counter_ns() - start - (booked[0] - before), 0)
