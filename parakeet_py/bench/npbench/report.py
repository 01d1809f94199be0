"""Results of NPBench's programs as a table, as JSON and as Markdown.

Ratios are *NumPy's time over the system's*, each measured in turns in one process, so they can be compared where times
of different processes could not.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from parakeet_py.bench.npbench.child import spread
from parakeet_py.bench.npbench.runner import Row, Settings
from parakeet_py.bench.report import geometric_mean, machine, seconds

BEGIN, END = "<!-- npbench:begin -->", "<!-- npbench:end -->"
BEHIND = 0.95
HEADER = ("program", "preset", "NumPy", "first call", "parakeet_py", "× NumPy", "best rival ×", "rival", "ours / rival")


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Rows by how they stand to their best rival, the worst first; what has no figure stands above."""
    return sorted(rows, key=lambda row: 0.0 if row.ours is None else row.ours / row.rival[1])


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    finding, (rival, best) = row.findings["numpy"], row.rival
    if row.ours is None:
        return (row.program, row.preset, "", "", finding.status, "", f"{best:.2f}", rival, "")
    numpy, own = statistics.median(finding.numpy), statistics.median(finding.times)
    unsteady = max(spread(finding.numpy), spread(finding.times)) > 0.1
    return (
        row.program,
        row.preset,
        seconds(numpy),
        seconds(finding.first),
        seconds(own) + (" ~" if unsteady else ""),
        f"{row.ours:.2f}",
        f"{best:.2f}",
        rival,
        f"{row.ours / best:.2f}",
    )


def summary(rows: Sequence[Row]) -> list[str]:
    """What all rows come to, a line each."""
    measured = [(row.ours, row.rival[1]) for row in rows if row.ours is not None]
    if not measured:
        return ["nothing was measured"]
    means = [geometric_mean(column) or 0.0 for column in zip(*measured, strict=True)]
    behind = [ours / rival < BEHIND for ours, rival in measured]
    slower = [ours < BEHIND for ours, _ in measured]
    return [
        f"geometric mean over NumPy: {means[0]:.2f}, of the best rival program by program: {means[1]:.2f}",
        f"behind the best rival (below {BEHIND}): {sum(behind)} of {len(measured)}; behind NumPy: {sum(slower)}",
    ]


def notes(rows: Sequence[Row]) -> list[str]:
    """A line for every figure that is not there or needs a word."""
    lines = []
    for row in rows:
        for variant, finding in row.findings.items():
            name = "parakeet_py" if variant == "numpy" else variant
            if finding.status != "ok":
                lines.append(f"{row.program} {row.preset}, {name}: {finding.status}: {finding.reason}")
            elif finding.note:
                lines.append(f"{row.program} {row.preset}, {name}: {finding.note}")
    if any(cells(row)[4].endswith("~") for row in rows):
        lines.append("~: the quarters of the times are more than 10 % apart, after three times as many rounds")
    return lines


def _conditions(settings: Settings) -> str:
    threads = f"{settings.threads} threads" if settings.threads > 1 else "1 thread"
    return f"{threads}, processors' time" if settings.clock == "cpu" else threads


def table(rows: Sequence[Row], settings: Settings) -> Table:
    """The results as a rich table."""
    beside = ", ".join(settings.rivals) or "NumPy alone"
    made = Table(title=f"NPBench, unmodified, {_conditions(settings)}; beside {beside}")
    for place, title in enumerate(HEADER):
        made.add_column(title, justify="left" if place in (0, 1, 7) else "right", no_wrap=place == 0)
    for row in ordered(rows):
        made.add_row(*cells(row))
    return made


def markdown(rows: Sequence[Row], settings: Settings, load: float | None) -> str:
    """The results as a Markdown table with the machine's name above it."""
    facts = machine()
    packages = ", ".join(f"{name} {found}" for name, found in facts["packages"].items() if name != "parakeet-py")
    lines = [
        f"{facts['processor']}, {_conditions(settings)}; Python {facts['python']}, {packages}.",
        *(
            []
            if load is None
            else [f"Other processes kept {load:.1f} of {facts['cpus']} processors busy at the start."]
        ),
        *summary(rows),
        "",
        f"| {' | '.join(HEADER)} |",
        "|---|---|--:|--:|--:|--:|--:|---|--:|",
        *(f"| {' | '.join(cells(row))} |" for row in ordered(rows)),
    ]
    remarks = notes(rows)
    return "\n".join([*lines, "", *(f"- {remark}" for remark in remarks)]).rstrip() + "\n"


def as_data(rows: Sequence[Row], settings: Settings, load: float | None) -> dict[str, Any]:
    """Everything measured, as plain data; times in seconds."""
    return {
        "machine": machine(),
        "settings": asdict(settings),
        "load_before": load,
        "summary": summary(rows),
        "programs": [
            {
                "name": row.program,
                "preset": row.preset,
                "ratio": row.ours,
                "rival": {"name": row.rival[0], "ratio": row.rival[1]},
                "findings": {
                    "parakeet" if variant == "numpy" else variant: {**asdict(finding), "ratio": row.ratio(variant)}
                    for variant, finding in row.findings.items()
                },
            }
            for row in rows
        ],
    }


__all__ = ["BEGIN", "END", "as_data", "markdown", "notes", "summary", "table"]
