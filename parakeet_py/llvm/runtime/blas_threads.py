"""How many threads BLAS may use for a product, in low-level Python.

    i32  pk_blas_begin(i32 most, ptr get, ptr set)    before a call of BLAS; 1 if its threads have been limited
    void pk_blas_end(i32 limited)                     after it

`get` and `set` are the BLAS's own functions for its number of threads. That number belongs to the whole process, while
the limit belongs to one call, and several Python threads may be inside BLAS at once. So the first who needs fewer
threads notes the number, those who come while it is lowered only ever lower it further, and the last who leaves puts
the noted number back. No caller ever runs with more threads than it may; one that meets BLAS meanwhile may run with
fewer, which changes no result: OpenBLAS reads the number once, when a routine begins. A call that may use as many
threads as BLAS has takes no lock.

A lock is held around the count and the two functions, which return at once, and while the process forks; the child,
in which no thread is inside BLAS, puts the number back.
"""

from __future__ import annotations

from parakeet_py.llvm.engine.low_level_source import Source

# Needs the locks of `memory_pool`.
LIMITS = Source("""
blas_lock: i32 @ 64 = 0
blas_inside: i32 = 0      # how many calls are inside BLAS that have asked for a limit
blas_before: i32 = 0      # the number of threads before the first of them
blas_set: ptr

def pk_blas_begin(most: i32, get: ptr, set: ptr) -> i32:
    if most < 1:
        return 0
    inside = atomic_load(blas_inside.i32, "acquire")
    if (inside == 0) & (get.i32() <= most):
        return 0
    acquire(blas_lock)
    inside = blas_inside.i32
    threads = get.i32()
    if inside == 0:
        blas_before.i32 = threads
        blas_set.ptr = set
    if threads > most:
        set.void(most)
    atomic_store(blas_inside.i32, inside + 1, "release")
    relinquish(blas_lock)
    return 1

def pk_blas_end(limited: i32):
    if limited != 0:
        acquire(blas_lock)
        left = blas_inside.i32 - 1
        if left == 0:
            blas_restore()
        atomic_store(blas_inside.i32, left, "release")
        relinquish(blas_lock)

@internal
def blas_restore():
    blas_set.ptr.void(blas_before.i32)

@internal
def blas_after_fork():
    inside = blas_inside.i32
    blas_inside.i32 = 0
    relinquish(blas_lock)
    if inside != 0:
        blas_restore()
""")
