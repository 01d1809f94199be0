"""The memory of one device, as the host part of a function that runs there sees it.

All arrays of such a host part are `DeviceView`s: it makes them, launches kernels on them, and looks at single elements.
What enters and leaves, and what is done in Python in between, is the business of the call (`execution`): the whole of
one on a device alone, a part of a region on a team.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parakeet_py.hybrid.devices.device import Device, DeviceError, KernelError
from parakeet_py.hybrid.devices.faults import fault_text, lines_of
from parakeet_py.hybrid.devices.recording import active
from parakeet_py.hybrid.devices.timeline import recorder
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.plan.device_plan import DevicePlan
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.residency.arrays import Buffer, DeviceView, strides_of
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS, NO_FAILURE

OpaqueCallback = Callable[[int, Sequence[DeviceView]], Sequence[Any]]


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
    given : the memory of arguments, as far as it was there
    opaque : does an operation handed back to Python; a part of a region has none
    """

    def __init__(self, plan: DevicePlan, device: Meter, opaque: OpaqueCallback | None = None) -> None:
        self.plan, self.device = plan, device
        self.changed: set[Buffer] = set()
        self.given: set[Buffer] = set()
        self.record: Buffer | None = None  # of failures
        self.opaque = opaque

    @classmethod
    def of_part(cls, plan: DevicePlan, device: Device) -> DeviceMemory:
        """The memory that a part of a region runs in."""
        return cls(plan, Meter(device, plan.check))

    def fault(self, error: Exception) -> Exception:
        """An error of the device that says what it was doing, if that is not known to have ended well."""
        if isinstance(error, DeviceError) and not isinstance(error, KernelError) and self.device.unfinished:
            return KernelError(fault_text(self.plan, self.device, error))
        return error

    def new(self, dtype: str, shape: tuple[int, ...], layout: str) -> DeviceView:
        itemsize = np.dtype(dtype).itemsize
        strides = strides_of(shape, itemsize, layout)
        return DeviceView(Buffer(self.device, itemsize * math.prod(shape)), 0, dtype, shape, strides)

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

    def load(self, array: DeviceView, indices: tuple[int, ...]) -> Any:
        element = np.empty(1, array.dtype)
        place = self._place(array, indices)
        noting = active()
        if noting is not None:
            noting.read(innermost(self.device), place, array.dtype)
        self.device.copy_out(element.view(np.uint8), place)
        return element[0]

    def store(self, array: DeviceView, indices: tuple[int, ...], value: Any) -> None:
        self.changed.add(array.buffer)
        element = np.array([value], array.dtype)
        self.device.copy_in(self._place(array, indices), element.view(np.uint8))

    def _place(self, array: DeviceView, indices: tuple[int, ...]) -> int:
        return array.address + sum(index * stride for index, stride in zip(indices, array.strides, strict=True))

    def offered(self, left: DeviceView, right: DeviceView, out: DeviceView) -> bool:
        """Whether the device has a library that takes this product of matrices."""
        return self.device.offered(left, right, out)

    def launch(self, number: int, blocks: int, args: tuple[Any, ...]) -> None:
        look = self.launch_unseen(number, blocks, args)
        if look is not None:
            look()

    def launch_unseen(self, number: int, blocks: int, args: tuple[Any, ...]) -> Callable[[], None] | None:
        """Launch a kernel; gives what waits for it and raises what has failed in it, if something can."""
        if blocks <= 0:
            return None
        plan, device = self.plan, self.device
        kernel = plan.kernels[number]
        found = recorder()
        if found is not None:
            found.lines.setdefault(kernel.name, tuple(lines_of(kernel)))
        for place in plan.stores[number]:
            self.changed.add(args[place].buffer)
        values: list[Any] = []
        for expand, arg in zip(plan.expanders[number], args, strict=True):
            values += expand(arg)
        if kernel.product is not None:
            left, right, out = (args[place] for place in kernel.product)
            if device.multiply(left, right, out, plan.flags["fastmath"]):
                device.launched(number, 0, values)
                return None
        aligned = True
        for arg in args:
            if type(arg) is DeviceView and (arg.buffer.address + arg.offset) % 16:
                aligned = False
        form = plan.form(device.device, number, blocks, aligned, values)
        module, codes = plan.module(device.device, number, form), plan.codes[number][form.narrow]
        device.launched(number, blocks, values)
        shape = blocks * form.parts, kernel.threads // form.parts
        if not kernel.checked:
            device.launch(module, kernel.name, *shape, codes, values)
            return None
        address = self._fresh_record().address
        device.launch(module, kernel.name, *shape, codes, [*values, address, -1])

        def look() -> None:
            words = np.empty(FAILURE_WORDS, np.int64)
            noting = active()
            if noting is not None:
                noting.expected(innermost(device), address, NO_FAILURE, self.changed.isdisjoint(self.given))
            device.copy_out(words.view(np.uint8), address)
            order = int(words[0])
            if order == NO_FAILURE:
                return
            if not kernel.single:
                device.launched(number, blocks, values)
                device.launch(module, kernel.name, *shape, codes, [*values, address, order])
                device.copy_out(words.view(np.uint8), address)
            raise self.failure(int(words[1]), words[2:])

        return look

    def _fresh_record(self) -> Buffer:
        if self.record is None:
            self.record = Buffer(self.device, 8 * FAILURE_WORDS)
        words = np.zeros(FAILURE_WORDS, np.int64)
        words[0] = NO_FAILURE
        self.device.copy_in(self.record.address, words.view(np.uint8))
        return self.record

    def failure(self, code: int, args: Any) -> Exception:
        return exception_of(self.plan.function, self.plan.bodies, code, args)
