"""The native runtime: what compiled functions call, loaded once per process.

Two modules of LLVM IR, compiled once per machine, kept in the disk cache like any other object, and never unloaded:
what waits for the system anyway (the thread pool, large payloads, forking), and what runs for every small array
(payloads, blocks).  `runtime()` gives their symbols; every other object is loaded against them with `Runtime.load`.

The first call on a machine waits for that compilation, so it is a light one.  LLVM's passes are left out, as the text
is written the way they would leave it; only the second module is worth careful instruction selection.

    rt = runtime()
    code = rt.load(engine.compile_ir(text), exports=["entry"])
    code["entry"]                                     # an address
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from parakeet_py.llvm.engine import compiler, disk_cache
from parakeet_py.llvm.engine.object_loader import LoadedCode, LoadError
from parakeet_py.llvm.engine.perf_symbols import Title
from parakeet_py.llvm.runtime import (
    array_memory,
    blas_threads,
    loop_polls,
    memory_pool,
    refcounted_memory,
    stack,
    symbols,
    thread_pool,
)
from parakeet_py.llvm.runtime.call_context import ALIGNMENT, BLOCK_HEADER, Context

__all__ = ["ALIGNMENT", "BLOCK_HEADER", "EXPORTS", "Context", "Runtime", "runtime", "support_code"]

_SYSTEM = (
    "pk_initialize",
    "pk_parallel",
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
EXPORTS = (*_SYSTEM, *_SMALL)

DECLARATIONS = """\
declare void @pk_parallel(ptr, ptr, ptr, i64, i64, i32)
declare void @pk_fail(ptr, i64, i64, i64, i64, i64, i64, i64, i64)
declare ptr @pk_block_new(ptr, i64)
declare void @pk_retain(ptr)
declare void @pk_release(ptr, ptr)
declare void @pk_detach(ptr, ptr)
declare void @pk_free_all(ptr)
declare ptr @pk_alloc(i64)
declare void @pk_free(ptr)
"""

_INTRINSICS = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
"""

_SET_UP = """
define internal void @before_fork() {
  call void @acquire(ptr @pool_lock)
  call void @acquire(ptr @blas_lock)
  ret void
}
define internal void @after_fork_parent() {
  call void @relinquish(ptr @blas_lock)
  call void @relinquish(ptr @pool_lock)
  ret void
}
define internal void @after_fork_child() {
  call void @relinquish(ptr @pool_lock)
  call void @threads_after_fork()
  call void @blas_after_fork()
  ret void
}
"""

# glibc keeps pthread_atfork itself out of its shared library
_AT_FORK_GLIBC = """
declare i32 @__register_atfork(ptr, ptr, ptr, ptr)
define void @pk_initialize(i64 %pool_limit) {
  call void @pk_set_pool_limit(i64 %pool_limit)
  call void @stack_initialize()
  %r = call i32 @__register_atfork(ptr @before_fork, ptr @after_fork_parent, ptr @after_fork_child, ptr null)
  ret void
}
"""

_AT_FORK_POSIX = """
declare i32 @pthread_atfork(ptr, ptr, ptr)
define void @pk_initialize(i64 %pool_limit) {
  call void @pk_set_pool_limit(i64 %pool_limit)
  call void @stack_initialize()
  %r = call i32 @pthread_atfork(ptr @before_fork, ptr @after_fork_parent, ptr @after_fork_child)
  ret void
}
"""


def system_ir() -> str:
    """The first module: what waits for the system."""
    at_fork = _AT_FORK_GLIBC if symbols.resolve("__register_atfork") else _AT_FORK_POSIX
    parts = (
        thread_pool.pause_ir(),
        loop_polls.poll_ir(),
        thread_pool.pool_ir(),
        memory_pool.large_ir(),
        blas_threads.limits_ir(),
        refcounted_memory.fail_ir(),
        stack.stack_ir(),
        _SET_UP,
        at_fork,
        _INTRINSICS,
    )
    return "".join(parts)


def small_ir() -> str:
    """The second module: what runs for every small array."""
    return array_memory.payloads_ir() + refcounted_memory.blocks_ir() + _INTRINSICS


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
        known = self.symbols if external is None else ChainMap(dict(external), dict(self.symbols))
        return compiler.load(object_bytes, known, exports, symbols.resolve, title)

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
    from parakeet_py.llvm.safety.payloads import payloads_ir

    text = payloads_ir() + refcounted_memory.blocks_ir() + _INTRINSICS
    own = support_code("checked runtime", text, unchecked.symbols, (*_SMALL, "pk_block_fault", "pk_payload_fault"))
    return Runtime({**unchecked.symbols, **own.addresses}, _capsule(own["pk_mem_handler"]))


def _load() -> Runtime:
    system = support_code("runtime", system_ir(), {}, _SYSTEM)
    small = support_code("runtime", small_ir(), system.addresses, _SMALL, codegen_level=2)
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(system["pk_initialize"])(_pool_limit())
    return Runtime({**system.addresses, **small.addresses}, _capsule(small["pk_mem_handler"]))


def support_code(
    name: str, text: str, known: Mapping[str, int], exports: Iterable[str], codegen_level: int = 0
) -> LoadedCode:
    """Load a module of hand-written IR for the life of the process; it comes from the disk cache or goes there."""
    key = disk_cache.digest(name, text)
    cached = disk_cache.get(key)
    code = None
    if cached is not None:
        try:
            code = compiler.load(cached, known, exports, symbols.resolve)
        except LoadError:
            code = None
    if code is None:
        compiled = compiler.compile_ir(text, level=0, vectorize=False, codegen_level=codegen_level)
        code = compiler.load(compiled, known, exports, symbols.resolve)
        disk_cache.put(key, compiled, title=f"runtime: {name}")
    code.keep_for_ever()
    return code


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
