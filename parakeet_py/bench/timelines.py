"""Timelines of programs: what one call of each does on its devices, after calls that have let rates be measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_py import accelerate, options
from parakeet_py.bench.program import Program, Size
from parakeet_py.hybrid.devices.timeline import Timeline

CALLS_BEFORE = 4


def record(program: Program, devices: str, size: Size, split: float | None = None) -> Timeline | None:
    """The timeline of a call on these devices, at a forced split if one is given; None if it does not run there."""
    arguments = program.arguments(size)
    function: Any = accelerate(when="now", tiers=False)(program.function)
    with options(devices=devices, split=split), np.errstate(all="ignore"):
        for _ in range(CALLS_BEFORE):
            function(*program.fresh(arguments))
        with options(timeline=True):
            function(*program.fresh(arguments))
        found: Timeline | None = function.explain(*program.fresh(arguments)).timeline
    return found


def write(
    path: Path, programs: Sequence[Program], devices: str, size: Size, split: float | None = None
) -> list[tuple[Path, Timeline]]:
    """Record programs and save what is found; of several, each gets a file with its name at the end."""
    written = []
    for program in programs:
        found = record(program, devices, size, split)
        if found is not None:
            target = path if len(programs) == 1 else path.with_stem(f"{path.stem}-{program.name}")
            found.save(target)
            written.append((target, found))
    return written
