"""Arguments of random programs, as recipes: arrays whose shapes have to do with each other, windows of one buffer, an
array twice, numbers, lists. `variants` are other arguments for the same program: what it does with those too is
compared, whether it goes on or raises.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.arrays import Array

DTYPES = ["f8", "i8", "f4", "i4", "u1", "b1"]
MORE_DTYPES = ["i1", "i2", "u2", "u4", "u8", "f2", "c16", "c8"]
LAYOUTS = ["C", "F", "reversed", "stepped", "inner", "readonly", "transposed"]
REFUSED_LAYOUTS = ["unaligned", "swapped"]
RARE_LAYOUTS = ["broadcast", *REFUSED_LAYOUTS]
SPECIAL = (1.5, float("nan"), -0.0, float("inf"), -2.5, 0.0)
VALUES: list[tuple[float, ...]] = [(3, -1, 2, 0, -2, 1, 5), (1, 4, -3, 2), (0, 1, 0, -2, 7, 1, -1, 2, 2), (0,), SPECIAL]
VECTORS = ["[1:6]", "[:5]", "[5::-1]", "[::2]", "[2:8]", "[::-1]"]
MATRICES = [
    ".reshape(3, 4)",
    ".reshape(3, 4).T",
    ".reshape(4, 3)[1:]",
    ".reshape(4, 3)[:-1, ::-1]",
    "[:9].reshape(3, 3)",
]
MATRICES += ["[:9].reshape(3, 3).T", "[3:].reshape(3, 3)", ".reshape(3, 4)[1]", ".reshape(3, 4)[:, 1]"]
NUMBERS: list[Any] = [2.5, -3, True, np.float32(1.5), np.int8(2), np.float64(-0.5), np.uint8(3), 1j, np.bool_(False)]
NUMBERS += [0.0, np.int64(-1), np.float16(0.5)]
SEQUENCES: list[Any] = [[1, 2, 3], (2, 0.5), [0.5, -1.0], (1, 3, 2), [[1, 2], [3, 4]], [(1, 0.5), (2, -1.5)], range(4)]
SEQUENCES += [
    {"n": 3, "eps": 0.5, "mode": "up"},
    {1: 2.0, 3: -1.0},
    ("up", "down"),
    [True, False, True],
    ((1, 2), 3.5),
    [],
]


@dataclass(frozen=True)
class Overlapping:
    """Arguments that are windows of one buffer."""

    dtype: str
    windows: tuple[str, ...]

    def make(self) -> list[np.ndarray]:
        buffer = Array(self.dtype, (12,), "C", VALUES[0]).make()
        return [eval(f"buffer{window}", {"buffer": buffer}) for window in self.windows]


@dataclass
class Body:
    """An argument with attributes."""

    x: Any
    t: Any
    n: int


@dataclass(frozen=True)
class Attributes:
    """A `Body` of these."""

    x: Array
    t: Any
    n: int

    def make(self) -> Body:
        return Body(self.x.make(), self.t, self.n)


@dataclass(frozen=True)
class Nested:
    """A tuple, list or dict (of the keys a, b...) of arrays."""

    kind: str
    items: tuple[Array, ...]

    def make(self) -> Any:
        items = [item.make() for item in self.items]
        return (
            dict(zip("abc", items, strict=False))
            if self.kind == "dict"
            else {"tuple": tuple, "list": list}[self.kind](items)
        )


@dataclass(frozen=True)
class Same:
    """The argument at a position once more."""

    position: int


def made(recipes: Sequence[Any]) -> tuple[Any, ...]:
    """Fresh arguments."""
    args: list[Any] = []
    for recipe in recipes:
        match recipe:
            case Overlapping():
                args += recipe.make()
            case Array() | Attributes() | Nested():
                args.append(recipe.make())
            case Same():
                args.append(args[recipe.position])
            case list() | dict():
                args.append(copy.deepcopy(recipe))
            case _:
                args.append(recipe)
    return tuple(args)


def _array(dtype: str, shape: tuple[int, ...], layout: str, values: tuple[float, ...]) -> Array:
    if values == SPECIAL and dtype[0] not in "fc":
        values = VALUES[1]
    return Array(dtype, shape, layout, tuple(map(abs, values)) if dtype[0] == "u" else values)


def enlarged(given: Sequence[Any], factor: int) -> tuple[Any, ...]:
    """Arguments like those given, with extents so many times as long."""

    def longer(recipe: Any) -> Any:
        if not isinstance(recipe, Array):
            return recipe
        return replace(recipe, shape=tuple(extent * factor if extent > 1 else extent for extent in recipe.shape))

    return tuple(map(longer, given))


@st.composite
def recipes(draw: st.DrawFn) -> tuple[Any, ...]:
    """One to five arguments, and an int from 0 to 4."""
    n, m = draw(st.sampled_from([3, 2, 4, 5, 1, 0])), draw(st.sampled_from([2, 3, 1, 4]))
    shapes = [(n,), (n,), (n, m), (n, n), (m,), (1, m), (n, 1), (2, n, m), ()]
    chosen: list[Any] = []
    for _ in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from([*DTYPES, *DTYPES, *MORE_DTYPES]))
        layouts = [*LAYOUTS * 8, *RARE_LAYOUTS]
        layout, shape = draw(st.sampled_from(layouts)), draw(st.sampled_from(shapes))
        chosen.append(_array(dtype, shape, layout, draw(st.sampled_from(VALUES))))
    more = draw(st.integers(0, 16))
    if more in (10, 11):
        windows = st.sampled_from(VECTORS if more == 10 else MATRICES)
        chosen.append(Overlapping(draw(st.sampled_from(DTYPES[:4])), tuple(draw(windows) for _ in "ab")))
    elif more in (13, 14):
        kind = draw(st.sampled_from(["tuple", "tuple", "list", "dict"]))
        shape, dtypes = draw(st.sampled_from(shapes)), draw(st.sampled_from([("f8", "f8"), ("f8", "i8"), ("i4",) * 3]))
        chosen.append(Nested(kind, tuple(_array(dtype, shape, "C", VALUES[0]) for dtype in dtypes)))
    elif more == 15:
        chosen.append(
            draw(st.sampled_from([None, "up", "down", slice(1, None), slice(None, None, -1), np.float32, int]))
        )
    elif more == 12:
        chosen.append(Attributes(_array(draw(st.sampled_from(DTYPES[:4])), (n,), "C", VALUES[0]), 0.5, 2))
    elif more in (8, 9):
        chosen.append(draw(st.sampled_from(NUMBERS)))
    elif more in (7, 16):
        chosen.append(draw(st.sampled_from(SEQUENCES)))
    elif more == 6:
        chosen.append(Same(0))
    return (*chosen, draw(st.integers(0, 4)))


@st.composite
def variants(draw: st.DrawFn, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments like those given, with other extents, dtypes, layouts and numbers."""
    extents: dict[int, int] = {}
    changed: list[Any] = []
    for recipe in given:
        match recipe:
            case Array():
                for extent in recipe.shape:
                    if extent not in extents:
                        extents[extent] = draw(st.sampled_from([extent, 3, 0, 1, 2, 5]))
                recipe = replace(recipe, shape=tuple(extents[extent] for extent in recipe.shape))
                if draw(st.integers(0, 4)) == 4:
                    dtype = draw(st.sampled_from([*DTYPES, *MORE_DTYPES]))
                    recipe = _array(dtype, recipe.shape, draw(st.sampled_from(LAYOUTS)), VALUES[0])
            case (
                bool()
                | list()
                | tuple()
                | dict()
                | range()
                | Overlapping()
                | Same()
                | Attributes()
                | Nested()
                | np.generic()
            ):
                pass
            case int():
                recipe = draw(st.sampled_from([recipe, 1, 0, 2, -1, 6]))
                if draw(st.integers(0, 9)) == 9:
                    recipe = draw(
                        st.sampled_from([True, 2.0, None, np.int32(2), np.uint8(3), np.float64(1.5), "x", (1,)])
                    )
        changed.append(recipe)
    return tuple(changed)
