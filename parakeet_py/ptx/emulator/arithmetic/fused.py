"""Fused multiply-add, rounded once, in every mode and format.

float32 and narrower: the product of two is exact in float64, the sum with the third operand is rounded there *to odd*
(truncated, with the last bit set when anything was lost), and that can be rounded again to the narrow format without
error, in any mode, since float64 has more than two bits to spare (Boldo and Melquiond 2008).

float64: the product as a sum of two floats (Dekker), the third operand added with error-free sums, the tails added
rounded to odd, the whole rounded last (the same paper). The transformation is exact while nothing in it overflows or
falls below the smallest float; lanes with operands so large or small go to `exact.py`.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import exact
from parakeet_py.ptx.emulator.arithmetic.directed import step
from parakeet_py.ptx.emulator.front.kinds import Array

_SPLITTER = 134217729.0
_LARGE, _SMALL = 2.0**960, 2.0**-900


def add_odd(a: Array, b: Array) -> Array:
    """a + b of float64, rounded to odd."""
    total = a + b
    part = total - a
    lost = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    inexact = (lost != 0) & ((bits & 1) == 0) & np.isfinite(total) & np.isfinite(lost)
    if not inexact.any():
        return total
    # Rounded away from zero: the odd neighbour is one less in magnitude; towards zero: one more.
    outward = (lost > 0) == (total > 0)
    return np.where(inexact, bits + np.where(outward, 1, -1), bits).view(np.float64)


def narrow(wide: Array, kind: str, mode: str) -> Array:
    """float64 that is exact or rounded to odd, in a narrower format and any mode (bf16 gives a float32)."""
    if kind == "bf16":
        # An odd float32 on the way loses nothing.
        single = wide.astype(np.float32)
        back = single.astype(np.float64)
        bits = single.view(np.int32)
        off = (back != wide) & ((bits & 1) == 0) & np.isfinite(wide)
        outward = np.where(np.abs(back) < np.abs(wide), np.int32(1), np.int32(-1))
        single = np.where(off, bits + outward, bits).view(np.float32)
        return single
    nearest = wide.astype(f"f{kind[1]}")
    if mode == "rn":
        return nearest
    missing = wide - nearest.astype(np.float64)
    return step(nearest, np.nan_to_num(missing, nan=0.0), mode)


def _down_zero(a: Array, b: Array, c: Array, result: Array) -> Array:
    """Rounding down, an exact zero is -0 unless it is the sum of positive zeros."""
    positive = ~(np.signbit(a) ^ np.signbit(b)) & ~np.signbit(c) & ((a == 0) | (b == 0)) & (c == 0)
    return np.where((result == 0) & ~positive & ~np.isnan(result), _negative_zeros(a, b, c, result), result)


def _negative_zeros(a: Array, b: Array, c: Array, result: Array) -> Array:
    exact_zero = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)) == 0
    return np.where(exact_zero, result.dtype.type(-0.0), result)


def fma_f4(a: Array, b: Array, c: Array, mode: str) -> Array:
    """float32 a * b + c."""
    total = add_odd(a.astype(np.float64) * b, c.astype(np.float64))
    result = narrow(total, "f4", mode)
    return _down_zero(a, b, c, result) if mode == "rm" else result


def fma_f2(a: Array, b: Array, c: Array, *, flush: bool, saturate: bool, relu: bool) -> Array:
    """float16 a * b + c."""
    total = add_odd(a.astype(np.float64) * b, c.astype(np.float64))
    return _limits(total.astype(np.float16), flush, saturate, relu)


def fma_bf16(a: Array, b: Array, c: Array, *, flush: bool, saturate: bool, relu: bool) -> Array:
    """bfloat16 a * b + c, operands as float32; the result is a float32 that rounds to the right bfloat16."""
    total = add_odd(a.astype(np.float64) * b, c.astype(np.float64))
    return _limits(narrow(total, "bf16", "rn"), flush, saturate, relu)


def _limits(result: Array, flush: bool, saturate: bool, relu: bool) -> Array:
    from parakeet_py.ptx.emulator.arithmetic import floats

    if flush:
        result = floats.flush(result)
    if saturate:
        result = floats.saturate(result)
    if relu:
        result = np.where(result < 0, result.dtype.type(0), result)
    return result


def _two_product(a: Array, b: Array, product: Array) -> Array:
    """What a * b lacks (Dekker)."""
    t = a * _SPLITTER
    ah = t - (t - a)
    al = a - ah
    t = b * _SPLITTER
    bh = t - (t - b)
    bl = b - bh
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fma_f8(a: Array, b: Array, c: Array, mode: str) -> Array:
    """float64 a * b + c."""
    product = a * b
    size = np.abs(product)
    moderate = (size < _LARGE) & (size > _SMALL) & (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE) & (np.abs(c) < _LARGE)
    # A subnormal result is rounded earlier than the transformation supposes.
    moderate &= (np.abs(c) > _SMALL) | (c == 0)
    # A product of zero changes nothing, so nothing is rounded.
    nothing = (size == 0) & ((a == 0) | (b == 0)) & np.isfinite(c) & ((c != 0) | (mode == "rn"))
    if mode == "rn" and moderate.all():
        return _fma_moderate(a, b, c, product)[0]
    plain = product + c
    result, missing = _fma_moderate(a, b, c, product)
    if mode != "rn":
        result = step(result, np.nan_to_num(missing, nan=0.0), mode)
        if mode == "rm":
            result = _down_zero(a, b, c, result)
    result = np.where(moderate, result, plain)
    return exact.apply("fma", (a, b, c), result, mode, ~(moderate | nothing))


def _fma_moderate(a: Array, b: Array, c: Array, product: Array) -> tuple[Array, Array]:
    """The nearest float64 and a value with the sign of what it lacks."""
    tail = _two_product(a, b, product)
    th = c + tail
    part = th - c
    tl = (c - (th - part)) + (tail - part)
    vh = product + th
    part = vh - product
    vl = (product - (vh - part)) + (th - part)
    rest = add_odd(tl, vl)
    result = vh + rest
    part = result - vh
    return result, (vh - (result - part)) + (rest - part)
