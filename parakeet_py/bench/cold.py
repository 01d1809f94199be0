"""What a user waits for in a fresh process: imports, first calls without and with the disk cache, and small calls.

Every figure comes from child processes of its own, the median of several: the child imports NumPy first (users have it
anyway), then the system under test, then calls. Cold children get an empty cache folder; warm children the folder that
an earlier child of the same kind has filled.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

log = logging.getLogger("parakeet_py.bench")

REPEATS = 3
TIMEOUT = 120.0  # seconds for one child

# The child's program. Its source must lie in a file, as a user's does: that is what the frontend reads.
_ELEMENTWISE = """
import json, sys, time
import numpy as np
started = time.perf_counter()
{imports}
imported = time.perf_counter()

@{decorator}
def scale(x, y):
    return 2.0 * x + y

a, b = np.arange(1000.0), np.ones(1000)
before = time.perf_counter()
scale(a, b)
called = time.perf_counter()
print(json.dumps({{"import": imported - started, "first": called - before}}))
"""

_PROGRAM = """
import json, time
import numpy as np
from parakeet_py import accelerate
from parakeet_py.bench.programs import PROGRAMS
program = PROGRAMS[{name!r}]
arguments = program.fresh(program.arguments("XS"))
accelerated = accelerate(program.function)
before = time.perf_counter()
accelerated(*arguments)
print(json.dumps({{"first": time.perf_counter() - before}}))
"""

_SMALL = """
import json, timeit
import numpy as np
{imports}

@{decorator}
def add(x, y):
    return x + y

@{decorator}
def store(x, y, z):
    z[0] = x[0] + y[0]

def nanoseconds(function, *arguments):
    function(*arguments)
    timer = timeit.Timer(lambda: function(*arguments))
    empty = timeit.Timer(lambda: None)
    count, _ = timer.autorange()
    best = min(timer.repeat(7, count)) / count - min(empty.repeat(7, count)) / count
    return best * 1e9

a, b, c = np.arange(8.0), np.ones(8), np.zeros(8)
print(json.dumps({{
    "x + y on 8 elements": nanoseconds(add, a, b),
    "three arrays, no allocation": nanoseconds(store, a, b, c),
}}))
"""

SYSTEMS: dict[str, tuple[str, str]] = {
    "parakeet": ("from parakeet_py import accelerate", "accelerate"),
    "numba": ("import numba", "numba.njit(cache=True)"),
    "numpy": ("", "(lambda function: function)"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure: what, of which system, and its value in seconds."""

    what: str
    system: str
    seconds: float


def measure(
    systems: Sequence[str], programs: Sequence[str], progress: Callable[[str], None] = lambda what: None
) -> list[Figure]:
    """Measure imports, first calls and small calls of `systems`, and our cold and warm first calls of `programs`.

    A child that fails leaves its figures out; what it said goes to the log.
    """
    figures: list[Figure] = []
    for system in systems:
        imports, decorator = SYSTEMS[system]
        if system != "numpy":
            progress(f"{system}: import and first call")
            figures += _first_calls(system, _ELEMENTWISE.format(imports=imports, decorator=decorator))
        progress(f"{system}: small calls")
        with tempfile.TemporaryDirectory() as folder:
            small = _child(_SMALL.format(imports=imports, decorator=decorator), folder)
        figures += [Figure(f"call: {what}", system, value * 1e-9) for what, value in small.items()]
    for name in programs:
        progress(f"{name}: first call in a fresh process")
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("cold", "warm"):
                found = _child(_PROGRAM.format(name=name), folder)
                if "first" in found:
                    figures.append(Figure(f"first call, {kind}: {name}", "parakeet", found["first"]))
    return figures


def _first_calls(system: str, source: str) -> list[Figure]:
    """Import time, and the first call with an empty and with a filled cache folder: medians over `REPEATS` children."""
    runs: dict[Literal["cold", "warm"], list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            for results in runs.values():
                results.append(_child(source, folder))
    figures = []
    for label, children, key in (
        ("import beyond NumPy", runs["cold"], "import"),
        ("first call, cold: one line", runs["cold"], "first"),
        ("first call, warm: one line", runs["warm"], "first"),
    ):
        values = [found[key] for found in children if key in found]
        if values:
            figures.append(Figure(label, system, statistics.median(values)))
    return figures


def _child(source: str, folder: str) -> dict[str, float]:
    """Run `source` as a file in a fresh interpreter whose caches are in `folder`; the figures it printed."""
    path = os.path.join(folder, "measured.py")
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
    environment = os.environ | {"PARAKEET_CACHE": "1", "PARAKEET_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
    roots = [str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(root for root in roots if root)
    command = [sys.executable, "-W", "ignore", path]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL
    )
    if result.returncode != 0:
        log.warning("a measured process failed: %s", result.stderr.strip()[-500:])
        return {}
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found
