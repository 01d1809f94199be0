"""Columns are copied before reductions that read them for every kept point, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np

from parakeet_py import accelerate


def deep(points: Any, others: Any) -> Any:
    apart = (points[:, 0, None] - others[None, :, 1]) ** 2
    return np.sum(1 / np.sqrt(1 + apart) / (2 + apart) / (3 + apart), axis=1)


def shallow(points: Any, others: Any) -> Any:
    return np.sum(points[:, 0, None] * others[None, :, 1], axis=1)


def along_rows(points: Any, others: Any) -> Any:
    apart = (points[:, 0, None] - others[1, None, :]) ** 2
    return np.sum(1 / np.sqrt(1 + apart) / (2 + apart) / (3 + apart), axis=1)


def copies(function: Any, *args: Any) -> int:
    compiled = accelerate(function, when="now")
    np.testing.assert_array_equal(compiled(*args), function(*args))
    return str(compiled.imp(*args)).count("column.")


def test_columns_of_deep_bodies_are_copied() -> None:
    points, others = np.arange(12.0).reshape(4, 3), np.arange(10.0).reshape(5, 2)
    assert copies(deep, points, others) > 0
    assert copies(deep, points, np.asfortranarray(others)) == 0  # its columns are contiguous
    assert copies(shallow, points, others) == 0
    assert copies(along_rows, points, others) == 0


def test_strided_vectors_are_copied() -> None:
    def between(x: Any, y: Any) -> Any:
        apart = (x[:, None] - y[None, :]) ** 2
        return np.sum(1 / np.sqrt(1 + apart) / (2 + apart) / (3 + apart), axis=1)

    y = np.arange(20.0)
    assert copies(between, y[:3], y) == 0
    assert copies(between, y[:3], y[::2]) > 0
