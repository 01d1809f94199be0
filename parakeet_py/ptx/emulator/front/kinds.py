"""PTX types and the NumPy arrays that hold their values.

A register is a container of bits; an instruction's type says how they are read. The emulator names the ways with a
letter and a size in bytes: `u1 … u8` unsigned, `i1 … i8` signed, `f2 f4 f8` binary floating point, `p` a predicate
(bool). A `bf16` has no NumPy type and travels as `u2`; the packed pairs (`f16x2`, `bf16x2`, `s16x2`) travel as `u4`,
`f32x2` as `u8`. A bit type (`.b32`) is unsigned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_NUMBERS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
DTYPES: dict[str, np.dtype[Any]] = {**{kind: np.dtype(kind) for kind in _NUMBERS}, "p": np.dtype(np.bool_)}

KIND_OF_TYPE: dict[str, str] = {
    "pred": "p",
    **{f"b{n}": f"u{n // 8}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"u{n // 8}" for n in (8, 16, 32, 64)},
    **{f"s{n}": f"i{n // 8}" for n in (8, 16, 32, 64)},
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "bf16": "u2",
    "tf32": "u4",
    "f16x2": "u4",
    "bf16x2": "u4",
    "u16x2": "u4",
    "s16x2": "u4",
    "f32x2": "u8",
    "e4m3x2": "u2",
    "e5m2x2": "u2",
}


def size_of(kind: str) -> int:
    """Bytes of a kind (a predicate counts one)."""
    return 1 if kind == "p" else int(kind[1])


def size_of_type(ptx_type: str) -> int:
    """Bytes of a PTX type such as "f32"."""
    return size_of(KIND_OF_TYPE[ptx_type])


def constant(value: int, kind: str) -> Array:
    """A value given as bits or as a (possibly negative) integer, as an array of one element."""
    if kind == "p":
        return np.array([value & 1], dtype=np.bool_)
    size = size_of(kind)
    bits = np.array([value & ((1 << (8 * size)) - 1)], dtype=DTYPES[f"u{size}"])
    return bits.view(DTYPES[kind])
