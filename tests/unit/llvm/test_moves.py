"""Copies and fills by the runtime: every length around its steps, every size of element, parts of arrays."""

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.llvm.runtime import host_copies

DTYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "float16",
    "float32",
    "int64",
    "uint64",
    "float64",
    "complex64",
    "complex128",
)
LENGTHS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130, 1001)


def sample(length, dtype):
    return (np.arange(length) * 37 % 251).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies(dtype):
    @accelerate
    def copied(a):
        return a.copy()

    for length in LENGTHS:
        a = sample(length, dtype)
        given = copied(a)
        assert given.dtype == a.dtype and np.array_equal(given, a) and not np.shares_memory(given, a)
    assert "@pk_copy" in copied.llvm(sample(3, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_fills_of_a_part(dtype):
    def filled(a, first, behind):
        a[first:behind] = 1
        return a

    fast = accelerate(filled)
    for length in LENGTHS:
        for first, behind in ((0, length), (1, length), (1, length - 1), (3, 5), (length, 2)):
            expected, given = (one(sample(length, dtype), first, behind) for one in (filled, fast))
            assert np.array_equal(given, expected), (length, first, behind)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, float("inf"), float("nan")])
def test_fills_keep_the_bits_of_constants(value):
    made = accelerate(lambda n: np.full(n, value))
    for length in LENGTHS:
        assert made(length).tobytes() == np.full(length, value).tobytes()


def test_constants_are_filled_by_the_runtime():
    @accelerate
    def ones(n):
        return np.ones(n)

    assert "@pk_fill" in ones.llvm(5)


@pytest.mark.parametrize("threads", [1, 2])
def test_shared_ranges_are_whole(threads):
    def both(a):
        return a.copy(), np.full(len(a), -3, np.int16)

    a = sample(300_007, "int16")
    with options(threads=threads):
        given = accelerate(both)(a)
    assert all(map(np.array_equal, given, both(a)))


@pytest.mark.parametrize("size", [0, 1, host_copies.GRAIN, host_copies.GRAIN + 1, 5 * host_copies.GRAIN + 3])
def test_memory_that_the_pool_copies(size):
    source = sample(size + 2, "uint8")
    target = np.zeros_like(source)
    with options(threads=2):
        host_copies.copy(target.ctypes.data + 1, source.ctypes.data + 1, size)
    assert np.array_equal(target[1 : size + 1], source[1 : size + 1]) and target[0] == target[-1] == 0


@pytest.mark.parametrize(("height", "width"), [(0, 5), (3, 1), (300, 2000), (3, host_copies.GRAIN)])
def test_rows_that_the_pool_copies(height, width):
    source = sample(height * (width + 7), "uint8").reshape(height, width + 7)
    target = np.zeros((height, width + 3), np.uint8)
    with options(threads=2):
        host_copies.copy_rows(target.ctypes.data, width + 3, source.ctypes.data, width + 7, height, width)
    assert np.array_equal(target[:, :width], source[:, :width]) and not target[:, width:].any()
