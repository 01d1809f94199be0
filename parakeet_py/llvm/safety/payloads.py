"""The memory of arrays for checked machine code, in low-level Python; it takes the place of the payloads of `memory`.

    64 bytes or more before the header   a red zone, `ZONE`
    the header                           as `memory` says; small payloads and large ones come from malloc
    the payload                          `FRESH` until something is stored
    64 bytes behind it                   a red zone

A payload that is freed is filled with `FREED`, the count of its block is `DEAD`, and it is given back to the system
only when so many others have been freed after it (`KEPT` small ones, `KEPT_LARGE` large ones). Then it is looked at
whether anything was stored in it meanwhile.

    i64 pk_block_fault(ptr block)    0, or what is wrong with a block (`faults`); nothing is wrong with null. One that
                                     Python owns is gone for compiled code with its last reference
    i64 pk_flags_set(ptr flags, i64 count)   how many bytes are not zero
    i64 pk_payload_fault()           what has been found wrong with freed memory since this was asked last, or 0

Nothing that is wrong is touched: a block that is no block is not freed.
"""

from __future__ import annotations

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import symbols
from parakeet_py.llvm.runtime.array_memory import FIELDS, HEADER, LENT, NUMPY
from parakeet_py.llvm.safety.faults import AFTER_FREE, BEFORE, BEHIND, DEAD_BLOCK, MISALIGNED, UNREADABLE

ZONE = 0xA5
FRESH = 0xDB
FREED = 0xDD
DEAD = -0x2222222222222223  # eight bytes FREED
KEPT, KEPT_LARGE = 1024, 8
LARGE = 64 << 10
CHECKS = ("pk_block_fault", "pk_flags_set", "pk_payload_fault")


READABLE = """
@symbol("mincore")
def mincore(page: ptr, bytes: i64, state: ptr) -> i32: ...

# Is the page of an address there? Where the system cannot be asked, it is.
@internal
def readable(address: ptr) -> i1:
    if ASKS:
        return mincore(ptr(i64(address) & -4096), 1, alloca(i64)) == 0
    else:
        return True
"""

# `fault_of` looks at all of a block that its header says; `pk_block_fault` asks first whether there is a header.
_PAYLOADS = """
def malloc(bytes: i64) -> ptr: ...
def free(memory: ptr): ...
kept: ptr[KEPT]
kept_large: ptr[KEPT_LARGE]
freed: i64 = 0
freed_large: i64 = 0
fault: i64 = 0

@internal
def is_filled(start: ptr, bytes: i64, byte: i8) -> i1:
    k = 0
    while ult(k, bytes):
        if start.i8[k] != byte:
            return False
        k += 1
    return True

def pk_alloc(bytes: i64) -> ptr:
    if ugt(bytes, 1152921504606846976):
        return null
    base = malloc(bytes + 320)
    if base == null:
        return null
    block = base + ((-i64(base) & 63) + 64)
    header(block, bytes, bytes, base, 0)
    payload = block + HEADER
    memset(block - 64, ZONE, 64)
    memset(payload, FRESH, bytes)
    memset(payload + bytes, ZONE, 64)
    return payload

@internal
def fault_of(block: ptr) -> i64:
    if not is_filled(block - 64, 64, ZONE):
        return BEFORE
    if block.COUNT.i64 <= 0:
        return DEAD_BLOCK
    return 0 if is_filled_behind(block) else BEHIND

@internal
def is_filled_behind(block: ptr) -> i1:
    return is_filled(block + HEADER + block.CAPACITY.i64, 64, ZONE)

def pk_block_fault(block: ptr) -> i64:
    if block == null:
        return 0
    if i64(block) & 63 != 0:
        return MISALIGNED
    if not readable(block - 64) or not readable(block):
        return UNREADABLE
    count = block.COUNT.i64
    if count > LENT and count <= 2 * LENT:
        return DEAD_BLOCK
    return fault_of(block)

def pk_flags_set(flags: ptr, count: i64) -> i64:
    found = 0
    k = 0
    while k < count:
        if flags.i8[k] != 0:
            found += 1
        k += 1
    return found

def pk_payload_fault() -> i64:
    return exchange(fault.i64, 0, "seq_cst")

@internal
def give_back(block: ptr):
    if block != null:
        if not is_filled(block + HEADER, block.CAPACITY.i64, FREED):
            atomic_store(fault.i64, AFTER_FREE, "seq_cst")
        free(block.BASE.ptr)

def pk_free(payload: ptr):
    if payload == null:
        return
    block = payload - HEADER
    # a block that is released for the last time has no references left, one that belongs to an array has some
    if block.COUNT.i64 == 0:
        block.COUNT.i64 = 1
    found = fault_of(block)
    if found != 0:
        atomic_store(fault.i64, found, "seq_cst")
        return
    bytes = block.CAPACITY.i64
    memset(payload, FREED, bytes)
    block.COUNT.i64 = DEAD
    if ult(bytes, LARGE):
        slot = kept + 8 * (atomic_add(freed.i64, 1, "monotonic") % KEPT)
    else:
        slot = kept_large + 8 * (atomic_add(freed_large.i64, 1, "monotonic") % KEPT_LARGE)
    give_back(exchange(slot.ptr, block, "seq_cst"))
"""


def readable() -> Source:
    """`readable(address)`."""
    return Source(READABLE, {"ASKS": symbols.resolve("mincore") is not None})


def payload_sources() -> tuple[Source, ...]:
    """Payloads with red zones, and NumPy's handler over them."""
    constants = FIELDS | {
        "ZONE": ZONE,
        "FRESH": FRESH,
        "FREED": FREED,
        "DEAD": DEAD,
        "LENT": LENT,
        "KEPT": KEPT,
        "KEPT_LARGE": KEPT_LARGE,
        "LARGE": LARGE,
        "MISALIGNED": MISALIGNED,
        "UNREADABLE": UNREADABLE,
        "BEFORE": BEFORE,
        "BEHIND": BEHIND,
        "DEAD_BLOCK": DEAD_BLOCK,
        "AFTER_FREE": AFTER_FREE,
    }
    return HEADER, Source(_PAYLOADS, constants), readable(), NUMPY
