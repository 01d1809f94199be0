"""The thread pool that runs parallel regions, as LLVM IR text.

    void pk_parallel(ptr ctx, ptr body, ptr frame, i64 n, i64 grain, i32 max_threads)
    body: void (ptr ctx, ptr frame, i64 lo, i64 hi)

[0, n) is cut into chunks whose bounds are multiples of `grain` (the last one is short), about `CHUNKS_PER_THREAD`
for each thread and never smaller than a grain.  One 64-bit ticket holds the whole state of a region:

    ticket = epoch << 40 | helpers still welcome << 24 | chunks not yet claimed

A thread claims a chunk by a compare-and-swap that takes 1 off; the first claim of a helper also takes a place off
the middle field.  Since the swap compares all three fields, a claim that succeeds belongs to the region whose
description is stored beside the ticket, and that region cannot end before the claimed chunk is done: a late
helper reads nothing stale, and no thread ever waits for one that has claimed nothing.

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

import platform
import sys

from parakeet_py.base.config import MAX_THREADS
from parakeet_py.llvm.runtime.call_context import INTERRUPTED, Context
from parakeet_py.llvm.runtime.error_state import ALL_FLAGS, HAS_FLAGS
from parakeet_py.llvm.runtime.loop_polls import CONVENTION

CHUNKS_PER_THREAD = 6
SPIN_NANOSECONDS = 100_000  # how long an idle worker spins before it sleeps
LEAST_SPINS = 500
JOIN_SPINS = 2000
JOIN_YIELDS = 200
JOIN_NANOSECONDS = 50_000_000  # how long a waiting caller sleeps before it looks at signals
CPU_SET_BYTES = 128  # of a set of CPUs: 1024 bits

_FUTEX_SYSCALL = {"x86_64": 202, "amd64": 202, "aarch64": 98, "arm64": 98, "riscv64": 98}
_GETTID_SYSCALL = {"x86_64": 186, "amd64": 186, "aarch64": 178, "arm64": 178, "riscv64": 178}
_PAUSE = {"x86_64": "pause", "amd64": "pause", "aarch64": "yield", "arm64": "yield"}


def pause_ir() -> str:
    """What a waiting thread calls: `@pause()`, telling the CPU that it spins, and `@sched_yield()`."""
    instruction = _PAUSE.get(platform.machine().lower())
    call = f'  call void asm sideeffect "{instruction}", "~{{memory}}"()\n' if instruction else ""
    return f"declare i32 @sched_yield()\ndefine internal void @pause() alwaysinline {{\n{call}  ret void\n}}\n"


def has_pool() -> bool:
    """Whether regions run on several threads on this platform."""
    return sys.platform == "linux" and platform.machine().lower() in _FUTEX_SYSCALL


def flags_ir() -> str:
    """`@collect_flags(ptr ctx)`: moves the floating-point flags of this thread to the context of the call."""
    if not HAS_FLAGS:
        return "define internal void @collect_flags(ptr %ctx) alwaysinline {\n  ret void\n}\n"
    text = _COLLECT_FLAGS
    for name, value in {"ALL_FLAGS": ALL_FLAGS, "NO_FLAGS": ~ALL_FLAGS, "FLAGS": Context.FLAGS}.items():
        text = text.replace(f"${name}$", str(value))
    return text


def pool_ir() -> str:
    """The text of the pool for this platform, after `pause_ir` and `poll_ir`: `pk_parallel`, `threads_after_fork`."""
    if not has_pool():
        return _SERIAL
    constants: dict[str, object] = {
        "FUTEX": _FUTEX_SYSCALL[platform.machine().lower()],
        "WAIT": 128,  # FUTEX_WAIT | FUTEX_PRIVATE_FLAG
        "WAKE": 129,
        "SPIN_256": SPIN_NANOSECONDS * 256,
        "LEAST_SPINS": LEAST_SPINS,
        "JOIN_SPINS": JOIN_SPINS,
        "JOIN_YIELDS": JOIN_YIELDS,
        "JOIN_NANOSECONDS": JOIN_NANOSECONDS,
        "GETTID": _GETTID_SYSCALL[platform.machine().lower()],
        "CPU_SET": CPU_SET_BYTES,
        "CPUS": 8 * CPU_SET_BYTES,
        "MOST_WORKERS": MAX_THREADS,
        "IDS_BYTES": 4 * MAX_THREADS,
        "CHUNKS_PER_THREAD": CHUNKS_PER_THREAD,
        "EPOCH": 1 << 40,
        "INTERRUPTED": INTERRUPTED,
        "CONVENTION": CONVENTION,
        "EPOCH_MASK": -(1 << 40),
        "HELPER": 1 << 24,
        "HELPER_MASK": 0xFFFF << 24,
        "CHUNK_MASK": (1 << 24) - 1,
        "CLAIM_AND_JOIN": (1 << 24) + 1,
    }
    text = flags_ir() + _POOL
    for name, value in constants.items():
        text = text.replace(f"${name}$", str(value))
    return text


_SERIAL = """
define void @pk_parallel(ptr %ctx, ptr %body, ptr %frame, i64 %n, i64 %grain, i32 %max_threads) {
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %run, label %out
run:
  call void %body(ptr %ctx, ptr %frame, i64 0, i64 %n)
  br label %out
out:
  ret void
}
define internal void @threads_after_fork() {
  ret void
}
define i32 @pk_workers() {
  ret i32 0
}
"""

_COLLECT_FLAGS = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal void @collect_flags(ptr %ctx) {
entry:
  %place = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %register = load i32, ptr %place
  %flags = and i32 %register, $ALL_FLAGS$
  %none = icmp eq i32 %flags, 0
  br i1 %none, label %out, label %move
move:
  %flags_p = getelementptr i8, ptr %ctx, i64 $FLAGS$
  %before = atomicrmw or ptr %flags_p, i32 %flags monotonic
  %cleared = and i32 %register, $NO_FLAGS$
  store i32 %cleared, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  br label %out
out:
  ret void
}
"""

_POOL = """
@ticket   = internal global i64 0, align 64        ; changes with every claim
@finished = internal global i32 0, align 64        ; chunks done in this region
@waiting  = internal global i32 0, align 4         ; the caller sleeps on @finished
@alarm    = internal global i32 0, align 64        ; workers sleep on this
@sleepers = internal global i32 0, align 64
@busy     = internal global i32 0, align 64        ; held while a region runs
@workers  = internal global i32 0, align 4         ; written with @busy held
@ids      = internal global [$MOST_WORKERS$ x i32] zeroinitializer, align 64  ; of the workers' threads, once they run
@apart    = internal global i32 -1, align 4        ; the CPU that the first @placed workers keep off
@placed   = internal global i32 0, align 4
; ctx, body, frame, n, chunk length, chunk count
@region   = internal global {ptr, ptr, ptr, i64, i64, i64} zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

; Poll in the thread that has made the call.
define internal void @look_up(ptr %ctx) cold noinline {
  %state = alloca [4 x i64], align 8
  %ctx_p = getelementptr i8, ptr %state, i64 24
  store [3 x i64] zeroinitializer, ptr %state
  store ptr %ctx, ptr %ctx_p
  call $CONVENTION$void @pk_poll(ptr %state)
  ret void
}

; Claim chunks of the region that is running and run them; %take is what the first claim takes off the ticket.
define internal void @drain(i1 %helper, i64 %take) {
entry:
  br label %look
look:
  %joined = phi i1 [false, %entry], [%joined, %retry], [true, %next]
  %epoch = phi i64 [0, %entry], [%epoch, %retry], [%mine, %next]
  %amount = phi i64 [%take, %entry], [%amount, %retry], [1, %next]
  %t = load atomic i64, ptr @ticket acquire, align 8
  %left = and i64 %t, $CHUNK_MASK$
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %allowed
allowed:
  %places = and i64 %t, $HELPER_MASK$
  %full = icmp eq i64 %places, 0
  %mine = and i64 %t, $EPOCH_MASK$
  %other = icmp ne i64 %mine, %epoch
  %newcomer = and i1 %helper, %full
  %refused = select i1 %joined, i1 %other, i1 %newcomer
  br i1 %refused, label %out, label %claim
claim:
  %after = sub i64 %t, %amount
  %swap = cmpxchg ptr @ticket, i64 %t, i64 %after acq_rel monotonic
  %won = extractvalue {i64, i1} %swap, 1
  br i1 %won, label %run, label %retry
retry:
  br label %look
run:
  %ctx = load ptr, ptr @region
  %body = load ptr, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 1)
  %frame = load ptr, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 2)
  %n = load i64, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 3)
  %length = load i64, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 4)
  %count = load i64, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 5)
  %index = sub i64 %count, %left
  %lo = mul i64 %index, %length
  %rest = sub i64 %n, %lo
  %size = call i64 @llvm.smin.i64(i64 %rest, i64 %length)
  %hi = add i64 %lo, %size
  %status = load atomic i64, ptr %ctx monotonic, align 8
  %interrupted = icmp eq i64 %status, $INTERRUPTED$
  br i1 %interrupted, label %ran, label %start
start:
  call void %body(ptr %ctx, ptr %frame, i64 %lo, i64 %hi)
  call void @collect_flags(ptr %ctx)
  br i1 %helper, label %ran, label %poll
poll:
  call void @look_up(ptr %ctx)
  br label %ran
ran:
  %d = atomicrmw add ptr @finished, i32 1 seq_cst
  %w = load atomic i32, ptr @waiting seq_cst, align 4
  %wake = icmp ne i32 %w, 0
  br i1 %wake, label %signal, label %next
signal:
  %s = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr @finished, i32 $WAKE$, i32 1, ptr null, ptr null, i32 0)
  br label %next
next:
  br label %look
out:
  ret void
}

; Is there a chunk, and a place for one more helper?
define internal i1 @work_for_me() alwaysinline {
  %t = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %t, $CHUNK_MASK$
  %places = and i64 %t, $HELPER_MASK$
  %some = icmp ne i64 %left, 0
  %room = icmp ne i64 %places, 0
  %yes = and i1 %some, %room
  ret i1 %yes
}

; Nanoseconds on the monotonic clock.
define internal i64 @now() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %np = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %np
  %whole = mul i64 %seconds, 1000000000
  %ns = add i64 %whole, %rest
  ret i64 %ns
}

; How many pauses last SPIN_NANOSECONDS: a pause is 4 to 140 cycles, according to the CPU.
define internal i32 @measure_pause() noinline {
entry:
  %start = call i64 @now()
  br label %loop
loop:
  %k = phi i32 [0, %entry], [%k1, %loop]
  call void @pause()
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 256
  br i1 %more, label %loop, label %done
done:
  %end = call i64 @now()
  %took = sub i64 %end, %start
  %some = call i64 @llvm.smax.i64(i64 %took, i64 256)
  %spins = udiv i64 $SPIN_256$, %some
  %least = call i64 @llvm.smax.i64(i64 %spins, i64 $LEAST_SPINS$)
  %result = trunc i64 %least to i32
  ret i32 %result
}

define internal ptr @worker(ptr %number) {
entry:
  %index = ptrtoint ptr %number to i64
  %id64 = call i64 (i64, ...) @syscall(i64 $GETTID$)
  %id = trunc i64 %id64 to i32
  %place = getelementptr i32, ptr @ids, i64 %index
  store atomic i32 %id, ptr %place release, align 4
  %patience = call i32 @measure_pause()
  br label %idle
idle:
  br label %spin
spin:
  %k = phi i32 [0, %idle], [%k1, %again]
  %yes = call i1 @work_for_me()
  br i1 %yes, label %work, label %again
again:
  call void @pause()
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %patience
  br i1 %more, label %spin, label %sleep
sleep:
  ; @alarm is read before this worker counts as a sleeper, and the ticket is looked at after that: a region that
  ; starts in between either is seen here, or sees the sleeper and changes @alarm.
  %alarm = load atomic i32, ptr @alarm seq_cst, align 4
  %s0 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %late = call i1 @work_for_me()
  br i1 %late, label %awake, label %wait
wait:
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr @alarm, i32 $WAIT$, i32 %alarm, ptr null, ptr null, i32 0)
  br label %awake
awake:
  %s1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %work
work:
  call void @drain(i1 true, i64 $CLAIM_AND_JOIN$)
  br label %idle
}

; Start workers until there are %wanted (called with @busy held); the result is how many there are.
define internal i32 @grow(i32 %wanted) noinline {
entry:
  %thread = alloca i64
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  %m = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %check
check:
  %have = load i32, ptr @workers
  %enough = icmp sge i32 %have, %wanted
  br i1 %enough, label %out, label %start
start:
  %index = zext i32 %have to i64
  %number = inttoptr i64 %index to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %number)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %out
started:
  %id = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %id)
  %have1 = add i32 %have, 1
  store i32 %have1, ptr @workers
  br label %check
out:
  %r = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %now = load i32, ptr @workers
  ret i32 %now
}

; Keep the workers off the caller's CPU (called with @busy held).
define internal void @keep_apart(i32 %have) {
entry:
  %cpu = call i32 @sched_getcpu()
  %last = load i32, ptr @apart
  %stayed = icmp eq i32 %cpu, %last
  %placed = load i32, ptr @placed
  %nobody.new = icmp eq i32 %placed, %have
  %same = and i1 %stayed, %nobody.new
  br i1 %same, label %out, label %tell
tell:
  call void @tell_apart(i32 %have, i32 %cpu)
  br label %out
out:
  ret void
}

define internal void @tell_apart(i32 %have, i32 %cpu) noinline {
entry:
  %set = alloca [$CPU_SET$ x i8], align 16
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 $CPU_SET$, i1 false)
  %got = call i32 @sched_getaffinity(i32 0, i64 $CPU_SET$, ptr %set)
  %fine = icmp eq i32 %got, 0
  %known = icmp ult i32 %cpu, $CPUS$
  %usable = and i1 %fine, %known
  br i1 %usable, label %take, label %out
take:
  %byte = lshr i32 %cpu, 3
  %at = zext i32 %byte to i64
  %place = getelementptr i8, ptr %set, i64 %at
  %bits = load i8, ptr %place
  %low = and i32 %cpu, 7
  %shift = trunc i32 %low to i8
  %bit = shl i8 1, %shift
  %rest = xor i8 %bit, -1
  %without = and i8 %bits, %rest
  store i8 %without, ptr %place
  br label %count
count:
  %k = phi i64 [0, %take], [%k1, %count]
  %any = phi i8 [0, %take], [%any1, %count]
  %of = getelementptr i8, ptr %set, i64 %k
  %some = load i8, ptr %of
  %any1 = or i8 %any, %some
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, $CPU_SET$
  br i1 %more, label %count, label %counted
counted:
  %none = icmp eq i8 %any1, 0
  br i1 %none, label %whole, label %each
whole:
  store i8 %bits, ptr %place
  br label %each
each:
  %i = phi i32 [0, %counted], [0, %whole], [%i1, %next]
  %told = phi i32 [0, %counted], [0, %whole], [%told1, %next]
  %left = icmp ult i32 %i, %have
  br i1 %left, label %one, label %done
one:
  %index = zext i32 %i to i64
  %slot = getelementptr i32, ptr @ids, i64 %index
  %id = load atomic i32, ptr %slot acquire, align 4
  %runs = icmp ne i32 %id, 0
  br i1 %runs, label %set.it, label %next
set.it:
  %r = call i32 @sched_setaffinity(i32 %id, i64 $CPU_SET$, ptr %set)
  br label %next
next:
  %counts = zext i1 %runs to i32
  %told1 = add i32 %told, %counts
  %i1 = add i32 %i, 1
  br label %each
done:
  store i32 %cpu, ptr @apart
  store i32 %told, ptr @placed
  br label %out
out:
  ret void
}

define void @pk_parallel(ptr %ctx, ptr %body, ptr %frame, i64 %n, i64 %grain0, i32 %max_threads) {
entry:
  %limit = alloca [2 x i64], align 8
  %limit.ns = getelementptr i8, ptr %limit, i64 8
  %grain = call i64 @llvm.smax.i64(i64 %grain0, i64 1)
  %small = icmp sle i64 %n, %grain
  %one = icmp sle i32 %max_threads, 1
  %alone = or i1 %small, %one
  br i1 %alone, label %serial, label %try
try:
  %lock = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue {i32, i1} %lock, 1
  br i1 %free, label %plan, label %serial
serial:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %whole, label %nothing
whole:
  call void %body(ptr %ctx, ptr %frame, i64 0, i64 %n)
  ret void
nothing:
  ret void

plan:
  ; a chunk is a whole number of grains
  %n1 = sub i64 %n, 1
  %g1 = udiv i64 %n1, %grain
  %grains = add i64 %g1, 1
  %threads0 = call i32 @llvm.smin.i32(i32 %max_threads, i32 1024)
  %threads1 = zext i32 %threads0 to i64
  %threads = call i64 @llvm.umin.i64(i64 %threads1, i64 %grains)
  %goal0 = mul i64 %threads, $CHUNKS_PER_THREAD$
  %goal = call i64 @llvm.umin.i64(i64 %goal0, i64 %grains)
  %l0 = add i64 %grains, %goal
  %l1 = sub i64 %l0, 1
  %l2 = udiv i64 %l1, %goal
  %length = mul i64 %l2, %grain
  %c0 = add i64 %grains, %l2
  %c1 = sub i64 %c0, 1
  %count = udiv i64 %c1, %l2
  %h0 = sub i64 %threads, 1
  %wanted = trunc i64 %h0 to i32
  %had = load i32, ptr @workers
  %lacking = icmp slt i32 %had, %wanted
  br i1 %lacking, label %hire, label %publish
hire:
  %hired = call i32 @grow(i32 %wanted)
  br label %publish

publish:
  %have = phi i32 [%had, %plan], [%hired, %hire]
  %helpers = call i32 @llvm.smin.i32(i32 %have, i32 %wanted)
  store ptr %ctx, ptr @region
  store ptr %body, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 1)
  store ptr %frame, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 2)
  store i64 %n, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 3)
  store i64 %length, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 4)
  store i64 %count, ptr getelementptr ({ptr, ptr, ptr, i64, i64, i64}, ptr @region, i32 0, i32 5)
  store atomic i32 0, ptr @finished monotonic, align 4
  %before = load atomic i64, ptr @ticket monotonic, align 8
  %epoch = and i64 %before, $EPOCH_MASK$
  %epoch1 = add i64 %epoch, $EPOCH$
  %places0 = zext i32 %helpers to i64
  %places = shl i64 %places0, 24
  %t0 = or i64 %epoch1, %places
  %t = or i64 %t0, %count
  store atomic i64 %t, ptr @ticket seq_cst, align 8
  ; wake as many as are welcome beyond those that are up and will see the ticket by themselves
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %up = sub i32 %have, %asleep
  %short = sub i32 %helpers, %up
  %call0 = call i32 @llvm.smin.i32(i32 %short, i32 %asleep)
  %any = icmp sgt i32 %call0, 0
  br i1 %any, label %wake, label %mine
wake:
  call void @keep_apart(i32 %have)
  %a = atomicrmw add ptr @alarm, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr @alarm, i32 $WAKE$, i32 %call0, ptr null, ptr null, i32 0)
  br label %mine
mine:
  call void @drain(i1 false, i64 1)
  %count32 = trunc i64 %count to i32
  br label %join

join:
  %k = phi i32 [0, %mine], [%k1, %spin], [%k, %yield]
  %y = phi i32 [0, %mine], [%y, %spin], [%y1, %yield]
  %done = load atomic i32, ptr @finished acquire, align 4
  %all = icmp eq i32 %done, %count32
  br i1 %all, label %end, label %patience
patience:
  %spinning = icmp ult i32 %k, $JOIN_SPINS$
  br i1 %spinning, label %spin, label %polite
spin:
  call void @pause()
  %k1 = add i32 %k, 1
  br label %join
polite:
  %yielding = icmp ult i32 %y, $JOIN_YIELDS$
  br i1 %yielding, label %yield, label %sleep
yield:
  %yr = call i32 @sched_yield()
  %y1 = add i32 %y, 1
  br label %join
sleep:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  br label %recheck
recheck:
  %d = load atomic i32, ptr @finished seq_cst, align 4
  %complete = icmp eq i32 %d, %count32
  br i1 %complete, label %slept, label %wait
wait:
  store i64 0, ptr %limit
  store i64 $JOIN_NANOSECONDS$, ptr %limit.ns
  %wr = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr @finished, i32 $WAIT$, i32 %d, ptr %limit, ptr null, i32 0)
  call void @look_up(ptr %ctx)
  br label %recheck
slept:
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %end
end:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; The child of fork() has one thread: no workers, nobody asleep, no region running.
define internal void @threads_after_fork() {
  %t = load i64, ptr @ticket
  %idle = and i64 %t, $EPOCH_MASK$
  store i64 %idle, ptr @ticket
  store i32 0, ptr @workers
  store i32 0, ptr @placed
  call void @llvm.memset.p0.i64(ptr @ids, i8 0, i64 $IDS_BYTES$, i1 false)
  store i32 0, ptr @sleepers
  store i32 0, ptr @waiting
  store i32 0, ptr @finished
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

define i32 @pk_workers() {
  %n = load i32, ptr @workers
  ret i32 %n
}
"""
