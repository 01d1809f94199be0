"""Programs at forced splits: how time goes with the share of the devices, and where the choice falls.

For each share the program runs on the devices asked for with that `split`, then once more with the split left to the
library. What moved is what the last call says of itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from parakeet_py import accelerate, options
from parakeet_py.bench.compare import difference
from parakeet_py.bench.program import Program, Size
from parakeet_py.bench.report import seconds
from parakeet_py.hybrid.residency.blocks import HOST

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """One program at one split.

    Attributes
    ----------
    split : the share of the devices; None where it was left to the library
    time : median seconds of a call, after the first
    moved : bytes that a call moves between memories
    shares : how the widest region was cut
    share : that of the devices other than the CPU in it
    wrong : how the result differs from NumPy's, if it does
    """

    split: float | None
    time: float
    moved: int
    shares: str
    share: float
    wrong: str | None


def parse_splits(text: str) -> tuple[float, ...]:
    """The shares that a list of percents names.

    Raises
    ------
    ValueError
        Something in the list is no number from 0 to 100.
    """
    found = tuple(float(part) / 100 for part in text.split(","))
    if not all(0 <= share <= 1 for share in found):
        raise ValueError(f"--split takes percents from 0 to 100, not {text}")
    return found


def curve(
    program: Program, devices: str, splits: Sequence[float], size: Size, tell: Callable[[str], None] = lambda what: None
) -> list[Point]:
    """A program at each split, and with the split that is chosen."""
    arguments = program.arguments(size)
    expected_arguments = program.fresh(arguments)
    with np.errstate(all="ignore"):
        expected = program.baseline(*expected_arguments)
    wanted = (expected, *(expected_arguments[position] for position in program.mutates))
    points = []
    for split in (*splits, None):
        tell("chosen" if split is None else f"{100 * split:g} %")
        function: Any = accelerate(when="now", tiers=False)(program.function)
        times = []
        wrong = None
        with options(devices=devices, split=split), np.errstate(all="ignore"):
            for _ in range(1 + ROUNDS):
                mine = program.fresh(arguments)
                start = time.perf_counter()
                result = function(*mine)
                times.append(time.perf_counter() - start)
                got = (result, *(mine[position] for position in program.mutates))
                wrong = wrong or difference(wanted, got, program.tolerance, exact_types=True)
            report: Any = function.explain(*program.fresh(arguments)).device
        run = getattr(report, "last_run", None) or getattr(report, "foreseen", None)  # the CPU's alone is no team's
        moved = 0 if run is None else sum(run.moved.values())
        points.append(Point(split, statistics.median(times[1:]), moved, *_shares(run), wrong))
    return points


def _shares(run: Any) -> tuple[str, float]:
    """The percents that each member has of the region that was cut into the longest ranges, and the devices' share."""
    cut = [region for region in run.regions if region.ranges] if run is not None else []
    if not cut:
        return "not cut", 0.0
    region = max(cut, key=lambda one: one.ranges[-1][2])
    counts = [0] * len(run.members)
    for (who, lo, hi), (first, last) in zip(region.ranges, region.across or [(0, 1)] * len(region.ranges), strict=True):
        counts[who] += (hi - lo) * (last - first)
    whole = sum(counts)
    found = (f"{run.members[who]} {100 * count / whole:.0f} %" for who, count in enumerate(counts) if count)
    return ", ".join(found), 1 - counts[HOST] / whole


def table(name: str, devices: str, points: Sequence[Point]) -> Table:
    """The points of one program as a rich table; the fastest is bold."""
    result = Table(title=f"{name} on {devices}")
    for column in ("split", "time", "bytes moved", "shares"):
        result.add_column(column, justify="left" if column == "shares" else "right")
    best = min(point.time for point in points)
    for point in points:
        label = "chosen" if point.split is None else f"{100 * point.split:g} %"
        note = f"  WRONG: {point.wrong}" if point.wrong else ""
        style = "bold" if point.time == best else None
        result.add_row(label, seconds(point.time), f"{point.moved}", point.shares + note, style=style)
    return result
