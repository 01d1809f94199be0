"""The speed-up over NumPy of every implementation of every program, as a PNG (matplotlib) or as one HTML file.

The HTML file stands alone: inline SVG and CSS, no script and nothing loaded from anywhere, light and dark. A mean is
comparable only with one over the same programs: each implementation's stands beside ours over the programs that it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from parakeet_py.bench import files
from parakeet_py.bench.peers import OURS, PEERS
from parakeet_py.bench.report import geometric_mean, machine, ratio_text
from parakeet_py.bench.runner import Row, Settings
from parakeet_py.call.explain.elements import document, element

COLOURS = {OURS: "#2f9e44", "numba": "#74c0fc", "numba-parallel": "#1c7ed6", "jax": "#9775fa", "c": "#868e96"}
Speedups = list[tuple[str, dict[str, float]]]  # for each program or set of programs: the figure of each implementation
_BAR, _LABEL, _WIDTH, _TOP = 13, 250, 980, 30
_AXIS = "times as fast as NumPy (log scale)"
_STYLE = f"""
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }}
body {{ max-width: {_WIDTH}px; margin: 2em auto; padding: 0 1em }}
svg {{ width: 100%; height: auto }}
text {{ fill: currentColor; font-size: 12px }} .name, .mean {{ text-anchor: end }} .mean {{ font-weight: 600 }}
.value {{ font-size: 10px }} .tick {{ text-anchor: middle }}
line {{ stroke: currentColor }} .grid {{ opacity: .18 }}
ul {{ list-style: none; padding: 0 }} .legend li {{ display: inline-block; margin-right: 1.2em }}
i {{ display: inline-block; width: 1em; height: 1em; margin-right: .4em; vertical-align: -.15em }}
"""


def speedups(rows: Sequence[Row], settings: Settings) -> Speedups:
    """For each program: how many times faster than NumPy each implementation is."""
    found: Speedups = []
    for row in rows:
        numpy = row.measurements.get("numpy")
        if numpy is None or numpy.median is None:
            continue
        peers = [peer for peer in COLOURS if peer in settings.peers]
        medians = {peer: median for peer in peers if (median := row.measurements[peer].median) is not None}
        found.append((row.program, {peer: numpy.median / median for peer, median in medians.items()}))
    return found


def means(found: Speedups) -> Speedups:
    """Geometric means: ours over all programs, then those of the others, each with ours over the same programs."""
    ours = [name for name, values in found if OURS in values]
    sets: dict[tuple[str, ...], list[str]] = {tuple(ours): []} if ours else {}
    for peer in COLOURS:
        same = tuple(name for name, values in found if peer in values and (OURS in values or not ours))
        if peer != OURS and same:
            sets.setdefault(same, []).append(peer)
    result: Speedups = []
    for same, others in sets.items():
        peers = [OURS, *others] if ours else others
        figures = {peer: geometric_mean(values[peer] for name, values in found if name in same) for peer in peers}
        having = ", ".join(PEERS[peer] for peer in others)
        which = f"all {len(same)}" if same == tuple(ours) else f"the {len(same)} of {having}"
        result.append((f"mean over {which}", {peer: mean for peer, mean in figures.items() if mean is not None}))
    return result


def write_plot(path: Path, rows: Sequence[Row], settings: Settings) -> None:
    """Write the plot in the format that the suffix of `path` names.

    Raises
    ------
    ValueError
        The suffix is neither .png nor .html, or there is nothing to draw (NumPy was not measured).
    """
    found = speedups(rows, settings)
    if not found:
        raise ValueError("nothing to plot: NumPy was not measured")
    bars = found + means(found)
    peers = [peer for peer in COLOURS if any(peer in values for _, values in bars)]
    size = 9, 0.9 + 0.34 * len(bars) * max(1.0, len(peers) / 3)
    page = partial(_html, found, rows, settings)
    files.write_plot(path, page, lambda figure: _draw(figure, bars, peers, settings), size)


def _title(settings: Settings) -> str:
    return f"Speed-up over NumPy, size {settings.size}, {settings.threads} threads"


def _draw(figure: Any, bars: Speedups, peers: Sequence[str], settings: Settings) -> None:
    height = 0.8 / len(peers)
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
    axes.set_xlabel(_AXIS)
    axes.legend(loc="lower right")


def _html(found: Speedups, rows: Sequence[Row], settings: Settings) -> str:
    bars = found + means(found)
    shown = [peer for peer in COLOURS if any(peer in values for _, values in bars)]
    legend = [element("li", element("i", style=f"background:{COLOURS[peer]}"), PEERS[peer]) for peer in shown]
    by_hand = {(row.program, peer) for row in rows for peer, m in row.measurements.items() if m.variant == "loops"}
    facts = machine()
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    notes = ["Geometric means are over the same programs for all that is in one group."]
    notes += ["°: hand-written prange loops instead of the NumPy source."] if by_hand else []
    return document(
        _title(settings),
        _STYLE,
        element("h1", _title(settings)),
        element("p", f"{facts['processor']}; Python {facts['python']}, {packages}."),
        element("ul", legend, class_="legend"),
        _svg(bars, len(found), by_hand),
        element("ul", [element("li", note) for note in notes]),
    )


def _svg(bars: Speedups, programs: int, by_hand: set[tuple[str, str]]) -> Element:
    """The bars with an axis above and below; means, from number `programs` on, below a line."""
    values = [v for _, by_peer in bars for v in by_peer.values()]
    low, high = math.log(min(1.0, *values) * 0.9), math.log(max(1.0, *values) * 1.1)

    def x(value: float) -> float:
        return round(_LABEL + (math.log(value) - low) * (_WIDTH - _LABEL - 60) / (high - low), 1)

    parts: list[Element] = []
    y = _TOP + 8
    for number, (name, by_peer) in enumerate(bars):
        if number == programs:
            parts.append(element("line", x1=0, x2=_WIDTH, y1=y, y2=y, class_="grid"))
            y += 9
        middle, kind = y + _BAR * len(by_peer) / 2 + 4, "name" if number < programs else "mean"
        parts.append(element("text", name, class_=kind, x=_LABEL - 8, y=middle))
        for peer, value in by_peer.items():
            left, right = sorted((x(1.0), x(value)))
            text = ratio_text(value) + ("°" if (name, peer) in by_hand else "")
            title = element("title", f"{name}, {PEERS[peer]}: {text}")
            width = max(right - left, 1)
            parts.append(element("rect", title, x=left, y=y, width=width, height=_BAR - 1, fill=COLOURS[peer]))
            parts.append(element("text", text, class_="value", x=right + 4, y=y + _BAR - 3))
            y += _BAR
        y += 9
    axis: list[Element] = []
    for tick in _ticks(low, high):
        where = x(tick)
        axis.append(element("line", x1=where, x2=where, y1=_TOP, y2=y, class_=None if tick == 1 else "grid"))
        axis += [element("text", f"{tick:g}×", class_="tick", x=where, y=place) for place in (_TOP - 8, y + 16)]
    axis.append(element("text", _AXIS, class_="tick", x=(_LABEL + _WIDTH) / 2, y=y + 36))
    return element("svg", axis, parts, viewBox=f"0 0 {_WIDTH} {y + 44}", role="img", aria_label=_AXIS)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two logarithms."""
    powers = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= math.log(tick) <= high]
