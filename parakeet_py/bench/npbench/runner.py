"""All programs on all systems, one child process after the other, within a budget of seconds.

Every program first runs on our own column; what is left of the budget is for the rivals, program by program. A child
that crashes or takes too long costs its own figure only.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from parakeet_py.bench.npbench.checkout import Program, preset_of
from parakeet_py.bench.npbench.child import Finding
from parakeet_py.bench.npbench.systems import OURS, VARIANTS

TIMEOUT = 300.0  # seconds of one child
SECONDS = 1.0  # of turns in one child, if the budget allows
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Row:
    """A program at a preset, and what each variant of it makes of it; "numpy" is our own column."""

    program: str
    preset: str
    findings: dict[str, Finding]

    def ratio(self, variant: str) -> float | None:
        """How many times as long NumPy takes, beside it in the same process; None where nothing was measured."""
        finding = self.findings.get(variant)
        if finding is None or not finding.times or not finding.numpy:
            return None
        return statistics.median(finding.numpy) / statistics.median(finding.times)

    @property
    def ours(self) -> float | None:
        """Our own ratio to NumPy."""
        return self.ratio("numpy")

    @property
    def rival(self) -> tuple[str, float]:
        """The best rival and its ratio to NumPy, which is a rival, too."""
        found = [(ratio, name) for name in self.findings if name != "numpy" and (ratio := self.ratio(name)) is not None]
        ratio, name = max([(1.0, "NumPy"), *found])
        return name, ratio


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure: the systems beside ours, presets (none: each program's own), threads and seconds of it all, and
    by which clock: "wall" or "cpu"."""

    rivals: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    threads: int = 1
    budget: float = 3600.0
    clock: str = "wall"


def run(
    found: Sequence[Program], settings: Settings, tell: Callable[[str, str], None] = lambda program, variant: None
) -> list[Row]:
    """Measure programs; `tell` is called with the program and the variant that come next.

    Returns
    -------
    list of Row
        A row for each program and preset, in order.
    """
    deadline = time.perf_counter() + settings.budget
    rows = [Row(one.name, preset, {}) for one in found for preset in settings.presets or (preset_of(one),)]
    by_name = {program.name: program for program in found}
    tasks = [(row, "numpy") for row in rows]
    for row in rows:
        there = by_name[row.program].variants()
        tasks += [(row, name) for name, system in VARIANTS.items() if system in settings.rivals and name in there]
    for place, (row, variant) in enumerate(tasks):
        tell(f"{row.program} {row.preset}", OURS if variant == "numpy" else variant)
        left = deadline - time.perf_counter()
        if left <= 0:
            row.findings[variant] = Finding("skipped", "no time left in the budget")
            continue
        seconds = min(SECONDS, max(0.1, 0.25 * left / (len(tasks) - place)))
        limit = min(TIMEOUT, max(10.0, left))
        row.findings[variant] = child(by_name[row.program], row.preset, variant, seconds, settings, limit)
    return rows


def child(program: Program, preset: str, variant: str, seconds: float, settings: Settings, limit: float) -> Finding:
    """One program on one system in a process of its own, for at most `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        options = [str(program.root), program.name, preset, variant, str(seconds), settings.clock, str(result)]
        process = subprocess.Popen(
            [sys.executable, "-m", "parakeet_py.bench.npbench.child", *options],
            cwd=folder,  # DaCe writes into the working directory
            env=_environment(settings.threads),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it has started
            process.communicate()
            return Finding("timeout", f"more than {limit:.0f} s")
        if process.returncode != 0 or not result.exists():
            last = (errors.strip().splitlines() or [""])[-1]
            return Finding("error", f"ended with {process.returncode}: {last}"[:300])
        return Finding(**json.loads(result.read_text(encoding="utf-8")))


def _environment(threads: int) -> dict[str, str]:
    """The environment of children: nothing compiled is found on the disk, and all pools have as many threads."""
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "PARAKEET_NUM_THREADS")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    fixed = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PARAKEET_CACHE": "0"}
    return {**os.environ, **dict.fromkeys(pools, str(threads)), **fixed}
