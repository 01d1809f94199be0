"""Calls on 1 to 10,000 elements, which is what most user code does, beside NumPy and numba.

Every idiom (`idioms`) is a function of its own, called as compiled code (`when="now"`, optimised at once). Its plain
and its compiled forms are timed in turns, in one process; a figure is the best of many batches, since whatever else the
machine does only adds to a time. Results are compared first.
"""

from __future__ import annotations

import linecache
import math
import re
import statistics
import timeit
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from parakeet_py.bench.compare import difference
from parakeet_py.bench.idioms import IDIOMS
from parakeet_py.bench.program import Tolerance

SIZES = (1, 10, 100, 1_000, 10_000)
TURNS = 15
BATCH = 2e-4  # seconds of calls that are timed together
NAMES = "xyfcibmuvpqk"
TOLERANCE = Tolerance(rtol=1e-9, atol=1e-12)
BEGIN, END = "<!-- small:begin -->", "<!-- small:end -->"  # around the table in docs/performance.md


@dataclass(frozen=True)
class Cell:
    """An idiom at one size: seconds of a call, in Python with NumPy and by name of each system; None: not to be had."""

    group: str
    idiom: str
    size: int
    plain: float
    times: dict[str, float | None]

    def ratio(self, system: str) -> float | None:
        """How many times as long Python with NumPy takes."""
        found = self.times.get(system)
        return None if found is None else self.plain / found


def arguments(size: int) -> dict[str, Any]:
    """What the names of an idiom stand for, at a size."""
    draw = np.random.default_rng(size)
    side = max(1, math.isqrt(size))
    return {
        "x": np.sort(draw.random(size)),
        "y": np.sort(draw.random(size)),
        "f": draw.random(size, dtype=np.float32),
        "c": draw.random(size) + 1j * draw.random(size),
        "i": draw.integers(0, size, size),
        "b": draw.random(size) > 0.5,
        "m": draw.random((side, side)),
        "u": draw.random(side),
        "v": draw.random(side),
        "p": draw.random(3),
        "q": draw.random(3),
        "k": 0.7,
    }


def function_of(idiom: str) -> tuple[FunctionType, list[str]]:
    """An idiom as a function with a source, and the names of its parameters."""
    names = [name for name in NAMES if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"(])", idiom)]
    body = idiom if "return" in idiom else f"return {idiom}"
    lines = [f"def idiom({', '.join(names)}):\n", *(f"    {line}\n" for line in body.split("\n"))]
    file = f"<idiom {idiom}>"
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    namespace: dict[str, Any] = {"np": np, "math": math, "__name__": "idiom"}
    exec(compile("".join(lines), file, "exec"), namespace)
    return namespace["idiom"], names


def systems(wanted: Sequence[str]) -> dict[str, Callable[[FunctionType], Callable[..., Any]]]:
    """How each system compiles a function."""
    from parakeet_py import accelerate

    found: dict[str, Callable[[FunctionType], Callable[..., Any]]] = {"parakeet": accelerate(when="now")}
    if "numba" in wanted:
        import numba

        found["numba"] = numba.njit
    return found


def measure(
    wanted: Sequence[str], sizes: Sequence[int] = SIZES, tell: Callable[[str, str], None] = lambda group, idiom: None
) -> Iterator[Cell]:
    """Time every idiom at every size; `tell` is called with the group and the idiom before each."""
    made = systems(wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group, idioms in IDIOMS.items():
            for idiom in idioms:
                tell(group, idiom.split("\n")[0])
                function, names = function_of(idiom)
                forms = {name: compile_(function) for name, compile_ in made.items()}
                for size in sizes:
                    yield _cell(group, idiom, size, function, forms, names)


def _cell(
    group: str,
    idiom: str,
    size: int,
    function: FunctionType,
    forms: dict[str, Callable[..., Any]],
    names: Sequence[str],
) -> Cell:
    def fresh() -> list[Any]:
        values = arguments(size)
        return [values[name] for name in names]

    expected = function(*fresh())
    able = [name for name, form in forms.items() if _is_right(form, fresh, expected, name == "parakeet")]
    arguments_ = fresh()
    timers = [_timer(function, arguments_), *(_timer(forms[name], arguments_) for name in able)]
    counts = [max(1, int(BATCH / max(min(timer.repeat(3, 1)), 1e-7))) for timer in timers]
    best = [math.inf] * len(timers)
    for _ in range(TURNS):
        for place, (timer, count) in enumerate(zip(timers, counts, strict=True)):
            best[place] = min(best[place], timer.timeit(count) / count)
    times: dict[str, float | None] = dict.fromkeys(forms)
    return Cell(group, idiom, size, best[0], times | dict(zip(able, best[1:], strict=True)))


def _timer(function: Callable[..., Any], arguments_: Sequence[Any]) -> timeit.Timer:
    return timeit.Timer(lambda: function(*arguments_))


def _is_right(form: Callable[..., Any], fresh: Callable[[], list[Any]], expected: Any, exact_types: bool) -> bool:
    """Does a system compile the function, and give NumPy's results?"""
    from parakeet_py import options

    lists = isinstance(expected, list)
    expected = tuple(expected) if lists else expected
    for _ in range(3):
        try:
            with options(tiers=False):  # which calls without it take over
                found = form(*fresh())
        except Exception:
            return False
        found = tuple(found) if lists else found
        if difference(expected, found, TOLERANCE, exact_types=exact_types):
            return False
    return True


# ---- the report ----------------------------------------------------------------------------------------------------


def summary(cells: Sequence[Cell], system: str) -> dict[str, dict[int, tuple[float, int, int]]]:
    """By group and size: the geometric mean of the ratios, how many are below 1, and how many there are."""
    found: dict[str, dict[int, tuple[float, int, int]]] = {}
    for group in dict.fromkeys(cell.group for cell in cells):
        for size in dict.fromkeys(cell.size for cell in cells):
            here = [cell.ratio(system) for cell in cells if cell.group == group and cell.size == size]
            ratios = [ratio for ratio in here if ratio is not None]
            if ratios:
                slower = sum(ratio < 1 for ratio in ratios)
                found.setdefault(group, {})[size] = (statistics.geometric_mean(ratios), slower, len(ratios))
    return found


def markdown(cells: Sequence[Cell], system: str = "parakeet") -> str:
    """The summary as a table, and the idioms that are slower than NumPy."""
    sizes = list(dict.fromkeys(cell.size for cell in cells))
    lines = ["| | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---|" + "--:|" * len(sizes)]
    for group, row in summary(cells, system).items():
        shown = [f"{mean:.1f}×" + (f" ({slower} of {count})" if slower else "") for mean, slower, count in row.values()]
        lines.append(f"| {group} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def slower(cells: Sequence[Cell], system: str = "parakeet", below: float = 1.0) -> list[Cell]:
    """The cells in which Python with NumPy is quicker, the worst first."""
    found = [(ratio, place) for place, cell in enumerate(cells) if (ratio := cell.ratio(system)) and ratio < below]
    return [cells[place] for _, place in sorted(found)]
