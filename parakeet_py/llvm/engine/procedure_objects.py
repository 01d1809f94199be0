"""Machine code of the library's procedures, which all functions share that call them: in this process, and on the disk.

An object is found by the text of its module, which is all that it depends on but for the machine (see `disk_cache`).
"""

from __future__ import annotations

from parakeet_py.base import config
from parakeet_py.llvm.engine import disk_cache

__all__ = ["find", "keep"]

_known: dict[str, bytes] = {}


def find(text: str) -> bytes | None:
    """The object of a module, if there is one."""
    if text not in _known and config.current().uses_disk:
        entry = disk_cache.load_entry(_key(text))
        if entry is not None:
            _known[text] = entry.payload
    return _known.get(text)


def keep(text: str, code: bytes) -> None:
    _known[text] = code
    if config.current().uses_disk:
        name = text.partition('@"procedure.')[2].partition('"')[0]
        disk_cache.put(_key(text), code, {}, title=f"library: {name}")


def _key(text: str) -> str:
    return disk_cache.digest("procedure", text)
