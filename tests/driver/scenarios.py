"""What is done on the stand-in for the driver, in a process of its own: `python -m tests.driver.scenarios NAME`."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np

from parakeet_py import accelerate, asdevice, options
from parakeet_py.doctor import examine
from parakeet_py.hybrid.devices import cuda, cuda_memory, pinned_pages
from parakeet_py.hybrid.devices.cuda_schedules import CudaRequests
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError, KernelError
from parakeet_py.hybrid.plan import device_plan
from parakeet_py.hybrid.residency.byte_ranges import Rows
from parakeet_py.llvm.runtime import call_queues
from parakeet_py.ptx.skeletons import tensor_core_products
from tests import driver
from tests.driver.machine import Event

HARMLESS = {("cuPointerGetAttribute", "INVALID_VALUE")}  # memory of the host


def refused() -> set[tuple[str, str]]:
    """What the driver has refused since the last question, but for what is asked to find that out."""
    found = set(driver.failed) - HARMLESS
    driver.failed.clear()
    assert not driver.unknown, driver.unknown
    return found


def nothing_left() -> None:
    for function in (relax,):
        function._dispatcher.recorded = None  # schedules keep memory
    for _ in range(3):  # what one round frees may be the last thing that kept other memory
        gc.collect()
        for device in cuda_memory.opened.values():
            device.trim()
            device.synchronize()  # memory is given back behind what has been launched
        for context in driver.machine.contexts:  # frees are in the order of streams
            driver.machine.here.context = context
            context.run()
    for context in driver.machine.contexts:
        assert context.device.memory.used == 0, context.device.memory.used


@accelerate
def relax(x: Any, y: Any) -> None:
    for _ in range(6):
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5


def mixed(x: Any, h: Any, z: Any, flag: Any, i: Any) -> Any:
    return x * 2 + i, h + h, z * (1 + 2j), x[x > 1].sum() if flag else x.sum(), np.cumsum(x), np.sort(x)


def calls() -> None:
    """Arguments of all kinds, exceptions; what the doctor says."""
    driver.load(capability=(9, 0))
    (finding,) = [one for one in examine() if one.topic == "CUDA"]
    assert finding.good and "sm_90a, 4 multiprocessors, 1.1 GB free" in finding.text
    args = np.arange(300.0), np.ones(5, np.float16), np.ones(3, np.complex64), True, np.int16(3)
    pick = accelerate(lambda x, i: x[i] * 2)
    with options(devices="cuda:0", check=False):  # checks wait for each kernel
        for one, other in zip(accelerate(mixed)(*args), mixed(*args), strict=True):
            assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype
        try:
            pick(np.ones(5), np.array([0, 7, 9]))
        except IndexError as error:
            assert str(error) == "index 7 is out of bounds for axis 0 with size 5"
        here = np.random.default_rng(1).random((2, 40, 5))
        there = [asdevice(one, "cuda:0") for one in here]
        for _ in range(4):
            relax(*there)
            relax.__wrapped__(*here)
        assert np.array_equal(np.asarray(there[0]), here[0])
    assert not refused()
    del there
    nothing_left()


def memory() -> None:
    """Copies of all kinds, more data than there is room for, and no room."""
    driver.load(memory=1 << 25)
    double = accelerate(lambda a: a * 2 + 1)
    columns = accelerate(lambda a: a.T.sum(axis=0))
    with options(devices="cuda:0"):
        large, matrix = np.arange(1_000_000.0), np.arange(2_000_000.0).reshape(1000, 2000)[:, 3:900]
        assert np.array_equal(double(large), large * 2 + 1)
        assert np.allclose(columns(matrix), matrix.T.sum(axis=0))
        assert not refused()
        larger = np.arange(6_000_000.0)
        assert np.array_equal(double(larger), larger * 2 + 1)
        try:
            double(asdevice(np.ones(3_000_000), "cuda:0"))
            raise AssertionError("there is no room")
        except DeviceMemoryError as error:
            assert "cuda:0 has no memory for 24000000 bytes" in str(error)
        assert refused() == {("cuMemAllocFromPoolAsync", "OUT_OF_MEMORY")}
        assert double(np.ones(10)).sum() == 30
    nothing_left()


def pinned() -> None:
    """Results in pinned pages, which are used again; large read-only arguments, pinned where they lie; both given back
    when others have no memory left."""
    found = driver.load(memory=1 << 25)
    pinned_pages.LEAST, pinned_pages.LARGE = 1 << 14, 1 << 20
    pages = cuda_memory.pinned_pages
    double = accelerate(lambda a: a * 2 + 1)
    turned = accelerate(lambda a: (a.T + 1, a[1:] - 1))
    data = np.arange(30_000.0)
    with options(devices="cuda:0"):
        results = [double(data) for _ in range(3)]
        assert all(np.array_equal(one, data * 2 + 1) and one.flags.owndata and one.base is None for one in results)
        assert found.registered == 3 and all(found.is_pinned(one.ctypes.data) for one in results)
        results[0].resize(10, refcheck=False)  # where it is
        results[1].resize(70_000, refcheck=False)  # elsewhere
        assert results[0].tolist() == (data[:10] * 2 + 1).tolist() and results[1][29_999] == 59_999
        assert not results[1][30_000:].any() and not found.is_pinned(results[1].ctypes.data)
        kept = results[2].copy()
        del results
        for _ in range(5):
            again = double(data)
        assert found.registered == 3 and np.array_equal(again, kept) and pages.bytes > 0
        matrix = np.arange(40_000.0).reshape(200, 200)
        there = asdevice(matrix)
        for one, other in zip(turned(matrix), turned.__wrapped__(matrix), strict=True):
            assert np.array_equal(one, other) and one.strides == other.strides and found.is_pinned(one.ctypes.data)
        assert found.is_pinned(np.asarray(there).ctypes.data) and found.is_pinned(np.asarray(there.T).ctypes.data)
        del again, one
        pages.trim()
        assert not pages.bytes and not pages.pinned
        found.unpinnable = True
        assert np.array_equal(double(data), data * 2 + 1)
        assert refused() == {("cuMemHostRegister", "OUT_OF_MEMORY")}
        found.unpinnable, pages._works = False, True

        large = np.arange(6_000_000.0)  # more than the device has room for
        large.flags.writeable = False
        total = accelerate(lambda a: a[::2] * 0.5 + a[1::2])
        expected = total.__wrapped__(large)
        for step in range(3):
            assert np.array_equal(total(large), expected)
            assert found.is_pinned(large.ctypes.data) == (step > 0)
        address = large.ctypes.data
        del large
        assert not found.is_pinned(address)

        device = cuda.devices(0)[0]
        small = asdevice(np.ones(1000))
        for _ in range(20):
            small = double(small)
        assert device.pool.bytes
        gc.collect()
        assert device.pool.bytes  # there is enough for all
        others = found.contexts[0].device.alloc((found.contexts[0].device.free_bytes // 512 - 1024) * 512)
        found.contexts[0].trimmed = 0
        gc.collect()
        assert not device.pool.bytes and found.contexts[0].trimmed == 1
        found.contexts[0].device.free(others)
    assert not refused() - {("cuMemAllocFromPoolAsync", "OUT_OF_MEMORY")}
    del small, there
    for function in (double, turned, total):
        function._dispatcher.recorded = None
    nothing_left()


def peers() -> None:
    """Two devices, and the CPU with them."""
    driver.load()
    here = np.random.default_rng(1).random((2, 40, 5))
    mine = here.copy()
    with options(devices="cuda", split=1.0):
        relax(*here)
        assert relax.explain(*here).device.last_run.moved[1, 2]
    relax.__wrapped__(*mine)
    assert np.array_equal(here, mine)
    sums = accelerate(lambda a: (np.cumsum(a), a.sum(), a[a > 500]))
    with options(devices="cpu,cuda", split=0.6):
        data = np.arange(100_000)
        for one, other in zip(sums(data), sums.__wrapped__(data), strict=True):
            assert np.array_equal(one, other)
    assert not refused()
    nothing_left()


def more_peers() -> None:
    """Three devices and four: all may read each other's memory, which is asked once a pair; links that are missing or
    refused change nothing but the way that bytes go; what others have been let read stays so."""
    driver.load(devices=4)
    machine = driver.machine
    machine.apart, machine.refusing = {(3, 0), (0, 3)}, {(2, 1)}
    machine.contexts[1].peers.add(3)  # by another library
    one, other = np.random.default_rng(2).random((40, 30)), np.random.default_rng(3).random((30, 40))
    product = accelerate(lambda a, b: a @ b + (b @ a).sum())
    turned = accelerate(lambda a: (a.T + 1, a.cumsum(axis=0), a.cumsum(axis=1)))
    for devices in ("cuda:0,cuda:1,cuda:2", "cuda"):
        with options(devices=devices, split=1.0):
            for _ in range(2):
                x, y = one.copy(), other.T.copy()
                mine = one.copy(), other.T.copy()
                relax(x, y)
                relax.__wrapped__(*mine)
                assert np.array_equal(x, mine[0]) and np.array_equal(y, mine[1])
                assert np.allclose(product(one, other), product.__wrapped__(one, other))
                for found, expected in zip(turned(one), turned.__wrapped__(one), strict=True):
                    assert np.allclose(found, expected)
    opened = [cuda.devices(number)[0] for number in range(4)]
    here = np.arange(8.0)
    for source in opened:
        place = source.allocate(64)
        source.copy_in(place, here.view(np.uint8))
        for target in opened:
            if target is source:
                continue
            there, back = target.allocate(64), np.zeros(8)
            for _ in range(2):
                target.copy_over(there, source, place, Rows(0, 64, 64, 1))
            target.copy_out(back.view(np.uint8), there)
            target.synchronize()
            assert np.array_equal(back, here)
            target.free(there)
        source.free(place)
    refusing = {("cuMemPoolSetAccess", "INVALID_DEVICE")}
    assert refused() <= refusing
    for number, context in enumerate(machine.contexts):
        readers = {one for one in range(4) if one != number and (one, number) not in machine.apart | machine.refusing}
        assert context.peers == readers, (number, context.peers)
        assert sorted([*context.admitted, *[3] * (number == 1)]) == sorted(readers), (number, context.admitted)
    nothing_left()


def schedules() -> None:
    """Calls that machine code does again: launches, copies between devices, in rows too, checks and elements. With four
    devices each has a list, and two threads go through them."""
    driver.load(devices=4)
    call_queues.CPUS_EACH = 1
    made = CudaRequests.__call__
    runs = [0]

    def counted(self: Any, *given: Any) -> Any:
        runs[0] += 1
        return made(self, *given)

    CudaRequests.__call__ = counted  # type: ignore[method-assign]
    columns = accelerate(lambda x, y: (x[:, :-2] + y[:, 2:] * 0.5, x))
    ends = accelerate(lambda x, y, s: ((x * s).sum(), y.max()))
    picked = accelerate(lambda x, i: x[i] * 2)

    @accelerate
    def late(x: Any, y: Any, i: Any) -> None:
        y += 1
        x[:] = y[i]

    @accelerate
    def across(x: Any, y: Any) -> None:
        y[:, 1:-1] = (x[:, :-2] + x[:, 2:]) * 0.5
        x[:, 1:-1] = (y[:, :-2] + y[:, 2:]) * 0.5

    for devices in ("cuda:0", "cuda:0,cuda:1", "cuda"):
        before = runs[0]
        with options(devices=devices, check=False):
            for work, shape in ((relax, (40, 5)), (columns, (9, 33)), (across, (5, 200))):
                here = np.random.default_rng(1).random((2, *shape))
                there = [asdevice(one) for one in here]
                for step in range(14):
                    found, expected = work(*there), work.__wrapped__(*here)
                    if expected is not None:
                        assert np.array_equal(np.asarray(found[0]), expected[0]) and found[1] is there[0]
                    if step in (2, 13):
                        assert all(np.array_equal(np.asarray(a), b) for a, b in zip(there, here, strict=True))
            for scale in (0.5, 0.5, 0.5, 2.0, -3.0):
                assert np.allclose(ends(*there, scale), ends.__wrapped__(*here, scale))
            index = asdevice(np.array([1, 0, 3]))
            for _ in range(6):
                assert np.array_equal(np.asarray(picked(there[0], index)), here[0][[1, 0, 3]] * 2)
            for _ in range(2):
                try:
                    picked(there[0], asdevice(np.array([1, 0, 30])))
                    raise AssertionError("there is no such row")
                except IndexError as error:
                    assert str(error) == "index 30 is out of bounds for axis 0 with size 5"
        assert runs[0] >= before + 10, (devices, runs[0] - before)
    with options(
        devices="cuda:0", check=False
    ):  # what fails after a store: from a schedule, too, it is not stored again
        one, two = asdevice(np.ones(4)), asdevice(np.zeros(4))
        for step in range(1, 9):
            if step % 4:
                late(one, two, asdevice(np.arange(4)))
            else:
                try:
                    late(one, two, asdevice(np.array([0, -5, 9, 1])))
                    raise AssertionError("there is no such element")
                except IndexError as error:
                    assert str(error) == "index -5 is out of bounds for axis 0 with size 4"
            assert np.asarray(two).tolist() == [step] * 4 and np.asarray(one)[0] == step - (step % 4 == 0)
    assert not refused()
    del there, found, index, one, two
    for function in (columns, ends, picked, across, late):
        function._dispatcher.recorded = None
    nothing_left()
    events = [one for one in driver.machine.handles.values() if isinstance(one, Event)]
    assert len(events) < 50, len(events)  # those of schedules have gone with them


def rounds() -> None:
    """Loops whose end an element decides: rounds that come again are asked for at once, those with checks too."""
    driver.load(capability=(9, 0))
    made = [0]
    round_of = cuda.CudaDevice.round_of

    def counted(*args: Any) -> Any:
        made[0] += 1
        return round_of(*args)

    cuda.CudaDevice.round_of = counted  # type: ignore[method-assign]

    @accelerate
    def settled(x: Any, y: Any, least: Any) -> Any:
        rounds = 0
        while True:
            y[1:-1] = (x[:-2] + x[2:]) * 0.5
            change = np.abs(x[1:-1] - y[1:-1]).max()
            x, y = y, x
            rounds += 1
            if change < least or rounds == 20:
                return x + rounds, change

    @accelerate
    def halved(x: Any, times: Any) -> Any:
        factor, total = -1.0, 0.0
        for _ in range(times):
            total = total + np.sort(x * factor)[3]
            factor = 0.0 if total > 0 else factor * 0.5 if factor else -0.0
            x = np.cumsum(x) * 0.25
            if total > 1e9:
                break
        return x, total, 1.0 / factor if factor else factor

    @accelerate
    def followed(x: Any, nexts: Any, seen: Any, times: Any) -> Any:
        """A chain of indices, one of which may be none; what has been stored before is seen."""
        places = np.arange(3)
        for _ in range(times):
            seen[places] += 1
            places = nexts[places]
            if x[places].sum() > 1e9:
                break
        return places

    with options(devices="cuda:0", check=False):
        for function, others in ((settled, (1e-3,)), (halved, (15,))):
            for _ in range(2):
                here = np.random.default_rng(1).random((2, 60))
                given = (*here, *others) if function is settled else (here[0], *others)
                there = [asdevice(one) if isinstance(one, np.ndarray) else one for one in given]
                for found, expected in zip(function(*there), function.__wrapped__(*given), strict=True):
                    np.testing.assert_allclose(np.asarray(found), expected, 1e-12)
                    assert np.array_equal(np.signbit(found), np.signbit(expected))
        for bad in (None, None, 20, 3, None):
            here = [np.arange(60.0), np.roll(np.arange(60), -1), np.zeros(60)]
            if bad is not None:
                here[1][bad] = 1000 + bad
            ended = []
            there = [asdevice(one) for one in here]
            for call, given in ((followed, there), (followed.__wrapped__, here)):
                try:
                    ended.append(np.asarray(call(*given, 30)).tolist())
                except IndexError as error:
                    ended.append(str(error))
            assert ended[0] == ended[1] and np.array_equal(np.asarray(there[2]), here[2]), (bad, ended)
    assert 4 <= made[0] < 150 and driver.machine.graphs_launched, made
    assert not refused()
    for function in (settled, halved, followed):
        function._dispatcher.recorded = None
    del there, found, given
    nothing_left()


def tensor_maps() -> None:
    """Products whose matrices come by bulk copies: maps are made by the driver, once for a schedule, and moved to other
    memory from then on. Matrices in lines that do not fit, or that begin elsewhere, have the other kernel."""
    driver.load(capability=(9, 0))
    tensor_core_products.MANY_TILES = 2

    def begin_whole(tensors: Any, args: Any) -> bool:
        return all(args[one.place].address % 16 == 0 for one in tensors)

    device_plan.is_quicker = begin_whole
    product = accelerate(lambda a, b: a @ b)
    rng = np.random.default_rng(1)
    shapes = (136, 128), (128, 136)
    with options(devices="cuda:0", check=False):
        for step in range(8):
            here = [rng.standard_normal(shape).astype("f2") for shape in shapes]
            expected = here[0].astype("f4") @ here[1].astype("f4")
            if step == 6:  # begins 2 bytes on
                there = [asdevice(np.pad(one.reshape(-1), (1, 0)))[1:].reshape(one.shape) for one in here]
            else:
                there = [asdevice(one) for one in here]
            np.testing.assert_allclose(np.asarray(product(*there)), expected, 2**-10, 0.05)
        there = [asdevice(np.stack([one, 2 * one])) for one in here]  # a batch: of three axes
        np.testing.assert_allclose(np.asarray(product(*there))[1], 4 * expected, 2**-10, 0.2)
        counted = [driver.asked[f"cuTensorMap{name}"] for name in ("EncodeTiled", "ReplaceAddress")]
    assert counted[0] == 2 * 5 and counted[1] == 2 * 4, counted
    assert not refused()
    product._dispatcher.recorded = None
    del there
    nothing_left()


def cubins(folder: str) -> None:
    """Machine code is made once for all processes: the second asks no linker."""
    found = driver.load(capability=(9, 0))
    work = accelerate(lambda x, y: np.sqrt(x) + y.sum())
    x = np.arange(100.0)
    with options(devices="cuda:0", cache=True, cache_dir=folder):
        assert np.allclose(work(x, x), np.sqrt(x) + x.sum())
    print("linked", found.linked)
    assert not refused()


class Shown:
    """An array of another library, which has been computed in a stream of its own."""

    def __init__(self, array: Any, stream: int) -> None:
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.array.__cuda_array_interface__, stream=self.stream)


def foreign() -> None:
    """Streams of others wait and are waited for: the default ones, and one by its handle."""
    driver.load()
    function = accelerate(lambda a, b: a * 2 + b)
    array = asdevice(np.arange(1000.0), "cuda:0")
    from cuda.core import Device

    theirs = Device(0).create_stream()
    for stream in (1, 2, int(theirs.handle)):
        result = function(Shown(array, stream), Shown(array, stream))
        assert np.array_equal(np.asarray(result), np.arange(1000.0) * 3)
        assert result.__dlpack_device__() == (2, 0)
        result.__dlpack__(stream=stream)  # it waits for us
    result.__dlpack__(stream=theirs)  # which says by `__cuda_stream__` what it is
    assert result.to_device("cuda:0", stream=theirs) is result
    assert not refused()


def faults() -> None:
    """A kernel that faults takes its device along, and no other."""
    driver.load()
    launch = cuda.CudaDevice.launch

    def wrong(self: Any, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Any) -> None:
        launch(self, module, kernel, blocks, threads, codes, [8 if v == values[2] else v for v in values])

    double, more = accelerate(lambda x: x * 2), accelerate(lambda x: x + 1)
    with options(devices="cuda:0", check=False):
        assert double(np.ones(1000))[0] == 2
        cuda.CudaDevice.launch = wrong  # type: ignore[method-assign]
        try:
            double(np.ones(1000))
            raise AssertionError("it has read what is not there")
        except KernelError as error:
            text = str(error)
            assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text and "scenarios.py:" in text and "float64[1000]" in text
        cuda.CudaDevice.launch = launch  # type: ignore[method-assign]
        try:
            more(np.ones(10))
            raise AssertionError("its context is gone")
        except DeviceError as error:
            assert "cannot be used any more in this process" in str(error)
    for devices in ("cuda:1", "cuda", "cpu"):
        with options(devices=devices):
            assert more(np.ones(10))[0] == 2


def bench(folder: str) -> None:
    from typer.testing import CliRunner

    from parakeet_py.cli import app

    driver.load(capability=(9, 0))
    names = ["axpy", "running_total", "smoothing"]
    found = CliRunner().invoke(app, ["bench-gpu", *names, "--size=XS", "--budget=1", f"--out={folder}"])
    assert found.exit_code == 0, found.output


if __name__ == "__mp_main__":  # the process that `bench` starts
    driver.load(capability=(9, 0))
elif __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    print("done")
