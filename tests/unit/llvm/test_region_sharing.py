"""Regions are shared where that takes less time, and every index is run once either way."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import numpy as np
import pytest

from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.low_level_python import translate
from parakeet_py.llvm.runtime import region_sharing, thread_pool
from parakeet_py.llvm.runtime.native_runtime import Context, runtime

# frame: i64 calls, i64 microseconds that a call sleeps, i64 microseconds that an index does, then a count per index
BODIES = """
declare void @pk_share(ptr, ptr, ptr, i64, i64, i32, i64)
declare i32 @usleep(i32)

define internal void @BODY(ptr %ctx, ptr %frame, i64 %lo, i64 %hi) {
entry:
  %k = atomicrmw add ptr %frame, i64 1 seq_cst
  %call.place = getelementptr i64, ptr %frame, i64 1
  %call = load i64, ptr %call.place
  %index.place = getelementptr i64, ptr %frame, i64 2
  %index = load i64, ptr %index.place
  %count = sub i64 %hi, %lo
  %all = mul i64 %index, %count
  %sum = add i64 %all, %call
  %sum32 = trunc i64 %sum to i32
  %long = icmp sgt i64 %sum, 0
  br i1 %long, label %rest, label %loop
rest:
  %r = call i32 @usleep(i32 %sum32)
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%lo, %rest], [%i1, %loop]
  %at = add i64 %i, 3
  %p = getelementptr i64, ptr %frame, i64 %at
  %v = load i64, ptr %p
  %v1 = add i64 %v, 1
  store i64 %v1, ptr %p
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %hi
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @run_BODY(ptr %ctx, ptr %frame, i64 %n, i64 %grain, i32 %t, i64 %work) {
  call void @pk_share(ptr %ctx, ptr @BODY, ptr %frame, i64 %n, i64 %grain, i32 %t, i64 %work)
  ret void
}
"""
SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, ctypes.c_int64
)
N = 16
WORK = 10_000

needs_pool = pytest.mark.skipif(not thread_pool.has_pool(), reason="no threads of our own on this platform")


class Region:
    """A region of its own, of which nothing has been learned."""

    def __init__(self) -> None:
        text = BODIES.replace("BODY", "body")
        if not thread_pool.has_pool():
            text = translate(thread_pool.SERIAL, region_sharing.AS_TOLD) + text.split("\n", 2)[2]
        self.code = runtime().load(compiler.compile_ir(text), ["run_body"])
        self.run = SIGNATURE(self.code["run_body"])
        self.context = np.zeros(Context.SIZE // 8, np.int64)

    def calls(self, n: int = N, work: int = WORK, threads: int = 2, call: int = 0, index: int = 0) -> int:
        """Run it once; gives how many chunks it was cut into."""
        frame = np.zeros(n + 3, np.int64)
        frame[1:3] = call, index
        self.run(self.context.ctypes.data, frame.ctypes.data, n, 1, threads, work)
        assert (frame[3:] == 1).all()
        return int(frame[0])


@needs_pool
def test_a_region_that_is_faster_alone_is_run_alone() -> None:
    region = Region()
    assert region.calls(call=400) > 1  # shared at first
    for _ in range(20):
        region.calls(call=400)
    assert sum(region.calls(call=400) == 1 for _ in range(20)) >= 15


@needs_pool
def test_a_region_that_is_faster_on_threads_is_shared() -> None:
    region = Region()
    for _ in range(20):
        region.calls(index=100)
    assert sum(region.calls(index=100) > 1 for _ in range(20)) >= 15


@needs_pool
def test_the_other_way_is_tried_again() -> None:
    region = Region()
    for _ in range(20):
        region.calls(call=300)
    assert region.calls(call=300) == 1
    found = [region.calls() for _ in range(2 * region_sharing.LEAST_PERIOD + 20)]
    assert max(found) > 1


@needs_pool
def test_sizes_are_learned_apart() -> None:
    region = Region()
    for _ in range(20):
        region.calls(call=300)
    assert region.calls(call=300) == 1
    assert region.calls(work=8 * WORK) > 1


@pytest.mark.parametrize("work", [-1, 0, 1, WORK, region_sharing.SURE, 1 << 62])
@pytest.mark.parametrize("threads", [0, 1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 63, 1000])
def test_every_index_is_run_once(n: int, threads: int, work: int) -> None:
    region = Region()
    for _ in range(12):
        region.calls(n, work, threads)


@needs_pool
def test_long_regions_are_always_shared() -> None:
    region = Region()
    assert all(region.calls(work=region_sharing.SURE // N, call=100) > 1 for _ in range(20))


def test_regions_of_several_python_threads() -> None:
    regions = [Region() for _ in range(4)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            region = Region() if number % 2 else regions[number]
            for turn in range(400):
                region.calls(work=WORK << turn % 8)
        except BaseException as error:  # reported by the main thread
            failed.append(error)

    callers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert not failed
    assert not any(caller.is_alive() for caller in callers)


def test_more_regions_than_places_in_the_table() -> None:
    region = Region()
    for work in range(1, 3):
        for n in range(1, 1500, 7):
            region.calls(n, work * 4000)


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_goes_on() -> None:
    region = Region()
    region.calls()
    child = os.fork()
    if child == 0:
        for _ in range(30):
            region.calls()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
