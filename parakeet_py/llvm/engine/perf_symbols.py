"""Names of generated code for profilers: `PARAKEET_PERF=map` or `jitdump` (`gdb`: see `debugger_symbols`).

A **map** is the text file /tmp/perf-PID.map with a line `address size name` (hexadecimal) for each function, which
`perf report` and other samplers read. It is also written if Python writes one (`-X perf`), then by Python's function.

A **jitdump** (Linux, tools/perf/Documentation/jitdump-specification.txt) has the machine code as well, and the line of
the user's function: `perf record -k mono`, then `perf inject --jit`, and `perf annotate` shows instructions. It is
`jit-PID.dump` in $JITDUMPDIR, or in the folder of temporary files; perf is aware of it as it is mapped for execution.

A process made by fork() has files of its own, with what it has inherited.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import BinaryIO, NamedTuple

from parakeet_py.base import config, machine
from parakeet_py.llvm.engine.object_loader import LoadedCode

_MAGIC, _VERSION = 0x4A695444, 1  # "JiTD"
_HEADER = struct.Struct("<6I2Q")  # magic, version, size, machine, 0, process, nanoseconds, flags
_RECORD = struct.Struct("<2IQ")  # kind, size, nanoseconds
_LOAD, _LINES = 0, 2


class Title(NamedTuple):
    """What an object is compiled from: a name for its functions, and the user's function."""

    name: str
    filename: str
    line: int


class Named(NamedTuple):
    """A function in memory."""

    name: str
    address: int
    size: int
    title: Title | None


def wanted() -> str:
    """How symbols are announced: "map", "jitdump", "gdb", or nothing ("")."""
    asked = config.current().perf
    active = getattr(sys, "is_stack_trampoline_active", None)
    return asked or ("map" if active is not None and active() else "")


def announce(code: LoadedCode, title: Title | None = None, objects: Sequence[bytes] = ()) -> None:
    """Announce what has been loaded from these objects, if that is wanted."""
    kind = wanted()
    if not kind:
        return
    if kind == "gdb":
        from parakeet_py.llvm.engine import debugger_symbols

        return debugger_symbols.register(code, objects)
    named = [Named(_name(symbol, title), address, size, title) for symbol, address, size in code.functions]
    with _lock:
        _files.setdefault(kind, _Map() if kind == "map" else _Dump()).add(named)


def _name(symbol: str, title: Title | None) -> str:
    """The name of a function: the user's one with its types, and behind it what part of it this is."""
    if title is None:
        return symbol
    name = f"py::{title.name}:{title.filename}"
    return name if symbol.endswith(".call") else f"{name} [{symbol.partition('.')[2] or symbol}]"


class _Log:
    """A file of this process; begun anew, with all that is known, in one made by fork()."""

    def __init__(self) -> None:
        self.known: list[Named] = []
        self.process = 0

    def add(self, functions: Iterable[Named]) -> None:
        fresh = list(functions)
        self.known += fresh
        if self.process != os.getpid():
            forked, self.process = self.process != 0, os.getpid()
            self.begin(forked)
            fresh = self.known
        self.write(fresh)

    def begin(self, forked: bool) -> None:
        raise NotImplementedError

    def write(self, functions: Sequence[Named]) -> None:
        raise NotImplementedError


class _Map(_Log):
    def begin(self, forked: bool) -> None:
        self.entry = getattr(ctypes.pythonapi, "PyUnstable_WritePerfMapEntry", None)
        if forked and self.entry is not None:  # Python 3.14 goes on with the parent's file
            ctypes.pythonapi.PyUnstable_PerfMapState_Fini()
        if self.entry is not None:
            self.entry.argtypes = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p)

    def write(self, functions: Sequence[Named]) -> None:
        if self.entry is not None:
            for one in functions:
                self.entry(one.address, one.size, one.name.encode())
            return
        with open(f"/tmp/perf-{self.process}.map", "a", encoding="utf-8") as file:
            file.writelines(f"{one.address:x} {one.size:x} {one.name}\n" for one in functions)


class _Dump(_Log):
    file: BinaryIO

    def begin(self, forked: bool) -> None:
        import tempfile

        folder = os.environ.get("JITDUMPDIR") or tempfile.gettempdir()
        self.file = open(os.path.join(folder, f"jit-{self.process}.dump"), "w+b", buffering=0)  # noqa: SIM115
        header = (_MAGIC, _VERSION, _HEADER.size, machine.ELF_MACHINE, 0, self.process, time.monotonic_ns(), 0)
        self.file.write(_HEADER.pack(*header))
        self.count = 0
        # perf finds the file by this event
        self.marker = mmap.mmap(self.file.fileno(), _HEADER.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)

    def write(self, functions: Sequence[Named]) -> None:
        records = []
        for one in functions:
            if one.title is not None:
                entry = struct.pack("<Q2I", one.address, one.title.line, 0) + one.title.filename.encode() + b"\0"
                records.append(self._record(_LINES, struct.pack("<2Q", one.address, 1) + entry))
            head = (self.process, threading.get_native_id(), one.address, one.address, one.size, self.count)
            code = ctypes.string_at(one.address, one.size)
            records.append(self._record(_LOAD, struct.pack("<2I4Q", *head) + one.name.encode() + b"\0" + code))
            self.count += 1
        self.file.write(b"".join(records))

    def _record(self, kind: int, body: bytes) -> bytes:
        return _RECORD.pack(kind, _RECORD.size + len(body), time.monotonic_ns()) + body


_files: dict[str, _Log] = {}
_lock = threading.Lock()
