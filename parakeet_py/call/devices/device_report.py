"""What a call will do on a device, found out without the device: for `explain`.

The host part of a plan is run on arrays that have shapes and addresses but no elements. Launches and copies are counted
as they are in a call. Where the host part looks at an element, what comes after it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.call.devices.device_calls import plan_of
from parakeet_py.call.interpreters import values_of
from parakeet_py.hybrid.devices.device import Device
from parakeet_py.hybrid.devices.faults import lines_of
from parakeet_py.hybrid.devices.occupancy_limit import Resources, plan_for
from parakeet_py.hybrid.devices.timeline import Timeline
from parakeet_py.hybrid.devices.transfer_counters import Run
from parakeet_py.hybrid.execute.device_run import Call
from parakeet_py.hybrid.plan.device_plan import Plan
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView
from parakeet_py.hybrid.residency.byte_ranges import Rows
from parakeet_py.hybrid.residency.device_arguments import Foreign
from parakeet_py.hybrid.residency.persistent_memory import Home
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS

MOST = 10_000  # launches that are rehearsed


class Unknown(Exception):
    """What comes now depends on elements that have not been computed."""


class _Element:
    """An element of an array, which must not be read."""

    def _refuse(self, *_: object) -> Any:
        raise Unknown

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __and__ = __or__ = __xor__ = __rshift__ = __getattr__ = _refuse


class _NoDevice:
    """Takes and gives memory that is not there."""

    asynchronous = False

    def __init__(self, device: Device) -> None:
        self.name, self.architecture, self.stands_for = device.name, device.architecture, device
        self.next = 1 << 40

    def allocate(self, size: int) -> int:
        self.next += size
        return self.next - size

    def free(self, address: int) -> None:
        pass

    def copy_in(self, address: int, data: np.ndarray[Any, Any], pitch: int = 0) -> None:
        pass

    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None:
        pass

    def reaches(self, source: Device) -> bool:
        return False

    def copy_over(self, address: int, source: Device, place: int, rows: Rows, after: Any = None) -> None:
        raise Unknown

    def load(self, ptx: str) -> Any:
        raise Unknown

    def launch(self, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Sequence[Any]) -> None:
        raise Unknown

    def synchronize(self) -> None:
        pass

    def mark(self) -> Any:
        raise Unknown

    def lane(self, number: int) -> AbstractContextManager[None]:
        raise Unknown


class _Rehearsal(Call):
    def launch(self, number: int, blocks: int, args: tuple[Any, ...]) -> None:
        if blocks <= 0:
            return
        self.changes(number, args)
        self.device.launched(number, blocks, ())
        if self.plan.kernels[number].checked:
            if self.record is None:
                self.record = Buffer(self.device, 8 * FAILURE_WORDS)
            self.device.bytes_in += 8 * FAILURE_WORDS
            self.device.bytes_out += 8 * FAILURE_WORDS
        if sum(self.device.launches.values()) > MOST:
            raise Unknown

    def load(self, array: DeviceView, indices: tuple[int, ...]) -> Any:
        self.device.bytes_out += np.dtype(array.dtype).itemsize
        return _Element()

    def store(self, array: DeviceView, indices: tuple[int, ...], value: Any) -> None:
        self.changed.add(array.buffer)
        self.device.bytes_in += np.dtype(array.dtype).itemsize

    def opaque(self, site: int, args: tuple[Any, ...]) -> list[Any]:
        raise Unknown

    def bring(self, home: Home) -> Buffer:
        return Buffer(self.device.device, home.size)

    def memory(self) -> Device:
        assert isinstance(self.device.device, _NoDevice)
        return self.device.device.stands_for

    def download(self, array: DeviceView) -> None:
        array.to_host()

    def leaving(self, value: Any, kind: object) -> Any:
        return super().leaving(value, kind) if isinstance(value, DeviceView) else None


@record
class KernelReport:
    """One kernel: the lines it computes, and `launches` as (blocks, times), as far as they are known beforehand."""

    name: str
    lines: tuple[int, ...]
    threads: int
    launches: tuple[tuple[int, int], ...]
    resources: Resources | None = None  # once the driver has compiled it

    def __str__(self) -> str:
        lines = f" (line{'s' if len(self.lines) > 1 else ''} {', '.join(map(str, self.lines))})" if self.lines else ""
        shapes = [
            _shape(blocks, self.threads) + ("" if times == 1 else f", {times} times") for blocks, times in self.launches
        ]
        takes = ""
        if self.resources is not None:
            takes = f"; {self.resources.registers} registers, {self.resources.occupancy:.0%} of the threads fit"
        return f"{self.name}{lines}: {'; '.join(shapes) or _shape(1, self.threads, 'blocks of')}{takes}"


@record
class DeviceReport:
    """A call on a device.

    Attributes
    ----------
    device, architecture : the device's name; what PTX is made for
    kernels : all that the function has; which of them are launched, the call decides
    foreseen : what the call does, as far as it is known without elements; kernels are numbers of `kernels`
    complete : whether that is all
    last_run : what the last call of this signature has done
    timeline : of the last call of this signature that was recorded, with `options(timeline=True)`
    """

    device: str
    architecture: str
    kernels: tuple[KernelReport, ...]
    foreseen: Run
    complete: bool
    last_run: Run | None
    timeline: Timeline | None = None

    def __str__(self) -> str:
        lines = [f"runs on {self.device} ({self.architecture})", "kernels:" if self.kernels else "kernels: none"]
        lines += [f"  {kernel}" for kernel in self.kernels]
        more = "" if self.complete else ", and what depends on elements"
        lines.append(f"before the run: {_moved(self.foreseen)}{more}")
        if self.last_run is not None:
            lines.append(f"last run: {_moved(self.last_run)}")
        return "\n".join(lines)


def _shape(blocks: int, threads: int, many: str = "") -> str:
    """The shape of a launch; loops that store for their later steps are one thread."""
    if not blocks:
        return "by cuBLAS"
    return "one thread, step after step" if threads == 1 else f"{many or f'{blocks} x'} {threads} threads"


def _moved(run: Run) -> str:
    count = sum(times for _, times in run.launches)
    return (
        f"{count} launch{'' if count == 1 else 'es'}, {run.bytes_in} bytes to the device, {run.bytes_out} from it, "
        f"{run.allocated} allocated there"
    )


def device_report(compiled: Any, normal: Sequence[Any], device: Device, foreign: Foreign | None = None) -> DeviceReport:
    """What a call in positional form would do on a device, where the `foreign` arguments live already."""
    plan = plan_for(plan_of(compiled), device)
    foreseen, complete = _rehearse(plan, values_of(compiled, normal), device, foreign)
    kernels = []
    for number, kernel in enumerate(plan.kernels):
        parts = plan.parts.get((id(device), number), 1)
        launches = tuple((blocks * parts, times) for (one, blocks), times in foreseen.launches if one == number)
        threads, resources = kernel.threads // parts, plan.resources.get(number)
        kernels.append(KernelReport(kernel.name, tuple(lines_of(kernel)), threads, launches, resources))
    return DeviceReport(
        device.name, device.architecture, tuple(kernels), foreseen, complete, plan.last_run, plan.timeline
    )


def _rehearse(plan: Plan, leaves: Sequence[Any], device: Device, foreign: Foreign | None) -> tuple[Run, bool]:
    params = plan.function.params
    given = [
        np.asarray(leaf) if isinstance(param.type, Array) else leaf for leaf, param in zip(leaves, params, strict=True)
    ]
    call = _Rehearsal(plan, _NoDevice(device), None, foreign)
    try:
        call.run(given, plan.gives_views)
    except Exception:  # unknown, or the call raises: what it has done so far is what is known
        return call.device.run(), False
    return call.device.run(), True
