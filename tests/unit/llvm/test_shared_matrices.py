"""Products of one matrix and two vectors by blocks of rows, in machine code: the values, whatever the layouts are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.typed_ir.passes.loops import shared_matrices


def along_and_across(a: Any, x: Any, y: Any) -> Any:
    return a @ x, y @ a


def in_turn(a: Any, x: Any, y: Any) -> Any:
    y -= a @ x
    return (a @ x) @ a, a @ (2 * x), y


@pytest.mark.parametrize(("dtype", "threads", "parts"), [("f8", 2, 1), ("f8", 2, 3), ("f4", 1, 2)])
def test_products_by_blocks_of_rows_are_right(
    dtype: str, threads: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_matrices, "BLOCK", 16384)
    monkeypatch.setattr(shared_matrices, "product_parts", lambda: parts)
    random = np.random.default_rng(0)

    def make(*shape: int) -> Any:
        made = random.integers(-2, 3, shape)
        return made.astype(dtype)

    for function in (along_and_across, in_turn):
        compiled: Any = accelerate(when="now")(function)
        for rows in (4099, 3):
            a, x, y = make(rows, 37), make(37), make(2 * rows)[::2]
            with options(threads=threads, check=2, cache=False):
                found = compiled(a, x, y.copy())
            expected = function(a, x, y.copy())
            for one, other in zip(expected, found, strict=True):
                assert one.dtype == other.dtype
                assert np.array_equal(one, other)  # whole numbers: in any order
        assert " in range(" in compiled.typed_ir(a, x, y)
