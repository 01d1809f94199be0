"""Machine code of the package's own that stays for the life of the process, and on the disk for the next ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from parakeet_py.llvm.engine import c_symbols, compiler, disk_cache
from parakeet_py.llvm.engine.object_loader import LoadedCode, LoadError


def lasting_code(
    key: str,
    title: str,
    make: Callable[[], tuple[bytes, Sequence[str]]],
    exports: Sequence[str] | None = None,
    known: Mapping[str, int] | None = None,
    resolve: Callable[[str], int | None] = c_symbols.resolve,
) -> LoadedCode:
    """Load an object of what is installed or of the disk cache, or else make it and keep it.

    Parameters
    ----------
    key, title : of its entry in the disk cache
    make : compiles it; gives the object and what it exports
    exports : the same, where it is known before; else it is kept with the object
    known, resolve : what it refers to, as `compiler.load` takes it
    """
    entry = disk_cache.load_own(key)
    code = None
    if entry is not None:
        try:
            names = entry.metadata["exports"] if exports is None else exports
            code = compiler.load(entry.payload, known or {}, names, resolve)
        except (LoadError, KeyError):
            code = None
    if code is None:
        compiled, names = make()
        code = compiler.load(compiled, known or {}, names, resolve)
        disk_cache.put_own(key, compiled, {"exports": list(names)} if exports is None else {}, f"runtime: {title}")
    code.keep_for_ever()
    return code
