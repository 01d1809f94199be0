"""Results as a table to be read, as JSON for programs, and as the section of the README between its markers.

All ratios are *times of the other over ours*: 3.0 in the numba column means that numba takes three times as long. The
last lines are geometric means over the programs where both were measured.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from parakeet_py.bench.peers import OURS, PEERS
from parakeet_py.bench.runner import Measurement, Row, Settings

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
BUSY = 0.5  # a load from which on figures are doubtful
PACKAGES = ("parakeet-py", "numpy", "llvmlite", "numba", "jax", "scipy")


def seconds(value: float | None) -> str:
    """A duration in the unit that gives it one to three digits before the point."""
    if value is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.0f} ns"


def ratio_text(value: float) -> str:
    """A ratio as text: two digits below ten."""
    return f"{value:.2f}×" if value < 9.995 else f"{value:.0f}×"


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean, or None of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def geometric_means(rows: Sequence[Row], peers: Iterable[str]) -> dict[str, tuple[float, int]]:
    """For each peer: the geometric mean of its ratios, and over how many programs."""
    means = {}
    for peer in peers:
        ratios = [ratio for row in rows if (ratio := row.ratio(peer)) is not None]
        mean = geometric_mean(ratios)
        if mean is not None:
            means[peer] = (mean, len(ratios))
    return means


def median_first_call(rows: Sequence[Row], peer: str) -> float | None:
    """The median over programs of the first call of `peer`, in seconds."""
    firsts = [m.first for row in rows if (m := row.measurements.get(peer)) and m.first is not None]
    return statistics.median(firsts) if firsts else None


def others(settings: Settings, rows: Sequence[Row]) -> list[str]:
    """The peers worth a column: all that are on this machine, in the order of `PEERS`."""
    present = [
        peer
        for peer in PEERS
        if peer != OURS
        and peer in settings.peers
        and any(row.measurements[peer].status != "unavailable" for row in rows)
    ]
    return present


def table(rows: Sequence[Row], settings: Settings) -> Table:
    """The results as a rich table."""
    peers = others(settings, rows)
    where = f"{settings.threads} threads" if settings.devices == "cpu" else settings.devices
    result = Table(title=f"size {settings.size}, {where}; (n×): times as long as parakeet_py")
    result.add_column("program", no_wrap=True)
    result.add_column("first call", justify="right")
    result.add_column("parakeet_py", justify="right", style="bold")
    for peer in peers:
        result.add_column(PEERS[peer], justify="right")
    for row in rows:
        ours = row.measurements.get(OURS)
        first = seconds(ours.first) if ours else ""
        result.add_row(row.program, first, _ours(ours), *(_cell(row, peer) for peer in peers))
    means = geometric_means(rows, peers)
    if means:
        result.add_section()
        cells = [f"{ratio_text(means[p][0])} ({means[p][1]})" if p in means else "" for p in peers]
        result.add_row("geometric mean", seconds(median_first_call(rows, OURS)), "", *cells, style="bold")
    return result


def busy(settings: Settings) -> list[str]:
    """A line that says so if the machine had other things to do."""
    if settings.load is None or settings.load < BUSY:
        return []
    return [f"{settings.load:.1f} other processes were busy when this was measured: the figures are not to be trusted"]


def notes(rows: Sequence[Row], settings: Settings) -> list[str]:
    """One line for everything in the table that needs a reason, without repeating itself."""
    lines: dict[str, None] = dict.fromkeys(busy(settings))
    for row in rows:
        for peer, m in row.measurements.items():
            if m.status == "unavailable":
                lines[f"{PEERS[peer]}: {m.reason}"] = None
            elif m.status in ("WRONG", "error") or (peer == OURS and m.status != "ok"):
                lines[f"{row.program}, {PEERS[peer]}: {m.status}: {m.reason}"] = None
            if peer == OURS and m.note:
                lines[f"* {row.program}: {m.note}"] = None
    if any(m.variant == "loops" for row in rows for m in row.measurements.values()):
        lines["°: hand-written prange loops instead of the NumPy source"] = None
    return list(lines)


def _ours(m: Measurement | None) -> Text:
    if m is None:
        return Text("")
    if m.median is None:
        return Text(m.status, style="bold red")
    return Text(seconds(m.median) + (" *" if m.note else ""))


def _cell(row: Row, peer: str) -> Text:
    m = row.measurements[peer]
    if m.median is None:
        return Text("–" if m.status == "absent" else m.status, style="dim")
    mark = "°" if m.variant == "loops" else ""
    ratio = row.ratio(peer)
    if ratio is None:
        return Text(seconds(m.median) + mark)
    style = "green" if ratio >= 1.0 else "yellow" if ratio >= 0.8 else "red"
    return Text.assemble(f"{seconds(m.median)}{mark} ", (f"({ratio_text(ratio)})", style))


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, system, versions."""
    return {
        "processor": processor(),
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := package_version(name)) is not None},
    }


def package_version(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's name, as the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def as_data(rows: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything measured, as plain data; times in seconds."""
    peers = others(settings, rows)
    return {
        "machine": machine(),
        "size": settings.size,
        "threads": settings.threads,
        "devices": settings.devices,
        "load_before": settings.load,
        "geometric_means": {
            peer: {"ratio": mean, "programs": count} for peer, (mean, count) in geometric_means(rows, peers).items()
        },
        "median_first_call": median_first_call(rows, OURS),
        "programs": [
            {
                "name": row.program,
                "summary": row.summary,
                "dimensions": list(row.dimensions),
                "implementations": {peer: _measurement_data(row, peer, m) for peer, m in row.measurements.items()},
            }
            for row in rows
        ],
    }


def _measurement_data(row: Row, peer: str, m: Measurement) -> dict[str, Any]:
    data: dict[str, Any] = {"status": m.status}
    for name in ("reason", "variant", "note"):
        if getattr(m, name):
            data[name] = getattr(m, name)
    if m.first is not None:
        data["first_call"] = m.first
    if m.samples:
        data |= {"median": m.median, "min": m.minimum, "samples": len(m.samples), "ratio": row.ratio(peer)}
    return data


def markdown(rows: Sequence[Row], settings: Settings) -> str:
    """The results as a Markdown table with the machine's name above it."""
    peers = others(settings, rows)
    facts = machine()
    packages = ", ".join(f"{name} {found}" for name, found in facts["packages"].items() if name != "parakeet-py")
    lines = [
        f"{facts['processor']}, {settings.threads} threads, size {settings.size};",
        f"Python {facts['python']}, {packages}.",
        "In parentheses: how many times as long as parakeet_py.",
        "",
        "| program | first call | parakeet_py | " + " | ".join(PEERS[p] for p in peers) + " |",
        "|---|--:|--:|" + "--:|" * len(peers),
    ]
    for row in rows:
        ours = row.measurements.get(OURS)
        first = seconds(ours.first) if ours else ""
        cells = [f"`{row.program}`", first, f"**{_ours(ours).plain}**", *(_cell(row, p).plain for p in peers)]
        lines.append("| " + " | ".join(cells) + " |")
    means = geometric_means(rows, peers)
    cells = [f"**{ratio_text(means[p][0])}** over {means[p][1]}" if p in means else "" for p in peers]
    lines.append("| " + " | ".join(["geometric mean", seconds(median_first_call(rows, OURS)), "", *cells]) + " |")
    remarks = notes(rows, settings)
    return "\n".join([*lines, "", *(f"- {remark}" for remark in remarks)]).rstrip() + "\n"


def update_readme(path: Path, rows: Sequence[Row], settings: Settings) -> None:
    """Replace what stands between the markers in `path` by the results.

    Raises
    ------
    ValueError
        The markers are not there.
    """
    replace_between(path, BEGIN, END, markdown(rows, settings))


def replace_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two markers in a file; raises `ValueError` if they are not there."""
    whole = path.read_text(encoding="utf-8")
    before, found, rest = whole.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{path} has no {begin} and {end}")
    path.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")
