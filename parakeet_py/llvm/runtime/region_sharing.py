"""Whether a parallel region is shared among threads, learned from the times of its runs; in low-level Python.

    void pk_share(ptr ctx, ptr body, ptr frame, i64 n, i64 grain, i32 max_threads, i64 work)

    void pk_forget(i64 start, i64 end)

The first runs a region as `pk_parallel` does, on all threads or in the caller alone, whichever has taken less time so
far. The second forgets regions whose code lay where other code is now. Nothing that is known beforehand says which:
what it costs to start a short region differs by a factor of ten between machines, and on one machine with how busy its
other CPUs are; and what follows the region may have to wait for its results, which lie in the caches of other CPUs. The
results are the same either way.

`work` is the scalar operations of one of the `n` indices. Regions of `SURE` operations and more are always shared. The
others have a record for each power of two of operations, as one region may run over ever fewer indices (the columns
that a factorization has left):

    KEY      the region's address and that power, as many regions have one place in the table: a new one takes it
    TIMES    two averages of the time a run takes, shared and alone, in nanoseconds; 0: not known. They follow shorter
             times faster than longer ones, as what takes longer is mostly other processes.
    BEST     what has been better: 0 shared, which a region begins with, or 1 alone
    TURN     runs since that was decided
    PERIOD   after how many of them the other way is tried
    SEEN     the number of the last trial or time between trials in which it ran, doubled, and 1 after its first run

The time of a run ends where the next region begins, unless that is too late to have to do with it (`APART_SHIFT`). In a
trial all regions run the other way of the one that is tried, until that has run `TRIAL` times, or has not come for
long: what one of them shares, the next has to fetch from the caches of other CPUs, so that each alone would seem to be
better off as they are. A region's first run in a trial does not count, nor does the first one after it: it has to wake
the workers, or to fetch its data. After a trial all that have taken part choose anew. A trial that changes nothing for
whom it was doubles the time until its next; where the other way takes more than twice the time it ends early, and makes
that four times as long. A trial is brought forward when what was better has become slower than the other way was. Alone
is preferred to shared where it takes about as long, as it leaves the other CPUs to others.

`measuring` is held while the table is in use, never while a region runs. Regions of several Python threads do not wait
for it: those that find it held are not measured.
"""

from __future__ import annotations

from typing import Final

from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import thread_pool

LEAST_LEVEL: Final = 15  # the least power of two; regions with less work have the same record
SURE: Final = 1 << 23
ENTRIES: Final = 1024  # of the table, a power of two
RECORD_BYTES: Final = 32
TRIAL: Final = 5
LEAST_PERIOD: Final = 64
MOST_PERIOD: Final = 4096
APART_SHIFT: Final = 3  # nanoseconds after a region that count as its own: one for eight operations
LEAST_DEADLINE: Final = 100_000  # nanoseconds that a trial may last, at least; else 64 times what a run takes


def sharing() -> Source:
    """`pk_share` and `pk_forget`, after `thread_pool.pause`, `loop_polls.POLL` and `pk_parallel`."""
    return _LEARNED if thread_pool.has_pool() else AS_TOLD


AS_TOLD = Source("""
def pk_share(ctx: ptr, body: ptr, frame: ptr, n: i64, grain: i64, max_threads: i32, work: i64):
    pk_parallel(ctx, body, frame, n, grain, max_threads)

def pk_forget(start: i64, end: i64): pass
""")

# `pk_parallel` of C code.
DECLARED = Source("""
def pk_parallel(ctx: ptr, body: ptr, frame: ptr, n: i64, grain: i64, max_threads: i32): ...
""")

_LEARNED = Source(
    """
records: i64[TABLE] @ 64
measuring: i32 @ 64 = 0
stage: i32 = 1                  # the number of the trial, or of the time between two
tried: i64 = 0                  # the record for which there is a trial; 0: there is none
tried_way: i32 = 0
runs_left: i32 = 0              # of that record in the trial
deadline: i64 = 0               # of the trial, in nanoseconds
last_context: i64 = 0           # of the last run: its context,
last_record: i64 = 0            # its record, 0 when that has been told,
last_way: i32 = 0
last_start: i64 = 0             # when it began
last_length: i64 = 0            # how long it took itself; 0 while it runs
last_total: i64 = 0             # and its work

@symbol("llvm.ctlz.i64")
def leading_zeros(value: i64, zero_is_poison: i1) -> i64: ...

def pk_share(ctx: ptr, body: ptr, frame: ptr, n: i64, grain: i64, max_threads: i32, work: i64):
    if max_threads <= 1 or n <= grain or not compare_exchange(measuring.i32, 0, 1, "acquire"):
        pk_parallel(ctx, body, frame, n, grain, max_threads)
        return
    start = nanoseconds(1)
    settle(ctx, start)
    total = smin(n, SURE) * smin(smax(work, 1), SURE)
    if total >= SURE:
        atomic_store(measuring.i32, 0, "release")
        pk_parallel(ctx, body, frame, n, grain, max_threads)
        return
    record = record_of(body, level_of(total))
    way = way_of(record, start)
    last_way.i32 = way
    last_context.i64 = i64(ctx)
    last_record.i64 = i64(record)
    last_start.i64 = start
    last_length.i64 = 0
    last_total.i64 = total
    atomic_store(measuring.i32, 0, "release")
    pk_parallel(ctx, body, frame, n, grain, 1 if way == 1 else max_threads)
    if compare_exchange(measuring.i32, 0, 1, "acquire"):
        if last_start.i64 == start:
            last_length.i64 = nanoseconds(1) - start
        atomic_store(measuring.i32, 0, "release")

@internal
def level_of(total: i64) -> i64:
    return smax(63 - leading_zeros(total, 1), LEAST_LEVEL)

# Whose place it was before is forgotten.
@internal
def record_of(body: ptr, level: i64) -> ptr:
    key = i64(body) << LEVEL_BITS | level
    place = (key * 0x61C8864680B583EB) >> PLACE_SHIFT
    record = records + place * RECORD_BYTES
    if record.i64 != key:
        memset(record, 0, RECORD_BYTES)
        record.i64 = key
        record.PERIOD.i32 = TRIAL
    return record

# Forget all regions of new code, which lies where there may have been other code before.
def pk_forget(start: i64, end: i64):
    while not compare_exchange(measuring.i32, 0, 1, "acquire"):
        pause()
    last_record.i64 = 0
    place = 0
    while place < ENTRIES:
        record = records + place * RECORD_BYTES
        body = record.i64 >> LEVEL_BITS
        if (body >= start) & (body < end):
            record.i64 = 0
        place += 1
    atomic_store(measuring.i32, 0, "release")

# How a region runs now: 0: shared, 1: alone.
@internal
def way_of(record: ptr, now: i64) -> i32:
    if tried.i64 != 0 and now > deadline.i64:
        ptr(tried.i64).TURN.i32 = 0
        end_trial()
    if tried.i64 == 0:
        if record.SEEN.i32 >> 1 != stage.i32:
            choose(record)
        if record.TURN.i32 < record.PERIOD.i32:
            return record.BEST.i32
        best = record.BEST.i32
        tried.i64 = i64(record)
        tried_way.i32 = 1 - best
        runs_left.i32 = TRIAL
        deadline.i64 = now + smax(i64((record + TIMES).i32[i64(best)]) << 6, LEAST_DEADLINE)
        stage.i32 = stage.i32 + 1 & STAGES
    return tried_way.i32

@internal
def end_trial():
    tried.i64 = 0
    stage.i32 = stage.i32 + 1 & STAGES

# Does what was best still hold?
@internal
def choose(record: ptr) -> i1:
    best = record.BEST.i32
    time = (record + TIMES).i32[i64(best)]
    other = (record + TIMES).i32[i64(1 - best)]
    margin = other >> 5 if best == 0 else other >> 3
    if other == 0 or time <= other + margin:
        return False
    record.BEST.i32 = 1 - best
    record.TURN.i32 = 0
    record.PERIOD.i32 = smax(record.PERIOD.i32 >> 2, LEAST_PERIOD)
    return True

# Tell the record of the last run how long it has taken.
@internal
def settle(ctx: ptr, now: i64):
    record = ptr(last_record.i64)
    if record != null:
        last_record.i64 = 0
        length = last_length.i64
        if length > 0 and last_context.i64 == i64(ctx):
            total = last_total.i64
            after = now - last_start.i64 - length
            if after < total >> APART_SHIFT:
                length += after
            # as long as it would have been for the least work of this record
            learn(record, last_way.i32, i32(smin((length << (record.i64 & LEVEL_MASK)) // total, LONG)))

@internal
def learn(record: ptr, way: i32, took: i32):
    seen = record.SEEN.i32
    now = stage.i32 << 1
    if seen | 1 != now | 1:
        record.SEEN.i32 = now | 1
    else:
        record.SEEN.i32 = now
        place = record + TIMES + (i64(way) << 2)
        average = place.i32
        if average != 0 and tried.i64 == 0:
            if took < average:
                took = average - (average >> 2) + (took >> 2)
            else:
                took = average - (average >> 3) + (smin(took, average + (average >> 1)) >> 3)
        elif (seen == now) & (average != 0):
            took = smin(took, average)
        place.i32 = took
    best = record.BEST.i32
    time = (record + TIMES).i32[i64(best)]
    other = (record + TIMES).i32[i64(1 - best)]
    if tried.i64 == 0:
        turn = record.TURN.i32 + 1
        if turn > TRIAL and other != 0 and time > other + (other >> 2):
            turn = smax(turn, record.PERIOD.i32)
        record.TURN.i32 = turn
    elif tried.i64 == i64(record):
        hopeless = (record.SEEN.i32 == now) & (other > time << 1)
        runs_left.i32 -= 1
        if hopeless | (runs_left.i32 == 0):
            end_trial()
            if not choose(record):
                record.TURN.i32 = 0
                longer = record.PERIOD.i32 << 2 if hopeless else record.PERIOD.i32 << 1
                record.PERIOD.i32 = smin(smax(longer, LEAST_PERIOD), MOST_PERIOD)
""",
    {
        "SURE": SURE,
        "TABLE": ENTRIES * RECORD_BYTES // 8,
        "PLACE_SHIFT": 65 - ENTRIES.bit_length(),
        "ENTRIES": ENTRIES,
        "LEAST_LEVEL": LEAST_LEVEL,
        "LEVEL_BITS": 6,
        "LEVEL_MASK": 63,
        "RECORD_BYTES": RECORD_BYTES,
        "TRIAL": TRIAL,
        "LEAST_PERIOD": LEAST_PERIOD,
        "MOST_PERIOD": MOST_PERIOD,
        "APART_SHIFT": APART_SHIFT,
        "LEAST_DEADLINE": LEAST_DEADLINE,
        "LONG": 1 << 28,
        "STAGES": (1 << 30) - 1,
        **{"TIMES": 8, "BEST": 16, "TURN": 20, "PERIOD": 24, "SEEN": 28},
    },
)
