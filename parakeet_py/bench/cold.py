"""What a user waits for in a fresh process: imports, first calls without and with the disk cache, and small calls.

Every figure comes from child processes of its own, the median of several: the child imports NumPy first (users have it
anyway), then the system under test, then calls. Cold children get an empty cache folder; warm children the folder that
the cold child before them has filled.

What is measured is an installed package: its byte code has been compiled beforehand, whatever the environment of the
benchmark says. Where Python is set not to write byte code, it goes to a folder that is thrown away, and everything
that the children import is compiled into it before the first is measured.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path

log = logging.getLogger("parakeet_py.bench")

REPEATS = 3
TIMEOUT = 600.0  # seconds for one child
PACKAGE = Path(__file__).parents[1]

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
accelerated = accelerate(when="now")(program.function)
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

_FUNCTIONS = """
import json, time
import numpy as np
from parakeet_py.bench.small_functions import FUNCTIONS
started = time.perf_counter()
{imports}
decorate = {decorator}
decorated = [(decorate(function), function, arguments) for function, arguments in FUNCTIONS.items()]
ready = time.perf_counter()
refused = 0
for function, plain, arguments in decorated:
    for _ in range({calls}):
        try:
            function(*arguments)
        except Exception:  # what a system does not compile, its user leaves to Python
            function, refused = plain, refused + 1
            function(*arguments)
print(json.dumps({{"decorated": ready - started, "called": time.perf_counter() - ready, "refused": refused}}))
"""
CALLS = 10  # of each small function

WAYS: dict[str, tuple[str, str, str]] = {  # how small functions are run: the system, its import, its decorator
    "plain": ("numpy", "", "lambda function: function"),
    "parakeet, pays": ("parakeet", "from parakeet_py import accelerate", 'accelerate(when="pays")'),
    "parakeet, now": ("parakeet", "from parakeet_py import accelerate", 'accelerate(when="now")'),
    "numba": ("numba", "import numba", "numba.njit(cache=True)"),
}

SYSTEMS: dict[str, tuple[str, str]] = {
    "parakeet": ("from parakeet_py import accelerate", 'accelerate(when="now")'),
    "numba": ("import numba", "numba.njit(cache=True)"),
    "numpy": ("", "(lambda function: function)"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure: what, of which system, and its value in seconds."""

    what: str
    system: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ProgramFigure:
    """The first call of a benchmark program in a fresh process, in seconds, with an empty and with a filled cache."""

    program: str
    cold: float | None
    warm: float | None


@dataclass(frozen=True, slots=True)
class SmallFunctions:
    """`CALLS` calls of each of fifty small functions in a fresh process, in seconds.

    Attributes
    ----------
    way : how they were run
    decorated : importing the system and decorating the functions
    cold, warm : the calls, with an empty and with a filled cache
    refused : functions that the system does not compile, which run in Python
    """

    way: str
    decorated: float | None
    cold: float | None
    warm: float | None
    refused: int


@dataclass(slots=True)
class Report:
    """All that was measured."""

    figures: list[Figure] = field(default_factory=list)
    small_functions: list[SmallFunctions] = field(default_factory=list)
    programs: list[ProgramFigure] = field(default_factory=list)

    def medians(self) -> tuple[float | None, float | None]:
        """The median cold and the median warm first call over the programs."""
        cold = [one.cold for one in self.programs if one.cold is not None]
        warm = [one.warm for one in self.programs if one.warm is not None]
        return (statistics.median(cold) if cold else None, statistics.median(warm) if warm else None)

    def as_data(self) -> dict[str, object]:
        """The report as JSON."""
        cold, warm = self.medians()
        return {
            "figures": [asdict(figure) for figure in self.figures],
            "small functions": [asdict(way) for way in self.small_functions],
            "programs": [asdict(program) for program in self.programs],
            "median of programs": {"cold": cold, "warm": warm},
        }


def measure(
    systems: Sequence[str], programs: Sequence[str], progress: Callable[[str], None] = lambda what: None
) -> Report:
    """Measure imports, first calls, small calls and small functions of `systems`, and our first calls of `programs`.

    A child that fails leaves its figures out; what it said goes to the log.
    """
    report = Report()
    with tempfile.TemporaryDirectory() as bytecode:
        children = Children(_environment(bytecode))
        progress("byte code")
        children.compile_package()
        for system in systems:
            imports, decorator = SYSTEMS[system]
            small = _SMALL.format(imports=imports, decorator=decorator)
            progress(f"{system}: small calls")
            with tempfile.TemporaryDirectory() as folder:
                found = children.run(small, folder)  # before all others of its kind: it brings byte code with it
            calls = [Figure(f"call: {what}", system, value * 1e-9) for what, value in found.items()]
            if system != "numpy":
                progress(f"{system}: import and first call")
                report.figures += _first_calls(children, system, imports, decorator)
            report.figures += calls
        for way in ways_of(systems):
            progress(f"{way}: small functions")
            report.small_functions.append(_small_functions(children, way))
        for name in programs:
            progress(f"{name}: first call in a fresh process")
            cold, warm = children.run_pairs(_PROGRAM.format(name=name), "first")
            report.programs.append(ProgramFigure(name, cold["first"], warm["first"]))
    return report


def ways_of(systems: Sequence[str]) -> list[str]:
    """How small functions are run, where these systems are measured."""
    return [way for way, (system, _, _) in WAYS.items() if system in systems]


def _small_functions(children: Children, way: str) -> SmallFunctions:
    _, imports, decorator = WAYS[way]
    source = _FUNCTIONS.format(imports=imports, decorator=decorator, calls=CALLS)
    cold, warm = children.run_pairs(source, "decorated", "called", "refused")
    return SmallFunctions(way, cold["decorated"], cold["called"], warm["called"], int(cold["refused"] or 0))


def _first_calls(children: Children, system: str, imports: str, decorator: str) -> list[Figure]:
    """Import time, and the first call with an empty and with a filled cache folder."""
    cold, warm = children.run_pairs(_ELEMENTWISE.format(imports=imports, decorator=decorator), "import", "first")
    found = (
        ("import beyond NumPy", cold["import"]),
        ("first call, cold: one line", cold["first"]),
        ("first call, warm: one line", warm["first"]),
    )
    return [Figure(what, system, value) for what, value in found if value is not None]


def _environment(bytecode: str) -> dict[str, str]:
    """The environment of all children: the caches on, byte code written and found."""
    environment = {**os.environ, "PARAKEET_CACHE": "1"}
    roots = [str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment["PYTHONPATH"] = os.pathsep.join(root for root in roots if root)
    if environment.pop("PYTHONDONTWRITEBYTECODE", "") or not os.access(PACKAGE, os.W_OK):
        environment["PYTHONPYCACHEPREFIX"] = bytecode
    return environment


class Children:
    """Fresh interpreters, all with the same environment but for their cache folders."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def compile_package(self) -> None:
        """Compile this package to byte code, as its installation does."""
        command = [sys.executable, "-m", "compileall", "-q", str(PACKAGE)]
        subprocess.run(command, env=self.environment, capture_output=True, timeout=TIMEOUT, check=False)

    def run_pairs(self, source: str, *keys: str) -> tuple[dict[str, float | None], dict[str, float | None]]:
        """Medians of what `REPEATS` pairs of children say, of which the second finds the cache of the first."""
        cold: list[dict[str, float]] = []
        warm: list[dict[str, float]] = []
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory() as folder:
                for results in (cold, warm):
                    results.append(self.run(source, folder))

        def medians(results: list[dict[str, float]]) -> dict[str, float | None]:
            values = {key: [found[key] for found in results if key in found] for key in keys}
            return {key: statistics.median(found) if found else None for key, found in values.items()}

        return medians(cold), medians(warm)

    def run(self, source: str, folder: str) -> dict[str, float]:
        """Run `source` as a file in a fresh interpreter whose caches are in `folder`; the figures it printed."""
        path = os.path.join(folder, "measured.py")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
        environment = {**self.environment, "PARAKEET_CACHE_DIR": folder, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-W", "ignore", path]
        try:
            result = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            log.warning("a measured process has taken more than %s seconds", TIMEOUT)
            return {}
        if result.returncode != 0:
            log.warning("a measured process failed: %s", result.stderr.strip()[-500:])
            return {}
        found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
        return found
