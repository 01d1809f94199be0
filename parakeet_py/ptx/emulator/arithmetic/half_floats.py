"""The 16-bit formats: opening and closing packed pairs, and bfloat16.

A pair in a 32-bit register is opened to a row of two values (the lower half first), so that an operation on an array
of one row still broadcasts against many lanes. bfloat16 is the upper half of a float32: exact to open, and rounded to
nearest even to close. A sum, product or quotient of two bfloat16 computed in float32 and rounded again is the correctly
rounded one, since 24 bits are at least twice 8 plus 2.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import floats
from parakeet_py.ptx.emulator.front.kinds import Array


def open_f16x2(a: Array) -> Array:
    """Rows of two float16."""
    return np.ascontiguousarray(a).view(np.float16).reshape(-1, 2)


def open_u16x2(a: Array) -> Array:
    """Rows of two 16-bit patterns."""
    return np.ascontiguousarray(a).view(np.uint16).reshape(-1, 2)


def open_f32x2(a: Array) -> Array:
    """Rows of two float32."""
    return np.ascontiguousarray(a).view(np.float32).reshape(-1, 2)


def close_x2(a: Array, kind: np.dtype[np.generic]) -> Array:
    """Rows of two as one register; a NaN of float arithmetic gets the pattern that a device gives it."""
    if a.dtype.kind == "f":
        a = floats.quiet(a)
    return np.ascontiguousarray(a).view(kind).reshape(-1)


def from_bf16(a: Array) -> Array:
    """bfloat16 patterns as float32."""
    return (a.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(a: Array, mode: str = "rn") -> Array:
    """float32 rounded to bfloat16 patterns."""
    bits = np.ascontiguousarray(a, dtype=np.float32).view(np.uint32)
    upper = bits >> np.uint32(16)
    lower = bits & np.uint32(0xFFFF)
    match mode:
        case "rz":
            up = np.zeros(bits.shape, dtype=np.bool_)
        case "rn":
            up = (lower > 0x8000) | ((lower == 0x8000) & ((upper & np.uint32(1)) != 0))
        case "rna":
            up = lower >= 0x8000
        case _:
            negative = (bits >> np.uint32(31)) != 0
            up = (lower != 0) & (negative if mode == "rm" else ~negative)
    rounded = (upper + up).astype(np.uint16)
    # Infinity has no bits below: it stays. A NaN must not be carried into something else.
    return np.where(np.isnan(a), np.uint16(0x7FFF), rounded)
