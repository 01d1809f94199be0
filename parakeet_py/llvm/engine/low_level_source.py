"""Texts of low-level Python, by themselves: modules that hold them are imported before anything is translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Source(NamedTuple):
    """A text of low-level Python, and what its constants are."""

    text: str
    constants: Mapping[str, int | str] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """What its meaning depends on, as `disk_cache.digest` takes it."""
        return (self.text, *(part for item in self.constants.items() for part in item))
