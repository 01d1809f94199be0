"""Machine code of a part of a region: compiled once in a process, and once for all processes on machines of one kind.

A `Kernel` is a part as a typed function, with machine code once some process has made it: it travels as bytes, and a
worker whose machine, Python or package differs compiles the function anew.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from parakeet_py.base.config import Config
from parakeet_py.base.config import current as settings
from parakeet_py.base.errors import ParakeetError
from parakeet_py.hybrid.plan.host_parts import HostPart, MachineCode
from parakeet_py.llvm.engine import disk_cache
from parakeet_py.typed_ir.ir import Function

FORMAT = 3  # of what travels
MOST = 4096  # kernels that a process keeps


class Kernel:
    """A part of a region, compiled once in a process, and once for all processes on machines of one kind.

    Attributes
    ----------
    function : the part
    together : arrays with several axes have to be contiguous in their windows, as the part knows how rows lie
    identity : what it is, the same in every process
    """

    def __init__(self, function: Function, config: Config, together: bool, identity: str) -> None:
        self.function, self.config, self.together, self.identity = function, config, together, identity
        self._native: HostPart | None = None
        self._lock = threading.Lock()

    def native(self) -> HostPart:
        """The machine code, made when it is first asked for."""
        if self._native is None:
            with self._lock:
                if self._native is None:
                    self._native = HostPart(self.function, self.config)
        return self._native

    def __reduce__(self) -> tuple[Any, ...]:
        config = self.config
        flags = {"contract": config.contract, "fastmath": config.fastmath, "check": config.check}
        state = self.function, flags, self.together, self.identity, disk_cache.digest(), self.native().code
        return _arrived, (FORMAT, package_key(), state)

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        return self.native()(arguments, threads_here())


def package_key() -> str:
    """The version of the package that a process runs."""
    return _package_key()


@lru_cache(maxsize=1)
def _package_key() -> str:
    return disk_cache.digest(*disk_cache.package_sizes())


_here: dict[Any, Kernel] = {}  # kernels that have come from other processes
# kernels that have come from other processes
_here_lock = threading.Lock()


def _arrived(version: int, package: str, state: tuple[Any, ...]) -> Kernel:
    """A kernel from another process."""
    if version != FORMAT or package != package_key():
        raise ParakeetError(
            "this worker runs another version of parakeet_py than the client: install the same one everywhere"
        )
    function, flags, together, identity, environment, code = state
    assert isinstance(code, MachineCode)
    known = identity, code.object_bytes  # equal code may stand for other messages
    with _here_lock:
        if known in _here:
            return _here[known]
        kernel = Kernel(function, Config(**flags), together, identity)
        if environment == disk_cache.digest():
            kernel._native = HostPart(function, kernel.config, code)
        if len(_here) >= MOST:
            _here.clear()
        _here[known] = kernel
    return kernel


def threads_here() -> int:
    """Threads that a task may use: all where nothing else runs beside it, else its own."""
    try:
        from distributed import get_worker

        return 1 if get_worker().state.nthreads > 1 else max(1, settings().threads or 1)
    except (ImportError, ValueError):
        pass
    return settings().thread_count if threading.current_thread() is threading.main_thread() else 1
