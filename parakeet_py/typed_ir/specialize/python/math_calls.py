"""The functions of `math` on abstract values: Python's floats in and out, and its exceptions.

NumPy's functions of the same names give NaN or infinity where these raise; the operations below them are the same.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYFLOAT, is_complex, is_float, itemsize
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.python.builtin_calls import float_to_int, int_of, number
from parakeet_py.typed_ir.specialize.python.table import BUILTINS, builtin
from parakeet_py.typed_ir.specialize.values import ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def _real(s: Context, value: Value) -> ir.Operand:
    """A number as Python's float, as functions of `math` take it."""
    operand = number(s, value)
    if is_complex(ir.dtype_of(operand)):
        raise s.unsupported("must be real number, not complex")
    return s.builder.cast(operand, PYFLOAT)


_GREATEST = {  # the last argument for which the result is finite
    "exp": math.log(sys.float_info.max),
    "expm1": math.log(sys.float_info.max),
    "exp2": math.nextafter(1024.0, 0.0),
}


# What numbers in the domain of a function are, as messages say it from Python 3.14 on.
_POSITIVE, _FINITE, _IN_ONE = "a positive input", "a finite input", "a number in range from -1 up to 1"
_NO_POLE = "a noninteger or positive integer"


def _math_unary(
    prim: str, domain: Callable[[Context, ir.Operand], ir.Operand] | None = None, expected: str = ""
) -> Callable[..., Value]:
    """A function of `math`: a float result, ValueError outside the domain, OverflowError when it is infinite."""

    def handle(s: Context, value: Value) -> Value:
        b = s.builder
        x = _real(s, value)
        if domain is not None:
            if sys.version_info < (3, 14):
                s.check(domain(s, x), "ValueError", "math domain error")
            else:
                s.check(domain(s, x), "ValueError", f"expected {expected}, got {{0}}", [x])
        result = b.prim(prim, x)
        if prim in _GREATEST:  # a comparison is cheaper than the function, where it is not needed otherwise
            large = b.prim("gt", x, ir.Const(_GREATEST[prim], PYFLOAT), type=PYBOOL)
            overflow = b.logical_and(large, b.prim("isfinite", x, type=PYBOOL))
            s.check(b.prim("not", overflow), "OverflowError", "math range error")
        elif prim in ("sinh", "cosh", "gamma", "lgamma"):
            overflow = b.logical_and(b.prim("isinf", result, type=PYBOOL), b.prim("isfinite", x, type=PYBOOL))
            s.check(b.prim("not", overflow), "OverflowError", "math range error")
        return ScalarV(result)

    return handle


def _at_least(limit: float, *, strict: bool = False) -> Callable[[Context, ir.Operand], ir.Operand]:
    def test(s: Context, x: ir.Operand) -> ir.Operand:
        b = s.builder
        bad = b.prim("le" if strict else "lt", x, ir.Const(limit, PYFLOAT), type=PYBOOL)
        return b.prim("not", bad)

    return test


def _within_one(s: Context, x: ir.Operand) -> ir.Operand:
    b = s.builder
    return b.prim("not", b.prim("gt", b.prim("abs", x), ir.Const(1.0, PYFLOAT), type=PYBOOL))


def _inside_one(s: Context, x: ir.Operand) -> ir.Operand:
    b = s.builder
    return b.prim("not", b.prim("ge", b.prim("abs", x), ir.Const(1.0, PYFLOAT), type=PYBOOL))


def _not_infinite(s: Context, x: ir.Operand) -> ir.Operand:
    return s.builder.prim("not", s.builder.prim("isinf", x, type=PYBOOL))


def _no_pole(s: Context, x: ir.Operand) -> ir.Operand:
    """gamma has poles at 0 and the negative integers, its logarithm none at an infinity."""
    b = s.builder
    whole = b.prim("eq", x, b.prim("floor", x), type=PYBOOL)
    pole = b.logical_and(whole, b.prim("le", x, ir.Const(0.0, PYFLOAT), type=PYBOOL))
    return b.prim("not", b.logical_and(pole, b.prim("isfinite", x, type=PYBOOL)))


def _gamma_is_defined(s: Context, x: ir.Operand) -> ir.Operand:
    low = s.builder.prim("eq", x, ir.Const(-math.inf, PYFLOAT), type=PYBOOL)
    return s.builder.logical_and(_no_pole(s, x), s.builder.prim("not", low))


for _function, _prim, _domain, _expected in (
    (math.sqrt, "sqrt", _at_least(0.0), "a nonnegative input"),
    (math.exp, "exp", None, ""),
    (math.expm1, "expm1", None, ""),
    (math.log2, "log2", _at_least(0.0, strict=True), _POSITIVE),
    (math.log10, "log10", _at_least(0.0, strict=True), _POSITIVE),
    (math.log1p, "log1p", _at_least(-1.0, strict=True), "argument value > -1"),
    (math.sin, "sin", _not_infinite, _FINITE),
    (math.cos, "cos", _not_infinite, _FINITE),
    (math.tan, "tan", _not_infinite, _FINITE),
    (math.asin, "asin", _within_one, _IN_ONE),
    (math.acos, "acos", _within_one, _IN_ONE),
    (math.atan, "atan", None, ""),
    (math.sinh, "sinh", None, ""),
    (math.cosh, "cosh", None, ""),
    (math.tanh, "tanh", None, ""),
    (math.asinh, "asinh", None, ""),
    (math.acosh, "acosh", _at_least(1.0), "argument value not less than 1"),
    (math.atanh, "atanh", _inside_one, "a number between -1 and 1"),
    (math.gamma, "gamma", _gamma_is_defined, _NO_POLE),
    (math.lgamma, "lgamma", _no_pole, _NO_POLE),
    (math.erf, "erf", None, ""),
    (math.erfc, "erfc", None, ""),
    (math.fabs, "abs", None, ""),
    (math.cbrt, "cbrt", None, ""),
    (math.exp2, "exp2", None, ""),
):
    BUILTINS[_function] = _math_unary(_prim, _domain, _expected)


@builtin(math.log)
def _log(s: Context, value: Value, base: Value | None = None) -> Value:
    result = _math_unary("log", _at_least(0.0, strict=True), _POSITIVE)(s, value)
    if base is None:
        return result
    bottom = _math_unary("log", _at_least(0.0, strict=True), _POSITIVE)(s, base)
    return s.binary("truediv", result, bottom)


def _has_trunc(value: Value) -> bool:
    """Python's numbers have the method, and of NumPy's those that are Python's floats."""
    return isinstance(value, ScalarV) and (value.python or value.dtype == "float64")


def _math_to_int(prim: str) -> Callable[..., Value]:
    def handle(s: Context, value: Value) -> Value:
        if prim == "trunc" and not _has_trunc(value):
            raise s.unsupported("a number of NumPy's doesn't define __trunc__ method")
        operand = number(s, value)
        if is_complex(ir.dtype_of(operand)):
            raise s.hand_back("a complex number is no float: NumPy's are made one with a warning")
        exact = not isinstance(value, ScalarV) or value.python or itemsize(value.dtype) < 8
        if not is_float(ir.dtype_of(operand)) and exact:  # Python takes the floats of NumPy's, without __floor__
            return int_of(s, ScalarV(operand))
        return ScalarV(float_to_int(s, s.builder.prim(prim, s.builder.cast(operand, PYFLOAT))))

    return handle


BUILTINS[math.floor] = _math_to_int("floor")
BUILTINS[math.ceil] = _math_to_int("ceil")
BUILTINS[math.trunc] = _math_to_int("trunc")


def _math_test(prim: str) -> Callable[..., Value]:
    def handle(s: Context, value: Value) -> Value:
        return ScalarV(s.builder.prim(prim, _real(s, value), type=PYBOOL))

    return handle


BUILTINS[math.isnan] = _math_test("isnan")
BUILTINS[math.isinf] = _math_test("isinf")
BUILTINS[math.isfinite] = _math_test("isfinite")


def _math_binary(prim: str) -> Callable[..., Value]:
    def handle(s: Context, left: Value, right: Value) -> Value:
        b = s.builder
        return ScalarV(b.prim(prim, _real(s, left), _real(s, right)))

    return handle


BUILTINS[math.atan2] = _math_binary("atan2")
BUILTINS[math.copysign] = _math_binary("copysign")


@builtin(math.fmod)
def _fmod(s: Context, left: Value, right: Value) -> Value:
    b = s.builder
    x, y = _real(s, left), _real(s, right)
    bad = b.logical_or(b.prim("eq", y, ir.Const(0.0, PYFLOAT), type=PYBOOL), b.prim("isinf", x, type=PYBOOL))
    nan = b.logical_or(b.prim("isnan", x, type=PYBOOL), b.prim("isnan", y, type=PYBOOL))
    s.check(b.logical_or(nan, b.prim("not", bad)), "ValueError", "math domain error")
    return ScalarV(b.prim("fmod", x, y))


@builtin(math.pow)
def _math_pow(s: Context, left: Value, right: Value) -> Value:
    b = s.builder
    x, y = _real(s, left), _real(s, right)
    result = b.prim("pow", x, y)
    finite = b.logical_and(b.prim("isfinite", x, type=PYBOOL), b.prim("isfinite", y, type=PYBOOL))
    s.check(
        b.prim("not", b.logical_and(finite, b.prim("isnan", result, type=PYBOOL))), "ValueError", "math domain error"
    )
    zero = b.prim("eq", x, ir.Const(0.0, PYFLOAT), type=PYBOOL)
    infinite = b.logical_and(finite, b.prim("isinf", result, type=PYBOOL))
    s.check(b.prim("not", b.logical_and(infinite, zero)), "ValueError", "math domain error")
    s.check(b.prim("not", infinite), "OverflowError", "math range error")
    return ScalarV(result)


@builtin(math.radians)
def _radians(s: Context, value: Value) -> Value:
    b = s.builder
    return ScalarV(b.prim("mul", _real(s, value), ir.Const(math.pi / 180.0, PYFLOAT)))


@builtin(math.degrees)
def _degrees(s: Context, value: Value) -> Value:
    b = s.builder
    return ScalarV(b.prim("mul", _real(s, value), ir.Const(180.0 / math.pi, PYFLOAT)))
