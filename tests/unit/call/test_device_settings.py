"""Which device is chosen, and what explain says of calls on it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base import config, cuda_probe, device_names
from parakeet_py.base.errors import DeviceWarning
from parakeet_py.hybrid.devices import cuda, selection
from parakeet_py.hybrid.devices.device import DeviceError
from parakeet_py.hybrid.devices.emulated import EmulatedDevice


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice("emulated:9", memory=1 << 20)


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


def test_a_function_of_a_team_that_is_left_to_the_cpu_stays_there() -> None:
    """The function's own settings name the team again, within the call that the team has left to the CPU."""
    function = accelerate(devices="cpu,emulated*2", when="now")(lambda x, k: x[k] * 3)
    x = np.arange(5.0)
    for k in (9, 1, 9):  # machine code takes no call that raises
        if k < 5:
            assert function(x, k) == 3 * x[k]
            continue
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5"):
            function(x, k)
    with options(devices="emulated"):
        assert function(x, 2) == 6.0
        assert config.current().devices == "emulated"


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
    assert [one.name for one in selection.open_devices("cpu,emulated*2,emulated")] == [
        "emulated:0",
        "emulated:1",
        "emulated:2",
    ]
    assert selection.open_devices("emulated")[0] is selection.open_devices("emulated*2")[0]


@pytest.mark.parametrize("names", ["gpu", "emulated*0", "emulated*65", "cuda:x", "cpu,,emulated", "", "emulated:64"])
def test_names_that_mean_nothing(names: str) -> None:
    with pytest.raises(device_names.UnknownDeviceError), options(devices=names):
        pass
    with pytest.raises(device_names.UnknownDeviceError):
        accelerate(devices=names)


def test_messages_list_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, text in (
        (cuda.Found(0, "no driver"), r"there are cpu, emulated, emulated\*2...; no CUDA device: no driver$"),
        (cuda.Found(2, "", ("A", "B")), r"there are cpu, cuda, cuda:0, cuda:1, emulated, emulated\*2...$"),
    ):
        monkeypatch.setattr(cuda_probe, "probe", lambda found=found: found)
        with (
            pytest.raises(device_names.UnknownDeviceError, match=f"'gpu' names no device; {text}"),
            options(devices="gpu"),
        ):
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
    selection.forget()
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
        selection.forget()


def test_environment() -> None:
    code = """
import numpy as np
from parakeet_py import accelerate, options
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
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
