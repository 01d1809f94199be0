"""Places in the user's source, which every stage and every error speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from parakeet_py.base.fast_dataclass import record


@record
class Pos:
    """A place in the user's source: 1-based lines, 0-based columns, as the `ast` module counts them."""

    line: int
    column: int
    end_line: int
    end_column: int


class SourceText(Protocol):
    """Something with source: a function of any of the representations."""

    @property
    def filename(self) -> str: ...

    @property
    def lines(self) -> Sequence[str]: ...

    @property
    def first_line(self) -> int: ...
