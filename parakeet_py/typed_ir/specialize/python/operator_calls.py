"""The functions of `operator`, which are Python's operators, and `functools.partial`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT
from parakeet_py.frontend.operators import BINARY, COMPARE, INPLACE, UNARY
from parakeet_py.typed_ir.specialize.python.operators import beside_complex
from parakeet_py.typed_ir.specialize.python.table import BUILTINS, builtin
from parakeet_py.typed_ir.specialize.values import DictV, ScalarV, Static, TupleV, Value, lift

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _binary(name: str) -> Callable[..., Value]:
    def handle(s: Context, left: Value, right: Value) -> Value:
        return s.binary(name, left, beside_complex(s, name, left, right))  # the user's, wherever it is called

    return handle


def _inplace(name: str) -> Callable[..., Value]:
    def handle(s: Context, left: Value, right: Value) -> Value:
        return s.inplace(name, left, right)

    return handle


def _compare(name: str) -> Callable[..., Value]:
    def handle(s: Context, left: Value, right: Value) -> Value:
        return s.compare(name, left, right)

    return handle


def _unary(name: str) -> Callable[..., Value]:
    def handle(s: Context, value: Value) -> Value:
        return s.unary(name, value)

    return handle


for _makers, _handler in ((BINARY, _binary), (INPLACE, _inplace), (COMPARE, _compare), (UNARY, _unary)):
    for _name, _function in _makers.items():
        if _name not in ("in", "notin"):
            BUILTINS[_function] = _handler(_name)


@builtin(operator.contains)
def _contains(s: Context, container: Value, item: Value) -> Value:
    return s.compare("in", item, container)


@builtin(operator.truth)
def _truth(s: Context, value: Value) -> Value:
    return ScalarV(s.truth(value))


@builtin(operator.abs)
def _abs(s: Context, value: Value) -> Value:
    return BUILTINS[abs](s, value)


@builtin(operator.index)
def _index(s: Context, value: Value) -> Value:
    if not isinstance(value, ScalarV) or value.type not in (PYINT, PYBOOL):
        raise s.hand_back("operator.index of what is no int")
    return ScalarV(s.builder.cast(value.operand, PYINT))


@builtin(operator.getitem)
def _getitem(s: Context, value: Value, index: Value) -> Value:
    return s.subscript(value, index)


@builtin(operator.itemgetter)
def _itemgetter(s: Context, *keys: Value) -> Value:
    return Static(operator.itemgetter(*[s.static(key, "a key of itemgetter") for key in keys]))


def items_got(s: Context, getter: operator.itemgetter[object], value: Value) -> Value:
    """getter(value)"""
    keys = getter.__reduce__()[1]
    found = [s.subscript(value, lift(key)) for key in keys]
    return found[0] if len(found) == 1 else TupleV(tuple(found))


@builtin(functools.partial)
def _partial(s: Context, function: Value, *args: Value, **named: Value) -> Value:
    given = DictV(tuple(named.items()))
    return s.call_plain("partial_of", [function, TupleV(args), given, lift(bool(named))])
