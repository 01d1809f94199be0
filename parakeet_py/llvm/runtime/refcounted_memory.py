"""Blocks, the counted heap memory of compiled code, and the record of failures, as LLVM IR text.

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

from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER, Context


def blocks_ir() -> str:
    """The text of the functions of blocks; needs `memory.payloads_ir`."""
    return _filled_in(_BLOCKS)


def fail_ir() -> str:
    """The text of `pk_fail`; needs the lock of `memory_pool.large_ir`."""
    return _filled_in(_FAIL)


def _filled_in(text: str) -> str:
    constants = {
        "HEADER": BLOCK_HEADER,
        "BLOCKS": Context.BLOCKS,
        "LOCK": Context.LOCK,
        "ORDER": Context.ORDER,
        "ARGUMENTS": Context.ARGUMENTS,
    }
    for key, value in constants.items():
        text = text.replace(f"${key}$", str(value))
    return text


_BLOCKS = """
define ptr @pk_block_new(ptr %ctx, i64 %bytes) {
entry:
  %payload = call ptr @pk_alloc(i64 %bytes)
  %null = icmp eq ptr %payload, null
  br i1 %null, label %none, label %link
none:
  ret ptr null
link:
  %block = getelementptr i8, ptr %payload, i64 -$HEADER$
  %head = getelementptr i8, ptr %ctx, i64 $BLOCKS$
  %first = load ptr, ptr %head
  %np = getelementptr i8, ptr %block, i64 24
  store ptr %first, ptr %np
  %owner = getelementptr i8, ptr %block, i64 32
  store ptr %ctx, ptr %owner
  store ptr %block, ptr %head
  %alone = icmp eq ptr %first, null
  br i1 %alone, label %done, label %back
back:
  %pp = getelementptr i8, ptr %first, i64 16
  store ptr %block, ptr %pp
  br label %done
done:
  ret ptr %block
}

define void @pk_detach(ptr %ctx, ptr %block) {
entry:
  %owner_p = getelementptr i8, ptr %block, i64 32
  %owner = load ptr, ptr %owner_p
  %listed = icmp ne ptr %owner, null
  br i1 %listed, label %unlink, label %out
unlink:
  %pp = getelementptr i8, ptr %block, i64 16
  %np = getelementptr i8, ptr %block, i64 24
  %previous = load ptr, ptr %pp
  %next = load ptr, ptr %np
  %first = icmp eq ptr %previous, null
  %head = getelementptr i8, ptr %owner, i64 $BLOCKS$
  %behind0 = getelementptr i8, ptr %previous, i64 24
  %behind = select i1 %first, ptr %head, ptr %behind0
  store ptr %next, ptr %behind
  call void @llvm.memset.p0.i64(ptr align 8 %pp, i8 0, i64 24, i1 false)
  %last = icmp eq ptr %next, null
  br i1 %last, label %out, label %back
back:
  %before = getelementptr i8, ptr %next, i64 16
  store ptr %previous, ptr %before
  br label %out
out:
  ret void
}

define void @pk_retain(ptr %block) {
  %null = icmp eq ptr %block, null
  br i1 %null, label %out, label %some
some:
  %count = load i64, ptr %block
  %count1 = add i64 %count, 1
  store i64 %count1, ptr %block
  br label %out
out:
  ret void
}

define void @pk_release(ptr %ctx, ptr %block) {
  %null = icmp eq ptr %block, null
  br i1 %null, label %out, label %some
some:
  %count = load i64, ptr %block
  %count1 = sub i64 %count, 1
  store i64 %count1, ptr %block
  %dead = icmp eq i64 %count1, 0
  br i1 %dead, label %end, label %out
end:
  call void @pk_detach(ptr %ctx, ptr %block)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  tail call void @pk_free(ptr %payload)
  br label %out
out:
  ret void
}

define void @pk_free_all(ptr %ctx) {
entry:
  %head = getelementptr i8, ptr %ctx, i64 $BLOCKS$
  br label %look
look:
  %block = load ptr, ptr %head
  %end = icmp eq ptr %block, null
  br i1 %end, label %out, label %drop
drop:
  call void @pk_detach(ptr %ctx, ptr %block)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  call void @pk_free(ptr %payload)
  br label %look
out:
  ret void
}
"""

_FAIL = """
; Record the failure that comes first in iteration order.
define void @pk_fail(ptr %ctx, i64 %order, i64 %code, i64 %a0, i64 %a1, i64 %a2, i64 %a3, i64 %a4, i64 %a5)
cold noinline {
entry:
  %lock = getelementptr i8, ptr %ctx, i64 $LOCK$
  call void @acquire(ptr %lock)
  %status = load i64, ptr %ctx
  %order_p = getelementptr i8, ptr %ctx, i64 $ORDER$
  %held = load i64, ptr %order_p
  %none = icmp eq i64 %status, 0
  %earlier = icmp slt i64 %order, %held
  %take = or i1 %none, %earlier
  br i1 %take, label %record, label %out
record:
  store i64 %code, ptr %ctx
  store i64 %order, ptr %order_p
  %p0 = getelementptr i8, ptr %ctx, i64 $ARGUMENTS$
  store i64 %a0, ptr %p0
  %p1 = getelementptr i8, ptr %p0, i64 8
  store i64 %a1, ptr %p1
  %p2 = getelementptr i8, ptr %p0, i64 16
  store i64 %a2, ptr %p2
  %p3 = getelementptr i8, ptr %p0, i64 24
  store i64 %a3, ptr %p3
  %p4 = getelementptr i8, ptr %p0, i64 32
  store i64 %a4, ptr %p4
  %p5 = getelementptr i8, ptr %p0, i64 40
  store i64 %a5, ptr %p5
  br label %out
out:
  call void @relinquish(ptr %lock)
  ret void
}
"""
