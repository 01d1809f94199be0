"""Compiled code on disk, so that a second process starts warm.

An entry is one file: a fixed head, a header (numbers, strings, lists and dicts, as `marshal` writes them: importing
`json` takes 2 ms), and object code.  Nothing is ever unpickled.

    8 bytes magic and version | 2 length of title | 4 of header | 8 of payload | 32 BLAKE2b of all else
    title | header | payload

The checksum covers the key too, so a renamed file is as foreign as a damaged one: either is no entry, and is
overwritten by the next `put`.  Files are written under another name and renamed: a reader sees all or nothing.
The title says what an entry is (`parakeet cache --list`).

`digest` makes keys.  Whatever can change the meaning of the code is part of every key: CPU model and features,
Python, NumPy, the C library, llvmlite (hence LLVM), and the sources of this package.  All of it is read without
importing llvmlite, since a warm start must not pay for that.

Since the files are executed, only those are read that no other user can have written (`cache_files`).  A cache
that cannot be read or written is silently no cache.  The total size is bounded (`PARAKEET_CACHE_SIZE`); the entries not
used for longest go first.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from parakeet_py.base import config, machine, package
from parakeet_py.base.cache_files import read_file, trusted_folder, write_file
from parakeet_py.llvm.engine import library_archive

try:  # the module under hashlib: an import of 0.2 ms instead of 7
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

MAGIC = b"PARAKT\x00\x03"
_BLOCK = 4096
TRIM_EVERY = 64  # puts between two looks at the total size
_SUFFIX = ".parakeet"
_HEAD = len(MAGIC) + 2 + 4 + 8
_CHECKSUM = 32
_BODY = _HEAD + _CHECKSUM
_MAX_TITLE = 1000  # bytes
_TOUCH_AFTER = 3600.0  # seconds; how fresh the time of last use is kept


class Entry(NamedTuple):
    """An entry: its JSON header and its bytes."""

    metadata: dict[str, Any]
    payload: bytes


def digest(*parts: object) -> str:
    """A key for `parts` (text, bytes, numbers, None, booleans, and tuples of them) in this environment.

    Raises
    ------
    TypeError
        A part whose text would not be the same in another process.
    """
    state = blake2b(_environment(), digest_size=20)
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, part: object) -> None:
    """Add a part with its type and length, so that different parts never read the same."""
    match part:
        case bytes():
            tag, data = b"b", part
        case str():
            tag, data = b"s", part.encode("utf-8", "surrogatepass")
        case bool() | int() | float() | complex() | None:
            tag, data = b"n", f"{type(part).__name__}:{part!r}".encode()
        case tuple() | list():
            state.update(b"t%d:" % len(part))
            for item in part:
                _feed(state, item)
            return
        case _:
            raise TypeError(f"a cache key cannot hold a {type(part).__name__}")
    state.update(b"%s%d:" % (tag, len(data)))
    state.update(data)


@lru_cache(maxsize=1)
def _environment() -> bytes:
    """Everything outside the program that decides what machine code means."""
    numpy = sys.modules.get("numpy")
    parts = (
        MAGIC,
        sys.platform,
        machine.PORTABLE,
        sys.hexversion,
        sys.implementation.cache_tag,
        getattr(numpy, "__version__", ""),
        _libc_version(),
        _cpu(),
        config.product_parts(),
        _llvmlite(),
        _package(),
    )
    state = blake2b(digest_size=32)
    _feed(state, parts)
    return state.digest()


def _libc_version() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""


def _cpu() -> str:
    """Model and features of the CPU."""
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer", "CPU part")
    lines = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break  # the first CPU speaks for all
                if line.startswith(wanted):
                    lines.append(line)
    except OSError:
        import platform

        uname = platform.uname()
        lines = [uname.machine, uname.processor, uname.release, uname.version]
    return "".join(lines)


def _llvmlite() -> tuple[object, ...]:
    """The version of llvmlite, which fixes LLVM's, without importing it."""
    from importlib.util import find_spec

    spec = find_spec("llvmlite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            with open(os.path.join(folder, "_version.py"), "rb") as file:
                return (file.read(),)
        except OSError:
            continue
    return ("none",)


def _package() -> str:
    """Names, sizes and times of this package's sources: an edit of the compiler makes its old output foreign."""
    found: list[str] = []
    folders = [package.FOLDER]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(".py"):
                        status = entry.stat()
                        found.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
                    elif entry.is_dir() and entry.name != "__pycache__":
                        folders.append(entry.path)
        except OSError:
            continue
    return "\n".join(sorted(found))


def package_sizes() -> tuple[tuple[str, int], ...]:
    """Names and sizes of this package's sources, which are the same where the same version is installed."""
    sources = (line.split(" ") for line in _package().splitlines())
    return tuple(sorted((name, int(size)) for name, size, _ in sources))


def directory() -> str | None:
    """The directory of the cache, made if need be; None when there is none or it cannot be trusted."""
    settings = config.current()
    if not settings.cache:
        return None
    path = _default_directory() if settings.cache_dir is None else os.fspath(settings.cache_dir)
    if path is None or path.startswith("~"):
        return None  # no home directory
    return trusted_folder(path)


def _default_directory() -> str | None:
    home = config.home()
    base: str | None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home
    elif sys.platform == "darwin":
        base = home and os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = home and os.path.join(home, ".cache")
    return base and os.path.join(base, "parakeet_py")


def load_entry(key: str) -> Entry | None:
    """The entry under `key`, or None when there is none, or it is damaged or foreign."""
    folder = directory()
    if folder is None:
        return None
    path = os.path.join(folder, key + _SUFFIX)
    found = read_file(path)
    if found is None:
        return None
    data, status = found
    entry = _decode(key, data)
    if entry is not None:
        _touch(path, status)
    return entry


@lru_cache(maxsize=1)
def archive() -> library_archive.Archive:
    """The archive of the package's own entries for this environment."""
    return library_archive.Archive(library_archive.installed(), digest("archive"))


def load_own(key: str) -> Entry | None:
    """An entry of the package's own: of what is installed, or of the cache."""
    found = load_installed(key)
    return load_entry(key) if found is None else found


def load_installed(key: str) -> Entry | None:
    """An entry of what is installed."""
    data = archive().find(key)
    return None if data is None else _decode(key, data)


def put_own(key: str, payload: bytes, metadata: dict[str, Any] | None = None, title: str = "") -> None:
    """Keep an entry of the package's own: in the cache, and for the installation where it may be added."""
    put(key, payload, metadata, title)
    if config.current().cache and archive().may_grow:
        archive().add(key, _encode(key, payload, metadata or {}, title))


def has_entry(key: str) -> bool:
    """Whether there is a file for `key`, which may be damaged or foreign."""
    folder = directory()
    return folder is not None and os.path.exists(os.path.join(folder, key + _SUFFIX))


def get(key: str) -> bytes | None:
    """The bytes under `key`, or None."""
    entry = load_entry(key)
    return None if entry is None else entry.payload


def put(key: str, payload: bytes, metadata: dict[str, Any] | None = None, title: str = "") -> bool:
    """Store `payload`, with a header of JSON's types and a title for lists; True when it was stored."""
    folder = directory()
    if folder is None:
        return False
    data = _encode(key, payload, metadata or {}, title)
    if not write_file(os.path.join(folder, key + _SUFFIX), data):
        return False
    _count_put(folder, _taken_by(len(data)))
    return True


def _encode(key: str, payload: bytes, metadata: dict[str, Any], title: str) -> bytes:
    name = title.encode("utf-8", "replace")[:_MAX_TITLE]
    header = marshal.dumps(_plain(metadata)) if metadata else b""
    lengths = ((len(name), 2), (len(header), 4), (len(payload), 8))
    head = MAGIC + b"".join(length.to_bytes(size, "little") for length, size in lengths)
    return head + _checksum(key, head, name, header, payload) + name + header + payload


def _decode(key: str, data: bytes) -> Entry | None:
    head = data[:_HEAD]
    ends = _ends(head)
    if ends is None or len(data) != ends[-1]:
        return None
    title_end, header_end, _ = ends
    title, header, payload = data[_BODY:title_end], data[title_end:header_end], data[header_end:]
    if data[_HEAD:_BODY] != _checksum(key, head, title, header, payload):
        return None
    metadata: dict[str, Any] = {}
    if header:
        metadata = marshal.loads(header)
    return Entry(metadata, payload)


def _plain(value: Any) -> Any:
    """A value as it is read again: of JSON's types, tuples as lists, keys as strings."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
    raise TypeError(f"no header can have {type(value).__name__}")


def _ends(head: bytes) -> tuple[int, int, int] | None:
    """Where title, header and payload end in an entry with this head; None if it is none."""
    if len(head) < _HEAD or not head.startswith(MAGIC):
        return None
    title = _BODY + int.from_bytes(head[8:10], "little")
    header = title + int.from_bytes(head[10:14], "little")
    return title, header, header + int.from_bytes(head[14:22], "little")


def _checksum(key: str, *parts: bytes) -> bytes:
    state = blake2b(key.encode(), digest_size=_CHECKSUM)
    for part in parts:
        state.update(part)
    return state.digest()


def _touch(path: str, status: os.stat_result) -> None:
    """Keep the time of last use, coarsely, in the file's modification time."""
    import time

    if time.time() - status.st_mtime > _TOUCH_AFTER:
        with suppress(OSError):
            os.utime(path)


_puts = 0
_total = 0  # bytes of the entries, by the last look, and those that this process has put since


def _taken_by(size: int) -> int:
    """The bytes of a file on the disk, in blocks as most file systems have them."""
    return -(-size // _BLOCK) * _BLOCK


def _count_put(folder: str, size: int) -> None:
    """Look at the total size in the first put of a process, when the limit may have been passed, and now and then, as
    others put entries, too."""
    global _puts, _total
    _total += size
    limit = config.current().cache_size
    if _puts % TRIM_EVERY == 0 or _total > limit:
        _total = trim(folder, limit)
    _puts += 1


class Kept(NamedTuple):
    """A file of an entry: when it was used last (seconds since 1970, coarsely), its bytes on the disk, where it is."""

    used: float
    size: int
    path: str

    @property
    def title(self) -> str:
        """What the entry says that it is; empty if it says nothing, or is none."""
        data, _ = read_file(self.path, _BODY + _MAX_TITLE) or (b"", None)
        ends = _ends(data[:_HEAD])
        return "" if ends is None else data[_BODY : ends[0]].decode("utf-8", "replace")


def kept(folder: str) -> list[Kept]:
    """The entries of a folder, those that were not used for longest first."""
    return sorted(
        Kept(status.st_mtime, _taken_by(status.st_size), path) for path, status in _files(folder) if _is_entry(path)
    )


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Entries, and what processes have left that ended while they wrote some."""
    with suppress(OSError), os.scandir(folder) as listing:
        for item in listing:
            with suppress(OSError):
                if _SUFFIX in item.name and item.is_file(follow_symlinks=False):
                    yield item.path, item.stat(follow_symlinks=False)


def _is_entry(path: str) -> bool:
    return path.endswith(_SUFFIX)


def trim(folder: str, limit: int) -> int:
    """Delete the entries not used for longest if they take more than `limit` bytes, left-over temporaries too; gives
    the bytes that are left."""
    import time

    for path, status in _files(folder):
        if not _is_entry(path) and time.time() - status.st_mtime > _TOUCH_AFTER:
            _delete(path)
    entries = kept(folder)
    total = sum(entry.size for entry in entries)
    if total > limit:
        for entry in entries:
            _delete(entry.path)
            total -= entry.size
            if total <= limit * 3 // 4:
                break
    return total


def clear(folder: str) -> tuple[int, int]:
    """Delete all entries; how many there were, and their bytes."""
    found = list(_files(folder))
    for path, _ in found:
        _delete(path)
    left = {path for path, _ in _files(folder)}
    gone = [_taken_by(status.st_size) for path, status in found if path not in left]
    return len(gone), sum(gone)


def _delete(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
