"""The tests that run on a GPU, rehearsed: the device and the emulator side by side, and the report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.call.devices import calls
from parakeet_py.hybrid.devices import cuda
from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.devices.team import team_of
from tests.gpu import __main__ as suite
from tests.gpu import plugin
from tests.gpu.twin import Twin, TwinDifference, different, is_exact


@pytest.fixture
def twin() -> Twin:
    return Twin(EmulatedDevice("first", 1 << 24), EmulatedDevice("second", 1 << 24))


def called(twin: Twin, function: Any, *args: Any) -> Any:
    return calls.call(function._dispatcher, args, team_of(twin))


def test_both_do_the_same(twin: Twin) -> None:
    function = accelerate(lambda x, i: (np.cumsum(x * 2), x[i], x.sum(axis=0)))
    x, i = np.arange(3000.0).reshape(100, 30), np.array([3, 1, 99])
    for one, other in zip(called(twin, function, x, i), function.__wrapped__(x, i), strict=True):
        assert np.array_equal(one, other)
    assert twin.exact >= 4 and twin.approximate == 0
    with pytest.raises(IndexError):
        called(twin, function, x, np.array([3, 100]))


def test_copies_of_all_kinds_are_done_on_both(twin: Twin) -> None:
    one, other = twin.allocate(96), twin.allocate(96)
    rows, found = np.arange(24, dtype=np.uint8).reshape(4, 6), np.zeros((4, 6), np.uint8)
    twin.copy_in(one, rows, 20)
    twin.copy_within(other, one, 96)
    twin.copy_out(found, other, 20)
    assert np.array_equal(found, rows)
    for address in (one, other):
        here, there = np.zeros(96, np.uint8), np.zeros(96, np.uint8)
        twin.real.copy_out(here, address)
        twin.emulated.copy_out(there, twin.translated(address))
        assert np.array_equal(here, there) and here[20] == 6


def test_a_difference_is_told(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = EmulatedDevice.launch

    def wrong(self: Any, module: Any, kernel: str, blocks: int, threads: int, codes: str, values: Any) -> None:
        launch(self, module, kernel, blocks, threads, codes, values)
        if self.name == "first":  # one bit of the last element
            last = np.zeros(1, np.uint8)
            self.copy_out(last, values[-2] + 8 * 499 + 6)
            self.copy_in(values[-2] + 8 * 499 + 6, last ^ 1)

    function = accelerate(lambda x: x * 3)
    assert called(twin, function, np.ones(500))[0] == 3
    monkeypatch.setattr(EmulatedDevice, "launch", wrong)
    with pytest.raises(TwinDifference, match=r"map_0 on first \(sm_80\): 1 of 4000 bytes differ .* first byte 3998"):
        called(twin, function, np.ones(500))


def test_nan_is_nan() -> None:
    one = np.array([1, np.nan, 2], "f4")
    other = np.array([1, 0xFFFFFFFF, 0x40000000], "u4")
    other[0] = one[:1].view("u4")[0]
    assert different(one.view("u1"), other.view("u1")) is None
    other[2] += 1
    assert different(one.view("u1"), other.view("u1")) == (8, 1)


@pytest.mark.parametrize(
    ("instruction", "inexact"),
    [
        ("ex2.approx.ftz.f32 %f1, %f2;", True),
        ("atom.global.add.f32 %f1, [%rd1], %f2;", True),
        ("red.relaxed.gpu.global.add.f64 [%rd1], %fd1;", True),
        ("atom.global.add.u64 %rd1, [%rd2], 1;", False),
        ("div.rn.f32 %f1, %f2, %f3;", False),
        ("add.f32 %f1, %f2, %f3;", False),
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {%f1};", True),
        ("mul.rn.f64 %rd1, %rd2, %rd3;\natom.relaxed.gpu.global.cas.b64 %rd6, [%rd5], %rd20, %rd1;", True),
        ("max.f64 %rd1, %rd2, %rd3;\natom.relaxed.gpu.global.cas.b64 %rd6, [%rd5], %rd20, %rd1;", False),
    ],
)
def test_what_is_exact(instruction: str, inexact: bool) -> None:
    assert is_exact(instruction) != inexact


def test_rehearsal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.gpu", "--rehearse", "--out", str(tmp_path), "--workers", "1"]
    command += [
        "--examples",
        "3",
        "tests/test_programs.py",
        "tests/property/test_slicing.py",
        "-k",
        "running_total or test_store_through_view",
    ]
    done = subprocess.run(command, cwd=suite.ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "gpu-tests-rehearsal.json").read_text())
    assert result["failed"] == 0 and result["passed"] == len(result["tests"]) > 3
    assert result["exact"] > 5
    text = (tmp_path / "gpu-tests-rehearsal.md").read_text()
    assert "| programs: scans |" in text and "| properties: slicing |" in text


def test_no_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cuda, "probe", lambda: cuda.Found(0, "there is none today"))
    assert suite.main([]) == 0
    assert capsys.readouterr().out == "skipped: no GPU to test on: there is none today\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_uses_a_python_that_has_everything(tmp_path: Path) -> None:
    """A machine without a network: nothing is installed, no environment is made."""
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase "$1 $2" in "-c "*) echo cu13;; *) echo "$@";; esac\n')
    python.chmod(0o755)
    command = ["make", "-s", "test-gpu", "bench-gpu", f"PYTHON={python}", f"VENV={tmp_path / 'none'}", "ARGS=-k x"]
    done = subprocess.run(command, cwd=suite.ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == [
        "-m tests.gpu -k x",
        "-m parakeet_py bench-gpu --out benchmarks/results -k x",
    ], done.stderr
    assert not (tmp_path / "none").exists()


def test_a_run_that_takes_too_long_is_interrupted() -> None:
    sleeping = ["sleep", "60"]  # an interpreter that is still starting would end in its own way
    assert suite.run(sleeping, dict(os.environ), 0.3) == (-signal.SIGINT, False)
    assert suite.run([sys.executable, "-c", "raise SystemExit(5)"], dict(os.environ), 60) == (5, True)


def test_a_worker_whose_device_has_faulted_ends(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(plugin.os, "_exit", left.append)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    plugin.leave_if_broken(twin)
    assert not left
    twin.real.broken = "a kernel has faulted"  # type: ignore[attr-defined]
    plugin.leave_if_broken(twin)
    assert left == [3]
