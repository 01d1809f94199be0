"""Emulated devices of a known speed, on simulated time.

What a `SimulatedDevice` computes is what the emulator computes; how long it takes follows from what it has done: the
instructions of its kernels by its rate, the bytes of its copies by its link, and a start for each. Its clock stands
still otherwise, so a test of how work is shared does not depend on the machine that it runs on. It can be told to fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.hybrid.cost import Speed
from parakeet_py.hybrid.device import DeviceError
from parakeet_py.hybrid.emulated import MEMORY, EmulatedDevice


class SimulatedDevice(EmulatedDevice):
    """One simulated device, see `device.Device`.

    Parameters
    ----------
    speed : what it takes for instructions, bytes, and starting a kernel or copy
    memory : its bytes
    fails_after : how many kernels and copies it does before it fails for good; None for ever

    Attributes
    ----------
    clock : seconds that it has worked
    """

    def __init__(self, name: str, speed: Speed, memory: int = MEMORY, fails_after: int | None = None) -> None:
        super().__init__(name, memory)
        self.speed = speed
        self.clock = 0.0
        self.fails_after = fails_after

    def _works(self, seconds: float) -> None:
        self.clock += self.speed.start + seconds

    def _may_fail(self) -> None:
        if self.fails_after is not None:
            if self.fails_after <= 0:
                raise DeviceError(f"{self.name} has failed, as it was told")
            self.fails_after -= 1

    def copy_in(self, address: int, data: np.ndarray[Any, Any]) -> None:
        self._may_fail()
        super().copy_in(address, data)
        self._works(data.nbytes / self.speed.link)

    def copy_out(self, data: np.ndarray[Any, Any], address: int) -> None:
        self._may_fail()
        super().copy_out(data, address)
        self._works(data.nbytes / self.speed.link)

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        self._may_fail()
        counters = self._device.counters
        before = counters.instructions
        super().launch(module, kernel, blocks, threads, codes, values)
        self._works((counters.instructions - before) / self.speed.operations)

    def mark(self) -> float:
        return self.clock
