"""Functions that only Python can run, and calls that are compared with Python's."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from parakeet_py import accelerate

x4 = np.arange(4.0)


def hidden(text: str, **scope: Any) -> Any:
    """A function that only Python can run: it catches an exception."""
    scope |= {"np": np}
    module = ast.parse(text)
    for function in module.body:
        assert isinstance(function, ast.FunctionDef)
        handler = ast.ExceptHandler(ast.Name("GeneratorExit", ast.Load()), None, [ast.Raise()])
        function.body = [ast.Try(function.body, [handler], [], [])]
    exec(compile(ast.fix_missing_locations(module), "<string>", "exec"), scope)
    return scope[text.split("(")[0].removeprefix("def ")]


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """The function, accelerated, after a first call (which the evaluator has run)."""
    made = accelerate(function)
    made(*args)
    return made


def same(made: Any, function: Callable[..., Any], *args: Any) -> None:
    """Several calls give what Python gives."""
    for _ in range(3):
        found, expected = made(*args), function(*args)
        assert repr(found) == repr(expected)
        assert type(found) is type(expected)
    assert made.fell_back is False


identity = hidden("def identity(x): return x")
