"""`parakeet prepare`: what first calls need of the package's own code, compiled ahead for an installation.

See `llvm.engine.library_archive` for what that is and where it goes. A few functions are run as well, for the library's
procedures that most users of lists, sets, dicts and sorts need. Byte code is written as `compileall` does.
"""

from __future__ import annotations

import compileall
import importlib
import pkgutil
import tempfile
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from parakeet_py import library
from parakeet_py.base import config, package
from parakeet_py.base.errors import ParakeetError
from parakeet_py.call import library_ir_cache
from parakeet_py.call.accelerate import accelerate
from parakeet_py.frontend import to_ssa
from parakeet_py.llvm.engine import disk_cache, procedure_objects

__all__ = ["Prepared", "prepare"]


class Prepared(NamedTuple):
    """What there is then: the file, how many entries, and its bytes."""

    path: str
    entries: int
    size: int


def prepare(folder: str | None = None) -> Prepared:
    """Compile the package's own code for this installation.

    Parameters
    ----------
    folder : where the archive goes; by default where this Python looks for it

    Raises
    ------
    OSError
        It cannot be written there, or others may write there.
    """
    compileall.compile_dir(package.FOLDER, quiet=2)
    archive = disk_cache.archive()
    archive.preparing = True
    if folder is not None:
        archive.move(folder)
    with tempfile.TemporaryDirectory() as scratch, config.options(cache=True, cache_dir=scratch, check=0, debug=0):
        for function in _library_functions():
            try:
                library_ir_cache.keep(function.__code__, to_ssa(function))
            except ParakeetError:
                continue  # it is run at compile time, in Python
        _run_typical()
        procedure_objects.keep_for_installation()
        library_ir_cache.write()
    if not archive.write():
        raise OSError(f"{archive.path} cannot be written, or others may write there")
    return Prepared(archive.path, *archive.extent())


def _library_functions() -> list[FunctionType]:
    """All functions at the top of the library's modules."""
    found = []
    for module in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        loaded = importlib.import_module(module.name)
        own = [one for one in vars(loaded).values() if isinstance(one, FunctionType) and one.__module__ == module.name]
        found += own
    return found


def _run_typical() -> None:
    """Run functions whose procedures many users share."""
    numbers = np.array([3.0, 1.0, 2.0])
    uses = (_sum, numbers), (_sums, numbers), (_sorts, numbers), (_sorts, np.array([3, 1, 2])), (_hashes, [3, 1, 3])
    for function, argument in uses:
        accelerate(when="now", devices="cpu")(function)(argument)


def _sum(x: Any) -> Any:
    return x.sum()  # of what lies in memory


def _sums(x: Any) -> Any:
    return x.sum() + (x * 2.0).mean() + x.prod()


def _sorts(x: Any) -> Any:
    return np.sort(x), np.argsort(x), np.unique(x)


def _hashes(numbers: Any) -> Any:
    counts: dict[int, int] = {}
    for number in numbers:
        counts[number] = counts.get(number, 0) + 1
    seen = set(numbers)
    return sorted(seen), len(counts)
