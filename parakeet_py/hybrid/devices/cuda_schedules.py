"""Schedules on CUDA devices: lists of driver calls that machine code does one after the other.

A request of a schedule (`recording`) becomes calls of the driver with arguments that are known but for addresses: a
word for the function, eleven for what it is given. Launches take the values of their parameters from words of their
own. For a call on other memory the words are patched that hold addresses, and then machine code goes through the list
(`llvm/runtime/call_queues`), without Python and without the interpreter's lock: what remains of the host's work for a
kernel is the driver's own.

All stands in the order in which it was asked for. Before a device copies from another one it waits for that one's
stream, and that one waits for the copy before it is asked for anything else. From `SHARED` devices on that copy from
each other, each has a list of its own, and the CPU's threads go through the lists side by side: what one device's
stream is to wait for has been recorded in another's before.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device import (
    L2_LINES,
    SWIZZLE,
    TENSOR_ALIGNMENT,
    TENSOR_BYTES,
    TENSOR_KINDS,
    TensorMap,
)
from parakeet_py.hybrid.devices.recording import CopyIn, CopyOver, Given, Launch, Place, Request, do
from parakeet_py.hybrid.devices.staging import MOST_PITCH, driver_call
from parakeet_py.llvm.runtime import call_queues

SHARED = 4  # devices whose driver calls are worth more than one thread: each takes some ten of them in a region


class Parameters:
    """The parameters of a launch, as the driver takes them: where each is, in words of their own. Those that are given
    later are 0 so far; tensor maps are of memory anywhere, until they are moved.

    Attributes
    ----------
    places : of each parameter
    address : of the pointers to them
    """

    def __init__(self, device: Any, codes: str, values: Sequence[Any]) -> None:
        count, maps = max(len(values), 1), codes.count("T")
        words = (ctypes.c_uint64 * count)()
        pointers = (ctypes.c_uint64 * count)()
        room = ctypes.create_string_buffer(maps * TENSOR_BYTES + TENSOR_ALIGNMENT)
        start, free = ctypes.addressof(words), -(-ctypes.addressof(room) // TENSOR_ALIGNMENT) * TENSOR_ALIGNMENT
        for number, (code, value) in enumerate(zip(codes, values, strict=True)):
            pointers[number] = start + 8 * number
            if code == "T":
                status = _make_tensor_map(value, free)
                if status:
                    raise device.failed_with("making a tensor map", status)
                pointers[number] = free
                free += TENSOR_BYTES
            elif type(value) is not Place and type(value) is not Given:
                struct.pack_into("<" + code.replace("P", "Q"), words, 8 * number, _plain(value, code))
        self.places = list(pointers)
        self.address = ctypes.addressof(pointers)
        self._kept = words, pointers, room


def launch_call(kernel: int, blocks: int, threads: int, shared: int, stream: int, parameters: Parameters) -> bytes:
    """The words of the driver call that is a launch."""
    shape = blocks, 1, 1, threads, 1, 1, shared
    return call_queues.words(driver_call("cuLaunchKernel"), kernel, *shape, stream, parameters.address)


_ANYWHERE = 1 << 20  # where a matrix lies that is moved later


def _make_tensor_map(tensor: TensorMap, place: int) -> int:
    """Let the driver make a tensor map; gives its status. (It is called itself: maps have to be aligned.)"""
    rank, long, short = len(tensor.extents), ctypes.c_uint64, ctypes.c_uint32
    address = _ANYWHERE if type(tensor.address) is Place else tensor.address
    extents, strides = (long * rank)(*tensor.extents), (long * (rank - 1))(*tensor.strides)
    box, steps = (short * rank)(*tensor.box), (short * rank)(*[1] * rank)
    pointer, number = ctypes.c_void_p, ctypes.c_int
    kinds = [pointer, number, short, *[pointer] * 5, *[number] * 4]
    function = ctypes.CFUNCTYPE(number, *kinds)(driver_call("cuTensorMapEncodeTiled"))
    arrays = (ctypes.addressof(one) for one in (extents, strides, box, steps))
    return int(function(place, TENSOR_KINDS[tensor.dtype], rank, address, *arrays, 0, SWIZZLE, L2_LINES, 0))


class _Patch(NamedTuple):
    """A word that is the address of a slot, so many bytes on."""

    word: int
    slot: int
    offset: int


class _Call(NamedTuple):
    """A call of the driver in the context of a device, for a request; without a name a flag, which the device's list
    sets for others or waits for. Some arguments are places."""

    device: Any
    request: Any
    name: str
    arguments: Sequence[Any]


class _Segment:
    """Driver calls without anything in between that the host waits for.

    Parameters
    ----------
    shared : each device has a list of its own
    """

    def __init__(self, shared: bool) -> None:
        self.shared = shared
        self.calls: list[_Call] = []
        self.patches: list[_Patch] = []  # of words of calls and parameters
        self.kept: list[Any] = []
        self.flags = 0
        self.numbers: list[tuple[Any, int]] = []  # where a number goes, and which
        self.behind: dict[int, tuple[Any, dict[int, Any]]] = {}  # devices that have to wait for others

    def call(self, device: Any, request: Any, name: str, *arguments: Any) -> None:
        self.calls.append(_Call(device, request, name, arguments))

    def ready(self, device: Any, request: Any) -> None:
        """Something else is about to be asked of a device: it waits for those that copy from it."""
        _, others = self.behind.pop(id(device), (None, {}))
        for other in others.values():
            self.wait(device, other, request)

    def wait(self, device: Any, other: Any, request: Any) -> None:
        """Let a device wait for all that another one has been asked for."""
        event = other.order_event
        if self.shared:  # another wait may come to be recorded before this one is asked for
            made = OwnEvent(other)
            event = made.handle
            self.kept.append(made)
        self.call(other, request, "cuEventRecord", event, other.stream_handle)
        self.call(other, request, "", call_queues.SIGNAL, self.flags)
        self.call(device, request, "", call_queues.AWAIT, self.flags)
        self.flags += 1
        self.call(device, request, "cuStreamWaitEvent", device.stream_handle, event, 0)

    def launch(self, request: Launch) -> None:
        device = request.device
        self.ready(device, request)
        parameters = Parameters(device, request.codes, request.values)
        for number, value in enumerate(request.values):
            place = parameters.places[number]
            if type(value) is Place:
                self.patches.append(_Patch(place, value.slot, value.offset))
            elif type(value) is Given:
                kind = ctypes.c_double if request.codes[number] == "d" else ctypes.c_float
                self.numbers.append((kind.from_address(place), value.number))
            elif type(value) is TensorMap and type(value.address) is Place:
                self.call(device, request, "cuTensorMapReplaceAddress", place, value.address)
        self.kept += [parameters, request.module]
        handle = device.kernel_handle(request.module, request.kernel)
        shape = request.blocks, 1, 1, request.threads, 1, 1, request.module.shared
        stream = device.stream_handle
        self.call(device, request, "cuLaunchKernel", handle, *shape, stream, parameters.address, 0)

    def copy_in(self, request: CopyIn) -> None:
        device, data = request.device, np.ascontiguousarray(request.data)
        self.ready(device, request)
        self.kept.append(data)
        stream = device.stream_handle
        self.call(device, request, "cuMemcpyHtoDAsync", request.address, data.ctypes.data, data.nbytes, stream)

    def copy_over(self, request: CopyOver) -> None:
        device, source, rows = request.device, request.source, request.rows
        self.ready(device, request)
        self.ready(source, request)
        self.wait(device, source, request)
        ours, theirs, stream = int(device._context), int(source._context), device.stream_handle
        for step in range(rows.height if rows.height == 1 or rows.pitch > MOST_PITCH else 0):
            target, place = _further(request.address, step * rows.pitch), _further(request.place, step * rows.pitch)
            self.call(device, request, "cuMemcpyPeerAsync", target, ours, place, theirs, rows.width, stream)
        if rows.height > 1 and rows.pitch <= MOST_PITCH:
            what = device._driver.CUDA_MEMCPY3D_PEER()
            kind = device._driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
            what.srcMemoryType = what.dstMemoryType = kind
            what.srcContext, what.dstContext = source._context, device._context
            what.srcPitch = what.dstPitch = rows.pitch
            what.WidthInBytes, what.Height, what.Depth = rows.width, rows.height, 1
            start = int(what.getPtr())
            for offset, place in ((_SRC_DEVICE, request.place), (_DST_DEVICE, request.address)):
                if type(place) is Place:
                    self.patches.append(_Patch(start + offset, place.slot, place.offset))
                else:
                    ctypes.c_uint64.from_address(start + offset).value = place
            self.kept.append(what)
            self.call(device, request, "cuMemcpy3DPeerAsync", start, stream)
        waiting = self.behind.setdefault(id(source), (source, {}))[1]
        waiting[id(device)] = device

    def close(self) -> None:
        for source, others in [*self.behind.values()]:
            for other in others.values():
                self.wait(source, other, self.calls[-1].request)
        self.behind.clear()
        lists = self._by_device() if self.shared else [self._in_contexts()]
        flat = [call for calls in lists for call in calls]
        words = (ctypes.c_uint64 * (call_queues.WORDS * len(flat)))()
        start, size = ctypes.addressof(words), 8 * call_queues.WORDS
        for place, call in enumerate(flat):
            row: list[Any] = [driver_call(call.name)] * (call.name != "")
            for argument in call.arguments:
                if type(argument) is Place:
                    self.patches.append(_Patch(start + place * size + 8 * len(row), argument.slot, argument.offset))
                row.append(0 if type(argument) is Place else argument & 0xFFFFFFFFFFFFFFFF)
            words[place * call_queues.WORDS : place * call_queues.WORDS + len(row)] = row
        patches = (ctypes.c_int64 * (3 * max(len(self.patches), 1)))()
        for place, (word, slot, offset) in enumerate(self.patches):
            patches[3 * place : 3 * place + 3] = [word, 8 * slot, offset]
        self.kept += [words, patches]
        self.count = 0 if self.shared else len(flat)  # without any, only words are patched
        self.table = (ctypes.c_int64 * 5)(ctypes.addressof(patches), len(self.patches), start, self.count, 0)
        self.address = ctypes.addressof(self.table)
        self.what = [[(call.device, call.request) for call in calls] for calls in lists]
        self.calls, self.queues = [], None
        if self.shared:
            counts = [len(calls) for calls in lists]
            starts = [start + size * sum(counts[:number]) for number in range(len(counts))]
            contexts = [int(calls[0].device._context) for calls in lists]
            self.queues = call_queues.Queues(starts, counts, self.flags, driver_call("cuCtxSetCurrent"), contexts)

    def _by_device(self) -> list[list[_Call]]:
        """The calls of each device."""
        found: dict[int, list[_Call]] = {}
        for call in self.calls:
            found.setdefault(id(call.device), []).append(call)
        return [*found.values()]

    def _in_contexts(self) -> list[_Call]:
        """All calls in their order, with those that make the context of each current."""
        found: list[_Call] = []
        current = None
        for call in self.calls:
            if not call.name:
                continue
            if call.device is not current:
                current = call.device
                found.append(_Call(current, call.request, "cuCtxSetCurrent", [int(current._context)]))
            found.append(call)
        return found

    def run(self, addresses: int, numbers: Sequence[Any]) -> None:
        for place, number in self.numbers:
            place.value = numbers[number]
        done = call_queues.one_after_the_other()(self.address, addresses)
        failed = None if done == self.count else (0, done, int(self.table[4]))
        if self.queues is not None:
            failed = self.queues.run()
        if failed is not None:
            device, request = self.what[failed[0]][failed[1]]
            what = f"launching {request.kernel}" if isinstance(request, Launch) else "copying"
            raise device.failed_with(what, failed[2])


# where the addresses stand in a CUDA_MEMCPY3D_PEER
_SRC_DEVICE, _DST_DEVICE = 48, 136


class OwnEvent:
    """An event of a device, which goes with the last reference."""

    def __init__(self, device: Any) -> None:
        self.device, self.handle = device, device.new_event()

    def __del__(self) -> None:
        self.device.drop_event(self.handle)


def _further(place: Any, step: int) -> Any:
    return place._replace(offset=place.offset + step) if type(place) is Place else place + step


def _plain(value: Any, code: str) -> Any:
    if code in "efd":
        return float(value)
    found = value.item() if isinstance(value, np.generic) else value
    return int(found)


def _both(request: CopyOver) -> tuple[Any, Any]:
    return request.device, request.source


class CudaRequests:
    """Runs the requests of a schedule whose devices are all CUDA's."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.parts: list[Any] = []
        devices: dict[int, Any] = {}
        copying = {id(one) for request in requests if isinstance(request, CopyOver) for one in _both(request)}
        for request in requests:
            devices[id(request.device)] = request.device
            if isinstance(request, Launch | CopyIn | CopyOver):
                if not self.parts or not isinstance(self.parts[-1], _Segment):
                    self.parts.append(_Segment(len(copying) >= SHARED))
                segment = self.parts[-1]
                match request:
                    case Launch():
                        segment.launch(request)
                    case CopyIn():
                        segment.copy_in(request)
                    case CopyOver():
                        devices[id(request.source)] = request.source
                        segment.copy_over(request)
            else:
                self.parts.append(request)
        for part in self.parts:
            if isinstance(part, _Segment):
                part.close()
        self.devices = sorted(devices.values(), key=lambda device: device.name)  # locks are taken in one order
        one = len(self.parts) == 1 and isinstance(self.parts[0], _Segment) and len(self.devices) == 1
        self.only = self.parts[0] if one else None
        self.device = self.devices[0]
        self.launches = self.device.first_launches

    def __call__(self, addresses: Sequence[int], numbers: Sequence[Any]) -> list[Any]:
        given = array("q", addresses)
        place, _ = given.buffer_info()
        if self.only is not None:
            with self.launches.lock:
                if self.launches.waiting or self.device.broken is not None:
                    self.device.flush()
                self.only.run(place, numbers)
            return []
        found: list[Any] = []
        for part in self.parts:
            if isinstance(part, _Segment):
                with ExitStack() as locks:
                    for device in self.devices:
                        locks.enter_context(device.in_order())
                    part.run(place, numbers)
            else:
                element = do(part, addresses, numbers)
                if element is not None:
                    found.append(element)
        return found
