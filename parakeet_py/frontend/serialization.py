"""Untyped IR as plain data, that `marshal` writes and reads: tuples, lists, numbers and texts.

A node is a tuple of a number, which says of what class it is, and its fields; a tuple is a list. A variable is
`(VAR, number)`, with its name where it comes first; a function that is met again is `(AGAIN, number)`. What a constant
holds stands there as it is, if it is a number, a text or None.
"""

from __future__ import annotations

import marshal
from dataclasses import fields
from typing import Any

from parakeet_py.frontend import ssa

__all__ = ["NotPlain", "from_bytes", "to_bytes"]

VAR, AGAIN, UNBOUND = range(3)
_CLASSES: tuple[type, ...] = tuple(
    one for one in vars(ssa).values() if isinstance(one, type) and hasattr(one, "__dataclass_fields__")
)
_NUMBERS = {one: 3 + number for number, one in enumerate(_CLASSES)}
_NAMES = {one: tuple(field.name for field in fields(one)) for one in _CLASSES}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


class NotPlain(ValueError):
    """Something that is no plain data."""


def to_bytes(function: ssa.Function) -> bytes:
    """A function as bytes.

    Raises
    ------
    NotPlain
        It holds an object that is no number and no text.
    """
    variables: dict[ssa.Var, int] = {}
    functions: dict[int, int] = {}

    def written(item: Any) -> Any:
        kind = type(item)
        if kind in _PLAIN:
            return item
        if kind is tuple:
            return [written(one) for one in item]
        if kind is ssa.Var:
            known = variables.setdefault(item, len(variables))
            return (VAR, known, item.name) if known == len(variables) - 1 else (VAR, known)
        if item is ssa.UNBOUND:
            return (UNBOUND,)
        if kind not in _NUMBERS:
            raise NotPlain(f"{item!r} in {function.name}")
        if kind is ssa.Function:
            if id(item) in functions:
                return (AGAIN, functions[id(item)])
            functions[id(item)] = len(functions)
        return (_NUMBERS[kind], *[written(getattr(item, name)) for name in _NAMES[kind]])

    return marshal.dumps(written(function))


def from_bytes(data: bytes) -> ssa.Function:
    """The function that `to_bytes` has written."""
    variables: list[ssa.Var] = []
    functions: dict[int, ssa.Function] = {}
    met = 0
    of_function = _NUMBERS[ssa.Function]
    made = ssa.Var

    def read(item: Any) -> Any:
        nonlocal met
        kind = type(item)
        if kind is list:
            return tuple([read(one) for one in item])
        if kind is not tuple:
            return item
        number = item[0]
        if number == VAR:
            if len(item) == 3 and item[1] == len(variables):
                variables.append(made(item[2]))
            return variables[item[1]]
        if number == of_function:
            place, met = met, met + 1
            functions[place] = ssa.Function(*[read(one) for one in item[1:]])
            return functions[place]
        if number == AGAIN:
            return functions[item[1]]
        if number == UNBOUND:
            return ssa.UNBOUND
        return _CLASSES[number - 3](*[read(one) for one in item[1:]])

    found = read(marshal.loads(data))
    assert isinstance(found, ssa.Function)
    return found
