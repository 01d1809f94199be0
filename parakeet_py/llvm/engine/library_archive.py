"""What every function may need of the package's own code, compiled once for an installation.

The untyped IR of the library, the native runtime, what all entry stubs share, and the library's procedures for usual
types depend on the package and the machine alone. They are kept in one file of the environment, below `sys.prefix`, so
that a process finds them whose disk cache is empty or switched off: as byte code, it is part of what is installed.

`parakeet prepare` makes the file. In a virtual environment of this user a process that had to make some of it adds it
when it ends. The name of the file stands for the place of the package and for all that `disk_cache.digest` does, which
includes the package's sources: a file of other sources is never read, and goes when some newer ones have been written.

    8 bytes length of the table | 32 BLAKE2b of it | table: where each key's entry begins, and its bytes
    entries as `disk_cache` writes them, with checksums of their own

As files of the disk cache it is read only where no other user can have written it.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from contextlib import suppress

from parakeet_py.base import package
from parakeet_py.base.cache_files import is_trusted, read_file, trusted_folder, write_file

try:  # the module under hashlib, as in `disk_cache`
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["Archive", "installed"]

_SUFFIX = ".archive"
_HEAD = 8 + 32
_FIRST = 1 << 14  # bytes that are read first; most tables end within them
_MOST = 4  # files of one place of the package: machines and Pythons that share an environment
_PUBLIC_FOLDER, _PUBLIC_FILE = 0o755, 0o644  # other users run what is installed


def installed() -> str:
    """The folder of the environment in which archives are kept."""
    return os.path.join(sys.prefix, "share", "parakeet_py")


class Archive:
    """The archive of this process's environment in a folder; it is read when it is first asked for.

    Attributes
    ----------
    added : entries that are not in the file yet, by key
    preparing : for an installation, of any kind
    """

    def __init__(self, folder: str, environment: str) -> None:
        place = blake2b(os.fsencode(package.FOLDER), digest_size=6).hexdigest()
        self.folder, self.prefix = folder, f"library-{place}-"
        self.path = os.path.join(folder, f"{self.prefix}{environment}{_SUFFIX}")
        self.added: dict[str, bytes] = {}
        self.preparing = False
        self._table: dict[str, tuple[int, int]] | None = None

    def find(self, key: str) -> bytes | None:
        """The bytes of an entry, or None."""
        if key in self.added:
            return self.added[key]
        if self._table is None:
            self._table = self._read_table()
        start, size = self._table.get(key, (0, 0))
        found = read_file(self.path, size, start) if size else None
        return None if found is None else found[0]

    def add(self, key: str, entry: bytes) -> None:
        """Keep an entry for other processes, from the end of this one on, where this one may write the file."""
        if not self.added:
            atexit.register(self.write)
        self.added[key] = entry

    @property
    def may_grow(self) -> bool:
        """Is this a virtual environment of the user's? Others are left to `parakeet prepare`."""
        if self.preparing:
            return True
        return sys.prefix != sys.base_prefix and hasattr(os, "geteuid") and _owner(sys.prefix) == os.geteuid()

    def move(self, folder: str) -> None:
        """Write the file to another folder from now on, and read it there."""
        self.path = os.path.join(folder, os.path.basename(self.path))
        self.folder, self._table = folder, None

    def extent(self) -> tuple[int, int]:
        """How many entries the file has, and its bytes."""
        table = self._read_table()
        return len(table), max((start + size for start, size in table.values()), default=0)

    def write(self) -> bool:
        """Add what was added to what there is by now; True if there is nothing that is not in the file."""
        if not self.added:
            return True
        folder = trusted_folder(self.folder, _PUBLIC_FOLDER, quietly=True)
        if folder is None:
            return False
        self._table = self._read_table()
        data, _ = read_file(self.path) or (b"", None)
        entries = {key: data[start : start + size] for key, (start, size) in self._table.items()} | self.added
        written = write_file(self.path, _packed(entries), _PUBLIC_FILE)
        if written:
            self.added, self._table = {}, None
            self._delete_others()
        return written

    def _read_table(self) -> dict[str, tuple[int, int]]:
        """Where in the file the entries are; empty if there is none that can be trusted."""
        if not is_trusted(self.folder):
            return {}
        found = read_file(self.path, _FIRST)
        if found is not None:
            length = int.from_bytes(found[0][:8], "little")
            if _HEAD + length > _FIRST:
                found = read_file(self.path, _HEAD + length)
        return {} if found is None else _places(found[0])

    def _delete_others(self) -> None:
        """Delete files of former sources of the package in this place, but for the `_MOST` newest of all."""
        found = []
        with suppress(OSError), os.scandir(self.folder) as listing:
            for item in listing:
                if item.name.startswith(self.prefix):
                    with suppress(OSError):
                        found.append((item.stat(follow_symlinks=False).st_mtime, item.path))
        for _, path in sorted(found)[:-_MOST]:
            with suppress(OSError):
                os.unlink(path)


def _owner(path: str) -> int | None:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _packed(entries: dict[str, bytes]) -> bytes:
    places, start = {}, 0
    for key, entry in entries.items():
        places[key] = (start, len(entry))
        start += len(entry)
    table = marshal.dumps(places)
    return b"".join([len(table).to_bytes(8, "little"), _checksum(table), table, *entries.values()])


def _places(data: bytes) -> dict[str, tuple[int, int]]:
    """The table of a file, with places in it; empty if it is damaged."""
    end = _HEAD + int.from_bytes(data[:8], "little")
    table = data[_HEAD:end]
    if data[8:_HEAD] != _checksum(table):
        return {}
    return {key: (start + end, size) for key, (start, size) in marshal.loads(table).items()}


def _checksum(table: bytes) -> bytes:
    return blake2b(table, digest_size=32).digest()
