"""Where a function of Python's finds values besides its arguments: globals, cells, attributes of modules and classes.

What Python has to do itself it does on arrays of the host. Those that stand for arrays on devices must be all that it
finds, wherever it looks: an array in a global may share memory with one among the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.hybrid.devices.device_detection import lives_elsewhere

DEEPEST = 4  # functions that functions call


class Variable(NamedTuple):
    """Something that a function may read and rebind."""

    get: Callable[[], Any]
    set: Callable[[Any], None]


def variables_of(function: Any) -> Iterator[Variable]:
    """Variables of a function, and of those of Python's that these hold, whose values are, or have in them, arrays."""
    yield from _variables(function, set(), 0)


def _variables(function: Any, seen: set[int], depth: int) -> Iterator[Variable]:
    function = getattr(function, "__wrapped__", function)  # that of an accelerated one
    if not isinstance(function, FunctionType) or id(function) in seen or depth > DEEPEST:
        return
    seen.add(id(function))
    names = frozenset(_names(function.__code__))
    cells = [_cell(cell) for cell in function.__closure__ or ()]
    for variable in [*_of_namespace(function.__globals__, names), *cells]:
        try:
            value = variable.get()
        except (KeyError, ValueError):  # not bound
            continue
        if isinstance(value, ModuleType):
            if not value.__name__.startswith("numpy"):
                yield from (one for one in _of_namespace(vars(value), names) if _matters(one.get()))
        elif isinstance(value, type):
            for name in names & vars(value).keys():
                if _matters(vars(value)[name]):
                    yield _attribute(value, name)
        elif callable(value):
            yield from _variables(value, seen, depth + 1)
        elif _matters(value):
            yield variable


def _names(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that code uses, and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _matters(value: Any) -> bool:
    return isinstance(value, np.ndarray) or lives_elsewhere(value)


def _of_namespace(namespace: dict[str, Any], names: frozenset[str]) -> list[Variable]:
    def variable(name: str) -> Variable:
        return Variable(lambda: namespace[name], lambda value: namespace.__setitem__(name, value))

    return [variable(name) for name in sorted(names & namespace.keys())]


def _cell(cell: Any) -> Variable:
    return Variable(lambda: cell.cell_contents, lambda value: setattr(cell, "cell_contents", value))


def _attribute(owner: type, name: str) -> Variable:
    return Variable(lambda: vars(owner)[name], lambda value: setattr(owner, name, value))
