"""Calls on one device: arrays, results and arguments, what is handed back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices.device import DeviceMemoryError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.residency.blocks import Memories, SharedArray, of_arguments
from parakeet_py.hybrid.residency.byte_ranges import span
from tests.helpers.one_device import free_bytes, on


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice("emulated:9", memory=1 << 20)


base = np.arange(60.0)
LAYOUTS = {
    "contiguous": base.reshape(3, 4, 5),
    "transposed": base.reshape(3, 4, 5).T,
    "reversed": base[::-1],
    "reversed in part": base.reshape(5, 12)[::-1, ::-2],
    "strided": base[::7],
    "a column": base.reshape(12, 5)[:, 3],
    "0-d": np.array(3.5),
    "0-d inside": base[7:8].reshape(()),
    "empty": np.ones((0, 3)),
    "empty inside": base.reshape(3, 20)[1:1],
    "broadcast": np.broadcast_to(base[:3], (4, 3)),
    "one element, odd stride": base[5::100],
    "read-only": np.frombuffer(bytes(16), np.int32),
    "bools": base > 30,
    "halves": base.astype(np.float16)[::-3],
    "complex": (base + 1j)[::2],
    "in a record": np.zeros(5, np.dtype([("a", "i4"), ("b", "f8")]))["b"],
}


def brought(device: EmulatedDevice, arrays: Sequence[np.ndarray[Any, Any]]) -> list[SharedArray]:
    """Arrays of the host, also on a device."""
    found = of_arguments(Memories([device]), arrays)
    for one in found:
        one.root.bring(1, span(0, one.root.size))
    return found


@pytest.mark.parametrize("array", LAYOUTS.values(), ids=list(LAYOUTS))
def test_up_and_down(device: EmulatedDevice, array: np.ndarray[Any, Any]) -> None:
    (shared,) = brought(device, [array])
    there = shared.on_device(1)
    assert there.shape == array.shape and there.strides == array.strides
    back = there.to_host()
    assert back.dtype == array.dtype and back.shape == array.shape and np.array_equal(back, array)
    assert not np.shares_memory(back, array)


def test_far_apart_is_packed(device: EmulatedDevice) -> None:
    far = np.ones(200_000)[::150_000]  # with its strides it would not fit
    add = accelerate(lambda x, y: x + y)
    other = np.ones(200_000)[::150_000]
    assert on(device, add, far, other).tolist() == [2, 2]
    run = device_run_of(add, far, other)
    assert run.bytes_in == 32 and run.bytes_out == 16

    @accelerate
    def double(x: Any) -> None:
        x *= 2

    on(device, double, far)
    assert far.tolist() == [2, 2] and far.base is not None and far.base.sum() == 200_002
    with pytest.raises(DeviceMemoryError):
        brought(device, [far])


def device_run_of(function: Any, *args: Any) -> Any:
    return calls.device_plan_of(function._dispatcher.compiled_for_normal(args)).last_run


def test_overlapping_arguments_overlap_there(device: EmulatedDevice) -> None:
    memory = np.arange(20.0)
    parts = [memory[4:10], memory[8:16], np.ones(3), memory[15:7:-1]]
    shared = brought(device, parts)
    first, second, other, backwards = (one.on_device(1) for one in shared)
    assert first.buffer is second.buffer is backwards.buffer is not other.buffer
    assert second.address - first.address == 4 * 8 and backwards.address - first.address == 11 * 8
    device.copy_in(second.address, np.array([77.0]).view(np.uint8))
    assert first.to_host()[4] == 77 and backwards.to_host()[7] == 77
    for one in shared:
        one.root.wrote(1, span(0, one.root.size))
    for one in shared:
        one.on_host()
    assert memory[8] == 77 and memory[9] == 9


def test_neighbours_do_not_share(device: EmulatedDevice) -> None:
    memory = np.arange(20.0)
    left, right = brought(device, [memory[:10], memory[10:]])
    assert left.root is not right.root


def test_views_of_arguments(device: EmulatedDevice) -> None:
    memory = np.arange(12.0)
    (there,) = brought(device, [memory])
    assert there.host is memory
    view = there.place((3,), (-8,), 16).host
    assert np.shares_memory(view, memory) and view.base is memory and view.tolist() == [2, 1, 0]
    memory[1] = 50
    assert view[1] == 50
    memory.flags.writeable = False
    (there,) = brought(device, [memory])
    assert not there.place((3,), (-8,), 16).host.flags.writeable


def test_memory_comes_back(device: EmulatedDevice) -> None:
    before = free_bytes(device)
    arrays = [one.on_device(1) for one in brought(device, [np.ones(100), np.ones((0, 2)), np.array(1)])]
    assert free_bytes(device) < before
    del arrays
    assert free_bytes(device) == before


def test_temporary_arrays_of_a_loop_come_back() -> None:
    """Before the call ends: they would fill the device."""

    @accelerate
    def rounds(x: Any, times: Any) -> Any:
        for _ in range(times):
            x = np.cumsum(x[::-1]) * 0.25
        return x

    x = np.random.default_rng(1).random(400)
    device = EmulatedDevice("emulated:small", memory=12 * x.nbytes)
    np.testing.assert_allclose(on(device, rounds, x, 30), rounds.__wrapped__(x, 30))


def test_views_are_returned_as_views(device: EmulatedDevice) -> None:
    @accelerate
    def parts(x: Any) -> Any:
        return x, x[1:3], x.T, x + 1, x[::-1]

    x = np.arange(12.0).reshape(4, 3)
    same, rows, transposed, fresh, backwards = on(device, parts, x)
    assert same is x and np.shares_memory(rows, x) and np.shares_memory(transposed, x)
    assert not np.shares_memory(fresh, x) and backwards.strides == (-24, 8) and backwards.base is not None
    x[1, 0] = 99
    assert rows[0, 0] == 99 and transposed[0, 1] == 99 and backwards[2, 0] == 99


def test_results_share_what_they_share_in_python(device: EmulatedDevice) -> None:
    @accelerate
    def several(x: Any, w: bool) -> Any:
        y = x * 2.0
        z = None
        if w:
            z = y
        return y, z, y[1:]

    for w in (True, False):
        with options(devices="emulated"):
            several(np.arange(5.0), w)
            y, z, rest = several(np.arange(5.0), w)
        assert (z is y) is w
        rest[0] = 7.0
        assert y.tolist() == [0.0, 7.0, 4.0, 6.0, 8.0]


def test_arguments_change(device: EmulatedDevice) -> None:
    @accelerate
    def smear(a: Any, b: Any) -> Any:
        a[1:] += a[:-1]
        b[::2] = a[0]
        return a[0] + b[1]

    memory, plain = np.arange(30.0), np.arange(30.0)
    with np.errstate(all="ignore"):
        expected = smear.__wrapped__(plain[20:5:-1], plain[3:12])
    assert on(device, smear, memory[20:5:-1], memory[3:12]) == expected  # overlapping and reversed
    assert np.array_equal(memory, plain)


def test_only_what_was_stored_to_is_copied_back(device: EmulatedDevice) -> None:
    @accelerate
    def copy(x: Any, y: Any) -> None:
        y[:] = x

    x, y = np.ones(1000), np.zeros(1000)
    on(device, copy, x, y)
    plan = calls.device_plan_of(copy._dispatcher.compiled_for_normal((x, y)))
    assert plan.last_run is not None
    assert plan.last_run.bytes_in == 16000 and plan.last_run.bytes_out == 8000


def test_what_is_not_stored_to_is_not_copied_back(device: EmulatedDevice) -> None:
    @accelerate
    def sometimes(x: Any, y: Any, flag: Any) -> Any:
        if flag:
            x[:] = 1
        y[2:5] = 7
        z = np.partition(y, 1)
        return z + y.sum()

    for flag in (False, False, False, True):  # the first call observes, others are known by then
        x, y, plain, other = np.zeros(1000), np.arange(10.0), np.zeros(1000), np.arange(10.0)
        found = on(device, sometimes, x, y, flag)
        assert np.allclose(found, sometimes.__wrapped__(plain, other, flag))
        assert np.array_equal(x, plain) and np.array_equal(y, other)
        plan = calls.device_plan_of(sometimes._dispatcher.compiled_for_normal((x, y, flag)))
        if plan.last_run is not None:
            assert (plan.last_run.bytes_out >= x.nbytes) == flag


def test_read_only_results_of_read_only_arguments(device: EmulatedDevice) -> None:
    @accelerate
    def tail(x: Any) -> Any:
        return x[1:]

    x = np.arange(5.0)
    x.flags.writeable = False
    found = on(device, tail, x)
    assert not found.flags.writeable and found.tolist() == [1, 2, 3, 4]


def test_storing_into_read_only_arguments(device: EmulatedDevice) -> None:
    @accelerate
    def clear(x: Any) -> None:
        x[:] = 0

    x = np.ones(5)
    x.flags.writeable = False
    with warnings.catch_warnings(), pytest.raises(ValueError, match="read-only"):
        warnings.simplefilter("ignore")
        with options(devices="emulated"):
            clear(x)
    assert x.sum() == 5


@pytest.mark.parametrize("x", [np.ones((0, 3)), np.array(2.5), np.ones((3, 0))], ids=["none", "0-d", "no columns"])
def test_few_elements(device: EmulatedDevice, x: np.ndarray[Any, Any]) -> None:
    @accelerate
    def several(x: Any) -> Any:
        return x * 2, x.sum(), x.T

    for one, other in zip(on(device, several, x), several.__wrapped__(x), strict=True):
        assert type(one) is type(other) and np.array_equal(one, other) and np.shape(one) == np.shape(other)


def test_loops_copy_nothing(device: EmulatedDevice) -> None:
    """What a host loop launches leaves its arrays on the device."""

    @accelerate
    def smooth(x: Any, times: Any) -> Any:
        for _ in range(times):
            x = 0.5 * (np.roll(x, 1) + x)
        return x

    x = np.arange(1000.0)
    assert np.allclose(on(device, smooth, x, 3), smooth.__wrapped__(x, 3))
    plan = calls.device_plan_of(smooth._dispatcher.compiled_for_normal((x, 3)))
    assert plan.last_run is not None
    few = plan.last_run.bytes_in, plan.last_run.bytes_out
    on(device, smooth, x, 30)
    assert (plan.last_run.bytes_in, plan.last_run.bytes_out) == few


def test_operations_handed_back(device: EmulatedDevice) -> None:
    @accelerate
    def norms(x: Any) -> Any:
        x += 1
        values = np.partition(x * 2, 1)
        return values * 2, x.sum()

    x, plain = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    for _ in range(3):  # the first call observes what the operation gives
        (found, total), (expected, whole) = on(device, norms, x), norms.__wrapped__(plain)
        assert np.allclose(found, expected) and total == whole and np.array_equal(x, plain)


def test_operations_that_are_done_anew_when_a_call_is_replayed() -> None:
    """In a comprehension, with a result of other types than in the call that was observed."""

    @accelerate
    def least(m: Any, k: Any) -> Any:
        found = [sorted([m, -1, np.int32(-2)])[0] for _ in (k,)]
        return np.allclose(k, k, rtol=found[0]), found

    with options(devices="emulated"):
        for m in (2**31 - 1, 2**31 - 1, -3, -3, -1):
            found = least(np.int32(m), 1)
            assert found == least.__wrapped__(np.int32(m), 1)
            assert type(found[1][0]) is type(least.__wrapped__(np.int32(m), 1)[1][0])
