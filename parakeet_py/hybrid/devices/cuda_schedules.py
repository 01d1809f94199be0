"""Schedules on CUDA devices: lists of driver calls that machine code does one after the other.

A request of a schedule (`recording`) becomes calls of the driver with arguments that are known but for addresses: a
word for the function, eleven for what it is given. Launches take the values of their parameters from words of their
own. For a call on other memory the words are patched that hold addresses, and then machine code goes through the list,
without Python and without the interpreter's lock: what remains of the host's work for a kernel is the driver's own.

All stands in the order in which it was asked for. Before a device copies from another one it waits for that one's
stream, and that one waits for the copy before it is asked for anything else.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.recording import CopyIn, CopyOver, Given, Launch, Place, Request, do
from parakeet_py.hybrid.devices.staging import MOST_PITCH
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.lasting_code import lasting_code
from parakeet_py.llvm.engine.low_level_python import translate
from parakeet_py.llvm.engine.low_level_source import Source

WORDS = 12  # of a driver call: the function, and as many arguments as a launch has
_CODE = Source(
    """
# table: what is patched, how many, the driver calls, how many; then the status of the one that has failed
def run(table: ptr, addresses: ptr) -> i64:
    patch = table.ptr
    left = table.i64[1]
    while left > 0:
        patch.ptr.i64 = (addresses + patch.i64[1]).i64 + patch.i64[2]
        patch = patch + 24
        left -= 1
    request = table.ptr[2]
    count = table.i64[3]
    done = 0
    while done < count:
        a = request.i64[1]
        b = request.i64[2]
        c = request.i64[3]
        d = request.i64[4]
        e = request.i64[5]
        f = request.i64[6]
        g = request.i64[7]
        h = request.i64[8]
        i = request.i64[9]
        j = request.i64[10]
        k = request.i64[11]
        status = request.ptr.i32(a, b, c, d, e, f, g, h, i, j, k)
        if status != 0:
            table.i64[4] = i64(status)
            return done
        request = request + 96
        done += 1
    return done
"""
)


@lru_cache(maxsize=1)
def _run() -> Any:
    text = translate(_CODE)

    def make() -> tuple[bytes, Sequence[str]]:
        return compiler.compile_ir(text), ["run"]

    code = lasting_code(f"cuda schedules {compiler.host()} {text}", "schedules of CUDA devices", make, ["run"])
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code["run"])


@lru_cache(maxsize=32)
def _driver_call(name: str) -> int:
    """The address of a function of the driver, in the version of CUDA 12."""
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    place, status = ctypes.c_void_p(), ctypes.c_int()
    code = library.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(place), 12000, ctypes.c_uint64(0), ctypes.byref(status)
    )
    if code or not place.value:
        raise OSError(f"the CUDA driver has no {name}")
    return place.value


class _Patch(NamedTuple):
    """A word that is the address of a slot, so many bytes on."""

    word: int
    slot: int
    offset: int


class _Segment:
    """Driver calls without anything in between that the host waits for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Sequence[int]]] = []
        self.patches: list[_Patch] = []  # of words of calls and parameters
        self.kept: list[Any] = []
        self.what: list[Request] = []  # of each call
        self.current: Any = None
        self.numbers: list[tuple[Any, int]] = []  # where a number goes, and which
        self.behind: dict[int, tuple[Any, dict[int, Any]]] = {}  # devices that have to wait for others

    def call(self, request: Any, name: str, *arguments: int) -> None:
        self.calls.append((name, arguments))
        self.what.append(request)

    def on(self, device: Any, request: Any) -> None:
        """Make the context of a device current."""
        if self.current is not device:
            self.call(request, "cuCtxSetCurrent", int(device._context))
            self.current = device

    def ready(self, device: Any, request: Any) -> None:
        """Something else is about to be asked of a device: it waits for those that copy from it."""
        _, others = self.behind.pop(id(device), (None, {}))
        for other in others.values():
            self.wait(device, other, request)

    def wait(self, device: Any, other: Any, request: Any) -> None:
        """Let a device wait for all that another one has been asked for."""
        event = other.order_event
        self.on(other, request)
        self.call(request, "cuEventRecord", event, other.stream_handle)
        self.on(device, request)
        self.call(request, "cuStreamWaitEvent", device.stream_handle, event, 0)

    def launch(self, request: Launch) -> None:
        device = request.device
        self.ready(device, request)
        self.on(device, request)
        words = (ctypes.c_uint64 * max(len(request.values), 1))()
        pointers = (ctypes.c_uint64 * max(len(request.values), 1))()
        start = ctypes.addressof(words)
        for number, (code, value) in enumerate(zip(request.codes, request.values, strict=True)):
            pointers[number] = start + 8 * number
            if type(value) is Place:
                self.patches.append(_Patch(start + 8 * number, value.slot, value.offset))
            elif type(value) is Given:
                kind = ctypes.c_double if code == "d" else ctypes.c_float
                self.numbers.append((kind.from_address(start + 8 * number), value.number))
            else:
                struct.pack_into("<" + code.replace("P", "Q"), words, 8 * number, _plain(value, code))
        self.kept += [words, pointers, request.module]
        handle = device.kernel_handle(request.module, request.kernel)
        grid, block = request.blocks, request.threads
        parameters = ctypes.addressof(pointers)
        stream = device.stream_handle
        self.call(request, "cuLaunchKernel", handle, grid, 1, 1, block, 1, 1, 0, stream, parameters, 0)

    def copy_in(self, request: CopyIn) -> None:
        device, data = request.device, np.ascontiguousarray(request.data)
        self.ready(device, request)
        self.on(device, request)
        self.kept.append(data)
        self.placed(
            request, "cuMemcpyHtoDAsync", [request.address, data.ctypes.data, data.nbytes, device.stream_handle]
        )

    def copy_over(self, request: CopyOver) -> None:
        device, source, rows = request.device, request.source, request.rows
        self.ready(device, request)
        self.ready(source, request)
        self.wait(device, source, request)
        ours, theirs, stream = int(device._context), int(source._context), device.stream_handle
        for step in range(rows.height if rows.height == 1 or rows.pitch > MOST_PITCH else 0):
            target, place = _further(request.address, step * rows.pitch), _further(request.place, step * rows.pitch)
            self.placed(request, "cuMemcpyPeerAsync", [target, ours, place, theirs, rows.width, stream])
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
            self.call(request, "cuMemcpy3DPeerAsync", start, stream)
        waiting = self.behind.setdefault(id(source), (source, {}))[1]
        waiting[id(device)] = device

    def placed(self, request: Any, name: str, arguments: list[Any]) -> None:
        """A call some of whose arguments may be places."""
        for number, value in enumerate(arguments):
            if type(value) is Place:
                word = (len(self.calls) * WORDS + 1 + number) * 8
                self.patches.append(_Patch(-1 - word, value.slot, value.offset))  # where calls begin is not known yet
                arguments[number] = 0
        self.call(request, name, *arguments)

    def close(self) -> None:
        for source, others in [*self.behind.values()]:
            for other in others.values():
                self.wait(source, other, self.what[-1])
        self.behind.clear()
        calls = (ctypes.c_uint64 * (WORDS * len(self.calls)))()
        for place, (name, arguments) in enumerate(self.calls):
            words = [_driver_call(name), *arguments]
            calls[place * WORDS : place * WORDS + len(words)] = [word & 0xFFFFFFFFFFFFFFFF for word in words]
        start = ctypes.addressof(calls)
        patches = (ctypes.c_int64 * (3 * max(len(self.patches), 1)))()
        for place, (word, slot, offset) in enumerate(self.patches):
            patches[3 * place : 3 * place + 3] = [word if word >= 0 else start - 1 - word, 8 * slot, offset]
        self.kept += [calls, patches]
        self.table = (ctypes.c_int64 * 5)(ctypes.addressof(patches), len(self.patches), start, len(self.calls), 0)
        self.address = ctypes.addressof(self.table)
        self.count = len(self.calls)
        self.calls = []

    def run(self, addresses: int, numbers: Sequence[Any]) -> None:
        for place, number in self.numbers:
            place.value = numbers[number]
        done = _run()(self.address, addresses)
        if done != self.count:
            request = self.what[done]
            what = f"launching {request.kernel}" if isinstance(request, Launch) else "copying"
            raise request.device.failed_with(what, int(self.table[4]))


# where the addresses stand in a CUDA_MEMCPY3D_PEER
_SRC_DEVICE, _DST_DEVICE = 48, 136


def _further(place: Any, step: int) -> Any:
    return place._replace(offset=place.offset + step) if type(place) is Place else place + step


def _plain(value: Any, code: str) -> Any:
    if code in "efd":
        return float(value)
    found = value.item() if isinstance(value, np.generic) else value
    return int(found)


class CudaRequests:
    """Runs the requests of a schedule whose devices are all CUDA's."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.parts: list[Any] = []
        devices: dict[int, Any] = {}
        for request in requests:
            devices[id(request.device)] = request.device
            if isinstance(request, Launch | CopyIn | CopyOver):
                if not self.parts or not isinstance(self.parts[-1], _Segment):
                    self.parts.append(_Segment())
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
