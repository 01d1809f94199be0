"""Runs packages of others with everything accelerated, and prints what became of it.

Each package is installed into a folder of its own. Some of its tests run plain and accelerated, in turns, and plain
once more to keep calls; then the kept calls are replayed in processes that may die. Times are those of the CPU, the
shortest of the turns: how long one waits for a busy machine says nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

MARK = "replayed: "  # as in `replay`, which is not imported here: it imports the compiler
SLOW, LONG = 0.9, 5e-6  # calls of this many seconds in Python should never be below that part of plain speed
IMPORTS = 8  # after the first one, which may compile sources
ROOT = Path(__file__).parents[2]
PACKAGES = ("PyWavelets=pywt", "tensorly", "quantities", "scikit-fuzzy=skfuzzy", "pykalman", "filterpy", "einops")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__)
    parser.add_argument(
        "packages", nargs="*", default=PACKAGES, help="name on the index, or name=module, or a part of it"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / ".strangers")
    parser.add_argument("--timeout", type=float, default=900, help="seconds of one run of a suite")
    parser.add_argument("--tests", type=int, default=400, help="tests that run, drawn at random")
    parser.add_argument("--turns", type=int, default=2, help="runs of each kind")
    parser.add_argument("--calls", type=int, default=150, help="calls that are replayed")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    names = [one.partition("=") for one in given.packages]
    rows = []
    for name, _, module in names:
        rows.append(run(name, module or name, given))
        if given.json is not None:
            given.json.write_text(json.dumps(rows, indent=1))
    show(rows)


def run(name: str, module: str, given: argparse.Namespace) -> dict[str, Any]:
    """One package."""
    place = given.folder / name
    if not place.exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-warn-conflicts",
            "--target",
            str(place),
            name,
        ]
        subprocess.run(command, check=True)
        for shadow in ("numpy", "scipy"):  # those of the environment are used
            for found in (*place.glob(shadow), *place.glob(f"{shadow}.libs"), *place.glob(f"{shadow}-*.dist-info")):
                shutil.rmtree(found)
    calls = given.folder / f"{name}.calls"
    calls.mkdir(exist_ok=True)
    more = {"STRANGERS_TESTS": str(given.tests)}
    own = more | {"STRANGERS": module.partition(".")[0]}
    report = given.folder / f"{name}.report.json"
    suite(module, place, more, given.timeout, "--collect-only")  # sources are compiled now, not in the first turn
    turns = [
        (
            suite(module, place, more, given.timeout),
            suite(module, place, own | {"STRANGERS_REPORT": str(report)}, 3 * given.timeout),
        )
        for _ in range(given.turns)
    ]
    suite(module, place, own | {"STRANGERS_CALLS": str(calls)}, 3 * given.timeout)
    plain, fast = turns[0]
    failing = sorted(test for test, passed in fast["tests"].items() if not passed and plain["tests"].get(test))
    of_any = []  # as functions are replaced after their module has run, they fail with whatever takes their place
    if failing:
        passing = suite(module, place, own | {"STRANGERS_NEUTRAL": "1"}, given.timeout)["tests"]
        of_any = [test for test in failing if not passing.get(test)]
    kept = sorted(calls.glob("*.pickle"))
    random.Random(0).shuffle(kept)
    return {
        "package": name,
        "tests": sum(plain["tests"].values()),
        "plain": min(turn[0]["seconds"] for turn in turns),
        "accelerated": min(turn[1]["seconds"] for turn in turns),
        "wall": min(turn[1]["wall"] for turn in turns) / min(turn[0]["wall"] for turn in turns),
        "import": imports(module, place, own),
        "failing": [test for test in failing if test not in of_any],
        "failing with any wrapper": of_any,
        "report": json.loads(report.read_text())[:5] if report.exists() else [],
        "calls": replays(kept[: given.calls], place),
    }


def imports(module: str, place: Path, own: dict[str, str]) -> float:
    """CPU time of importing a package with everything accelerated / plain: the shortest of some. The time that the hook
    takes to go through modules and classes, and to replace functions by copies of themselves, is not counted."""
    command = [sys.executable, "-c", f"import numpy, tests.strangers.plugin, {module}"]
    kinds = {"plain": {}, "hook": own | {"STRANGERS_COPIES": "1"}, "accelerated": own}
    turns = [{kind: measured(command, place, more, 300)[0] for kind, more in kinds.items()} for _ in range(1 + IMPORTS)]
    plain, hook, accelerated = (min(turn[kind] for turn in turns) for kind in kinds)
    return (accelerated - max(hook - plain, 0)) / plain


def measured(command: list[str], place: Path, more: dict[str, str], timeout: float) -> tuple[float, float]:
    """Seconds of CPU time, and of all time, that a process takes; infinity if it takes longer than it may."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = _environment(place, more)
    try:
        subprocess.run(command, env=environment, cwd=place, timeout=timeout, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return math.inf, math.inf
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start


def suite(module: str, place: Path, more: dict[str, str], timeout: float, *others: str) -> dict[str, Any]:
    """The tests of a package: which passed, and the seconds they took."""
    report = place.with_name(f"{place.name}.xml")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "tests.strangers.plugin", "--pyargs", module, "-q", *others]
    command += [
        "--maxfail=10000",
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        "-o",
        "addopts=",
        "-W",
        "ignore",
    ]
    command += ["-c", os.devnull, f"--rootdir={place}"]
    seconds, wall = measured(command, place, more, timeout)
    tests: dict[str, bool] = {}
    if report.exists():
        for case in ET.parse(report).iter("testcase"):
            passed = all(case.find(kind) is None for kind in ("failure", "error"))
            tests[f"{case.get('classname')}.{case.get('name')}"] = passed and case.find("skipped") is None
    return {"tests": tests, "seconds": seconds, "wall": wall}


def replays(paths: list[Path], place: Path) -> list[dict[str, Any]]:
    """The kept calls replayed, in processes that are begun anew where one has died."""
    found: list[dict[str, Any]] = []
    left = list(paths)
    while left:
        command = [sys.executable, "-m", "tests.strangers.replay", *map(str, left)]
        try:
            done = subprocess.run(
                command,
                env=_environment(place, {}),
                cwd=place,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            out = done.stdout
        except subprocess.TimeoutExpired as late:
            out = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        lines = [json.loads(line.removeprefix(MARK)) for line in out.splitlines() if line.startswith(MARK)]
        begun = [line["begun"] for line in lines if "begun" in line]
        found += [line for line in lines if "call" in line]
        left = left[max(len(begun), 1) :]
        if left:
            found.append({"call": begun[-1] if begun else "?", "wrong": "the process has died", "class": "native"})
    return found


def _environment(place: Path, more: dict[str, str]) -> dict[str, str]:
    unwanted = ("PARAKEET_", "PYTHONDONTWRITEBYTECODE")  # sources are compiled once
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    kept |= {
        "PYTHONPYCACHEPREFIX": str(place.with_name("pycache")),
        "PYTHONPATH": f"{place}{os.pathsep}{ROOT}",
        "PARAKEET_CACHE": "0",
        "PARAKEET_WHEN": "pays",
        "MPLBACKEND": "agg",
    }
    return kept | more


def show(rows: list[dict[str, Any]]) -> None:
    """The table."""
    table = Table(
        "package", "tests", "failing", "time", "wall", "import", "calls", "wrong", "native", *_CLASSES, "slower"
    )
    for row in rows:
        timed = [call for call in row["calls"] if call.get("ratio")]
        classes = [_mean([call["ratio"] for call in timed if call["class"] == kind]) for kind in _CLASSES]
        native = sum(call["class"] == "native" for call in timed)
        long = [call for call in timed if call["seconds"] > LONG]
        table.add_row(
            row["package"],
            str(row["tests"]),
            str(len(row["failing"])),
            f"{row['accelerated'] / row['plain']:.2f}",
            f"{row['wall']:.2f}",
            f"{row['import']:.2f}",
            str(len(timed)),
            str(sum(bool(call.get("wrong")) for call in row["calls"])),
            f"{native / max(len(timed), 1):.0%}",
            *classes,
            f"{sum(call['ratio'] < SLOW for call in long)} of {len(long)}",
        )
    Console(width=140).print(table)
    for row in rows:
        for one in row["report"]:
            if one["compiling"] > 0.05:
                print(f"{row['package']}: {one['compiling']:.2f} s of compiling {one['function']}: {one['decision']}")
        for test in row["failing"][:10]:
            print(f"{row['package']}: {test}")
        for test in row["failing with any wrapper"][:10]:
            print(f"{row['package']}: {test} fails whatever functions are wrapped by")
        for call in row["calls"]:
            if call.get("wrong"):
                print(f"{row['package']}: {call['call']}: {call['wrong'][:200]}")
            elif call.get("ratio") and call["ratio"] < SLOW and call["seconds"] > LONG:
                print(f"{row['package']}: {call['call']}: {call['ratio']:.2f} of plain speed ({call['class']})")


_CLASSES = ("native", "not native", "raising")


def _mean(ratios: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


if __name__ == "__main__":
    main()
