"""The flags of a `DeviceArray`, which are read, and set, as those of NumPy's arrays are."""

from __future__ import annotations

from typing import Any


class ArrayFlags:
    """The flags of one array: those of what stands for it on the host."""

    def __init__(self, array: Any) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array.stand_in.flags, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._array.stand_in.flags, name, value)
        self._array.take_layout()

    def __getitem__(self, name: str) -> Any:
        return self._array.stand_in.flags[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._array.stand_in.flags[name] = value
        self._array.take_layout()

    def __eq__(self, other: object) -> bool:
        own = self._array.stand_in.flags
        return bool(own == (other._array.stand_in.flags if isinstance(other, ArrayFlags) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._array.stand_in.flags)
