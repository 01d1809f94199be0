"""What messages about refusals have in common: a code, a hint that works, an example; the catalogue has them all.

The places that refuse something say what they have met, with the names and types of the program. The catalogue knows
the forms that these texts take, and adds to each what to do; `UnsupportedError` looks its text up when it is shown.
From the same table come the page docs/troubleshooting.md (`make docs`), `parakeet messages`, and the tests: each
example has to give its message, and what stands beside it has to be compiled.

Three words have one meaning each in all texts:

compiled     runs as machine code
handed back  one operation or call of a compiled function is done by Python
fell back    a function runs in Python as a whole, for the arguments at hand
"""

from __future__ import annotations

import re
from functools import lru_cache

from parakeet_py.base.fast_dataclass import record


@record
class Entry:
    """One kind of refusal.

    Attributes
    ----------
    code : its name
    title : what it is about, for people who look for it
    forms : regular expressions, one of which matches the whole of a text of this kind
    hint : what to do, for a message that has no closer one
    example : source of a function `f` that falls back, and of what it needs
    args : the arguments that it falls back for, as an expression
    works : another `f`, for the same purpose, that is compiled
    works_args : its arguments, where they are others
    """

    code: str
    title: str
    forms: tuple[str, ...]
    hint: str
    example: str = ""
    args: str = ""
    works: str = ""
    works_args: str = ""


@lru_cache(maxsize=1)
def _forms() -> tuple[tuple[re.Pattern[str], Entry], ...]:
    from parakeet_py.messages.catalogue import CATALOGUE

    return tuple((re.compile("|".join(entry.forms), re.DOTALL), entry) for entry in CATALOGUE)


@lru_cache(maxsize=1024)
def entry_of(message: str) -> Entry | None:
    """The entry of the catalogue that a refusal's text belongs to."""
    return next((entry for form, entry in _forms() if form.fullmatch(message)), None)


def entry_named(code: str) -> Entry:
    """The entry with a code; raises `KeyError`, with a question about the nearest one."""
    from parakeet_py.base.config import nearest
    from parakeet_py.messages.catalogue import CATALOGUE

    for entry in CATALOGUE:
        if entry.code == code:
            return entry
    codes = [entry.code for entry in CATALOGUE]
    raise KeyError(f"no message {code}; {nearest(code, codes)}there are {', '.join(codes)}")
