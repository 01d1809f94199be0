"""A call without elements: which regions it cuts how, which kernels it launches and which bytes move, before anything
runs.

Reports, the choice of calls that stay on the CPU and the estimates of tasks are made from it. It ends where an element,
or how many there are, decides what comes next, and after many regions or launches.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from parakeet_py.base.types import Array
from parakeet_py.hybrid.devices.team import Team
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.execute.call_arrays import DEVICE
from parakeet_py.hybrid.execute.device_memory import DeviceMemory
from parakeet_py.hybrid.execute.execution import Execution
from parakeet_py.hybrid.execute.parts import Parts
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.hybrid.plan.host_plan import HostPlan
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView
from parakeet_py.hybrid.residency.blocks import HOST, Memories, SharedArray, new_array
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS
from parakeet_py.typed_ir.ir import Compress, Var

MOST = 1000  # regions that are rehearsed: the steps before them show what those of longer loops do
MOST_LAUNCHES = 10_000


class Unknown(Exception):
    """What comes next depends on elements."""


class Enough(Exception):
    """What comes next need not be known."""


class _Element:
    """An element of an array, which must not be read."""

    def _refuse(self, *_: object) -> Any:
        raise Unknown

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __array__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __and__ = __or__ = __xor__ = __rshift__ = __getattr__ = _refuse


class _NoDevice:
    """Gives memory that is not there."""

    asynchronous = False

    def __init__(self, device: Any) -> None:
        self.name, self.architecture = device.name, device.architecture
        self.next = 1 << 40

    def allocate(self, size: int) -> int:
        self.next += size
        return self.next - size

    def free(self, address: int) -> None:
        pass

    def host_array(self, shape: Sequence[int], dtype: np.dtype[Any], order: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, dtype, order)


class _NoMemory(DeviceMemory):
    """A device's memory without elements: launches and copies are counted."""

    may_fail = False  # something that was launched since the last look

    def launch(self, number: int, blocks: int, args: tuple[Any, ...]) -> None:
        if blocks <= 0:
            return
        plan, kernel = self.plan, self.plan.kernels[number]
        for place in plan.stores[number]:
            self.changed.add(args[place].buffer)
        self.device.launched(number, blocks, ())
        if kernel.checked or kernel.guarded:
            if self.record is None:
                self.record = Buffer(self.device, 8 * FAILURE_WORDS)
                self.device.bytes_in += 8 * FAILURE_WORDS
            self.may_fail |= kernel.checked
        if sum(self.device.launches.values()) > MOST_LAUNCHES:
            raise Enough

    def look(self) -> None:
        self.device.bytes_out += 8 * FAILURE_WORDS * self.may_fail
        self.may_fail = False

    def load(self, array: DeviceView, indices: tuple[int, ...]) -> Any:
        self.look()
        self.device.bytes_out += np.dtype(array.dtype).itemsize
        return _Element()

    def store(self, array: DeviceView, indices: tuple[int, ...], value: Any) -> None:
        self.look()
        self.changed.add(array.buffer)
        self.device.bytes_in += np.dtype(array.dtype).itemsize


class DryRun(Execution):
    """A call without elements: what it does before the first that decides what comes next."""

    def __init__(self, plan: HostPlan, team: Team) -> None:
        super().__init__(plan, team, None)
        self.rehearsed = itertools.count(1)

    def memories_of(self, devices: Sequence[Any]) -> Memories:
        return Memories(devices, rehearsal=True)

    def work_alone(self, device: Any) -> DeviceMemory:
        return _NoMemory(self.plan, Meter(cast(Any, _NoDevice(device)), self.plan.check), self.callback_alone())

    def known(self, leaves: Sequence[Any]) -> bool:
        """Whether all that the call does is known."""
        try:
            self.run(leaves)
        except Exception:  # unknown, or the call raises: what it has done so far is what is known
            return False
        return True

    def done(self) -> Any:
        if not self.alone:
            return super().done()
        run, moved = self.memory.device.run(), self.memories.moved
        return run._replace(
            bytes_in=run.bytes_in + moved.get((HOST, DEVICE), 0), bytes_out=run.bytes_out + moved.get((DEVICE, HOST), 0)
        )

    def leave_homes(self) -> None:
        pass

    def region(self, region: Region, values: dict[Var, Any]) -> list[Any]:
        if next(self.rehearsed) > MOST:
            raise Enough
        parts = self.cut(region, values)
        self.foresee(region, parts, values)
        if isinstance(region.op, Compress) or (parts is not None and parts.division.join == "histogram"):
            raise Unknown
        if parts is None:
            needed, written = self.touched_whole(region, values)
            for root, spans in needed.items():
                root.bring(self.team.first, spans)
            for root, spans in written.items():
                root.wrote(self.team.first, spans)
            return [self._result(region, out, values) for out in region.outs]
        parts.make_results()
        for (who, _, _), needed in zip(parts.ranges, parts.needed, strict=True):
            for root, spans in needed.items():
                root.bring(who, spans)
        for (who, _, _), written in zip(parts.ranges, parts.written, strict=True):
            for root, spans in written.items():
                root.wrote(who, spans)
        if parts.division.join != "combine":
            return [*parts.whole]
        results = [self._result(region, out, values) for out in region.outs]
        sizes = sum(array.nbytes for array in results if array is not None)
        for who, _, _ in parts.ranges:
            if who != HOST and sizes:
                self.memories.count(who, HOST, sizes)
        return results

    def foresee(self, region: Region, parts: Parts | None, values: dict[Var, Any]) -> None:
        """A region is next, cut like this, or as it is."""

    def _result(self, region: Region, out: Var, values: dict[Var, Any]) -> Any:
        """An array like a region's result; scalars have no value."""
        if not isinstance(out.type, Array):
            return None
        shape = tuple(self.extent(extent, values) for extent in region.op.extents)  # type: ignore[union-attr]
        return new_array(self.memories, out.type.dtype, shape, out.type.layout)

    def load(self, array: SharedArray, indices: tuple[int, ...]) -> Any:
        raise Unknown

    def store(self, array: SharedArray, indices: tuple[int, ...], value: Any) -> None:
        array.root.wrote(HOST, array.spans(tuple((index, index + 1) for index in indices)))

    def hand_back(self, site: int, args: Sequence[Any]) -> list[Any]:
        raise Unknown

    def result(self, value: Any, kind: object, stays: bool, known: dict[int, Any]) -> Any:
        return super().result(value, kind, stays, known) if isinstance(value, DeviceView | SharedArray) else None
