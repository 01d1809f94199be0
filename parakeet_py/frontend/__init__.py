"""Python functions to untyped SSA: `to_ssa` is the only way in."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Protocol

from parakeet_py.base.config import current
from parakeet_py.base.errors import NoSourceError
from parakeet_py.frontend.build.functions import ast_to_ssa
from parakeet_py.frontend.source.function_source import read_source
from parakeet_py.frontend.ssa import Function


def _from_source(function: FunctionType) -> Function:
    return ast_to_ssa(read_source(function))


def _from_bytecode(function: FunctionType) -> Function:
    from parakeet_py.frontend.bytecode.decompile import read_bytecode

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
        from parakeet_py.frontend.check import check_function

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


class Keeper(Protocol):
    """Where functions are looked for before they are read."""

    def find(self, code: CodeType) -> Function | None: ...

    def keep(self, code: CodeType, function: Function) -> None: ...


_keepers: list[Keeper] = []


def keep_with(keeper: Keeper) -> None:
    """Ask a keeper for functions from now on, and give it those it does not have."""
    _keepers.append(keeper)


def to_ssa_cached(function: FunctionType) -> Function:
    """`to_ssa`, once per code object."""
    code = function.__code__
    made = _made.get(code)
    if made is None:
        for keeper in _keepers:
            made = keeper.find(code)
            if made is not None:
                break
        else:
            made = to_ssa(function)
            for keeper in _keepers:
                keeper.keep(code, made)
        _made[code] = made
    return made
