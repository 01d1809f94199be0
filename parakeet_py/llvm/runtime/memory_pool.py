"""Large payloads, as LLVM IR text: mappings of their own, kept when they are freed.

Fresh pages are dear (a page fault and zeroing for each), so payloads of `LARGE` bytes and more are mapped, and kept
when freed in one process-wide list, the most recent first.  A request takes the first that fits with at most a
quarter of waste.  The list is bounded in bytes (`pk_set_pool_limit`) and in length; the oldest go first.  Mappings
of 4 MiB and more are aligned to, and advised to use, huge pages.  Payloads start at different offsets into their
first page, so that arrays walked together do not collide in the cache's low address bits.

The one lock here is held for a few dozen instructions, never while calling the system; around fork() it is held
by the forking thread, so that a child finds the list whole.
"""

from __future__ import annotations

import sys

from parakeet_py.llvm.runtime.array_memory import HEADER, filled_in

HUGE = 4 << 20
HUGE_PAGE = 2 << 20
POOL_LENGTH = 64


def large_ir() -> str:
    """The text of locks, large payloads and their pool; needs `threads.pause_ir`."""
    return filled_in(
        _LOCK + HEADER + _MAPPINGS + _POOL,
        HUGE=HUGE if sys.platform == "linux" else 1 << 62,
        HUGE_PAGE=HUGE_PAGE,
        POOL_LENGTH=POOL_LENGTH,
        ANONYMOUS=0x1002 if sys.platform == "darwin" else 0x22,
    )


_LOCK = """
@pool_lock = internal global i32 0, align 64

define internal void @acquire(ptr %lock) {
entry:
  br label %try
try:
  %k = phi i32 [0, %entry], [%k1, %spin], [0, %yield]
  %x = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %ok = extractvalue {i32, i1} %x, 1
  br i1 %ok, label %out, label %spin
spin:
  call void @pause()
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 200
  br i1 %more, label %try, label %yield
yield:
  %r = call i32 @sched_yield()
  br label %try
out:
  ret void
}
define internal void @relinquish(ptr %lock) alwaysinline {
  store atomic i32 0, ptr %lock release, align 4
  ret void
}
"""

# Large payloads are mappings of their own.
_MAPPINGS = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)

@colour = internal global i64 0, align 8

define internal ptr @map_block(i64 %bytes) noinline {
entry:
  ; room for the header and a colour of up to 15 * 256 bytes, in whole pages
  %need0 = add i64 %bytes, 8191
  %need = and i64 %need0, -4096
  %huge = icmp uge i64 %need, $HUGE$
  %slack = select i1 %huge, i64 $HUGE_PAGE$, i64 0
  %size = add i64 %need, %slack
  %raw = call ptr @mmap(ptr null, i64 %size, i32 3, i32 $ANONYMOUS$, i32 -1, i64 0)
  %raw_int = ptrtoint ptr %raw to i64
  %failed = icmp eq i64 %raw_int, -1
  br i1 %failed, label %none, label %mapped
none:
  ret ptr null
mapped:
  br i1 %huge, label %align, label %ready
align:
  %up0 = add i64 %raw_int, 2097151
  %up = and i64 %up0, -2097152
  %front = sub i64 %up, %raw_int
  %aligned = getelementptr i8, ptr %raw, i64 %front
  %has_front = icmp ne i64 %front, 0
  br i1 %has_front, label %cut_front, label %tail
cut_front:
  %u0 = call i32 @munmap(ptr %raw, i64 %front)
  br label %tail
tail:
  %back = sub i64 $HUGE_PAGE$, %front
  %has_back = icmp ne i64 %back, 0
  br i1 %has_back, label %cut_back, label %advise
cut_back:
  %end = getelementptr i8, ptr %aligned, i64 %need
  %u1 = call i32 @munmap(ptr %end, i64 %back)
  br label %advise
advise:
  %m = call i32 @madvise(ptr %aligned, i64 %need, i32 14)
  br label %ready
ready:
  %base = phi ptr [%raw, %mapped], [%aligned, %advise]
  %turn = atomicrmw add ptr @colour, i64 5 monotonic
  %step = and i64 %turn, 15
  %shift = mul i64 %step, 256
  %block = getelementptr i8, ptr %base, i64 %shift
  %room = sub i64 %need, %shift
  %capacity = sub i64 %room, $HEADER$
  call void @header(ptr %block, i64 %bytes, i64 %capacity, ptr %base, i64 %need)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  ret ptr %payload
}
"""

# The list of freed large blocks, linked through their headers (16 previous, 24 next), most recent first.
_POOL = """
@pool_first = internal global ptr null, align 64
@pool_last  = internal global ptr null, align 8
@pool_bytes = internal global i64 0, align 8
@pool_count = internal global i64 0, align 8
@pool_limit = internal global i64 67108864, align 8

define void @pk_set_pool_limit(i64 %bytes) {
  store atomic i64 %bytes, ptr @pool_limit monotonic, align 8
  ret void
}
define i64 @pk_pool_bytes() {
  %n = load atomic i64, ptr @pool_bytes monotonic, align 8
  ret i64 %n
}

; Take a block out of the list; the lock is held.
define internal void @unlink_pooled(ptr %block) {
entry:
  %pp = getelementptr i8, ptr %block, i64 16
  %np = getelementptr i8, ptr %block, i64 24
  %previous = load ptr, ptr %pp
  %next = load ptr, ptr %np
  %first = icmp eq ptr %previous, null
  %behind0 = getelementptr i8, ptr %previous, i64 24
  %behind = select i1 %first, ptr @pool_first, ptr %behind0
  store ptr %next, ptr %behind
  %last = icmp eq ptr %next, null
  %before0 = getelementptr i8, ptr %next, i64 16
  %before = select i1 %last, ptr @pool_last, ptr %before0
  store ptr %previous, ptr %before
  %mp = getelementptr i8, ptr %block, i64 56
  %mapped = load i64, ptr %mp
  %bytes = load i64, ptr @pool_bytes
  %bytes1 = sub i64 %bytes, %mapped
  store i64 %bytes1, ptr @pool_bytes
  %count = load i64, ptr @pool_count
  %count1 = sub i64 %count, 1
  store i64 %count1, ptr @pool_count
  ret void
}

; The most recent pooled block that fits with little waste, or null.
define internal ptr @reuse(i64 %bytes) {
entry:
  %quarter = lshr i64 %bytes, 2
  %most0 = add i64 %bytes, %quarter
  %most = add i64 %most0, 8192
  call void @acquire(ptr @pool_lock)
  %first = load ptr, ptr @pool_first
  br label %look
look:
  %block = phi ptr [%first, %entry], [%next, %on]
  %end = icmp eq ptr %block, null
  br i1 %end, label %none, label %measure
measure:
  %cp = getelementptr i8, ptr %block, i64 40
  %capacity = load i64, ptr %cp
  %enough = icmp uge i64 %capacity, %bytes
  %tight = icmp ule i64 %capacity, %most
  %fits = and i1 %enough, %tight
  br i1 %fits, label %take, label %on
on:
  %np = getelementptr i8, ptr %block, i64 24
  %next = load ptr, ptr %np
  br label %look
take:
  call void @unlink_pooled(ptr %block)
  call void @relinquish(ptr @pool_lock)
  %base_p = getelementptr i8, ptr %block, i64 48
  %base = load ptr, ptr %base_p
  %mapped_p = getelementptr i8, ptr %block, i64 56
  %mapped = load i64, ptr %mapped_p
  call void @header(ptr %block, i64 %bytes, i64 %capacity, ptr %base, i64 %mapped)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  ret ptr %payload
none:
  call void @relinquish(ptr @pool_lock)
  ret ptr null
}

; Unmap the oldest blocks until the list keeps within %limit bytes and POOL_LENGTH blocks.
define internal void @shrink(i64 %limit) {
entry:
  br label %again
again:
  call void @acquire(ptr @pool_lock)
  %bytes = load i64, ptr @pool_bytes
  %count = load i64, ptr @pool_count
  %heavy = icmp ugt i64 %bytes, %limit
  %long = icmp ugt i64 %count, $POOL_LENGTH$
  %over = or i1 %heavy, %long
  br i1 %over, label %drop, label %out
drop:
  %block = load ptr, ptr @pool_last
  call void @unlink_pooled(ptr %block)
  call void @relinquish(ptr @pool_lock)
  %base_p = getelementptr i8, ptr %block, i64 48
  %base = load ptr, ptr %base_p
  %mapped_p = getelementptr i8, ptr %block, i64 56
  %mapped = load i64, ptr %mapped_p
  %u = call i32 @munmap(ptr %base, i64 %mapped)
  br label %again
out:
  call void @relinquish(ptr @pool_lock)
  ret void
}

define void @pk_trim() {
  call void @shrink(i64 0)
  ret void
}

define void @pk_free_large(ptr %block, i64 %mapped) {
entry:
  call void @acquire(ptr @pool_lock)
  %first = load ptr, ptr @pool_first
  %pp = getelementptr i8, ptr %block, i64 16
  store ptr null, ptr %pp
  %np = getelementptr i8, ptr %block, i64 24
  store ptr %first, ptr %np
  %empty = icmp eq ptr %first, null
  %before0 = getelementptr i8, ptr %first, i64 16
  %before = select i1 %empty, ptr @pool_last, ptr %before0
  store ptr %block, ptr %before
  store ptr %block, ptr @pool_first
  %bytes = load i64, ptr @pool_bytes
  %bytes1 = add i64 %bytes, %mapped
  store i64 %bytes1, ptr @pool_bytes
  %count = load i64, ptr @pool_count
  %count1 = add i64 %count, 1
  store i64 %count1, ptr @pool_count
  call void @relinquish(ptr @pool_lock)
  %limit = load atomic i64, ptr @pool_limit monotonic, align 8
  %heavy = icmp ugt i64 %bytes1, %limit
  %long = icmp ugt i64 %count1, $POOL_LENGTH$
  %over = or i1 %heavy, %long
  br i1 %over, label %trim, label %out
trim:
  call void @shrink(i64 %limit)
  br label %out
out:
  ret void
}

define ptr @pk_alloc_large(i64 %bytes) {
entry:
  %absurd = icmp ugt i64 %bytes, 1152921504606846976
  br i1 %absurd, label %none, label %pool
none:
  ret ptr null
pool:
  %r = call ptr @reuse(i64 %bytes)
  %found = icmp ne ptr %r, null
  br i1 %found, label %have, label %fresh
have:
  ret ptr %r
fresh:
  %q = call ptr @map_block(i64 %bytes)
  %got = icmp ne ptr %q, null
  br i1 %got, label %mapped, label %desperate
mapped:
  ret ptr %q
desperate:
  ; what the pool keeps may be what is missing
  call void @pk_trim()
  %s = tail call ptr @map_block(i64 %bytes)
  ret ptr %s
}
"""
