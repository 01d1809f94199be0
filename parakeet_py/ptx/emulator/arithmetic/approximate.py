"""The `.approx` functions.

PTX bounds their error but not their value. The emulator computes in float64 and rounds, which lies within every bound;
a test against a device compares within the bound that PTX gives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array


def _single(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of float32 by way of float64."""
    return lambda a: function(a.astype(np.float64)).astype(np.float32)


def rsqrt_f8(a: Array) -> Array:
    """1 / sqrt(a)."""
    return np.asarray(1.0 / np.sqrt(a))


rsqrt_f4 = _single(rsqrt_f8)
sin_f4, cos_f4, tanh_f4 = _single(np.sin), _single(np.cos), _single(np.tanh)
lg2_f4, ex2_f4 = _single(np.log2), _single(np.exp2)


def rcp_f8(a: Array) -> Array:
    """1 / a with the precision the instruction has: the lower half of the operand and of the result are zero."""
    high = np.uint64(0xFFFFFFFF00000000)
    cut = (np.ascontiguousarray(a).view(np.uint64) & high).view(np.float64)
    cut = np.where(np.abs(cut) < np.finfo(np.float64).smallest_normal, np.copysign(0.0, cut), cut)
    result = 1.0 / cut
    masked = (np.ascontiguousarray(result).view(np.uint64) & high).view(np.float64)
    return np.where(np.isnan(result), result, masked)
