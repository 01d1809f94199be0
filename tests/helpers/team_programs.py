"""Teams of emulated and simulated devices, and programs to run on them."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import numpy as np

from parakeet_py import accelerate, generate
from parakeet_py.call.devices.calls import call, team_plan_of
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.simulated_clock import SimulatedDevice
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.execute.cpu_only_calls import CpuOnlyCalls
from parakeet_py.hybrid.execute.run_record import TeamRun
from parakeet_py.hybrid.plan.part_cost import Speed

DEVICES = tuple(EmulatedDevice(f"emulated:{20 + number}", memory=1 << 22) for number in range(8))


def on(team: Team, function: Any, *args: Any) -> tuple[Any, TeamRun]:
    """A call on a team, and what it has done."""
    result = call(function._dispatcher, args, team, in_regions=True)
    run = team_plan_of(function._dispatcher.compiled_for_normal(args)).last_run
    assert isinstance(run, TeamRun)
    return result, run


@accelerate
def relax(x: Any, y: Any, times: int) -> Any:
    for _ in range(times):
        y[1:-1] = 0.25 * (x[:-2] + 2.0 * x[1:-1] + x[2:])
        x[1:-1] = 0.25 * (y[:-2] + 2.0 * y[1:-1] + y[2:])
    return None


def shared_always() -> Any:
    """Inside, calls are the team's from the first one on, however little there is to do."""
    return mock.patch.object(CpuOnlyCalls, "run", lambda self, args, team, plan, leaves, native, shared: shared(team))


class Failing(EmulatedDevice):
    """A device that fails at its so-many-eth operation, and from then on."""

    def __init__(self, name: str, after: int, memory: int = 1 << 22) -> None:
        super().__init__(name, memory)
        self.left = after

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DeviceError(f"{self.name} has fallen off the bus")

    def allocate(self, size: int) -> int:
        self._count()
        return super().allocate(size)

    def copy_in(self, *args: Any) -> None:
        self._count()
        super().copy_in(*args)

    def copy_out(self, *args: Any) -> None:
        self._count()
        super().copy_out(*args)

    def copy_over(self, *args: Any) -> None:
        self._count()
        super().copy_over(*args)

    def launch(self, *args: Any) -> None:
        self._count()
        super().launch(*args)


@accelerate
def escape(c: Any, limit: int) -> Any:
    out = np.zeros(len(c), np.int64)
    for k in range(len(c)):
        z, steps = 0j, 0
        while steps < limit and z.real * z.real + z.imag * z.imag <= 4.0:
            z = z * z + c[k]
            steps += 1
        out[k] = steps
    return out


_names = itertools.count(60)


def simulated(*rates: float) -> tuple[SimulatedDevice, ...]:
    speeds = [Speed(rate, 1e9, 1e-5) for rate in rates]
    return tuple(SimulatedDevice(f"emulated:{next(_names)}", speed, 1 << 24) for speed in speeds)


def clocked(devices: tuple[SimulatedDevice, ...], function: Any, *args: Any) -> tuple[Any, list[float], TeamRun]:
    """The result of a call on simulated devices, the seconds of each, and what the call has done."""
    start = max(device.clock for device in devices)
    result, run = on(Team(devices, False), function, *args)
    return result, [max(device.clock - start, 0.0) for device in devices], run


def alone(function: Any, *args: Any) -> float:
    """The seconds of a call on a device that does a million operations in one."""
    return max(clocked(simulated(1e6), function, *args)[1])


@accelerate
def work(x: Any) -> Any:
    return x * x * 0.5 + x * 0.25 + np.sqrt(x + 1.0)


@accelerate
def rows(lengths: Any) -> Any:
    def total(k: Any) -> Any:
        found, n = 0.0, 0
        while n < lengths[k]:
            found += n
            n += 1
        return found

    return generate(len(lengths), total)


@accelerate
def mandelbrot(re: Any, im: Any, limit: int) -> Any:
    c = np.cumsum(np.zeros((len(im), len(re))), axis=1) + re + 1j * im[:, None]  # made where it is not needed
    out = np.zeros(c.shape, np.int64)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            z, steps = 0j, 0
            while steps < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = z * z + c[i, j]
                steps += 1
            out[i, j] = steps
    return out


BALANCED = work, (np.random.default_rng(1).random(4000),)


@accelerate
def spmv(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    out = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total
    return out


def heavy_rows_first() -> tuple[Any, ...]:
    random = np.random.default_rng(1)
    counts = random.integers(0, 45, 2000)
    counts[:100] += 150
    starts = np.concatenate(([0], np.cumsum(counts)))
    return starts, random.integers(0, 2000, starts[-1]), random.random(starts[-1]), random.random(2000)


UNBALANCED = {
    "escape times": (escape, (np.linspace(-2.0, 0.6, 3000) + 0.05j, 60)),
    "longer and longer": (rows, (np.arange(6000) // 100,)),
    "an image": (mandelbrot, (np.linspace(-2.0, 0.6, 32), np.linspace(-1.3, 1.3, 100), 60)),
}


class Quick(EmulatedDevice):
    """A device that says of itself that it is fast, so that it gets work beside the CPU."""

    speed = Speed(1e12, 1e12, 1e-6)
