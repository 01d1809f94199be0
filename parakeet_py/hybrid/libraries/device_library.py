"""A library of NVIDIA's for one device: looked for once, when it is first needed, and never asked again once it has
failed.

Its calls are those of nvmath-python 1.0: of that package where it is installed, else of a module of ours that has them
by the library's C interface.
"""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from parakeet_py.base.debug_log import log


class LibraryError(RuntimeError):
    """A call of a library's C interface that has failed."""


class Memory(Protocol):
    """A device, as far as it is needed here; all that is asked of it is done in the order of its stream."""

    def allocate(self, size: int) -> int: ...
    def free(self, address: int) -> None: ...
    def copy_within(self, target: int, source: int, size: int) -> None: ...
    def copy_out(self, data: np.ndarray[Any, Any], address: int, pitch: int = 0) -> None: ...
    def library_order(self, what: str) -> AbstractContextManager[int]: ...


class DeviceLibrary:
    """What is known of a library on one device; `why_not` says why there is none, once it has been looked for.

    Attributes
    ----------
    instead : who does the work otherwise, for the log
    """

    instead = ""

    def __init__(self) -> None:
        self.why_not: str | None = None
        self._lock = threading.Lock()
        self._library: Any = None

    def open(self) -> Any:
        """The library's calls, with what they need made in the current context."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether there is the library; looks for it at the first call, in the current context."""
        with self._lock:
            if self._library is None and self.why_not is None:
                try:
                    self._library = self.open()
                except Exception as error:  # not installed, or no library that fits the driver
                    self._give_up(error)
            return self._library is not None

    def _give_up(self, error: Exception) -> None:
        self._library, self.why_not = None, f"{type(error).__name__}: {error}".splitlines()[0]
        log.info("%s: %s", self.instead, self.why_not)


def bindings(name: str, find: Callable[[], Any]) -> Any:
    """The calls of a library: nvmath's, else what `find` gives."""
    try:
        package = importlib.import_module("nvmath.bindings")
        return getattr(package, name, None) or importlib.import_module(f"nvmath.bindings.{name}")
    except ImportError:
        return find()


def loaded(name: str) -> Any:
    """The shared library as cuda-python finds it: already loaded, in a wheel, in conda or in the system.

    Raises
    ------
    ImportError, RuntimeError, OSError
        There is none.
    """
    from cuda.pathfinder import load_nvidia_dynamic_lib

    path = load_nvidia_dynamic_lib(name).abs_path
    if path is None:
        raise OSError(f"lib{name} is loaded, from an unknown file")
    return ctypes.CDLL(path)


def call_of(library: Any, symbol: str, *types: Any) -> Callable[..., None]:
    """A function of a shared library, which raises what its status says.

    Raises
    ------
    AttributeError
        The library has none of that name.
    """
    function = getattr(library, symbol)
    function.argtypes, function.restype = types, ctypes.c_int

    def call(*given: Any) -> None:
        status = function(*given)
        if status != 0:
            raise LibraryError(f"{symbol} gives status {status}")

    return call
