"""Emulated devices of a known speed, on simulated time.

What a `SimulatedDevice` computes is what the emulator computes; how long it takes follows from what it has done: the
instructions of its kernels by its rate, the bytes of its copies by its link, and a start for each. Kernels and copies
each way go on at the same time, as on a GPU, if they are asked for in different lanes; what is asked for in one lane is
done in order. A copy to the host is waited for before anything else is asked. A copy from another such device begins
when what it copies is there, when both ends of the link are free, and keeps what comes later there waiting; the clocks
of a team are set alike when a call begins. A clock stands still otherwise, so a test of how work is shared does not
depend on the machine that it runs on. It fails on request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from parakeet_py.hybrid.devices.device import Device, DeviceError
from parakeet_py.hybrid.devices.emulated import MEMORY, EmulatedDevice
from parakeet_py.hybrid.devices.timeline import COPY_OUT, COPY_OVER, KERNEL, recorder
from parakeet_py.hybrid.plan.part_cost import Speed
from parakeet_py.hybrid.residency.byte_ranges import Rows

GIVEN = "copies to others"  # what keeps a device's end of a link busy while another one copies from it


class SimulatedDevice(EmulatedDevice):
    """One simulated device, see `device.Device`.

    Parameters
    ----------
    speed : what it takes for instructions, bytes, and starting a kernel or copy
    memory : its bytes
    fails_after : how many kernels and copies it does before it fails for good; None for ever

    Attributes
    ----------
    clock : when it is done with all that it has been asked, in seconds
    """

    asynchronous = True

    def __init__(self, name: str, speed: Speed, memory: int = MEMORY, fails_after: int | None = None) -> None:
        super().__init__(name, memory)
        self.speed = speed
        self.clock = 0.0
        self.fails_after = fails_after
        self._host = 0.0  # until then the host waits
        self._free: dict[object, float] = {}  # when each lane, and what does each kind of thing, is free
        self._here = threading.local()

    @contextmanager
    def _does(self, kind: str, name: str, amount: int) -> Iterator[None]:
        if self.fails_after is not None:
            if self.fails_after <= 0:
                raise DeviceError(f"{self.name} has failed, as it was told")
            self.fails_after -= 1
        before = self._device.counters.instructions
        yield
        if kind == KERNEL:
            seconds = (self._device.counters.instructions - before) / self.speed.operations
        else:
            seconds = amount / self.speed.link
        begin = max(self.mark(), self._free.get(kind, 0.0))
        end = begin + self.speed.start + seconds
        self._free[kind] = self._free[self._lane()] = end
        self._host = end if kind == COPY_OUT else self._host
        self.clock = max(self.clock, end)
        found = recorder()
        if found is not None:
            found.add(self, kind, name, amount, begin, end)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        if not isinstance(source, SimulatedDevice):
            super().copy_over(address, source, place, rows, after)
            return
        ready = source.mark() if after is None else after
        begin = max(self._free.get(COPY_OVER, 0.0), source._free.get(GIVEN, 0.0), ready)
        self._free[COPY_OVER] = begin
        super().copy_over(address, source, place, rows, after)
        end = source._free[GIVEN] = self._free[COPY_OVER]
        source._free[source._lane()] = max(source._free.get(source._lane(), 0.0), end)  # it is not overwritten before

    def _lane(self) -> int:
        return getattr(self._here, "lane", 0)

    @contextmanager
    def lane(self, number: int) -> Iterator[None]:
        before = self._lane()
        self._here.lane = number
        try:
            yield
        finally:
            self._here.lane = before

    def synchronize(self) -> None:
        self._host = self.mark()

    def idle(self, until: float) -> None:
        """Nothing is asked of it before this mark."""
        self._host = max(self._host, until)

    def mark(self) -> float:
        return max(self._free.get(self._lane(), 0.0), self._host)


def set_clocks(devices: Sequence[Device]) -> None:
    """Let a call begin everywhere at the same time, when all simulated devices are done with what came before."""
    found = [device for device in devices if isinstance(device, SimulatedDevice)]
    now = max((device.clock for device in found), default=0.0)
    for device in found:
        device.idle(now)
