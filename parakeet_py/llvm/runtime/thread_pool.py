"""The thread pool that runs parallel regions, in low-level Python.

    void pk_parallel(ptr ctx, ptr body, ptr frame, i64 n, i64 grain, i32 max_threads)
    body: void (ptr ctx, ptr frame, i64 lo, i64 hi)

[0, n) is cut into chunks whose bounds are multiples of `grain` (the last one is short), about `CHUNKS_PER_THREAD`
for each thread and never smaller than a grain.  Each thread has a share of them, adjacent ones, and takes the first
that is left of it; when there is none it takes the last of another's.  So a thread mostly gets what it got in the
region before, and finds in its own cache what it has left there.  A share is one word, and a region's ticket another:

    share  = epoch << 40 | end << 20 | next
    ticket = epoch << 40 | shares << 24 | helpers still welcome

A thread claims a chunk by a compare-and-swap of a share, a helper its place by one of the ticket.  Since the swap
compares the epoch, a claim that succeeds belongs to the region whose description is stored beside the shares, and that
region cannot end before the claimed chunk is done: a late helper reads nothing stale, and no thread ever waits for one
that has claimed nothing.

The caller works too, and polls after each chunk and while it waits (`loop_polls`); once the call has been interrupted,
chunks are claimed and not run.  A region has ended when all its chunks are done.  It runs in the caller alone, as one
call body(ctx, frame, 0, n), when it is small (n <= grain), when one thread is asked for, and when the pool is busy:
inside another region (nested), or with a region of another Python thread.

A worker that has slept is never woken on the caller's CPU. Linux would put it there, behind the caller, whenever it
takes the other CPUs for busy, as it does in a virtual machine for idle ones that the host has descheduled; the region
then runs in the caller alone, and so do the next ones. So workers may run on all CPUs that the caller may use but the
one it is on (all of them if that is the only one), which Linux is asked for when workers are woken from another CPU
than the last time.

Idle workers spin for a moment, then sleep on a futex; a waiting caller spins, then yields, then sleeps, so that
nothing collapses when there are more runnable threads than CPUs.  Workers are started when they are first needed,
block all signals (those are Python's main thread's to handle), and leave the floating-point state alone but for the
flags of what has happened, which go to the context of the call (`error_state` reports them).  After
fork() the child has no workers and a free pool; it starts its own.

Only Linux has the futex; elsewhere `pool_ir` gives a `pk_parallel` that runs every region in the caller.
"""

from __future__ import annotations

from parakeet_py.base import machine
from parakeet_py.base.config import MAX_THREADS
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context
from parakeet_py.llvm.runtime.error_state import ALL_FLAGS, HAS_FLAGS

CHUNKS_PER_THREAD = 6
MOST_SHARES = 64
SPIN_NANOSECONDS = 100_000  # how long an idle worker spins before it sleeps
LEAST_SPINS = 500
JOIN_SPINS = 2000
JOIN_YIELDS = 200
JOIN_NANOSECONDS = 50_000_000  # how long a waiting caller sleeps before it looks at signals
CPU_SET_BYTES = 128  # of a set of CPUs: 1024 bits


# What a waiting thread calls, to tell the CPU that it spins.
_PAUSE = """
def sched_yield() -> i32: ...

SPIN

@internal.alwaysinline
def pause():
    CALL
"""
_SPIN = {  # by processor: LLVM's name of the instruction of a thread that spins, its parameters, and a call
    "x86_64": ("llvm.x86.sse2.pause", "", "spin()"),
    "aarch64": ("llvm.aarch64.hint", "code: i32", "spin(1)"),
}


def pause(processor: str = machine.PROCESSOR) -> Source:
    if processor not in _SPIN:
        return Source(_PAUSE.replace("SPIN", "").replace("CALL", "pass"))
    name, parameters, call = _SPIN[processor]
    declaration = f'@symbol("{name}")\ndef spin({parameters}): ...'
    return Source(_PAUSE.replace("SPIN", declaration).replace("CALL", call))


def has_pool() -> bool:
    """Whether regions run on several threads on this platform."""
    return machine.HAS_FUTEXES


def pool(processor: str = machine.PROCESSOR) -> Source:
    """The pool for a processor, after `pause` and `loop_polls.POLL`: `pk_parallel`, `threads_after_fork`.

    `region_sharing` comes with it.
    """
    if not has_pool():
        return SERIAL
    constants = {
        "HAS_FLAGS": HAS_FLAGS and processor == machine.PROCESSOR,
        "ALL_FLAGS": ALL_FLAGS,
        "FLAGS": Context.FLAGS,
        **machine.SYSTEM_CALLS[processor],
        "WAIT": 128,  # FUTEX_WAIT | FUTEX_PRIVATE_FLAG
        "WAKE": 129,
        "SPIN_256": SPIN_NANOSECONDS * 256,
        "LEAST_SPINS": LEAST_SPINS,
        "JOIN_SPINS": JOIN_SPINS,
        "JOIN_YIELDS": JOIN_YIELDS,
        "JOIN_NANOSECONDS": JOIN_NANOSECONDS,
        "SETMASK": 2,  # SIG_SETMASK
        "CPU_SET": CPU_SET_BYTES,
        "MAX_THREADS": MAX_THREADS,
        "CHUNKS_PER_THREAD": CHUNKS_PER_THREAD,
        "INTERRUPTED": INTERRUPTED,
        "EPOCH": 1 << 40,
        "EPOCH_MASK": -(1 << 40),
        "WELCOME_MASK": (1 << 24) - 1,
        "COUNT_SHIFT": 24,
        "COUNT_MASK": (1 << 16) - 1,
        "NUMBER_BITS": 20,
        "NUMBER_MASK": (1 << 20) - 1,
        "END": 1 << 20,
        "SHARES": MOST_SHARES,
        "SHARE_BYTES": 64,
        "SHARE_WORDS": MOST_SHARES * 8,
        **{name: 8 * place for place, name in enumerate(("CTX", "BODY", "FRAME", "EXTENT", "LENGTH"))},
        "STATE_CTX": 24,
    }
    return Source(_POOL, constants)


# Regions run in the caller.
SERIAL = Source("""
def pk_parallel(ctx: ptr, body: ptr, frame: ptr, n: i64, grain: i64, max_threads: i32):
    if n > 0:
        body.void(ctx, frame, 0, n)

@internal
def threads_after_fork(): pass

def pk_workers() -> i32:
    return 0
""")

_POOL = """
ticket: i64 @ 64 = 0              # changes with every helper that comes
shares: i64[SHARE_WORDS] @ 64         # one in a line of the cache
finished: i32 @ 64 = 0            # chunks done in this region
waiting: i32 = 0                  # the caller sleeps on `finished`
alarm: i32 @ 64 = 0               # workers sleep on this
sleepers: i32 @ 64 = 0
busy: i32 @ 64 = 0                # held while a region runs
workers: i32 = 0                  # written with `busy` held
ids: i32[MAX_THREADS] @ 64        # of the workers' threads, once they run
apart: i32 = -1                   # the CPU that the first `placed` workers keep off
placed: i32 = 0
region: i64[5] @ 64               # the region that runs

def pthread_create(thread: ptr, attributes: ptr, start: ptr, argument: ptr) -> i32: ...
def pthread_detach(thread: i64) -> i32: ...
def pthread_sigmask(how: i32, new: ptr, old: ptr) -> i32: ...
def syscall(number: i64, *arguments) -> i64: ...
def sched_getcpu() -> i32: ...
def sched_getaffinity(thread: i32, bytes: i64, set: ptr) -> i32: ...
def sched_setaffinity(thread: i32, bytes: i64, set: ptr) -> i32: ...
@symbol("llvm.x86.sse.stmxcsr")
def store_flags(place: ptr): ...
@symbol("llvm.x86.sse.ldmxcsr")
def load_flags(place: ptr): ...

# Move the floating-point flags of this thread to the context of the call.
@internal
def collect_flags(ctx: ptr):
    if HAS_FLAGS:
        place = alloca(i32)
        store_flags(place)
        register = place.i32
        flags = register & ALL_FLAGS
        if flags != 0:
            atomic_or(ctx.FLAGS.i32, flags, "monotonic")
            place.i32 = register & (-1 - ALL_FLAGS)
            load_flags(place)

# Poll in the thread that has made the call.
@internal.cold.noinline
def look_up(ctx: ptr):
    state = alloca(i64, 4)
    memset(state, 0, STATE_CTX)
    state.STATE_CTX.ptr = ctx
    pk_poll(state)

@internal
def wake(place: ptr, most: i32):
    syscall(FUTEX, place, WAKE, i64(most), null, null, 0)

# The first or the last chunk of a share; -1 if there is none left.
@internal
def claim(share: ptr, epoch: i64, first: i1) -> i64:
    while True:
        now = atomic_load(share.i64, "acquire")
        next = now & NUMBER_MASK
        end = (now >> NUMBER_BITS) & NUMBER_MASK
        if (now & EPOCH_MASK != epoch) | (next >= end):
            return -1
        if compare_exchange(share.i64, now, now + 1 if first else now - END, "acq_rel"):
            return next if first else end - 1

@internal
def run_chunk(helper: i1, chunk: i64):
    ctx = region.CTX.ptr
    if atomic_load(ctx.i64, "monotonic") != INTERRUPTED:
        length = region.LENGTH.i64
        start = chunk * length
        stop = start + smin(region.EXTENT.i64 - start, length)
        region.BODY.ptr.void(ctx, region.FRAME.ptr, start, stop)
        collect_flags(ctx)
        if not helper:
            look_up(ctx)
    atomic_add(finished.i32, 1, "seq_cst")
    if atomic_load(waiting.i32, "seq_cst") != 0:
        wake(finished, 1)

@internal
def drain_share(helper: i1, epoch: i64, share: ptr, first: i1):
    chunk = claim(share, epoch, first)
    while chunk >= 0:
        run_chunk(helper, chunk)
        chunk = claim(share, epoch, first)

# Claim chunks of a region and run them: those of the own share, and what is left of others.
@internal
def drain(helper: i1, epoch: i64, count: i64, own: i64):
    drain_share(helper, epoch, shares + own * SHARE_BYTES, True)
    other = own + 1
    left = count - 1
    while left > 0:
        if other >= count:
            other = 0
        drain_share(helper, epoch, shares + other * SHARE_BYTES, False)
        other += 1
        left -= 1

# Is there a place for one more helper?
@internal.alwaysinline
def work_for_me() -> i1:
    return atomic_load(ticket.i64, "seq_cst") & WELCOME_MASK != 0

@internal
def help(number: i64):
    now = atomic_load(ticket.i64, "acquire")
    if now & WELCOME_MASK != 0 and compare_exchange(ticket.i64, now, now - 1, "acq_rel"):
        count = (now >> COUNT_SHIFT) & COUNT_MASK
        drain(True, now & EPOCH_MASK, count, (number + 1) % count)

# How many pauses last SPIN_NANOSECONDS: a pause is 4 to 140 cycles, according to the CPU.
@internal.noinline
def measure_pause() -> i32:
    start = nanoseconds(1)
    k = 0
    while k < 256:
        pause()
        k += 1
    return i32(smax(SPIN_256 // smax(nanoseconds(1) - start, 256), LEAST_SPINS))

@internal
def sleep_until_alarm():
    # `alarm` is read before this worker counts as a sleeper, and the ticket is looked at after that: a region that
    # starts in between either is seen here, or sees the sleeper and changes `alarm`.
    seen = atomic_load(alarm.i32, "seq_cst")
    atomic_add(sleepers.i32, 1, "seq_cst")
    if not work_for_me():
        syscall(FUTEX, alarm, WAIT, i64(seen), null, null, 0)
    atomic_sub(sleepers.i32, 1, "seq_cst")

@internal
def worker(number: ptr) -> ptr:
    atomic_store(ids.i32[i64(number)], i32(syscall(GETTID)), "release")
    patience = measure_pause()
    while True:
        spins: i32 = 0
        while not work_for_me():
            pause()
            spins += 1
            if uge(spins, patience):
                sleep_until_alarm()
                break
        help(i64(number))

# Start workers until there are so many (called with `busy` held); the result is how many there are.
@internal.noinline
def grow(wanted: i32) -> i32:
    thread = alloca(i64)
    all = alloca(i8, 128, 16)
    old = alloca(i8, 128, 16)
    memset(all, -1, 128)
    pthread_sigmask(SETMASK, all, old)
    while workers.i32 < wanted and pthread_create(thread, null, worker, ptr(i64(workers.i32))) == 0:
        pthread_detach(thread.i64)
        workers.i32 += 1
    pthread_sigmask(SETMASK, old, null)
    return workers.i32

# Keep the workers off the caller's CPU (called with `busy` held).
@internal
def keep_apart(have: i32):
    cpu = sched_getcpu()
    if cpu != apart.i32 or placed.i32 != have:
        place_workers(have, cpu)

@internal.noinline
def place_workers(have: i32, cpu: i32):
    set = alloca(i8, CPU_SET, 16)
    memset(set, 0, CPU_SET)
    if sched_getaffinity(0, CPU_SET, set) != 0 or uge(cpu, 8 * CPU_SET):
        return
    place = set + i64(cpu >> 3)
    bits = place.i8
    place.i8 = bits & ~(i8(1) << i8(cpu & 7))
    any: i8 = 0
    k = 0
    while k < CPU_SET:
        any |= set.i8[k]
        k += 1
    if any == 0:
        place.i8 = bits
    reached: i32 = 0
    k = 0
    while k < i64(have):
        id = atomic_load(ids.i32[k], "acquire")
        if id != 0:
            sched_setaffinity(id, CPU_SET, set)
            reached += 1
        k += 1
    apart.i32 = cpu
    placed.i32 = reached

def pk_parallel(ctx: ptr, body: ptr, frame: ptr, n: i64, least: i64, max_threads: i32):
    grain = smax(least, 1)
    if n <= grain or max_threads <= 1 or not compare_exchange(busy.i32, 0, 1, "acquire"):
        if n > 0:
            body.void(ctx, frame, 0, n)
        return
    # a chunk is a whole number of grains
    grains = (n - 1) // grain + 1
    threads = umin(i64(smin(max_threads, 1024)), grains)
    goal = umin(threads * CHUNKS_PER_THREAD, grains)
    length = (grains + goal - 1) // goal
    chunks = (grains + length - 1) // length
    wanted = i32(threads - 1)
    have = workers.i32
    if have < wanted:
        have = grow(wanted)
    helpers = smin(have, wanted)
    region.CTX.ptr = ctx
    region.BODY.ptr = body
    region.FRAME.ptr = frame
    region.EXTENT.i64 = n
    region.LENGTH.i64 = length * grain
    atomic_store(finished.i32, 0, "monotonic")
    epoch = (atomic_load(ticket.i64, "monotonic") & EPOCH_MASK) + EPOCH
    count = umin(umin(i64(helpers) + 1, chunks), SHARES)
    start = 0
    share = 0
    while share < count:
        stop = (share + 1) * chunks // count
        atomic_store((shares + share * SHARE_BYTES).i64, epoch | stop << NUMBER_BITS | start, "release")
        start = stop
        share += 1
    atomic_store(ticket.i64, epoch | count << COUNT_SHIFT | i64(helpers), "seq_cst")
    # wake as many as are welcome beyond those that are up and will see the ticket by themselves
    asleep = atomic_load(sleepers.i32, "seq_cst")
    called = smin(helpers - (have - asleep), asleep)
    if called > 0:
        keep_apart(have)
        atomic_add(alarm.i32, 1, "seq_cst")
        wake(alarm, called)
    drain(False, epoch, count, 0)
    join(ctx, i32(chunks))
    atomic_store(ticket.i64, epoch, "seq_cst")  # nobody comes any more
    atomic_store(busy.i32, 0, "release")

# Wait until so many chunks are done.
@internal
def join(ctx: ptr, chunks: i32):
    spins: i32 = 0
    yields: i32 = 0
    while atomic_load(finished.i32, "acquire") != chunks:
        if spins < JOIN_SPINS:
            pause()
            spins += 1
        elif yields < JOIN_YIELDS:
            sched_yield()
            yields += 1
        else:
            limit = alloca(i64, 2)
            atomic_store(waiting.i32, 1, "seq_cst")
            done = atomic_load(finished.i32, "seq_cst")
            while done != chunks:
                limit.i64 = 0
                limit.i64[1] = JOIN_NANOSECONDS
                syscall(FUTEX, finished, WAIT, i64(done), limit, null, 0)
                look_up(ctx)
                done = atomic_load(finished.i32, "seq_cst")
            atomic_store(waiting.i32, 0, "seq_cst")

# The child of fork() has one thread: no workers, no sleeping thread, no running region.
@internal
def threads_after_fork():
    ticket.i64 = ticket.i64 & EPOCH_MASK
    workers.i32 = 0
    placed.i32 = 0
    memset(ids, 0, 4 * MAX_THREADS)
    sleepers.i32 = 0
    waiting.i32 = 0
    finished.i32 = 0
    atomic_store(busy.i32, 0, "seq_cst")
    atomic_store(measuring.i32, 0, "seq_cst")

def pk_workers() -> i32:
    return workers.i32
"""
