"""How far down the stack of a thread goes, for code that recurses.

    ptr pk_stack_floor()             the address that the stack of the calling thread must not reach

The end of the stack, with room to spare for what is called at the deepest point (a library, a signal's handler). A
thread is asked once, as the answer can take long (glibc reads the process's memory map for the first thread), and keeps
it under a key of its own. Where the limit cannot be asked for, a little of what is surely there is all.
"""

from __future__ import annotations

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import symbols

_ROOM = 256 << 10
_LITTLE = 128 << 10

_ASKING = """
def pthread_key_create(key: ptr, destructor: ptr) -> i32: ...
def pthread_getspecific(key: i32) -> ptr: ...
def pthread_setspecific(key: i32, value: ptr) -> i32: ...
def pthread_self() -> i64: ...
def pthread_getattr_np(thread: i64, attributes: ptr) -> i32: ...
def pthread_attr_getstack(attributes: ptr, end: ptr, size: ptr) -> i32: ...
def pthread_attr_destroy(attributes: ptr) -> i32: ...
stack_key: i32 = -1

@internal
def stack_initialize():
    pthread_key_create(stack_key, null)

def pk_stack_floor() -> ptr:
    kept = pthread_getspecific(stack_key.i32)
    if kept != null:
        return kept
    attributes = alloca(i8, 128, 16)
    end = alloca(ptr)
    size = alloca(i64)
    if pthread_getattr_np(pthread_self(), attributes) != 0:
        return attributes - LITTLE
    pthread_attr_getstack(attributes, end, size)
    pthread_attr_destroy(attributes)
    floor = end.ptr + umin(size.i64 >> 1, ROOM)
    pthread_setspecific(stack_key.i32, floor)
    return floor
"""

_GUESSING = """
@internal
def stack_initialize(): pass

def pk_stack_floor() -> ptr:
    return alloca(i8) - LITTLE
"""


def stack() -> Source:
    """`pk_stack_floor`, and `stack_initialize`, which has to run before."""
    text = _ASKING if symbols.resolve("pthread_getattr_np") else _GUESSING
    return Source(text, {"ROOM": _ROOM, "LITTLE": _LITTLE})
