"""The memory of arrays, as LLVM IR text: payloads, and NumPy's handler over them.

    ptr  pk_alloc(i64 bytes)    a payload aligned to 64 bytes; null when there is no memory
    void pk_free(ptr payload)   null is allowed
    void pk_trim()              give the pooled payloads back to the system

A header of 64 bytes lies before every payload; `blocks` uses its first five words:

    offset 0  i64 reference count       32  ptr ctx that lists the block, or null
           8  i64 bytes asked for       40  i64 capacity of the payload in bytes
          16  ptr previous in list      48  ptr what the system gave
          24  ptr next in list          56  i64 bytes mapped, or 0 when it came from malloc

Payloads of `LARGE` bytes and more are mapped and kept when freed (`memory_pool`); smaller ones come from malloc.

`pk_mem_handler` is a NumPy `PyDataMem_Handler` (NEP 49) over the same payloads: an array that owns a payload and
carries this handler gives it back to the pool when it dies.
"""

from __future__ import annotations

from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER

LARGE = 64 << 10
NUMPY_HANDLER_NAME = b"parakeet_py"


def payloads_ir() -> str:
    """The text of what every array passes through: small payloads and NumPy's handler; needs `memory_pool.large_ir`."""
    return filled_in(HEADER + _SMALL + NUMPY, NAME=numpy_name())


def numpy_name() -> str:
    """The name of NumPy's handler, as it stands in the text."""
    return NUMPY_HANDLER_NAME.decode() + "\\00" * (127 - len(NUMPY_HANDLER_NAME))


def filled_in(text: str, **constants: int | str) -> str:
    """The text with `$HEADER$`, `$LARGE$` and these constants replaced."""
    for key, value in {"HEADER": BLOCK_HEADER, "LARGE": LARGE, **constants}.items():
        text = text.replace(f"${key}$", str(value))
    return text


# Fill a header in.
HEADER = """
define internal void @header(ptr %block, i64 %bytes, i64 %capacity, ptr %base, i64 %mapped) alwaysinline {
  store i64 1, ptr %block
  %p1 = getelementptr i8, ptr %block, i64 8
  store i64 %bytes, ptr %p1
  %p2 = getelementptr i8, ptr %block, i64 16
  call void @llvm.memset.p0.i64(ptr align 8 %p2, i8 0, i64 24, i1 false)
  %p5 = getelementptr i8, ptr %block, i64 40
  store i64 %capacity, ptr %p5
  %p6 = getelementptr i8, ptr %block, i64 48
  store ptr %base, ptr %p6
  %p7 = getelementptr i8, ptr %block, i64 56
  store i64 %mapped, ptr %p7
  ret void
}
"""

# Small payloads come from malloc.
_SMALL = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @pk_alloc_large(i64)
declare void @pk_free_large(ptr, i64)

define internal ptr @malloc_block(i64 %bytes) alwaysinline {
  %size = add i64 %bytes, 112
  %base = call ptr @malloc(i64 %size)
  %null = icmp eq ptr %base, null
  br i1 %null, label %none, label %some
none:
  ret ptr null
some:
  ; malloc aligns to 16: move up to the next multiple of 64
  %int = ptrtoint ptr %base to i64
  %negative = sub i64 0, %int
  %shift = and i64 %negative, 63
  %block = getelementptr i8, ptr %base, i64 %shift
  call void @header(ptr %block, i64 %bytes, i64 %bytes, ptr %base, i64 0)
  %payload = getelementptr i8, ptr %block, i64 $HEADER$
  ret ptr %payload
}

define ptr @pk_alloc(i64 %bytes) {
entry:
  %small = icmp ult i64 %bytes, $LARGE$
  br i1 %small, label %little, label %much
little:
  %p = tail call ptr @malloc_block(i64 %bytes)
  ret ptr %p
much:
  %q = tail call ptr @pk_alloc_large(i64 %bytes)
  ret ptr %q
}

define void @pk_free(ptr %payload) {
entry:
  %null = icmp eq ptr %payload, null
  br i1 %null, label %out, label %some
some:
  %block = getelementptr i8, ptr %payload, i64 -$HEADER$
  %base_p = getelementptr i8, ptr %block, i64 48
  %base = load ptr, ptr %base_p
  %mapped_p = getelementptr i8, ptr %block, i64 56
  %mapped = load i64, ptr %mapped_p
  %small = icmp eq i64 %mapped, 0
  br i1 %small, label %little, label %much
little:
  tail call void @free(ptr %base)
  ret void
much:
  tail call void @pk_free_large(ptr %block, i64 %mapped)
  ret void
out:
  ret void
}
"""

# NumPy's handler.
NUMPY = """
; struct PyDataMem_Handler { char name[127]; uint8_t version; struct { ctx, malloc, calloc, realloc, free } }
@pk_mem_handler = constant {[127 x i8], i8, ptr, ptr, ptr, ptr, ptr} {
  [127 x i8] c"$NAME$", i8 1, ptr null,
  ptr @numpy_malloc, ptr @numpy_calloc, ptr @numpy_realloc, ptr @numpy_free }, align 8

define internal ptr @numpy_malloc(ptr %unused, i64 %bytes) {
  %p = tail call ptr @pk_alloc(i64 %bytes)
  ret ptr %p
}
define internal ptr @numpy_calloc(ptr %unused, i64 %count, i64 %size) {
  %product = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {i64, i1} %product, 0
  %over = extractvalue {i64, i1} %product, 1
  br i1 %over, label %none, label %get
get:
  %p = call ptr @pk_alloc(i64 %bytes)
  %null = icmp eq ptr %p, null
  br i1 %null, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr align 64 %p, i8 0, i64 %bytes, i1 false)
  ret ptr %p
none:
  ret ptr null
}
define internal ptr @numpy_realloc(ptr %unused, ptr %old, i64 %bytes) {
entry:
  %null = icmp eq ptr %old, null
  br i1 %null, label %new, label %look
new:
  %p = tail call ptr @pk_alloc(i64 %bytes)
  ret ptr %p
look:
  %had_p = getelementptr i8, ptr %old, i64 -56
  %had = load i64, ptr %had_p
  %capacity_p = getelementptr i8, ptr %old, i64 -24
  %capacity = load i64, ptr %capacity_p
  %half = lshr i64 %capacity, 1
  %fits = icmp ule i64 %bytes, %capacity
  %full = icmp uge i64 %bytes, %half
  %stay = and i1 %fits, %full
  br i1 %stay, label %same, label %move
same:
  store i64 %bytes, ptr %had_p
  ret ptr %old
move:
  %q = call ptr @pk_alloc(i64 %bytes)
  %failed = icmp eq ptr %q, null
  br i1 %failed, label %none, label %copy
none:
  ret ptr null
copy:
  %least = call i64 @llvm.umin.i64(i64 %had, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %q, ptr align 64 %old, i64 %least, i1 false)
  call void @pk_free(ptr %old)
  ret ptr %q
}
define internal void @numpy_free(ptr %unused, ptr %payload, i64 %bytes) {
  tail call void @pk_free(ptr %payload)
  ret void
}
"""
