"""The command line, run in this process; what it computes is tested elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_py import accelerate, options
from parakeet_py.cli import app
from parakeet_py.doctor import examine
from tests.helpers.library_run import same

SOURCE = """
import numpy as np
from parakeet_py import accelerate

@accelerate
def add_one(x):
    return x + 1.0

def double(x):
    return 2.0 * x
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "functions_to_explain.py"
    path.write_text(SOURCE)
    return path


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_help_names_the_commands_and_imports_nothing_heavy() -> None:
    program = "import sys, parakeet_py.cli; print({'numba', 'llvmlite', 'matplotlib'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
    code, output = invoke("--help")
    assert code == 0
    for command in ("bench", "explain", "doctor"):
        assert command in output


def test_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "parakeet_py", "--help"]
    assert "doctor" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


class TestMessages:
    def test_lists_and_shows(self) -> None:
        code, output = invoke("messages")
        assert code == 0 and len(output.splitlines()) > 20 and "late-binding" in output
        code, output = invoke("messages", "late-binding")
        assert code == 0 and "bind the value when the function is made" in output and "def f(n):" in output
        assert invoke("messages", "late-bindin")[1].startswith("no message late-bindin; did you mean 'late-binding'?")


class TestBench:
    def test_lists_programs(self) -> None:
        code, output = invoke("bench", "--list")
        assert code == 0
        assert "black_scholes" in output and "floyd_warshall" in output

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nonsense"], "no benchmark program nonsense"),
            (["--size", "XXL"], "no size XXL; there are XS, S, M, L"),
            (["--peers", "fortran"], "no peer fortran"),
            (["dot", "--plot", "t.gif"], "a plot is .png or .html, not .gif"),
            (["dot", "--plot", "t"], "a plot is .png or .html, not without a suffix"),
            (["dot", "--plot", "t.html", "--plot", "t.pdf"], "not .pdf"),
            (["dot", "--plot", "t.html", "--peers", "c"], "add numpy to --peers"),
            (["dot", "--plot", "no-such-folder/t.html"], "there is no folder no-such-folder"),
            (["dot", "--json", "."], ". cannot be written"),
            (["dot", "--timeline", "t.json"], "--timeline shows calls on devices"),
            (
                ["dot", "--timeline", "t.png", "--devices", "emulated"],
                "a timeline is .json, for ui.perfetto.dev, not .png",
            ),
            (["dot", "--timeline", "t.json", "--devices", "cpu,emulated", "--split", "200"], "percents from 0 to 100"),
        ],
    )
    def test_refuses_what_it_does_not_know(self, arguments: list[str], message: str) -> None:
        code, output = invoke("bench", *arguments)
        assert code == 2
        assert message in output

    def test_refuses_peers_that_are_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jax" else find(name))
        assert invoke("bench", "dot", "--peers", "numpy,jax") == (2, "--peers jax: jax is not installed\n")

    def test_measures_and_writes(self, tmp_path: Path) -> None:
        out = tmp_path / "result.json"
        page = tmp_path / "result.html"
        arguments = ["--size", "XS", "--peers", "numpy", "--threads", "1", "--budget", "1"]
        code, output = invoke(
            "bench", "sum_of_squared_differences", *arguments, "--json", str(out), "--plot", str(page)
        )
        assert code == 0, output
        assert "sum_of_squared_differences" in output
        (program,) = json.loads(out.read_text())["programs"]
        assert program["implementations"]["parakeet"]["status"] == "ok"
        assert "<svg" in page.read_text()

    def test_writes_timelines(self, tmp_path: Path) -> None:
        names, path = ("dot", "sum_of_squared_differences"), tmp_path / "calls.json"
        code, output = invoke(
            "bench", *names, "--size", "XS", "--devices", "cpu,emulated", "--split", "50", "--timeline", str(path)
        )
        assert code == 0, output
        assert output.count("emulated:0, kernels: ") == 2 and output.count("cpu, parts: ") == 2
        for name in names:
            assert json.loads((tmp_path / f"calls-{name}.json").read_text())["traceEvents"]
        code, output = invoke("bench", "dot", "--size", "XS", "--devices", "cpu,emulated", "--timeline", str(path))
        assert code == 0 and "1 of 1: no timeline, as the CPU alone has the call" in output  # it takes microseconds

    def test_measures_fresh_processes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from parakeet_py.bench import cold

        monkeypatch.setattr(cold, "REPEATS", 1)
        monkeypatch.setattr(cold.Children, "compile_package", lambda self: None)
        monkeypatch.setattr(cold, "WAYS", {way: cold.WAYS[way] for way in ("plain", "parakeet, pays")})
        out = tmp_path / "result.json"
        code, output = invoke("bench", "dot", "--cold", "--peers", "numpy", "--json", str(out))
        assert code == 0, output
        for text in ("import beyond NumPy", "x + y on 8 elements", "first calls in fresh processes", "median"):
            assert text in output
        data = json.loads(out.read_text())
        figures = {(one["what"], one["system"]): one["seconds"] for one in data["figures"]}
        assert figures["first call, warm: one line", "parakeet"] < figures["first call, cold: one line", "parakeet"]
        plain, pays = data["small functions"]
        assert plain["way"] == "plain" and pays["way"] == "parakeet, pays" and plain["refused"] == pays["refused"] == 0
        assert "fifty small functions" in output and plain["cold"] > 0 and pays["decorated"] > 0
        (program,) = data["programs"]
        assert program["program"] == "dot" and 0 < program["warm"] < program["cold"]

    def test_measures_small_calls(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from parakeet_py.bench import idioms, small_calls

        some = {"arithmetic": ("x + y", "np.hypot(u, k)"), "loops": ("s = 0.0\nfor w in x:\n    s += w\nreturn s",)}
        for module in (idioms, small_calls):
            monkeypatch.setattr(module, "IDIOMS", some)
        out, page = tmp_path / "result.json", tmp_path / "page.md"
        page.write_text(f"before\n{small_calls.BEGIN}\nold\n{small_calls.END}\nafter\n")
        code, output = invoke("bench", "--small", "--peers", "numpy", "--json", str(out), "--readme", str(page))
        assert code == 0, output
        cells = json.loads(out.read_text())
        assert len(cells) == 3 * len(small_calls.SIZES)
        assert all(cell["plain"] > 0 and cell["times"]["parakeet"] > 0 for cell in cells)
        text = page.read_text()
        assert "old" not in text and "| loops | " in text and "| 10,000 |" in text and text.endswith("after\n")

    def test_small_calls_are_idioms_of_their_names(self) -> None:
        from parakeet_py.bench.idioms import IDIOMS
        from parakeet_py.bench.small_calls import arguments, function_of

        assert sum(map(len, IDIOMS.values())) >= 200
        for size in (1, 10):
            for idiom in (one for group in IDIOMS.values() for one in group):
                function, names = function_of(idiom)
                values = arguments(size)
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*(values[name] for name in names))

    def test_small_functions_are_fifty_and_run(self) -> None:
        from parakeet_py.bench.small_functions import FUNCTIONS

        assert len(FUNCTIONS) == 50
        for function, arguments in FUNCTIONS.items():
            made: Any = accelerate(when="pays")(function)
            for _ in range(10):
                same(function(*arguments), made(*arguments))
            assert made.fell_back is False

    def test_fresh_processes_have_byte_code(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        from parakeet_py.bench import cold

        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setenv("PARAKEET_CACHE", "0")
        environment = cold._environment(str(tmp_path / "bytecode"))
        said = cold.Children(environment).run(
            "import json, os, sys, parakeet_py\n"
            "print(json.dumps({'written': not sys.dont_write_bytecode, 'cache': os.environ['PARAKEET_CACHE']}))",
            str(tmp_path),
        )
        assert said == {"written": True, "cache": "1"}
        assert list((tmp_path / "bytecode").rglob("config.*.pyc"))


class TestExplain:
    def test_without_arguments_prints_the_untyped_ir(self, source: Path) -> None:
        code, output = invoke("explain", f"{source}:add_one")
        assert code == 0, output
        assert "add_one" in output

    @pytest.mark.parametrize("name", ["add_one", "double"])
    def test_with_arguments_explains_the_call(self, source: Path, name: str) -> None:
        code, output = invoke("explain", f"{source}:{name}", "--args", "np.ones(10)")
        assert code == 0, output
        assert name in output

    @pytest.mark.parametrize("stage", ["untyped", "typed", "imp", "llvm"])
    def test_prints_a_stage(self, source: Path, stage: str) -> None:
        code, output = invoke("explain", f"{source}:add_one", "--args", "np.ones(10)", "--stage", stage)
        assert code == 0, output
        assert output.strip()

    @pytest.mark.parametrize(
        ("target", "arguments", "message"),
        [
            ("nowhere", [], "is not MODULE:FUNCTION or FILE.py:FUNCTION"),
            ("nowhere.py:f", [], "there is no Python file nowhere.py"),
            ("no_such_module:f", [], "there is no module no_such_module"),
            ("{source}:add_one", ["--html", "page.html"], "a page shows all stages of one call: give --args"),
            ("{source}:add_one", ["--open", "--args", "1.0", "--stage", "imp"], "and no --stage"),
            ("{source}:add_one", ["--args", "1.0", "--html", "{source}/page.html"], "--html"),
            ("{source}:absent", [], "has no absent"),
            ("{source}:add_one", ["--stage", "llvm"], "give --args"),
            ("{source}:add_one", ["--stage", "ptx"], "no stage ptx"),
            ("{source}:add_one", ["--args", "nothing"], "--args 'nothing': NameError: name 'nothing' is not defined"),
            ("{source}:add_one", ["--args", "1 +"], "--args '1 +': SyntaxError: "),
            ("{source}:np", ["--args", "1"], "is no function, it is module"),
            ("{source}:add_one", ["--args", "np.ones(3)["], "with NumPy as np: --args 'np.ones(10), scale=2.0'"),
            ("{source}:add_one", ["--args", "1, 2"], "add_one() takes 1 positional argument but 2 were given"),
            ("{source}:add_one", ["--args", ""], "add_one() missing 1 required positional argument: 'x'"),
            ("{source}:add_one", ["--args", "{1}", "--stage", "llvm"], "instead: "),
        ],
    )
    def test_refuses_what_it_cannot_find(self, source: Path, target: str, arguments: list[str], message: str) -> None:
        code, output = invoke(
            "explain", target.format(source=source), *[one.replace("{source}", str(source)) for one in arguments]
        )
        assert code == 2
        assert message in output.replace("\n", "")

    def test_writes_a_page(self, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        page, opened = tmp_path / "out" / "page.html", list[str]()
        code, output = invoke("explain", f"{source}:add_one", "--args", "np.ones(10)", "--html", str(page))
        assert code == 0 and "return x + 1.0" in re.sub(r"<[^>]*>", "", page.read_text()), output
        monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
        monkeypatch.syspath_prepend(tmp_path)
        code, output = invoke("explain", f"{source.stem}:add_one", "--args", "np.ones(10)", "--open")
        assert code == 0 and opened[0].startswith("file:///") and opened[0].endswith("/add_one.html"), output

    def test_calls_first(self, source: Path) -> None:
        source.write_text(SOURCE + "\nimport os.path\n\ndef strange(x):\n    return os.path.getsize('.'), np.sum(x)\n")
        target = f"{source}:strange"
        output = invoke("explain", target, "--args", "np.ones(10),")[1]
        assert "not compiled yet" in output and "with --call the function is called first" in output
        with options(when="pays"):
            code, output = invoke("explain", target, "--args", "np.ones(10),", "--call")
        assert code == 0 and "not compiled yet" not in output and "stat" in output


class TestDoctor:
    def test_finds_something_about_everything(self) -> None:
        findings = {finding.topic: finding for finding in examine()}
        assert {"Python", "packages", "processor", "threads", "disk cache", "BLAS", "CUDA"} <= set(findings)
        assert findings["Python"].good
        assert "bit vectors" in findings["processor"].text

    def test_prints(self) -> None:
        code, output = invoke("doctor")
        assert code == 0
        assert "numpy" in output

    def test_says_why_the_cache_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from parakeet_py.base import config

        with config.options(cache=False):
            finding = next(finding for finding in examine() if finding.topic == "disk cache")
        assert not finding.good
        assert "PARAKEET_CACHE=0" in finding.text
