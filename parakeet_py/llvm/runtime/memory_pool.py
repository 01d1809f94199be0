"""Large payloads, in low-level Python: mappings of their own, kept when they are freed.

Fresh pages are dear (a page fault and zeroing for each), so payloads of `LARGE` bytes and more are mapped, and kept
when freed in one process-wide list, the most recent first.  A request takes the first that fits with at most a
quarter of waste.  The list is bounded in bytes (`pk_set_pool_limit`) and in length; the oldest go first.  Mappings
of 4 MiB and more are aligned to, and advised to use, huge pages.  Payloads start at different offsets into their
first page, so that arrays walked together do not collide in the cache's low address bits.

The one lock here is held for a few dozen instructions, never while calling the system; around fork() it is held
by the forking thread, so that a child finds the list whole.
"""

from __future__ import annotations

from parakeet_py.base import machine
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.array_memory import FIELDS

HUGE = 4 << 20
HUGE_PAGE = 2 << 20
POOL_LENGTH = 64

LOCKS = Source("""
pool_lock: i32 @ 64 = 0

@internal
def acquire(lock: ptr):
    spins: i32 = 0
    while not compare_exchange(lock.i32, 0, 1, "acquire"):
        pause()
        spins += 1
        if spins == 200:
            sched_yield()
            spins = 0

@internal.alwaysinline
def relinquish(lock: ptr):
    atomic_store(lock.i32, 0, "release")
""")

# Large payloads are mappings of their own. Those that are freed are in a list, linked through their headers, the most
# recent first. Needs `thread_pool.pause`.
LARGE_PAYLOADS = Source(
    """
def mmap(address: ptr, bytes: i64, protection: i32, flags: i32, file: i32, offset: i64) -> ptr: ...
def munmap(address: ptr, bytes: i64) -> i32: ...
def madvise(address: ptr, bytes: i64, advice: i32) -> i32: ...
colour: i64 = 0
pool_first: ptr @ 64
pool_last: ptr
pool_bytes: i64 = 0
pool_count: i64 = 0
pool_limit: i64 = 67108864

@internal.noinline
def map_block(bytes: i64) -> ptr:
    # room for the header and a colour of up to 15 * 256 bytes, in whole pages
    need = (bytes + 8191) & -4096
    huge = uge(need, HUGE)
    base = mmap(null, need + (HUGE_PAGE if huge else 0), 3, ANONYMOUS, -1, 0)
    if i64(base) == -1:
        return null
    if huge:
        front = -i64(base) & (HUGE_PAGE - 1)
        if front != 0:
            munmap(base, front)
        base = base + front
        munmap(base + need, HUGE_PAGE - front)
        madvise(base, need, 14)
    shift = (atomic_add(colour.i64, 5, "monotonic") & 15) * 256
    block = base + shift
    header(block, bytes, need - shift - HEADER, base, need)
    return block + HEADER

def pk_set_pool_limit(bytes: i64):
    atomic_store(pool_limit.i64, bytes, "monotonic")

def pk_pool_bytes() -> i64:
    return atomic_load(pool_bytes.i64, "monotonic")

# Take a block out of the list; the lock is held.
@internal
def unlink_pooled(block: ptr):
    previous = block.PREVIOUS.ptr
    next = block.NEXT.ptr
    behind = pool_first if previous == null else previous.NEXT
    behind.ptr = next
    before = pool_last if next == null else next.PREVIOUS
    before.ptr = previous
    pool_bytes.i64 -= block.MAPPED.i64
    pool_count.i64 -= 1

# The most recent pooled block that fits with little waste, or null.
@internal
def reuse(bytes: i64) -> ptr:
    most = bytes + (bytes >> 2) + 8192
    acquire(pool_lock)
    block = pool_first.ptr
    while block != null:
        capacity = block.CAPACITY.i64
        if uge(capacity, bytes) & ule(capacity, most):
            unlink_pooled(block)
            relinquish(pool_lock)
            header(block, bytes, capacity, block.BASE.ptr, block.MAPPED.i64)
            return block + HEADER
        block = block.NEXT.ptr
    relinquish(pool_lock)
    return null

# Unmap the oldest blocks until the list keeps within so many bytes and POOL_LENGTH blocks.
@internal
def shrink(limit: i64):
    acquire(pool_lock)
    while ugt(pool_bytes.i64, limit) or ugt(pool_count.i64, POOL_LENGTH):
        block = pool_last.ptr
        unlink_pooled(block)
        relinquish(pool_lock)
        munmap(block.BASE.ptr, block.MAPPED.i64)
        acquire(pool_lock)
    relinquish(pool_lock)

def pk_trim():
    shrink(0)

def pk_free_large(block: ptr, mapped: i64):
    acquire(pool_lock)
    first = pool_first.ptr
    block.PREVIOUS.ptr = null
    block.NEXT.ptr = first
    before = pool_last if first == null else first.PREVIOUS
    before.ptr = block
    pool_first.ptr = block
    bytes = pool_bytes.i64 + mapped
    count = pool_count.i64 + 1
    pool_bytes.i64 = bytes
    pool_count.i64 = count
    relinquish(pool_lock)
    limit = atomic_load(pool_limit.i64, "monotonic")
    if ugt(bytes, limit) or ugt(count, POOL_LENGTH):
        shrink(limit)

def pk_alloc_large(bytes: i64) -> ptr:
    if ugt(bytes, 1152921504606846976):
        return null
    payload = reuse(bytes)
    if payload == null:
        payload = map_block(bytes)
    if payload == null:
        # what the pool keeps may be what is missing
        pk_trim()
        payload = map_block(bytes)
    return payload
""",
    FIELDS
    | {
        "HUGE": HUGE if machine.HUGE_PAGES else 1 << 62,
        "HUGE_PAGE": HUGE_PAGE,
        "POOL_LENGTH": POOL_LENGTH,
        "ANONYMOUS": machine.ANONYMOUS,
    },
)
