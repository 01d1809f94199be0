"""mma.sync: matrices spread over the lanes of a warp.

A fragment's element i of lane l is one place of the matrix; the tables below give that place for each operand and
shape. The product is formed in float64 and rounded once to the accumulator's type. The hardware adds products with
fewer bits and an order of its own, so results of float16, bfloat16 and tf32 agree with it within rounding only. Of
float64, products are added one after the other, each by a fused operation (Fasi, Higham, Mikaitis and Pranesh,
"Numerical behavior of NVIDIA tensor cores", 2021, find such roundings on the A100).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import fused, half_floats
from parakeet_py.ptx.emulator.front.kinds import Array

_LANE = np.arange(32)
_GROUP, _QUAD = _LANE // 4, _LANE % 4


@cache
def places(operand: str, shape: str, wide: bool) -> tuple[Array, Array]:
    """Row and column of each lane's elements: arrays of 32 by the number of elements.

    `wide` distinguishes elements of 32 and 64 bits (tf32, f64) from 16-bit ones, which come in pairs along a row.
    """
    k = int(shape.split("k")[1])
    rows: list[Array] = []
    columns: list[Array] = []
    if shape == "m8n8k4":
        if operand == "a":
            return _GROUP[:, None], _QUAD[:, None]
        if operand == "b":
            return _QUAD[:, None], _GROUP[:, None]
        return np.stack([_GROUP] * 2, 1), np.stack([_QUAD * 2, _QUAD * 2 + 1], 1)
    if operand == "c":
        for i in range(4):
            rows.append(_GROUP + 8 * (i // 2))
            columns.append(_QUAD * 2 + i % 2)
    elif operand == "a":
        if wide:
            for i in range(k // 2):
                rows.append(_GROUP + 8 * (i % 2))
                columns.append(_QUAD + 4 * (i // 2))
        else:
            for i in range(k // 2):
                rows.append(_GROUP + 8 * (i // 2 % 2))
                columns.append(_QUAD * 2 + i % 2 + 8 * (i // 4))
    elif wide:
        for i in range(k // 4):
            rows.append(_QUAD + 4 * i)
            columns.append(_GROUP)
    else:
        for i in range(k // 4):
            rows.append(_QUAD * 2 + i % 2 + 8 * (i // 2))
            columns.append(_GROUP)
    return np.stack(rows, 1), np.stack(columns, 1)


def _elements(registers: tuple[Array, ...], n: int, element: str) -> Array:
    """The values in registers, as float64: warps by lanes by elements."""
    columns: list[Array] = []
    for register in registers:
        full = np.ascontiguousarray(np.broadcast_to(register, (n,)))
        match element:
            case "f64":
                columns.append(full)
            case "f32":
                columns.append(full.view(np.float32))
            case "tf32":
                columns.append((full & np.uint32(0xFFFFE000)).view(np.float32))
            case _:
                pair = half_floats.open_u16x2(full)
                values = half_floats.from_bf16(pair) if element == "bf16" else pair.view(np.float16)
                columns.extend((values[:, 0], values[:, 1]))
    return np.stack([c.astype(np.float64) for c in columns], 1).reshape(n // 32, 32, len(columns))


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a @ b + c of float64, product by product."""
    total = c.ravel()
    for k in range(a.shape[-1]):
        left, right = (np.ascontiguousarray(np.broadcast_to(one, c.shape)) for one in (a[..., k, None], b[:, k, None]))
        total = fused.fma_f8(left.ravel(), right.ravel(), total, "rn")
    return total.reshape(c.shape)


def multiply(
    n: int,
    shape: str,
    ab_type: str,
    cd_type: str,
    a: tuple[Array, ...],
    b: tuple[Array, ...],
    c: tuple[Array, ...],
) -> tuple[Array, ...]:
    """d = a @ b + c for each warp; fragments in, fragments out."""
    m, rest = shape[1:].split("n")
    columns, k = rest.split("k")
    sizes = {"a": (int(m), int(k)), "b": (int(k), int(columns)), "c": (int(m), int(columns))}
    wide = ab_type in ("tf32", "f64")
    whole: dict[str, Array] = {}
    for name, registers, element in (("a", a, ab_type), ("b", b, ab_type), ("c", c, cd_type)):
        row, column = places(name, shape, wide)
        matrix = np.zeros((n // 32, *sizes[name]))
        matrix[:, row, column] = _elements(registers, n, element)
        whole[name] = matrix
    product = _fused(**whole) if cd_type == "f64" else whole["a"] @ whole["b"] + whole["c"]
    row, column = places("c", shape, wide)
    result = product[:, row, column].reshape(n, -1)
    if cd_type == "f64":
        return tuple(np.ascontiguousarray(result[:, i]) for i in range(result.shape[1]))
    if cd_type == "f32":
        single = result.astype(np.float32)
        return tuple(np.ascontiguousarray(single[:, i]).view(np.uint32) for i in range(single.shape[1]))
    half = np.ascontiguousarray(result.astype(np.float16))
    packed = half.view(np.uint32)
    return tuple(np.ascontiguousarray(packed[:, i]) for i in range(packed.shape[1]))
