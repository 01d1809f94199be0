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


def known_version(text: str) -> tuple[int, int]:
    """The version of PTX that a text is written in."""
    found = re.search(r"\.version (\d+)\.(\d+)", text)
    assert found is not None
    return int(found[1]), int(found[2])


class Library:
    def __init__(self, text: str) -> None:
        self.text = text
        self.modules: dict[int, emulator.Module] = {}

    def on(self, context: Context) -> emulator.Module:
        if context.number not in self.modules:
            self.modules[context.number] = context.device.load(self.text)
        return self.modules[context.number]


def of_library(code: int) -> str:
    """The PTX of what is loaded. What the linker has made is for one capability, and no text."""
    data = ctypes.string_at(code) or b""
    if data.startswith(CUBIN):
        head, _, data = data.partition(b"\n")
        if head != cubin_head():
            raise Status(Code.NO_BINARY_FOR_GPU)
    return data.decode()


CUBIN = b"\x7fELF"


def cubin_head() -> bytes:
    return CUBIN + " ".join(map(str, machine.capability)).encode()


class Linker:
    """What is linked, and what has come of it, which lives as long as this."""

    def __init__(self) -> None:
        self.text, self.made = b"", ctypes.create_string_buffer(0)


@call("uppp")
def cuLinkCreate(count: int, options: int, values: int, place: int) -> None:
    machine.current()
    put_handle(place, machine.keep(Linker()))


@call("pipzpupp")
def cuLinkAddData(
    handle: int, kind: int, data: int, size: int, name: int, count: int, options: int, values: int
) -> None:
    text = ctypes.string_at(data, size).rstrip(b"\0")
    if kind != 1 or known_version(text.decode()) > newest_ptx(machine.version):
        raise Status(Code.INVALID_PTX)
    machine.handles[handle].text = text


@call("ppp")
def cuLinkComplete(handle: int, place: int, size: int) -> None:
    linker = machine.handles[handle]
    machine.linked += 1
    linker.made = ctypes.create_string_buffer(cubin_head() + b"\n" + linker.text)
    put(place, ctypes.c_uint64, ctypes.addressof(linker.made))
    put(size, ctypes.c_uint64, len(linker.made))


@call("p")
def cuLinkDestroy(handle: int) -> None:
    linker = machine.handles.pop(handle)
    ctypes.memset(linker.made, 0, len(linker.made))


class Kernel:
    def __init__(self, library: Library, name: str) -> None:
        self.library, self.name = library, name
        self.shared = 48 << 10  # dynamic shared memory that launches may ask for


@call("pppppppu")
def cuLibraryLoadData(place: int, code: int, *more: Any) -> None:
    text = of_library(code)
    if known_version(text) > newest_ptx(machine.version):
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


@call("iipi")
def cuKernelSetAttribute(attribute: int, value: int, kernel: int, device: int) -> None:
    if attribute != MAX_DYNAMIC_SHARED or not 0 <= value <= 227 << 10:
        raise Status(Code.INVALID_VALUE)
    machine.handles[kernel].shared = value


MAX_DYNAMIC_SHARED = 8


def words(place: int, kind: Any, count: int) -> list[int]:
    return list((kind * count).from_address(place))


@call("piuppppp" + "iiii")
def cuTensorMapEncodeTiled(
    place: int, kind: int, rank: int, address: int, extents: int, strides: int, box: int, steps: int, *modes: int
) -> None:
    """`modes`: how items are interleaved and permuted, what the L2 cache brings, what is outside."""
    if place % 64 or machine.capability < (9, 0):
        raise Status(Code.INVALID_VALUE)
    long, short = ctypes.c_uint64, ctypes.c_uint32
    dimensions = words(extents, long, rank), words(strides, long, rank - 1), words(box, short, rank)
    try:
        made = emulator.tensor_map(kind, address, *dimensions, words(steps, short, rank), *modes)
    except ValueError as error:
        raise Status(Code.INVALID_VALUE) from error
    ctypes.memmove(place, made, len(made))


@call("pp")
def cuTensorMapReplaceAddress(place: int, address: int) -> None:
    if place % 64 or address % 16:
        raise Status(Code.INVALID_VALUE)
    made = emulator.tensor_map_at(ctypes.string_at(place, 128), address)
    ctypes.memmove(place, made, len(made))


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
    if shared > kernel.shared:
        raise Status(Code.INVALID_VALUE)
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
