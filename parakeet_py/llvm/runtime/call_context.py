"""The layout of the call context, shared by generated code, the call gate and the native runtime.

Every call of a compiled function has one context: 128 bytes, aligned to 64, zeroed before the call except for
`MAX_THREADS` and `STATE`.  Generated code gets its address as the first argument and passes it on.
"""

from __future__ import annotations

from typing import Final


class Context:
    """Byte offsets into the call context."""

    STATUS: Final = 0  # i64: 0 when all is well, else the code of the place that failed
    ORDER: Final = 8  # i64: the iteration, in the order of the source, of the recorded failure
    ARGUMENTS: Final = 16  # six i64: what the message of the failure needs
    BLOCKS: Final = 64  # ptr: the first of the live blocks of this call
    STATE: Final = 72  # ptr: the Python object the call belongs to
    MAX_THREADS: Final = 80  # i32: threads that a parallel region of this call may use
    LOCK: Final = 84  # i32: spin lock over the failure record
    LEVELS: Final = 88  # i64: how many calls deep a recursion may go, where there is one
    CALLS: Final = 88  # ptr, once that has been read: the state of the polls of the recursion, four words
    FLOOR: Final = 96  # ptr: the address that the stack must not come down to in it
    FLAGS: Final = 104  # i32: floating-point flags that parts of parallel regions have set
    FAILURES: Final = 108  # i32: what the numbers of failures of the library's procedure that runs are counted from
    THREAD: Final = 112  # ptr: the thread state that the gate restores; 1: the GIL is held, 0: no gate made the call
    DUE: Final = 120  # i64: when signals are looked at next, in nanoseconds, and whether most loops do (the lowest bit)
    SIZE: Final = 128


BLOCK_HEADER: Final = 64  # bytes from a block (its header) to its payload
ALIGNMENT: Final = 64  # of every payload


OUT_OF_MEMORY: Final = -1  # the status of a call that found no memory
OPAQUE_RAISED: Final = -2  # of one in which Python code has raised
INTERRUPTED: Final = -4  # of one that a signal handler has ended
OPAQUE_AGAIN: Final = -3  # of one that has to be run by Python, because Python code has given something unforeseen
OPAQUE_REST: Final = -5  # of one whose rest Python does, with what the arguments hold
