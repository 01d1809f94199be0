"""Binding as Python itself does it: arguments to parameters, items to targets, with its errors and their words.

The evaluator has Python compile a small function for each case, instead of imitating what it does.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from parakeet_py.frontend.ssa import Function


def shim_of(function: Function) -> types.FunctionType:
    """A Python function with the parameters of `function` (Python itself binds arguments and words the errors)."""
    parts: list[str] = []
    for index, param in enumerate(function.params):
        before = function.params[index - 1] if index else None
        if before is not None and before.positional_only and not param.positional_only:
            parts.append("/")
        if param.kind == "keyword" and (before is None or before.kind == "positional"):
            parts.append("*")
        stars = {"vararg": "*", "varkw": "**"}.get(param.kind, "")
        parts.append(f"{stars}{param.name}" + ("=None" if param.has_default else ""))
    if function.params and function.params[-1].positional_only:
        parts.append("/")
    names = [param.name for param in function.params]
    run = "run"
    while run in names:
        run += "_"
    given = "".join(f"{name}, " for name in names)
    text = f"def make({run}):\n def shim({', '.join(parts)}):\n  return {run}(({given}))\n return shim"
    scope: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), scope)
    shim: types.FunctionType = scope["make"](None)
    return shim


@lru_cache(maxsize=256)
def unpacker(before: int, star: bool, after: int) -> Callable[[Any], tuple[Any, ...]]:
    """A function that unpacks as an assignment does, with its messages."""
    names = [f"a{index}" for index in range(before)]
    names += (["*rest"] if star else []) + [f"b{index}" for index in range(after)]
    targets = "".join(f"{name}, " for name in names) or "()"
    values = "".join(name.removeprefix("*") + ", " for name in names)
    scope: dict[str, Any] = {}
    exec(compile(f"def unpack(value):\n {targets} = value\n return ({values})", __file__, "exec"), scope)
    unpack: Callable[[Any], tuple[Any, ...]] = scope["unpack"]
    return unpack


def merged(target: Any, args: list[Any], keywords: dict[str, Any], more: Any) -> dict[str, Any]:
    """Keyword arguments of a mapping that is no dict; Python words what is wrong with them."""
    if not hasattr(more, "keys") or any(key in keywords for key in more.keys()):  # noqa: SIM118
        target(*args, **keywords, **more)  # raises TypeError
    return dict(more)


def is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")
