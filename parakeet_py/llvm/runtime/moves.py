"""Regions of the runtime in low-level Python: what `codegen/parallel.py` calls instead of a region of its own.

    void pk_copy(ptr ctx, ptr frame, i64 lo, i64 hi)    frame: source, target, bytes of an element
    void pk_fill(ptr ctx, ptr frame, i64 lo, i64 hi)    frame: eight bytes to repeat, target, bytes of an element

A fill whose bytes differ writes one line of them, and copies that: what is copied doubles up to `BLOCK`, which stays
in the first-level cache.
"""

from __future__ import annotations

from parakeet_py.llvm.engine.low_level_source import Source

MOVES = Source(
    """
def pk_copy(ctx: ptr, frame: ptr, lo: i64, hi: i64):
    size = frame.i64[2]
    memmove(frame.ptr[1] + lo * size, frame.ptr + lo * size, smax(hi - lo, 0) * size)

def pk_fill(ctx: ptr, frame: ptr, lo: i64, hi: i64):
    size = frame.i64[2]
    target = frame.ptr[1] + lo * size
    bytes = smax(hi - lo, 0) * size
    pattern = frame.i64
    if pattern == (pattern << 8 | pattern >> 56):
        memset(target, frame.i8, bytes)
    else:
        done = 0
        line = smin(bytes, LINE)
        while done + 8 <= line:
            (target + done).i64 = pattern
            done += 8
        if bytes < LINE:
            memcpy(target + done, frame, bytes - done)
        else:
            while done < bytes:
                more = smin(smin(done, BLOCK), bytes - done)
                memcpy(target + done, target, more)
                done += more
""",
    {"LINE": 64, "BLOCK": 4096},
)
