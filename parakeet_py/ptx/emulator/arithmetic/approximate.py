"""The `.approx` functions.

PTX bounds their error but not their value. The emulator computes in float64 and rounds, which lies within every bound;
a test against a device compares within the bound that PTX gives.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array


def _single(a: Array) -> Array:
    return a.astype(np.float32)


def rsqrt_f4(a: Array) -> Array:
    """1 / sqrt(a)."""
    return _single(1.0 / np.sqrt(a.astype(np.float64)))


def rsqrt_f8(a: Array) -> Array:
    """1 / sqrt(a)."""
    return np.asarray(1.0 / np.sqrt(a))


def sin_f4(a: Array) -> Array:
    """The sine."""
    return _single(np.sin(a.astype(np.float64)))


def cos_f4(a: Array) -> Array:
    """The cosine."""
    return _single(np.cos(a.astype(np.float64)))


def lg2_f4(a: Array) -> Array:
    """The logarithm to base 2."""
    return _single(np.log2(a.astype(np.float64)))


def ex2_f4(a: Array) -> Array:
    """2 to the power a."""
    return _single(np.exp2(a.astype(np.float64)))


def tanh_f4(a: Array) -> Array:
    """The hyperbolic tangent."""
    return _single(np.tanh(a.astype(np.float64)))


def rcp_f8(a: Array) -> Array:
    """1 / a with the precision the instruction has: the lower half of the operand and of the result are zero."""
    high = np.uint64(0xFFFFFFFF00000000)
    cut = (np.ascontiguousarray(a).view(np.uint64) & high).view(np.float64)
    cut = np.where(np.abs(cut) < np.finfo(np.float64).smallest_normal, np.copysign(0.0, cut), cut)
    result = 1.0 / cut
    masked = (np.ascontiguousarray(result).view(np.uint64) & high).view(np.float64)
    return np.where(np.isnan(result), result, masked)
