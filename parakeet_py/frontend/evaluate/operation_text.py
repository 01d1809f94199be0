"""What an operation that is handed back does, as Python: one text for compiled code, devices and interpreters.

An operation has a name (`call`, `attribute:T`, `binary:add`...). The operands of a call are the function, positional
arguments, then the values of keywords.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parakeet_py.frontend.operators import BINARY, COMPARE, INPLACE, UNARY

_OPERATORS: dict[str, dict[str, Any]] = {"binary": BINARY, "compare": COMPARE, "inplace": INPLACE, "unary": UNARY}


def operation_text(operation: str, operands: Sequence[str], keywords: Sequence[str], names: dict[str, Any]) -> str:
    """The statement that does an operation on variables and binds `result`; what else it takes is put into `names`."""
    kind, _, name = operation.partition(":")
    match kind, operands:
        case "call", [function, *given]:
            split = len(given) - len(keywords)
            pairs = [*zip(keywords, given[split:], strict=True)]
            if all(map(_is_name, keywords)):
                named = [f"{key}={value}" for key, value in pairs]
            else:
                named = ["**{" + ", ".join(f"{key!r}: {value}" for key, value in pairs) + "}"]
            return f"result = {function}({', '.join([*given[:split], *named])})"
        case "attribute", [thing]:
            names["attribute"] = getattr
            return f"result = {thing}.{name}" if _is_name(name) else f"result = attribute({thing}, {name!r})"
        case "subscript", [thing, index]:
            return f"result = {thing}[{index}]"
        case "set_item", [thing, index, value]:
            return f"{thing}[{index}] = {value}; result = None"
        case "truth", [thing]:
            return f"result = True if {thing} else False"
        case "same", [thing]:
            return f"result = {thing}"
    names["operation"] = _OPERATORS[kind][name]
    return f"result = operation({', '.join(operands)})"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def function_for(operation: str, count: int, keywords: Sequence[str]) -> Callable[..., Any]:
    """A function of so many operands that does an operation."""
    names: dict[str, Any] = {}
    operands = [f"x{number}" for number in range(count)]
    lines = [f"    {operation_text(operation, operands, keywords, names)}", "    return result"]
    return function_of(operands, lines, names)


def function_of(parameters: Sequence[str], lines: Sequence[str], names: Mapping[str, Any]) -> Callable[..., Any]:
    """A function with these lines that reads no globals, whatever they are: what it uses is in its closure."""
    used = {name: getattr(builtins, name) for name in re.findall(r"\w+", "\n".join(lines)) if hasattr(builtins, name)}
    held = {**used, **names}
    for name in keyword.kwlist:
        held.pop(name, None)
    body = "\n".join(f"    {line}" for line in (f"def perform({', '.join(parameters)}):", *lines))
    scope: dict[str, Any] = {}
    exec(compile(f"def make({', '.join(held)}):\n{body}\n    return perform", __file__, "exec"), scope)
    made: Callable[..., Any] = scope["make"](**held)
    return made
