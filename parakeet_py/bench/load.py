"""How busy the machine is with other work, for a benchmark that has to warn of it.

The system's load average speaks of the last minute, in which the benchmark's own installation may have run. What counts
is now: the processors' times, taken twice while this process sleeps.
"""

from __future__ import annotations

import time
from pathlib import Path

_TIMES = Path("/proc/stat")  # Linux; elsewhere nothing is known
_IDLE = slice(3, 5)  # idle, waiting for a disk


def busy_processors(seconds: float = 0.5) -> float | None:
    """How many processors are busy while the caller sleeps for a moment; None: not known."""
    before = _times()
    if before is None:
        return None
    time.sleep(seconds)
    after = _times()
    assert after is not None
    return busy_between(before, after)


def busy_between(before: list[list[int]], after: list[list[int]]) -> float:
    """The sum over processors of the share of time that was not idle between two readings."""
    busy = 0.0
    for first, second in zip(before, after, strict=False):
        spent = [later - sooner for sooner, later in zip(first, second, strict=True)]
        if sum(spent) > 0:
            busy += 1 - sum(spent[_IDLE]) / sum(spent)
    return busy


def _times() -> list[list[int]] | None:
    """What each processor has spent its time on: user, nice, system, idle, iowait, interrupts, stolen."""
    try:
        lines = _TIMES.read_text().splitlines()
    except OSError:
        return None
    # The last two columns, guests, are in user and nice already.
    return [[int(word) for word in line.split()[1:9]] for line in lines if line[:3] == "cpu" and line[3:4].isdigit()]
