"""Functions that the tests export, with calls of them. Those of one function are one library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SCALE = 2.5
STEPS = [1.5, 2.5, 0.25, -1.0, 8.0, 3.0]
WEIGHTS = np.linspace(-1.0, 1.0, 12)[::-2]
LARGE = np.zeros(200_000)


def elementary(a: Any, b: Any) -> Any:
    return np.exp(-a) * b + np.arcsin(a / 2) + np.log(a + 1)


def summary(a: Any) -> Any:
    return a.sum(), float(a.max()), a.mean(axis=0), len(a)


def recurrence(a: Any, k: float) -> None:
    for i in range(1, len(a)):
        a[i] = a[i - 1] * k + a[i]


def laplace(a: Any) -> Any:
    return a[1:-1, 1:-1] * 4 - a[:-2, 1:-1] - a[2:, 1:-1] - a[1:-1, :-2] - a[1:-1, 2:]


def product(a: Any, b: Any) -> Any:
    return a @ b


def views(a: Any) -> Any:
    return a, a[1:], a[::-1], a * 2, (a.min(), [a.max(), None, "text"])


def shared(n: int) -> Any:
    made = np.arange(n) * 1.5
    return made, made[2:], made, np.zeros((n, 0)), np.ones(()), np.full((2, n), 7, np.int16)


def squares(n: int) -> Any:
    found = []
    for i in range(n):
        if i % 3:
            found.append(i * i)
    return found


def in_order(a: Any) -> Any:
    whole = a.copy()
    whole.sort()
    return np.sort(a), np.unique(a), np.median(a), np.argsort(a, kind="stable"), whole


def put_together(a: Any) -> Any:
    pairs = [(i, x * 2) for i, x in enumerate(a) if x > 1]
    return pairs, [[i, -i] for i in range(3)], {int(x) for x in a}, {int(x) % 5: float(x) for x in a}


def by_name(a: Any, scale: Any = 2.0, *more: Any, shift: int = 1, kind: str = "low") -> Any:
    held = a * scale + shift
    for one in more:
        held = held + one
    return {"kept": held[held > 0.5], kind: held.min(), 3: (shift,)}


def scaled(a: Any) -> Any:
    return a * SCALE, a[:6] @ WEIGHTS, sum([one * a[0] for one in STEPS])


def power(base: int, exponent: int) -> int:
    made = 1
    for _ in range(exponent):
        made = made * base
    return made


def depth(n: int) -> int:
    return 0 if n <= 0 else 1 + depth(n - 1)


def inverse(x: Any, y: Any, a: Any, i: int) -> Any:
    if x < 0:
        raise ValueError(f"no negative numbers, and {y} neither")
    return 1 / x + a[i]


def scalars(flag: bool, z: complex, small: Any, single: Any, whole: Any) -> Any:
    return not flag, z * 2, small + small, single * single, whole + 1, z.real


def halves(a: Any) -> Any:
    return a + a.dtype.type(0.5)


def taken_apart(text: str, values: Any, both: Any) -> Any:
    count = 0
    for letter in text:
        if letter == "a":
            count += 1
    return count, sum(values), both[0] + both[1][0], both[1][1]


def copied(to: Any, source: Any) -> None:
    to[1:] = source[:-1]


_line = np.linspace(0.1, 1.9, 40)
_grid = np.arange(63.0).reshape(7, 9)

CALLS: dict[Callable[..., Any], list[tuple[Any, ...]]] = {
    elementary: [(_line, _line), (_line[::2], 1.5), (_line.astype(np.float32), np.float32(3))],
    summary: [(_grid,), (_grid.astype(np.int32),), (np.asfortranarray(_grid),), (_grid[:, ::2],)],
    recurrence: [(_line.copy(), 0.5), (_line.astype(complex), 0.5)],
    laplace: [(_grid,), (_grid[::-1, 1:],), (_grid.T[1:, ::2],)],
    product: [(_grid, _grid.T.copy()), (_grid, _grid.T), (_grid, _grid[0].copy()), (_line, _line)],
    views: [(_line.copy(),)],
    shared: [(9,)],
    squares: [(10,), (0,)],
    put_together: [(_line,)],
    in_order: [(np.tile(np.array([3.0, np.nan, -1.0, 2.0]), 15),), (np.arange(60, dtype=np.int8) * 37 % 11,)],
    by_name: [(_line,), (_line, 3.0, _line, 2, 4), (_line, 1)],
    scaled: [(_line,)],
    power: [(3, 5), (10, 30)],
    depth: [(100,), (100_000,)],
    inverse: [
        *((4, 2, _line, 3), (-3, 7, _line, 1), (-2.5, 0.1, _line, 1), (0, 1, _line, 1)),
        *((np.float64(0.5), 1, _line, -1), (4, 2, _line, -41), (4, 2, np.arange(5), 9)),
    ],
    scalars: [(True, 1 + 2j, np.int8(100), np.float32(1.1), np.uint64(2**63))],
    halves: [(_line.astype(np.float16),), (_line.astype(np.complex64),), (_line.astype(np.complex128),)],
    taken_apart: [
        ("abaäa", [1.0, 2.0, 3.0, 4.0, 5.5], (_line, (2.0, 5))),
        ("", [1, 2, 3, 4, 5, 6], [_line, (2.0, None)]),
    ],
    copied: [(np.zeros(5), np.arange(5.0))],
}


def row_sums(a: Any) -> Any:
    return a.sum(axis=1)


def areas(sides: Any) -> Any:
    return [x * y for x, y in sides]
