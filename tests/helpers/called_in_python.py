"""Functions whose calls Python runs, and the shapes of such calls."""

from __future__ import annotations

from typing import Any

from parakeet_py.llvm.entry.plain_gate import Shape


def plain(x: Any, n: Any = 3, *, k: Any = 1) -> Any:
    return n, k


def summed(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j]
    return total


def of(*args: Any, **kwargs: Any) -> Shape:
    shape = Shape.of(args, kwargs)
    assert shape is not None
    return shape
