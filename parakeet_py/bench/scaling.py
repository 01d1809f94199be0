"""Weak scaling: the same work for each of 1, 2, 4 and 8 devices, `parakeet scaling`.

Devices are `ModelDevice`s of set speed, which compute nothing, in a clock in which the time of the host goes on: what a
call costs the host, once for all devices, is measured, what they take themselves is modelled. Arrays live on the
devices, each of which has its part and what it needs of its neighbours'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.config import options
from parakeet_py.bench.chosen import Clock, ModelDevice
from parakeet_py.call.accelerate import accelerate
from parakeet_py.call.devices.calls import call
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.plan.part_cost import Speed
from parakeet_py.hybrid.residency.arrays import Layout
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.hybrid.residency.persistent_memory import Home

SPEED = Speed(operations=2e12, link=3e11, start=5e-6)  # GPUs with a link between them
COUNTS = (1, 2, 4, 8)
BEGIN, END = "<!-- scaling: begin -->", "<!-- scaling: end -->"
ROWS, COLUMNS = 1 << 17, 1 << 11  # of each device, float32: 1 GB
CALLS_BEFORE, ROUNDS, CALLS = 20, 8, 10


def relaxation(x: Any, y: Any) -> None:
    """Halos move in each half-step."""
    y[1:-1] = (x[:-2] + x[2:]) * 0.5
    x[1:-1] = (y[:-2] + y[2:]) * 0.5


def elementwise(x: Any, y: Any) -> Any:
    return x * 2 + y


def row_sums(x: Any, y: Any) -> Any:
    return (x * y).sum(axis=1)


WORK: tuple[Callable[..., Any], ...] = (relaxation, elementwise, row_sums)


class Row(NamedTuple):
    """Seconds of a call, and of them CPU time of the host, by the number of devices."""

    name: str
    seconds: dict[int, float]
    host: dict[int, float]

    def efficiency(self, count: int) -> float:
        """One device's time against that of so many, with as many times the work."""
        return self.seconds[min(self.seconds)] / self.seconds[count]


def rows(counts: Sequence[int] = COUNTS, shape: tuple[int, int] = (ROWS, COLUMNS), only: str = "") -> Iterator[Row]:
    """Measure all work whose name begins so."""
    for function in WORK:
        if function.__name__.startswith(only):
            found = {count: _measured(function, count, shape) for count in counts}
            yield Row(
                function.__name__,
                {count: seconds for count, (seconds, _) in found.items()},
                {count: host for count, (_, host) in found.items()},
            )


def _array(team: Team, shape: tuple[int, int]) -> DeviceArray:
    """An array of float32 whose elements take no memory, here or there."""
    kind = np.dtype(np.float32)
    strides = shape[1] * kind.itemsize, kind.itemsize
    return DeviceArray(Home(None, shape[0] * strides[0]), team, Layout(kind, shape, strides, True), 0)


def _measured(function: Callable[..., Any], count: int, shape: tuple[int, int]) -> tuple[float, float]:
    """Seconds of a call, all devices done, and those of the host in it."""
    clock = Clock()
    devices: tuple[Any, ...] = tuple(ModelDevice(f"emulated:{900 + place}", SPEED, clock) for place in range(count))
    team = Team(devices, cpu=False)
    work: Any = accelerate(when="now")(function)
    times, host = [], []
    with options(check=False, cache=False), np.errstate(all="ignore"):
        given = [_array(team, (count * shape[0], shape[1])) for _ in range(2)]
        work._dispatcher.device = lambda: team
        for turn in range(CALLS_BEFORE + ROUNDS):
            calls = 1 if turn < CALLS_BEFORE else CALLS
            start, waited = clock.now(), clock.waited
            for _ in range(calls):  # a device alone is modelled region by region, too
                kept = work(*given) if count > 1 else call(work._dispatcher, given, team, in_regions=True)
            spent = clock.now() - clock.waited - (start - waited)
            for device in devices:
                device.synchronize()
            times.append((clock.now() - start) / calls)
            host.append(spent / calls)
        del kept
    return min(times[CALLS_BEFORE:]), min(host[CALLS_BEFORE:])


def table(found: Sequence[Row]) -> str:
    """A table in Markdown."""
    counts = sorted(found[0].seconds)
    head = " | ".join(str(count) for count in counts)
    last = counts[-1]
    lines = [f"| work | {head} | efficiency on {last} | host, on {last} |", "|---|" + "---|" * (len(counts) + 2)]
    for row in found:
        times = " | ".join(f"{row.seconds[count] * 1e3:.3f} ms" for count in counts)
        lines.append(f"| {row.name} | {times} | {row.efficiency(last):.2f} | {row.host[last] * 1e6:.0f} µs |")
    return "\n".join(lines)
