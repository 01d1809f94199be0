"""A whole run: the ceilings, every operator, every program, within a budget of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from parakeet_py.bench.gpu import ceilings, peers
from parakeet_py.bench.gpu.measure import Row, Timed, measure
from parakeet_py.bench.gpu.operators import FLOPS, OPERATORS
from parakeet_py.bench.gpu.report import Run
from parakeet_py.bench.peers import quiet
from parakeet_py.bench.program import Program, Size
from parakeet_py.bench.programs import PROGRAMS
from parakeet_py.hybrid.device import Machine

COPIED: dict[Size, int] = {"XS": 1 << 16, "S": 1 << 24, "M": 1 << 28, "L": 1 << 30}
WORK: dict[Size, tuple[int, int]] = {"XS": (1, 2), "S": (256, 50), "M": (4_096, 500), "L": (8_192, 1_000)}
TASKS = len(OPERATORS) + len(PROGRAMS)


class UnknownProgram(ValueError):
    """No operator or program has this name."""


def run(
    machine: Machine,
    size: Size,
    budget: float,
    names: Sequence[str] = (),
    progress: Callable[[str], None] = lambda name: None,
) -> Run:
    """Measure operators and programs; all of them if none is named.

    Raises
    ------
    UnknownProgram
    """
    started = time.perf_counter()
    known = {operator.program.name for operator in OPERATORS} | set(PROGRAMS)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownProgram(f"no operator or program {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    tasks: list[tuple[Program, Callable[..., float] | None, Any, bool]] = [
        (operator.program, operator.flops, operator.scalar, True)
        for operator in OPERATORS
        if not names or operator.program.name in names
    ]
    tasks += [
        (program, FLOPS.get(name), None, False) for name, program in PROGRAMS.items() if not names or name in names
    ]
    real = not machine.name.startswith("emulated")
    timed = Timed(machine)
    rows: tuple[list[Row], list[Row]] = [], []
    with quiet():
        libraries, missing = peers.installed() if real else ([], {})
        rates = ceilings.measure(machine, COPIED[size], *WORK[size])
        for number, (program, flops, scalar, is_operator) in enumerate(tasks):
            progress(program.name)
            left = budget - (time.perf_counter() - started)
            share = max(0.3, left / (len(tasks) - number))
            row = measure(program, flops, machine, timed, size, share, libraries, scalar)
            rows[0 if is_operator else 1].append(row)
    spent = time.perf_counter() - started
    return Run(machine.name, machine.architecture, real, size, spent, rates, missing, *rows)
