"""The untyped IR of library functions, kept on the disk for other processes: it depends on the package's sources only.

A short function calls ten to thirty functions of the library, and making their IR anew takes longer than all that is
done with it. What a process had to make, it writes when it ends: an entry for each module of the library, in which
functions are found by their names and lines. A key of the disk cache stands for the sources of the package, too.
"""

from __future__ import annotations

import atexit
import marshal
import os
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache
from types import CodeType

from parakeet_py.base import config, package
from parakeet_py.frontend import ssa
from parakeet_py.frontend.serialization import NotPlain, from_bytes, to_bytes
from parakeet_py.llvm.engine import disk_cache

__all__ = ["find", "keep", "write"]

FORMAT = 1
_FOLDER = os.path.join(package.FOLDER, "library", "")
_made: dict[str, dict[str, ssa.Function]] = {}  # what is not on the disk yet


def find(code: CodeType) -> ssa.Function | None:
    """What was made of a function of the library when the package was installed, or by an earlier process."""
    if not _is_kept(code):
        return None
    module, name = code.co_filename.removeprefix(_FOLDER), _name(code)
    data = _installed(module).get(name) or _cached(module).get(name)
    if data is None:
        return None
    with suppress(ValueError, TypeError, IndexError, KeyError, EOFError):
        return from_bytes(data)
    return None


def keep(code: CodeType, function: ssa.Function) -> None:
    """Remember the IR of a function for other processes, if it is one of the library."""
    if _is_kept(code) and config.current().uses_disk:
        if not _made:
            atexit.register(copy_context().run, write)  # the settings say where the cache is
        _made.setdefault(code.co_filename.removeprefix(_FOLDER), {})[_name(code)] = function


def _is_kept(code: CodeType) -> bool:
    if not code.co_filename.startswith(_FOLDER):
        return False
    settings = config.current()
    return settings.uses_archive and not settings.check


def _name(code: CodeType) -> str:
    return f"{code.co_qualname}:{code.co_firstlineno}"


def _key(module: str) -> str:
    return disk_cache.digest("library", FORMAT, _FOLDER, module)


@lru_cache(maxsize=128)
def _installed(module: str) -> dict[str, bytes]:
    return _functions(disk_cache.load_installed(_key(module)))


@lru_cache(maxsize=128)
def _cached(module: str) -> dict[str, bytes]:
    return _functions(disk_cache.load_entry(_key(module)))


def _functions(entry: disk_cache.Entry | None) -> dict[str, bytes]:
    if entry is not None:
        with suppress(ValueError, TypeError, EOFError):
            found = marshal.loads(entry.payload)
            if isinstance(found, dict):
                return found
    return {}


def write() -> None:
    """Add what this process has made to what there is by now."""
    _installed.cache_clear()
    _cached.cache_clear()
    for module, functions in _made.items():
        known = _cached(module) | _installed(module)
        for name, function in functions.items():
            with suppress(NotPlain):
                known[name] = to_bytes(function)
        disk_cache.put_own(_key(module), marshal.dumps(known), title=f"library: {module}")
    _made.clear()
    disk_cache.archive().write()
