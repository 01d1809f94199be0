"""Looking up from long loops: for Ctrl-C, and to let the GIL go.

Generated loops that may run long call, once in some thousand iterations,

    void pk_poll(ptr state)

`state` is four words of the loop: the number of iterations until the next poll, which `pk_poll` sets (0: leave, the
call has been interrupted); that between the last two, from which it is made so that polls come after some milliseconds;
the time of the last (0: there was none); and the call's context. All general registers are preserved,
where LLVM knows how to.

Only calls through gates are looked after: their context's THREAD is not 0. It is the thread state that the gate has to
restore, or one of these while the GIL is held:

    HELD    the first poll that looks at signals lets it go
    LENT    each poll that does lends it to other threads: the function calls Python, or counts references of objects
    KEPT    it is never let go: the function draws from generators of Python's

After a tick of the clock (1 to 4 ms), and then twenty times in a second, the thread that made the call goes to
`gate.poll`, which takes the GIL if it has been let go, runs Python's signal handlers, and lets the GIL go. If a handler
raises, the status of the call is INTERRUPTED, which every thread of a parallel region sees when it polls, and the
exception stays set in the thread of the call.
"""

from __future__ import annotations

import platform

from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context

CONVENTION = "preserve_mostcc " if platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") else ""
HELD = 1  # a context's THREAD while the GIL is held
LENT = 2
KEPT = 3
FIRST = 100_000  # nanoseconds after the first poll
AGAIN = 50_000_000  # nanoseconds between looks at signals
OFTEN = 2_000_000  # nanoseconds: polls that come sooner than this after each other are too many
SELDOM = 20_000_000  # and later than this, too few
MOST = 1024  # iterations between polls of loops that have others inside


def poll_ir() -> str:
    """The text of `pk_poll` and of `pk_set_poll(hook)`, which names `gate.poll`."""
    text = _POLL
    for name, value in {
        "CONVENTION": CONVENTION,
        "THREAD": Context.THREAD,
        "DUE": Context.DUE,
        "INTERRUPTED": INTERRUPTED,
        "CLOCK": 6,  # CLOCK_MONOTONIC_COARSE, read in a few nanoseconds; elsewhere the monotonic clock
        "FIRST": FIRST,
        "AGAIN": AGAIN,
        "OFTEN": OFTEN,
        "MOST": MOST,
        "SELDOM": SELDOM,
    }.items():
        text = text.replace(f"${name}$", str(value))
    return text


def support_text() -> str:
    """The text of `gate.poll`, which gives 0, or 1 if the call is to end; -1 in a thread that Python does not know."""
    text = _SUPPORT
    for name, value in {
        "THREAD": Context.THREAD,
        "ORDER": Context.ORDER,
        "INTERRUPTED": INTERRUPTED,
        "LENT": LENT,
        "KEPT": KEPT,
    }.items():
        text = text.replace(f"${name}$", str(value))
    return text


_POLL = """
@poll_hook = internal global ptr null
declare i32 @clock_gettime(i32, ptr)
define void @pk_set_poll(ptr %hook) {
  store ptr %hook, ptr @poll_hook
  ret void
}

define $CONVENTION$void @pk_poll(ptr %state) cold noinline {
entry:
  %ctx_p = getelementptr i8, ptr %state, i64 24
  %ctx = load ptr, ptr %ctx_p
  %time = alloca [2 x i64], align 8
  %status = load atomic i64, ptr %ctx monotonic, align 8
  %over = icmp eq i64 %status, $INTERRUPTED$
  br i1 %over, label %leave, label %ask
leave:
  store i64 0, ptr %state
  ret void
ask:
  %thread_p = getelementptr i8, ptr %ctx, i64 $THREAD$
  %thread = load atomic i64, ptr %thread_p monotonic, align 8
  %foreign = icmp eq i64 %thread, 0
  br i1 %foreign, label %never, label %clock
never:
  store i64 9223372036854775807, ptr %state
  ret void
clock:
  %r = call i32 @clock_gettime(i32 $CLOCK$, ptr %time)
  %s = load i64, ptr %time
  %ns_p = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns_p
  %whole = mul i64 %s, 1000000000
  %now = add i64 %whole, %ns
  %length_p = getelementptr i8, ptr %state, i64 8
  %length = load i64, ptr %length_p
  %last_p = getelementptr i8, ptr %state, i64 16
  %last = load i64, ptr %last_p
  %since0 = sub i64 %now, %last
  %unknown = icmp eq i64 %last, 0
  %since = select i1 %unknown, i64 $OFTEN$, i64 %since0
  %often = icmp slt i64 %since, $OFTEN$
  %seldom = icmp sgt i64 %since, $SELDOM$
  %more0 = shl i64 %length, 2
  %more = call i64 @llvm.smin.i64(i64 %more0, i64 $MOST$)
  %less0 = lshr i64 %length, 2
  %less = call i64 @llvm.smax.i64(i64 %less0, i64 1)
  %new0 = select i1 %often, i64 %more, i64 %length
  %new = select i1 %seldom, i64 %less, i64 %new0
  store i64 %new, ptr %state
  store i64 %new, ptr %length_p
  store i64 %now, ptr %last_p
  %due_p = getelementptr i8, ptr %ctx, i64 $DUE$
  %due = load atomic i64, ptr %due_p monotonic, align 8
  %unset = icmp eq i64 %due, 0
  br i1 %unset, label %begin, label %compare
begin:
  %soon = add i64 %now, $FIRST$
  store atomic i64 %soon, ptr %due_p monotonic, align 8
  ret void
compare:
  %early = icmp slt i64 %now, %due
  br i1 %early, label %go_on, label %look
go_on:
  ret void
look:
  %hook = load ptr, ptr @poll_hook
  %missing = icmp eq ptr %hook, null
  br i1 %missing, label %go_on, label %call
call:
  %answer = call i32 %hook(ptr %ctx)
  %worker = icmp slt i32 %answer, 0
  br i1 %worker, label %go_on, label %again
again:
  %later = add i64 %now, $AGAIN$
  store atomic i64 %later, ptr %due_p monotonic, align 8
  %ends = icmp ne i32 %answer, 0
  br i1 %ends, label %leave, label %go_on
}
"""

_SUPPORT = """
declare ptr @gate.PyGILState_GetThisThreadState()
declare void @gate.PyEval_RestoreThread(ptr)
declare ptr @gate.PyEval_SaveThread()
declare i32 @gate.PyErr_CheckSignals()
define i32 @gate.poll(ptr %ctx) cold noinline {
entry:
  %own = call ptr @gate.PyGILState_GetThisThreadState()
  %worker = icmp eq ptr %own, null
  br i1 %worker, label %not_python, label %python
not_python:
  ret i32 -1
python:
  %p = getelementptr i8, ptr %ctx, i64 $THREAD$
  %thread = load atomic ptr, ptr %p monotonic, align 8
  %word = ptrtoint ptr %thread to i64
  %held = icmp ule i64 %word, $KEPT$
  br i1 %held, label %look, label %take
take:
  call void @gate.PyEval_RestoreThread(ptr %thread)
  br label %look
look:
  %r = call i32 @gate.PyErr_CheckSignals()
  %raised = icmp ne i32 %r, 0
  br i1 %raised, label %interrupted, label %go_on
interrupted:
  %order = getelementptr i8, ptr %ctx, i64 $ORDER$
  store i64 -9223372036854775808, ptr %order
  store atomic i64 $INTERRUPTED$, ptr %ctx monotonic, align 8
  br label %go_on
go_on:
  %told = zext i1 %raised to i32
  %kept = icmp eq i64 %word, $KEPT$
  br i1 %kept, label %out, label %release
release:
  %saved = call ptr @gate.PyEval_SaveThread()
  %lent = icmp eq i64 %word, $LENT$
  br i1 %lent, label %take.back, label %stay
take.back:
  call void @gate.PyEval_RestoreThread(ptr %saved)
  br label %out
stay:
  store atomic ptr %saved, ptr %p monotonic, align 8
  br label %out
out:
  ret i32 %told
}
"""
