"""Symbols and lines of generated code for gdb and lldb: `PARAKEET_PERF=gdb`.

A debugger learns of code made at run time by GDB's *JIT compilation interface* (GDB manual, section 30): a process has
a list of object files in memory, `__jit_debug_descriptor`, and calls the empty function `__jit_debug_register_code`
when the list changes, where the debugger has a breakpoint; one that is attached later reads the list. The debugger
looks for both by name in the symbol tables of shared libraries. LLVM has them, so they are found in the symbol table of
its library, where they need not be exported.

An object of the list is the one that LLVM made, with the addresses at which its sections lie in memory; its functions'
names, its table of lines and its rules for unwinding (DWARF) are then right, as the debugger relocates them.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from parakeet_py.base.debug_log import log
from parakeet_py.llvm.engine import llvm_library
from parakeet_py.llvm.engine.object_loader import LoadedCode

_REGISTER, _UNREGISTER = 1, 2
_SYMTAB = 2
_KNOWN = "LLVMPY_ContextCreate"  # a function of the library that is exported: its address says where the library is


class _Entry(ctypes.Structure):
    """`struct jit_code_entry`"""


_Entry._fields_ = [
    ("next", ctypes.POINTER(_Entry)),
    ("previous", ctypes.POINTER(_Entry)),
    ("file", ctypes.c_char_p),
    ("size", ctypes.c_uint64),
]


class _Descriptor(ctypes.Structure):
    """`struct jit_descriptor`"""

    _fields_: ClassVar = [
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.POINTER(_Entry)),
        ("first", ctypes.POINTER(_Entry)),
    ]


def register(code: LoadedCode, objects: Sequence[bytes]) -> None:
    """Let debuggers know the objects that `code` was loaded from, for as long as it is loaded."""
    interface = _interface()
    if interface is None:
        return
    for data, addresses in zip(objects, code.sections, strict=True):
        entry = interface.add(placed(data, addresses))
        weakref.finalize(code, interface.remove, entry).atexit = False


def placed(data: bytes, addresses: Sequence[int]) -> bytes:
    """An ELF object whose section headers say the addresses of the sections (0: not in memory)."""
    (table,) = struct.unpack_from("<Q", data, 40)
    found = bytearray(data)
    for number, address in enumerate(addresses):
        struct.pack_into("<Q", found, table + 64 * number + 16, address)
    return bytes(found)


class _Interface:
    """The list and the function of one process."""

    def __init__(self, descriptor: int, function: int) -> None:
        self.descriptor = _Descriptor.from_address(descriptor)
        self.notify: Any = ctypes.CFUNCTYPE(None)(function)
        self.entries: dict[int, tuple[_Entry, bytes]] = {}
        self.lock = threading.RLock()

    def add(self, data: bytes) -> int:
        entry = _Entry(file=data, size=len(data))
        with self.lock:
            first = self.descriptor.first
            entry.next = first
            if first:
                first.contents.previous = ctypes.pointer(entry)
            self.descriptor.first = ctypes.pointer(entry)
            self.entries[ctypes.addressof(entry)] = entry, data
            self._tell(_REGISTER, entry)
        return ctypes.addressof(entry)

    def remove(self, address: int) -> None:
        with self.lock:
            entry, _ = self.entries[address]
            if entry.previous:
                entry.previous.contents.next = entry.next
            else:
                self.descriptor.first = entry.next
            if entry.next:
                entry.next.contents.previous = entry.previous
            self._tell(_UNREGISTER, entry)
            del self.entries[address]

    def _tell(self, action: int, entry: _Entry) -> None:
        self.descriptor.action, self.descriptor.relevant = action, ctypes.pointer(entry)
        self.notify()
        self.descriptor.action = 0


@lru_cache(maxsize=1)
def _interface() -> _Interface | None:
    """The interface in LLVM's library; None, with a warning in the log, if its symbols have been stripped."""
    path = llvm_library.library().path
    names = (_KNOWN, "__jit_debug_descriptor", "__jit_debug_register_code")
    found = symbols_of(Path(path).read_bytes(), names)
    if len(found) < len(names):
        log.warning("PARAKEET_PERF=gdb: %s has no symbols for debuggers", path)
        return None
    here = ctypes.cast(getattr(ctypes.CDLL(path), _KNOWN), ctypes.c_void_p).value or 0
    base = here - found[_KNOWN]
    return _Interface(base + found[names[1]], base + found[names[2]])


def symbols_of(data: bytes, names: Sequence[str]) -> dict[str, int]:
    """The values of those symbols that the symbol table of a 64-bit little-endian ELF file has; of none without one."""
    import numpy as np

    if data[:6] != b"\x7fELF\x02\x01":
        return {}
    (table,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * number) for number in range(count)]
    found: dict[str, int] = {}
    for _, kind, _, _, offset, size, link, _, _, _ in sections:
        if kind != _SYMTAB:
            continue
        start, length = sections[link][4:6]
        strings = data[start : start + length]
        fields = [
            ("name", "<u4"),
            ("info", "u1"),
            ("other", "u1"),
            ("section", "<u2"),
            ("value", "<u8"),
            ("size", "<u8"),
        ]
        symbols = np.frombuffer(data, np.dtype(fields), size // 24, offset)
        for name in names:
            at = strings.find(b"\0" + name.encode() + b"\0")
            places = np.flatnonzero((symbols["name"] == at + 1) & (symbols["section"] != 0))
            if at >= 0 and len(places):
                found[name] = int(symbols["value"][places[0]])
    return found
