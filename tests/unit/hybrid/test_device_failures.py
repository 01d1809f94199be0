"""Calls on one device that fail: exceptions, memory, faults."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.hybrid.devices.device import DeviceMemoryError, KernelError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.ptx import emulator
from tests.helpers.one_device import free_bytes, on


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice("emulated:9", memory=1 << 20)


@pytest.mark.parametrize("first", [0, 255, 256, 5000, 9999])
def test_the_first_failing_index_is_told(device: EmulatedDevice, first: int) -> None:
    @accelerate
    def pick(x: Any, i: Any) -> Any:
        return x[i] * 2.0

    x, i = np.ones(10), np.zeros(10_000, np.int64)
    i[first:] = 100 + np.arange(10_000 - first)
    with pytest.raises(IndexError, match=f"index {i[first]} is out of bounds for axis 0 with size 10"):
        on(device, pick, x, i)
    i[first:] = -3
    assert np.array_equal(on(device, pick, x, i), x[i] * 2)


@pytest.mark.parametrize("name", ["loop", "stores", "shapes"])
def test_exceptions_leave_arguments_as_python_does(device: EmulatedDevice, name: str) -> None:
    def loop(x: Any, i: Any) -> None:
        for k in range(len(i)):
            x[i[k]] += 1

    def stores(x: Any, i: Any) -> None:
        x[:] = 7
        x[i] = 1

    def shapes(x: Any, i: Any) -> None:
        x *= 2
        x += np.ones(len(i) + 2)

    function = {"loop": loop, "stores": stores, "shapes": shapes}[name]
    i = np.array([1, 3, 99, 2])
    plain, mine = np.arange(5.0), np.arange(5.0)
    with pytest.raises((IndexError, ValueError)) as expected:
        function(plain, i)
    with pytest.raises(type(expected.value)) as caught:
        on(device, accelerate(function), mine, i)
    assert str(caught.value) == str(expected.value)
    assert np.array_equal(plain, mine)


def test_later_calls_work_after_an_exception(device: EmulatedDevice) -> None:
    @accelerate
    def pick(x: Any, i: Any) -> Any:
        return x[i]

    before = free_bytes(device)
    for _ in range(3):
        with pytest.raises(IndexError):
            on(device, pick, np.ones(3), np.array([0, 5]))
        assert on(device, pick, np.ones(3), np.array([0, 1])).tolist() == [1, 1]
    assert free_bytes(device) == before


def test_no_memory_for_arguments(device: EmulatedDevice) -> None:
    """What does not fit is computed in pieces; what cannot be is the CPU's, but for what is seen elsewhere."""

    @accelerate
    def double(x: Any) -> Any:
        return x * 2

    before = free_bytes(device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert on(device, double, np.ones(200_000)).sum() == 400_000
    assert free_bytes(device) == before
    assert on(device, double, np.ones(3)).tolist() == [2, 2, 2]
    there = asdevice(np.ones(80_000), device)
    with pytest.raises(DeviceMemoryError, match=r"emulated:9 has no memory for 640000 bytes: \d+ are free"):
        double(there)


def test_no_memory_half_way(device: EmulatedDevice) -> None:
    @accelerate
    def fill(x: Any, n: Any) -> Any:
        x[:] = 5
        sums = np.zeros(n) + x[0]
        for k in range(1, n):  # is not cut
            sums[k] += sums[k - 1]
        return sums

    x = np.zeros(10)
    before = free_bytes(device)
    with pytest.warns(
        DeviceWarning, match="emulated:9 has failed, its work is done by the CPU: emulated:9 has no memory"
    ):
        found = on(device, fill, x, 1_000_000)
    assert x.tolist() == [5] * 10 and found[-1] == 5_000_000
    assert free_bytes(device) == before
    assert on(device, fill, x, 3).tolist() == [5, 10, 15]


def test_a_fault_names_kernel_line_and_arguments(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    @accelerate
    def double(x: Any, a: Any) -> Any:
        return x * a

    launch = EmulatedDevice.launch

    def wrong(self: Any, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Any) -> None:
        more = {500: 5000, 250: 256}  # extents, and threads for two elements each
        launch(self, module, kernel, blocks, threads, codes, [more.get(value, value) for value in values])

    x = np.ones(500)
    before = free_bytes(device)
    monkeypatch.setattr(EmulatedDevice, "launch", wrong)
    with pytest.raises(KernelError) as caught:
        on(device, double, x, 3.0)
    text = str(caught.value)
    line = double.__wrapped__.__code__.co_firstlineno + 2
    assert "emulated:9: PTX line" in text and "kernel double_map_0" in text
    assert f"test_device_failures.py:{line})" in text
    assert "1 x 256 threads" in text
    assert "float64[500] at 0x" in text and "= 3.0" in text
    assert isinstance(caught.value.__cause__.__cause__, emulator.MemoryFault)  # type: ignore[union-attr]
    monkeypatch.undo()
    del caught
    assert free_bytes(device) == before
    assert on(device, double, x, 3.0)[0] == 3
