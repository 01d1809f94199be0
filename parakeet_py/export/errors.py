"""The error for what cannot be exported."""

from __future__ import annotations

from parakeet_py.base.errors import ParakeetError


class ExportError(ParakeetError):
    """A function, a signature or a setting that cannot be exported; the text says what and why."""
