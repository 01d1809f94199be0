"""Puts a relocatable object into memory and links it to the process: a small static linker for x86-64 ELF.

Native code in the disk cache must be reachable without importing llvmlite, which costs more than everything else of
a warm start together.  So this file reads what LLVM emits (System V ABI, AMD64 supplement) by itself:

    text + stubs  |  constants + address table  |  data + zeroed data        one mapping, in whole pages each

The three groups get the protections read+execute, read, and read+write after relocation: no page is ever writable
and executable.  Everything of an object lies within 2 GiB, as the small code model asks.  A call to a function far
away goes through a stub `jmp *entry(%rip)`, foreign data through its entry in the address table (GOT).

What it does not take raises `UnsupportedObject` (another machine or format, thread-local data, constructors,
indirect functions, unusual relocations): the engine then lets LLVM's own linker try.  Unwinding tables are left
out, as generated code throws nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Resolver = Callable[[str], "int | None"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")

_PROGBITS, _SYMTAB, _RELA_TYPE, _NOBITS, _REL, _INIT_ARRAY, _FINI_ARRAY = 1, 2, 4, 8, 9, 14, 15
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _COMMON, _EXTENDED = 0, 0xFFF1, 0xFFF2, 0xFFFF
_WEAK = 2
_STT_TLS, _STT_IFUNC = 6, 10

# relocation types
_R_64, _R_PC32, _R_GOT32, _R_PLT32, _R_GOTPCREL, _R_32, _R_32S = 1, 2, 3, 4, 9, 10, 11
_R_PC64, _R_GOTOFF64, _R_GOTPC32, _R_GOT64, _R_GOTPCREL64, _R_GOTPC64, _R_PLTOFF64 = 24, 25, 26, 27, 28, 29, 31
_R_GOTPCRELX, _R_REX_GOTPCRELX, _R_CODE_4_GOTPCRELX = 41, 42, 43
_VIA_TABLE = frozenset(
    (_R_GOT32, _R_GOTPCREL, _R_GOT64, _R_GOTPCREL64, _R_GOTPCRELX, _R_REX_GOTPCRELX, _R_CODE_4_GOTPCRELX)
)
_VIA_STUB = frozenset((_R_PLT32, _R_PLTOFF64))
_TABLE_NAME = "_GLOBAL_OFFSET_TABLE_"

_STUB_SIZE = 8  # ff 25 rel32, and two bytes of padding
_PAGE = mmap.PAGESIZE
_READ, _WRITABLE, _RUNNABLE = 1, 2, 4  # PROT_*


class LoadError(RuntimeError):
    """An object cannot be loaded: malformed, or a symbol is missing."""


class UnsupportedObject(LoadError):
    """A well-formed object that this linker does not take."""


class LoadedCode:
    """Code in memory and the addresses of its exports.

    The memory lives as long as this object; `close` unmaps it earlier.  At the end of the process it stays mapped,
    since worker threads may still stand in it.
    """

    __slots__ = ("__weakref__", "_finalizer", "addresses", "size")

    def __init__(self, addresses: dict[str, int], size: int, release: Callable[..., Any], *arguments: Any) -> None:
        self.addresses = addresses
        self.size = size
        self._finalizer = weakref.finalize(self, release, *arguments)
        self._finalizer.atexit = False

    def __getitem__(self, name: str) -> int:
        return self.addresses[name]

    def close(self) -> None:
        """Unmap the code now.  Nothing may run in it or point into it any more."""
        self._finalizer()

    def keep_for_ever(self) -> None:
        """Never unmap this code, not even when nothing refers to this object any more."""
        self._finalizer.detach()


@dataclass(slots=True)
class _Section:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    place: int = -1  # offset in the image, -1: not loaded


@dataclass(slots=True)
class _Symbol:
    name: str
    type: int
    binding: int
    section: int
    value: int
    size: int


@dataclass(slots=True)
class _Image:
    """The object laid out, before its address is known."""

    sections: list[_Section]
    symbols: list[_Symbol]
    size: int
    text_end: int
    constants_end: int
    stubs: dict[int, int] = field(default_factory=dict)  # symbol -> place
    table: dict[int, int] = field(default_factory=dict)  # symbol -> place
    table_place: int = 0


def supported() -> bool:
    """Whether this linker works for this process at all."""
    import platform

    return sys.platform == "linux" and platform.machine() == "x86_64" and struct.calcsize("P") == 8


def load_elf(data: bytes, resolve: Resolver, exports: Iterable[str]) -> LoadedCode:
    """Load the x86-64 ELF object `data`.

    Parameters
    ----------
    data : the object file
    resolve : name of an undefined symbol -> its address, or None
    exports : names of symbols to give the addresses of

    Raises
    ------
    UnsupportedObject
        The object needs something this linker does not do.
    LoadError
        The object is malformed, or a symbol is missing.
    """
    try:
        sections, symbols = _read(data)
        image = _lay_out(data, sections, symbols)
        return _link(data, image, resolve, exports)
    except (struct.error, IndexError, ValueError) as error:
        raise LoadError(f"malformed object: {error}") from error


def undefined_symbols(data: bytes) -> list[str]:
    """Names an ELF object needs from elsewhere (any 64-bit little-endian machine); empty for other formats."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    try:
        _, symbols = _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise LoadError(f"malformed object: {error}") from error
    return [s.name for s in symbols if s.section == _UNDEFINED and s.name and s.name != _TABLE_NAME]


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _read(data: bytes) -> tuple[list[_Section], list[_Symbol]]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise UnsupportedObject("not a 64-bit little-endian ELF object")
    header = _HEADER.unpack_from(data)
    kind, table, entry_size, count, names_at = header[1], header[6], header[11], header[12], header[13]
    if kind != 1 or entry_size != _SECTION.size or count == 0 or table + count * entry_size > len(data):
        raise LoadError("malformed object: not relocatable, or truncated")
    raw = [_SECTION.unpack_from(data, table + i * entry_size) for i in range(count)]
    names = data[raw[names_at][4] : raw[names_at][4] + raw[names_at][5]]
    sections = [
        _Section(_text(names, name), type_, flags, offset, size, link, info, max(alignment, 1))
        for name, type_, flags, _, offset, size, link, info, alignment, _ in raw
    ]
    symbols: list[_Symbol] = []
    for section in sections:
        if section.type != _NOBITS and section.offset + section.size > len(data):
            raise LoadError("malformed object: truncated")
        if section.type == _SYMTAB:
            strings = sections[section.link]
            text = data[strings.offset : strings.offset + strings.size]
            body = data[section.offset : section.offset + section.size]
            symbols = [
                _Symbol(_text(text, name), info & 15, info >> 4, index, value, size)
                for name, info, _, index, value, size in _SYMBOL.iter_unpack(body)
            ]
    return sections, symbols


def _relocations(data: bytes, sections: list[_Section]) -> Iterable[tuple[_Section, int, int, int, int]]:
    """(section, offset in it, type, symbol, addend) of every relocation of a loaded section."""
    for table in sections:
        if table.type == _REL:
            raise UnsupportedObject("relocations without addends")
        if table.type != _RELA_TYPE:
            continue
        target = sections[table.info]
        if target.place < 0:
            continue
        for offset, info, addend in _RELA.iter_unpack(data[table.offset : table.offset + table.size]):
            if offset >= target.size:
                raise LoadError("malformed object: relocation outside its section")
            yield target, offset, info & 0xFFFFFFFF, info >> 32, addend


def _align(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment


def _group(section: _Section) -> int:
    """0 text, 1 constants, 2 data; -1 for what is not loaded."""
    if not section.flags & _ALLOC or section.size == 0 or section.name == ".eh_frame":
        return -1
    if section.flags & _TLS or section.type in (_INIT_ARRAY, _FINI_ARRAY):
        raise UnsupportedObject(f"section {section.name}")
    if section.type not in (_PROGBITS, _NOBITS):
        return -1
    if section.flags & _EXECUTE:
        return 0
    relocated_constant = section.name.startswith(".data.rel.ro")
    return 2 if section.flags & _WRITE and not relocated_constant else 1


def _lay_out(data: bytes, sections: list[_Section], symbols: list[_Symbol]) -> _Image:
    if _HEADER.unpack_from(data)[2] != 62:
        raise UnsupportedObject("an object for another machine")
    groups: tuple[list[_Section], ...] = ([], [], [])
    for section in sections:
        group = _group(section)
        if group >= 0:
            if section.alignment > _PAGE:
                raise UnsupportedObject(f"section {section.name} aligned to {section.alignment}")
            groups[group].append(section)
            section.place = 0  # loaded; the real place follows

    stubs: dict[int, int] = {}
    table: dict[int, int] = {}
    for _, _, kind, number, _ in _relocations(data, sections):
        foreign = symbols[number].section == _UNDEFINED
        if kind in _VIA_TABLE or (kind in _VIA_STUB and foreign):
            table.setdefault(number, len(table))
        if kind in _VIA_STUB and foreign:
            stubs.setdefault(number, len(stubs))

    place = _place(groups[0], 0)
    stubs_place = _align(place, 16)
    text_end = _align(stubs_place + _STUB_SIZE * len(stubs), _PAGE)
    table_place = text_end
    constants_end = _align(_place(groups[1], table_place + 8 * len(table)), _PAGE)
    end = _place(groups[2], constants_end)
    for symbol in symbols:
        if symbol.section == _COMMON:  # value is the alignment
            end = _align(end, max(symbol.value, 1))
            symbol.section, symbol.value, end = _ABSOLUTE, -1 - end, end + symbol.size
    return _Image(
        sections,
        symbols,
        max(_align(end, _PAGE), _PAGE),
        text_end,
        constants_end,
        {number: stubs_place + _STUB_SIZE * k for number, k in stubs.items()},
        {number: table_place + 8 * k for number, k in table.items()},
        table_place,
    )


def _place(sections: list[_Section], start: int) -> int:
    for section in sections:
        start = section.place = _align(start, section.alignment)
        start += section.size
    return start


def _link(data: bytes, image: _Image, resolve: Resolver, exports: Iterable[str]) -> LoadedCode:
    memory = bytearray(image.size)
    for section in image.sections:
        if section.place >= 0 and section.type == _PROGBITS:
            memory[section.place : section.place + section.size] = data[section.offset : section.offset + section.size]
    base = _map(image.size)
    try:
        addresses = _addresses(image, base, resolve)
        _relocate(data, image, memory, base, addresses)
        ctypes.memmove(base, bytes(memory), image.size)
        _protect(base, image.text_end, _READ | _RUNNABLE)
        _protect(base + image.text_end, image.constants_end - image.text_end, _READ)
        named = _exported(image, addresses, exports)
    except BaseException:
        _unmap(base, image.size)
        raise
    return LoadedCode(named, image.size, _unmap, base, image.size)


def _addresses(image: _Image, base: int, resolve: Resolver) -> Callable[[int], int]:
    """A function from symbol number to address, which asks `resolve` only for what is really used."""
    known: dict[int, int] = {}

    def address(number: int) -> int:
        if number in known:
            return known[number]
        symbol = image.symbols[number]
        if symbol.type in (_STT_TLS, _STT_IFUNC):
            raise UnsupportedObject(f"thread-local or indirect symbol {symbol.name}")
        match symbol.section:
            case 0:
                found = base + image.table_place if symbol.name == _TABLE_NAME else resolve(symbol.name)
                if found is None and symbol.binding == _WEAK:
                    found = 0
                if found is None:
                    raise LoadError(f"undefined symbol {symbol.name!r}")
                value = found
            case 0xFFF1:
                value = symbol.value if symbol.value >= 0 else base - 1 - symbol.value
            case section if section < len(image.sections) and image.sections[section].place >= 0:
                value = base + image.sections[section].place + symbol.value
            case section:
                raise UnsupportedObject(f"symbol {symbol.name!r} in section {section}, which is not loaded")
        known[number] = value
        return value

    return address


def _relocate(data: bytes, image: _Image, memory: bytearray, base: int, address: Callable[[int], int]) -> None:
    for number, place in image.table.items():
        struct.pack_into("<Q", memory, place, address(number))
    for number, place in image.stubs.items():
        struct.pack_into("<HiH", memory, place, 0x25FF, image.table[number] - (place + 6), 0x9066)
    table = base + image.table_place
    for section, offset, kind, number, addend in _relocations(data, image.sections):
        place = section.place + offset
        here = base + place
        match kind:
            case 0:  # R_X86_64_NONE
                continue
            case 1:
                _store(memory, place, "<Q", (address(number) + addend) & 0xFFFFFFFFFFFFFFFF)
            case 2:
                _store(memory, place, "<i", address(number) + addend - here)
            case 4:
                distance = address(number) + addend - here
                if not -(2**31) <= distance < 2**31 and number in image.stubs:
                    distance = base + image.stubs[number] + addend - here
                _store(memory, place, "<i", distance)
            case 9 | 41 | 42 | 43:
                _store(memory, place, "<i", base + image.table[number] + addend - here)
            case 10:
                _store(memory, place, "<I", address(number) + addend)
            case 11:
                _store(memory, place, "<i", address(number) + addend)
            case 24:
                _store(memory, place, "<q", address(number) + addend - here)
            case 3:
                _store(memory, place, "<i", base + image.table[number] + addend - table)
            case 25:
                _store(memory, place, "<q", address(number) + addend - table)
            case 26:
                _store(memory, place, "<i", table + addend - here)
            case 27:
                _store(memory, place, "<q", base + image.table[number] + addend - table)
            case 28:
                _store(memory, place, "<q", base + image.table[number] + addend - here)
            case 29:
                _store(memory, place, "<q", table + addend - here)
            case 31:
                _store(memory, place, "<q", address(number) + addend - table)
            case _:
                raise UnsupportedObject(f"relocation type {kind}")


def _store(memory: bytearray, place: int, layout: str, value: int) -> None:
    try:
        struct.pack_into(layout, memory, place, value)
    except struct.error:
        raise UnsupportedObject(f"a relocation does not reach its target: {value:#x}") from None


def _exported(image: _Image, address: Callable[[int], int], exports: Iterable[str]) -> dict[str, int]:
    defined = {s.name: i for i, s in enumerate(image.symbols) if s.name and s.section != _UNDEFINED}
    try:
        return {name: address(defined[name]) for name in exports}
    except KeyError as error:
        raise LoadError(f"the object does not define {error.args[0]!r}") from None


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _map(size: int) -> int:
    address = _libc().mmap(None, size, _READ | _WRITABLE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise LoadError(f"no memory for {size} bytes of code (errno {ctypes.get_errno()})")
    return int(address)


def _protect(address: int, size: int, protection: int) -> None:
    if size and _libc().mprotect(address, size, protection) != 0:
        raise LoadError(f"the system refuses to make memory executable (errno {ctypes.get_errno()})")


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, size)
