"""The figures of a run as Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.bench.files import write_json
from parakeet_py.bench.gpu.ceilings import Ceilings
from parakeet_py.bench.gpu.measure import Row, Times
from parakeet_py.bench.gpu.peers import PEERS


@record
class Run:
    """A whole run.

    Attributes
    ----------
    device, architecture : what it ran on
    real : False for an emulated device, whose times mean nothing
    missing : libraries that were not there, and why
    """

    device: str
    architecture: str
    real: bool
    size: str
    seconds: float
    ceilings: Ceilings
    missing: Mapping[str, str]
    operators: Sequence[Row]
    programs: Sequence[Row]


def bandwidth(row: Row) -> float | None:
    """Bytes per second that the task needs over the time of its kernels."""
    return row.bytes / row.ours.kernels if row.ours.kernels else None


def rate(row: Row) -> float | None:
    """Operations per second."""
    return row.flops / row.ours.kernels if row.ours.kernels and row.flops else None


def data(run: Run) -> dict[str, Any]:
    """A run for JSON, derived figures included."""
    made: dict[str, Any] = _plain(run)
    for name in ("operators", "programs"):
        for entry, row in zip(made[name], getattr(run, name), strict=True):
            peak = run.ceilings.float64 if row.float64 else run.ceilings.float32
            moved, done = bandwidth(row), rate(row)
            entry["bytes_per_second"], entry["of_copy"] = moved, moved and moved / run.ceilings.copy
            entry["flops_per_second"], entry["of_peak"] = done, done and done / peak
    return made


def _plain(value: Any) -> Any:
    if is_dataclass(value) or hasattr(type(value), "__match_args__"):
        names = [field.name for field in fields(value)] if is_dataclass(value) else type(value).__match_args__
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def write(folder: Path, run: Run) -> tuple[Path, Path]:
    """Write the JSON and the Markdown file; gives their paths."""
    stem = f"gpu-{run.size}" if run.real else f"gpu-{run.size}-rehearsal"
    paths = folder / f"{stem}.json", folder / f"{stem}.md"
    write_json(paths[0], data(run))
    paths[1].write_text(markdown(run), encoding="utf-8")
    return paths


def markdown(run: Run) -> str:
    """A run as a page."""
    ceilings = run.ceilings
    lines = [
        f"# Benchmark on {run.device} ({run.architecture}), size {run.size}",
        "",
        *([] if run.real else ["An emulated device: these times say nothing about any GPU.", ""]),
        f"Measured here: a copy moves {ceilings.copy / 1e9:.4g} GB/s; multiply-adds in registers run at "
        f"{ceilings.float32 / 1e9:.4g} GFLOP/s in float32, {ceilings.float64 / 1e9:.4g} in float64.",
        "",
        "*kernels*: the kernels alone; *resident*: a call whose arrays live on the device; *with transfers*: one with "
        "NumPy arrays; times in ms. Bytes are the fewest that the task needs, over the time of the kernels. "
        "`fma`: kernels that may contract. A library's column is its time over ours, arrays on the device.",
    ]
    names = [name for name in PEERS if any(name in row.peers for row in (*run.operators, *run.programs))]
    for title, rows in (("Operators", run.operators), ("Programs", run.programs)):
        if rows:
            lines += ["", f"## {title}", "", *_table(rows, names, ceilings)]
    reasons = [
        (row, name, times) for row in (*run.operators, *run.programs) for name, times in _all(row) if times.reason
    ]
    if reasons or run.missing:
        lines += ["", "## Notes", ""]
        lines += [f"* {name}: {reason}" for name, reason in run.missing.items()]
        lines += [f"* {row.name}, {name}: {times.status}: {times.reason}" for row, name, times in reasons]
    return "\n".join(lines) + "\n"


def _all(row: Row) -> list[tuple[str, Times]]:
    return [("parakeet_py", row.ours), *row.peers.items()]


def _table(rows: Sequence[Row], names: Sequence[str], ceilings: Ceilings) -> list[str]:
    head = ["", "launches", "kernels", "fma", "resident", "with transfers", "GB/s", "of copy", "GFLOP/s", "of peak"]
    head += [PEERS[name] for name in names]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for row in rows:
        ours = row.ours
        moved, done = bandwidth(row), rate(row)
        peak = ceilings.float64 if row.float64 else ceilings.float32
        cells = [
            row.name,
            str(ours.launches) if ours.status == "ok" else ours.status,
            *(_milliseconds(t) for t in (ours.kernels, row.contracted.kernels, ours.resident, ours.transfers)),
            "" if moved is None else f"{moved / 1e9:.4g}",
            "" if moved is None else f"{moved / ceilings.copy:.0%}",
            "" if done is None else f"{done / 1e9:.4g}",
            "" if done is None else f"{done / peak:.0%}",
        ]
        for name in names:
            times = row.peers.get(name)
            if times is None or times.resident is None or not ours.resident:
                cells.append("" if times is None else times.status)
            else:
                cells.append(f"{times.resident / ours.resident:.2f} ×")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.4g}"
