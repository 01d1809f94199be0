"""The example of a wheel: built with setuptools, installed, and used in a process that cannot import the compiler."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from parakeet_py.export import link

EXAMPLE = Path(__file__).parents[3] / "examples" / "export"
pytestmark = pytest.mark.skipif(sys.platform != "linux" or link.compiler() is None, reason="nothing to link with")

USED = """
import sys
sys.modules["parakeet_py"] = sys.modules["llvmlite"] = None  # neither can be imported
import numpy as np
from plates import spread

plate = np.zeros((6, 5))
plate[0] = 100.0
now, change = spread(plate, 1, 0.25)
expected = plate.copy()
expected[1, 1:-1] = 25.0
assert now.dtype == np.float64 and np.array_equal(now, expected) and change == 25.0 and type(change) is float
assert np.array_equal(spread(plate.astype(np.float32), 1, 0.25)[0], expected.astype(np.float32))
assert plate[1:].max() == 0.0
try:
    spread(plate, 1, 0.5)
except ValueError as error:
    assert str(error) == "the rate must be above 0 and at most 0.25"
else:
    raise AssertionError("the rate was taken")
"""


def test_a_wheel_with_compiled_code(tmp_path: Path) -> None:
    source = shutil.copytree(EXAMPLE, tmp_path / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
    built = subprocess.run([*command, "--outdir", tmp_path, source], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("plates-1.0-py3-none-linux_")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("plates/")}
        archive.extractall(tmp_path / "site")
    assert names == {"plates/__init__.py", "plates/spread.py", "plates/libspread.so"}
    run = [sys.executable, "-c", USED]
    used = subprocess.run(run, cwd=tmp_path / "site", capture_output=True, text=True, check=False)
    assert used.returncode == 0, used.stderr
