"""Rooflines of the benchmark programs: how near each kernel comes to what this machine can do; as text, JSON and plot.

    parakeet bench --roofline relaxation_2d nbody --plot build/roofline.png --plot build/roofline.html

The plot has a point for each kernel: operations for each byte, and operations a second, beside the roofs: the
bandwidths of memory and caches, which rise, and the peaks of vector code and products, which are level. Kernels that
only move data have no point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from parakeet_py.base import config
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.bench import files
from parakeet_py.bench.peers import quiet, thread_limits
from parakeet_py.bench.plot import COLOURS
from parakeet_py.bench.program import Program, Size
from parakeet_py.bench.report import machine
from parakeet_py.call.explain.elements import document, element
from parakeet_py.call.explain.roofline import Roofline, TimedKernel
from parakeet_py.call.explain.roofs import Roofs, roofs

_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 560, 70, 20
_NEAR, _SLOW = COLOURS["parakeet"], "#e8590c"
_X, _Y = "operations per byte", "operations a second"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 900px; margin: 2em auto; padding: 0 1em }
svg { width: 100%; height: auto } text { fill: currentColor; font-size: 12px } .tick { text-anchor: middle }
line { stroke: currentColor } .grid { opacity: .15 } .roof { stroke-width: 1.5; opacity: .7 } pre { overflow-x: auto }
"""


def measure(
    programs: Sequence[Program], size: Size, threads: int, tell: Callable[[str], None] = lambda name: None
) -> list[Roofline]:
    """The rooflines of some programs; those that are not compiled are left out."""
    from parakeet_py.call.accelerate import accelerate

    found = []
    with quiet(), thread_limits(threads), config.options(threads=threads):
        limits = roofs(accelerate)
        for program in programs:
            tell(program.name)
            function: Any = accelerate(program.function)
            try:
                made = function.roofline(*program.fresh(program.arguments(size)))
            except UnsupportedError:
                continue
            found.append(Roofline(program.name, made.kernels, limits, made.seconds))
    return found


def as_data(found: Sequence[Roofline], size: str) -> dict[str, Any]:
    """Everything measured, as plain data."""
    return {
        "machine": machine(),
        "size": size,
        "roofs": asdict(found[0].roofs) if found else None,
        "programs": {
            one.name: {"seconds": one.seconds, "kernels": [asdict(k) | {"share": k.share} for k in one.kernels]}
            for one in found
        },
    }


def slow_lines(found: Sequence[Roofline]) -> list[str]:
    """The kernels below half of what is possible, the ones that take longest first."""
    kernels = [(one.name, kernel) for one in found for kernel in one.slow]
    return [f"{name}, {kernel}" for name, kernel in sorted(kernels, key=lambda pair: -pair[1].seconds)]


# ---- plots -----------------------------------------------------------------------------------------------------------


def write_plot(path: Path, found: Sequence[Roofline]) -> None:
    """Write the plot in the format that the suffix of `path` names.

    Raises
    ------
    ValueError
        The suffix is neither .png nor .html, or no kernel computes anything.
    """
    points = _points(found)
    if not points:
        raise ValueError("nothing to plot: no kernel computes anything")
    files.write_plot(path, lambda: _html(found, points), lambda figure: _draw(figure, found[0].roofs, points), (9, 6))


Points = list[tuple[str, TimedKernel, float, float]]  # program, kernel, operations for each byte and a second


def _points(found: Sequence[Roofline]) -> Points:
    return [
        (one.name, kernel, kernel.intensity, kernel.operations / kernel.seconds)
        for one in found
        for kernel in one.kernels
        if kernel.operations and kernel.intensity
    ]


def _lines(limits: Roofs) -> list[tuple[str, float, float]]:
    """The roofs: a name, bytes a second (0: level), and the level at which they end."""
    peak = max(limits.operations, limits.products)
    rising = [(f"{_size(size)}: {rate / 1e9:.0f} GB/s", rate, peak) for size, rate in limits.bandwidths]
    level = [("vector code", 0.0, limits.operations), ("products", 0.0, limits.products)]
    return rising + [(f"{name}: {rate / 1e9:.0f} G/s", zero, rate) for name, zero, rate in level]


def _size(number: int) -> str:
    return f"{number >> 20} MiB" if number >> 20 else f"{number >> 10} KiB"


def _title(limits: Roofs) -> str:
    return f"Kernels and the limits of this machine, {limits.threads} thread{'s' * (limits.threads > 1)}"


def _bounds(limits: Roofs, points: Points) -> tuple[float, float, float, float]:
    xs, ys = [x for *_, x, _ in points], [y for *_, y in points]
    top = max(limits.operations, limits.products, *ys) * 2
    return min(0.02, *xs) / 2, max(20.0, *xs) * 2, min(ys) / 2, top


def _draw(figure: Any, limits: Roofs, points: Points) -> None:
    axes = figure.add_subplot()
    left, right, low, high = _bounds(limits, points)
    for name, rate, level in _lines(limits):
        ends = (left, level / rate) if rate else (left, right)
        axes.plot(ends, [min(level, x * rate) if rate else level for x in ends], label=name, linewidth=1)
    for name, kernel, x, y in points:
        axes.scatter(x, y, s=18, color=_SLOW if kernel.slow else _NEAR)
        if kernel.slow:
            axes.annotate(f"{name}:{kernel.line}", (x, y), fontsize=6, xytext=(3, 2), textcoords="offset points")
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, high), xlabel=_X, ylabel=_Y)
    axes.set_title(_title(limits))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="lower right")


def _html(found: Sequence[Roofline], points: Points) -> str:
    limits, facts = found[0].roofs, machine()
    return document(
        _title(limits),
        _STYLE,
        element("h1", _title(limits)),
        element("p", f"{facts['processor']}; Python {facts['python']}. Orange: below half of what is possible."),
        _svg(limits, points),
        *(element("pre", str(one)) for one in found),
    )


def _svg(limits: Roofs, points: Points) -> Element:
    left, right, low, high = _bounds(limits, points)

    def x_of(value: float) -> float:
        return round(_LEFT + math.log(value / left) / math.log(right / left) * (_WIDTH - _LEFT - 20), 1)

    def y_of(value: float) -> float:
        return round(_HEIGHT - 50 - math.log(value / low) / math.log(high / low) * (_HEIGHT - 50 - _TOP), 1)

    parts: list[Element] = []
    for exponent in range(math.ceil(math.log10(left)), math.floor(math.log10(right)) + 1):
        where = x_of(10.0**exponent)
        parts.append(element("line", x1=where, x2=where, y1=_TOP, y2=_HEIGHT - 50, class_="grid"))
        parts.append(element("text", f"{10.0**exponent:g}", class_="tick", x=where, y=_HEIGHT - 32))
    for exponent in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        where = y_of(10.0**exponent)
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - 20, y1=where, y2=where, class_="grid"))
        parts.append(element("text", f"1e{exponent}", x=20, y=where + 4))
    for name, rate, level in _lines(limits):
        start = max(left, low / rate) if rate else left
        end = min(right, level / rate) if rate else right
        ends = [(x_of(one), y_of(min(level, one * rate) if rate else level)) for one in (start, end)]
        (x1, y1), (x2, y2) = ends
        parts.append(element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="roof"))
        parts.append(element("text", name, x=x1 + 6 if rate else x1 + 200, y=y1 - 5))
    for name, kernel, x, y in points:
        title = element("title", f"{name}, {kernel}")
        parts.append(element("circle", title, cx=x_of(x), cy=y_of(y), r=4, fill=_SLOW if kernel.slow else _NEAR))
    parts.append(element("text", _X, class_="tick", x=_WIDTH / 2, y=_HEIGHT - 10))
    return element("svg", parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"{_Y} by {_X}")
