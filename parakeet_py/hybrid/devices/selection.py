"""The devices that settings name (`base/device_names.py`), opened when they are first asked for."""

from __future__ import annotations

import threading
import warnings
from functools import lru_cache

from parakeet_py.base.device_names import parse
from parakeet_py.base.errors import DeviceWarning, advised
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.hybrid.devices.device import DeviceError, Machine
from parakeet_py.hybrid.devices.team import Team, team_of

_lock = threading.RLock()


@lru_cache(maxsize=64)
def chosen(names: str, split: float | None) -> Team | None:
    """What runs calls with these settings: a team, of one device or of several; None: the CPU alone."""
    devices = open_devices(names)
    if not devices:
        return None
    cpu = "cpu" in parse(names)
    return team_of(devices[0]) if len(devices) == 1 and not cpu else Team(devices, cpu, split)


@lru_cache(maxsize=64)
def open_devices(names: str) -> tuple[Machine, ...]:
    """The devices other than the CPU that a setting names; none for "cuda" where there is no CUDA device.

    Raises
    ------
    UnknownDeviceError
        A name that means no device.
    DeviceError
        A CUDA device asked for by its number is not there, or cannot be used; the message says why.
    """
    devices: list[Machine] = []
    for name in parse(names):
        if name == "cpu":
            continue
        kind, _, number = name.partition(":")
        if kind == "emulated":
            devices.append(_emulated(int(number)))
        else:
            from parakeet_py.hybrid.devices.cuda import devices as cuda_devices

            if number:
                devices += cuda_devices(int(number))
                continue
            try:
                devices += cuda_devices()
            except DeviceError as error:  # whatever there is was asked for: that is none
                text = advised(f"{error}; calls run on the CPU")
                warnings.warn(DeviceWarning(text), stacklevel=user_level())
    return tuple(devices)


def forget() -> None:
    """Let devices be looked for anew."""
    open_devices.cache_clear()
    chosen.cache_clear()


@lru_cache(maxsize=64)
def _emulated(number: int) -> Machine:
    from parakeet_py.hybrid.devices.emulated import EmulatedDevice

    with _lock:
        return EmulatedDevice(f"emulated:{number}")
