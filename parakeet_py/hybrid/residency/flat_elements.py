"""The elements of an array on devices in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parakeet_py.hybrid.residency.operations import operations


class FlatElements:
    """The elements of an array in one line, as `numpy.ndarray.flat` has them; what is taken is a copy."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.base.reshape(-1))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return self.base[self._place(int(key))].copy()
        return operations().taken(self.base, key, flat=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        base = self.base
        if np.ndim(value):  # several values are repeated
            operations().put(base, key, value, flat=True)
        elif isinstance(key, int | np.integer):
            base[self._place(int(key))] = value
        elif base.flags.c_contiguous:
            base.reshape(-1)[key] = value
        else:
            operations().put(base, key, value, flat=True)

    def _place(self, number: int) -> tuple[int, ...]:
        """The index of an element by its number."""
        line = range(len(self))
        if not -len(line) <= number < len(line):
            raise IndexError(f"index {number} is out of bounds for size {len(line)}")
        return tuple(map(int, np.unravel_index(line[number], self.base.shape)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.base, dtype).reshape(-1)

    def copy(self) -> Any:
        return self.base.flatten()
