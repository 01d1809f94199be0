"""Calls on devices: arguments that go there and come back, exceptions, memory, faults, settings."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.hybrid import calls, cuda, cuda_probe, devices
from parakeet_py.hybrid.arrays import DeviceView, download, host_view, upload
from parakeet_py.hybrid.device import DeviceError, DeviceMemoryError, DeviceWarning, KernelError
from parakeet_py.hybrid.emulated import EmulatedDevice
from parakeet_py.ptx import emulator


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice("emulated:9", memory=1 << 20)


def on(device: EmulatedDevice, function: Any, *args: Any) -> Any:
    """A call of an accelerated function on one device."""
    return calls.call(function._dispatcher, args, device)


def free_bytes(device: EmulatedDevice) -> int:
    gc.collect()
    return device._device.free_bytes


# ---- arrays ----------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("keep_strides", [False, True])
@pytest.mark.parametrize("array", LAYOUTS.values(), ids=list(LAYOUTS))
def test_up_and_down(device: EmulatedDevice, array: np.ndarray[Any, Any], keep_strides: bool) -> None:
    (there,) = upload(device, [array], keep_strides)
    assert there.shape == array.shape
    if keep_strides and array.size:
        assert there.strides == array.strides
    back = there.to_host()
    assert back.dtype == array.dtype and back.shape == array.shape and np.array_equal(back, array)
    assert not np.shares_memory(back, array)


def test_far_apart_is_packed(device: EmulatedDevice) -> None:
    far = np.ones(200_000)[::150_000]
    (there,) = upload(device, [far], False)  # with its strides it would not fit
    assert there.strides == (8,) and there.buffer.size == 16
    with pytest.raises(DeviceMemoryError):
        upload(device, [far], True)


def test_overlapping_arguments_overlap_there(device: EmulatedDevice) -> None:
    memory = np.arange(20.0)
    parts = [memory[4:10], memory[8:16], np.ones(3), memory[15:7:-1]]
    there = upload(device, parts, False)
    first, second, other, backwards = there
    assert first.buffer is second.buffer is backwards.buffer is not other.buffer
    assert second.address - first.address == 4 * 8 and backwards.address - first.address == 11 * 8
    device.copy_in(second.address, np.array([77.0]).view(np.uint8))
    assert first.to_host()[4] == 77 and backwards.to_host()[7] == 77
    for array in there:
        download(array)
    assert memory[8] == 77 and memory[9] == 9


def test_neighbours_do_not_share(device: EmulatedDevice) -> None:
    memory = np.arange(20.0)
    left, right = upload(device, [memory[:10], memory[10:]], False)
    assert left.buffer is not right.buffer


def test_views_of_arguments(device: EmulatedDevice) -> None:
    memory = np.arange(12.0)
    (there,) = upload(device, [memory], True)
    assert host_view(there) is memory
    part = DeviceView(there.buffer, there.offset + 16, "float64", (3,), (-8,))
    view = host_view(part)
    assert view is not None and np.shares_memory(view, memory) and view.tolist() == [2, 1, 0]
    memory[1] = 50
    assert view[1] == 50
    memory.flags.writeable = False
    frozen = host_view(part)
    assert frozen is not None and not frozen.flags.writeable


def test_memory_comes_back(device: EmulatedDevice) -> None:
    before = free_bytes(device)
    arrays = upload(device, [np.ones(100), np.ones((0, 2)), np.array(1)], False)
    assert free_bytes(device) < before
    del arrays
    assert free_bytes(device) == before


# ---- results and arguments -------------------------------------------------------------------------------------------


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
    plan = calls.plan_of(copy._dispatcher.compiled_for_normal((x, y)))
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
        plan = calls.plan_of(sometimes._dispatcher.compiled_for_normal((x, y, flag)))
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
    plan = calls.plan_of(smooth._dispatcher.compiled_for_normal((x, 3)))
    assert plan.last_run is not None
    few = plan.last_run.bytes_in, plan.last_run.bytes_out
    on(device, smooth, x, 30)
    assert (plan.last_run.bytes_in, plan.last_run.bytes_out) == few


# ---- exceptions ------------------------------------------------------------------------------------------------------


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


# ---- memory ----------------------------------------------------------------------------------------------------------


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


# ---- faults ----------------------------------------------------------------------------------------------------------


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
    assert "emulated:9: PTX line" in text and "kernel double_map_0" in text and f"test_hybrid.py:{line})" in text
    assert "1 x 256 threads" in text
    assert "float64[500] at 0x" in text and "= 3.0" in text
    assert isinstance(caught.value.__cause__.__cause__, emulator.MemoryFault)  # type: ignore[union-attr]
    monkeypatch.undo()
    del caught
    assert free_bytes(device) == before
    assert on(device, double, x, 3.0)[0] == 3


# ---- handed back to Python -------------------------------------------------------------------------------------------


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


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels launched on emulated devices, as "device kernel"."""
    found: list[str] = []
    launch = EmulatedDevice.launch

    def told(self: Any, module: Any, kernel: str, *rest: Any) -> None:
        found.append(f"{self.name} {kernel}")
        launch(self, module, kernel, *rest)

    monkeypatch.setattr(EmulatedDevice, "launch", told)
    return found


def triple(x: Any) -> Any:
    return x * 3


def test_options(launches: list[str]) -> None:
    function = accelerate(triple)
    x = np.ones(4)
    function(x)
    assert launches == []
    with options(devices="emulated"):
        function(x)
        assert launches == ["emulated:0 triple_map_0"]
        with options(devices="cpu"):
            function(x)
        with options(threads=1):
            function(x)
        assert len(launches) == 2
    assert function(x)[0] == 3 and len(launches) == 2


def test_the_decorator(launches: list[str]) -> None:
    function = accelerate(devices="emulated")(triple)
    assert function(np.ones(4))[0] == 3 and len(launches) == 1
    with options(threads=1):
        assert function(np.ones(4))[0] == 3 and len(launches) == 2
    never = accelerate(devices="cpu")(triple)
    with options(devices="emulated"):
        for _ in range(2):
            assert never(np.ones(4))[0] == 3 and len(launches) == 2
    assert not never.fell_back and len(never.specializations) == 1


def test_other_threads_run_natively(launches: list[str]) -> None:
    function = accelerate(triple)
    function(np.ones(4))
    found: list[Any] = []
    with options(devices="emulated"):
        other = threading.Thread(target=lambda: found.append(function(np.ones(4))))
        other.start()
        other.join()
        assert found[0][0] == 3 and launches == []
        function(np.ones(4))
    assert len(launches) == 1


def test_threads_share_a_device(launches: list[str]) -> None:
    function = accelerate(devices="emulated")(lambda x: (x * 3).sum())
    found: list[Any] = [None] * 6

    def work(number: int) -> None:
        found[number] = function(np.full(100 + number, float(number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3.0 * number * (100 + number) for number in range(6)]


def test_several_emulated_devices(launches: list[str]) -> None:
    assert [one.name for one in devices.open_devices("cpu,emulated*2,emulated")] == [
        "emulated:0",
        "emulated:1",
        "emulated:2",
    ]
    assert devices.open_devices("emulated")[0] is devices.open_devices("emulated*2")[0]


@pytest.mark.parametrize("names", ["gpu", "emulated*0", "emulated*65", "cuda:x", "cpu,,emulated", "", "emulated:64"])
def test_names_that_mean_nothing(names: str) -> None:
    with pytest.raises(devices.UnknownDeviceError), options(devices=names):
        pass
    with pytest.raises(devices.UnknownDeviceError):
        accelerate(devices=names)


def test_messages_list_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, text in (
        (cuda.Found(0, "no driver"), r"there are cpu, emulated, emulated\*2...; no CUDA device: no driver$"),
        (cuda.Found(2, "", ("A", "B")), r"there are cpu, cuda, cuda:0, cuda:1, emulated, emulated\*2...$"),
    ):
        monkeypatch.setattr(cuda_probe, "probe", lambda found=found: found)
        with pytest.raises(devices.UnknownDeviceError, match=f"'gpu' names no device; {text}"), options(devices="gpu"):
            pass
        with pytest.raises(ValueError, match=f"devices='cpu' names none; {text}"), options(devices="cpu", split=0.5):
            pass
        for device, error in (("cpu", ValueError), (3, TypeError)):
            with pytest.raises(error, match=text):
                asdevice(np.ones(2), device)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="add cpu, or leave split out"), options(devices="emulated", split=0.5):
        pass


@pytest.mark.parametrize("names", ["cpu", "cpu,cpu", None])
def test_names_of_the_cpu(names: str | None) -> None:
    with options(devices=names):
        assert accelerate(triple)(np.ones(3))[0] == 3


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "probe", lambda: cuda.Found(0, "there is none today"))
    devices.forget()
    try:
        with options(devices="cuda:0"), pytest.raises(DeviceError, match="no CUDA device: there is none today"):
            accelerate(triple)(np.ones(3))
        function = accelerate(triple)
        with options(devices="cuda"):
            with pytest.warns(DeviceWarning, match="there is none today; calls run on the CPU"):
                assert function(np.ones(3))[0] == 3
            assert function(np.ones(3))[0] == 3
        assert not function.fell_back and len(function.specializations) == 1
        always = accelerate(devices="cuda")(triple)
        for _ in range(2):
            assert always(np.ones(3))[0] == 3
        assert not always.fell_back and len(always.specializations) == 1
    finally:
        devices.forget()


def test_environment() -> None:
    code = """
import numpy as np
from parakeet_py import accelerate, options
from parakeet_py.hybrid.emulated import EmulatedDevice
launches, launch = [], EmulatedDevice.launch
EmulatedDevice.launch = lambda self, *rest: (launches.append(self.name), launch(self, *rest))[1]
exec(compile("def f(x):\\n    return x * 3\\n", "f.py", "exec"))
import linecache
linecache.cache["f.py"] = (0, None, ["def f(x):\\n", "    return x * 3\\n"], "f.py")
f = accelerate(f)
assert f(np.ones(3))[0] == 3 and launches == ["emulated:0"], launches
with options(devices="cpu"):
    assert f(np.ones(3))[0] == 3 and len(launches) == 1
assert f(np.ones(3))[0] == 3 and len(launches) == 2
"""
    environment = dict(os.environ, PARAKEET_DEVICES="emulated")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


# ---- explain ---------------------------------------------------------------------------------------------------------


def several(x: Any, y: Any) -> Any:
    y[:] = x.mean(axis=0)
    return np.cumsum(x * 2), x[::2] + 1


def test_explain_foresees_launches_and_copies() -> None:
    function = accelerate(several)
    x, y = np.ones((1000, 30)), np.zeros(30)
    with options(devices="emulated"):
        before = function.explain(x, y).device
        assert before is not None and before.complete and before.last_run is None
        assert not y.any()  # nothing has run
        function(x, y)
        after = function.explain(x, y).device
        text = str(function.explain(x, y))
    assert after is not None and after.foreseen == after.last_run == before.foreseen
    assert before.foreseen.bytes_in == x.nbytes + y.nbytes
    assert before.foreseen.bytes_out == y.nbytes + x.nbytes + x.nbytes // 2
    scan = next(kernel for kernel in before.kernels if "scan" in kernel.name)
    line = several.__code__.co_firstlineno + 2
    assert scan.lines == (line,) and scan.launches == ((15, 1),)
    assert "runs on emulated:0 (sm_80)" in text and f"{scan.name} (line {line}): 15 x 256 threads" in text
    assert "last run: " in text and "240240 bytes to the device" in text
    assert function.explain(x, y).device is None and "runs on cpu" in str(function.explain(x, y))


def test_explain_stops_where_elements_decide() -> None:
    @accelerate
    def halve(x: Any) -> Any:
        while x.sum() > 1.0:
            x = x * 0.5
        return x

    with options(devices="emulated"):
        report = halve.explain(np.ones(1000)).device
        assert report is not None and not report.complete
        assert sum(times for _, times in report.foreseen.launches) == 1  # one block sums all: nothing to combine
        halve(np.ones(1000))
        report = halve.explain(np.ones(1000)).device
        assert report is not None and report.last_run is not None
        assert sum(times for _, times in report.last_run.launches) > 20
        assert "and what depends on elements" in str(report)


def test_explain_says_what_is_one_thread() -> None:
    @accelerate
    def recurrence(x: Any) -> Any:
        for i in range(1, len(x)):
            x[i] = x[i] - 0.5 * x[i - 1] * x[i]

    with options(devices="emulated"):
        assert "): one thread, step after step\n" in str(recurrence.explain(np.ones(10)))


def test_explain_of_checks_counts_their_records() -> None:
    function = accelerate(lambda x, i: x[i] * 2)
    with options(devices="emulated"):
        args = np.ones(10), np.array([1, 2])
        function(*args)
        report = function.explain(*args).device
    assert report is not None and report.complete and report.foreseen == report.last_run
