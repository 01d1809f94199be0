"""Which devices there are, by the names that settings use.

`cpu` is this process's threads, `cuda` every CUDA device, `cuda:1` the second one, `emulated` an emulated GPU,
`emulated*3` three of them, `emulated:1` the second of these. Names are joined by commas. Devices are opened when they
are first asked for.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import lru_cache

from parakeet_py.base.errors import DeviceWarning
from parakeet_py.base.tracebacks import user_level
from parakeet_py.hybrid.devices.device import DeviceError, Machine
from parakeet_py.hybrid.devices.team import Team

_NAME = re.compile(r"(cpu)|(cuda)(?::(\d+))?|(emulated)(?:\*(\d+)|:(\d+))?")
_MOST = 64  # emulated devices
_lock = threading.RLock()


class UnknownDeviceError(ValueError):
    """A name of a device that does not exist here."""


def parse(names: str) -> tuple[str, ...]:
    """The single devices that a setting names, such as ("cpu", "emulated:0", "emulated:1"); "cuda" stays as it is.

    Raises
    ------
    UnknownDeviceError
        A name that means no device, or no name at all.
    """
    found: list[str] = []
    for part in names.split(","):
        match = _NAME.fullmatch(part.strip())
        if match is None:
            raise UnknownDeviceError(f"{part.strip() or names!r} names no device; there are {existing()}")
        if match[1]:
            found.append("cpu")
        elif match[2]:
            found.append("cuda" if match[3] is None else f"cuda:{int(match[3])}")
        elif match[6]:
            if int(match[6]) >= _MOST:
                raise UnknownDeviceError(f"{part.strip()!r}: emulated devices are numbered from 0 to {_MOST - 1}")
            found.append(f"emulated:{int(match[6])}")
        else:
            count = int(match[5] or 1)
            if not 1 <= count <= _MOST:
                raise UnknownDeviceError(f"{part.strip()!r}: between 1 and {_MOST} emulated devices")
            first = sum(name.startswith("emulated") for name in found)
            found += [f"emulated:{first + number}" for number in range(count)]
    return tuple(dict.fromkeys(found))


def existing() -> str:
    """The devices that there are here, for messages."""
    from parakeet_py.hybrid.devices.cuda_probe import probe

    found = probe()
    cuda = [f"cuda:{number}" for number in range(found.devices)]
    text = ", ".join(["cpu", *(["cuda", *cuda] if cuda else ()), "emulated, emulated*2..."])
    return text if cuda else f"{text}; no CUDA device: {found.reason}"


def check_split(names: str, split: float) -> None:
    """Whether a forced split makes sense for these devices.

    Raises
    ------
    ValueError
        There is nobody to give the one or the other share to.
    """
    found = parse(names)
    if split > 0 and found == ("cpu",):
        raise ValueError(
            f"split={split:g} is the share of devices other than the CPU, but devices={names!r} names none; "
            f"there are {existing()}"
        )
    if split < 1 and "cpu" not in found:
        raise ValueError(
            f"split={split:g} leaves a share to the CPU, which devices={names!r} does not name; "
            "add cpu, or leave split out"
        )


@lru_cache(maxsize=64)
def chosen(names: str, split: float | None) -> Machine | Team | None:
    """Who runs calls with these settings: a device alone, several together, or the CPU alone (None)."""
    devices = open_devices(names)
    if not devices:
        return None
    cpu = "cpu" in parse(names)
    return devices[0] if len(devices) == 1 and not cpu else Team(devices, cpu, split)


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
                warnings.warn(DeviceWarning(f"{error}; calls run on the CPU"), stacklevel=user_level())
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
