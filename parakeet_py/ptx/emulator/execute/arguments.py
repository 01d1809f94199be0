"""What a launch is given: dimensions, and arguments as the bytes of a kernel's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import LaunchError
from parakeet_py.ptx.emulator.front.ir import Variable

Dimensions = int | Sequence[int]
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)


def pack_argument(number: int, parameter: Variable, value: Any) -> bytes:
    """An argument as the bytes of its parameter."""
    size = parameter.size or 0
    if isinstance(value, bytes | bytearray | np.ndarray):
        data = bytes(value) if not isinstance(value, np.ndarray) else value.tobytes()
    elif isinstance(value, np.generic):
        data = value.tobytes()
        if len(data) != size and parameter.type not in ("f16", "f32", "f64") and value.dtype.kind in "iub":
            data = (int(value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        elif len(data) != size and not parameter.array:
            data = np.array(value).astype(f"f{size}").tobytes()
    elif isinstance(value, float):
        data = np.array(value, dtype=f"f{size}").tobytes() if size in (2, 4, 8) else b""
    elif isinstance(value, int):
        if parameter.type in ("f32", "f64"):
            data = np.array(float(value), dtype=f"f{size}").tobytes()
        else:
            data = (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    else:
        raise LaunchError(f"argument {number} is a {type(value).__name__}, which a kernel cannot take")
    if len(data) != size:
        raise LaunchError(f"argument {number} has {len(data)} bytes; parameter {parameter.name} has {size}")
    return data


def dimensions(given: Dimensions, what: str, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    sizes = (int(given),) if isinstance(given, int | np.integer) else tuple(int(v) for v in given)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"a {what} has one to three dimensions, not {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    for size, limit in zip((x, y, z), limits, strict=True):
        if not 1 <= size <= limit:
            raise LaunchError(f"a {what} of {sizes}; the most is {limits}, and none may be zero")
    return x, y, z
