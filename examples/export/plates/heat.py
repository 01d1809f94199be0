"""Heat that spreads in a plate: a function to export.

    parakeet export plates/heat.py:spread --args 'np.zeros((64, 64)), 100, 0.2' -o build
    cc -std=c99 -Ibuild main.c -Lbuild -lspread -Wl,-rpath,'$ORIGIN/build' -o main
    ./main

`make` does the same, `pip wheel --no-deps .` puts the library into a wheel (`setup.py`).
"""

from __future__ import annotations

import numpy as np

from parakeet_py import accelerate


@accelerate
def spread(plate: np.ndarray, steps: int, rate: float) -> tuple[np.ndarray, float]:
    """The temperatures after some steps, and how much the last step has changed; the edges stay as they are."""
    if not 0.0 < rate <= 0.25:
        raise ValueError("the rate must be above 0 and at most 0.25")
    now = plate.copy()
    change = 0.0
    for _ in range(steps):
        inner = now[1:-1, 1:-1]
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        delta = rate * (around - 4 * inner)
        change = np.abs(delta).max()
        now[1:-1, 1:-1] = inner + delta
    return now, float(change)
