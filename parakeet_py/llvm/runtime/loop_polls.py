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
    BRIEF   it is never let go, as the first poll that looks at signals ends the call: it was to be short, and is begun
            again in optimised code (see `call.dispatch.tiers`); no exception is set then

After a tick of the clock (1 to 4 ms), and then twenty times in a second, the thread that made the call goes to
`gate.poll`, which takes the GIL if it has been let go, runs Python's signal handlers, and lets the GIL go. If a handler
raises, the status of the call is INTERRUPTED, which every thread of a parallel region sees when it polls, and the
exception stays set in the thread of the call.

In functions with handlers of exceptions around loops (`typed_ir.ir.Interrupted`) that would go past these. There the
lowest bit of DUE is set, QUIET: polls let the GIL go, or lend it, and run no handlers of signals. Loops that have a way
out to Python call

    i32 pk_look(ptr state)

instead, which gives 1 if a handler has raised; the exception is the first word of the context's ARGUMENTS then, which
owns it. `pk_poll_aloud` is `pk_poll` for loops that have none and may never end.
"""

from __future__ import annotations

from parakeet_py.base import machine
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context

CONVENTION = "preserve_mostcc " if machine.KEEPS_REGISTERS else ""
HELD = 1  # a context's THREAD while the GIL is held
LENT = 2
KEPT = 3
BRIEF = 4
FIRST = 100_000  # nanoseconds after the first poll
AGAIN = 50_000_000  # nanoseconds between looks at signals
OFTEN = 2_000_000  # nanoseconds: polls that come sooner than this after each other are too many
SELDOM = 20_000_000  # and later than this, too few
QUIET, ALOUD, TAKEN = 1, 2, 3  # how `gate.poll` is asked: run no handlers; run them; and take what they raise
MOST = 1024  # iterations between polls of loops that have others inside


# `pk_poll`, and `pk_set_poll(hook)`, which names `gate.poll`.
POLL = Source(
    """
def clock_gettime(clock: i32, time: ptr) -> i32: ...
poll_hook: ptr

# Nanoseconds on a monotonic clock.
@internal
def nanoseconds(clock: i32) -> i64:
    time = alloca(i64, 2)
    clock_gettime(clock, time)
    return time.i64 * 1000000000 + time.i64[1]

def pk_set_poll(hook: ptr):
    poll_hook.ptr = hook

@internal.noinline
def poll_by(state: ptr, looking: i32):
    ctx = state.CTX.ptr
    if atomic_load(ctx.i64, "monotonic") == INTERRUPTED:
        state.i64 = 0
        return
    if atomic_load(ctx.THREAD.i64, "monotonic") == 0:
        state.i64 = NEVER
        return
    now = nanoseconds(CLOCK)
    last = state.LAST.i64
    length = state.LENGTH.i64
    since = OFTEN if last == 0 else now - last
    if since < OFTEN:
        length = smin(length << 2, MOST)
    elif since > SELDOM:
        length = smax(length >> 2, 1)
    state.i64 = length
    state.LENGTH.i64 = length
    state.LAST.i64 = now
    due = atomic_load(ctx.DUE.i64, "monotonic")
    quiet = due & QUIET
    if due == quiet:
        atomic_store(ctx.DUE.i64, ((now + FIRST) & -2) | quiet, "monotonic")
        return
    hook = poll_hook.ptr
    if now < due or hook == null:
        return
    how = i32(quiet)
    if looking != 0:
        how = looking
    answer = hook.i32(ctx, how)
    if answer >= 0:
        atomic_store(ctx.DUE.i64, ((now + AGAIN) & -2) | quiet, "monotonic")
        if answer != 0:
            state.i64 = 0

@CONVENTION
@cold.noinline
def pk_poll(state: ptr):
    poll_by(state, 0)

@CONVENTION
@cold.noinline
def pk_poll_aloud(state: ptr):
    poll_by(state, ALOUD)

@CONVENTION
@cold.noinline
def pk_look(state: ptr) -> i32:
    poll_by(state, TAKEN)
    if state.i64 != 0:
        return 0
    state.i64 = NEVER
    return 1
""",
    {
        "CONVENTION": CONVENTION,
        "LENGTH": 8,
        "LAST": 16,
        "CTX": 24,
        "NEVER": (1 << 63) - 1,
        "QUIET": QUIET,
        "ALOUD": ALOUD,
        "TAKEN": TAKEN,
        "THREAD": Context.THREAD,
        "DUE": Context.DUE,
        "INTERRUPTED": INTERRUPTED,
        "CLOCK": 6,  # CLOCK_MONOTONIC_COARSE, read in a few nanoseconds; elsewhere the monotonic clock
        "FIRST": FIRST,
        "AGAIN": AGAIN,
        "OFTEN": OFTEN,
        "MOST": MOST,
        "SELDOM": SELDOM,
    },
)

# `gate.poll`, given one of these or 0, gives 0, or 1 if the call is to end; -1 in a thread that Python does not know.
SUPPORT = Source(
    """
def PyGILState_GetThisThreadState() -> ptr: ...
def PyEval_RestoreThread(thread: ptr): ...
def PyEval_SaveThread() -> ptr: ...
def PyErr_CheckSignals() -> i32: ...
def PyErr_Fetch(kind: ptr, value: ptr, traceback: ptr): ...
def PyErr_NormalizeException(kind: ptr, value: ptr, traceback: ptr): ...
def PyException_SetTraceback(value: ptr, traceback: ptr) -> i32: ...
def Py_DecRef(object: ptr): ...

# Move the exception that is set to the context.
@internal
def take_error(ctx: ptr):
    error = alloca(ptr, 3)
    PyErr_Fetch(error, error + 8, error + 16)
    PyErr_NormalizeException(error, error + 8, error + 16)
    if error.ptr[2] != null:
        PyException_SetTraceback(error.ptr[1], error.ptr[2])
        Py_DecRef(error.ptr[2])
    Py_DecRef(error.ptr)
    ctx.ARGUMENTS.ptr = error.ptr[1]

@cold.noinline
def poll(ctx: ptr, how: i32) -> i32:
    if PyGILState_GetThisThreadState() == null:
        return -1
    thread = i64(atomic_load(ctx.THREAD.ptr, "monotonic"))
    if ugt(thread, BRIEF):
        PyEval_RestoreThread(ptr(thread))
    raised = False
    if how != QUIET:
        raised = PyErr_CheckSignals() != 0
    if raised & (how == TAKEN):
        take_error(ctx)
    elif raised | (thread == BRIEF):
        ctx.ORDER.i64 = FIRST_OF_ALL
        atomic_store(ctx.i64, INTERRUPTED, "monotonic")
    if thread == BRIEF:
        return 1
    if thread != KEPT:
        saved = PyEval_SaveThread()
        if thread == LENT:
            PyEval_RestoreThread(saved)
        else:
            atomic_store(ctx.THREAD.ptr, saved, "monotonic")
    return i32(raised)
""",
    {
        "FIRST_OF_ALL": -(1 << 63),
        "THREAD": Context.THREAD,
        "ORDER": Context.ORDER,
        "ARGUMENTS": Context.ARGUMENTS,
        "QUIET": QUIET,
        "TAKEN": TAKEN,
        "INTERRUPTED": INTERRUPTED,
        "LENT": LENT,
        "KEPT": KEPT,
        "BRIEF": BRIEF,
    },
)
