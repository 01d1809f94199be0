"""Tiles in time: bits are those of whole sweeps, whatever the tiles; what depends on other rows stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.typed_ir.passes.loops import time_tiles


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(time_tiles, "FIRST", 1200)
    monkeypatch.setattr(time_tiles, "FIRST_ROUNDS", 4)
    monkeypatch.setattr(time_tiles, "INNER", 1200)
    monkeypatch.setattr(time_tiles, "OUTER", 1200)
    monkeypatch.setattr(time_tiles, "LARGER", 1)
    monkeypatch.setattr(time_tiles, "product_parts", lambda: 2)
    with options(cache=False):
        yield


def relaxed(a: Any, b: Any, rounds: Any) -> None:
    for _ in range(rounds):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


def waves(e: Any, f: Any, h: Any, source: Any, rounds: Any) -> None:
    for t in range(rounds):
        f[0, :] = source[t]
        f[1:, :] = f[1:, :] - 0.5 * (h[1:, :] - h[:-1, :])
        e[:, 1:] = e[:, 1:] - 0.5 * (h[:, 1:] - h[:, :-1])
        h[:-1, :-1] = h[:-1, :-1] - 0.7 * (e[:-1, 1:] - e[:-1, :-1] + f[1:, :-1] - f[:-1, :-1])


def bordered(a: Any, b: Any, rounds: Any) -> None:
    for _ in range(rounds):
        b[1:-1, 1:-1] = a[2:, 1:-1] + a[:-2, 1:-1] - 1.5 * a[1:-1, :-2]
        b[:, -1] = b[:, -2]
        b[0, :] = b[1, :]
        b[-1, :] = b[-3, :]
        a[:, :] = 0.5 * b


def one_sided(a: Any, b: Any, rounds: Any) -> None:
    for t in range(3, 3 + rounds):
        b[:-3] = a[3:] / t
        a[:-2] = b[2:] + 1.0
        a[4:] = b[:-4]


def far_rows(a: Any, b: Any, rounds: Any) -> None:
    for _ in range(rounds):
        b[1:] = a[:-1] + a[5]
        a[1:] = b[1:] * 0.5


def turned(a: Any, b: Any, rounds: Any) -> None:
    for _ in range(rounds):
        b[:] = a[::-1] + 1.0
        a[:] = b * 0.5


LINE = np.random.default_rng(0).random(900) - 0.25
PLANE = np.random.default_rng(1).random((90, 7)) - 0.25


def special(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    a = a.copy()
    a[3], a[50], a[77] = np.nan, np.inf, -0.0
    return a


CASES = [
    (relaxed, (LINE, LINE[::-1].copy(), 50), True),
    (relaxed, (special(LINE), LINE * 2, 7), True),
    (relaxed, (LINE, LINE * 2, 1), True),
    (relaxed, (LINE, LINE * 2, 0), True),
    (relaxed, (LINE, LINE * 2, -3), True),
    (relaxed, (PLANE, PLANE * 2, 9), True),
    (relaxed, (LINE[:2], LINE[2:4], 9), True),
    (relaxed, (LINE[:1], LINE[2:4], 9), False),
    (relaxed, (LINE[:0], LINE[9:9], 9), True),
    (relaxed, (LINE.astype("f4"), LINE.astype("f4") * 2, 30), True),
    (waves, (PLANE, PLANE * 2, special(PLANE), np.arange(30.0), 30), True),
    (waves, (PLANE[:, :1] + 1, PLANE[:, :1] + 2, PLANE[:, :1] + 3, np.arange(30.0), 30), False),
    (bordered, (PLANE, PLANE * 2, 21), True),
    (one_sided, (LINE, LINE * 2, 40), True),
    (far_rows, (LINE, LINE * 2, 20), False),
    (turned, (LINE, LINE * 2, 20), False),
]


@pytest.mark.parametrize(("function", "args", "tiled"), CASES)
def test_the_bits_of_whole_sweeps(function: Callable[..., None], args: tuple[Any, ...], tiled: bool) -> None:
    fast = accelerate(when="now", tiers=False)(function)
    expected = copy.deepcopy(args)
    with np.errstate(all="ignore"):
        function(*expected)
    for threads in (1, 2):
        mine = copy.deepcopy(args)
        with options(threads=threads):
            fast(*mine)
        for want, got in zip(expected, mine, strict=True):
            assert np.array_equal(want, got, equal_nan=True)
    assert ("phase" in fast.typed_ir(*args)) == tiled


def test_one_array_under_two_names() -> None:
    fast = accelerate(when="now", tiers=False)(relaxed)
    a, b = LINE.copy(), LINE.copy()
    fast(a.copy(), a.copy(), 4)
    for shift in (0, 1):
        fast(a[: 900 - shift], a[shift:], 30)
        relaxed(b[: 900 - shift], b[shift:], 30)
        assert np.array_equal(a, b)


def test_a_broadcast_that_fails_in_a_later_call() -> None:
    fast = accelerate(when="now", tiers=False)(relaxed)
    fast(LINE.copy(), LINE.copy(), 4)
    a, b = LINE.copy(), LINE[:-1].copy()
    with pytest.raises(ValueError, match="could not broadcast"):
        fast(a, b, 30)
    assert np.array_equal(a, LINE)
