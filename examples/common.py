"""What the examples share: the photographs that ship inside scikit-learn, pictures side by side, and a stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PHOTOS = ("china.jpg", "flower.jpg")


def load_photo(name: str, every: int = 1) -> NDArray[np.float64]:
    """A photograph as (height, width, 3) floats from 0 to 1; every n-th pixel of it."""
    from sklearn.datasets import load_sample_image

    return np.ascontiguousarray(load_sample_image(name)[::every, ::every]) / 255.0


def save_pair(path: Path, before: NDArray[np.float64], after: NDArray[np.float64], title: str) -> None:
    """Write two pictures side by side as a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    height, width = before.shape[:2]
    figure = Figure(figsize=(12, 6 * height / width + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, picture, label in zip(figure.subplots(1, 2), (before, after), ("before", title), strict=True):
        axes.imshow(np.clip(picture, 0.0, 1.0), cmap="gray", vmin=0.0, vmax=1.0)
        axes.set_title(label)
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def compare(function: Any, *arguments: Any, repeats: int = 3) -> tuple[Any, str]:
    """The result of an accelerated function, and one line on its speed beside the plain NumPy function inside it.

    The arguments must not be changed by the function. Both are timed in turns; the best time of each counts.
    The two results are compared: this is also a test.
    """
    first, result = _timed(function, arguments)
    plain, expected = _timed(function.__wrapped__, arguments)
    fast = float("inf")
    for _ in range(repeats):
        fast = min(fast, _timed(function, arguments)[0])
        plain = min(plain, _timed(function.__wrapped__, arguments)[0])
    for one, other in zip(_parts(expected), _parts(result), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-9)
    times = f"NumPy {plain * 1e3:.1f} ms, parakeet_py {fast * 1e3:.1f} ms ({plain / fast:.1f}x)"
    return result, f"{times}, first call {first * 1e3:.0f} ms"


def _timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def _parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
