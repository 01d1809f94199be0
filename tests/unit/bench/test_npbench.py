"""The runner of NPBench's programs, on a checkout of two programs made here."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_py.bench.npbench import checkout, child, report, runner, systems
from parakeet_py.bench.npbench.child import Finding
from parakeet_py.cli import app

SOURCES = {
    "axpy/axpy.py": """
        import numpy as np

        def initialize(N, datatype=np.float64):
            return datatype(2), np.arange(N, dtype=datatype), np.ones(N, dtype=datatype)
    """,
    "axpy/axpy_numpy.py": """
        def scale(alpha, x):
            return alpha * x

        def kernel(alpha, x, y):
            y += scale(alpha, x)
            return y.sum()
    """,
    "axpy/axpy_numba_n.py": """
        import numba as nb

        @nb.jit(nopython=True)
        def kernel(alpha, x, y):
            for i in range(len(x)):
                y[i] += alpha * x[i]
            return y.sum()
    """,
    "axpy/axpy_numba_np.py": """
        def kernel(alpha, x, y):
            y += alpha * x
            return y.sum() + 1.0
    """,
    "axpy/axpy_numba_npr.py": """
        import os

        def kernel(alpha, x, y):
            os._exit(7)
    """,
    "iterate/iterate.py": "",
    "iterate/iterate_numpy.py": """
        def iterate(a, steps):
            for _ in range(steps):
                a = a * a - 1.0
            return a
    """,
}
INFO: dict[str, dict[str, Any]] = {
    "axpy": {
        "relative_path": "axpy",
        "module_name": "axpy",
        "func_name": "kernel",
        "parameters": {"S": {"N": 100}, "M": {"N": 1000}},
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["alpha", "x", "y"]},
        "input_args": ["alpha", "x", "y"],
        "array_args": ["x", "y"],
        "output_args": ["y"],
    },
    "iterate": {
        "relative_path": "iterate",
        "module_name": "iterate",
        "func_name": "iterate",
        "parameters": {"S": {"a": 0.5, "steps": 10}, "M": {"a": 0.5, "steps": 100}},
        "input_args": ["a", "steps"],
        "array_args": [],
        "output_args": [],
        "rtol": 1e-9,
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of two programs."""
    made = tmp_path / "checkout"
    (made / "bench_info").mkdir(parents=True)
    for name, info in INFO.items():
        (made / "bench_info" / f"{name}.json").write_text(json.dumps({"benchmark": info}))
    for file, text in SOURCES.items():
        path = made / "npbench" / "benchmarks" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").split("\n")
        path.write_text("\n".join(line.removeprefix(" " * 8) for line in lines) + "\n")
    return made


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "--npbench", *arguments])
    return result.exit_code, result.output


def test_measures_all_programs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.01)
    out, page = tmp_path / "out.json", tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    options = ("--peers", "numpy", "--cpu-time", "--json", str(out), "--readme", str(page))
    code, output = invoke(str(root), "--presets", "S", *options)
    assert code == 0, output
    assert "geometric mean over NumPy" in output and "axpy" in output and "iterate" in output
    data = json.loads(out.read_text())
    assert [(one["name"], one["preset"]) for one in data["programs"]] == [("axpy", "S"), ("iterate", "S")]
    for one in data["programs"]:
        ours = one["findings"]["parakeet"]
        assert ours["status"] == "ok" and ours["first"] > 0 and len(ours["times"]) >= child.LEAST, ours
        assert one["ratio"] == pytest.approx(ours["ratio"]) and one["rival"] == {"name": "NumPy", "ratio": 1.0}
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text and "| axpy | S |" in text
    assert "1 thread, processors' time" in text and data["settings"]["clock"] == "cpu"


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_rivals_are_checked_and_may_crash(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.01)
    (program,) = checkout.programs(root, ["axpy"])
    assert program.variants() == ("numba_n", "numba_np", "numba_npr", "numpy")
    (row,) = runner.run([program], runner.Settings(("numba",), ("S",)))
    found = {name: finding.status for name, finding in row.findings.items()}
    assert found == {"numpy": "ok", "numba_n": "ok", "numba_np": "WRONG", "numba_npr": "error"}
    assert row.rival[0] in ("numba_n", "NumPy") and row.ratio("numba_np") is None
    assert row.findings["numba_np"].reason.startswith("result 0 differs")
    assert row.findings["numba_npr"].reason.startswith("ended with 7")


def test_a_budget_that_is_used_up_skips(root: Path) -> None:
    rows = runner.run(checkout.programs(root), runner.Settings(presets=("S", "M"), budget=0.0))
    assert [(row.program, row.preset) for row in rows] == [(n, p) for n in ("axpy", "iterate") for p in ("S", "M")]
    assert {finding.status for row in rows for finding in row.findings.values()} == {"skipped"}
    assert report.summary(rows) == ["nothing was measured"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "is no folder; it must be a checkout of NPBench"),
        ([".."], "is no checkout of NPBench: it has no bench_info/*.json with npbench/benchmarks"),
        ([".", "--programs", "axpy,lu"], "has no program lu; there are axpy, iterate"),
        ([".", "--presets", "S,L"], "no preset L of axpy, iterate; there are S, M"),
        ([".", "--peers", "numba,c"], "no peer c for --npbench; there are numpy, numba, jax, pythran, dace"),
    ],
)
def test_refuses_what_it_does_not_know(root: Path, arguments: list[str], message: str) -> None:
    code, output = invoke(str(root / arguments[0]), *arguments[1:])
    assert code == 2 and message in output.replace("\n", "")


def test_descriptions_that_cannot_be_read(root: Path) -> None:
    (root / "bench_info" / "axpy.json").write_text('{"benchmark": {}}')
    assert "axpy.json: not a description of a program (KeyError" in invoke(str(root))[1]
    (root / "npbench" / "benchmarks" / "iterate" / "iterate_numpy.py").unlink()
    assert "describes a program without a source" in invoke(str(root), "--programs", "iterate")[1]


def test_programs_need_a_checkout() -> None:
    result = CliRunner().invoke(app, ["bench", "--programs", "lu"])
    assert result.exit_code == 2 and "--presets and --cpu-time are for --npbench" in result.output


class TestDifferences:
    @pytest.fixture
    def program(self, root: Path) -> checkout.Program:
        return checkout.programs(root, ["axpy"])[0]

    def test_tolerance(self, program: checkout.Program) -> None:
        one = np.array([1.0, np.nan, 1e-3])
        assert child.difference(program, [one], [one * (1 + 1e-6)], exact=True) is None
        assert child.difference(program, [one[:1]], [one[:1] * 1.1], exact=True) is not None
        norm = np.array([1e6, 0.0])  # NPBench then takes the norm of the error
        assert child.difference(program, [norm], [norm + 1e-3], exact=True) is None

    def test_types(self, program: checkout.Program) -> None:
        one, single = np.ones(3), np.ones(3, np.float32)
        assert child.difference(program, [one], [single], exact=False) is None
        assert "is of float32, not of float64" in str(child.difference(program, [one], [single], exact=True))
        assert "has the shape (2,), not (3,)" in str(child.difference(program, [one], [one[:2]], exact=False))
        assert "0 results, not 1" in str(child.difference(program, [one], [], exact=False))
        assert child.difference(program, [one, one], [one], exact=False) is None
        assert child.incomplete([one, one], [one]) == "gives 1 of 2 results"
        assert child.incomplete([one], [one]) == ""
        assert "1 results, not 2" in str(child.difference(program, [one, one], [one], exact=True))
        assert "is of float, not of float64" in str(child.difference(program, [np.float64(1)], [1.0], exact=True))

    def test_arrays_are_compared_where_no_result_is_named(self, program: checkout.Program) -> None:
        form, values = systems.Form(dict), {name: np.ones(2) for name in program.arrays}
        unnamed = dataclasses.replace(program, results=())
        assert len(child.outputs(unnamed, form, values, None)) == len(program.arrays) > 0
        assert child.outputs(unnamed, form, values, 5) == [5]

    def test_spread(self) -> None:
        assert child.spread([1.0]) == 0.0 and child.spread([1.0] * 8) == 0.0 and child.spread([1.0, 2.0, 3.0]) > 0.5


def test_the_worst_programs_come_first() -> None:
    def row(name: str, ours: float, rival: float) -> runner.Row:
        times = {"numpy": Finding("ok", first=0.1, numpy=[1.0], times=[1 / ours])}
        return runner.Row(name, "M", {**times, "numba_n": Finding("ok", numpy=[1.0], times=[1 / rival])})

    rows = [row("ahead", 4.0, 2.0), row("behind", 2.0, 8.0), row("slow", 0.5, 0.25)]
    assert [one.program for one in report.ordered(rows)] == ["behind", "slow", "ahead"]
    assert rows[2].rival == ("NumPy", 1.0) and rows[1].rival == ("numba_n", 8.0)
    assert report.summary(rows) == [
        "geometric mean over NumPy: 1.59, of the best rival program by program: 2.52",
        "behind the best rival (below 0.95): 2 of 3; behind NumPy: 1",
    ]
