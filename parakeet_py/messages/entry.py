"""The form of an entry of the catalogue of messages."""

from __future__ import annotations

from parakeet_py.base.fast_dataclass import record


@record
class Entry:
    """One kind of refusal.

    Attributes
    ----------
    code : its name
    title : what it is about, to be searched for
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
