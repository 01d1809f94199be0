"""The CUDA device through the published `cuda.core`, on a stand-in for the driver (`tests/driver`).

Each test is a process of its own, as the driver is looked for once. They need cuda-core, cuda-bindings and a C
compiler; they pass with cuda-core 0.6.0, 0.7.0, 1.0.0, 1.1.1 and 1.2.2, with cuda-bindings 12.9 and 13.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import driver

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(driver.why_not() is not None, reason=str(driver.why_not()))


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "scenario",
    ["calls", "memory", "pinned", "schedules", "rounds", "tensor_maps", "peers", "more_peers", "foreign", "faults"],
)
def test_scenarios(scenario: str) -> None:
    assert run("-m", "tests.driver.scenarios", scenario).endswith("done\n")


@pytest.mark.parametrize(
    "trouble",
    ["lost cuda:0 stores", "lost cuda:0,cuda:1 nothing", "lost_in_rounds", "no_memory_in_a_window", "gone"],
)
def test_bad_input(trouble: str) -> None:
    assert run("-m", "tests.driver.bad_input", *trouble.split()).endswith("done\n")


def test_bench(tmp_path: Path) -> None:
    run("-m", "tests.driver.scenarios", "bench", str(tmp_path))
    result = json.loads((tmp_path / "gpu-XS.json").read_text())
    assert result["device"] == "cuda:0" and result["architecture"] == "sm_90a"
    rows = [*result["operators"], *result["programs"]]
    assert [row["ours"]["status"] for row in rows] == ["ok"] * 3


def test_machine_code_on_disk(tmp_path: Path) -> None:
    """The second process links nothing; entries that are damaged are made again."""
    first, second = (run("-m", "tests.driver.scenarios", "cubins", str(tmp_path)).split("\n")[0] for _ in range(2))
    assert int(first.split()[1]) >= 2 and second == "linked 0"
    for entry in tmp_path.rglob("*.parakeet"):
        if b"machine code for compute capability 9.0" in entry.read_bytes():
            entry.write_bytes(b"damaged")
    assert run("-m", "tests.driver.scenarios", "cubins", str(tmp_path)).split("\n")[0] == first


def test_suite(tmp_path: Path) -> None:
    chosen = ["tests/test_programs.py", "-k", "running_total", "--workers", "1"]
    run("-m", "tests.gpu", "--rehearse=driver", "--out", str(tmp_path), *chosen)
    result = json.loads((tmp_path / "gpu-tests-rehearsal.json").read_text())
    assert result["failed"] == 0 and result["passed"] == len(result["tests"]) > 0 and result["exact"] > 0
