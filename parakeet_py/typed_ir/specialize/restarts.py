"""What ends the walk of the specializer early, each with a way out.

Raised deep inside a function that is being specialized, and answered by the caller that can: the request names what has
to be known or done before it goes on. `UnsupportedError` (in `errors`) is the one without an answer: Python runs the
function.
"""

from __future__ import annotations

from typing import Any

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend import ssa
from parakeet_py.signature.specs import Source


class NeedStatic(Exception):
    """Parameter `index` (hidden arguments count on) has to be known by value."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index


class NeedWhole(Exception):
    """The list in parameter `index` (hidden arguments count on) has to be that very object."""

    def __init__(self, index: int) -> None:
        self.index = index


class NeedText(Exception):
    """The string in parameter `index` is looked at character by character."""

    def __init__(self, index: int) -> None:
        self.index = index


class NeedUnroll(Exception):
    """A loop index has to be known by value."""

    def __init__(self, loop: ssa.For) -> None:
        self.loop = loop


class NeedHidden(Exception):
    """A hidden argument has been found that the signature does not have yet."""

    def __init__(self, source: Source, value: Any) -> None:
        self.source = source
        self.value = value


class FieldsMayChange(Exception):
    """An operation handed back to Python might set attributes that are read as hidden arguments."""


class NeedObservation(Exception):
    """The result type of an opaque call is not known yet; `error` says so to the user, `reason` why it is one."""

    def __init__(self, key: tuple[Any, ...], reason: str, error: UnsupportedError) -> None:
        super().__init__(error.message)
        self.key = key
        self.reason = reason
        self.error = error


class TooDeep(UnsupportedError):
    """A recursion that inlining does not bring to an end; what called the recursive function first may hand it back."""


class NotGrown(UnsupportedError):
    """A list whose length depends on values has items that columns cannot hold; a loop that is unrolled may do."""


class ArrayElements(UnsupportedError):
    """A comprehension whose elements are arrays of any shape: a loop makes a list of them."""


class Sequential(UnsupportedError):
    """Something for a loop, met in the body of a parallel operator; a comprehension can be a loop instead."""


class HandBack(Exception):
    """One operation is not compiled: Python does it, the rest stays compiled."""
