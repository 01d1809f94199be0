"""Calls of accelerated functions on one emulated device."""

from __future__ import annotations

import gc
from typing import Any

from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import team_of


def on(device: EmulatedDevice, function: Any, *args: Any) -> Any:
    """A call of an accelerated function on one device."""
    return calls.call(function._dispatcher, args, team_of(device))


def free_bytes(device: EmulatedDevice) -> int:
    gc.collect()
    return device._device.free_bytes
