"""Floating-point operations with PTX's rules for zeros, NaN and subnormal numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parakeet_py.ptx.emulator.front.kinds import Array


def flush(a: Array) -> Array:
    """Subnormal numbers to zero of their sign."""
    return np.where(_is_small(a), np.copysign(a.dtype.type(0), a), a)


def saturate(a: Array) -> Array:
    """Clamped to [0, 1]; NaN gives +0, and so does -0."""
    one, zero = a.dtype.type(1), a.dtype.type(0)
    return np.where(a > zero, np.minimum(a, one), zero)


def canonical_nan(dtype: np.dtype[np.generic]) -> Array:
    """The NaN that arithmetic gives: all bits set but the sign."""
    size = dtype.itemsize
    if size == 8:
        return np.array([0x7FF8000000000000], dtype=np.uint64).view(dtype)
    return np.array([(1 << (8 * size - 1)) - 1], dtype=f"u{size}").view(dtype)


def quiet(a: Array) -> Array:
    """Every NaN as a device's arithmetic gives it."""
    nan = a != a
    return np.where(nan, canonical_nan(a.dtype), a) if nan.any() else a


def _extremum(values: tuple[Array, ...], smaller: bool, nan: bool, xorsign: bool) -> Array:
    result = values[0]
    if xorsign:
        a, b = values
        negative = np.signbit(a) ^ np.signbit(b)
        values = (np.abs(a), np.abs(b))
        result = values[0]
    for value in values[1:]:
        picked = np.fmin(result, value) if smaller else np.fmax(result, value)
        # -0 is less than +0: where both compare equal the sign bits decide.
        equal = result == value
        bits = f"u{value.dtype.itemsize}"
        left, right = np.ascontiguousarray(result).view(bits), np.ascontiguousarray(value).view(bits)
        both = ((left | right) if smaller else (left & right)).view(value.dtype)
        picked = np.where(equal, both, picked)
        if nan:
            picked = np.where(np.isnan(result) | np.isnan(value), canonical_nan(value.dtype), picked)
        else:
            picked = np.where(np.isnan(result) & np.isnan(value), canonical_nan(value.dtype), picked)
        result = picked
    if xorsign:
        result = np.where(negative, -np.abs(result), np.abs(result))
    return result


def minimum(*values: Array, nan: bool, xorsign: bool) -> Array:
    """The smaller; a NaN loses against a number unless it is to be propagated."""
    return _extremum(values, True, nan, xorsign)


def maximum(*values: Array, nan: bool, xorsign: bool) -> Array:
    """The larger; a NaN loses against a number unless it is to be propagated."""
    return _extremum(values, False, nan, xorsign)


def _is_small(a: Array) -> Array:
    return np.abs(a) < np.finfo(a.dtype).smallest_normal


TESTS: dict[str, Callable[[Array], Array]] = {  # what testp asks
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & ~_is_small(a),
    "subnormal": lambda a: (a != 0) & _is_small(a),
}
