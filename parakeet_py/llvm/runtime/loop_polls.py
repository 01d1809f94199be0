"""Looking up from long loops: for Ctrl-C, and to let the GIL go.

Generated loops that may run long call

    i64 pk_poll(i64 ctx, ptr state)     iterations until the next call; 0: leave, the call has been interrupted

once in a while. `state` is two words of the loop: the time of its last poll (0: none) and the number of iterations
given then. The number is adapted so that polls are some hundred in a second, whatever an iteration takes, and short
loops make none. Only calls through gates are looked after: their context's THREAD is not 0. It is the thread state that
the gate has to restore, or HELD or KEPT while the GIL is held. After a tick of the clock (1 to 4 ms), and then twenty
times in a second, the thread that made the call goes to `gate.poll`, which takes the GIL if it has been let go, runs
Python's signal handlers, and lets the GIL go (unless it is KEPT, by functions that draw from generators of Python's).
If a handler raises, the status of the call is INTERRUPTED, which every thread of a parallel region sees when it polls,
and the exception stays set in the thread of the call.
"""

from __future__ import annotations

from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context

HELD = 1  # a context's THREAD while the GIL is held
KEPT = 2  # and has to be
FIRST = 100_000  # nanoseconds after the first poll
AGAIN = 50_000_000  # nanoseconds between looks at signals
OFTEN = 2_000_000  # nanoseconds: polls that come sooner than this after each other are too many
SELDOM = 20_000_000  # and later than this, too few
MOST = 8192  # iterations between polls
LEAST = 16  # iterations before the first poll of an outermost loop that has others inside
LEAST_INSIDE = 32  # of one inside another
LEAST_ALONE = 1024  # of one that has none


def poll_ir() -> str:
    """The text of `pk_poll` and of `pk_set_poll(hook)`, which names `gate.poll`."""
    text = _POLL
    for name, value in {
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
    for name, value in {"THREAD": Context.THREAD, "ORDER": Context.ORDER, "INTERRUPTED": INTERRUPTED}.items():
        text = text.replace(f"${name}$", str(value))
    return text


_POLL = """
@poll_hook = internal global ptr null
declare i32 @clock_gettime(i32, ptr)
define void @pk_set_poll(ptr %hook) {
  store ptr %hook, ptr @poll_hook
  ret void
}

define i64 @pk_poll(i64 %context, ptr %state) cold noinline {
entry:
  %ctx = inttoptr i64 %context to ptr
  %time = alloca [2 x i64], align 8
  %status = load atomic i64, ptr %ctx monotonic, align 8
  %over = icmp eq i64 %status, $INTERRUPTED$
  br i1 %over, label %leave, label %ask
leave:
  ret i64 0
ask:
  %thread_p = getelementptr i8, ptr %ctx, i64 $THREAD$
  %thread = load atomic i64, ptr %thread_p monotonic, align 8
  %foreign = icmp eq i64 %thread, 0
  br i1 %foreign, label %never, label %clock
never:
  ret i64 9223372036854775807
clock:
  %r = call i32 @clock_gettime(i32 $CLOCK$, ptr %time)
  %s = load i64, ptr %time
  %ns_p = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns_p
  %whole = mul i64 %s, 1000000000
  %now = add i64 %whole, %ns
  %last = load i64, ptr %state
  store i64 %now, ptr %state
  %period_p = getelementptr i8, ptr %state, i64 8
  %period = load i64, ptr %period_p
  %since = sub i64 %now, %last
  %often = icmp slt i64 %since, $OFTEN$
  %seldom = icmp sgt i64 %since, $SELDOM$
  %more = shl i64 %period, 5
  %half0 = lshr i64 %period, 1
  %half = call i64 @llvm.smax.i64(i64 %half0, i64 1)
  %small = icmp slt i64 %period, $MOST$
  %grow = and i1 %often, %small
  %new0 = select i1 %grow, i64 %more, i64 %period
  %new1 = select i1 %seldom, i64 %half, i64 %new0
  %unknown = icmp eq i64 %last, 0
  %new = select i1 %unknown, i64 %period, i64 %new1
  store i64 %new, ptr %period_p
  %due_p = getelementptr i8, ptr %ctx, i64 $DUE$
  %due = load atomic i64, ptr %due_p monotonic, align 8
  %unset = icmp eq i64 %due, 0
  br i1 %unset, label %begin, label %compare
begin:
  %soon = add i64 %now, $FIRST$
  store atomic i64 %soon, ptr %due_p monotonic, align 8
  ret i64 %new
compare:
  %early = icmp slt i64 %now, %due
  br i1 %early, label %go_on, label %look
go_on:
  ret i64 %new
look:
  %hook = load ptr, ptr @poll_hook
  %missing = icmp eq ptr %hook, null
  br i1 %missing, label %go_on, label %call
call:
  %told = call i32 %hook(ptr %ctx)
  %worker = icmp slt i32 %told, 0
  br i1 %worker, label %go_on, label %again
again:
  %later = add i64 %now, $AGAIN$
  store atomic i64 %later, ptr %due_p monotonic, align 8
  %ends = icmp ne i32 %told, 0
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
  %held = icmp ule i64 %word, 2
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
  %kept = icmp eq i64 %word, 2
  br i1 %kept, label %out, label %release
release:
  %saved = call ptr @gate.PyEval_SaveThread()
  store atomic ptr %saved, ptr %p monotonic, align 8
  br label %out
out:
  ret i32 %told
}
"""
