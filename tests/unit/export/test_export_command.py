"""`parakeet export`: what it writes, and what it says of bad input."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from parakeet_py.cli import app
from parakeet_py.export import link
from tests.unit.export.test_modules import load

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="not for this system")

SOURCE = """
import numpy as np

def double(x):
    return 2.0 * x

def damped(x, rate=0.5, *, floor, mode="abs"):
    return np.maximum(abs(x) if mode == "abs" else x, floor) * rate

def kept(x):
    return np.partition(x, 2)
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "functions_to_export.py"
    path.write_text(SOURCE)
    return str(path)


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["export", *arguments])
    return result.exit_code, result.output


@pytest.mark.skipif(link.compiler() is None, reason="nothing to link with")
def test_a_function_for_several_types(source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    several = ("--args", "np.ones(3)", "--args", "np.ones((2, 5), np.float32)")
    code, output = invoke(
        f"{source}:double", *several, "-o", str(out), "--name", "twice", "--target", "x86-64-v2", "--threads", "pool"
    )
    assert code == 0, output
    written = {Path(line.removeprefix("written: ")).name for line in output.splitlines()}
    assert written == {"twice.c", "twice.h", "twice.py", "twice-x86-64-v2.o", "libtwice.so"}
    twice = load(out, "twice")
    assert twice(np.ones(2)).tolist() == [2.0, 2.0]
    assert twice(np.ones((3, 6), np.float32)).dtype == np.float32


@pytest.mark.skipif(link.compiler() is None, reason="nothing to link with")
def test_keyword_arguments(source: str, tmp_path: Path) -> None:
    calls = ("--args", "np.ones(3), floor=0", "--args", 'x=np.ones(3), floor=0.5, mode="signed"')
    code, output = invoke(f"{source}:damped", *calls, "-o", str(tmp_path), "--target", "x86-64-v2")
    assert code == 0, output
    damped = load(tmp_path, "damped")
    line = np.array([-2.0, 0.25, 3.0])
    assert damped(line, floor=1).tolist() == [1.0, 0.5, 1.5]
    assert damped(rate=2.0, x=line, mode="signed", floor=0.5).tolist() == [1.0, 1.0, 6.0]
    with pytest.raises(TypeError, match=r"no exported signature is for \(float64\[3\], float, float, 'abs'\)"):
        damped(line, floor=0.5)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'floor'"):
        damped(line)


def test_no_compiler_is_said(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    code, output = invoke(f"{source}:double", "--args", "np.ones(3)", "-o", str(tmp_path), "--target", "x86-64-v3")
    assert code == 0
    assert "there is no C compiler here, so nothing is linked" in output
    assert "-shared -o libdouble.so double.c double-x86-64-v3.o -lm -pthread" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --args"),
        (("--args", "np.ones(3)"), "where to?"),
        (("--args", "np.ones(", "-o", "out"), "SyntaxError"),
        (("--args", "np.ones(3), 2", "-o", "out"), "takes 1 positional argument but 2 were given"),
        (("--args", "np.ones(3)", "-o", "out", "--target", "sm_90"), "no target sm_90; there are x86-64-v2"),
        (("--args", "np.ones(3)", "-o", "out", "--threads", "4"), "no threads '4'; there are serial"),
        (("--args", "np.ones(3), y=2", "-o", "out"), "unexpected keyword argument 'y'"),
        (("--args", "[1, None]", "-o", "out"), "double cannot be exported"),
    ],
)
def test_bad_input(source: str, arguments: tuple[str, ...], message: str) -> None:
    code, output = invoke(f"{source}:double", *arguments)
    assert code == 2 and message in output


def test_what_python_has_to_do_is_refused(source: str, tmp_path: Path) -> None:
    code, output = invoke(f"{source}:kept", "--args", "np.ones(9)", "-o", str(tmp_path / "out"))
    assert code == 2 and "hands something back to Python" in output and "np.partition" in output
