"""What can be wrong with memory or an object, by the numbers that machine code gives for it."""

from __future__ import annotations

(
    NULL,
    MISALIGNED,
    UNREADABLE,
    BEFORE,
    BEHIND,
    DEAD_BLOCK,
    AFTER_FREE,
    COUNT,
    TYPE,
    OUTSIDE,
    INDEX,
    STACK,
    TOO_FEW,
    TOO_MANY,
    BLOCK_COUNT,
    NO_OWNER,
    DROPPED,
) = range(1, 18)

FAULTS = {
    NULL: "a null pointer in the place of an object",
    MISALIGNED: "a pointer to no object: it is not aligned",
    UNREADABLE: "a pointer to no object: there is no memory",
    BEFORE: "memory before an array has been overwritten",
    BEHIND: "memory behind an array has been overwritten",
    DEAD_BLOCK: "memory that has been freed",
    AFTER_FREE: "memory has been changed after it was freed",
    COUNT: "a pointer to no object: its reference count makes no sense",
    TYPE: "a pointer to no object: its type is none",
    OUTSIDE: "outside of the memory of the array",
    INDEX: "an index beyond the extents of the array",
    STACK: "memory on the stack beside an array has been overwritten",
    TOO_FEW: "a reference is dropped or given away that was not taken",
    TOO_MANY: "a reference that was taken is kept by nothing",
    BLOCK_COUNT: "a block has more or fewer references than results and arguments explain",
    NO_OWNER: "an array whose memory belongs to nothing",
    DROPPED: "an object whose last reference has been dropped",
}
FAULT = "!"  # how an argument of a failure is read that is one of these numbers
