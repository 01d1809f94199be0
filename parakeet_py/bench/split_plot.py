"""Time over forced split with the chosen point marked, one curve for each program, as a PNG (matplotlib) or as HTML.

The HTML file stands alone, as the one of `bench.plot`: inline SVG and CSS, nothing loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from parakeet_py.bench import files
from parakeet_py.bench.report import seconds
from parakeet_py.bench.split import Point
from parakeet_py.call.explain.elements import document, element

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 80, 40, 16
_LINE, _CHOSEN = "#1c7ed6", "#e8590c"
_STYLE = f"""
:root {{ color-scheme: light dark; font: 14px system-ui, sans-serif }}
body {{ max-width: {_WIDTH}px; margin: 2em auto; padding: 0 1em }}
svg {{ width: 100%; height: auto }} text {{ fill: currentColor; font-size: 11px }}
"""


class Curve(NamedTuple):
    """One program on some devices: its points at forced splits, then the one that was chosen."""

    program: str
    devices: str
    points: Sequence[Point]

    @property
    def title(self) -> str:
        return f"{self.program} on {self.devices}"

    def forced(self) -> list[tuple[float, float]]:
        """(percent, seconds) of the forced splits, by percent."""
        return sorted((100 * point.split, point.time) for point in self.points if point.split is not None)

    def chosen(self) -> tuple[float, float] | None:
        """(percent, seconds) of the point that was chosen."""
        return next(((100 * point.share, point.time) for point in self.points if point.split is None), None)


def write_curves(path: Path, curves: Sequence[Curve]) -> None:
    """Write the curves in the format that the suffix of `path` names.

    Raises
    ------
    ValueError
        The suffix is neither .png nor .html, or there are no curves.
    """
    if not curves:
        raise ValueError("nothing to plot: no program was measured")
    files.write_plot(path, lambda: _html(curves), lambda figure: _draw(figure, curves), (7, 3.2 * len(curves)))


def _draw(figure: Any, curves: Sequence[Curve]) -> None:
    for axes, curve in zip(figure.subplots(len(curves), squeeze=False)[:, 0], curves, strict=True):
        axes.plot(*zip(*curve.forced(), strict=True), "o-", color=_LINE, label="forced split")
        chosen = curve.chosen()
        if chosen is not None:
            axes.plot(*chosen, "D", color=_CHOSEN, markersize=9, label="chosen")
        axes.set_xlim(-3, 103)
        axes.set_ylim(bottom=0)
        axes.set_title(curve.title)
        axes.set_xlabel("share of the devices other than the CPU, %")
        axes.set_ylabel("seconds")
        axes.grid(alpha=0.3)
        axes.legend()


def _html(curves: Sequence[Curve]) -> str:
    about = (
        "Across: the share of the devices other than the CPU; up: the time of a call. The diamond is what was chosen."
    )
    figures = [(element("h2", curve.title), _svg(curve)) for curve in curves]
    return document("Time over split", _STYLE, element("h1", "Time over split"), element("p", about), figures)


def _svg(curve: Curve) -> Element:
    forced, chosen = curve.forced(), curve.chosen()
    longest = max(time for _, time in [*forced, *([chosen] if chosen is not None else [])])

    def place(percent: float, time: float) -> tuple[float, float]:
        across = _LEFT + percent / 100 * (_WIDTH - _LEFT - 20)
        return round(across, 1), round(_HEIGHT - _BOTTOM - time / longest * (_HEIGHT - _BOTTOM - _TOP), 1)

    line = " ".join("{},{}".format(*place(*point)) for point in forced)
    parts = [element("polyline", points=line, fill="none", stroke=_LINE, stroke_width=2)]
    for percent, time in forced:
        x, y = place(percent, time)
        title = element("title", f"{percent:g} %: {seconds(time)}")
        parts.append(element("circle", title, cx=x, cy=y, r=4, fill=_LINE))
    if chosen is not None:
        x, y = place(*chosen)
        title = element("title", f"chosen, {chosen[0]:.0f} %: {seconds(chosen[1])}")
        parts.append(element("path", title, d=f"M{x} {y - 8:.1f}l8 8l-8 8l-8 -8z", fill=_CHOSEN))
    for percent in range(0, 101, 20):
        x, y = place(percent, 0.0)
        parts.append(element("text", f"{percent} %", x=x, y=y + 18, text_anchor="middle"))
    for part in (0.0, 0.5, 1.0):
        x, y = place(0.0, part * longest)
        parts.append(element("text", seconds(part * longest) if part else "0", x=x - 10, y=y + 4, text_anchor="end"))
        parts.append(element("line", x1=x, x2=_WIDTH - 20, y1=y, y2=y, stroke="currentColor", opacity=0.2))
    return element("svg", parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=curve.title)
