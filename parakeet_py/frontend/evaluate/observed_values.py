"""What the evaluator reports: keys of operations, results, the contents of containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Key = tuple[Any, ...]  # of an operation, see `evaluator`
Observer = Callable[[Key, Any], None]


class Changed:
    """Observed instead of a result: the call has changed a list or dict that it was given, or what is watched."""

    def __repr__(self) -> str:
        return "changed"


CHANGED = Changed()


class Raised:
    """In a log, instead of a result: the exception with which an operation ended, and which the function has caught."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def contents(value: list[Any] | dict[Any, Any]) -> list[int]:
    """What a list or dict holds, to be compared while its items live."""
    return [id(item) for item in (value.values() if isinstance(value, dict) else value)]


def with_items(value: Any) -> list[Any]:
    """An object, and what it holds now if it is a list or dict."""
    if type(value) is dict:
        return [value, *value.values()]
    return [value, *value] if type(value) is list else [value]


def differ(now: Sequence[Any], then: Sequence[Any]) -> bool:
    """Are these other objects?"""
    return len(now) != len(then) or any(one is not other for one, other in zip(now, then, strict=True))
