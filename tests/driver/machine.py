"""What the stand-in for the driver knows: devices with their contexts, streams, graphs, memory of the host."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from parakeet_py.ptx import emulator

LEGACY, PER_THREAD = 1, 2

calls: dict[str, tuple[str, Callable[..., Any]]] = {}
_numbers = itertools.count(0x10000, 16)


class Code(IntEnum):
    """Results of calls, as CUDA numbers them."""

    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_DEVICE = 101
    INVALID_CONTEXT = 201
    NO_BINARY_FOR_GPU = 209
    INVALID_PTX = 218
    UNSUPPORTED_PTX_VERSION = 222
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    NOT_SUPPORTED = 801
    STREAM_CAPTURE_UNSUPPORTED = 900
    UNKNOWN = 999


class Status(Exception):
    """A call that fails with this code."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


class Point:
    """A moment in a stream that an event was recorded at."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.time = stream, 0.0


class Stream:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.todo: list[Callable[[], Any] | Point] = []  # a point is waited for
        self.graph: Graph | None = None  # while it is captured

    def add(self, work: Callable[[], Any] | Point) -> None:
        if self.graph is not None:
            raise Status(Code.STREAM_CAPTURE_UNSUPPORTED)
        self.todo.append(work)

    def run(self, until: Point | None = None) -> None:
        """Do all that has been asked for, or as far as a point."""
        while self.todo and (until is None or not until.time):
            work = self.todo.pop(0)
            if isinstance(work, Point):
                if not work.time:
                    work.stream.run(work)
                continue
            try:
                work()
            except emulator.EmulatorError as fault:
                self.context.error = Code.ILLEGAL_ADDRESS
                self.context.drop()
                raise Status(Code.ILLEGAL_ADDRESS) from fault


class Graph:
    """Launches, and what the host keeps as long as they may come."""

    def __init__(self, works: list[Callable[[], Any]], kept: list[Kept]) -> None:
        self.works, self.kept = works, kept

    def close(self) -> None:
        for one in self.kept:
            one.release(1)
        self.kept = []


class Kept:
    """Something of the host's that is let go when nothing refers to it."""

    def __init__(self, what: int, destroy: Callable[[int], None], count: int) -> None:
        self.what, self.destroy, self.count = what, destroy, count

    def release(self, count: int) -> None:
        self.count -= count
        assert self.count >= 0
        if not self.count:
            self.destroy(self.what)


class Event:
    """What may be recorded in a stream of its context; the last time it was is its point."""

    def __init__(self, context: Context, timed: bool) -> None:
        self.context, self.timed = context, timed
        self.point: Point | None = None


class Context:
    """The primary context of a device."""

    def __init__(self, number: int, memory: int) -> None:
        self.number, self.size = number, memory
        self.handle = next(_numbers)
        self.device = emulator.Device(memory_bytes=memory)
        self.error: Code | None = None
        self.streams = [Stream(self)]  # the default one
        self.peers: set[int] = set()  # devices that may access its memory
        self.admitted: list[int] = []  # those that became so, each time
        self.reserved = 0
        self.trimmed = 0  # times that its pool was asked to give memory back to the system

    def drop(self) -> None:
        for stream in self.streams:
            stream.todo.clear()

    def run(self) -> None:
        for stream in self.streams:
            if stream.graph is not None:
                raise Status(Code.STREAM_CAPTURE_UNSUPPORTED)
            stream.run()


class Here:
    """The current context of each thread, those included that Python does not know."""

    def __init__(self) -> None:
        self._contexts: dict[int, Context | None] = {}

    @property
    def context(self) -> Context | None:
        return self._contexts.get(threading.get_ident())

    @context.setter
    def context(self, context: Context | None) -> None:
        self._contexts[threading.get_ident()] = context


class Machine:
    """What the driver finds."""

    def begin(self, devices: int, memory: int, capability: tuple[int, int], version: int) -> None:
        """Be a machine with these devices, and a driver that has done nothing yet."""
        self.capability, self.version = capability, version
        self.contexts = [Context(number, memory) for number in range(devices)]
        self.handles: dict[int, Any] = {context.handle: context for context in self.contexts}
        self.pools = {next(_numbers): context for context in self.contexts}
        self.pinned: dict[int, np.ndarray[Any, Any]] = {}
        self.unpinnable = False  # no memory of the host may be pinned any more
        self.registered = 0  # times that some was
        self.here = Here()
        self.graphs_launched = 0
        self.linked = 0  # PTX that has become machine code for later processes
        self.apart: set[tuple[int, int]] = set()  # devices without a link: the first cannot access the second
        self.refusing: set[tuple[int, int]] = set()  # ... says that it can, and is refused
        self.registers: Callable[[str], int] = lambda name: 32

    def keep(self, thing: Any) -> int:
        handle = next(_numbers)
        self.handles[handle] = thing
        return handle

    def handle(self, thing: Any) -> int:
        return next(handle for handle, one in self.handles.items() if one is thing)

    def current(self) -> Context:
        found = self.here.context
        if found is None:
            raise Status(Code.INVALID_CONTEXT)
        if found.error:
            raise Status(found.error)
        return found

    def stream(self, handle: int | None) -> Stream:
        context = self.current()
        if handle in (None, LEGACY, PER_THREAD):
            return context.streams[0]
        found = self.handles.get(handle or 0)
        if not isinstance(found, Stream) or found.context is not context:
            raise Status(Code.INVALID_HANDLE)
        return found

    def owner(self, address: int) -> Context | None:
        for context in self.contexts:
            if context.device.memory.find(address) is not None:
                return context
        return None

    def is_pinned(self, address: int) -> bool:
        return any(start <= address < start + data.size for start, data in self.pinned.items())


machine = Machine()


def call(types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A call of the driver, by the name of the function; it gives nothing, or a status."""

    def named(function: Callable[..., Any]) -> Callable[..., Any]:
        calls[function.__name__] = types, function
        return function

    return named


def put(place: int, kind: Any, value: Any) -> None:
    kind.from_address(place).value = value


def put_handle(place: int, value: int) -> None:
    put(place, ctypes.c_uint64, value)
