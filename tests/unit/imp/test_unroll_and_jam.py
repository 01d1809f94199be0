"""Two rows of a stencil at a time: what is read once, and the values, whatever is left over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate


@accelerate(when="now", tiers=False)
def sweep(a: Any) -> Any:
    rows = a[1:-1, :-2, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1]
    return 0.5 * rows + a[:-2, 1:-1, 1:-1] * a[2:, 1:-1, 1:-1]


@accelerate(when="now", tiers=False)
def casts_and_zeros(a: Any) -> Any:
    above, here = a[:, :-1], a[:, 1:]
    return (here.astype(np.int64) + above.astype(np.float32)) * (here + 0.0) + 1 / (above.astype(np.int8) + (-0.0))


@accelerate(when="now", tiers=False)
def apart(a: Any) -> Any:
    return a[1:-1, :, 1:-1] * 2.0 + a[2:, :, 1:-1] + a[:-2, :, 2:]


@accelerate(when="now", tiers=False)
def in_place(a: Any, b: Any) -> None:
    a[:, 1:-1] = a[:, 1:-1] * 3.0 + b[:, :-2] * b[:, 2:] + b[:, 1:-1]


def grid(*extents: int) -> Any:
    return np.random.default_rng(0).normal(size=extents) * 9


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 8, 9])
def test_pairs_of_rows_have_the_values_of_rows(rows: int) -> None:
    a = grid(4, rows, 21)
    assert np.array_equal(sweep(a), sweep.__wrapped__(a))
    with np.errstate(all="ignore"):
        assert np.array_equal(casts_and_zeros(a), casts_and_zeros.__wrapped__(a))
    assert np.array_equal(apart(a), apart.__wrapped__(a))
    mine, theirs = a.copy(), a.copy()
    in_place(mine, a[::-1].copy())
    in_place.__wrapped__(theirs, a[::-1].copy())
    assert np.array_equal(mine, theirs)


def test_rows_that_are_read_twice_are_read_once() -> None:
    text = sweep.imp(grid(4, 5, 6))
    pair = text[text.index("by 2") :].split("independent i", 1)[0]
    assert pair.count("= a0.") == 8  # four rows, and two in each plane beside
    assert pair.count(":= ") == 2


def test_rows_that_share_nothing_stay_apart() -> None:
    assert "by 2" not in apart.imp(grid(4, 5, 6))
