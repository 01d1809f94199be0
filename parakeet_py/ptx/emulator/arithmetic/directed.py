"""The step from the nearest float to the one that a directed rounding mode gives."""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array


def step(nearest: Array, missing: Array, mode: str) -> Array:
    """The directed rounding, from the nearest float and the sign of (exact - nearest).

    An infinite `nearest` counts as beyond every finite value, so that an overflow towards the wrong side steps back to
    the largest finite float.
    """
    infinity = nearest.dtype.type(np.inf)
    down, up = missing < 0, missing > 0
    match mode:
        case "rm":
            return np.where(down, np.nextafter(nearest, -infinity), nearest)
        case "rp":
            return np.where(up, np.nextafter(nearest, infinity), nearest)
        case _:
            inward = np.where(nearest > 0, down, up & (nearest < 0))
            return np.where(inward, np.nextafter(nearest, nearest.dtype.type(0)), nearest)
