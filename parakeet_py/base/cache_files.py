"""Files and folders that only this user can have made: the one place where cache files are opened.

What is read from the cache is executed, so a file counts only if no user but the owner or root can have written it:

- The folder, and every folder and symbolic link on the way to it, belongs to the user or to root. A folder that others
  may write to could have its contents exchanged; only one with the sticky bit (as /tmp) is allowed, and not as the
  last one. These are the rules of OpenSSH's StrictModes, with the sticky bit added.
- The file is a regular one of the user's, or of root's, with one name, which others cannot write to: one that was
  planted while the folder was open to all is no entry later on. It is opened without following links and without
  waiting, so that a FIFO does not block, and its size is known before anything is read.

All of this is about POSIX; elsewhere the rules of the system's own folders for caches are relied on.
"""

from __future__ import annotations

import os
import stat
import sys
from functools import lru_cache

MAX_FILE = 64 << 20  # bytes; the largest entry
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MAX_LINKS = 40  # as Linux
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_POSIX = sys.platform != "win32"


def trusted_folder(path: str, mode: int = 0o700, quietly: bool = False) -> str | None:
    """`path`, made if need be, if it is a folder that only this user and root can change; else None.

    One that exists and is not used is mentioned in the log, once, with the reason, unless it is asked for `quietly`.
    """
    path = os.path.abspath(path)
    if not _POSIX:
        return path if _made(path, mode) else None
    objection = _objection(path)
    if objection is None and not os.path.isdir(path):
        if not _made(path, mode):
            return None
        objection = _objection(path)
    if objection is None:
        status = _status(path, follow=True)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return None
        objection = _objection_to_last(path, status)
    if objection is not None:
        if not quietly:
            _warn(path, objection)
        return None
    return path


def is_trusted(path: str) -> bool:
    """Is there such a folder, which only this user and root can change?"""
    return os.path.isdir(path) and (not _POSIX or trusted_folder(path, quietly=True) is not None)


def _made(path: str, mode: int) -> bool:
    """Make a folder and what is missing above it, by default for this user alone, whatever the umask."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode=mode)
        except FileExistsError:
            continue  # another process has made it just now
        except OSError:
            return False
    return os.path.isdir(missing[0] if missing else path)


def _objection(path: str) -> str | None:
    """Why what exists of an absolute path is not safe from others; None if it is."""
    waiting = [part for part in reversed(path.split(os.sep)) if part]
    here, links = os.sep, 0
    while True:
        status = _status(here)
        if status is None:
            return None  # the rest is made by this user, or cannot be made
        if status.st_uid not in (0, os.geteuid()):
            return f"{here} belongs to another user"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            try:
                target = os.readlink(here)
            except OSError:
                return None
            if links > _MAX_LINKS:
                return f"{here} is one of too many symbolic links"
            waiting.extend(part for part in reversed(target.split(os.sep)) if part)
            here = os.sep if os.path.isabs(target) else os.path.dirname(here)
            continue
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            return f"others may write to {here}"
        if not waiting:
            return None
        part = waiting.pop()
        if part == os.pardir:
            here = os.path.dirname(here)
        elif part != os.curdir:
            here = os.path.join(here, part)


def _objection_to_last(path: str, status: os.stat_result) -> str | None:
    """Why the folder itself is none that only this user and root write to; None if it is."""
    if status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to another user"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to {path}"
    return None


def _status(path: str, follow: bool = False) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=16)
def _warn(path: str, objection: str) -> None:
    import logging

    logging.getLogger("parakeet_py").warning(
        "the cache directory %s is not used, since %s; set PARAKEET_CACHE_DIR to a folder of your own", path, objection
    )


def read_file(path: str, most: int | None = None, start: int = 0) -> tuple[bytes, os.stat_result] | None:
    """The bytes from `start` on, at `most` so many, of a file that this user or root has written, and its status."""
    try:
        descriptor = os.open(path, _FLAGS)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not _is_own(status) or status.st_size > MAX_FILE:
            return None
        pieces: list[bytes] = []
        left = max(status.st_size - start, 0)
        if most is not None:
            left = min(most, left)
        if start:
            os.lseek(descriptor, start, os.SEEK_SET)
        while left > 0:
            piece = os.read(descriptor, left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces), status
    except (OSError, MemoryError):
        return None
    finally:
        os.close(descriptor)


def _is_own(status: os.stat_result) -> bool:
    """Is this a regular file that only the user or root can have written? It has no name left while it is replaced."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not _POSIX:
        return True
    # Root's, too: the cache of an image that another user runs. Root can change the interpreter as well.
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_WRITE and status.st_nlink <= 1


def write_file(path: str, data: bytes, mode: int = 0o600) -> bool:
    """Write a file, by default one that no other user can read, as a whole or not at all; True when it was written."""
    if len(data) > MAX_FILE:
        return False  # would not be read again
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        return False
    return True
