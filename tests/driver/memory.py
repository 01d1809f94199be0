"""Memory of devices, pinned memory, copies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py.ptx import emulator
from tests.driver.machine import Code, Context, Status, Stream, call, machine, put, put_handle


@call("pi")
def cuDeviceGetDefaultMemPool(place: int, device: int) -> None:
    put_handle(place, [*machine.pools][device])


@call("pi")
def cuDeviceGetMemPool(place: int, device: int) -> None:
    put_handle(place, [*machine.pools][device])


@call("pip")
def cuMemPoolGetAttribute(pool: int, attribute: int, place: int) -> None:
    context = machine.pools[pool]
    used = context.device.memory.used
    values = {4: (1 << 64) - 1, 5: max(context.reserved, used), 6: used, 7: used, 8: used}
    if attribute <= 3:
        put(place, ctypes.c_int, 1)
    else:
        put(place, ctypes.c_uint64, values[attribute])


@call("pip")
def cuMemPoolSetAttribute(pool: int, attribute: int, place: int) -> None:
    pass


@call("ppp")
def cuMemPoolGetAccess(place: int, pool: int, location: int) -> None:
    _, number = (ctypes.c_int * 2).from_address(location)
    context = machine.pools[pool]
    put(place, ctypes.c_int, 3 if number == context.number or number in context.peers else 0)


@call("ppz")
def cuMemPoolSetAccess(pool: int, described: int, count: int) -> None:
    context = machine.pools[pool]
    for _, number, flags in (ctypes.c_int * 3 * count).from_address(described):
        if flags and ((number, context.number) in machine.refusing or (number, context.number) in machine.apart):
            raise Status(Code.INVALID_DEVICE)
        if flags and number not in context.peers:
            context.admitted.append(number)
        (context.peers.add if flags else context.peers.discard)(number)


@call("pzpp")
def cuMemAllocFromPoolAsync(place: int, size: int, pool: int, handle: int) -> None:
    context, stream = machine.pools[pool], machine.stream(handle)
    if stream.graph is not None or stream.context is not context:
        raise Status(Code.STREAM_CAPTURE_UNSUPPORTED if stream.graph is not None else Code.INVALID_CONTEXT)
    if size == 0:
        raise Status(Code.INVALID_VALUE)
    if size > context.device.free_bytes:
        stream.run()  # what is freed in the order of the same stream can be had
    try:
        put_handle(place, context.device.alloc(size))
    except emulator.EmulatorError:
        raise Status(Code.OUT_OF_MEMORY) from None


@call("Qp")
def cuMemFreeAsync(address: int, handle: int) -> None:
    stream = machine.stream(handle)
    if machine.owner(address) is None:
        raise Status(Code.INVALID_VALUE)
    stream.add(lambda: stream.context.device.free(address))


@call("pz")
def cuMemAllocHost(place: int, size: int) -> None:
    machine.current()
    data = np.full(size, 0x5A, np.uint8)
    machine.pinned[data.ctypes.data] = data
    put_handle(place, data.ctypes.data)


@call("pzu")
def cuMemHostAlloc(place: int, size: int, flags: int) -> None:
    cuMemAllocHost(place, size)


@call("p")
def cuMemFreeHost(address: int) -> None:
    del machine.pinned[address]


@call("pzu")
def cuMemHostRegister(address: int, size: int, flags: int) -> None:
    machine.current()
    if flags != 1 or machine.unpinnable:
        raise Status(Code.OUT_OF_MEMORY)
    if any(start < address + size and address < start + data.size for start, data in machine.pinned.items()):
        raise Status(Code.INVALID_VALUE)
    machine.pinned[address] = memory_of(address, size)
    machine.registered += 1


@call("p")
def cuMemHostUnregister(address: int) -> None:
    machine.current()
    if address not in machine.pinned:
        raise Status(Code.INVALID_VALUE)
    del machine.pinned[address]


@call("pz")
def cuMemPoolTrimTo(pool: int, kept: int) -> None:
    machine.pools[pool].trimmed += 1


@call("pp")
def cuMemGetInfo(free: int, total: int) -> None:
    context = machine.current()
    put(free, ctypes.c_size_t, context.device.free_bytes)
    put(total, ctypes.c_size_t, context.size)


@call("piQ")
def cuPointerGetAttribute(place: int, attribute: int, address: int) -> None:
    machine.current()
    owner, pinned = machine.owner(address), machine.is_pinned(address)
    if owner is None and not pinned:
        raise Status(Code.INVALID_VALUE)
    if attribute == 2:
        put(place, ctypes.c_uint, 1 if pinned else 2)
    elif attribute == 9:
        put(place, ctypes.c_int, 0 if owner is None else owner.number)
    else:
        raise Status(Code.NOT_SUPPORTED)


def memory_of(address: int, size: int) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def read(address: int, size: int) -> Callable[[], Any]:
    """Memory of the host as a copy to the device finds it: now, or when it is due."""
    data = memory_of(address, size)
    if not machine.is_pinned(address):
        data = data.copy()
        return lambda: data

    def due() -> Any:
        if not machine.is_pinned(address):
            raise emulator.EmulatorError("memory of the host is not pinned any more when it is read")
        return data

    return due


def there(address: int, size: int, stream: Stream) -> None:
    """Memory of the device must be what it is said to be, before anything is copied."""
    owner = machine.owner(address)
    if owner is None or (owner is not stream.context and stream.context.number not in owner.peers):
        raise Status(Code.INVALID_VALUE)
    owner.device.memory.range(address, size)


@call("Qpzp")
def cuMemcpyHtoDAsync(target: int, source: int, size: int, handle: int) -> None:
    stream = machine.stream(handle)
    if size:
        there(target, size, stream)
        data = read(source, size)
        stream.add(lambda: stream.context.device.copy_in(target, data()))


@call("pQzp")
def cuMemcpyDtoHAsync(target: int, source: int, size: int, handle: int) -> None:
    stream = machine.stream(handle)
    if size:
        there(source, size, stream)
        stream.add(lambda: stream.context.device.copy_out(source, memory_of(target, size)) is None)
        if not machine.is_pinned(target):
            stream.run()


@call("QQzp")
def cuMemcpyDtoDAsync(target: int, source: int, size: int, handle: int) -> None:
    stream = machine.stream(handle)
    if size:
        there(target, size, stream), there(source, size, stream)
        stream.add(lambda: stream.context.device.copy(target, source, size))


def _both(*half: tuple[str, Any]) -> list[tuple[str, Any]]:
    """The fields of what is copied and of where it goes to."""
    return [(side + name, kind) for side in ("src", "dst") for name, kind in half]


_X, _Y = ("XInBytes", ctypes.c_size_t), ("Y", ctypes.c_size_t)
_Z, _LOD = ("Z", ctypes.c_size_t), ("LOD", ctypes.c_size_t)
_MEMORY = (
    ("MemoryType", ctypes.c_int),
    ("Host", ctypes.c_void_p),
    ("Device", ctypes.c_uint64),
    ("Array", ctypes.c_void_p),
)
_PITCH, _ROWS = ("Pitch", ctypes.c_size_t), ("Height", ctypes.c_size_t)
_WIDTH, _DEPTH = ("WidthInBytes", ctypes.c_size_t), ("Depth", ctypes.c_size_t)


class Copy2D(ctypes.Structure):
    _fields_ = (*_both(_X, _Y, *_MEMORY, _PITCH), _WIDTH, _ROWS)


@call("pp")
def cuMemcpy2DAsync(described: int, handle: int) -> None:
    stream, what = machine.stream(handle), Copy2D.from_address(described)
    width, device = what.WidthInBytes, stream.context.device
    if what.srcPitch < width or what.dstPitch < width:
        raise Status(Code.INVALID_VALUE)
    for number in range(what.Height):
        if (what.srcMemoryType, what.dstMemoryType) == (1, 2):
            source = read(what.srcHost + number * what.srcPitch, width)
            target = what.dstDevice + number * what.dstPitch
            there(target, width, stream)
            stream.add(lambda source=source, target=target: device.copy_in(target, source()))
        elif (what.srcMemoryType, what.dstMemoryType) == (2, 1):
            place = what.srcDevice + number * what.srcPitch
            host = memory_of(what.dstHost + number * what.dstPitch, width)
            there(place, width, stream)
            stream.add(lambda place=place, host=host: device.copy_out(place, host) is None)
        else:
            raise Status(Code.NOT_SUPPORTED)
    if what.dstMemoryType == 1 and not machine.is_pinned(what.dstHost):
        stream.run()


def over(target: int, theirs: int, place: int, ours: int, size: int, stream: Stream) -> None:
    to, source = machine.handles[theirs], machine.handles[ours]
    if not isinstance(to, Context) or not isinstance(source, Context):
        raise Status(Code.INVALID_CONTEXT)
    to.device.memory.range(target, size), source.device.memory.range(place, size)
    stream.add(lambda: to.device.copy_in(target, source.device.copy_out(place, size)))


@call("QpQpzp")
def cuMemcpyPeerAsync(target: int, theirs: int, place: int, ours: int, size: int, handle: int) -> None:
    over(target, theirs, place, ours, size, machine.stream(handle))


class Copy3DPeer(ctypes.Structure):
    _fields_ = (
        *_both(_X, _Y, _Z, _LOD, *_MEMORY, ("Context", ctypes.c_void_p), _PITCH, _ROWS),
        _WIDTH,
        _ROWS,
        _DEPTH,
    )


@call("pp")
def cuMemcpy3DPeerAsync(described: int, handle: int) -> None:
    stream, what = machine.stream(handle), Copy3DPeer.from_address(described)
    if what.Depth != 1 or what.srcMemoryType != 2 or what.dstMemoryType != 2:
        raise Status(Code.NOT_SUPPORTED)
    for number in range(what.Height):
        target, place = what.dstDevice + number * what.dstPitch, what.srcDevice + number * what.srcPitch
        over(target, what.dstContext, place, what.srcContext, what.WidthInBytes, stream)
