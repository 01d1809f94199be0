"""The native runtime: what compiled functions call, loaded once per process.

Two modules of low-level Python, compiled once per machine, kept in the disk cache like any other object, and never
unloaded: what waits for the system anyway (the thread pool, large payloads, forking), and what runs for every small
array (payloads, blocks).  `runtime()` gives their symbols; every other object is loaded against them with
`Runtime.load`.

The first call on a machine waits for that compilation, so it is a light one.  LLVM's passes are left out, as the
translation gives what they would leave; only the second module is worth careful instruction selection.

    rt = runtime()
    code = rt.load(engine.compile_ir(text), exports=["entry"])
    code["entry"]                                     # an address
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from parakeet_py.llvm.engine import compiler, disk_cache, low_level_python
from parakeet_py.llvm.engine.lasting_code import lasting_code
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.engine.object_loader import LoadedCode
from parakeet_py.llvm.engine.perf_symbols import Title
from parakeet_py.llvm.runtime import (
    array_memory,
    blas_threads,
    loop_polls,
    memory_pool,
    moves,
    refcounted_memory,
    region_sharing,
    stack,
    symbols,
    thread_pool,
)
from parakeet_py.llvm.runtime.call_context import ALIGNMENT, BLOCK_HEADER, Context

__all__ = ["ALIGNMENT", "BLOCK_HEADER", "EXPORTS", "Context", "Runtime", "runtime", "support_code"]

_SYSTEM = (
    "pk_initialize",
    "pk_parallel",
    "pk_share",
    "pk_forget",
    "pk_workers",
    "pk_fail",
    "pk_alloc_large",
    "pk_free_large",
    "pk_trim",
    "pk_pool_bytes",
    "pk_set_pool_limit",
    "pk_blas_begin",
    "pk_blas_end",
    "pk_stack_floor",
    "pk_poll",
    "pk_poll_aloud",
    "pk_look",
    "pk_set_poll",
)
_SMALL = (
    "pk_block_new",
    "pk_retain",
    "pk_release",
    "pk_detach",
    "pk_free_all",
    "pk_alloc",
    "pk_free",
    "pk_mem_handler",
)
_MOVES = ("pk_copy", "pk_fill")
EXPORTS = (*_SYSTEM, *_SMALL, *_MOVES)

_SET_UP = """
def register_atfork(prepare: ptr, parent: ptr, child: ptr, library: ptr) -> i32: ...

@internal
def before_fork():
    acquire(pool_lock)
    acquire(blas_lock)

@internal
def after_fork_parent():
    relinquish(blas_lock)
    relinquish(pool_lock)

@internal
def after_fork_child():
    relinquish(pool_lock)
    threads_after_fork()
    blas_after_fork()

def pk_initialize(limit: i64):
    pk_set_pool_limit(limit)
    stack_initialize()
    register_atfork(before_fork, after_fork_parent, after_fork_child, null)
"""


def system_sources() -> tuple[Source, ...]:
    """The first module: what waits for the system."""
    # glibc keeps pthread_atfork, which has no fourth argument, out of its shared library
    at_fork = "__register_atfork" if symbols.resolve("__register_atfork") else "pthread_atfork"
    return (
        thread_pool.pause(),
        loop_polls.POLL,
        thread_pool.pool(),
        region_sharing.sharing(),
        memory_pool.LOCKS,
        array_memory.HEADER,
        memory_pool.LARGE_PAYLOADS,
        blas_threads.LIMITS,
        refcounted_memory.FAIL,
        stack.stack(),
        Source(_SET_UP.replace("def register_atfork", f'@symbol("{at_fork}")\ndef register_atfork')),
    )


def small_sources() -> tuple[Source, ...]:
    """The second module: what runs for every small array."""
    return array_memory.HEADER, array_memory.SMALL, array_memory.NUMPY, refcounted_memory.BLOCKS, moves.MOVES


class Runtime(NamedTuple):
    """The loaded runtime.

    Attributes
    ----------
    symbols : address of every `pk_` function and of `pk_mem_handler`
    mem_handler : capsule "mem_handler" for the `mem_handler` field of NumPy arrays that own a payload (NEP 49)
    """

    symbols: Mapping[str, int]
    mem_handler: Any

    def resolve(self, name: str) -> int | None:
        """The address of a runtime function, or of a function of libmvec, libm or libc; None if there is none."""
        return self.symbols.get(name) or symbols.resolve(name)

    def load(
        self,
        object_bytes: bytes,
        exports: Iterable[str],
        external: Mapping[str, int] | None = None,
        title: Title | None = None,
    ) -> LoadedCode:
        """Load an object that may use the runtime; `external` gives further addresses."""
        known = self.symbols if external is None else {**self.symbols, **external}
        code = compiler.load(object_bytes, known, exports, symbols.resolve, title)
        if code.functions:
            start = min(address for _, address, _ in code.functions)
            end = max(address + size for _, address, size in code.functions)
            ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(self.symbols["pk_forget"])(start, end)
        return code

    def trim(self) -> None:
        """Give the memory of freed arrays that is kept for reuse back to the system."""
        ctypes.CFUNCTYPE(None)(self.symbols["pk_trim"])()

    def pooled_bytes(self) -> int:
        """Bytes of freed arrays kept for reuse."""
        return int(ctypes.CFUNCTYPE(ctypes.c_int64)(self.symbols["pk_pool_bytes"])())

    def workers(self) -> int:
        """Threads the pool has started so far, beside the calling ones."""
        return int(ctypes.CFUNCTYPE(ctypes.c_int32)(self.symbols["pk_workers"])())


_loaded: Runtime | None = None
_checked: Runtime | None = None
_lock = threading.Lock()


def runtime(checked: bool = False) -> Runtime:
    """The runtime of this process, or what it is to checked machine code; loaded on first use."""
    global _loaded, _checked
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    if not checked:
        return _loaded
    if _checked is None:
        with _lock:
            if _checked is None:
                _checked = _load_checked(_loaded)
    return _checked


def _load_checked(unchecked: Runtime) -> Runtime:
    """The same, but that small and large arrays lie between red zones."""
    from parakeet_py.llvm.safety.payloads import CHECKS, payload_sources

    sources = (*payload_sources(), refcounted_memory.BLOCKS)
    own = support_code("checked runtime", sources, unchecked.symbols, (*_SMALL, *CHECKS))
    return Runtime({**unchecked.symbols, **own.addresses}, _capsule(own["pk_mem_handler"]))


def _load() -> Runtime:
    system = support_code("runtime", system_sources(), {}, _SYSTEM)
    small = support_code("runtime", small_sources(), system.addresses, (*_SMALL, *_MOVES), codegen_level=2)
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(system["pk_initialize"])(_pool_limit())
    return Runtime({**system.addresses, **small.addresses}, _capsule(small["pk_mem_handler"]))


def support_code(
    name: str,
    sources: Sequence[Source],
    known: Mapping[str, int],
    exports: Sequence[str],
    codegen_level: int = 0,
    prefix: str = "",
) -> LoadedCode:
    """Load a module of low-level Python for the life of the process; it comes from the disk cache or goes there."""

    def make() -> tuple[bytes, Sequence[str]]:
        text = low_level_python.translate(*sources, prefix=prefix)
        return compiler.compile_ir(text, level=0, vectorize=False, codegen_level=codegen_level), exports

    key = disk_cache.digest(name, tuple(source.key for source in sources))
    return lasting_code(key, name, make, exports, known, symbols.resolve)


def _pool_limit() -> int:
    """How much freed memory to keep: at most 512 MiB, and an eighth of the machine's."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = 2 << 30
    return int(min(512 << 20, total // 8))


_CAPSULE_NAME = ctypes.create_string_buffer(b"mem_handler")  # a capsule keeps the pointer, not the text


def _capsule(address: int) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return new(address, ctypes.addressof(_CAPSULE_NAME), None)
