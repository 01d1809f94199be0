"""A whole run: the ceilings, every operator, every program, within a budget of seconds.

`steps` measures them one after the other and reports each figure as soon as it is there, so that the listening process
has what was found until then, should the process end (`supervise`); `run` does it in this process.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.bench.gpu import ceilings, peers
from parakeet_py.bench.gpu.measure import Row, Timed, measure
from parakeet_py.bench.gpu.operators import FLOPS, OPERATORS
from parakeet_py.bench.gpu.report import Run
from parakeet_py.bench.peers import quiet
from parakeet_py.bench.program import Program, Size
from parakeet_py.bench.programs import PROGRAMS
from parakeet_py.hybrid.devices.device import Machine

COPIED: dict[Size, int] = {"XS": 1 << 16, "S": 1 << 24, "M": 1 << 28, "L": 1 << 30}
WORK: dict[Size, tuple[int, int]] = {"XS": (1, 2), "S": (256, 50), "M": (4_096, 500), "L": (8_192, 1_000)}


class UnknownProgram(ValueError):
    """No operator or program has this name."""


@record
class Task:
    """What is measured: an operator or a program."""

    program: Program
    flops: Any
    scalar: Any
    operator: bool


@record
class Opened:
    """The first step: what the device is, what it can do, the libraries beside us and those that are not there."""

    device: str
    architecture: str
    real: bool
    ceilings: ceilings.Ceilings
    libraries: tuple[str, ...]
    missing: dict[str, str]


@record
class Begun:
    """A task is being measured."""

    name: str


@record
class Measured:
    """What is known of a task by now; `whole` once nothing is to come. `broken`: no other can be measured here."""

    row: Row
    whole: bool
    broken: bool = False


Step = Opened | Begun | Measured


def tasks(names: Sequence[str] = ()) -> dict[str, Task]:
    """Operators and programs by name; all of them if none is asked for.

    Raises
    ------
    UnknownProgram
    """
    known = {one.program.name: Task(one.program, one.flops, one.scalar, True) for one in OPERATORS}
    known |= {name: Task(program, FLOPS.get(name), None, False) for name, program in PROGRAMS.items()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownProgram(f"no operator or program {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return {name: task for name, task in known.items() if not names or name in names}


def steps(
    machine: Machine, size: Size, budget: float, names: Sequence[str] = (), without: Collection[str] = ()
) -> Iterator[Step]:
    """Measure operators and programs.

    Parameters
    ----------
    budget : seconds for all of them, roughly
    without : libraries that are left out
    """
    started = time.perf_counter()
    chosen = tasks(names)
    real = not machine.name.startswith("emulated")
    timed = Timed(machine)
    with quiet():
        libraries, missing = peers.installed() if real else ([], {})
        libraries = [one for one in libraries if one.name not in without]
        rates = ceilings.measure(machine, COPIED[size], *WORK[size])
        beside = tuple(one.name for one in libraries)
        yield Opened(machine.name, machine.architecture, real, rates, beside, missing)
        for number, (name, task) in enumerate(chosen.items()):
            yield Begun(name)
            share = max(0.3, (budget - (time.perf_counter() - started)) / (len(chosen) - number))
            row = None
            for row in measure(task.program, task.flops, machine, timed, size, share, libraries, task.scalar):
                yield Measured(row, False)
            assert row is not None
            yield Measured(row, True, getattr(machine, "broken", None) is not None)


def run(machine: Machine, size: Size, budget: float, names: Sequence[str] = ()) -> Run:
    """Measure operators and programs in this process.

    Raises
    ------
    UnknownProgram
    """
    started = time.perf_counter()
    opened, rows = None, {}
    for step in steps(machine, size, budget, names):
        if isinstance(step, Opened):
            opened = step
        elif isinstance(step, Measured):
            rows[step.row.name] = step.row
    assert opened is not None
    return gathered(opened, size, time.perf_counter() - started, rows)


def gathered(opened: Opened, size: Size, seconds: float, rows: dict[str, Row]) -> Run:
    """The report of what was found."""
    parts: tuple[list[Row], list[Row]] = [], []
    for name, task in tasks().items():
        if name in rows:
            parts[0 if task.operator else 1].append(rows[name])
    return Run(opened.device, opened.architecture, opened.real, size, seconds, opened.ceilings, opened.missing, *parts)
