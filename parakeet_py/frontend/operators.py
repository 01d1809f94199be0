"""Python's operators by the names the untyped IR gives them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, "i" + function.__name__.strip("_")) for name, function in BINARY.items()
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": operator.is_,
    "isnot": operator.is_not,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "not": operator.not_,
}

_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


def formatted(value: Any, conversion: str, spec: str) -> str:
    """A part of an f-string."""
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)
