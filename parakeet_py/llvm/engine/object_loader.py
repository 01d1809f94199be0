"""Puts a relocatable object into memory and links it to the process: a small static linker for x86-64 ELF.

Native code in the disk cache must be reachable without importing llvmlite, which costs more than everything else of
a warm start together.  So this file reads what LLVM emits (System V ABI, AMD64 supplement) by itself:

    text + stubs  |  address table + constants  |  data + zeroed data        one mapping, in whole pages each

The three groups get the protections read+execute, read, and read+write after relocation: no page is ever writable
and executable.  Everything of an object lies within 2 GiB, as the small code model asks.  A call to a function far
away goes through a stub `jmp *entry(%rip)`, foreign data through its entry in the address table (GOT).

What it does not take raises `UnsupportedObject` (another machine or format, thread-local data, constructors,
indirect functions, unusual relocations): the engine then lets LLVM's own linker try.  Unwinding tables are left
out, as generated code throws nothing.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from parakeet_py.base import machine
from parakeet_py.base.errors import ParakeetError

Resolver = Callable[[str], "int | None"]

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_STUB = struct.Struct("<HiH")  # ff 25 rel32, and two bytes of padding

_PROGBITS, _SYMTAB, _WITH_ADDENDS, _NOBITS, _WITHOUT_ADDENDS, _INIT_ARRAY, _FINI_ARRAY = 1, 2, 4, 8, 9, 14, 15
_WRITE, _ALLOC, _EXECUTE, _TLS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_LOCAL, _WEAK, _FUNCTION, _THREAD_LOCAL, _INDIRECT = 0, 2, 2, 6, 10  # bindings, then types
_TABLE_NAME = "_GLOBAL_OFFSET_TABLE_"

# type -> (how it is stored, what it refers to, what is subtracted); the addend is always added
_RELOCATIONS: dict[int, tuple[str, str, str]] = {
    1: ("<Q", "symbol", "nothing"),  # R_X86_64_64
    2: ("<i", "symbol", "here"),  # PC32
    3: ("<i", "entry", "table"),  # GOT32
    4: ("<i", "stub", "here"),  # PLT32
    9: ("<i", "entry", "here"),  # GOTPCREL
    10: ("<I", "symbol", "nothing"),  # 32
    11: ("<i", "symbol", "nothing"),  # 32S
    24: ("<q", "symbol", "here"),  # PC64
    25: ("<q", "symbol", "table"),  # GOTOFF64
    26: ("<i", "table", "here"),  # GOTPC32
    27: ("<q", "entry", "table"),  # GOT64
    28: ("<q", "entry", "here"),  # GOTPCREL64
    29: ("<q", "table", "here"),  # GOTPC64
    31: ("<q", "symbol", "table"),  # PLTOFF64: 64 bits reach every symbol without a stub
    41: ("<i", "entry", "here"),  # GOTPCRELX
    42: ("<i", "entry", "here"),  # REX_GOTPCRELX
    43: ("<i", "entry", "here"),  # CODE_4_GOTPCRELX
}

_REACH = 2**31  # bytes the small code model spans
_PROT_READ, _PROT_WRITE, _PROT_EXECUTE = 1, 2, 4


class LoadError(ParakeetError):
    """An object cannot be loaded: malformed, or a symbol is missing."""


class UnsupportedObject(LoadError):
    """A well-formed object that this linker does not take."""


_kept_for_ever: list[object] = []


class LoadedCode:
    """Code in memory and the addresses of its exports.

    The memory lives as long as this object; `close` unmaps it earlier.  At the end of the process it stays mapped,
    since worker threads may still stand in it.
    """

    __slots__ = ("__weakref__", "_finalizer", "addresses", "functions", "sections", "size")

    def __init__(self, addresses: dict[str, int], size: int, release: Callable[..., Any], *arguments: Any) -> None:
        self.addresses = addresses
        self.functions: list[tuple[str, int, int]] = []  # names, addresses and sizes of all functions
        self.sections: list[list[int]] = []  # addresses of the sections of each object, 0 of what is not loaded
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
        _kept_for_ever.append(self._finalizer.detach())  # what LLVM has linked is freed when nothing refers to it

    def handed_over(self) -> Callable[[], object]:
        """What unmaps this code, which is then the caller's to call."""
        detached = self._finalizer.detach()
        assert detached is not None
        _, release, arguments, _ = detached
        return partial(release, *arguments)


def supported() -> bool:
    """Whether this linker works in this process at all."""
    return machine.OWN_LINKER


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
        return _Linker(_ObjectFile(data), resolve).link(exports)
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError) as error:
        raise LoadError(f"malformed object: {error}") from error


def load_elves(objects: Sequence[bytes], resolve: Resolver, exports: Iterable[str]) -> LoadedCode:
    """Load objects of which each may refer to those before it; `exports` are the last one's."""
    *earlier, last = objects
    if not earlier:
        return load_elf(last, resolve, exports)
    known: dict[str, int] = {}

    def look_up(name: str) -> int | None:
        return known[name] if name in known else resolve(name)

    loaded: list[LoadedCode] = []
    try:
        for data in earlier:
            loaded.append(load_elf(data, look_up, _defined_symbols(data)))
            known.update(loaded[-1].addresses)
        loaded.append(load_elf(last, look_up, exports))
    except BaseException:
        for code in loaded:
            code.close()
        raise

    size, addresses = sum(code.size for code in loaded), loaded[-1].addresses
    whole = LoadedCode(addresses, size, _release, [code.handed_over() for code in loaded])
    whole.functions = [function for code in loaded for function in code.functions]
    whole.sections = [places for code in loaded for places in code.sections]
    return whole


def _release(all_of: list[Callable[[], object]]) -> None:
    for release in all_of:
        release()


_JOINED = b"parakeet_py objects\n"


def joined(objects: Sequence[bytes]) -> bytes:
    """Objects in one piece."""
    sizes = struct.pack(f"<{1 + len(objects)}Q", len(objects), *map(len, objects))
    return b"".join([_JOINED, sizes, *objects])


def separate(data: bytes) -> list[bytes]:
    """The objects of `joined`, or one that stands for itself.

    Raises
    ------
    LoadError
        The data are malformed.
    """
    if not data.startswith(_JOINED):
        return [data]
    try:
        (count,) = struct.unpack_from("<Q", data, len(_JOINED))
        place = len(_JOINED) + 8 * (1 + count)
        sizes = struct.unpack(f"<{count}Q", data[len(_JOINED) + 8 : place])
    except (struct.error, MemoryError, OverflowError) as error:
        raise LoadError(f"malformed object: {error}") from error
    if not sizes or place + sum(sizes) != len(data):
        raise LoadError("malformed object: truncated")
    ends = list(itertools.accumulate(sizes, initial=place))
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def undefined_symbols(*objects: bytes) -> list[str]:
    """Names that ELF objects need from elsewhere (any 64-bit little-endian machine)."""
    symbols = [symbol for data in objects for symbol in _symbols(data) if symbol.name and symbol.name != _TABLE_NAME]
    defined = {s.name for s in symbols if s.section != _UNDEFINED and s.binding != _LOCAL}
    needed = dict.fromkeys(s.name for s in symbols if s.section == _UNDEFINED)
    return [name for name in needed if name not in defined]


def _defined_symbols(data: bytes) -> list[str]:
    """Names of the symbols that an object lets others see."""
    return [s.name for s in _symbols(data) if s.section != _UNDEFINED and s.name and s.binding != _LOCAL]


def _symbols(data: bytes) -> list[_Symbol]:
    try:
        return _ObjectFile(data).symbols
    except (struct.error, IndexError, ValueError, OverflowError, MemoryError) as error:
        raise LoadError(f"malformed object: {error}") from error


class _Section:
    """A section of the file, and its place in the image once it has one (-1: it is not loaded)."""

    __slots__ = ("alignment", "data", "flags", "info", "link", "name", "place", "size", "type")

    def __init__(self, file: bytes, names: bytes, fields: tuple[int, ...]) -> None:
        name, self.type, self.flags, _, offset, self.size, self.link, self.info, alignment, _ = fields
        self.name = _text(names, name)
        self.alignment = max(alignment, 1)
        self.place = -1
        self.data = b"" if self.type == _NOBITS else file[offset : offset + self.size]
        if self.type != _NOBITS and len(self.data) != self.size:
            raise LoadError("malformed object: truncated")


class _Symbol:
    __slots__ = ("binding", "name", "section", "size", "type", "value")

    def __init__(self, strings: bytes, fields: tuple[int, ...]) -> None:
        name, info, _, self.section, self.value, self.size = fields
        self.name = _text(strings, name)
        self.type, self.binding = info & 15, info >> 4


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


class _ObjectFile:
    """The sections and symbols of a relocatable file."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise UnsupportedObject("not a 64-bit little-endian ELF object")
        _, kind, self.machine, _, _, _, table, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
        if kind != 1 or size != _SECTION.size or count == 0:
            raise LoadError("malformed object: not a relocatable file")
        raw = [_SECTION.unpack_from(data, table + i * size) for i in range(count)]
        strings = data[raw[names][4] : raw[names][4] + raw[names][5]]
        self.sections = [_Section(data, strings, fields) for fields in raw]
        self.symbols: list[_Symbol] = []
        for section in self.sections:
            if section.type == _SYMTAB:
                strings = self.sections[section.link].data
                self.symbols = [_Symbol(strings, fields) for fields in _SYMBOL.iter_unpack(section.data)]

    def relocations(self) -> Iterator[tuple[_Section, int, int, int, int]]:
        """(section, offset in it, type, symbol number, addend) of every relocation of a loaded section."""
        for table in self.sections:
            if table.type not in (_WITH_ADDENDS, _WITHOUT_ADDENDS) or self.sections[table.info].place < 0:
                continue
            if table.type == _WITHOUT_ADDENDS:
                raise UnsupportedObject("relocations without addends")
            section = self.sections[table.info]
            for offset, info, addend in _RELA.iter_unpack(table.data):
                if offset + 4 > section.size:
                    raise LoadError("malformed object: a relocation outside its section")
                yield section, offset, info & 0xFFFFFFFF, info >> 32, addend


def _align(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment


def _group(section: _Section) -> int | None:
    """0 text, 1 constants, 2 data; None for what is not loaded."""
    if not section.flags & _ALLOC or section.size == 0 or section.name == ".eh_frame":
        return None
    runs_by_itself = section.type in (_INIT_ARRAY, _FINI_ARRAY) or section.name.startswith((".ctors", ".dtors"))
    if section.flags & _TLS or runs_by_itself or section.alignment > mmap.PAGESIZE:
        raise UnsupportedObject(f"section {section.name}")
    if section.type not in (_PROGBITS, _NOBITS):
        return None
    if section.flags & _EXECUTE:
        return 0
    constant = not section.flags & _WRITE or section.name.startswith(".data.rel.ro")
    return 1 if constant else 2


class _Linker:
    """Lays one object out, maps it, relocates it."""

    def __init__(self, file: _ObjectFile, resolve: Resolver) -> None:
        if file.machine != 62:
            raise UnsupportedObject("an object for another machine")
        self.file = file
        self.resolve = resolve
        self.base = 0
        self.stubs: dict[int, int] = {}  # symbol number -> place of its stub
        self.table: dict[int, int] = {}  # symbol number -> place of its entry in the address table
        self.commons: dict[int, int] = {}  # symbol number -> place
        self.known: dict[int, int] = {}  # symbol number -> address
        self._lay_out()

    def _lay_out(self) -> None:
        groups: tuple[list[_Section], ...] = ([], [], [])
        for section in self.file.sections:
            group = _group(section)
            if group is not None:
                groups[group].append(section)
        place = _place(groups[0], 0)
        # the sizes of stubs and table follow from the relocations, which need to know what is loaded
        for section in (*groups[1], *groups[2]):
            section.place = 0
        called, tabled = self._wants()
        place = _align(place, 16)
        for number in called:
            self.stubs[number] = place
            place += _STUB.size
        place = self.text_end = self.table_place = _align(place, mmap.PAGESIZE)
        for number in tabled:
            self.table[number] = place
            place += 8
        self.constants_end = _align(_place(groups[1], place), mmap.PAGESIZE)
        place = _place(groups[2], self.constants_end)
        for number, symbol in enumerate(self.file.symbols):
            if symbol.section == _COMMON:
                place = self.commons[number] = _align(place, max(symbol.value, 1))  # its value is its alignment
                place += symbol.size
        self.size = _align(max(place, 1), mmap.PAGESIZE)
        if self.size >= _REACH:
            raise LoadError(f"malformed object: {self.size} bytes of code and data")

    def _wants(self) -> tuple[dict[int, None], dict[int, None]]:
        """The symbols that need a stub, and those that need an entry in the table (sets that keep their order)."""
        called: dict[int, None] = {}
        tabled: dict[int, None] = {}
        for _, _, kind, number, _ in self.file.relocations():
            if kind == 0:
                continue
            if kind not in _RELOCATIONS:
                raise UnsupportedObject(f"relocation type {kind}")
            target = _RELOCATIONS[kind][1]
            if target == "stub" and self.file.symbols[number].section == _UNDEFINED:
                called[number] = tabled[number] = None
            elif target == "entry":
                tabled[number] = None
        return called, tabled

    def link(self, exports: Iterable[str]) -> LoadedCode:
        memory = bytearray(self.size)
        for section in self.file.sections:
            if section.place >= 0:
                memory[section.place : section.place + len(section.data)] = section.data
        self.base = _map(self.size)
        try:
            self._relocate(memory)
            ctypes.memmove(self.base, (ctypes.c_char * self.size).from_buffer(memory), self.size)
            _protect(self.base, self.text_end, _PROT_READ | _PROT_EXECUTE)
            _protect(self.base + self.text_end, self.constants_end - self.text_end, _PROT_READ)
            addresses = self._exported(exports)
        except BaseException:
            _unmap(self.base, self.size)
            raise
        code = LoadedCode(addresses, self.size, _unmap, self.base, self.size)
        code.functions = [
            (symbol.name, self._address(number), symbol.size)
            for number, symbol in enumerate(self.file.symbols)
            if symbol.type == _FUNCTION and symbol.section != _UNDEFINED and symbol.size
        ]
        code.sections = [[self.base + one.place if one.place >= 0 else 0 for one in self.file.sections]]
        return code

    def _address(self, number: int) -> int:
        if number not in self.known:
            self.known[number] = self._find(number, self.file.symbols[number])
        return self.known[number]

    def _find(self, number: int, symbol: _Symbol) -> int:
        if symbol.type in (_THREAD_LOCAL, _INDIRECT):
            raise UnsupportedObject(f"thread-local or indirect symbol {symbol.name!r}")
        if symbol.section == _UNDEFINED:
            if symbol.name == _TABLE_NAME:
                return self.base + self.table_place
            address = self.resolve(symbol.name) if symbol.name else 0
            if address is None and symbol.binding != _WEAK:
                raise LoadError(f"undefined symbol {symbol.name!r}")
            return address or 0
        if symbol.section == _ABSOLUTE:
            return symbol.value
        if symbol.section == _COMMON:
            return self.base + self.commons[number]
        section = self.file.sections[symbol.section]
        if section.place < 0:
            raise UnsupportedObject(f"symbol {symbol.name!r} in section {section.name}, which is not loaded")
        return self.base + section.place + symbol.value

    def _relocate(self, memory: bytearray) -> None:
        for number, place in self.table.items():
            struct.pack_into("<Q", memory, place, self._address(number))
        for number, place in self.stubs.items():
            _STUB.pack_into(memory, place, 0x25FF, self.table[number] - (place + 6), 0x9066)
        table = self.base + self.table_place
        for section, offset, kind, number, addend in self.file.relocations():
            if kind == 0:
                continue
            layout, what, origin = _RELOCATIONS[kind]
            here = self.base + section.place + offset
            match what:
                case "entry":
                    target = self.base + self.table[number]
                case "table":
                    target = table
                case _:
                    target = self._address(number)
            value = target + addend - (here if origin == "here" else table if origin == "table" else 0)
            if what == "stub" and number in self.stubs and not -_REACH <= value < _REACH:
                value += self.base + self.stubs[number] - target
            try:
                struct.pack_into(layout, memory, section.place + offset, value % 2**64 if layout == "<Q" else value)
            except struct.error:
                name = self.file.symbols[number].name
                raise UnsupportedObject(f"relocation type {kind} does not reach {name!r}") from None

    def _exported(self, exports: Iterable[str]) -> dict[str, int]:
        symbols = self.file.symbols
        defined = {s.name: number for number, s in enumerate(symbols) if s.name and s.section != _UNDEFINED}
        try:
            return {name: self._address(defined[name]) for name in exports}
        except KeyError as error:
            raise LoadError(f"the object does not define {error.args[0]!r}") from None


def _place(sections: list[_Section], place: int) -> int:
    """Give each section its place, from `place` on; the result is the end."""
    for section in sections:
        place = section.place = _align(place, section.alignment)
        place += section.size
    return place


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_ssize_t]
    libc.mprotect.argtypes = [pointer, size, number]
    libc.munmap.argtypes = [pointer, size]
    return libc


def _map(size: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = _libc().mmap(None, size, _PROT_READ | _PROT_WRITE, flags, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise LoadError(f"no memory for {size} bytes of code (errno {ctypes.get_errno()})")
    return int(address)


def _protect(address: int, size: int, protection: int) -> None:
    if size and _libc().mprotect(address, size, protection) != 0:
        raise LoadError(f"the system refuses to protect the memory of code (errno {ctypes.get_errno()})")


def _unmap(address: int, size: int) -> None:
    _libc().munmap(address, size)
