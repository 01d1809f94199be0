"""What stands for the process that measures, in tests of what watches over it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from parakeet_py.bench.gpu.ceilings import Ceilings
from parakeet_py.bench.gpu.measure import Row, Times
from parakeet_py.bench.gpu.runner import Begun, Measured, Opened


def serve(there: Any, device: str, size: Any, budget: float, names: Any, without: Any) -> None:
    """A library that ends the process, a kernel that hangs, one that faults."""
    rates = Ceilings(1.0, 1.0, 1.0)
    there.send(Opened(device, "sm_90", True, rates, ("cupy", "jax"), {"torch": "not installed"}))
    for name in names:
        there.send(Begun(name))
        if name == "total":
            time.sleep(600)
        times = Times("ok", kernels=1.0, resident=1.0)
        row = Row(name, "", (3,), 8, None, True, times, times, {})
        there.send(Measured(row, False))
        if "cupy" not in without:
            os._exit(7)
        if name == "waves":
            faulted = Times("error", "it has faulted")
            there.send(Measured(replace(row, ours=faulted, contracted=faulted), True, broken=True))
            time.sleep(600)
        there.send(Measured(replace(row, peers={"jax": times}), True))
    there.send(None)
