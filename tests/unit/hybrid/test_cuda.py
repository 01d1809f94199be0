"""The CUDA device against a stand-in of its packages: what is asked of them, what becomes of errors."""

from __future__ import annotations

import gc
import re
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, doctor, options
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.doctor import examine
from parakeet_py.hybrid.devices import cuda
from parakeet_py.hybrid.devices.device import DeviceError, DeviceMemoryError, KernelError
from parakeet_py.hybrid.devices.selection import open_devices
from parakeet_py.ptx import libdevice
from tests.helpers import fake_cuda


@pytest.fixture
def context() -> Iterator[fake_cuda.Context]:
    with fake_cuda.installed() as found:
        yield found


def mixed(x: Any, h: Any, z: Any, flag: Any, i: Any) -> Any:
    return x * 2 + i, h + h, z * (1 + 2j), x[x > 1].sum() if flag else x.sum(), np.cumsum(x)


def test_calls(context: fake_cuda.Context) -> None:
    args = np.arange(300.0), np.ones(5, np.float16), np.ones(3, np.complex64), True, np.int16(3)
    function = accelerate(mixed)
    for _ in range(2):
        with options(devices="cuda:0"):
            found = function(*args)
        for one, other in zip(found, mixed(*args), strict=True):
            assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


def test_nothing_is_left(context: fake_cuda.Context) -> None:
    function = accelerate(mixed)
    with options(devices="cuda:0"):
        function(np.arange(300.0), np.ones(5, np.float16), np.ones(3, np.complex64), True, np.int16(3))
    gc.collect()
    (device,) = open_devices("cuda:0")
    device.trim()
    context.finish()
    assert context.device.free_bytes == 1 << 30


def test_exceptions(context: fake_cuda.Context) -> None:
    @accelerate
    def pick(x: Any, i: Any) -> Any:
        return x[i] * 2

    with options(devices="cuda:0"), pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        pick(np.ones(5), np.array([0, 7, 9]))


def test_no_memory() -> None:
    @accelerate
    def double(x: Any) -> Any:
        return x * 2

    with fake_cuda.installed(memory=1 << 20) as context, options(devices="cuda:0"):
        with pytest.raises(DeviceMemoryError, match=r"cuda:0 has no memory for 80000\d* bytes: \d+ are free"):
            double(asdevice(np.ones(100_000)))
        assert double(np.ones(100_000)).sum() == 200_000  # in pieces
        gc.collect()
        context.finish()
        assert double(np.ones(10)).sum() == 20


@pytest.mark.parametrize(
    "told", ["CUDA_ERROR_OUT_OF_MEMORY: the API call failed", "Failed to allocate memory from pool"]
)
def test_no_memory_in_whatever_words(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuda-core 1.0 and older do not say why there is no memory, and have calls for what a kernel takes."""
    monkeypatch.setattr(fake_cuda, "NO_MEMORY", (RuntimeError, told))
    whole = fake_cuda.Kernel.__init__

    def with_calls(self: Any, *given: Any) -> None:
        whole(self, *given)
        for name, value in vars(self.attributes).items():
            setattr(self.attributes, name, lambda device_id=None, value=value: value)

    monkeypatch.setattr(fake_cuda.Kernel, "__init__", with_calls)
    double = accelerate(lambda x: x * 2)
    with fake_cuda.installed(memory=1 << 20), options(devices="cuda:0"):
        assert double(np.ones(100_000)).sum() == 200_000
        with pytest.raises(DeviceMemoryError, match=r"cuda:0 has no memory for 80000\d* bytes: \d+ are free"):
            double(asdevice(np.ones(100_000)))
        assert double(np.ones(10)).sum() == 20
        monkeypatch.setattr(fake_cuda, "NO_MEMORY", (TypeError, "allocate() takes no stream"))
        with pytest.raises(DeviceError, match="getting memory failed: allocate"):
            asdevice(np.ones(200_000))


def test_what_a_kernel_takes_need_not_be_known(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fake_cuda.Kernel.__init__

    def without(self: Any, *given: Any) -> None:
        whole(self, *given)
        self.occupancy = None

    monkeypatch.setattr(fake_cuda.Kernel, "__init__", without)
    with options(devices="cuda:0"):
        assert accelerate(lambda x: x * 2)(np.ones(10)).sum() == 20


def test_memory_is_freed_in_its_own_context(context: fake_cuda.Context) -> None:
    """Whatever another device is being asked for meanwhile."""
    one, other = (asdevice(np.ones(100), f"cuda:{number}") for number in (0, 1))
    device = open_devices("cuda:1")[0]
    device._enter()
    del one
    open_devices("cuda:0")[0].trim()
    assert device._driver.cuCtxGetCurrent()[1] is device._context
    context.finish()
    assert context.device.free_bytes == 1 << 30 and np.asarray(other).sum() == 100


def test_devices_copy_from_each_other() -> None:
    @accelerate
    def relax(x: Any, y: Any) -> None:
        y[1:-1] = (x[:-2] + x[2:]) * 0.5
        x[1:-1] = (y[:-2] + y[2:]) * 0.5

    x, y = np.random.default_rng(1).random((2, 40, 5))
    mine, theirs = x.copy(), y.copy()
    relax.__wrapped__(mine, theirs)
    with fake_cuda.installed() as context, options(devices="cuda", split=1.0):
        relax(x, y)
        moved = relax.explain(x, y).device.last_run.moved
        gc.collect()
        context.finish()
    assert np.array_equal(x, mine) and np.array_equal(y, theirs)
    assert moved[1, 2] == moved[2, 1] == 40  # a row each way; the first half-step has brought its own from the host


def test_a_fault_is_told_once_and_for_all(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    @accelerate
    def double(x: Any) -> Any:
        return x * 2

    @accelerate
    def other(x: Any) -> Any:
        return x + 1

    launch = cuda.CudaDevice.launch

    def wrong(self: Any, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Any) -> None:
        launch(self, module, kernel, blocks, threads, codes, [8 if v == values[2] else v for v in values])

    with options(devices="cuda:0", check=False):
        assert double(np.ones(1000))[0] == 2
        monkeypatch.setattr(cuda.CudaDevice, "launch", wrong)
        with pytest.raises(KernelError) as caught:
            double(np.ones(1000))
        monkeypatch.undo()
        text = str(caught.value)
        assert "cuda:0" in text and "double_map_0" in text and "test_cuda.py:" in text and "float64[1000]" in text
        with pytest.raises(DeviceError, match="cannot be used any more in this process"):
            other(np.ones(10))
    with options(devices="cuda:1"):
        assert other(np.ones(10))[0] == 2  # the other device lives
    assert other(np.ones(10))[0] == 2


def test_a_device_that_is_too_old() -> None:
    with fake_cuda.installed(capability=(7, 0)):
        with pytest.raises(DeviceError, match=r"cuda:0 has compute capability 7\.0; at least 7\.5"):
            open_devices("cuda:0")
        with pytest.warns(DeviceWarning, match=r"7\.0.*; calls run on the CPU"):
            assert open_devices("cuda") == ()


@pytest.mark.parametrize(
    ("capability", "architecture"), [((7, 5), "sm_75"), ((8, 8), "sm_87"), ((9, 0), "sm_90a"), ((12, 1), "sm_120")]
)
def test_architectures(capability: tuple[int, int], architecture: str) -> None:
    with fake_cuda.installed(capability=capability):
        (device,) = open_devices("cuda:1")
        assert device.architecture == architecture and device.name == "cuda:1"


@pytest.mark.parametrize(
    ("capability", "version", "architecture"),
    [
        ((12, 0), (12, 7), "sm_100"),
        ((10, 0), (12, 2), "sm_90"),
        ((10, 3), (13, 0), "sm_103"),
        ((7, 5), (12, 0), "sm_75"),
    ],
)
def test_architectures_that_the_driver_takes(
    capability: tuple[int, int], version: tuple[int, int], architecture: str
) -> None:
    """PTX for an older architecture runs on a newer one, too."""
    with fake_cuda.installed(capability=capability, driver_version=version):
        (device,) = open_devices("cuda:0")
        assert device.architecture == architecture


def test_a_number_that_is_not_there(context: fake_cuda.Context) -> None:
    with pytest.raises(DeviceError, match="there is no cuda:2: the driver finds 2 device"):
        open_devices("cuda:2")
    assert [device.name for device in open_devices("cuda")] == ["cuda:0", "cuda:1"]


def test_doctor(context: fake_cuda.Context) -> None:
    (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    assert finding.good and "driver for CUDA 12.8" in finding.text
    assert "cuda:1 is a second: sm_80, 4 multiprocessors, 1.1 GB free" in finding.text


def test_doctor_says_what_to_install(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the driver that there is; what packages warn of is in the finding, not a warning of the command."""

    def complaining(name: str) -> str:
        warnings.warn("packages of two versions", stacklevel=1)
        return "13.5.0"

    monkeypatch.setattr(doctor, "version", complaining)
    monkeypatch.setattr(libdevice, "find", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    reasons = "cuda-bindings 13.5.0 is newer than the driver, cuBLAS is not installed, libdevice is not installed"
    assert f"{reasons}: pip install 'parakeet-py[cu12]'" in finding.text
    assert finding.text.endswith("; packages of two versions") and finding.good


def test_doctor_says_why_not() -> None:
    with fake_cuda.installed(capability=(6, 1)):
        (finding,) = [finding for finding in examine() if finding.topic == "CUDA"]
    assert not finding.good and "first cannot be used: cuda:0 has compute capability 6.1" in finding.text


class Driver:
    """The few functions of libcuda that a probe calls."""

    def __init__(self, status: int = 0, count: int = 1, version: int = 12080) -> None:
        self.status, self.count, self.version = status, count, version

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuGetErrorName(self, status: int, place: Any) -> int:
        place._obj.value = b"CUDA_ERROR_NO_DEVICE"
        return 0

    def cuDeviceGetCount(self, place: Any) -> int:
        place._obj.value = self.count
        return 0

    def cuDriverGetVersion(self, place: Any) -> int:
        place._obj.value = self.version
        return 0

    def cuDeviceGetName(self, label: Any, size: int, number: int) -> int:
        label.value = b"A device"
        return 0


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (None, r"no NVIDIA driver \(libcuda.so.1\) is installed"),
        (Driver(status=100), r"cannot be started: cuInit gives 100 \(CUDA_ERROR_NO_DEVICE\)"),
        (Driver(count=0), "finds no device"),
        (Driver(version=11080), r"knows CUDA 11\.8, at least 12\.0 is needed"),
        (Driver(), r"cuda-core cannot be imported \(.*\): pip install 'parakeet-py\[cu12\]'"),
        (Driver(version=13010), r"pip install 'parakeet-py\[cu13\]'"),
    ],
    ids=["no driver", "no start", "no device", "old driver", "no package", "CUDA 13"],
)
def test_probe_says_why_not(driver: Driver | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def library(name: str) -> Driver:
        if driver is None:
            raise OSError(name)
        return driver

    monkeypatch.setattr(cuda.ctypes, "CDLL", library)
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    found = cuda.probe.__wrapped__()
    assert found.devices == 0 and re.search(reason, found.reason)
    assert found.names == (("A device",) if driver and not driver.status and driver.count else ())


def test_an_old_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 0.6 what is used of it had other names, or was in `cuda.core.experimental`."""
    old, package = types.ModuleType("cuda.core"), types.ModuleType("cuda")
    old.__version__, package.core = "0.3.2", old  # type: ignore[attr-defined]
    monkeypatch.setattr(cuda.ctypes, "CDLL", lambda name: Driver())
    monkeypatch.setitem(sys.modules, "cuda", package)
    monkeypatch.setitem(sys.modules, "cuda.core", old)
    assert cuda.probe.__wrapped__().reason == "cuda-core 0.3.2 is too old: pip install -U 'parakeet-py[cu12]'"


def test_a_device_that_cannot_be_opened(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> None:
        raise fake_cuda.CUDAError("CUDA_ERROR_DEVICES_UNAVAILABLE")

    monkeypatch.setattr(sys.modules["cuda.core"], "DeviceMemoryResource", refuse)
    with pytest.raises(DeviceError, match="cuda:0 cannot be opened: CUDA_ERROR_DEVICES_UNAVAILABLE"):
        open_devices("cuda:0")


def test_no_device_is_told_by_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "probe", lambda: cuda.Found(0, "there is none today"))
    with pytest.raises(DeviceError, match="no CUDA device: there is none today"):
        cuda.devices(0)
    assert cuda.owner(1 << 40) is None


def test_copies_on_the_device_and_scalars_of_half_precision(context: fake_cuda.Context) -> None:
    (device,) = cuda.devices(0)
    source, target, found = device.allocate(256), device.allocate(256), np.zeros(32)
    device.copy_in(source, np.arange(32.0))
    device.copy_within(target, source, 256)
    device.copy_out(found, target)
    assert np.array_equal(found, np.arange(32.0)) and device.owns(target)
    scaled = accelerate(lambda x, a: x * a)
    with options(devices="cuda:0"):
        result = scaled(np.arange(9, dtype=np.float16), np.float16(1.5))
    assert result.dtype == np.float16 and np.array_equal(result, np.arange(9) * 1.5)


def test_launches_that_the_driver_refuses(context: fake_cuda.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **named: Any) -> None:
        raise fake_cuda.CUDAError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")

    double = accelerate(lambda x: x * 2)
    core = sys.modules["cuda.core"]
    for name in ("launch", "LaunchConfig"):  # when it is given to the driver; before
        with monkeypatch.context() as patch, options(devices="cuda:0"):
            patch.setattr(core, name, refuse)
            with pytest.raises(
                KernelError, match=r"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES(?s:.*)in kernel .*float64\[10\]"
            ):
                double(np.ones(10))
    with options(devices="cuda:0"):
        assert double(np.ones(10)).sum() == 20  # the context lives


def test_times_and_questions_after_a_fault(context: fake_cuda.Context) -> None:
    (device,) = cuda.devices(0)
    module = device.load(accelerate(lambda x: x * 2).ptx(np.ones(10)))
    name = re.search(r"\.entry (\w+)\(", module.ptx)[1]  # type: ignore[index]
    start = device.mark()
    device.launch(module, name, 1, 256, "iiPiPi", [5, 10, 8, 10, 8, 10])  # addresses that are none
    end = device.mark()
    with pytest.raises(DeviceError, match="a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.seconds(start, end)
    with pytest.raises(DeviceError, match="cannot be used any more"):
        device.resources(module, name, 256)
