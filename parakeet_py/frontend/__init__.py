"""Python functions to untyped SSA: `to_ssa` is the only way in."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType

from parakeet_py.config import current
from parakeet_py.errors import NoSourceError
from parakeet_py.frontend.ast_to_ssa import ast_to_ssa
from parakeet_py.frontend.source import read_source
from parakeet_py.frontend.ssa import Function


def _from_source(function: FunctionType) -> Function:
    return ast_to_ssa(read_source(function))


def _from_bytecode(function: FunctionType) -> Function:
    from parakeet_py.frontend.bytecode import read_bytecode

    return ast_to_ssa(read_bytecode(function))


# Tried in order; a reader that lacks what it reads raises NoSourceError, and the next has its turn.
READERS: list[Callable[[FunctionType], Function]] = [_from_source, _from_bytecode]


def to_ssa(function: FunctionType) -> Function:
    """The untyped IR of a Python function.

    Raises
    ------
    UnsupportedError
        The function uses something that cannot be accelerated.
    NoSourceError
        Nothing of the function is there to be read.
    """
    made = _read(function)
    if current().check:
        from parakeet_py.frontend.check_ssa import check_function

        check_function(made)
    return made


def _read(function: FunctionType) -> Function:
    for reader in READERS[:-1]:
        try:
            return reader(function)
        except NoSourceError:
            continue
    return READERS[-1](function)


_made: dict[CodeType, Function] = {}


def to_ssa_cached(function: FunctionType) -> Function:
    """`to_ssa`, once per code object."""
    made = _made.get(function.__code__)
    if made is None:
        made = _made[function.__code__] = to_ssa(function)
    return made
