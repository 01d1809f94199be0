"""Copies through pinned memory, on the stand-in for CUDA, which reads and writes pinned memory only when it is due."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.hybrid.devices import cuda, staging
from parakeet_py.hybrid.devices.device import DeviceError, KernelError
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.hybrid.residency.byte_ranges import Rows
from tests.helpers import fake_cuda


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_cuda.Context]:
    monkeypatch.setattr(staging, "SMALL", 64)
    monkeypatch.setattr(staging, "BLOCK", 1000)
    with fake_cuda.installed() as found:
        yield found


@pytest.mark.parametrize("size", [0, 1, 64, 65, 999, 1000, 1001, 4000, 4001, 12_345])
def test_there_and_back(context: fake_cuda.Context, size: int) -> None:
    (device,) = open_devices("cuda:0")
    addresses = [device.allocate(max(size, 1)) for _ in range(2)]
    data = [np.random.default_rng(seed).integers(0, 256, size, np.uint8) for seed in range(2)]
    for address, source in zip(addresses, data, strict=True):
        mine = source.copy()
        device.copy_in(address, mine)
        mine[:] = 7  # it has been read
    for address, source in zip(addresses, data, strict=True):
        back = np.empty(size, np.uint8)
        device.copy_out(back, address)
        assert np.array_equal(back, source)


@pytest.mark.parametrize(("rows", "width"), [(1, 5), (3, 300), (40, 100), (7, 1000), (3, 1500)])
def test_rows_that_lie_apart(context: fake_cuda.Context, rows: int, width: int) -> None:
    (device,) = open_devices("cuda:0")
    whole = np.random.default_rng(1).integers(0, 256, (rows, width + 11), np.uint8)
    address = device.allocate(whole.nbytes)
    device.copy_in(address, np.zeros(whole.size, np.uint8))
    mine = whole.copy()
    device.copy_in(address + 3, mine[:, 3 : 3 + width], width + 11)
    mine[:] = 7  # it has been read
    flat = np.empty(whole.size, np.uint8)
    device.copy_out(flat, address)
    assert np.array_equal(flat.reshape(whole.shape)[:, 3 : 3 + width], whole[:, 3 : 3 + width]) and not flat[:3].any()
    back = np.zeros_like(whole)
    device.copy_out(back[:, 3 : 3 + width], address + 3, width + 11)
    assert np.array_equal(back[:, 3 : 3 + width], whole[:, 3 : 3 + width]) and not back[:, :3].any()


def test_rows_from_another_device(context: fake_cuda.Context) -> None:
    first, second = open_devices("cuda")
    whole = np.random.default_rng(1).integers(0, 256, (6, 50), np.uint8)
    addresses = [device.allocate(whole.nbytes) for device in (first, second)]
    first.copy_in(addresses[0], whole.reshape(-1))
    second.copy_in(addresses[1], np.zeros(whole.size, np.uint8))
    settled = first.mark()
    for after, rows in ((None, Rows(4, 10, 50, 6)), (settled, Rows(254, 40, 0, 1))):
        second.copy_over(addresses[1] + rows.start, first, addresses[0] + rows.start, rows, after)
    back = np.empty_like(whole)
    second.copy_out(back.reshape(-1), addresses[1])
    wanted = np.zeros_like(whole)
    wanted[:, 4:14], wanted[5, 4:44] = whole[:, 4:14], whole[5, 4:44]
    assert np.array_equal(back, wanted)


def test_copies_in_wait_for_no_kernel(context: fake_cuda.Context) -> None:
    """What has been given to the device is still waiting when a large copy to it returns."""
    (device,) = open_devices("cuda:0")
    address = device.allocate(3000)
    before = len(context.queue)
    device.copy_in(address, np.ones(3000, np.uint8))
    assert len(context.queue) == before + 6  # three copies and their events
    device.copy_in(address, np.ones(30, np.uint8))
    assert len(context.queue) == before + 7
    device.synchronize()
    assert not context.queue


def test_no_more_blocks_than_there_may_be(context: fake_cuda.Context) -> None:
    (device,) = open_devices("cuda:0")
    address = device.allocate(100_000)
    device.copy_in(address, np.ones(100_000, np.uint8))
    device.copy_out(np.ones(100_000, np.uint8), address)
    assert isinstance(device, cuda.CudaDevice) and len(device._lane().staging._blocks) == staging.BLOCKS


def test_pinned_memory_is_used_in_place(context: fake_cuda.Context) -> None:
    (device,) = open_devices("cuda:0")
    address = device.allocate(5000)
    assert isinstance(device, cuda.CudaDevice)
    from cuda.core import LegacyPinnedMemoryResource

    buffer = LegacyPinnedMemoryResource().allocate(5000)
    pinned = next(iter(_arrays(buffer.handle, 5000)))
    pinned[:] = 3
    device.copy_in(address, pinned)
    assert not context.queue and not device._lane().staging._blocks
    pinned[:] = 0
    device.copy_out(pinned, address)
    assert (pinned == 3).all() and not device._lane().staging._blocks


def _arrays(address: int, size: int) -> Iterator[Any]:
    import ctypes

    yield np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def test_whole_calls(context: fake_cuda.Context) -> None:
    @accelerate
    def several(x: Any, y: Any) -> Any:
        y[:] = x + y
        return np.cumsum(y), y.sum()

    for _ in range(3):
        x, y, plain = np.arange(3000.0), np.ones(3000), np.ones(3000)
        with options(devices="cuda:0"):
            found, total = several(x, y)
        expected, whole = several.__wrapped__(x, plain)
        assert np.array_equal(found, expected) and total == whole and np.array_equal(y, plain)


def test_faults_are_told_by_the_copy_that_waits(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    double = accelerate(lambda x: x * 2)
    launch = cuda.CudaDevice.launch

    def wrong(self: Any, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Any) -> None:
        launch(self, module, kernel, blocks, threads, codes, [8 if v == values[2] else v for v in values])

    monkeypatch.setattr(cuda.CudaDevice, "launch", wrong)
    with options(devices="cuda:0", check=False):
        with pytest.raises(KernelError, match="map_0"):
            double(np.ones(1000))
        with pytest.raises(DeviceError, match="cannot be used any more"):
            double(np.ones(1000))
