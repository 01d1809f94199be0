"""The speed-up over NumPy of every implementation of every program, as a PNG (matplotlib) or as one HTML file.

The HTML file stands alone: inline SVG and CSS, no script and nothing loaded from anywhere, light and dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path

from parakeet_py.bench.peers import OURS, PEERS
from parakeet_py.bench.report import geometric_mean, machine, ratio_text
from parakeet_py.bench.runner import Row, Settings

COLOURS = {OURS: "#2f9e44", "numba": "#74c0fc", "numba-parallel": "#1c7ed6", "jax": "#9775fa", "c": "#868e96"}
_BAR, _LABEL, _WIDTH = 11, 190, 900


def speedups(rows: Sequence[Row], settings: Settings) -> list[tuple[str, dict[str, float]]]:
    """For each program: how many times faster than NumPy each implementation is; a last entry holds the means."""
    result: list[tuple[str, dict[str, float]]] = []
    for row in rows:
        numpy = row.measurements.get("numpy")
        if numpy is None or numpy.median is None:
            continue
        values = {
            peer: numpy.median / m.median
            for peer in COLOURS
            if peer in settings.peers and (m := row.measurements[peer]).median is not None
        }
        result.append((row.program, values))
    means = {
        peer: mean
        for peer in COLOURS
        if (mean := geometric_mean(values[peer] for _, values in result if peer in values)) is not None
    }
    return [*result, ("geometric mean", means)] if result else []


def write_plot(path: Path, rows: Sequence[Row], settings: Settings) -> None:
    """Write the plot in the format that the suffix of `path` names.

    Raises
    ------
    ValueError
        The suffix is neither .png nor .html, or there is nothing to draw (NumPy was not measured).
    """
    bars = speedups(rows, settings)
    if not bars:
        raise ValueError("nothing to plot: NumPy was not measured")
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix.lower():
        case ".html":
            path.write_text(_html(bars, settings), encoding="utf-8")
        case ".png":
            _png(path, bars, settings)
        case other:
            raise ValueError(f"a plot is .png or .html, not {other or 'without a suffix'}")


def _title(settings: Settings) -> str:
    return f"Speed-up over NumPy, size {settings.size}, {settings.threads} threads"


def _png(path: Path, bars: list[tuple[str, dict[str, float]]], settings: Settings) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    peers = [peer for peer in COLOURS if any(peer in values for _, values in bars)]
    height = 0.8 / len(peers)
    figure = Figure(figsize=(9, 0.9 + 0.34 * len(bars) * max(1.0, len(peers) / 3)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for k, peer in enumerate(peers):
        points = [(i + (k - (len(peers) - 1) / 2) * height, v[peer]) for i, (_, v) in enumerate(bars) if peer in v]
        axes.barh([y for y, _ in points], [v - 1 for _, v in points], height, 1, color=COLOURS[peer], label=PEERS[peer])
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(_title(settings))
    axes.set_xlabel("times faster than NumPy (log scale); right of the line is faster")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def _html(bars: list[tuple[str, dict[str, float]]], settings: Settings) -> str:
    values = [v for _, by_peer in bars for v in by_peer.values()]
    low, high = math.log(min(1.0, *values) * 0.9), math.log(max(1.0, *values) * 1.1)
    scale = (_WIDTH - _LABEL - 70) / (high - low)

    def x(value: float) -> float:
        return _LABEL + (math.log(value) - low) * scale

    parts: list[str] = []
    y = 24.0
    for name, by_peer in bars:
        middle = y + _BAR * len(by_peer) / 2 + 4
        parts.append(f'<text class="name" x="{_LABEL - 8}" y="{middle:.0f}">{html.escape(name)}</text>')
        for peer, value in by_peer.items():
            left, right = sorted((x(1.0), x(value)))
            label = f"{PEERS[peer]}: {ratio_text(value)}"
            parts.append(
                f'<rect x="{left:.1f}" y="{y:.0f}" width="{max(right - left, 1):.1f}" height="{_BAR - 1}" '
                f'fill="{COLOURS[peer]}"><title>{html.escape(label)}</title></rect>'
                f'<text class="value" x="{right + 4:.1f}" y="{y + _BAR - 2:.0f}">{ratio_text(value)}</text>'
            )
            y += _BAR
        y += 9
    axis = f'<line x1="{x(1.0):.1f}" x2="{x(1.0):.1f}" y1="12" y2="{y:.0f}" stroke="currentColor"/>'
    legend = "".join(
        f'<span><i style="background:{COLOURS[peer]}"></i>{PEERS[peer]}</span>'
        for peer in COLOURS
        if any(peer in by_peer for _, by_peer in bars)
    )
    facts = machine()
    packages = ", ".join(f"{name} {found}" for name, found in facts["packages"].items())
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{html.escape(_title(settings))}</title>
<style>
:root {{ color-scheme: light dark; font: 14px system-ui, sans-serif }}
body {{ max-width: {_WIDTH}px; margin: 2em auto; padding: 0 1em }}
svg {{ width: 100%; height: auto }}
text {{ fill: currentColor; font-size: 12px }} .name {{ text-anchor: end }} .value {{ font-size: 9px; opacity: .7 }}
span {{ margin-right: 1.2em }} i {{ display: inline-block; width: 1em; height: 1em; margin-right: .4em }}
</style>
<h1>{html.escape(_title(settings))}</h1>
<p>{html.escape(facts["processor"])}; Python {facts["python"]}, {html.escape(packages)}.
Log scale; the line is NumPy.</p>
<p>{legend}</p>
<svg viewBox="0 0 {_WIDTH} {y + 10:.0f}" role="img">{axis}{"".join(parts)}</svg>
</html>
"""
