"""Calls whose arguments a function does not take: too many, too few, of other names, twice.

Python says what is wrong, as quickly as if there were no compiler. Where calls of one kind come again and again, a gate
takes them for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Final

from parakeet_py.call.dispatch.first_calls import gates_pay
from parakeet_py.signature.positional import takes_positions_only

ENOUGH: Final = 8  # calls of a form
MAX_GATES: Final = 4  # of one function


class WrongCalls:
    """Those of one function.

    Attributes
    ----------
    parameters : those that arguments given by place reach, of a function with no others; else None
    counts : how many there have been, by arguments given by place and names of the others
    """

    __slots__ = ("counts", "function", "parameters")

    def __init__(self, function: FunctionType) -> None:
        code = function.__code__
        self.function = function
        self.counts: dict[tuple[int, tuple[str, ...]], int] = {}
        self.parameters = code.co_varnames[: code.co_argcount] if takes_positions_only(code) else None

    def has(self, given: int, names: Mapping[str, Any]) -> bool:
        """Is this one: so many arguments by place, and others by name? Where one has to look closely, it is not."""
        parameters = self.parameters
        if parameters is None or self.function.__code__.co_posonlyargcount > given:
            return False
        required = len(parameters) - len(self.function.__defaults__ or ())
        if not names:
            return not required <= given <= len(parameters)
        rest = parameters[given:]
        for name in names:
            if name not in rest:
                return True
        for name in parameters[given:required]:
            if name not in names:
                return True
        return given > len(parameters)

    def are_many(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Have there been enough calls like this one, with it, that a gate should take them?"""
        form = len(args), tuple(kwargs)
        count = self.counts.get(form, 0) + 1
        if count > ENOUGH or (count == 1 and len(self.counts) == MAX_GATES):
            return False
        pays = count == ENOUGH and gates_pay()
        self.counts[form] = count if pays else min(count, ENOUGH - 1)
        return pays
