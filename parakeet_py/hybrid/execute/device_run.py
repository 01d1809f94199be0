"""One call of an accelerated function on one device.

Arguments are uploaded, the host part runs and launches kernels, arguments that were stored to are downloaded (also when
the call raises: what a Python function has stored before it raises, it has stored), results become NumPy arrays.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from parakeet_py.base.tracebacks import placed
from parakeet_py.base.types import Array, Scalar
from parakeet_py.hybrid.devices.device import Device, DeviceError, DeviceMemoryError, KernelError
from parakeet_py.hybrid.devices.faults import fault_text, lines_of
from parakeet_py.hybrid.devices.timeline import recorder, recording
from parakeet_py.hybrid.devices.transfer_counters import Meter
from parakeet_py.hybrid.plan.device_plan import Plan
from parakeet_py.hybrid.residency import byte_ranges
from parakeet_py.hybrid.residency.arrays import (
    Borrowed,
    Buffer,
    DeviceView,
    download,
    host_view,
    memory_of,
    span,
    strides_of,
    upload,
)
from parakeet_py.hybrid.residency.persistent_memory import Home, homes_of_frozen
from parakeet_py.ptx.kernels.codegen import FAILURE_WORDS, NO_FAILURE
from parakeet_py.typed_ir.interpret import format_failure
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.semantics import scalar

if TYPE_CHECKING:
    from parakeet_py.hybrid.residency.device_arguments import Foreign

OpaqueCallback = Callable[[int, list[Any]], Sequence[Any]]


def run(
    plan: Plan,
    device: Device,
    leaves: Sequence[Any],
    opaque: OpaqueCallback | None = None,
    keep_strides: bool = False,
    foreign: Foreign | None = None,
) -> list[Any]:
    """Run a plan on leaf arguments; gives the leaves of the result.

    Parameters
    ----------
    opaque : does what is handed back to Python, see `interpreters`
    keep_strides : a result may be a view of an argument
    foreign : the arguments that live on the device
    """
    call = Call(plan, device, opaque, foreign)
    return call.supervised(lambda: call.run(leaves, keep_strides))


class Call:
    """A call in progress: the `Runtime` of its host code."""

    def __init__(
        self, plan: Plan, device: Device, opaque: OpaqueCallback | None, foreign: Foreign | None = None
    ) -> None:
        self.plan = plan
        self.device = Meter(device, plan.check)
        self.callback = opaque
        self.shown = foreign is not None  # whether others may have seen what the call has done so far
        self.foreign = foreign
        self.arguments: list[DeviceView] = []
        self.record: Buffer | None = None  # of failures
        self.together: dict[Buffer, np.ndarray[Any, Any]] = {}  # what several results are views of
        self.stored: list[DeviceView] = []  # arguments that are stored to...
        self.changed: set[Buffer] = set()  # ...and the memory that the host has not seen since

    def supervised(self, work: Callable[[], list[Any]]) -> list[Any]:
        """Do all of the call's work, recorded on request; errors of the device say what it was doing."""
        try:
            with recording([self.device.device]) as found:
                results = work()
                if found is not None:
                    self.plan.timeline = found.timeline()
            return results
        except KernelError:
            raise
        except DeviceMemoryError as error:
            error.unchanged = not self.shown
            raise
        except DeviceError as error:
            if not self.device.unfinished:
                raise
            raise KernelError(fault_text(self.plan, self.device, error)) from error
        finally:
            self.plan.last_run = self.device.run()

    def run(self, leaves: Sequence[Any], keep_strides: bool) -> list[Any]:
        params = self.plan.function.params
        places = [number for number, param in enumerate(params) if isinstance(param.type, Array)]
        keep_strides = keep_strides or self.plan.asks_strides or bool(self.plan.opaque_args)
        values = [entering(leaf, param.type) for leaf, param in zip(leaves, params, strict=True)]
        if self.foreign is not None:
            for number in places:
                values[number] = self.foreign.resident(leaves[number]) or values[number]
        for number, home in homes_of_frozen([leaves[number] for number in places]).items():
            if not isinstance(values[places[number]], DeviceView):
                values[places[number]] = self._frozen(home, leaves[places[number]])
        places = [number for number in places if not isinstance(values[number], DeviceView)]
        uploaded = upload(self.device, [np.asarray(leaves[number]) for number in places], keep_strides)
        for number, array in zip(places, uploaded, strict=True):
            values[number] = array
        self.arguments = uploaded
        written = self.plan.stored_params
        self.stored = [array for number, array in zip(places, uploaded, strict=True) if params[number] in written]
        try:
            results = self.plan.host(self, *values)
        except DeviceError:  # nothing on the device can be trusted any more
            raise
        except DeviceMemoryError:
            if self.shown:
                self.bring_back()
            raise
        except BaseException:
            self.bring_back()
            raise
        self.bring_back()
        self.together = _sharing(results)
        return [
            self.result(number, value, result.type)
            for number, (value, result) in enumerate(zip(results, self.plan.function.results, strict=True))
        ]

    def _frozen(self, home: Home, array: Any) -> DeviceView:
        """A read-only array of NumPy's that is on the device since an earlier call, or from now on."""
        everything, device = byte_ranges.span(0, home.size), self.memory()
        missing = byte_ranges.size_of(byte_ranges.difference(everything, home.valid.get(device, byte_ranges.NOTHING)))
        if missing:
            self.device.allocated += 0 if device in home.copies else home.size
            self.device.bytes_in += missing
        copy = self.bring(home)
        there = Borrowed(device, copy.address, home.size, home.address)
        there.owner, there.keep = [array], [copy]
        return DeviceView(there, 0, array.dtype.name, array.shape, array.strides, array)

    def memory(self) -> Device:
        """Whose memory a home knows this call's by."""
        return self.device.device

    def bring(self, home: Home) -> Buffer:
        """The device's copy of a home, complete."""
        home.bring(self.device.device, byte_ranges.span(0, home.size))
        return home.copies[self.device.device]

    def bring_back(self) -> None:
        """Let the host see what has been stored into arguments since it last did."""
        for array in self.stored:
            if array.buffer in self.changed:
                self.download(array)
        self.changed.clear()

    def download(self, array: DeviceView) -> None:
        download(array)

    def changes(self, number: int, args: Sequence[Any]) -> None:
        """A kernel is about to store into some of its arguments."""
        for place in self.plan.stores[number]:
            self.changed.add(args[place].buffer)

    def result(self, number: int, value: Any, kind: object) -> Any:
        """A result; one that the call has made stays on the device if arguments live there."""
        if self.foreign is not None and isinstance(value, DeviceView):
            if number in self.foreign.listed:
                return value.to_host()
            if value.buffer.origin is None:
                self.foreign.adopt(value.buffer)
        return self.leaving(value, kind)

    def leaving(self, value: Any, kind: object) -> Any:
        """A value as Python sees it."""
        if isinstance(value, DeviceView):
            found = host_view(value)
            if found is None:
                found = self._copied(value)
            if value.readonly:
                found = found.view()
                found.flags.writeable = False
            return found
        if isinstance(kind, Scalar):
            made = scalar(value, kind.dtype)
            return made.item() if kind.python else made
        return value

    def _copied(self, array: DeviceView) -> np.ndarray[Any, Any]:
        """A copy of an array that the call has made, in the memory that Python has of it already, if it has some."""
        if 0 in array.shape:
            return array.to_host()
        whole = self.together.get(array.buffer)
        if whole is not None and not whole.size:
            whole = self.together[array.buffer] = np.empty(array.buffer.size, np.uint8)
        found = array.copy_in_use()
        if found is None and whole is not None:
            found = np.ndarray(array.shape, array.dtype, whole, array.offset, array.strides)
        if found is None:
            found = array.to_host()
        else:
            np.copyto(found, array.to_host())
        array.buffer.copies[array.place] = weakref.ref(found)
        return found

    # ---- what host code asks for -------------------------------------------------------------------------------------

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
        self.device.copy_out(element.view(np.uint8), self._place(array, indices))
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
        self.changes(number, args)
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
        """The exception of a failed check; arguments are host values, or the words of a record."""
        site = self.plan.function.failures[code]
        failure, pos = site.failure, site.pos
        kinds = self.plan.failure_types.get(code, ())
        values = []
        for value, dtype in zip(args, kinds, strict=False):
            if isinstance(args, np.ndarray) and dtype.startswith("float"):
                value = np.array([value], np.int64).view(np.float64)[0]
            values.append(np.float64(value) if dtype.startswith("float") else np.int64(value))
        return format_failure(failure, values).with_traceback(placed(entries(pos)))

    def opaque(self, site: int, args: tuple[Any, ...]) -> list[Any]:
        """Hand an operation back to Python, which sees arguments as they are now and may change them.

        What it gives may be a view of what it was given: then it is one on the device as well.
        """
        routine = self.plan.routines.get(site)
        if routine is not None:
            perform: Callable[[list[Any]], Sequence[Any]] = routine.perform
        else:
            assert self.callback is not None
            perform = partial(self.callback, site)
        self.shown |= routine is None or bool(self.changed)
        self.bring_back()
        self.together = _sharing(args)
        given = [self.leaving(value, kind) for value, kind in zip(args, self.plan.opaque_args[site], strict=True)]
        self.together = {}
        borrowed = self._borrowed(args)
        for owner, buffer in borrowed:
            owner.fill(buffer)
        try:
            leaves = perform(given)
        finally:
            for owner, buffer in borrowed:
                owner.empty(buffer)
        self._refresh()
        shown: list[tuple[int, int, Buffer, int]] = []  # memory of the host, and of which memory it is a copy
        for array, host in zip(args, given, strict=True):
            if not isinstance(array, DeviceView) or not host.size:
                continue
            low, high = byte_bounds(host)
            if array.buffer.origin is None:
                if array.host is None:
                    self._overwrite(array, host)
                shown.append((low, high, array.buffer, array.offset + low - host.__array_interface__["data"][0]))
            else:
                origin = array.buffer.origin
                shown.append((origin, origin + array.buffer.size, array.buffer, 0))
        same = {id(host): value for value, host in zip(args, given, strict=True) if isinstance(value, DeviceView)}
        kinds = self.plan.opaque_outs[site]
        return [
            same[id(leaf)] if id(leaf) in same else self._taken(leaf, kind, shown)
            for leaf, kind in zip(leaves, kinds, strict=True)
        ]

    def _borrowed(self, args: Sequence[Any]) -> list[tuple[Foreign, Buffer]]:
        """The memory of foreign arrays among arguments."""
        if self.foreign is None:
            return []
        buffers = {id(arg.buffer): arg.buffer for arg in args if isinstance(arg, DeviceView)}
        return [(self.foreign, buffer) for buffer in buffers.values() if self.foreign.lends(buffer)]

    def _taken(self, leaf: Any, kind: Any, shown: Sequence[tuple[int, int, Buffer, int]]) -> Any:
        if not isinstance(kind, Array):
            return entering(leaf, kind)
        array = np.asarray(leaf)
        start = array.__array_interface__["data"][0]
        for low, high, buffer, offset in shown:
            if array.size and low <= start < high:
                place, readonly = offset + start - low, not array.flags.writeable
                return DeviceView(buffer, place, array.dtype.name, array.shape, array.strides, readonly=readonly)
        (fresh,) = upload(self.device, [array], True)
        # From now on the copy on the device is the array: kernels may store into it.
        fresh.host = fresh.buffer.origin = fresh.buffer.owner = None
        fresh.readonly = not array.flags.writeable
        return fresh

    def _refresh(self) -> None:
        """Upload the memory of arguments again: Python may have changed it."""
        buffers = {id(array.buffer): array.buffer for array in self.arguments if array.buffer.origin is not None}
        for buffer in buffers.values():
            assert buffer.origin is not None
            self.device.copy_in(buffer.address, memory_of(buffer.origin, buffer.size))

    def _overwrite(self, array: DeviceView, host: Any) -> None:
        """Let an array that the call has made be what Python has made of it."""
        if not host.size:
            return
        low, size = span(array.shape, array.strides, host.itemsize)
        if array.strides == host.strides and size == host.nbytes:
            place = host.__array_interface__["data"][0] + low
            self.device.copy_in(array.address + low, memory_of(place, size))
            return
        for index in np.ndindex(array.shape):
            self.store(array, index, host[index])


def _sharing(results: Sequence[Any]) -> dict[Buffer, np.ndarray[Any, Any]]:
    """The memory that is of several different results, each with room for the host's, to be made."""
    places: dict[Buffer, set[Any]] = {}
    for value in results:
        if isinstance(value, DeviceView) and value.buffer.origin is None and 0 not in value.shape:
            places.setdefault(value.buffer, set()).add(value.place)
    return {buffer: np.empty(0, np.uint8) for buffer, found in places.items() if len(found) > 1}


def entering(value: Any, kind: object) -> Any:
    """An argument, or what Python has given, as host code keeps values of its type."""
    if not isinstance(kind, Scalar):
        return value
    made = scalar(value, kind.dtype)
    return made.item() if kind.dtype in ("int64", "bool") else made
