"""Places in the user's source, which every stage and every error speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from parakeet_py.base.fast_dataclass import record


@record
class Pos:
    """A place in the user's source: 1-based lines, 0-based columns, as the `ast` module counts them."""

    line: int
    column: int
    end_line: int
    end_column: int


Handler = tuple[int, int]
"""Which handler of exceptions in a file: the line and column of its `except`, or of the `try` of its `finally`."""


@record
class InHandler(Pos):
    """A place in handlers of exceptions, outermost first, the last of which runs while its exception is handled."""

    handlers: tuple[Handler, ...]


class SourceText(Protocol):
    """Something with source: a function of any of the representations."""

    @property
    def filename(self) -> str: ...

    @property
    def lines(self) -> Sequence[str]: ...

    @property
    def first_line(self) -> int: ...


class Line(NamedTuple):
    """A line of a stage's text, and the place in the user's source that it is made from, where it is one."""

    text: str
    pos: Pos | None = None

    def indented(self) -> Line:
        return Line(f"    {self.text}", self.pos)
