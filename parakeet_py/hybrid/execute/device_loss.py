"""Devices that fail while a team works: who is lost, for how long, and what becomes of the call.

A `Member` stands between a call and a device of its team. Whatever goes wrong with the device (a fault, no memory, no
device any more) leaves it as `Lost`, which says who it was. The call then begins again without that device, from
arguments as they were when it began: what only the lost device had is gone with it, and nothing that a call does shows
outside before it ends, except in arguments, which are kept aside for that.

A device that had no memory for a call is asked again in the next one. One that has failed otherwise is left out for a
while, and then tried again.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from parakeet_py.base.errors import DeviceWarning, advised
from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.hybrid.devices.device import Device, DeviceError, DeviceMemoryError
from parakeet_py.hybrid.devices.recording import CopyOver, is_known
from parakeet_py.hybrid.devices.transfer_counters import RecordedDevice
from parakeet_py.hybrid.residency.byte_ranges import Rows

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.team import Team

AGAIN_AFTER = 30.0  # seconds
Result = TypeVar("Result")

_lock = threading.Lock()
_failed: dict[str, float] = {}  # devices and when to try them again


class Lost(Exception):
    """A device of the team has failed; `error` is what it has said."""

    def __init__(self, device: Device, error: Exception) -> None:
        super().__init__(f"{device.name} is lost: {error}")
        self.device = device
        self.error = error


class _Watched:
    """Says of what fails inside whose failure it is.

    No generator: from Python 3.13 on its frame would keep the exception, and so the memory of the call, in a cycle.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, DeviceError | DeviceMemoryError):
            raise Lost(self.device, error) from error


class Member(RecordedDevice):
    """A device, see `device.Device`, that says who it is when it fails, and what it is asked when that is recorded."""

    def _watched(self) -> _Watched:
        return _Watched(self.device)

    def allocate(self, size: int) -> int:
        with self._watched():
            return super().allocate(size)

    def free(self, address: int) -> None:
        with suppress(DeviceError):  # a device that is lost has nothing to give back
            super().free(address)

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        if not is_known():
            self.spoil("data of the host's")  # which may be others the next time
        with self._watched():
            super().copy_in(address, data, pitch)

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        with self._watched():
            super().copy_out(data, address, pitch)

    def reaches(self, source: Device) -> bool:
        return isinstance(source, Member) and super().reaches(source.device)

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        assert isinstance(source, Member)
        with self._watched():
            self.device.copy_over(address, source.device, place, rows, after)
        noting = self.recorder()
        if noting is not None:
            noting.add(CopyOver(self.device, address, source.device, place, rows))

    def copy_within(self, target: int, source: int, size: int) -> None:
        with self._watched():
            super().copy_within(target, source, size)

    def load(self, ptx: str, shared: int = 0) -> Any:
        with self._watched():
            return super().load(ptx, shared)

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        with self._watched():
            super().launch(module, kernel, blocks, threads, codes, values)

    def synchronize(self) -> None:
        with self._watched():
            super().synchronize()

    def mark(self) -> Any:
        with self._watched():
            return super().mark()


_members: dict[int, Member] = {}


def member_of(device: Device) -> Member:
    """The member that stands for a device, the same in every call: modules are kept by it."""
    return _members.setdefault(id(device), Member(device))


def is_short(team: Team) -> bool:
    """Whether some devices of a team are left out for a while."""
    return bool(_failed) and any(device.name in _failed for device in team.devices)


def present(team: Team) -> Team:
    """The team without the devices that have failed a short while ago."""
    if not _failed:
        return team
    now = time.monotonic()
    with _lock:
        for name in [name for name, again in _failed.items() if again <= now]:
            del _failed[name]
        away = set(_failed)
    return _without(team, [device for device in team.devices if device.name in away]) if away else team


def _without(team: Team, gone: Sequence[Device]) -> Team:
    devices = tuple(device for device in team.devices if device not in gone)
    return team if len(devices) == len(team.devices) else replace(team, devices=devices, cpu=team.cpu or not devices)


@hidden
def with_losses(
    team: Team,
    arguments: Sequence[np.ndarray[Any, Any]],
    work: Callable[[Team], Result],
    repeatable: Callable[[], bool],
) -> Result:
    """The result of `work(team)`, done again with fewer devices when one is lost.

    Parameters
    ----------
    arguments : arrays that the work stores to; they are put back before it is done again
    repeatable : whether the work may be done again, asked after a loss
    """
    team = present(team)
    kept = [array.copy() for array in arguments] if team.devices else []
    while True:
        try:
            return work(team)
        except Lost as lost:
            if not repeatable():
                raise lost.error from None
            for array, copy in zip(arguments, kept, strict=True):
                np.copyto(array, copy)
            team = _without(team, [lost.device])
            _tell(lost, team)


def _tell(lost: Lost, team: Team) -> None:
    """Remember a loss, and warn once until the device is tried again."""
    if not isinstance(lost.error, DeviceMemoryError):
        with _lock:
            _failed[lost.device.name] = time.monotonic() + AGAIN_AFTER
    names = [*(["the CPU"] if team.cpu else []), *(device.name for device in team.devices)]
    text = advised(f"{lost.device.name} has failed, its work is done by {' and '.join(names)}: {lost.error}")
    warnings.warn(DeviceWarning(text), stacklevel=user_level())


def forget_losses() -> None:
    """Try all devices again."""
    with _lock:
        _failed.clear()
