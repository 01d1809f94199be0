"""Machine code of a part of a region: compiled once in a process, and once for all processes on machines of one kind.

A `Kernel` is a part as a typed function, with machine code once some process has made it: it travels as bytes, and a
worker whose machine, Python or package differs compiles the function anew.
"""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base import exact_loops
from parakeet_py.base.config import Config
from parakeet_py.base.config import current as settings
from parakeet_py.base.errors import ParakeetError, UnsupportedError
from parakeet_py.cluster.worker import resident
from parakeet_py.hybrid.plan.host_parts import HostPart, MachineCode, PreparedCall
from parakeet_py.llvm.engine import disk_cache
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function

if TYPE_CHECKING:
    from parakeet_py.cluster.worker.buffers import WindowSpec
    from parakeet_py.cluster.worker.tasks import Arguments

FORMAT = 4  # of what travels
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
        self._part: tuple[Function, Config, MachineCode | None] | None = (function, config, None)
        self.together, self.identity = together, identity
        self._native: HostPart | None = None
        self._kernels: Any = None  # False: the CPU alone can run it
        self._anywhere: bool | None = None
        self._origin = FORMAT, package_key()
        self._packed: bytes | None = None
        self._lock = threading.Lock()

    @property
    def function(self) -> Function:
        return self._unpacked()[0]

    @property
    def anywhere(self) -> bool:
        """Whether arrays may lie at any address: no code but the part's own reads them."""
        if self._anywhere is None:
            ops = [let.op for let in self.function.statements()]
            self._anywhere = not any(
                isinstance(op, ir.CALLS) or (isinstance(op, ir.Prim) and exact_loops.is_loop(op.name)) for op in ops
            )
        return self._anywhere

    def native(self) -> HostPart:
        """The machine code, made when it is first asked for."""
        if self._native is None:
            with self._lock:
                if self._native is None:
                    function, config, code = self._unpacked()
                    self._native = HostPart(function, config, code)
        return self._native

    def on_device(
        self,
        device: Any,
        common: Arguments,
        los: tuple[int, ...],
        counts: tuple[int, ...],
        windows: Sequence[WindowSpec],
        values: Sequence[Any],
    ) -> list[Any] | None:
        """What the part makes as kernels, see `resident.DevicePart`; None if it is one for the CPU."""
        size = sum(np.dtype(spec.dtype).itemsize * math.prod(hi - lo for lo, hi in spec.box) for spec in windows)
        size += sum(np.dtype(dtype).itemsize * math.prod(counts) for dtype in common.filled)
        if size < resident.LEAST:
            return None
        with self._lock:
            if self._kernels is None:
                function, config, _ = self._unpacked()
                try:
                    self._kernels = resident.DevicePart(function, config)
                except UnsupportedError:
                    self._kernels = False
        if self._kernels is False:
            return None
        from parakeet_py.hybrid.devices.device import DeviceMemoryError

        try:
            found: list[Any] = self._kernels.run(device, common, los, counts, windows, self.together, values)
        except DeviceMemoryError:
            return None
        return found

    def _unpacked(self) -> tuple[Function, Config, MachineCode | None]:
        """The part, and its machine code if that has come from a process on such a machine.

        Raises
        ------
        ParakeetError
            It has come from a process with another version of the package.
        """
        if self._part is None:
            if self._origin != (FORMAT, package_key()):
                raise ParakeetError(
                    "this worker runs another version of parakeet_py than the client: install the same one everywhere"
                )
            assert self._packed is not None
            function, flags, environment, code = pickle.loads(self._packed)
            self._part = function, Config(**flags), code if environment == disk_cache.digest() else None
        return self._part

    def __reduce__(self) -> tuple[Any, ...]:
        if self._packed is None:
            function, config, _ = self._unpacked()
            flags = {"contract": config.contract, "fastmath": config.fastmath, "check": config.check}
            self._packed = pickle.dumps((function, flags, disk_cache.digest(), self.native().code), protocol=5)
        return _arrived, (*self._origin, self.together, self.identity, self._packed)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "parakeet_py kernel", self.identity

    def prepared(self, arguments: Sequence[Any]) -> PreparedCall:
        """A call that can be made again with some arguments moved."""
        return PreparedCall(self.native(), arguments, threads_here())

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        return self.native()(arguments, threads_here(), taken_over=True)


def package_key() -> str:
    """The version of the package that a process runs."""
    return _package_key()


@lru_cache(maxsize=1)
def _package_key() -> str:
    return disk_cache.digest(*disk_cache.package_sizes())


_here: dict[Any, Kernel] = {}  # kernels that have come from other processes
_here_lock = threading.Lock()


def _arrived(version: int, package: str, together: bool, identity: str, packed: bytes) -> Kernel:
    """A kernel from another process. It is unpacked where it is first run: the scheduler does not, and one of another
    version fails there as a task does, rather than in the worker's communication."""
    known = version, package, identity, packed  # machine code may have been made for another kind of machine
    with _here_lock:
        if known in _here:
            return _here[known]
        kernel = Kernel.__new__(Kernel)
        kernel._part, kernel._native, kernel._packed, kernel._lock = None, None, packed, threading.Lock()
        kernel._kernels = kernel._anywhere = None
        kernel._origin = version, package
        kernel.together, kernel.identity = together, identity
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
