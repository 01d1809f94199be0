"""Compiled code on disk, so that a second process starts warm.

An entry is one file: a fixed head, a JSON header, and object code.  Nothing is ever unpickled.

    8 bytes magic and version | 4 length of header | 8 length of payload | 32 BLAKE2b of all else | header | payload

The checksum covers the key too, so a renamed file is as foreign as a damaged one: either is no entry, and is
overwritten by the next `put`.  Files are written under another name and renamed: a reader sees all or nothing.

`digest` makes keys.  Whatever can change the meaning of the code is part of every key: CPU model and features,
Python, NumPy, the C library, llvmlite (hence LLVM), and the sources of this package.  All of it is read without
importing llvmlite, since a warm start must not pay for that.

Since the files are executed, the directory must belong to this user and be writable by nobody else; one that is
not is left alone.  A cache that cannot be read or written is silently no cache.  The total size is bounded; the
entries not used for longest go first.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from parakeet_py import config

try:  # the module under hashlib: an import of 0.2 ms instead of 7
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

MAGIC = b"PARAKT\x00\x01"
MAX_BYTES = 256 << 20
TRIM_EVERY = 64  # puts between two looks at the total size
_SUFFIX = ".parakeet"
_HEAD = len(MAGIC) + 4 + 8
_CHECKSUM = 32
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
        sys.hexversion,
        sys.implementation.cache_tag,
        getattr(numpy, "__version__", ""),
        _libc_version(),
        _cpu(),
        config.available_cpus(),  # into so many parts products are cut
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


def _package() -> tuple[object, ...]:
    """Names, sizes and times of this package's sources: an edit of the compiler makes its old output foreign."""
    found: list[object] = []
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(".py"):
                        status = entry.stat()
                        found.append((entry.name, status.st_size, status.st_mtime_ns))
                    elif entry.is_dir() and entry.name != "__pycache__":
                        folders.append(entry.path)
        except OSError:
            continue
    return tuple(sorted(found, key=repr))


def directory() -> str | None:
    """The directory of the cache, made if need be; None when there is none or it cannot be trusted."""
    settings = config.current()
    if not settings.cache:
        return None
    return _directory(os.fspath(settings.cache_dir) if settings.cache_dir is not None else _default_directory())


def _default_directory() -> str:
    if sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "parakeet_py")


def _directory(path: str) -> str | None:
    if not os.path.isabs(path) and path.startswith("~"):
        return None  # no home directory
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if sys.platform != "win32" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        _warn("the cache directory %s is not used: it must belong to you, and only you may write to it", path)
        return None
    return path


def load_entry(key: str) -> Entry | None:
    """The entry under `key`, or None when there is none, or it is damaged or foreign."""
    folder = directory()
    if folder is None:
        return None
    path = os.path.join(folder, key + _SUFFIX)
    try:
        with open(path, "rb") as file:
            data = file.read()
            status = os.fstat(file.fileno())
    except OSError:
        return None
    entry = _decode(key, data)
    if entry is not None:
        _touch(path, status)
    return entry


def get(key: str) -> bytes | None:
    """The bytes under `key`, or None."""
    entry = load_entry(key)
    return None if entry is None else entry.payload


def put(key: str, payload: bytes, metadata: dict[str, Any] | None = None) -> bool:
    """Store `payload`, with a header that must be JSON; True when it was stored."""
    folder = directory()
    if folder is None:
        return False
    path = os.path.join(folder, key + _SUFFIX)
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(_encode(key, payload, metadata or {}))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        return False
    _count_put(folder)
    return True


def _encode(key: str, payload: bytes, metadata: dict[str, Any]) -> bytes:
    import json

    header = json.dumps(metadata, separators=(",", ":"), allow_nan=False).encode() if metadata else b""
    head = MAGIC + len(header).to_bytes(4, "little") + len(payload).to_bytes(8, "little")
    return head + _checksum(key, head, header, payload) + header + payload


def _decode(key: str, data: bytes) -> Entry | None:
    head = data[:_HEAD]
    if len(head) < _HEAD or not head.startswith(MAGIC):
        return None
    header_end = _HEAD + _CHECKSUM + int.from_bytes(head[8:12], "little")
    end = header_end + int.from_bytes(head[12:20], "little")
    if len(data) != end:
        return None
    header, payload = data[_HEAD + _CHECKSUM : header_end], data[header_end:]
    if data[_HEAD : _HEAD + _CHECKSUM] != _checksum(key, head, header, payload):
        return None
    metadata: dict[str, Any] = {}
    if header:
        import json

        metadata = json.loads(header)
    return Entry(metadata, payload)


def _checksum(key: str, head: bytes, header: bytes, payload: bytes) -> bytes:
    state = blake2b(key.encode(), digest_size=_CHECKSUM)
    for part in (head, header, payload):
        state.update(part)
    return state.digest()


def _touch(path: str, status: os.stat_result) -> None:
    """Keep the time of last use, coarsely, in the file's modification time."""
    import time

    if time.time() - status.st_mtime > _TOUCH_AFTER:
        with suppress(OSError):
            os.utime(path)


_puts = 0


def _count_put(folder: str) -> None:
    """Look at the total size now and then: in the first put of a process, and every `TRIM_EVERY` after it."""
    global _puts
    if _puts % TRIM_EVERY == 0:
        trim(folder, MAX_BYTES)
    _puts += 1


def trim(folder: str, limit: int) -> None:
    """Delete the entries not used for longest until at most `limit` bytes are left; left-over temporaries too."""
    import time

    entries: list[tuple[float, int, str]] = []
    try:
        with os.scandir(folder) as listing:
            for item in listing:
                if _SUFFIX in item.name and item.is_file(follow_symlinks=False):
                    status = item.stat(follow_symlinks=False)
                    if item.name.endswith(_SUFFIX):
                        entries.append((status.st_mtime, status.st_size, item.path))
                    elif time.time() - status.st_mtime > _TOUCH_AFTER:
                        _delete(item.path)
    except OSError:
        return
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        _delete(path)
        total -= size
        if total <= limit * 3 // 4:
            return


def _delete(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


@lru_cache(maxsize=16)
def _warn(message: str, path: str) -> None:
    import logging

    logging.getLogger("parakeet_py").warning(message, path)
