"""A timeline as a page of HTML that stands alone: inline SVG and CSS, nothing is loaded from anywhere."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from parakeet_py.hybrid.devices.timeline_kinds import COPY_IN, COPY_OUT, COPY_OVER, KERNEL, PART

if TYPE_CHECKING:
    from parakeet_py.hybrid.devices.timeline import Timeline

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 1100, 190, 20, 8, 26
_COLOURS = {PART: "#2f9e44", KERNEL: "#1c7ed6", COPY_IN: "#e8590c", COPY_OUT: "#ae3ec9", COPY_OVER: "#f08c00"}


def page(timeline: Timeline) -> str:
    """The page."""
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Timeline</title>
<style>
:root {{ color-scheme: light dark; font: 14px system-ui, sans-serif }}
body {{ max-width: {_WIDTH}px; margin: 2em auto; padding: 0 1em }}
svg {{ width: 100%; height: auto }} text {{ fill: currentColor; font-size: 12px }}
rect:hover {{ stroke: currentColor }}
</style>
<h1>Timeline</h1>
<pre>{html.escape(str(timeline))}</pre>
{_svg(timeline)}</html>
"""


def _svg(timeline: Timeline) -> str:
    rows = timeline.rows()
    whole = timeline.seconds or 1.0
    bottom = _TOP + _ROW * len(rows)

    def across(seconds: float) -> float:
        return _LEFT + seconds / whole * (_WIDTH - _LEFT - _RIGHT)

    parts = []
    for number, ((device, kind), events) in enumerate(rows.items()):
        top = _TOP + _ROW * number
        parts.append(f'<text x="{_LEFT - 8}" y="{top + 17}" text-anchor="end">{html.escape(device)}, {kind}</text>')
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{top + _ROW}" y2="{top + _ROW}" '
            'stroke="currentColor" opacity=".15"/>'
        )
        for event in events:
            x = across(event.start)
            width = max(across(event.start + event.seconds) - x, 0.5)
            told = f"{event.text}: {_time(event.seconds)}, from {_time(event.start)} on"
            parts.append(
                f'<rect x="{x:.2f}" y="{top + 4}" width="{width:.2f}" height="{_ROW - 8}" '
                f'fill="{_COLOURS[kind]}" opacity=".8"><title>{html.escape(told)}</title></rect>'
            )
    for tick in _ticks(whole):
        x = across(tick)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="currentColor" opacity=".15"/>'
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_time(tick)}</text>'
        )
    return f'<svg viewBox="0 0 {_WIDTH} {bottom + 28}" role="img">{"".join(parts)}</svg>'


def _ticks(whole: float) -> list[float]:
    """About eight round times."""
    step = 10.0 ** math.floor(math.log10(whole / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if whole / (step * factor) <= 8)
    return [step * number for number in range(int(whole / step) + 1)]


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs" if seconds > 0 else "0"
