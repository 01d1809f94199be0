"""How far down the stack of a thread goes, for code that recurses.

    ptr pk_stack_floor()             the address that the stack of the calling thread must not reach

The end of the stack, with room to spare for what is called at the deepest point (a library, a signal's handler). A
thread is asked once, as the answer can take long (glibc reads the process's memory map for the first thread), and keeps
it under a key of its own. Where the limit cannot be asked for, a little of what is surely there is all.
"""

from __future__ import annotations

from parakeet_py.llvm.runtime import symbols

_ROOM = 256 << 10
_LITTLE = 128 << 10

_ASKING = """
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i64 @pthread_self()
declare i32 @pthread_getattr_np(i64, ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_attr_destroy(ptr)
@stack_key = internal global i32 -1

define internal void @stack_initialize() {
  %r = call i32 @pthread_key_create(ptr @stack_key, ptr null)
  ret void
}

define ptr @pk_stack_floor() {
entry:
  %key = load i32, ptr @stack_key
  %kept = call ptr @pthread_getspecific(i32 %key)
  %known = icmp ne ptr %kept, null
  br i1 %known, label %give, label %ask
give:
  ret ptr %kept
ask:
  %attributes = alloca [128 x i8], align 16
  %end_p = alloca ptr, align 8
  %size_p = alloca i64, align 8
  %self = call i64 @pthread_self()
  %failed = call i32 @pthread_getattr_np(i64 %self, ptr %attributes)
  %none = icmp ne i32 %failed, 0
  br i1 %none, label %guess, label %look
look:
  %r0 = call i32 @pthread_attr_getstack(ptr %attributes, ptr %end_p, ptr %size_p)
  %r1 = call i32 @pthread_attr_destroy(ptr %attributes)
  %end = load ptr, ptr %end_p
  %size = load i64, ptr %size_p
  %half = lshr i64 %size, 1
  %small = icmp ult i64 %half, $ROOM$
  %room = select i1 %small, i64 %half, i64 $ROOM$
  %floor = getelementptr i8, ptr %end, i64 %room
  %r2 = call i32 @pthread_setspecific(i32 %key, ptr %floor)
  ret ptr %floor
guess:
  %below = getelementptr i8, ptr %attributes, i64 -$LITTLE$
  ret ptr %below
}
"""

_GUESSING = """
define internal void @stack_initialize() {
  ret void
}

define ptr @pk_stack_floor() {
  %here = alloca i8, align 8
  %below = getelementptr i8, ptr %here, i64 -$LITTLE$
  ret ptr %below
}
"""


def stack_ir() -> str:
    """The text of `pk_stack_floor` and of `stack_initialize`, which has to run before."""
    text = _ASKING if symbols.resolve("pthread_getattr_np") else _GUESSING
    return text.replace("$ROOM$", str(_ROOM)).replace("$LITTLE$", str(_LITTLE))
