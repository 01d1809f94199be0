"""One program on one system, beside NumPy: what a child process of `runner` does.

    python -m parakeet_py.bench.npbench.child CHECKOUT PROGRAM PRESET VARIANT SECONDS CLOCK RESULT

The arguments are made once, and each call gets copies of their arrays, which are not part of its time. NumPy's results,
and the arguments that it changes, are what the system's have to equal within NPBench's tolerances; ours must have their
types and dtypes, too. Then NumPy and the system take turns for about SECONDS: a turn is a pause until thread pools have
stopped spinning, a call that is not measured unless calls are long, and measured ones. Where the quarters of a system's
times are further apart than 10 % of the median, further rounds are run, up to three times as many.

CLOCK is "wall", or "cpu": the processors' time of all threads of the process, which other processes change little. With
it, and one thread for each system, programs can be compared on a busy machine.

What has been found is written to the file RESULT as JSON (`Finding`).
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_py.bench.npbench import systems
from parakeet_py.bench.npbench.checkout import Program, programs
from parakeet_py.bench.runner import LONG_CALL, SHORT_CALL, settle

SPREAD = 0.1
AGAIN = 3
LEAST = 5  # calls measured of each, whatever they take


@dataclass(slots=True)
class Finding:
    """What one system makes of one program: seconds of its first call, and of later ones beside NumPy's."""

    status: str
    reason: str = ""
    note: str = ""
    first: float | None = None
    numpy: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


def arguments(program: Program, preset: str) -> dict[str, Any]:
    """The arguments of a program by name, and the parameters of the preset."""
    values = dict(program.parameters[preset])
    if program.makes is not None:
        function, names, results = program.makes
        made = getattr(importlib.import_module(program.module_name("")), function)(*(values[n] for n in names))
        values |= dict(zip(results, made if len(results) > 1 else (made,), strict=True))
    return values


def fresh(program: Program, values: Mapping[str, Any], form: systems.Form) -> dict[str, Any]:
    """Arguments for one call: copies of the arrays, in the form that the system takes."""
    copies = {name: form.convert(np.copy(values[name])) for name in program.arrays}
    return {**values, **copies}


def outputs(program: Program, form: systems.Form, values: Mapping[str, Any], result: Any) -> list[Any]:
    """What a call has returned, item by item, and the arguments that it has changed: all arrays, where NPBench names
    none and nothing is returned."""
    returned = list(result) if isinstance(result, tuple | list) else [] if result is None else [result]
    changed = program.results or (() if returned else program.arrays)
    return returned + ([values[name] for name in changed] if form.changes_arguments else [])


def difference(program: Program, expected: Sequence[Any], found: Sequence[Any], exact: bool) -> str | None:
    """The first difference beyond NPBench's tolerance, or None; `exact`: types and dtypes count.

    A system that changes no arguments returns its results: it may return less than there is, but not nothing.
    """
    if (len(found) != len(expected)) if exact else not found:
        return f"{len(found)} results, not {len(expected)}"
    for place, (one, other) in enumerate(zip(expected, found, strict=False)):
        if exact and type(one) is not type(other):
            return f"result {place} is of {type(other).__name__}, not of {type(one).__name__}"
        reference, value = np.asarray(one), np.asarray(other)
        if reference.shape != value.shape and (exact or reference.size != value.size):
            return f"result {place} has the shape {value.shape}, not {reference.shape}"
        if exact and reference.dtype != value.dtype:
            return f"result {place} is of {value.dtype}, not of {reference.dtype}"
        value = value.reshape(reference.shape)
        if np.allclose(reference, value, program.rtol, program.atol, equal_nan=True):
            continue
        error = float(np.linalg.norm((reference - value).ravel()) / np.linalg.norm(reference.ravel()))
        if not error < program.norm_error:
            return f"result {place} differs: the norm of its error is {error:.2g} of its own"
    return None


def incomplete(expected: Sequence[Any], found: Sequence[Any]) -> str:
    """What a note says of results that a system does not give, and may not have computed."""
    return f"gives {len(found)} of {len(expected)} results" if len(found) < len(expected) else ""


def spread(times: Sequence[float]) -> float:
    """How far the quarters of some times are apart, relative to the median."""
    if len(times) < 2:
        return 0.0
    first, middle, last = statistics.quantiles(times, n=4)
    return (last - first) / middle


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def examine(program: Program, preset: str, variant: str, seconds: float, clock: str = "wall") -> Finding:
    """Compile, compare with NumPy, measure."""
    now = CLOCKS[clock]
    values = arguments(program, preset)
    numpy = systems.plain(program)
    mine = fresh(program, values, numpy)
    expected = outputs(program, numpy, mine, numpy.call(mine))
    ours = systems.VARIANTS[variant] == systems.OURS
    systems.load(variant)
    started = now()
    form = systems.form(program, variant, preset)
    made = now() - started
    finding = Finding("ok")
    for _ in range(2):  # a second call finds what the first has left behind
        mine = fresh(program, values, form)
        started = now()
        result = form.call(mine)
        finding.first = finding.first or made + now() - started
        found = outputs(program, form, mine, result)
        wrong = difference(program, expected, found, ours)
        if wrong is not None:
            finding.status, finding.reason = "WRONG", wrong
            return finding
    finding.note = form.note() or incomplete(expected, found)
    for _ in range(AGAIN):
        _rounds(program, values, [(numpy, finding.numpy), (form, finding.times)], seconds, now)
        if max(spread(finding.numpy), spread(finding.times)) <= SPREAD:
            break
    return finding


def _rounds(
    program: Program,
    values: Mapping[str, Any],
    pair: Sequence[tuple[systems.Form, list[float]]],
    seconds: float,
    now: Callable[[], float],
) -> None:
    deadline = time.perf_counter() + seconds
    gc.collect()
    gc.disable()
    while True:
        for form, times in pair:
            settle()
            warming = _sample(program, values, form, now)
            if warming >= LONG_CALL:
                times.append(warming)
                continue
            times.extend(_sample(program, values, form, now) for _ in range(3 if warming < SHORT_CALL else 1))
        if time.perf_counter() > deadline and min(len(times) for _, times in pair) >= LEAST:
            break
    gc.enable()


def _sample(program: Program, values: Mapping[str, Any], form: systems.Form, now: Callable[[], float]) -> float:
    mine = fresh(program, values, form)
    started = now()
    form.call(mine)
    return now() - started


def main(root: str, name: str, preset: str, variant: str, seconds: str, clock: str, result: str) -> None:
    """Measure, and write what was found to the file `result`."""
    sys.path.insert(0, root)
    (program,) = programs(Path(root), [name])
    warnings.simplefilter("ignore")
    try:
        with np.errstate(all="ignore"):
            finding = examine(program, preset, variant, float(seconds), clock)
    except Exception as error:
        finding = Finding("error", " ".join(f"{type(error).__name__}: {error}".split())[:300])
    Path(result).write_text(json.dumps(asdict(finding)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
