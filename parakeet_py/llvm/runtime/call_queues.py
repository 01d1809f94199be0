"""Queues of calls of C functions, which threads make side by side without Python: for each device what it is asked for.

A call is `WORDS` words: a function and eleven arguments, of which it takes as many as it has. Instead of a function
`AWAIT` and `SIGNAL` stand for a flag, which the queue waits for, or sets for others. Calls of a queue are made in
its order, by one thread at a time, which is told so first (`begin`); one that waits is left to any thread for later.
If calls in one order of them all, in which each flag is set before it is waited for, are put into queues in that order,
some queue can always go on, however many threads there are: the pool may be busy, and the caller alone.

A call that gives a status ends all queues. Flags are of one byte each, and none at first.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from parakeet_py.base import config
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.runtime import native_runtime, thread_pool
from parakeet_py.llvm.runtime.call_context import ALIGNMENT, Context

CPUS_EACH = 2  # a thread for so many CPUs: where others need them, a call waits for the thread that has been stopped
WORDS = 12
AWAIT, SIGNAL = 1, 2  # in the place of a function; a flag's number follows


def words(*call: int) -> bytes:
    """A call: the function and its arguments."""
    return struct.pack(f"<{WORDS}Q", *call, *[0] * (WORDS - len(call)))


_MAKE = """
@internal.alwaysinline
def make(request: ptr) -> i32:
    a = request.i64[1]
    b = request.i64[2]
    c = request.i64[3]
    d = request.i64[4]
    e = request.i64[5]
    f = request.i64[6]
    g = request.i64[7]
    h = request.i64[8]
    i = request.i64[9]
    j = request.i64[10]
    k = request.i64[11]
    return request.ptr.i32(a, b, c, d, e, f, g, h, i, j, k)
"""
ONE_AFTER_THE_OTHER = Source(
    _MAKE
    + """
# table: what is patched, how many, the calls, how many; then the status of the one that has failed
def run(table: ptr, addresses: ptr) -> i64:
    patch = table.ptr
    left = table.i64[1]
    while left > 0:
        patch.ptr.i64 = (addresses + patch.i64[1]).i64 + patch.i64[2]
        patch = patch + 24
        left -= 1
    request = table.ptr[2]
    count = table.i64[3]
    done = 0
    while done < count:
        status = make(request)
        if status != 0:
            table.i64[4] = i64(status)
            return done
        request = request + 96
        done += 1
    return done
"""
)
# frame: queues, how many; flags; then whether a call has failed, its queue, its place there and its status.
# A queue, of a line of 64 bytes: its calls, how many, how many are made; what `begin` is and is given; whether a thread
# is at it.
_QUEUES = Source(
    _MAKE
    + """
@internal
def advance(frame: ptr, number: i64) -> i64:
    queue = frame.ptr + number * 64
    flags = frame.ptr[2]
    first = queue.i64[2]
    done = first
    count = queue.i64[1]
    begun = False
    going = True
    while going:
        if done == count:
            going = False
        else:
            request = queue.ptr + done * 96
            what = request.i64
            if what == AWAIT:
                if atomic_load((flags + request.i64[1]).i8, "acquire") == 0:
                    going = False
                else:
                    done += 1
            elif what == SIGNAL:
                atomic_store((flags + request.i64[1]).i8, 1, "release")
                done += 1
            else:
                status: i32 = 0
                if not begun:
                    status = queue.ptr[3].i32(queue.i64[4])
                    begun = True
                if status == 0:
                    status = make(request)
                if status != 0:
                    if compare_exchange((frame + FAILED).i32, 0, 1, "acquire"):
                        frame.i64[4] = number
                        frame.i64[5] = done
                        frame.i64[6] = i64(status)
                    going = False
                else:
                    done += 1
    atomic_store(queue.DONE.i64, done, "monotonic")
    return done - first

@internal
def finished(frame: ptr) -> i1:
    if atomic_load((frame + FAILED).i32, "monotonic") != 0:
        return True
    number = 0
    all = True
    while number < frame.i64[1]:
        queue = frame.ptr + number * 64
        if atomic_load(queue.DONE.i64, "monotonic") != queue.i64[1]:
            all = False
        number += 1
    return all

# A region of the pool: a thread begins at the first queue of its part, and goes on until all are done.
def queues(ctx: ptr, frame: ptr, lo: i64, hi: i64):
    count = frame.i64[1]
    spins: i32 = 0
    while not finished(frame):
        number = lo
        left = count
        made = 0
        while left > 0:
            queue = frame.ptr + number * 64
            if atomic_load(queue.DONE.i64, "monotonic") != queue.i64[1]:
                if compare_exchange(queue.BUSY.i32, 0, 1, "acquire"):
                    if atomic_load((frame + FAILED).i32, "monotonic") == 0:
                        made += advance(frame, number)
                    atomic_store(queue.BUSY.i32, 0, "release")
            number += 1
            if number == count:
                number = 0
            left -= 1
        if made == 0:
            pause()
            spins += 1
            if spins == 200:
                sched_yield()
                spins = 0
""",
    {"AWAIT": AWAIT, "SIGNAL": SIGNAL, "FAILED": 24, "DONE": 16, "BUSY": 40},
)


@lru_cache(maxsize=1)
def one_after_the_other() -> Any:
    """`run(table, addresses)` of `ONE_AFTER_THE_OTHER`, which gives the number of calls that were made."""
    code = native_runtime.support_code("calls one after the other", [ONE_AFTER_THE_OTHER], {}, ["run"], 2)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code["run"])


@lru_cache(maxsize=1)
def _entries() -> tuple[Any, int]:
    symbols = native_runtime.runtime().symbols
    word, number = ctypes.c_void_p, ctypes.c_int64
    run = ctypes.CFUNCTYPE(None, word, word, word, number, number, ctypes.c_int32)(symbols["pk_parallel"])
    code = native_runtime.support_code("queues of calls", [thread_pool.pause(), _QUEUES], {}, ["queues"], 2)
    return run, code["queues"]


class Queues:
    """Calls that are made side by side.

    Parameters
    ----------
    starts : where the calls of each queue lie
    counts : how many each has, flags included
    flags : how many there are
    begin, given : the function that a thread calls before it goes on with a queue, and what it is given for each
    """

    def __init__(
        self, starts: Sequence[int], counts: Sequence[int], flags: int, begin: int, given: Sequence[int]
    ) -> None:
        self.count = len(starts)
        room = (ctypes.c_int64 * (8 * self.count + 8))()
        start = -(-ctypes.addressof(room) // ALIGNMENT) * ALIGNMENT
        self._room, self._lines = room, (ctypes.c_int64 * (8 * self.count)).from_address(start)
        self._fresh = (ctypes.c_int64 * (8 * self.count))()
        for number, (calls, many, what) in enumerate(zip(starts, counts, given, strict=True)):
            self._fresh[8 * number : 8 * number + 5] = [calls, many, 0, begin, what]
        self._flags = (ctypes.c_int8 * max(flags, 1))()
        self._frame = (ctypes.c_int64 * 7)()

    def run(self) -> tuple[int, int, int] | None:
        """Make all calls; the queue, the place there and the status of one that has failed."""
        size = ctypes.sizeof
        ctypes.memmove(self._lines, self._fresh, size(self._fresh))
        ctypes.memset(self._flags, 0, size(self._flags))
        frame = self._frame
        frame[:] = [ctypes.addressof(self._lines), self.count, ctypes.addressof(self._flags), 0, 0, 0, 0]
        room = (ctypes.c_char * (Context.SIZE + ALIGNMENT))()  # of a call that nothing interrupts
        context = -(-ctypes.addressof(room) // ALIGNMENT) * ALIGNMENT
        run, body = _entries()
        threads = max(config.current().thread_count // CPUS_EACH, 1)
        run(context, body, ctypes.addressof(frame), self.count, 1, min(self.count, threads))
        return (frame[4], frame[5], frame[6]) if frame[3] else None
