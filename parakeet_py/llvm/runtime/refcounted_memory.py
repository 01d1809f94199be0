"""Blocks, the counted heap memory of compiled code, and the record of failures, in low-level Python.

A *block* is a payload of `memory` with its header.  **A block is named by the address of its header; its payload
is at block + 64.**  It has a reference count, and while a call runs it is listed in the call's context, so that an
error frees whatever is still alive.

    ptr  pk_block_new(ptr ctx, i64 bytes)   count 1, listed in ctx; null when there is no memory
    void pk_retain(ptr block)               one more reference; null is allowed
    void pk_release(ptr ctx, ptr block)     one less; at none the block is unlisted and freed; null is allowed
    void pk_detach(ptr ctx, ptr block)      unlist: the payload becomes the property of a NumPy array
    void pk_free_all(ptr ctx)               free every block still listed (the way out of an error)
    void pk_fail(ptr ctx, i64 order, i64 code, i64 a0, ..., i64 a5)

Counts and lists are not atomic: only the thread that made the call touches them.  `pk_fail` may be called by any
thread of a parallel region; of several failures the one with the smallest `order`, the first in the order of the
source, is kept.
"""

from __future__ import annotations

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.array_memory import FIELDS
from parakeet_py.llvm.runtime.call_context import Context

# Blocks; needs the payloads of `array_memory`.
BLOCKS = Source(
    """
def pk_block_new(ctx: ptr, bytes: i64) -> ptr:
    payload = pk_alloc(bytes)
    if payload == null:
        return null
    block = payload - HEADER
    first = ctx.BLOCKS.ptr
    block.NEXT.ptr = first
    block.OWNER.ptr = ctx
    ctx.BLOCKS.ptr = block
    if first != null:
        first.PREVIOUS.ptr = block
    return block

def pk_detach(ctx: ptr, block: ptr):
    owner = block.OWNER.ptr
    if owner != null:
        previous = block.PREVIOUS.ptr
        next = block.NEXT.ptr
        behind = owner.BLOCKS if previous == null else previous.NEXT
        behind.ptr = next
        block.PREVIOUS.ptr = null
        block.NEXT.ptr = null
        block.OWNER.ptr = null
        if next != null:
            next.PREVIOUS.ptr = previous

def pk_retain(block: ptr):
    if block != null:
        block.COUNT.i64 += 1

def pk_release(ctx: ptr, block: ptr):
    if block != null:
        count = block.COUNT.i64 - 1
        block.COUNT.i64 = count
        if count == 0:
            pk_detach(ctx, block)
            pk_free(block + HEADER)

def pk_free_all(ctx: ptr):
    while True:
        block = ctx.BLOCKS.ptr
        if block == null:
            return
        pk_detach(ctx, block)
        pk_free(block + HEADER)
""",
    FIELDS | {"BLOCKS": Context.BLOCKS},
)

# Record the failure that comes first in the order of iterations; needs the lock of `memory_pool`.
FAIL = Source(
    """
@cold.noinline
def pk_fail(ctx: ptr, order: i64, code: i64, a0: i64, a1: i64, a2: i64, a3: i64, a4: i64, a5: i64):
    acquire(ctx.LOCK)
    if ctx.i64 == 0 or order < ctx.ORDER.i64:
        ctx.i64 = code
        ctx.ORDER.i64 = order
        ctx.ARGUMENTS.i64 = a0
        ctx.ARGUMENTS.i64[1] = a1
        ctx.ARGUMENTS.i64[2] = a2
        ctx.ARGUMENTS.i64[3] = a3
        ctx.ARGUMENTS.i64[4] = a4
        ctx.ARGUMENTS.i64[5] = a5
    relinquish(ctx.LOCK)
""",
    {"LOCK": Context.LOCK, "ORDER": Context.ORDER, "ARGUMENTS": Context.ARGUMENTS},
)
