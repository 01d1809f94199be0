"""The entry of the catalogue that a message belongs to, or that has a code."""

from __future__ import annotations

import re
from functools import lru_cache

from parakeet_py.base.config import nearest
from parakeet_py.messages.catalogue import CATALOGUE
from parakeet_py.messages.entry import Entry


@lru_cache(maxsize=1)
def _forms() -> tuple[tuple[re.Pattern[str], Entry], ...]:
    return tuple((re.compile("|".join(entry.forms), re.DOTALL), entry) for entry in CATALOGUE)


@lru_cache(maxsize=1024)
def entry_of(message: str) -> Entry | None:
    """The entry of the catalogue that a refusal's text belongs to."""
    return next((entry for form, entry in _forms() if form.fullmatch(message)), None)


def entry_named(code: str) -> Entry:
    """The entry with a code; raises `KeyError`, with a question about the nearest one."""
    for entry in CATALOGUE:
        if entry.code == code:
            return entry
    codes = [entry.code for entry in CATALOGUE]
    raise KeyError(f"no message {code}; {nearest(code, codes)}there are {', '.join(codes)}")
