"""The driver itself, devices, contexts."""

from __future__ import annotations

import ctypes

from tests.driver.machine import Code, Status, call, machine, put, put_handle

_texts = {int(code): ctypes.create_string_buffer(f"CUDA_ERROR_{code.name}".encode()) for code in Code}


@call("u")
def cuInit(flags: int) -> None:
    pass


@call("p")
def cuDriverGetVersion(place: int) -> None:
    put(place, ctypes.c_int, machine.version)


@call("ip")
def cuGetErrorName(status: int, place: int) -> None:
    text = _texts.get(status)
    if text is None:
        raise Status(Code.INVALID_VALUE)
    put_handle(place, ctypes.addressof(text))


@call("ip")
def cuGetErrorString(status: int, place: int) -> None:
    cuGetErrorName(status, place)


@call("p")
def cuDeviceGetCount(place: int) -> None:
    put(place, ctypes.c_int, len(machine.contexts))


@call("pii")
def cuDeviceGetName(place: int, size: int, device: int) -> None:
    ctypes.memmove(place, b"A stand-in\0", min(size, 11))


@call("pi")
def cuDeviceGet(place: int, number: int) -> None:
    if number >= len(machine.contexts):
        raise Status(Code.INVALID_DEVICE)
    put(place, ctypes.c_int, number)


@call("pii")
def cuDeviceGetAttribute(place: int, attribute: int, device: int) -> None:
    known = {
        1: 1024,  # threads of a block
        8: 48 << 10,  # shared memory of a block
        10: 32,  # a warp
        12: 65536,  # registers
        16: 4,  # multiprocessors
        39: 2048,  # threads of a multiprocessor
        75: machine.capability[0],
        76: machine.capability[1],
        115: 1,  # memory pools
    }
    put(place, ctypes.c_int, known.get(attribute, 0))


@call("pi")
def cuDevicePrimaryCtxRetain(place: int, device: int) -> None:
    put_handle(place, machine.contexts[device].handle)


@call("i")
def cuDevicePrimaryCtxRelease(device: int) -> None:
    pass


@call("p")
def cuCtxGetCurrent(place: int) -> None:
    found = machine.here.context
    put_handle(place, found.handle if found else 0)


@call("p")
def cuCtxSetCurrent(handle: int | None) -> None:
    machine.here.context = machine.handles[handle] if handle else None


@call("p")
def cuCtxGetDevice(place: int) -> None:
    put(place, ctypes.c_int, machine.current().number)


@call("")
def cuCtxSynchronize() -> None:
    machine.current().run()


@call("pii")
def cuDeviceCanAccessPeer(place: int, one: int, other: int) -> None:
    put(place, ctypes.c_int, int(one != other and (one, other) not in machine.apart))
