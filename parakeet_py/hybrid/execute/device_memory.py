"""The memory of one device, as the host part of a function that runs there sees it.

All arrays of such a host part are `DeviceView`s: it makes them, launches kernels on them, and looks at single elements.
Kernels that may fail are not waited for: those behind one that has failed do nothing (`ptx.kernels.guards`), and the
host looks at the record of failures where it looks at anything (`look`), at last when the host part has ended.

What enters and leaves, and what is done in Python in between, is the business of the call (`execution`): the whole of
one on a device alone, a part of a region on a team.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.routines import reports
from parakeet_py.hybrid.devices.device import Device, DeviceError, KernelError
from parakeet_py.hybrid.devices.faults import fault_text, lines_of
from parakeet_py.hybrid.devices.recording import AGAIN, KEPT, active, known, spoil
from parakeet_py.hybrid.devices.timeline import recorder
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.execute.rounds import DeviceRounds
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.residency.arrays import Buffer, ChangedMemory, DeviceView, strides_of
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS, NO_FAILURE, TURN

OpaqueCallback = Callable[[int, Sequence[DeviceView]], Sequence[Any]]
MOST_UNSEEN = 1000  # launches that may fail, before the host looks whether one has
MOST_KEPT = 1 << 28  # bytes of their arguments
NONE_YET = np.array([NO_FAILURE if word in (0, TURN) else 0 for word in range(FAILURE_WORDS)], np.int64)


class Again(NamedTuple):
    """What a device is given to launch a kernel, see `Device.launch`."""

    module: Any
    kernel: str
    blocks: int
    threads: int
    codes: str
    values: Sequence[Any]

    def reporting(self, order: int) -> Again:
        """The launch in which the thread that fails in this iteration says how."""
        return self._replace(values=[*self.values[:-1], order])


class Unseen(NamedTuple):
    """A launch that may have failed.

    Attributes
    ----------
    number, blocks, args : as the host part has them
    again : how it is launched
    clean : if it has failed, memory of arguments is as it was before the call
    """

    number: int
    blocks: int
    args: tuple[Any, ...]
    again: Again
    clean: bool


@lru_cache(maxsize=1024)
def _packed(dtype: str, shape: tuple[int, ...], layout: str) -> tuple[int, tuple[int, ...]]:
    """The bytes of a contiguous array, and its strides."""
    itemsize = np.dtype(dtype).itemsize
    return itemsize * math.prod(shape), strides_of(shape, itemsize, layout)


def innermost(device: Any) -> Any:
    """The device itself, behind what counts and watches."""
    while hasattr(device, "device"):
        device = device.device
    return device


class DeviceMemory:
    """The `Memory` of a host part on one device.

    Attributes
    ----------
    device : which counts what is asked of it
    changed : the memory that kernels may have stored to
    unseen : the launches since the last look that may have failed, by their turns
    given : the memory of arguments, as far as it was there
    outdated : the memory that the host has changed, and what brings that, which is called when it is needed
    opaque : does an operation handed back to Python; a part of a region has none
    """

    def __init__(self, plan: DevicePlan, device: Meter, opaque: OpaqueCallback | None = None) -> None:
        self.plan, self.device = plan, device
        self.changed = ChangedMemory()
        self.given: set[Buffer] = set()
        self.outdated: dict[Buffer, Callable[[], None]] = {}
        self.record: Buffer | None = None  # of failures
        self.opaque = opaque
        self.of_call = True  # not of a part
        self.turns = 0  # launches that may fail, so far
        self.unseen: dict[int, Unseen] = {}
        self._kept = 0
        self._held: list[Any] = []  # the memory that they use
        self._rounds: DeviceRounds | None = None  # from the first on

    @classmethod
    def of_part(cls, plan: DevicePlan, device: Device) -> DeviceMemory:
        """The memory that a part of a region runs in."""
        made = cls(plan, Meter(device, plan.check))
        made.of_call = False
        return made

    def fault(self, error: Exception) -> Exception:
        """An error of the device that says what it was doing, if that is not known to have ended well."""
        if isinstance(error, DeviceError) and not isinstance(error, KernelError) and self.device.unfinished:
            return KernelError(fault_text(self.plan, self.device, error))
        return error

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> DeviceView:
        size, strides = _packed(dtype, shape, layout)
        buffer = Buffer(self.device, size)
        if self._rounds is not None and self._rounds.noted is not None:
            self._rounds.noted.made[buffer.address] = size
        return DeviceView(buffer, 0, dtype, shape, strides)

    def again(self, number: int, key: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self._rounds is None:
            if self.device.wait or getattr(self.device.device, "ask_again", None) is None:
                return None
            self._rounds = DeviceRounds(self)
        return self._rounds.again(number, key, arrays)

    def gone(self, number: int, given: tuple[Any, ...]) -> None:
        if self._rounds is not None:
            self._rounds.gone(number, given)

    def view(self, base: DeviceView, starts: Sequence[int], axes: Sequence[tuple[int | None, int, int]]) -> DeviceView:
        offset = base.offset + sum(start * stride for start, stride in zip(starts, base.strides, strict=True))
        shape = tuple(extent for _, extent, _ in axes)
        strides = tuple(0 if source is None else base.strides[source] * step for source, _, step in axes)
        return DeviceView(base.buffer, offset, base.dtype, shape, strides, readonly=base.readonly)

    def reshape(self, base: DeviceView, shape: tuple[int, ...]) -> DeviceView:
        strides = strides_of(shape, np.dtype(base.dtype).itemsize)
        return DeviceView(base.buffer, base.offset, base.dtype, shape, strides, readonly=base.readonly)

    def stride(self, array: DeviceView, axis: int) -> int:
        return array.strides[axis]

    def strided(
        self, base: DeviceView, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
    ) -> DeviceView:
        return DeviceView(base.buffer, base.offset + offset, dtype, shape, strides, readonly=base.readonly)

    def bring(self, args: Sequence[Any]) -> None:
        """Have what the host has changed of the memory of arrays."""
        for arg in args:
            found = self.outdated.pop(arg.buffer, None) if type(arg) is DeviceView else None
            if found is not None:
                found()

    def load(self, array: DeviceView, indices: tuple[int, ...]) -> Any:
        noting = active()
        if self.unseen and noting is None and not self.outdated:  # both come at once
            turn = self.failures().address + 8 * TURN
            value, found = self.device.element(self._place(array, indices), array.dtype, turn)
            if found == NO_FAILURE:
                self._seen()
                return value
        self.look()
        if self.outdated:
            self.bring((array,))
        place = self._place(array, indices)
        if noting is not None:
            noting.read(innermost(self.device), place, array.dtype)
        value, _ = self.device.element(place, array.dtype)
        return value

    def store(self, array: DeviceView, indices: tuple[int, ...], value: Any) -> None:
        self.look()
        self.bring((array,))
        self.changed.add(array.buffer)
        element = np.array([value], array.dtype)
        self.device.copy_in(self._place(array, indices), element.view(np.uint8))

    def _place(self, array: DeviceView, indices: tuple[int, ...]) -> int:
        place = array.buffer.address + array.offset
        for index, stride in zip(indices, array.strides, strict=True):
            place += index * stride
        return place

    def offered(self, left: DeviceView, right: DeviceView, out: DeviceView) -> bool:
        """Whether the device has a library that takes this product of matrices."""
        return self.device.offered(left, right, out)

    def routine(self, name: str, outs: Sequence[Any], ins: Sequence[Any]) -> bool | None:
        """Let a library of the device do one of NumPy's routines, on arrays that are there; whether that has failed, as
        LAPACK may, None if there is no library for it."""
        self.bring((*outs, *ins))
        clean = not self.changed.has_any(self.given) and self.given.isdisjoint(out.buffer for out in outs)
        failed = self.device.routine(name, outs, ins)
        if failed is not None:
            for out in outs:
                self.changed.add(out.buffer)
            if reports(name) and not clean:  # a schedule could not go back where it fails another time
                spoil("a routine that may fail, where arguments have been stored to")
        return failed

    def launch(self, number: int, blocks: int, args: tuple[Any, ...]) -> None:
        if blocks <= 0:
            return
        if self.outdated:
            self.bring(args)
        plan, device = self.plan, self.device
        kernel = plan.kernels[number]
        found = recorder()
        if found is not None:
            found.lines.setdefault(kernel.name, tuple(lines_of(kernel)))
        if self.unseen and not kernel.guarded:
            self.look()
        clean = kernel.checked and not self.changed.has_any(self.given)
        for place in plan.stores[number]:
            self.changed.add(args[place].buffer)
        values: list[Any] = []
        for expand, arg in zip(plan.expanders[number], args, strict=True):
            values += expand(arg)
        if kernel.product is not None:
            left, right, out = (args[place] for place in kernel.product)
            if self.unseen and device.offered(left, right, out):
                self.look()  # a library does not ask whether something has failed
            if device.multiply(left, right, out, plan.flags["fastmath"]):
                device.launched(number, 0, values)
                if self._rounds is not None:
                    self._rounds.noted = None
                return
        aligned = True
        for arg in args:
            if type(arg) is DeviceView and (arg.buffer.address + arg.offset) % 16:
                aligned = False
        form = plan.form(device.device, number, blocks, aligned, values, args)
        module, codes = plan.module(device.device, number, form), plan.codes[number][form.narrow]
        if kernel.checked or kernel.guarded:
            values += (self.failures().address, self.turns, -1)[: 3 if kernel.checked else 2]
        device.launched(number, blocks, values)
        if form.boxes:
            codes += "T" * len(plan.tensors[number])
            values = [*values, *plan.tensor_maps(number, args)]
        given = module, kernel.name, blocks * form.parts, plan.threads(number, form), codes, values
        device.launch(*given)
        if self._rounds is not None and self._rounds.noted is not None:
            noted = self._rounds.noted
            noted.launches.append((number, blocks, Again(*given)))
            noted.stored.update(args[place].buffer.address for place in plan.stores[number])
        if kernel.checked:
            clean &= not (kernel.single or kernel.at_once) or not self.changed.has_any(self.given)
            self._may_have_failed(Unseen(number, blocks, args, Again(*given), clean))

    def _may_have_failed(self, launch: Unseen) -> None:
        """A launch is under way that may fail; its arguments stay as they are until that is known."""
        noting = active()
        if noting is not None and self.of_call:
            kernel = self.plan.kernels[launch.number]
            noting.may_fail(self.turns, kernel.single or kernel.at_once, launch.clean)
        self.may_have_failed((launch,), [arg.buffer for arg in launch.args if type(arg) is DeviceView])

    def may_have_failed(self, launches: Sequence[Unseen], memory: Sequence[Buffer]) -> None:
        """The same of several, which use this memory."""
        for launch in launches:
            self.unseen[self.turns] = launch
            self.turns += 1
        self._held.append(memory)
        self._kept += sum([buffer.size for buffer in memory])
        if self._kept > MOST_KEPT or len(self.unseen) >= MOST_UNSEEN:
            self.look()

    def _seen(self) -> None:
        """No launch so far has failed, or what has is known."""
        self.unseen, self._kept, self._held = {}, 0, []
        if active() is None:  # a recorder knows launches by their turns
            self.turns = 0

    def look(self) -> None:
        """Wait for all launches that may fail; raises the exception of the first that has."""
        if not self.unseen:
            return
        unseen, device, address, held = self.unseen, self.device, self.failures().address, self._held
        if self._rounds is not None:
            self._rounds.noted = None
        noting = active()
        if noting is not None:
            clean = all(one.clean for one in unseen.values())
            noting.expected(innermost(device), address + 8 * TURN, NO_FAILURE, clean)
        words = np.empty(FAILURE_WORDS, np.int64)
        device.copy_out(words.view(np.uint8), address)
        turn = int(words[TURN])
        self._seen()
        if turn == NO_FAILURE:
            return
        failed = unseen[turn]
        kernel = self.plan.kernels[failed.number]
        if not (kernel.single or kernel.at_once):
            again = failed.again.reporting(int(words[0]))
            device.launched(failed.number, failed.blocks, again.values)
            device.launch(*again)
            device.copy_out(words.view(np.uint8), address)
        del held  # until then
        raise self.failure(int(words[1]), words[2:TURN])

    def first(self, error: Exception) -> Exception:
        """The exception of a launch that has failed before the host part has raised one, or that one."""
        try:
            self.look()
        except Exception as earlier:
            return earlier
        return error

    def failures(self) -> Buffer:
        """The record of failures, in which there is none when it is made."""
        if self.record is None:
            self.record = Buffer(self.device, 8 * FAILURE_WORDS)
            with known(KEPT if self.of_call else AGAIN):
                self.device.copy_in(self.record.address, NONE_YET.view(np.uint8))
        return self.record

    def failure(self, code: int, args: Any) -> Exception:
        """The exception of a failed check, of the host part or of a kernel."""
        self.look()
        return exception_of(self.plan.function, self.plan.bodies, code, args)
