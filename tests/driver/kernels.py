"""Modules, kernels, launches."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from parakeet_py.ptx import emulator
from tests.driver.machine import Code, Context, Status, call, machine, put, put_handle


def newest_ptx(version: int) -> tuple[int, int]:
    """The PTX that a driver for this version of CUDA knows: 8.0 to 8.8 came with CUDA 12.0 to 12.9, 9.0 with 13.0."""
    major, minor = version // 1000, version % 1000 // 10
    return (8, minor - (minor > 5)) if major == 12 else (major - 4, minor)


class Library:
    def __init__(self, text: str) -> None:
        self.text = text
        self.modules: dict[int, emulator.Module] = {}

    def on(self, context: Context) -> emulator.Module:
        if context.number not in self.modules:
            self.modules[context.number] = context.device.load(self.text)
        return self.modules[context.number]


class Kernel:
    def __init__(self, library: Library, name: str) -> None:
        self.library, self.name = library, name


@call("pppppppu")
def cuLibraryLoadData(place: int, code: int, *more: Any) -> None:
    text = (ctypes.string_at(code) or b"").decode()
    found = re.search(r"\.version (\d+)\.(\d+)", text)
    assert found is not None
    if (int(found[1]), int(found[2])) > newest_ptx(machine.version):
        raise Status(Code.UNSUPPORTED_PTX_VERSION)
    put_handle(place, machine.keep(Library(text)))


@call("p")
def cuLibraryUnload(handle: int) -> None:
    del machine.handles[handle]


@call("ppp")
def cuLibraryGetKernel(place: int, handle: int, name: int) -> None:
    library, label = machine.handles[handle], ctypes.string_at(name).decode()
    if f".entry {label}(" not in library.text:
        raise Status(Code.NOT_FOUND)
    put_handle(place, machine.keep(Kernel(library, label)))


@call("pp")
def cuKernelGetLibrary(place: int, kernel: int) -> None:
    put_handle(place, machine.handle(machine.handles[kernel].library))


@call("pp")
def cuKernelGetFunction(place: int, kernel: int) -> None:
    put_handle(place, kernel)


@call("pipi")
def cuKernelGetAttribute(place: int, attribute: int, kernel: int, device: int) -> None:
    put(place, ctypes.c_int, {1: 16, 3: 0, 4: machine.registers(machine.handles[kernel].name)}.get(attribute, 0))


@call("ppiz")
def cuOccupancyMaxActiveBlocksPerMultiprocessor(place: int, kernel: int, threads: int, shared: int) -> None:
    registers = machine.registers(machine.handles[kernel].name)
    put(place, ctypes.c_int, min(2048, 65536 // registers) // threads)


class Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


@call("pppp")
def cuLaunchKernelEx(described: int, kernel: int, parameters: int, extra: int | None) -> None:
    what = Launch.from_address(described)
    launched(kernel, tuple(what.grid), tuple(what.block), what.shared, what.stream, parameters)


@call("puuuuuuuppp")
def cuLaunchKernel(
    kernel: int, x: int, y: int, z: int, a: int, b: int, c: int, shared: int, stream: int, parameters: int, extra: int
) -> None:
    launched(kernel, (x, y, z), (a, b, c), shared, stream, parameters)


def launched(
    handle: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int, on: int, parameters: int | None
) -> None:
    stream, kernel = machine.stream(on), machine.handles[handle]
    module = kernel.library.on(stream.context)
    layout = module.program.parameter_layout(kernel.name)
    values: list[Any] = []
    for number, (_, parameter) in enumerate(layout):
        place = ctypes.c_uint64.from_address((parameters or 0) + 8 * number).value
        values.append(ctypes.string_at(place, parameter.size))
    work = lambda: module.launch(kernel.name, grid, block, values, shared)  # noqa: E731
    if stream.graph is not None:
        stream.graph.works.append(work)
    else:
        stream.add(work)
