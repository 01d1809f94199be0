"""The memory of arrays, in low-level Python: payloads, and NumPy's handler over them.

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

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER

LARGE = 64 << 10
LENT = 1 << 61  # references a block has when Python owns it, see `boxing_text`
NUMPY_HANDLER_NAME = b"parakeet_py"
FIELDS = {  # of the header of a block
    "COUNT": 0,
    "BYTES": 8,
    "PREVIOUS": 16,
    "NEXT": 24,
    "OWNER": 32,
    "CAPACITY": 40,
    "BASE": 48,
    "MAPPED": 56,
    "HEADER": BLOCK_HEADER,
}

# Fill a header in.
HEADER = Source(
    """
@internal.alwaysinline
def header(block: ptr, bytes: i64, capacity: i64, base: ptr, mapped: i64):
    block.COUNT.i64 = 1
    block.BYTES.i64 = bytes
    block.PREVIOUS.ptr = null
    block.NEXT.ptr = null
    block.OWNER.ptr = null
    block.CAPACITY.i64 = capacity
    block.BASE.ptr = base
    block.MAPPED.i64 = mapped
""",
    FIELDS,
)

# What every array passes through; needs `memory_pool`. Small payloads come from malloc.
SMALL = Source(
    """
def malloc(bytes: i64) -> ptr: ...
def free(memory: ptr): ...
def pk_alloc_large(bytes: i64) -> ptr: ...
def pk_free_large(block: ptr, mapped: i64): ...

@internal.alwaysinline
def malloc_block(bytes: i64) -> ptr:
    base = malloc(bytes + 112)
    if base == null:
        return null
    # malloc aligns to 16: move up to the next multiple of 64
    block = base + (-i64(base) & 63)
    header(block, bytes, bytes, base, 0)
    return block + HEADER

def pk_alloc(bytes: i64) -> ptr:
    if ult(bytes, LARGE):
        return malloc_block(bytes)
    return pk_alloc_large(bytes)

def pk_free(payload: ptr):
    if payload != null:
        block = payload - HEADER
        base = block.BASE.ptr
        mapped = block.MAPPED.i64
        if mapped == 0:
            free(base)
        else:
            pk_free_large(block, mapped)
""",
    FIELDS | {"LARGE": LARGE},
)

_NAME = NUMPY_HANDLER_NAME.decode() + "\\00" * (127 - len(NUMPY_HANDLER_NAME))

# NumPy's handler:
# struct PyDataMem_Handler { char name[127]; uint8_t version; struct { ctx, malloc, calloc, realloc, free } }
NUMPY = Source(
    f"""
ir(r'''@pk_mem_handler = constant {{[127 x i8], i8, ptr, ptr, ptr, ptr, ptr}} {{
  [127 x i8] c"{_NAME}", i8 1, ptr null,
  ptr @numpy_malloc, ptr @numpy_calloc, ptr @numpy_realloc, ptr @numpy_free }}, align 8''')

@internal
def numpy_malloc(unused: ptr, bytes: i64) -> ptr:
    return pk_alloc(bytes)

@internal
def numpy_calloc(unused: ptr, count: i64, size: i64) -> ptr:
    if size != 0 and ugt(count, i64(-1) // size):
        return null
    payload = pk_alloc(count * size)
    if payload != null:
        memset(payload, 0, count * size)
    return payload

@internal
def numpy_realloc(unused: ptr, old: ptr, bytes: i64) -> ptr:
    if old == null:
        return pk_alloc(bytes)
    block = old - HEADER
    capacity = block.CAPACITY.i64
    if ule(bytes, capacity) and uge(bytes, capacity >> 1):
        block.BYTES.i64 = bytes
        return old
    new = pk_alloc(bytes)
    if new != null:
        memcpy(new, old, umin(block.BYTES.i64, bytes))
        pk_free(old)
    return new

@internal
def numpy_free(unused: ptr, payload: ptr, bytes: i64):
    pk_free(payload)
""",
    FIELDS,
)
