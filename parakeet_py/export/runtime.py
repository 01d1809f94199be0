"""What exported code needs at run time, in low-level Python: the runtime of this process without what Python is for.

Memory comes from malloc, block by block, and is given back at once. Nothing looks up for signals: `pk_poll` sees that
no entry stub has made the call. Regions run in the caller, on the pool of `thread_pool`, or as the library's C code
says (`openmp`), which then defines `pk_parallel`.

    void pk_start()         before the first call
    void pk_after_fork()    in the child of fork()
"""

from __future__ import annotations

from typing import Literal, get_args

from parakeet_py.llvm.engine.low_level_python import translate
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import (
    array_memory,
    loop_polls,
    memory_pool,
    moves,
    refcounted_memory,
    region_sharing,
    stack,
    thread_pool,
)

Threads = Literal["serial", "pool", "openmp"]
WAYS: tuple[Threads, ...] = get_args(Threads)

_ANY_SIZE = 1 << 62  # no payload is so large: all come from malloc

_NO_LARGE_PAYLOADS = Source("""
def pk_alloc_large(bytes: i64) -> ptr:
    return null

def pk_free_large(block: ptr, mapped: i64): pass
""")

_START = """
def pk_start():
    stack_initialize()

def pk_after_fork():
    threads_after_fork()
"""
_START_ALONE = """
def pk_start():
    stack_initialize()

def pk_after_fork(): pass
"""


def runtime_ir(threads: Threads, processor: str) -> str:
    """The module of LLVM IR."""
    small = Source(array_memory.SMALL.text, {**array_memory.SMALL.constants, "LARGE": _ANY_SIZE})
    learned = region_sharing.sharing()
    regions = {
        "serial": (thread_pool.SERIAL, region_sharing.AS_TOLD),
        "pool": (thread_pool.pool(processor), learned),
        "openmp": (region_sharing.DECLARED, learned),
    }[threads]
    return translate(
        thread_pool.pause(processor),
        loop_polls.POLL,
        *regions,
        memory_pool.LOCKS,
        array_memory.HEADER,
        _NO_LARGE_PAYLOADS,
        small,
        refcounted_memory.FAIL,
        refcounted_memory.BLOCKS,
        moves.MOVES,
        stack.stack(),
        Source(_START_ALONE if threads == "openmp" else _START),
    )
