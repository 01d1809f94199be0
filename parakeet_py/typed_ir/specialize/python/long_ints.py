"""Python ints that are known when a function is compiled and do not fit int64: `2**64`, `0xcbf29ce484222325`.

Such an int is a `Static` object, never a constant of the IR. Among known numbers it is computed with here, as Python
does. Beside uint64 or floats it becomes a constant of that type, which is what NumPy makes of it; an int that is not
known lies below or above it. Everything else that is done with it is handed back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from parakeet_py.base.types import PYINT, Scalar, is_complex, is_float
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Static, Value, fits_int64, known, lift, py

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

MAX_BITS = 4096  # of what is computed when a function is compiled

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow")},
    **{name: getattr(operator, name) for name in ("lshift", "rshift", "xor")},
    "and": operator.and_,
    "or": operator.or_,
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "abs": abs,
}


def is_long(value: Value) -> bool:
    """Is this a known int beyond int64?"""
    return isinstance(value, Static) and type(value.object) is int


def of_known(op: str, left: Value, right: Value) -> Value | None:
    """The result of an operator on known Python numbers, one of them an int beyond int64 or giving one."""
    if not (_is_number(left) and _is_number(right)):
        return None
    a, c = known(left), known(right)
    if op in ("pow", "lshift") and not _is_moderate(op, a, c):
        return None
    try:
        result = _OPERATORS[op](a, c)
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return None  # raised when the call gets there
    return lift(result) if is_long(left) or is_long(right) or _is_long_int(result) else None


def unary_of_known(op: str, value: Value) -> Value | None:
    """The result of an operator on a known int, where int64 does not do."""
    if not _is_number(value) or isinstance(known(value), complex):
        return None
    if op == "invert" and not isinstance(known(value), int):
        return None
    result = _UNARY[op](known(value))
    return lift(result) if is_long(value) or _is_long_int(result) else None


def beside(value: Value, other: Value) -> Value:
    """A known int beyond int64 as an operand beside another value: a constant where NumPy would make it one."""
    if not (isinstance(value, Static) and type(value.object) is int):
        return value
    number = value.object
    if isinstance(other, ArrayV | ScalarV):
        if other.dtype == "uint64" and 0 <= number < 1 << 64:
            return ScalarV(ir.Const(number, Scalar("uint64")))
        if (is_float(other.dtype) or is_complex(other.dtype)) and abs(number) < 1 << 1000:
            return py(float(number))
    return value


def compared(s: Context, op: str, left: Value, right: Value) -> Value | None:
    """A comparison of an int of 64 bits with a known one that is beyond."""
    if is_long(left) and _is_int64(right):
        return _compared_with(op, 1 if known(left) > 0 else -1)
    if is_long(right) and _is_int64(left):
        return _compared_with(op, -1 if known(right) > 0 else 1)
    for one, other in ((left, right), (right, left)):
        if is_long(one) and isinstance(other, ScalarV) and other.python and int(float(known(one))) != known(one):
            raise s.hand_back("a comparison of a float with an int beyond 64 bits")
    return None


def _compared_with(op: str, sign: int) -> Value:
    return py(bool(_OPERATORS[op](sign, 0)))


def _is_int64(value: Value) -> bool:
    return isinstance(value, ScalarV) and value.python and value.type == PYINT


def _is_number(value: Value) -> bool:
    if is_long(value):
        return True
    return isinstance(value, ScalarV) and value.python and isinstance(value.operand, ir.Const)


def _is_long_int(result: object) -> bool:
    return type(result) is int and not fits_int64(result)


def _is_moderate(op: str, left: Any, right: Any) -> bool:
    if not isinstance(left, int) or not isinstance(right, int):
        return op == "pow" and not isinstance(left, complex) and not isinstance(right, complex)
    bits = left.bit_length() * right if op == "pow" else left.bit_length() + right
    return right >= 0 and bits <= MAX_BITS


__all__ = ["beside", "compared", "is_long", "of_known", "unary_of_known"]
