"""The annotations of nested functions that are made anew, by the compiler or while a call is observed.

Python evaluates annotations where a function is defined (from 3.14 on, when they are asked for; after `from __future__
import annotations`, not at all). So that a function made anew has what Python's would have, Python is given the source
of a function with these annotations, and nothing else, under the globals and future statements of the function around.
"""

from __future__ import annotations
import __future__

import functools
import types
from typing import Any

_FLAGS = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
_FUTURES = functools.reduce(int.__or__, _FLAGS)


def annotate(made: types.FunctionType, form: str, around: types.FunctionType) -> None:
    """Give a function the annotations of `form`, the source of a function that is defined in `around`.

    Raises
    ------
    Exception
        Whatever the annotations raise where Python evaluates them at once.
    """
    scope: dict[str, Any] = {}
    exec(_compiled(form, around.__code__.co_flags & _FUTURES), around.__globals__, scope)
    (like,) = scope.values()
    if hasattr(like, "__annotate__"):
        made.__annotate__ = like.__annotate__  # type: ignore[attr-defined]
    else:
        made.__annotations__ = like.__annotations__


@functools.lru_cache(maxsize=256)
def _compiled(form: str, flags: int) -> types.CodeType:
    made: types.CodeType = compile(form, "<annotations>", "exec", flags, dont_inherit=True)
    return made
