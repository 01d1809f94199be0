"""Modules of a package that are executed when they are used first.

Most functions need few of the compiler's modules, and executing all of them is most of a first call. Where the
`__init__` of a package has

    if not TYPE_CHECKING:
        __getattr__ = submodules(__name__)

`from package import module` gives a module that is executed when an attribute of it is asked for, and
`from package.module import name` asks at once. So a module that is needed seldom is imported as such, and what it
defines is written `module.name`.

It is what the `LazyLoader` of `importlib` does, but nothing is read from the disk before the first use. Where threads
use a module first, one executes it and the others wait. Each module has a lock of its own, as in Python's import
system: as imports at the top of modules make no circle, no thread waits for one that waits for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar

_KNOWN = frozenset({"__spec__", "__name__", "__class__", "__file__", "__package__", "__loader__"})  # beforehand
loading = [0.0]  # seconds of a thread's time that modules have taken to be executed, as far as `loads` knows
_level = [0]  # of `loads` within each other
Key = TypeVar("Key")
Entry = TypeVar("Entry")


class _Unexecuted(ModuleType):
    """A module before its first use."""

    def __getattribute__(self, name: str) -> Any:
        if name not in _KNOWN:
            _execute(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _KNOWN:
            _execute(self)
        ModuleType.__setattr__(self, name, value)


class _Once:
    """Who executes a module."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.begun = False


def _execute(module: _Unexecuted) -> None:
    spec = module.__spec__
    assert spec is not None and spec.loader is not None
    once: _Once = spec.loader_state
    with once.lock:
        if once.begun:  # by this thread, whose import it is, or to the end by another
            return
        once.begun = True
        try:
            with loads():
                spec.loader.exec_module(module)
        except BaseException:
            once.begun = False
            raise
        module.__class__ = ModuleType  # type: ignore[assignment]


@contextmanager
def loads() -> Iterator[None]:
    """Modules are imported in this block: what that takes is counted in `loading`."""
    start = time.thread_time()
    _level[0] += 1
    try:
        yield
    finally:
        _level[0] -= 1
        if not _level[0]:
            loading[0] += time.thread_time() - start


class LateTable(dict[Key, Entry]):
    """A table that modules fill when they are executed, which is when `find` looks for what they may have."""

    def __init__(self) -> None:
        super().__init__()
        self.of_key: dict[Key, ModuleType] = {}
        self.of_any: tuple[ModuleType, ...] = ()

    def find(self, key: Key) -> Entry | None:
        """The entry of a key, or None."""
        found = self.get(key)
        if found is None and (self.of_any or key in self.of_key):
            for module in (*self.of_any, *([self.of_key[key]] if key in self.of_key else [])):
                if module.__class__ is _Unexecuted:
                    _execute(module)
            found = self.get(key)
        return found


def submodules(package: str) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a package, which gives its modules by their names."""
    folder = os.path.dirname(sys.modules[package].__file__ or "")

    def __getattr__(name: str) -> ModuleType:
        path, full = os.path.join(folder, f"{name}.py"), f"{package}.{name}"
        if full in sys.modules:
            return sys.modules[full]
        spec = None if name.startswith("__") or not os.path.isfile(path) else spec_from_file_location(full, path)
        if spec is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        spec.loader_state = _Once()
        module = module_from_spec(spec)
        module.__class__ = _Unexecuted
        setattr(sys.modules[package], name, module)
        return sys.modules.setdefault(full, module)

    return __getattr__
