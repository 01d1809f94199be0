"""The benchmark on a GPU, rehearsed: its figures, its report, what it says of libraries and where there is no GPU."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_py.bench.gpu import ceilings, measure, peers, report, supervise
from parakeet_py.bench.gpu.operators import OPERATORS
from parakeet_py.bench.gpu.runner import UnknownProgram, run
from parakeet_py.bench.programs import PROGRAMS
from parakeet_py.cli import app
from parakeet_py.hybrid.devices import cuda
from parakeet_py.hybrid.devices.selection import open_devices
from tests.helpers import bench_process
from tests.ptxas import PTXAS, assemble


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every time is taken once."""
    monkeypatch.setattr(measure, "LEAST", 1)
    monkeypatch.setattr(measure, "MOST", 1)


def operator(name: str) -> Any:
    return next(one for one in OPERATORS if one.program.name == name)


def test_rehearsal(tmp_path: Path) -> None:
    found = CliRunner().invoke(
        app,
        [
            "bench-gpu",
            "axpy",
            "total",
            "smoothing",
            "--device=emulated",
            "--size=XS",
            "--budget=1",
            f"--out={tmp_path}",
        ],
    )
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "gpu-XS-rehearsal.json").read_text())
    axpy, total = result["operators"]
    assert axpy["name"] == "axpy" and axpy["bytes"] == 3 * 4 * 3000 and axpy["flops"] == 6000
    assert axpy["ours"]["status"] == axpy["contracted"]["status"] == "ok" and axpy["ours"]["launches"] == 1
    assert all(axpy["ours"][time] > 0 for time in ("kernels", "resident", "transfers"))
    assert axpy["bytes_per_second"] == pytest.approx(axpy["bytes"] / axpy["ours"]["kernels"])
    assert axpy["of_copy"] == pytest.approx(axpy["bytes_per_second"] / result["ceilings"]["copy"])
    assert total["ours"]["launches"] >= 1 and total["bytes"] == 4 * 3000
    (smoothing,) = result["programs"]
    assert smoothing["ours"]["status"] == "ok" and smoothing["flops"] is None
    text = (tmp_path / "gpu-XS-rehearsal.md").read_text()
    assert "| axpy | 1 |" in text and "An emulated device: these times say nothing" in text
    assert text in found.output


@pytest.mark.parametrize("one", OPERATORS, ids=lambda one: one.program.name)
def test_operators_are_right(one: Any) -> None:
    machine = open_devices("emulated")[0]
    timed = measure.Timed(machine)
    *_, row = measure.measure(one.program, one.flops, machine, timed, "XS", 0.0, [])
    assert row.ours.status == "ok", row.ours.reason
    assert row.ours.launches >= 1 and not row.ours.reason


def test_wrong_results_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = open_devices("emulated")[0]
    monkeypatch.setattr(measure, "difference", lambda *args, **more: "1 of 3 values differ")
    *_, row = measure.measure(operator("axpy").program, None, machine, measure.Timed(machine), "XS", 0.0, [])
    assert row.ours.status == "WRONG" and row.ours.kernels is None and report.bandwidth(row) is None


def test_ceilings() -> None:
    found = ceilings.measure(open_devices("emulated")[0], 4096, 1, 1)
    assert found.copy > 0 and found.float32 > 0 and found.float64 > 0


@pytest.mark.parametrize("kind", ["float", "double"])
def test_multiply_adds_are_not_optimized_away(kind: str, tmp_path: Path) -> None:
    from parakeet_py.ptx.target import compile_ptx

    text = compile_ptx(ceilings.kernel(kind), "sm_90")
    assert text.count("fma.rn.f" + ("32" if kind == "float" else "64")) >= ceilings.CHAINS * ceilings.UNROLLED
    if PTXAS:
        assemble([text], "sm_90", tmp_path)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A stand-in for CuPy that is NumPy."""
    module: Any = types.ModuleType("cupy")
    module.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    module.asnumpy = np.asarray
    waited: list[int] = []
    device = types.SimpleNamespace(synchronize=lambda: waited.append(1))
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    module.cuda = types.SimpleNamespace(Device=lambda: device, runtime=runtime)
    module.fuse = lambda: lambda function: function
    module.waited = waited
    monkeypatch.setitem(sys.modules, "cupy", module)
    find = peers.importlib.util.find_spec
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: 1 if name == "cupy" else find(name))
    return module


def test_libraries(cupy: Any) -> None:
    found, missing = peers.installed()
    assert [peer.name for peer in found][:2] == ["cupy", "cupy fused"] and "cupy" not in missing
    machine = open_devices("emulated")[0]
    *_, row = measure.measure(operator("axpy").program, None, machine, measure.Timed(machine), "XS", 60.0, found[:2])
    assert row.peers["cupy"].status == row.peers["cupy fused"].status == "ok" and cupy.waited
    *_, loops = measure.measure(PROGRAMS["mandelbrot"], None, machine, measure.Timed(machine), "XS", 60.0, found[:1])
    assert loops.peers["cupy"].status in ("ok", "absent")
    *_, late = measure.measure(operator("axpy").program, None, machine, measure.Timed(machine), "XS", 0.0, found[:2])
    assert late.ours.status == "ok" and late.peers["cupy"] == measure.Times("skipped", "no time left")
    cupy.exp = lambda x: 1 / 0
    *_, broken = measure.measure(
        operator("waves").program, None, machine, measure.Timed(machine), "XS", 60.0, found[:1]
    )
    assert broken.peers["cupy"].status == "unsupported" and "ZeroDivisionError" in broken.peers["cupy"].reason
    made = report.Run("cuda:0", "sm_90", True, "XS", 1.0, ceilings.Ceilings(1e9, 1e9, 1e9), missing, [row, broken], [])
    text = report.markdown(made)
    assert "| CuPy | CuPy fused |" in text and " × |" in text and "waves, cupy: unsupported" in text


def test_whatever_happens_there_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_serve", bench_process.serve)
    monkeypatch.setattr(supervise, "PATIENCE", 3.0)
    names = ["axpy", "waves", "ramp", "total", "dot"]
    told: list[str] = []
    found = supervise.run("cuda:0", "XS", 100.0, names, told.append)
    rows = {row.name: row for row in (*found.operators, *found.programs)}
    assert [*rows] == names == told and found.missing == {"torch": "not installed"}
    assert rows["axpy"].ours.status == "ok"
    assert rows["axpy"].peers["cupy"] == measure.Times("died", "its process ended with 7")
    assert rows["waves"].ours.reason == "it has faulted"
    assert rows["total"].ours == measure.Times("hung", "no answer, or no time left")
    assert rows["ramp"].peers["jax"].status == rows["dot"].ours.status == "ok"
    text = report.markdown(found)
    assert "axpy, cupy: died" in text and "| total | hung |" in text
    late = supervise.run("cuda:0", "XS", 0.0, ["ramp", "dot"])
    assert [row.ours.status for row in (*late.operators, *late.programs)] == ["ok", "skipped"]


def test_a_device_that_cannot_be_opened() -> None:
    found = CliRunner().invoke(app, ["bench-gpu", "axpy", "--device=emulated*2"])
    assert found.exit_code == 2 and "'emulated*2' is not one GPU" in found.output
    found = CliRunner().invoke(app, ["bench-gpu", "axpy", "--device=graphics"])
    assert found.exit_code == 2 and "'graphics' names no device" in found.output


def test_unknown_names() -> None:
    with pytest.raises(UnknownProgram, match="no operator or program nothing; there are "):
        run(open_devices("emulated")[0], "XS", 1.0, ["nothing"])
    assert CliRunner().invoke(app, ["bench-gpu", "--size", "XXL"]).exit_code == 2


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "probe", lambda: cuda.Found(0, "there is none today"))
    found = CliRunner().invoke(app, ["bench-gpu"])
    assert found.exit_code == 0 and found.output == "skipped: no GPU to measure: there is none today\n"
