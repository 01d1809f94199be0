"""Conversions between integers and floating-point formats.

A float becomes an integer by rounding to a whole number and clamping to the range of the target; a NaN gives 0, or,
where the source is f64 or the target has 64 bits, the value with only its highest bit set. An integer becomes a float
rounded once, whatever its size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import floats, half_floats
from parakeet_py.ptx.emulator.arithmetic.directed import step
from parakeet_py.ptx.emulator.arithmetic.fused import narrow
from parakeet_py.ptx.emulator.front.kinds import Array


def saturate_integer(a: Array, target: np.dtype[Any]) -> Array:
    """An integer clamped to the range of a narrower or differently signed one."""
    limits, own = np.iinfo(target), np.iinfo(a.dtype)
    low, high = max(limits.min, own.min), min(limits.max, own.max)
    return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(target)


def _wide(a: Array, ptx_type: str) -> Array:
    """A float as float64 (exact)."""
    if ptx_type == "bf16":
        return half_floats.from_bf16(a).astype(np.float64)
    return a.astype(np.float64)


def round_whole(a: Array, mode: str) -> Array:
    """Rounded to a whole number; the sign of zero stays."""
    match mode:
        case "rni":
            return np.rint(a)
        case "rzi":
            return np.trunc(a)
        case "rmi":
            return np.floor(a)
        case _:
            return np.ceil(a)


def float_to_integer(a: Array, source: str, target: np.dtype[Any], mode: str, *, flush: bool) -> Array:
    """A float rounded to an integer type."""
    wide = _wide(floats.flush(a) if flush and source == "f32" else a, source)
    whole = round_whole(wide, mode)
    limits = np.iinfo(target)
    bits = 8 * np.dtype(target).itemsize
    # Both ends as floats: the upper one may be rounded up to a power of two, which is then already beyond.
    below, above = whole <= float(limits.min), whole >= float(limits.max)
    inside = np.where(below | above | np.isnan(whole), 0.0, whole)
    result = inside.astype(target)
    result = np.where(below, target.type(limits.min), result)
    result = np.where(above, target.type(limits.max), result)
    nan = np.isnan(wide)
    if nan.any():
        empty = 0
        if source == "f64" or bits == 64:
            empty = limits.min if limits.min < 0 else 1 << (bits - 1)
        result = np.where(nan, target.type(empty), result)
    return result.astype(target)


def integer_to_float(a: Array, target: str, mode: str, *, saturate: bool) -> Array:
    """An integer rounded to a float type."""
    if a.dtype.itemsize <= 4:
        wide = a.astype(np.float64)
    else:
        wide = _odd_float64(a) if target != "f64" else a.astype(np.float64)
    if target == "f64":
        if a.dtype.itemsize == 8 and mode != "rn":
            wide = _directed_64(a, wide, mode)
        return floats.saturate(wide) if saturate else wide
    if target == "bf16":
        return half_floats.to_bf16(narrow(wide, "bf16", "rn"), mode)
    result = narrow(wide, {"f32": "f4", "f16": "f2"}[target], mode)
    return floats.saturate(result) if saturate else result


def _odd_float64(a: Array) -> Array:
    """A 64-bit integer in float64, rounded to odd: the low bits go, and the last kept one remembers them."""
    low = a & a.dtype.type(0x7FF)
    high = a - low
    kept = np.where(low != 0, high | a.dtype.type(0x800), high)
    # Small numbers are exact as they are; a large one has its lowest kept bit within float64's 53.
    small = np.abs(a.astype(np.float64)) < 2.0**53
    return np.where(small, a, kept).astype(np.float64)


def _directed_64(a: Array, nearest: Array, mode: str) -> Array:
    exact = np.array([int(x) - int(y) for x, y in zip(a.tolist(), nearest.tolist(), strict=True)], dtype=np.float64)
    return step(nearest, exact, mode)


def float_to_float(
    a: Array, source: str, target: str, mode: str, *, flush: bool, saturate: bool, relu: bool, finite: bool
) -> Array:
    """A float in another format, or rounded to a whole number in its own."""
    if flush and source == "f32":
        a = floats.flush(a)
    if mode in ("rni", "rzi", "rmi", "rpi"):
        result = round_whole(a, mode)
        if source == "bf16":
            result = half_floats.to_bf16(round_whole(half_floats.from_bf16(a), mode))
    elif target == "tf32":
        result = _to_tf32(a, mode)
    elif target == "bf16":
        result = _to_bf16(a, source, mode or "rn")
    elif target == "f64":
        result = _wide(a, source)
    else:
        kind = {"f32": "f4", "f16": "f2"}[target]
        result = narrow(_wide(a, source), kind, mode or "rn")
    if target in ("bf16", "tf32"):
        if relu:
            result = np.where(result >> result.dtype.type(8 * result.dtype.itemsize - 1), result.dtype.type(0), result)
        if finite:
            raise NotImplementedError("satfinite of bf16")
        return result
    if flush and target == "f32":
        result = floats.flush(result)
    if saturate:
        result = floats.saturate(result)
    if relu:
        result = np.where(result > 0, result, np.where(np.isnan(result), result, result.dtype.type(0)))
    if finite:
        limit = np.finfo(result.dtype).max
        result = np.where(np.isinf(result), np.copysign(limit, result), result)
    return result


def _to_bf16(a: Array, source: str, mode: str) -> Array:
    if source == "bf16":
        return a
    if source == "f64":
        return half_floats.to_bf16(narrow(a, "bf16", "rn"), mode)
    return half_floats.to_bf16(a.astype(np.float32), mode)


def _to_tf32(a: Array, mode: str) -> Array:
    """Ten bits of fraction in the place of a float32."""
    bits = np.ascontiguousarray(a).view(np.uint32)
    low = bits & np.uint32(0x1FFF)
    kept = bits & np.uint32(0xFFFFE000)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    if mode == "rna":
        up = low >= 0x1000
    elif mode == "rz":
        up = low > 0x1FFF
    else:
        up = (low > 0x1000) | ((low == 0x1000) & (odd != 0))
    rounded = kept + up.astype(np.uint32) * np.uint32(0x2000)
    return np.where(np.isnan(a), np.uint32(0x7FFFFFFF), rounded)


def pack_pair(upper: Array, lower: Array, target: str, mode: str, *, relu: bool, finite: bool) -> Array:
    """Two float32 as a packed pair of 16-bit floats."""

    def half(a: Array) -> Array:
        if relu:
            a = np.where(a < 0, np.float32(0), a)
        if target == "bf16x2":
            bits = half_floats.to_bf16(a, mode)
            if finite:
                infinite = (bits & np.uint16(0x7FFF)) == 0x7F80
                bits = np.where(infinite, bits - np.uint16(1), bits)
            return bits
        result = narrow(a.astype(np.float64), "f2", mode)
        if finite:
            result = np.where(np.isinf(result), np.copysign(np.float16(65504), result), result)
        bits = np.ascontiguousarray(result).view(np.uint16)
        return np.where(np.isnan(result), np.uint16(0x7FFF), bits)

    return (half(upper).astype(np.uint32) << np.uint32(16)) | half(lower)


def pack_integers(a: Array, b: Array, rest: Array | None, target: str) -> Array:
    """Two integers saturated and packed; `rest` gives the upper half when bytes are packed."""
    kind = np.dtype(f"{'i' if target[0] == 's' else 'u'}{int(target[1:]) // 8}")
    bits = np.uint32(int(target[1:]))
    unsigned = f"u{kind.itemsize}"
    x = saturate_integer(a, kind).view(unsigned).astype(np.uint32)
    y = saturate_integer(b, kind).view(unsigned).astype(np.uint32)
    packed = (x << bits) | y
    return packed if rest is None else (rest << np.uint32(16)) | packed
