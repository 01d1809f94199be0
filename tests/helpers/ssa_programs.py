"""Compares a Python function with its untyped IR, and makes functions from text, for tests."""

from __future__ import annotations

import copy
import linecache
from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any

from parakeet_py.frontend import to_ssa
from parakeet_py.frontend.check import check_function
from parakeet_py.frontend.evaluate.evaluator import evaluate

_numbers = count()


def define(text: str, name: str = "f", **scope: Any) -> FunctionType:
    """The function `name` of a module text, with its source where `linecache` finds it."""
    filename = f"<test {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)
    function = scope[name]
    assert isinstance(function, FunctionType)
    return function


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives: the result or the exception, and the arguments afterwards."""
    args = copy.deepcopy(args)
    try:
        result = function(*args)
    except Exception as error:
        text = str(error)
        return ("raised", type(error), text, repr(args))
    return ("returned", type(result), repr(result), repr(args))


def assert_same(function: FunctionType, *calls: tuple[Any, ...]) -> None:
    """The IR of a function is well-formed and does what the function does."""
    executed = evaluate(check_function(to_ssa(function)), function)
    for args in calls:
        assert outcome(executed, args) == outcome(function, args), args
