"""The error for what cannot be exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parakeet_py.base.errors import ParakeetError


class ExportError(ParakeetError):
    """A function, a signature or a setting that cannot be exported; the text says what and why."""


@contextmanager
def told_of(call: str) -> Iterator[None]:
    """Errors of the block say which call cannot be exported."""
    try:
        yield
    except ExportError as error:
        raise ExportError(f"{call} cannot be exported: {error}") from None
