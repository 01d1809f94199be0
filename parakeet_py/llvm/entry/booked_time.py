"""The time that calls of accelerated functions have taken in Python, or waited for the compiler: each moment once.

A call adds what it has taken without what calls within it have added meanwhile. That is also its *own* time: summed
over all functions, own times are never more than what the process has run for. Machine code adds to the same word.
"""

from __future__ import annotations

from array import array

booked = array("q", [0])  # nanoseconds


def address() -> int:
    """Where the sum is, an i64."""
    return booked.buffer_info()[0]
