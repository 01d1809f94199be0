"""The thread pool: every index once, chunks as promised, and no hang from any caller."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.low_level_python import translate
from parakeet_py.llvm.runtime import thread_pool
from parakeet_py.llvm.runtime.native_runtime import Context, Runtime, runtime

BODIES = """
declare void @pk_parallel(ptr, ptr, ptr, i64, i64, i32)
declare i32 @usleep(i32)
declare i32 @gettid()

; frame: i64 count of calls, i64 microseconds to sleep, then {lo, hi, thread} of each call
define internal void @note(ptr %ctx, ptr %frame, i64 %lo, i64 %hi) {
  %k = atomicrmw add ptr %frame, i64 1 seq_cst
  %sp = getelementptr i64, ptr %frame, i64 1
  %us = load i64, ptr %sp
  %us32 = trunc i64 %us to i32
  %slow = icmp ne i64 %us, 0
  br i1 %slow, label %rest, label %go
rest:
  %r = call i32 @usleep(i32 %us32)
  br label %go
go:
  %k3 = mul i64 %k, 3
  %at = add i64 %k3, 2
  %p0 = getelementptr i64, ptr %frame, i64 %at
  store i64 %lo, ptr %p0
  %p1 = getelementptr i64, ptr %p0, i64 1
  store i64 %hi, ptr %p1
  %tid = call i32 @gettid()
  %tid64 = sext i32 %tid to i64
  %p2 = getelementptr i64, ptr %p0, i64 2
  store i64 %tid64, ptr %p2
  ret void
}
define void @run_note(ptr %ctx, ptr %frame, i64 %n, i64 %grain, i32 %t) {
  call void @pk_parallel(ptr %ctx, ptr @note, ptr %frame, i64 %n, i64 %grain, i32 %t)
  ret void
}

; add one to each element of the frame
define internal void @increment(ptr %ctx, ptr %frame, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%i1, %loop]
  %p = getelementptr i64, ptr %frame, i64 %i
  %v = load i64, ptr %p
  %v1 = add i64 %v, 1
  store i64 %v1, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @run_increment(ptr %ctx, ptr %frame, i64 %n, i64 %grain, i32 %t) {
  call void @pk_parallel(ptr %ctx, ptr @increment, ptr %frame, i64 %n, i64 %grain, i32 %t)
  ret void
}

; a region inside a region: row r of 100 elements, for r in [lo, hi)
define internal void @rows(ptr %ctx, ptr %frame, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%i1, %loop]
  %at = mul i64 %i, 100
  %p = getelementptr i64, ptr %frame, i64 %at
  call void @pk_parallel(ptr %ctx, ptr @increment, ptr %p, i64 100, i64 1, i32 4)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @run_rows(ptr %ctx, ptr %frame, i64 %n, i64 %grain, i32 %t) {
  call void @pk_parallel(ptr %ctx, ptr @rows, ptr %frame, i64 %n, i64 %grain, i32 %t)
  ret void
}

; record a failure for each index that is 5 modulo 7
define internal void @fail(ptr %ctx, ptr %frame, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%i1, %next]
  %m = urem i64 %i, 7
  %bad = icmp eq i64 %m, 5
  br i1 %bad, label %report, label %next
report:
  %code = add i64 %i, 1000
  call void @pk_fail(ptr %ctx, i64 %i, i64 %code, i64 %i, i64 %lo, i64 -3, i64 0, i64 0, i64 0)
  br label %next
next:
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
declare void @pk_fail(ptr, i64, i64, i64, i64, i64, i64, i64, i64)
define void @run_fail(ptr %ctx, ptr %frame, i64 %n, i64 %grain, i32 %t) {
  call void @pk_parallel(ptr %ctx, ptr @fail, ptr %frame, i64 %n, i64 %grain, i32 %t)
  ret void
}
"""

NAMES = ("run_note", "run_increment", "run_rows", "run_fail")
SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)


class Pool:
    def __init__(self) -> None:
        self.runtime: Runtime = runtime()
        self.code = self.runtime.load(compiler.compile_ir(BODIES), NAMES)
        self.functions = {name: SIGNATURE(self.code[name]) for name in NAMES}

    def run(self, name: str, frame: np.ndarray, n: int, grain: int, max_threads: int) -> np.ndarray:
        context = np.zeros(Context.SIZE // 8, np.int64)
        self.functions[name](context.ctypes.data, frame.ctypes.data, n, grain, max_threads)
        return context

    def note(self, n: int, grain: int, max_threads: int, sleep: int = 0) -> tuple[list[tuple[int, int]], set[int]]:
        frame = np.zeros(2 + 3 * 8000, np.int64)
        frame[1] = sleep
        self.run("run_note", frame, n, grain, max_threads)
        calls = frame[2 : 2 + 3 * frame[0]].reshape(-1, 3)
        return sorted((int(lo), int(hi)) for lo, hi, _ in calls), {int(t) for t in calls[:, 2]}


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no sets of CPUs on this platform")
def test_workers_keep_off_the_callers_cpu(pool: Pool) -> None:
    """They may use the CPUs that the caller may use but the one it is on; that one too if there is no other."""
    allowed = os.sched_getaffinity(0)

    def sets_of_workers() -> list[set[int]]:
        """Where the workers that helped may run, after they had to be woken."""
        time.sleep(0.005)
        helped = pool.note(40, 1, 3, sleep=300)[1] - {threading.get_native_id()}
        return [os.sched_getaffinity(worker) for worker in helped]

    def soon(expected: Callable[[set[int]], bool]) -> bool:
        return any((sets := sets_of_workers()) and all(expected(cpus) for cpus in sets) for _ in range(200))

    try:
        for cpu in sorted(allowed)[:2]:
            os.sched_setaffinity(0, {cpu})
            assert soon(lambda cpus, cpu=cpu: cpus == {cpu} or cpu not in cpus)
        os.sched_setaffinity(0, allowed)
        assert soon(lambda cpus: cpus <= allowed and len(cpus) == max(len(allowed) - 1, 1))
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("max_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("grain", [1, 3, 64, 1000])
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 999, 100_003])
def test_every_index_is_run_once(pool: Pool, n: int, grain: int, max_threads: int) -> None:
    frame = np.zeros(100_010, np.int64)
    pool.run("run_increment", frame, n, grain, max_threads)
    assert (frame[:n] == 1).all()
    assert not frame[n:].any()


@pytest.mark.parametrize("max_threads", [2, 5])
@pytest.mark.parametrize(("n", "grain"), [(10, 1), (1000, 7), (4096, 64), (4097, 64), (100, 99), (1 << 40, 1 << 30)])
def test_chunks_are_whole_grains(pool: Pool, n: int, grain: int, max_threads: int) -> None:
    chunks, _ = pool.note(n, grain, max_threads)
    assert chunks[0][0] == 0
    assert chunks[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(chunks))
    assert all(lo % grain == 0 for lo, _ in chunks)
    assert all(lo < hi for lo, hi in chunks)
    assert len(chunks) <= thread_pool.CHUNKS_PER_THREAD * max_threads


@pytest.mark.parametrize(("n", "grain", "max_threads"), [(100, 100, 4), (100, 1, 1), (100, 1, 0), (100, 1, -1)])
def test_small_and_single_regions_run_in_the_caller(pool: Pool, n: int, grain: int, max_threads: int) -> None:
    assert pool.note(n, grain, max_threads) == ([(0, n)], {threading.get_native_id()})


def test_nothing_is_called_for_an_empty_region(pool: Pool) -> None:
    assert pool.note(0, 1, 4) == ([], set())
    assert pool.note(-5, 1, 4) == ([], set())


@pytest.mark.skipif(sys.platform != "linux", reason="the pool needs the futex")
def test_the_limit_of_threads_holds(pool: Pool) -> None:
    _, many = pool.note(64, 1, 6, sleep=3000)
    assert 1 < len(many) <= 6
    assert pool.runtime.workers() >= 5
    for limit in (2, 3):
        _, few = pool.note(64, 1, limit, sleep=1000)
        assert 1 < len(few) <= limit


def test_a_region_inside_a_region_runs_serially(pool: Pool) -> None:
    frame = np.zeros(100 * 50, np.int64)
    pool.run("run_rows", frame, 50, 1, 4)
    assert (frame == 1).all()


def test_the_first_failure_in_order_is_kept(pool: Pool) -> None:
    for grain in (1, 10):
        context = pool.run("run_fail", np.zeros(1, np.int64), 10_000, grain, 4)
        assert context[Context.STATUS // 8] == 1005
        assert context[Context.ORDER // 8] == 5
        assert context[Context.ARGUMENTS // 8] == 5
        assert context[Context.ARGUMENTS // 8 + 2] == -3
        assert context[Context.LOCK // 8] >> 32 == 0


def test_sleeping_workers_wake(pool: Pool) -> None:
    for pause in (0.0, 0.002, 0.02):
        threading.Event().wait(pause)
        chunks, _ = pool.note(1000, 1, 4, sleep=100)
        assert chunks[-1][1] == 1000


def test_many_python_threads_at_once(pool: Pool) -> None:
    wrong: list[int] = []

    def work() -> None:
        frame = np.zeros(5000, np.int64)
        for _ in range(300):
            pool.run("run_increment", frame, 5000, 64, 4)
        if not (frame == 300).all():
            wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not wrong
    assert not any(caller.is_alive() for caller in callers)


@contextmanager
def calls_in_background(pool: Pool) -> Iterator[None]:
    stop = threading.Event()

    def work() -> None:
        frame = np.zeros(20_000, np.int64)
        while not stop.is_set():
            pool.run("run_increment", frame, 20_000, 64, 4)

    callers = [threading.Thread(target=work) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        stop.set()
        for caller in callers:
            caller.join(60)


def fork_many(children: int) -> None:
    """Fork while regions run in other threads; each child uses the pool, and must end well."""
    pool = Pool()
    with calls_in_background(pool):
        for _ in range(children):
            child = os.fork()
            if child == 0:
                frame = np.zeros(10_000, np.int64)
                for _ in range(20):
                    pool.run("run_increment", frame, 10_000, 64, 4)
                big = np.zeros(1, np.int64)
                chunks, _ = pool.note(64, 1, 3, sleep=50)
                good = bool((frame == 20).all()) and chunks[-1][1] == 64 and big.size == 1
                os._exit(0 if good and pool.runtime.workers() >= 2 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    frame = np.zeros(1000, np.int64)
    pool.run("run_increment", frame, 1000, 1, 4)
    assert (frame == 1).all()


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and the futex")
def test_fork_in_the_middle_of_regions() -> None:
    script = textwrap.dedent(f"""
        import sys, warnings
        warnings.simplefilter("ignore")
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_thread_pool
        test_thread_pool.fork_many(20)
        print("well")
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "well\n", done.stderr


def test_the_caller_sleeps_through_a_long_chunk(pool: Pool) -> None:
    # two chunks of half a second: one of them on a worker, while the caller has long stopped yielding
    chunks, used = pool.note(2, 1, 2, sleep=300_000)
    assert chunks == [(0, 1), (1, 2)]
    assert len(used) <= 2


def test_the_serial_pool_has_the_same_interface() -> None:
    text = translate(thread_pool.SERIAL) + BODIES.replace("declare void @pk_parallel(ptr, ptr, ptr, i64, i64, i32)", "")
    code = runtime().load(compiler.compile_ir(text), ["run_increment"])
    frame = np.zeros(100, np.int64)
    SIGNATURE(code["run_increment"])(0, frame.ctypes.data, 100, 1, 4)
    assert (frame == 1).all()
