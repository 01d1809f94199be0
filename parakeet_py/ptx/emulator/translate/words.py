"""Registers as pieces: splitting and joining them, byte aggregates passed to functions, guarded writes of several."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py.ptx.emulator.arithmetic import floats, half_floats
from parakeet_py.ptx.emulator.front.kinds import DTYPES, Array


def split(a: Array, count: int, part: np.dtype[Any]) -> tuple[Array, ...]:
    """The parts of each value, the lowest first."""
    columns = np.ascontiguousarray(a).view(part).reshape(-1, count)
    return tuple(np.ascontiguousarray(columns[:, k]) for k in range(count))


def join(parts: tuple[Array, ...], whole: np.dtype[Any]) -> Array:
    """Values from their parts, the lowest first."""
    first = parts[0].astype(whole)
    bits = 8 * parts[0].dtype.itemsize
    for number, part in enumerate(parts[1:], 1):
        first = first | (part.astype(whole) << np.array([number * bits], dtype=whole))
    return first


def merge(mask: Array, new: tuple[Array, ...], old: tuple[Array | None, ...]) -> tuple[Array, ...]:
    """Several results under a guard."""
    return tuple(n if o is None else np.where(mask, n, o) for n, o in zip(new, old, strict=True))


def zero_bytes(size: int) -> Array:
    """An aggregate that nothing has written."""
    return np.zeros((1, size), dtype=np.uint8)


def bytes_get(aggregate: Array, offset: int, kind: str) -> Array:
    """A value out of an aggregate."""
    size = DTYPES[kind].itemsize
    return np.ascontiguousarray(aggregate[:, offset : offset + size]).view(DTYPES[kind]).reshape(-1)


def bytes_put(aggregate: Array, offset: int, value: Array) -> Array:
    """An aggregate with a value put in."""
    size = value.dtype.itemsize
    rows = max(aggregate.shape[0], value.shape[0])
    changed = np.array(np.broadcast_to(aggregate, (rows, aggregate.shape[1])))
    changed[:, offset : offset + size] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, size)
    return changed


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def compare_pairs(
    a: Array, b: Array, comparison: str, logic: str, third: Array | None, bf16: bool, flush: bool
) -> tuple[Array, Array]:
    """setp on both halves of registers: a predicate for each."""
    x, y = half_floats.open_f16x2(a), half_floats.open_f16x2(b)
    if bf16:
        x, y = half_floats.from_bf16(half_floats.open_u16x2(a)), half_floats.from_bf16(half_floats.open_u16x2(b))
    if flush:
        x, y = floats.flush(x), floats.flush(y)
    unordered = np.isnan(x) | np.isnan(y)
    if comparison == "nan":
        result = unordered
    elif comparison == "num":
        result = ~unordered
    elif comparison in _OPERATORS:
        result = _OPERATORS[comparison](x, y) & ~unordered
    else:
        result = _OPERATORS[comparison[:2]](x, y) | unordered
    first, second = np.ascontiguousarray(result[:, 0]), np.ascontiguousarray(result[:, 1])
    if third is not None:
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[logic]
        first, second = combine(first, third), combine(second, third)
    return first, second
