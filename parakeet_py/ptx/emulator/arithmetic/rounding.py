"""Addition, product, quotient and root of float32 and float64 in the directed rounding modes.

The result rounded to nearest is taken first, then the sign of what it lacks from the exact value: an error-free
transformation gives that sign exactly (Dekker 1971; Boldo and Daumas 2003 for quotient and root). A directed mode then
steps to the neighbouring float where the nearest one lies on the wrong side. Where the transformation itself could
overflow or lose bits below the smallest float, `exact.py` decides with integers.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import exact, fused
from parakeet_py.ptx.emulator.arithmetic.directed import step
from parakeet_py.ptx.emulator.front.kinds import Array


def _exact_zero_sum(a: Array, b: Array, result: Array, mode: str) -> Array:
    """x + (-x) is -0 when rounding down, +0 otherwise; sums of equal zeros keep their sign."""
    if mode != "rm":
        return result
    cancelled = (result == 0) & ~((a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b))
    return np.where(cancelled, result.dtype.type(-0.0), result)


def add(a: Array, b: Array, mode: str) -> Array:
    """a + b."""
    if a.dtype == np.float32:
        wide = a.astype(np.float64)
        other = b.astype(np.float64)
        total = wide + other
        nearest = a + b
        lost = _two_sum_error(wide, other, total)
        missing = (total - nearest.astype(np.float64)) + lost
    else:
        nearest = a + b
        missing = _two_sum_error(a, b, nearest)
    overflow = np.isinf(nearest) & np.isfinite(a) & np.isfinite(b)
    missing = np.where(overflow, -nearest, missing)
    return _exact_zero_sum(a, b, step(nearest, np.nan_to_num(missing, nan=0.0), mode), mode)


def sub(a: Array, b: Array, mode: str) -> Array:
    """a - b."""
    return add(a, -b, mode)


def _two_sum_error(a: Array, b: Array, total: Array) -> Array:
    """What a + b lacks (Knuth's two-sum); exact unless something overflows."""
    part = total - a
    return (a - (total - part)) + (b - part)


def mul(a: Array, b: Array, mode: str) -> Array:
    """a * b."""
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)
        nearest = product.astype(np.float32)
        missing = product - nearest.astype(np.float64)
        overflow = np.isinf(nearest) & np.isfinite(product)
        return step(nearest, np.nan_to_num(np.where(overflow, -nearest, missing), nan=0.0), mode)
    return fused.fma_f8(a, b, np.where(np.signbit(a) ^ np.signbit(b), -0.0, 0.0), mode)


def div(a: Array, b: Array, mode: str) -> Array:
    """a / b."""
    nearest = a / b
    if a.dtype == np.float32:
        # The remainder of float32 numbers is exact in float64.
        rest = a.astype(np.float64) - nearest.astype(np.float64) * b.astype(np.float64)
        missing = np.sign(rest) * np.where(b < 0, -1.0, 1.0)
        missing = np.where(np.isinf(nearest) & np.isfinite(a) & (b != 0), -nearest.astype(np.float64), missing)
        return step(nearest, np.nan_to_num(missing, nan=0.0), mode)
    return exact.apply("div", (a, b), nearest, mode)


def sqrt(a: Array, mode: str) -> Array:
    """The square root."""
    nearest = np.sqrt(a)
    if a.dtype == np.float32:
        wide = nearest.astype(np.float64)
        missing = a.astype(np.float64) - wide * wide
        return step(nearest, np.nan_to_num(missing, nan=0.0, posinf=0.0), mode)
    return exact.apply("sqrt", (a,), nearest, mode)


def rcp(a: Array, mode: str) -> Array:
    """1 / a."""
    return div(np.ones(1, dtype=a.dtype), a, mode)
