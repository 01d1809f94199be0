"""Recipes for test arguments: an `Array` says what a NumPy array must look like, and `make()` builds it afresh.

Programs write to their arguments, so arguments are described, not stored. A recipe fixes dtype, shape, memory layout
and values; equal recipes always build equal arrays, so plain Python and the compiled function see the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

LAYOUTS = ("C", "F", "reversed", "stepped", "inner", "transposed", "readonly", "broadcast", "unaligned", "swapped")


@dataclass(frozen=True)
class Array:
    """A recipe: `dtype` as NumPy spells it ("f8"), a shape, a layout of `LAYOUTS`, and a kind of values.

    Values: "normal" (both signs), "positive", "unit" (in [-1, 1]), "special" (nan, infinities, zeros of both signs,
    subnormal and extreme numbers; the extremes of an integer type), "nonzero", "ascending", or a sequence to repeat.
    """

    dtype: str
    shape: tuple[int, ...]
    layout: str = "C"
    values: str | tuple[Any, ...] = "normal"
    seed: int = 0

    def make(self) -> np.ndarray:
        flat = np.resize(np.asarray(_values(self)), int(np.prod(self.shape)))
        return laid_out(flat.reshape(self.shape).astype(self.dtype), self.layout)

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        values = "" if self.values == "normal" else f" {self.values if isinstance(self.values, str) else 'listed'}"
        return f"{self.dtype}[{dims}]{'' if self.layout == 'C' else ' ' + self.layout}{values}"


def arr(
    dtype: str,
    *shape: int,
    layout: str = "C",
    values: str | Sequence[Any] = "normal",
    seed: int = 0,
) -> Array:
    """Short for `Array(...)`: `arr("f8", 3, 4, layout="F")`; no extents make a 0-d array."""
    return Array(dtype, shape, layout, values if isinstance(values, str) else tuple(values), seed)


def variants(recipe: Array, dtypes: str = "", layouts: str = "", values: str = "") -> list[Array]:
    """The recipe itself, then one variant for every dtype, layout and kind of values named (space separated)."""
    return [
        recipe,
        *(replace(recipe, dtype=dtype) for dtype in dtypes.split()),
        *(replace(recipe, layout=layout) for layout in layouts.split()),
        *(replace(recipe, values=kind) for kind in values.split()),
    ]


def _values(recipe: Array) -> Any:
    """Values for a recipe, before they are cast to its dtype and repeated to its size."""
    dtype, kind = np.dtype(recipe.dtype), recipe.values
    if not isinstance(kind, str):
        return np.array(kind, dtype if all(type(value) is int for value in kind) else None)
    count = max(1, int(np.prod(recipe.shape)))
    rng = np.random.default_rng([recipe.seed, count, ord(dtype.kind), 5])
    if kind == "ascending":
        return np.arange(count)
    if dtype.kind == "b":
        return np.resize([True, False], count) ^ (rng.random(count) < 0.4)
    if dtype.kind in "iu":
        return _integers(rng, dtype, kind, count)
    return _floats(rng, dtype, kind, count)


def _integers(rng: np.random.Generator, dtype: np.dtype, kind: str, count: int) -> Any:
    info = np.iinfo(dtype)
    if kind == "special":
        listed = {info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2}
        return np.array(sorted(listed if dtype.kind == "u" else listed | {-1}), dtype)
    low = 0 if dtype.kind == "u" else -9
    drawn = rng.integers(low, 10, count)
    if kind in ("positive", "nonzero"):
        drawn = np.where(drawn == 0, 3, drawn)
    return np.abs(drawn) if kind == "positive" else drawn


def _floats(rng: np.random.Generator, dtype: np.dtype, kind: str, count: int) -> Any:
    real = np.dtype(dtype.type(0).real.dtype)
    if kind == "special":
        info = np.finfo(real)
        # The largest number comes late: a sum that meets it before the infinities stays informative.
        listed = [np.nan, np.inf, -0.0, 1.5, -np.inf, 0.0, -2.0, info.smallest_subnormal, -info.tiny, info.max, -1.0]
        return np.array(listed, real) if dtype.kind == "f" else np.array([complex(v, 1) for v in listed])
    draw: Callable[[], np.ndarray] = {
        "normal": lambda: rng.normal(size=count) * 2,
        "nonzero": lambda: rng.choice([-1.0, 1.0], count) * rng.uniform(0.25, 4, count),
        "positive": lambda: rng.uniform(0.125, 4, count),
        "unit": lambda: rng.uniform(-1, 1, count),
    }[kind]
    return draw() if dtype.kind == "f" else draw() + 1j * draw()


def laid_out(values: np.ndarray, layout: str) -> np.ndarray:
    """The same values in another memory layout; the rest of the underlying buffer is filled with 77 (or True)."""
    if values.ndim == 0 and layout not in ("readonly", "unaligned", "swapped"):
        layout = "C"
    match layout:
        case "C":
            return values.copy()
        case "F":
            return np.array(values, order="F")
        case "readonly":
            copy = values.copy()
            copy.flags.writeable = False
            return copy
        case "broadcast":
            return np.broadcast_to(values[:1].copy(), values.shape)
        case "transposed":
            return np.ascontiguousarray(values.T).T
        case "rotated":  # the first axis is the fastest, the second one the slowest
            return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 0, -1)), -1, 0)
        case "reversed":
            backwards = (slice(None, None, -1),) * values.ndim
            return values[backwards].copy()[backwards]
        case "stepped":
            buffer = np.full([2 * n + 1 for n in values.shape], 77).astype(values.dtype)
            view = buffer[tuple(slice(1, 2 * n, 2) for n in values.shape)]
        case "inner":
            buffer = np.full([n + 2 for n in values.shape], 77).astype(values.dtype)
            view = buffer[tuple(slice(1, n + 1) for n in values.shape)]
        case "swapped":
            return values.astype(values.dtype.newbyteorder())
        case "unaligned":
            raw = np.zeros(values.nbytes + 1, np.uint8)
            view = raw[1:].view(values.dtype).reshape(values.shape)
        case _:
            raise ValueError(f"no layout {layout!r}")
    view[...] = values
    return view
