"""The memory of arrays for checked machine code, as LLVM IR text; it takes the place of the payloads of `memory`.

    64 bytes or more before the header   a red zone, `ZONE`
    the header                           as `memory` says; small payloads and large ones come from malloc
    the payload                          `FRESH` until something is stored
    64 bytes behind it                   a red zone

A payload that is freed is filled with `FREED`, the count of its block is `DEAD`, and it is given back to the system
only when so many others have been freed after it (`KEPT` small ones, `KEPT_LARGE` large ones). Then it is looked at
whether anything was stored in it meanwhile.

    i64 pk_block_fault(ptr block)    0, or what is wrong with a block (`faults`); nothing is wrong with null
    i64 pk_payload_fault()           what has been found wrong with freed memory since this was asked last, or 0

Nothing that is wrong is touched: a block that is no block is not freed.
"""

from __future__ import annotations

from parakeet_py.llvm.runtime import symbols
from parakeet_py.llvm.runtime.array_memory import HEADER, NUMPY, filled_in, numpy_name
from parakeet_py.llvm.safety.faults import AFTER_FREE, BEFORE, BEHIND, DEAD_BLOCK, MISALIGNED, UNREADABLE

ZONE = 0xA5
FRESH = 0xDB
FREED = 0xDD
DEAD = -0x2222222222222223  # eight bytes FREED
KEPT, KEPT_LARGE = 1024, 8
LARGE = 64 << 10


def payloads_ir() -> str:
    """The text of payloads with red zones, and of NumPy's handler over them."""
    return filled_in(
        HEADER + _PAYLOADS + readable_ir() + NUMPY,
        NAME=numpy_name(),
        ZONE=ZONE,
        FRESH=FRESH,
        FREED=FREED,
        DEAD=DEAD,
        KEPT=KEPT,
        KEPT_LARGE=KEPT_LARGE,
        SMALL=LARGE,
        WORD=int.from_bytes(bytes([ZONE] * 8), "little", signed=True),
        MISALIGNED=MISALIGNED,
        UNREADABLE=UNREADABLE,
        BEFORE=BEFORE,
        BEHIND=BEHIND,
        DEAD_BLOCK=DEAD_BLOCK,
        AFTER_FREE=AFTER_FREE,
    )


def readable_ir() -> str:
    """The text of `i1 readable(ptr)`: is the page of an address there? Where the system cannot be asked, it is."""
    return _ASKING if symbols.resolve("mincore") else _TRUSTING


_ASKING = """
declare i32 @mincore(ptr, i64, ptr)
define internal i1 @readable(ptr %address) {
  %state = alloca i64, align 8
  %number = ptrtoint ptr %address to i64
  %page_number = and i64 %number, -4096
  %page = inttoptr i64 %page_number to ptr
  %r = call i32 @mincore(ptr %page, i64 1, ptr %state)
  %there = icmp eq i32 %r, 0
  ret i1 %there
}
"""

_TRUSTING = """
define internal i1 @readable(ptr %address) {
  ret i1 true
}
"""

# `fault_of` looks at all of a block that its header says; `pk_block_fault` asks first whether there is a header.
_PAYLOADS = """
declare ptr @malloc(i64)
declare void @free(ptr)
@kept = internal global [$KEPT$ x ptr] zeroinitializer
@kept_large = internal global [$KEPT_LARGE$ x ptr] zeroinitializer
@freed = internal global i64 0, align 8
@freed_large = internal global i64 0, align 8
@fault = internal global i64 0, align 8

define internal i1 @is_filled(ptr %from, i64 %bytes, i8 %with) {
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k1, %look]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %look, label %yes
look:
  %p = getelementptr i8, ptr %from, i64 %k
  %byte = load i8, ptr %p
  %same = icmp eq i8 %byte, %with
  %k1 = add i64 %k, 1
  br i1 %same, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define ptr @pk_alloc(i64 %bytes) {
  %absurd = icmp ugt i64 %bytes, 1152921504606846976
  br i1 %absurd, label %none, label %get
get:
  %size = add i64 %bytes, 320
  %base = call ptr @malloc(i64 %size)
  %null = icmp eq ptr %base, null
  br i1 %null, label %none, label %some
none:
  ret ptr null
some:
  %int = ptrtoint ptr %base to i64
  %negative = sub i64 0, %int
  %shift0 = and i64 %negative, 63
  %shift = add i64 %shift0, 64
  %block = getelementptr i8, ptr %base, i64 %shift
  call void @header(ptr %block, i64 %bytes, i64 %bytes, ptr %base, i64 0)
  %before = getelementptr i8, ptr %block, i64 -64
  call void @llvm.memset.p0.i64(ptr %before, i8 $ZONE$, i64 64, i1 false)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  call void @llvm.memset.p0.i64(ptr %payload, i8 $FRESH$, i64 %bytes, i1 false)
  %behind = getelementptr i8, ptr %payload, i64 %bytes
  call void @llvm.memset.p0.i64(ptr %behind, i8 $ZONE$, i64 64, i1 false)
  ret ptr %payload
}

define internal i64 @fault_of(ptr %block) {
entry:
  %before = getelementptr i8, ptr %block, i64 -64
  %good_before = call i1 @is_filled(ptr %before, i64 64, i8 $ZONE$)
  br i1 %good_before, label %count, label %bad_before
bad_before:
  ret i64 $BEFORE$
count:
  %references = load i64, ptr %block
  %alive = icmp sgt i64 %references, 0
  br i1 %alive, label %end, label %dead
dead:
  ret i64 $DEAD_BLOCK$
end:
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  %bytes_p = getelementptr i8, ptr %block, i64 40
  %bytes = load i64, ptr %bytes_p
  %behind = getelementptr i8, ptr %payload, i64 %bytes
  %good_behind = call i1 @is_filled(ptr %behind, i64 64, i8 $ZONE$)
  %r = select i1 %good_behind, i64 0, i64 $BEHIND$
  ret i64 %r
}

define i64 @pk_block_fault(ptr %block) {
entry:
  %null = icmp eq ptr %block, null
  br i1 %null, label %fine, label %some
fine:
  ret i64 0
some:
  %int = ptrtoint ptr %block to i64
  %low = and i64 %int, 63
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %ask, label %misaligned
misaligned:
  ret i64 $MISALIGNED$
ask:
  %before = getelementptr i8, ptr %block, i64 -64
  %there = call i1 @readable(ptr %before)
  %there1 = call i1 @readable(ptr %block)
  %both = and i1 %there, %there1
  br i1 %both, label %look, label %unreadable
unreadable:
  ret i64 $UNREADABLE$
look:
  %r = call i64 @fault_of(ptr %block)
  ret i64 %r
}

define i64 @pk_payload_fault() {
  %found = atomicrmw xchg ptr @fault, i64 0 seq_cst
  ret i64 %found
}

define internal void @give_back(ptr %block) {
entry:
  %null = icmp eq ptr %block, null
  br i1 %null, label %out, label %look
look:
  %bytes_p = getelementptr i8, ptr %block, i64 40
  %bytes = load i64, ptr %bytes_p
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  %same = call i1 @is_filled(ptr %payload, i64 %bytes, i8 $FREED$)
  br i1 %same, label %free, label %changed
changed:
  store atomic i64 $AFTER_FREE$, ptr @fault seq_cst, align 8
  br label %free
free:
  %base_p = getelementptr i8, ptr %block, i64 48
  %base = load ptr, ptr %base_p
  call void @free(ptr %base)
  br label %out
out:
  ret void
}

define void @pk_free(ptr %payload) {
entry:
  %null = icmp eq ptr %payload, null
  br i1 %null, label %out, label %some
some:
  %block = getelementptr i8, ptr %payload, i64 -$HEADER$
  ; a block that is released for the last time has no references left, one that belongs to an array has some
  %references = load i64, ptr %block
  %none = icmp eq i64 %references, 0
  %counted = select i1 %none, i64 1, i64 %references
  store i64 %counted, ptr %block
  %fault = call i64 @fault_of(ptr %block)
  %good = icmp eq i64 %fault, 0
  br i1 %good, label %poison, label %leave
leave:
  store atomic i64 %fault, ptr @fault seq_cst, align 8
  ret void
poison:
  %bytes_p = getelementptr i8, ptr %block, i64 40
  %bytes = load i64, ptr %bytes_p
  call void @llvm.memset.p0.i64(ptr %payload, i8 $FREED$, i64 %bytes, i1 false)
  store i64 $DEAD$, ptr %block
  %small = icmp ult i64 %bytes, $SMALL$
  br i1 %small, label %little, label %much
little:
  %number = atomicrmw add ptr @freed, i64 1 monotonic
  %place = urem i64 %number, $KEPT$
  %at = getelementptr ptr, ptr @kept, i64 %place
  br label %exchange
much:
  %number1 = atomicrmw add ptr @freed_large, i64 1 monotonic
  %place1 = urem i64 %number1, $KEPT_LARGE$
  %at1 = getelementptr ptr, ptr @kept_large, i64 %place1
  br label %exchange
exchange:
  %slot = phi ptr [%at, %little], [%at1, %much]
  %oldest = atomicrmw xchg ptr %slot, ptr %block seq_cst
  call void @give_back(ptr %oldest)
  br label %out
out:
  ret void
}
"""
