"""The names of devices in settings.

`cpu` is this process's threads, `cuda` every CUDA device, `cuda:1` the second one, `emulated` an emulated GPU,
`emulated*3` three of them, `emulated:1` the second of these. Names are joined by commas.
"""

from __future__ import annotations

import re

from parakeet_py.base import cuda_probe

_NAME = re.compile(r"(cpu)|(cuda)(?::(\d+))?|(emulated)(?:\*(\d+)|:(\d+))?")
_MOST = 64  # emulated devices


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
    found = cuda_probe.probe()
    cuda = [f"cuda:{number}" for number in range(found.devices)]
    text = ", ".join(["cpu", *(["cuda", *cuda] if cuda else ()), "emulated, emulated*2..."])
    return text if cuda else f"{text}; no CUDA device: {found.reason}"


def check_split(names: str, split: float) -> None:
    """Whether a forced split makes sense for these devices.

    Raises
    ------
    ValueError
        There is no member to give the one or the other share to.
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
