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
from types import CodeType

from parakeet_py.base import config, package
from parakeet_py.frontend import ssa
from parakeet_py.frontend.serialization import NotPlain, from_bytes, to_bytes

__all__ = ["find", "keep"]

FORMAT = 1
_FOLDER = os.path.join(package.FOLDER, "library", "")
_kept: dict[str, dict[str, bytes]] = {}  # by module
_made: dict[str, dict[str, ssa.Function]] = {}  # what is not on the disk yet


def find(code: CodeType) -> ssa.Function | None:
    """What an earlier process has made of a function of the library."""
    if not _is_kept(code):
        return None
    module = code.co_filename.removeprefix(_FOLDER)
    known = _kept.get(module)
    if known is None:
        known = _kept[module] = _read(module)
    data = known.get(_name(code))
    if data is None:
        return None
    with suppress(ValueError, TypeError, IndexError, KeyError, EOFError):
        return from_bytes(data)
    return None


def keep(code: CodeType, function: ssa.Function) -> None:
    """Remember the IR of a function for other processes, if it is one of the library."""
    if _is_kept(code):
        if not _made:
            atexit.register(copy_context().run, _write)  # the settings say where the cache is
        _made.setdefault(code.co_filename.removeprefix(_FOLDER), {})[_name(code)] = function


def _is_kept(code: CodeType) -> bool:
    if not code.co_filename.startswith(_FOLDER):
        return False
    settings = config.current()
    return settings.uses_disk and not settings.check


def _name(code: CodeType) -> str:
    return f"{code.co_qualname}:{code.co_firstlineno}"


def _key(module: str) -> str:
    from parakeet_py.llvm.engine.disk_cache import digest

    return digest("library", FORMAT, _FOLDER, module)


def _read(module: str) -> dict[str, bytes]:
    from parakeet_py.llvm.engine.disk_cache import get

    data = get(_key(module))
    if data is not None:
        with suppress(ValueError, TypeError, EOFError):
            found = marshal.loads(data)
            if isinstance(found, dict):
                return found
    return {}


def _write() -> None:
    """Add what this process has made to what there is by now."""
    from parakeet_py.llvm.engine.disk_cache import put

    for module, functions in _made.items():
        known = _read(module)
        for name, function in functions.items():
            with suppress(NotPlain):
                known[name] = to_bytes(function)
        put(_key(module), marshal.dumps(known), title=f"library: {module}")
    _made.clear()
