"""What a call does on a device alone, for `explain`: its kernels, their launches, the bytes that are copied.

Most of it is known before anything runs, from a dry run; where the host part looks at an element, what comes after it
is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.call.devices.calls import device_plan_of
from parakeet_py.call.give_back import values_of
from parakeet_py.hybrid.devices.faults import lines_of
from parakeet_py.hybrid.devices.occupancy_limit import Resources, plan_for
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.devices.timeline import Timeline
from parakeet_py.hybrid.devices.transfer_counters import Run
from parakeet_py.hybrid.execute.dry_run import DryRun


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
    launches = f"{count} launch{'' if count == 1 else 'es'}"
    libraries = "".join(f"{times} {name} by {library}, " for (library, name), times in run.libraries)
    copied = f"{run.bytes_in} bytes to the device, {run.bytes_out} from it"
    return f"{libraries}{launches}, {copied}, {run.allocated} allocated there"


def device_report(compiled: Any, normal: Sequence[Any], team: Team) -> DeviceReport:
    """What a call in positional form would do on a device alone."""
    device = team.alone
    plan = plan_for(device_plan_of(compiled), device)
    call = DryRun(plan, team)
    complete = call.known(values_of(compiled, normal))
    foreseen = call.done()
    kernels = []
    for number, kernel in enumerate(plan.kernels):
        parts = plan.parts.get((id(device), number), 1)
        launches = tuple((blocks * parts, times) for (one, blocks), times in foreseen.launches if one == number)
        threads, resources = kernel.threads // parts, plan.resources.get(number)
        kernels.append(KernelReport(kernel.name, tuple(lines_of(kernel)), threads, launches, resources))
    return DeviceReport(
        device.name, device.architecture, tuple(kernels), foreseen, complete, plan.last_run, plan.timeline
    )
