"""Runs packages of others with everything accelerated, and prints what became of it.

Each package is installed into a folder of its own. Its tests run plain, plain once more to keep calls, and accelerated;
then the kept calls are replayed in processes that may die.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
PACKAGES = ("PyWavelets=pywt", "tensorly", "quantities", "scikit-fuzzy=skfuzzy", "pykalman", "filterpy", "einops")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.strangers", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="name on the index, or name=module")
    parser.add_argument("--folder", type=Path, default=ROOT / ".strangers")
    parser.add_argument("--timeout", type=float, default=900, help="seconds of one run of a suite")
    parser.add_argument("--calls", type=int, default=150, help="calls that are replayed")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = [run(*(*one.split("="), one.split("=")[0])[:2], given) for one in given.packages]
    show(rows)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))


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
    plain = suite(module, place, {}, None, given.timeout)
    suite(module, place, {"STRANGERS": module, "STRANGERS_CALLS": str(calls)}, "keep", given.timeout)
    fast = suite(module, place, {"STRANGERS": module}, "fast", 3 * given.timeout)
    failing = sorted(test for test, passed in fast["tests"].items() if not passed and plain["tests"].get(test))
    kept = sorted(calls.glob("*.pickle"))
    random.Random(0).shuffle(kept)
    return {
        "package": name,
        "tests": sum(plain["tests"].values()),
        "plain": plain["seconds"],
        "accelerated": fast["seconds"],
        "failing": failing,
        "calls": replays(kept[: given.calls], place),
    }


def suite(module: str, place: Path, more: dict[str, str], plugin: str | None, timeout: float) -> dict[str, Any]:
    """The tests of a package: which passed, and the seconds they took by themselves."""
    report = place.with_name(f"{place.name}.{plugin or 'plain'}.xml")
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--pyargs",
        module,
        "-q",
        "-x",
        "--maxfail=10000",
        "-p",
        "no:cacheprovider",
    ]
    command += [f"--junitxml={report}", "-o", "addopts=", "-W", "ignore", "-c", os.devnull, f"--rootdir={place}"]
    if plugin is not None:
        command[3:3] = ["-p", "tests.strangers.plugin"]
    start = time.perf_counter()
    try:
        subprocess.run(
            command, env=_environment(place, more), cwd=place, timeout=timeout, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return {"tests": {}, "seconds": math.inf}
    seconds = time.perf_counter() - start
    tests: dict[str, bool] = {}
    if report.exists():
        for case in ET.parse(report).iter("testcase"):
            passed = all(case.find(kind) is None for kind in ("failure", "error"))
            tests[f"{case.get('classname')}.{case.get('name')}"] = passed and case.find("skipped") is None
    return {"tests": tests, "seconds": seconds}


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
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        begun = [line["begun"] for line in lines if "begun" in line]
        found += [line for line in lines if "call" in line]
        left = left[max(len(begun), 1) :]
        if left:
            found.append({"call": begun[-1] if begun else "?", "wrong": "the process has died", "class": "native"})
    return found


def _environment(place: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARAKEET_")}
    kept |= {
        "PYTHONPATH": f"{place}{os.pathsep}{ROOT}",
        "PARAKEET_CACHE": "0",
        "PARAKEET_WHEN": "pays",
        "MPLBACKEND": "agg",
    }
    return kept | more


def show(rows: list[dict[str, Any]]) -> None:
    """The table."""
    table = Table("package", "tests", "newly failing", "time ratio", "calls", "wrong", "native", *_CLASSES, "slower")
    for row in rows:
        timed = [call for call in row["calls"] if call.get("ratio")]
        classes = [_mean([call["ratio"] for call in timed if call["class"] == kind]) for kind in _CLASSES]
        native = sum(call["class"] == "native" for call in timed)
        slower = [call for call in timed if call["ratio"] < 0.9 and call["seconds"] > 5e-6]
        table.add_row(
            row["package"],
            str(row["tests"]),
            str(len(row["failing"])),
            f"{row['accelerated'] / row['plain']:.2f}",
            str(len(timed)),
            str(sum(bool(call.get("wrong")) for call in row["calls"])),
            f"{native / max(len(timed), 1):.0%}",
            *classes,
            str(len(slower)),
        )
    Console(width=140).print(table)
    for row in rows:
        for test in row["failing"][:10]:
            print(f"{row['package']}: {test}")
        for call in row["calls"]:
            if call.get("wrong"):
                print(f"{row['package']}: {call['call']}: {call['wrong'][:200]}")
            elif call.get("ratio") and call["ratio"] < 0.9 and call["seconds"] > 5e-6:
                print(f"{row['package']}: {call['call']}: {call['ratio']:.2f} of plain speed ({call['class']})")


_CLASSES = ("native", "not native", "raising")


def _mean(ratios: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


if __name__ == "__main__":
    main()
