"""Machine code of the library's procedures, which all functions share that call them: in this process, and on the disk.

An object is found by the text of its module, which is all that it depends on but for the machine (see `disk_cache`).
"""

from __future__ import annotations

from parakeet_py.base import config
from parakeet_py.llvm.engine import disk_cache

__all__ = ["find", "keep", "keep_for_installation"]

_known: dict[str, bytes] = {}


def find(text: str) -> bytes | None:
    """The object of a module, if there is one."""
    if text not in _known and config.current().uses_archive:
        entry = disk_cache.load_own(_key(text))
        if entry is not None:
            _known[text] = entry.payload
    return _known.get(text)


def keep(text: str, code: bytes) -> None:
    _known[text] = code
    if config.current().uses_disk:
        disk_cache.put(_key(text), code, {}, title=_title(text))


def keep_for_installation() -> None:
    """Make those that this process has made or found part of the installation."""
    for text, code in _known.items():
        disk_cache.put_own(_key(text), code, {}, title=_title(text))


def _title(text: str) -> str:
    name = text.partition('@"procedure.')[2].partition('"')[0]
    return f"library: {name}"


def _key(text: str) -> str:
    return disk_cache.digest("procedure", text)
