"""Blocks, their lists and counts, the pool behind them, and NumPy arrays that own payloads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from parakeet_py.llvm.runtime import array_memory, memory_pool
from parakeet_py.llvm.runtime.native_runtime import ALIGNMENT, BLOCK_HEADER, Context, Runtime, runtime

PTR, I64 = ctypes.c_void_p, ctypes.c_int64
SIZES = (0, 1, 63, 64, 1000, 65_535, 65_536, 65_537, 1 << 20, (4 << 20) - 1, 5 << 20, (33 << 20) + 12_345)


class Memory:
    """The runtime's memory functions, callable from Python."""

    def __init__(self, rt: Runtime) -> None:
        def function(name: str, result: type | None, *arguments: type) -> Callable[..., int]:
            return ctypes.CFUNCTYPE(result, *arguments)(rt.symbols[name])

        self.runtime = rt
        self.new = function("pk_block_new", PTR, PTR, I64)
        self.retain = function("pk_retain", None, PTR)
        self.release = function("pk_release", None, PTR, PTR)
        self.detach = function("pk_detach", None, PTR, PTR)
        self.free_all = function("pk_free_all", None, PTR)
        self.alloc = function("pk_alloc", PTR, I64)
        self.free = function("pk_free", None, PTR)
        self.limit = function("pk_set_pool_limit", None, I64)


@pytest.fixture
def mem() -> Iterator[Memory]:
    it = Memory(runtime())
    it.runtime.trim()
    yield it
    it.runtime.trim()


class Call:
    """A call context."""

    def __init__(self) -> None:
        self.words = np.zeros(Context.SIZE // 8, np.int64)
        self.address = self.words.ctypes.data

    def live(self) -> list[int]:
        """The listed blocks; checks the links back."""
        found: list[int] = []
        block, previous = int(self.words[Context.BLOCKS // 8]), 0
        while block:
            words = header(block)
            assert (words[2], words[4]) == (previous, self.address)
            found.append(block)
            block, previous = words[3], block
        return found


def header(block: int) -> list[int]:
    return list((I64 * 8).from_address(block))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("size", SIZES)
def test_a_block_is_aligned_and_whole(mem: Memory, size: int) -> None:
    call = Call()
    block = mem.new(call.address, size)
    assert block % ALIGNMENT == 0
    count, asked, _, _, owner, capacity, _, mapped = header(block)
    assert (count, asked, owner) == (1, size, call.address)
    assert capacity >= size
    assert (mapped > 0) == (size >= array_memory.LARGE)
    ctypes.memset(block + BLOCK_HEADER, 0xAB, size)
    assert call.live() == [block]
    mem.release(call.address, block)
    assert call.live() == []


def test_counts_and_lists(mem: Memory) -> None:
    call = Call()
    a, b, c = (mem.new(call.address, 100) for _ in range(3))
    assert call.live() == [c, b, a]
    mem.retain(b)
    mem.release(call.address, b)
    assert call.live() == [c, b, a]
    mem.release(call.address, b)
    assert call.live() == [c, a]
    mem.detach(call.address, c)
    assert call.live() == [a]
    mem.detach(call.address, c)  # a second time does nothing
    mem.release(call.address, a)
    assert call.live() == []
    mem.free(c + BLOCK_HEADER)
    mem.retain(None)
    mem.release(call.address, None)
    mem.free(None)


def test_the_way_out_of_an_error_frees_all(mem: Memory) -> None:
    call = Call()
    for size in SIZES:
        mem.retain(mem.new(call.address, size))
    mem.free_all(call.address)
    assert call.live() == []
    mem.free_all(call.address)


@pytest.mark.parametrize("size", [-1, 1 << 62, (1 << 63) - 1, 1 << 59])
def test_no_memory_is_null(mem: Memory, size: int) -> None:
    call = Call()
    assert mem.new(call.address, size) is None
    assert call.live() == []


def test_large_blocks_come_back(mem: Memory) -> None:
    first = mem.alloc(10 << 20)
    mem.free(first)
    assert mem.runtime.pooled_bytes() >= 10 << 20
    assert mem.alloc(9 << 20) == first  # fits with less than a quarter of waste
    assert mem.runtime.pooled_bytes() == 0
    mem.free(first)
    other = mem.alloc(6 << 20)  # would waste too much
    bigger = mem.alloc(11 << 20)
    assert first not in (other, bigger)
    mem.free(other)
    mem.free(bigger)
    assert mem.alloc(11 << 20) == bigger
    mem.free(bigger)


def test_the_most_recent_block_is_taken(mem: Memory) -> None:
    blocks = [mem.alloc(1 << 20) for _ in range(3)]
    for block in blocks:
        mem.free(block)
    assert [mem.alloc(1 << 20) for _ in range(3)] == blocks[::-1]
    for block in blocks:
        mem.free(block)


def test_the_pool_is_bounded(mem: Memory) -> None:
    try:
        mem.limit(8 << 20)
        for block in [mem.alloc(1 << 20) for _ in range(20)]:
            mem.free(block)
        assert 6 << 20 <= mem.runtime.pooled_bytes() <= 8 << 20
        mem.free(mem.alloc(100 << 20))  # more than the bound: not kept, and nothing else either
        assert mem.runtime.pooled_bytes() <= 8 << 20
        mem.limit(1 << 40)
        for block in [mem.alloc(array_memory.LARGE) for _ in range(memory_pool.POOL_LENGTH + 50)]:
            mem.free(block)
        assert mem.runtime.pooled_bytes() <= memory_pool.POOL_LENGTH * (array_memory.LARGE + 8192)
    finally:
        mem.limit(64 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_leaks(mem: Memory) -> None:
    def churn(rounds: int) -> None:
        call = Call()
        for k in range(rounds):
            for size in SIZES[:-1]:
                mem.new(call.address, size + k % 7)
            mem.free_all(call.address)
        mem.runtime.trim()

    churn(20)
    before = resident_bytes()
    churn(100)
    assert resident_bytes() - before < 8 << 20


def test_payloads_start_at_different_colours(mem: Memory) -> None:
    blocks = [mem.alloc(1 << 20) for _ in range(16)]
    assert len({block % 4096 for block in blocks}) == 16
    for block in blocks:
        mem.free(block)


def test_many_threads_share_the_pool(mem: Memory) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        chance = np.random.default_rng(seed)
        mine: list[tuple[int, int, int]] = []
        for k in range(400):
            size = int(chance.integers(array_memory.LARGE, 4 * array_memory.LARGE))
            payload = mem.alloc(size)
            mark = seed * 1000 + k
            I64.from_address(payload).value = mark
            I64.from_address(payload + size - 8).value = mark
            mine.append((payload, size, mark))
            if len(mine) > 5:
                payload, size, mark = mine.pop(int(chance.integers(len(mine))))
                ends = (I64.from_address(payload).value, I64.from_address(payload + size - 8).value)
                if ends != (mark, mark):
                    wrong.append(mark)
                mem.free(payload)
        for payload, _, _ in mine:
            mem.free(payload)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong
    assert not any(worker.is_alive() for worker in workers)


@contextmanager
def numpy_allocates_here() -> Iterator[None]:
    """NumPy takes new arrays' memory through the runtime's handler."""
    from numpy._core import _multiarray_umath

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = PTR, [ctypes.py_object, ctypes.c_char_p]
    table = (PTR * 400).from_address(pointer(_multiarray_umath._ARRAY_API, None))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])  # PyDataMem_SetHandler
    old = set_handler(runtime().mem_handler)
    try:
        yield
    finally:
        set_handler(old)


def handler_name(array: np.ndarray) -> str:
    from numpy._core.multiarray import get_handler_name

    return str(get_handler_name(array))


def test_numpy_arrays_own_payloads(mem: Memory) -> None:
    with numpy_allocates_here():
        arrays = [np.empty(size, np.uint8) for size in SIZES]
        zeros = np.zeros(3 << 20)
    for array, size in zip(arrays, SIZES, strict=True):
        assert handler_name(array) == "parakeet_py"
        assert array.ctypes.data % ALIGNMENT == 0
        array[:] = 7
        assert array.sum() == 7 * size
    assert not zeros.any()
    address = arrays[-1].ctypes.data
    del arrays, array
    assert mem.runtime.pooled_bytes() > SIZES[-1]
    with numpy_allocates_here():
        again = np.empty(SIZES[-1], np.uint8)
        dirty = np.full(3 << 20, 1.0)
        del dirty
        assert not np.zeros(3 << 20).any()  # recycled memory is cleared
    assert again.ctypes.data == address


def test_numpy_arrays_can_be_resized(mem: Memory) -> None:
    with numpy_allocates_here():
        array = np.arange(10)
    for size in (3, 20, 20_000, 20_001, 2_000_000, 50_000, 5):
        array.resize(size, refcheck=False)
        kept = min(size, 3)
        assert array[:kept].tolist() == list(range(kept))
        assert array.ctypes.data % ALIGNMENT == 0
    assert handler_name(array) == "parakeet_py"


def fork_while_allocating() -> None:
    """Fork while other threads hold the pool's lock now and then; the children allocate too."""
    mem = Memory(runtime())
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            mem.free(mem.alloc(100_000))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(30):
            child = os.fork()
            if child == 0:
                for block in [mem.alloc(100_000) for _ in range(10)]:
                    mem.free(block)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for worker in workers:
            worker.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_allocating() -> None:
    script = textwrap.dedent(f"""
        import sys, warnings
        warnings.simplefilter("ignore")
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_memory
        test_memory.fork_while_allocating()
        print("well")
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "well\n", done.stderr
