"""Files that benchmarks write: figures as JSON, plots as PNG (matplotlib) or as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def write_plot(path: Path, html: Callable[[], str], draw: Callable[[Any], None], size: tuple[float, float]) -> None:
    """Write a plot in the format that the suffix of `path` names: `html` gives the page, `draw` draws on a figure of
    matplotlib's of so many inches.

    Raises
    ------
    ValueError
        The suffix is neither .png nor .html.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix.lower():
        case ".html":
            path.write_text(html(), encoding="utf-8")
        case ".png":
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure

            figure = Figure(figsize=size, layout="constrained")
            FigureCanvasAgg(figure)
            draw(figure)
            figure.savefig(path, dpi=110)
        case other:
            raise ValueError(f"a plot is .png or .html, not {other or 'without a suffix'}")
