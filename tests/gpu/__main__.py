"""`python -m tests.gpu`: the corpus and the property tests on a GPU, with a report; one line where there is none."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from parakeet_py.hybrid.devices import cuda

ROOT = Path(__file__).resolve().parents[2]
HUNG = 120  # seconds of one test
PATIENCE = 20  # seconds to write the report after an interrupt
TESTS = ("tests/test_programs.py", "tests/property")


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser("python -m tests.gpu", description=__doc__)
    options.add_argument(
        "--rehearse",
        choices=("packages", "driver"),
        nargs="?",
        const="packages",
        help="without a GPU, on the emulator: a stand-in for CUDA's packages, or for the driver below them",
    )
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the report")
    options.add_argument("--workers", type=int, default=min(len(os.sched_getaffinity(0)), 16))
    options.add_argument("--seconds", type=float, default=440, help="then what there is is reported; 0: no limit")
    options.add_argument("--examples", type=int, default=20, help="of each property test")
    given, rest = options.parse_known_args(arguments)
    found = cuda.probe()
    if not given.rehearse and not found.devices:
        print(f"skipped: no GPU to test on: {found.reason}")
        return 0
    kind = given.rehearse or "cuda:0"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tests.json"
        environment = dict(
            os.environ,
            PARAKEET_TEST_GPU=kind,
            PARAKEET_GPU_RESULTS=str(place),
            PARAKEET_FUZZ=str(given.examples),
            PARAKEET_CHECK="0",
            PARAKEET_CACHE="0",
        )
        chosen = [argument for argument in rest if argument.startswith("tests")] or list(TESTS)
        more = [argument for argument in rest if not argument.startswith("tests")]
        command = [sys.executable, "-m", "pytest", "-p", "tests.gpu.plugin", *chosen, *more]
        if given.workers > 1:
            command += ["-n", str(given.workers), "--dist", "loadgroup"]
            command += [f"--timeout={HUNG}", "--timeout-method=thread"]  # a kernel that hangs takes its worker along
        status, ended = run(command, environment, given.seconds)
        if not place.exists():
            return status or 1
        result = json.loads(place.read_text())
    result = {"device": describe(kind), "ended": ended, **summary(result), **result}
    given.out.mkdir(parents=True, exist_ok=True)
    name = "gpu-tests-rehearsal" if given.rehearse else "gpu-tests"
    (given.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (given.out / f"{name}.md").write_text(markdown(result))
    print(markdown(result).split("\n\n")[1])
    return status


def run(command: list[str], environment: dict[str, str], seconds: float) -> tuple[int, bool]:
    """Run the tests; gives the exit status, and whether they came to their end. Those that do not are interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background would ignore it
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            return process.wait(seconds or None), True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            return process.wait(PATIENCE) or 1, False
        except subprocess.TimeoutExpired:
            process.kill()
            return 1, False


def describe(kind: str) -> dict[str, Any]:
    found = cuda.probe()
    if kind != "cuda:0":
        return {"name": "emulated, in the place of CUDA", "driver": None, "python": platform.python_version()}
    driver = None if found.driver is None else f"{found.driver[0]}.{found.driver[1]}"
    packages = {name: version(name) for name in ("numpy", "llvmlite", "cuda-core", "cuda-bindings")}
    return {"name": found.names[0], "driver": driver, "python": platform.python_version(), **packages}


def summary(result: dict[str, Any]) -> dict[str, Any]:
    tests = result["tests"]
    return {
        "passed": sum(test["outcome"] == "passed" for test in tests),
        "failed": sum(test["outcome"] == "failed" for test in tests),
        "exact": sum(test.get("exact", 0) for test in tests),
        "approximate": sum(test.get("approximate", 0) for test in tests),
    }


def markdown(result: dict[str, Any]) -> str:
    device = result["device"]
    early = "" if result["ended"] else " (stopped early: there was no time left)"
    driver = f", driver for CUDA {device['driver']}" if device["driver"] else ""
    lines = [
        "# Tests on a GPU\n",
        f"{device['name']}{driver}: {result['passed']} passed, {result['failed']} failed in {result['seconds']:.0f} s"
        f"{early}; "
        f"{result['exact']} kernels equal to the emulator's bit for bit, "
        f"{result['approximate']} with approximate instructions (compared with NumPy only).\n",
        "| tests | passed | failed | exact kernels | approximate kernels |",
        "|---|---|---|---|---|",
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for test in result["tests"]:
        groups.setdefault(group_of(test["test"]), []).append(test)
    for name, tests in sorted(groups.items()):
        found = summary({"tests": tests})
        lines.append(f"| {name} | {found['passed']} | {found['failed']} | {found['exact']} | {found['approximate']} |")
    failed = [test for test in result["tests"] if test["outcome"] == "failed"]
    if failed:
        lines += ["", "## Failed", "", *(f"* `{test['test']}`: {test.get('why', '')}" for test in failed)]
    return "\n".join(lines) + "\n"


def group_of(test: str) -> str:
    """The topic of a program, the file of a property test."""
    file, _, rest = test.partition("::")
    if "test_programs" in file:
        return "programs: " + rest.partition("[gpu-")[2].partition(".")[0]
    return "properties: " + Path(file).stem.removeprefix("test_")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
