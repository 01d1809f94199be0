"""Arithmetic of Python scalars among themselves: what `int`, `float`, `bool` and `complex` objects do, not NumPy's.

Ints are exact: an operation whose result does not fit 64 bits never wraps. It leaves the compiled code with `OVERFLOW`,
and Python runs the call if nothing shows yet, else that is an OverflowError. Division by zero raises. Where Python's
result *type* depends on a value (int ** negative int, negative float ** fraction) the usual case is compiled and
guarded; the unusual one leaves the compiled code (`Deoptimize`) and the call is run by Python.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from parakeet_py.base.errors import RANGE_ERROR
from parakeet_py.base.types import FLOAT64, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Scalar, real_dtype
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import combine_forms
from parakeet_py.typed_ir.semantics import OVERFLOW
from parakeet_py.typed_ir.specialize.values import ScalarV, Value, fits_int64

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_RANK = {"bool": 0, "int64": 1, "float64": 2, "complex128": 3}
_TYPES = (PYBOOL, PYINT, PYFLOAT, PYCOMPLEX)
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def python_binary(s: Context, op: str, left: ScalarV, right: ScalarV) -> ScalarV:
    b = s.builder
    rank = max(_RANK[left.dtype], _RANK[right.dtype])
    if op in ("and", "or", "xor", "lshift", "rshift"):
        if rank > 1:
            raise s.unsupported(f"unsupported operand types for {op}: float")
        if op in ("lshift", "rshift"):
            return _shift(s, op, left, right)
        kind = _TYPES[rank]
        return ScalarV(b.prim(op, b.cast(left.operand, kind), b.cast(right.operand, kind), type=kind))
    if op in _COMPARE:
        if rank == 3 and op not in ("eq", "ne"):
            raise s.unsupported("complex numbers have no order")
        return ScalarV(compare(s, op, left.operand, right.operand, _TYPES[rank]))
    kind = _TYPES[max(rank, 1)]
    if rank == 3 and left.dtype != right.dtype and sys.version_info >= (3, 14):
        found = _complex_and_real(s, op, left.operand, right.operand)
        if found is not None:
            return found
    x, y = b.cast(left.operand, kind), b.cast(right.operand, kind)
    match kind.dtype:
        case "int64":
            return _integer(s, op, x, y)
        case "float64":
            return _float(s, op, x, y)
        case _:
            return _complex(s, op, x, y)


def compare(s: Context, op: str, left: ir.Operand, right: ir.Operand, kind: Scalar) -> ir.Operand:
    """A comparison as a Python bool; decided at once where linear forms tell."""
    b = s.builder
    if kind.dtype == "bool":
        left, right, kind = b.cast(left, PYINT), b.cast(right, PYINT), PYINT
    if kind == PYINT and left.type == PYINT and right.type == PYINT:
        decided = _decide(s, op, left, right)
        if decided is not None:
            return ir.Const(decided, PYBOOL)
    if kind == PYFLOAT:
        for integer, other in ((left, right), (right, left)):
            if integer.type == PYINT and other.type == PYFLOAT and not b.is_small(integer):
                return _exact_compare(s, op if integer is left else _MIRRORED[op], integer, other)
    return b.prim(op, b.cast(left, kind), b.cast(right, kind), type=PYBOOL)


_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _exact_compare(s: Context, op: str, integer: ir.Operand, number: ir.Operand) -> ir.Operand:
    """int with float by exact value: where the rounded int equals the float, the float as an int decides."""
    b = s.builder
    rounded = b.cast(integer, PYFLOAT)
    limit = ir.Const(2.0**63, PYFLOAT)
    beyond = b.prim("eq", number, limit, type=PYBOOL)  # every int64 is below it
    whole = b.cast(b.select(beyond, ir.Const(0.0, PYFLOAT), number), PYINT)
    exact = b.select(beyond, ir.Const(op in ("ne", "lt", "le"), PYBOOL), b.prim(op, integer, whole, type=PYBOOL))
    same = b.prim("eq", rounded, number, type=PYBOOL)
    return b.select(same, exact, b.prim(op, rounded, number, type=PYBOOL))


def _decide(s: Context, op: str, left: ir.Operand, right: ir.Operand) -> bool | None:
    b = s.builder
    match op:
        case "eq" | "ne":
            if b.same(left, right):
                return op == "eq"
            if b.provably_lt(left, right) or b.provably_lt(right, left):
                return op == "ne"
        case "lt" | "ge":
            if b.provably_lt(left, right):
                return op == "lt"
            if b.provably_le(right, left):
                return op == "ge"
        case "gt" | "le":
            if b.provably_lt(right, left):
                return op == "gt"
            if b.provably_le(left, right):
                return op == "le"
    return None


def int_add(s: Context, left: ir.Operand, right: ir.Operand, sign: int = 1) -> ir.Operand:
    """left + sign * right of Python ints; plain index arithmetic where it cannot overflow."""
    b = s.builder
    form = combine_forms(b.form(left), b.form(right), sign)
    if b.form_is_small(form):
        return b.from_form(form)
    return _checked(s, "add" if sign > 0 else "sub", left, right)


_SURE = float((1 << 63) - (1 << 12))  # where float arithmetic gives no more, 64 bits hold the exact result


def _checked(s: Context, name: str, x: ir.Operand, y: ir.Operand) -> ir.Operand:
    """The sum, difference or product of ints, which 64 bits have to hold.

    Where Python goes on if they do not, it may do so a little earlier.
    """
    b = s.builder
    if b.pos in s.python.continued:
        size = b.prim("abs", b.prim(name, b.cast(x, PYFLOAT), b.cast(y, PYFLOAT)))
        if s.continue_unless(b.prim("le", size, ir.Const(_SURE, PYFLOAT), type=PYBOOL)):
            return b.prim(name, x, y)
    return b.prim(f"{name}_checked", x, y)


def _integer(s: Context, op: str, x: ir.Operand, y: ir.Operand) -> ScalarV:
    b = s.builder
    zero = ir.Const(0, PYINT)
    match op:
        case "add":
            return ScalarV(int_add(s, x, y))
        case "sub":
            return ScalarV(int_add(s, x, y, -1))
        case "mul":
            if isinstance(x, ir.Const) or isinstance(y, ir.Const):
                constant, other = (x, y) if isinstance(x, ir.Const) else (y, x)
                assert isinstance(constant, ir.Const)
                form = combine_forms(((), 0), b.form(other), int(constant.value.real))
                if b.form_is_small(form):
                    return ScalarV(b.from_form(form))
            return ScalarV(_checked(s, "mul", x, y))
        case "truediv":
            s.check(b.prim("ne", y, zero, type=PYBOOL), "ZeroDivisionError", "division by zero")
            return _quotient(s, x, y)
        case "floordiv" | "mod":
            message = "integer division or modulo by zero" if op == "floordiv" else "integer modulo by zero"
            message = message if sys.version_info < (3, 14) else "division by zero"
            s.check(b.prim("ne", y, zero, type=PYBOOL), "ZeroDivisionError", message)
            if not (isinstance(y, ir.Const) and y.value != -1):
                minimum = ir.Const(-(1 << 63), PYINT)
                overflows = b.logical_and(
                    b.prim("eq", x, minimum, type=PYBOOL), b.prim("eq", y, ir.Const(-1, PYINT), type=PYBOOL)
                )
                if op == "floordiv":
                    s.check(b.prim("not", overflows), "OverflowError", OVERFLOW)
            result = b.prim(op, x, y)
            if isinstance(result, ir.Var) and isinstance(y, ir.Const) and y.value.real > 0:
                _division_facts(s, op, x, y, result)
            return ScalarV(result)
        case "pow":
            return _int_power(s, x, y)
    raise s.unsupported(f"unsupported operator {op} for int")


def _division_facts(s: Context, op: str, x: ir.Operand, y: ir.Const, result: ir.Var) -> None:
    b = s.builder
    if b.is_small(x):
        b.small.add(result)
    if op == "mod":
        b.as_count(result)
        b.upper[result] = ((), int(y.value.real) - 1)
    elif b.at_least_zero(b.form(x)):
        b.nonnegative.add(result)
        b.upper[result] = b.form(x)


_EXACT = 1 << 53  # ints up to this one are floats


def _quotient(s: Context, x: ir.Operand, y: ir.Operand) -> ScalarV:
    """int / int, which Python rounds once, also where the ints themselves are no floats."""
    b = s.builder

    def direct() -> list[Value]:
        return [ScalarV(b.prim("div", b.cast(x, PYFLOAT), b.cast(y, PYFLOAT)))]

    def divided() -> list[Value]:
        value = s.call_library("int_quotient", [ScalarV(x), ScalarV(y)])
        assert isinstance(value, ScalarV)
        return [ScalarV(b.cast(value.operand, PYFLOAT))]

    def is_exact(number: ir.Operand) -> ir.Operand:
        if b.is_small(number) or (isinstance(number, ir.Const) and abs(number.whole) <= _EXACT):
            return ir.Const(True, PYBOOL)
        low = b.prim("ge", number, ir.Const(-_EXACT, PYINT), type=PYBOOL)
        return b.logical_and(low, b.prim("le", number, ir.Const(_EXACT, PYINT), type=PYBOOL))

    if isinstance(y, ir.Const) and y.whole.bit_count() == 1:  # a power of two: only the cast rounds
        (result,) = direct()
    else:
        (result,) = s.branch(b.logical_and(is_exact(x), is_exact(y)), direct, divided)
    assert isinstance(result, ScalarV)
    return result


def _int_power(s: Context, x: ir.Operand, y: ir.Operand) -> ScalarV:
    b = s.builder
    if isinstance(x, ir.Const) and isinstance(y, ir.Const):
        base, exponent = int(x.value.real), int(y.value.real)
        if exponent < 0 and base == 0:
            s.check(ir.Const(False, PYBOOL), "ZeroDivisionError", "0.0 cannot be raised to a negative power")
            return ScalarV(ir.Const(0.0, PYFLOAT))
        if exponent < 0:
            return ScalarV(ir.Const(float(base**exponent), PYFLOAT))
        if base in (-1, 0, 1) or (base.bit_length() - 1) * exponent < 63:  # else it has more than 63 bits
            power = base**exponent
            if fits_int64(power):
                return ScalarV(ir.Const(power, PYINT))
        s.check(ir.Const(False, PYBOOL), "OverflowError", OVERFLOW)  # `long_ints` computes those of moderate size
        return ScalarV(ir.Const(0, PYINT))
    if isinstance(y, ir.Const):
        exponent = int(y.value.real)
        if exponent < 0:
            return _float(s, "pow", b.cast(x, PYFLOAT), b.cast(y, PYFLOAT))
        result: ir.Operand = ir.Const(1, PYINT)
        power = x
        while exponent:
            if exponent & 1:
                result = power if result == ir.Const(1, PYINT) else _checked(s, "mul", result, power)
            exponent >>= 1
            if exponent:
                power = _checked(s, "mul", power, power)
        return ScalarV(result)
    s.check(b.prim("ge", y, ir.Const(0, PYINT), type=PYBOOL), "Deoptimize", "int ** negative int is a float")
    value = s.call_library("int_power", [ScalarV(x), ScalarV(y)])
    assert isinstance(value, ScalarV)
    return value


def _shift(s: Context, op: str, left: ScalarV, right: ScalarV) -> ScalarV:
    b = s.builder
    x, y = b.cast(left.operand, PYINT), b.cast(right.operand, PYINT)
    s.check(b.prim("ge", y, ir.Const(0, PYINT), type=PYBOOL), "ValueError", "negative shift count")
    if op == "rshift":
        return ScalarV(b.prim("shr", x, y))
    if isinstance(x, ir.Const) and isinstance(y, ir.Const) and y.value.real < 63:
        value = int(x.value.real) << int(y.value.real)
        if -(1 << 63) <= value < 1 << 63:
            return ScalarV(ir.Const(value, PYINT))
    shifted = b.prim("shl", x, y)
    fits = b.prim("eq", b.prim("shr", shifted, y), x, type=PYBOOL)
    small = b.prim("lt", y, ir.Const(63, PYINT), type=PYBOOL)
    zero = b.prim("eq", x, ir.Const(0, PYINT), type=PYBOOL)
    s.check(b.logical_or(zero, b.logical_and(small, fits)), "OverflowError", OVERFLOW)
    return ScalarV(shifted)


_MODULO_BY_ZERO = "float modulo" if sys.version_info < (3, 13) else "float modulo by zero"
_MODULO_BY_ZERO = _MODULO_BY_ZERO if sys.version_info < (3, 14) else "division by zero"


def _float(s: Context, op: str, x: ir.Operand, y: ir.Operand) -> ScalarV:
    b = s.builder
    zero = ir.Const(0.0, PYFLOAT)

    def nonzero(message: str) -> None:
        s.check(b.prim("ne", y, zero, type=PYBOOL), "ZeroDivisionError", message)

    match op:
        case "add" | "sub" | "mul":
            return ScalarV(b.prim(op, x, y))
        case "truediv":
            nonzero("float division by zero" if sys.version_info < (3, 14) else "division by zero")
            return ScalarV(b.prim("div", x, y))
        case "floordiv":
            nonzero("float floor division by zero" if sys.version_info < (3, 14) else "division by zero")
            return ScalarV(b.prim("floordiv", x, y))
        case "mod":
            nonzero(_MODULO_BY_ZERO)
            return ScalarV(b.prim("mod", x, y))
        case "pow":
            return ScalarV(_float_power(s, x, y))
    raise s.unsupported(f"unsupported operator {op} for float")


def _float_power(s: Context, x: ir.Operand, y: ir.Operand) -> ir.Operand:
    b = s.builder
    zero = ir.Const(0.0, PYFLOAT)
    if not (isinstance(y, ir.Const) and y.value.real >= 0):
        lowest = ir.Const(-math.inf, PYFLOAT)  # 0.0 ** -inf is inf
        below = b.logical_and(b.prim("lt", y, zero, type=PYBOOL), b.prim("ne", y, lowest, type=PYBOOL))
        bad = b.logical_and(b.prim("eq", x, zero, type=PYBOOL), below)
        s.check(
            b.prim("not", bad), "ZeroDivisionError", "0.0 cannot be raised to a negative power"
            if sys.version_info < (3, 14) else "zero to a negative power",
        )  # fmt: skip
    whole = isinstance(y, ir.Const) and float(y.value.real).is_integer()
    if not whole:
        fraction = b.logical_and(
            b.prim("ne", b.prim("floor", y), y, type=PYBOOL),
            b.prim("isfinite", y, type=PYBOOL),
        )
        negative = b.logical_and(b.prim("lt", x, zero, type=PYBOOL), b.prim("isfinite", x, type=PYBOOL))
        s.check(b.prim("not", b.logical_and(negative, fraction)), "Deoptimize", "negative float ** fraction is complex")
    if isinstance(y, ir.Const) and y.value == 2:
        result = b.prim("mul", x, x)
    else:
        result = b.prim("pow", x, y)
    overflow = b.logical_and(
        b.prim("isinf", result, type=PYBOOL),
        b.logical_and(b.prim("isfinite", x, type=PYBOOL), b.prim("isfinite", y, type=PYBOOL)),
    )
    s.check(b.prim("not", overflow), "OverflowError", RANGE_ERROR)
    return result


def _complex_power(s: Context, x: ir.Operand, y: ir.Operand) -> ScalarV:
    """By multiplications, as Python has it, where the exponent is known and a small natural number."""
    b = s.builder
    exponent = y.value if isinstance(y, ir.Const) else -1j
    if exponent.imag != 0 or exponent.real not in range(1, 101):
        value = s.call_plain("complex_power", [ScalarV(x), ScalarV(y)])
        assert isinstance(value, ScalarV)
        return value
    result: ir.Operand = ir.Const(1 + 0j, PYCOMPLEX)
    rest, power = int(exponent.real), x
    while rest:
        if rest & 1:
            result = _checked_complex(s, "mul", result, power)
        rest >>= 1
        power = _checked_complex(s, "mul", power, power) if rest else power
    size = [b.prim("isinf", b.prim(part, result, type=PYFLOAT), type=PYBOOL) for part in ("real", "imag")]
    s.check(b.prim("not", b.logical_or(*size)), "OverflowError", "complex exponentiation")
    return ScalarV(result)


def _complex(s: Context, op: str, x: ir.Operand, y: ir.Operand) -> ScalarV:
    b = s.builder
    match op:
        case "add" | "sub":
            return ScalarV(b.prim(op, x, y))
        case "mul":
            return ScalarV(_checked_complex(s, op, x, y))
        case "truediv":
            zero = ir.Const(0j, PYCOMPLEX)
            s.check(
                b.prim("ne", y, zero, type=PYBOOL), "ZeroDivisionError", "complex division by zero"
                if sys.version_info < (3, 14) else "division by zero",
            )  # fmt: skip
            return ScalarV(_checked_complex(s, "div", x, y))
        case "pow":
            return _complex_power(s, x, y)
    raise s.unsupported(f"complex {op} is not compiled")


def _complex_and_real(s: Context, op: str, x: ir.Operand, y: ir.Operand) -> ScalarV | None:
    """An operation on a complex and a real number, which are not converted to one type from Python 3.14 on: a real one
    has no imaginary part whose sign, or infinity, would matter. None for operations that convert."""
    b = s.builder

    def real(operand: ir.Operand) -> ir.Operand:
        return b.cast(operand, PYFLOAT)

    def part(name: str, operand: ir.Operand) -> ir.Operand:
        return b.prim(name, operand, type=PYFLOAT)

    first = ir.dtype_of(x) == "complex128"
    z, r = (x, real(y)) if first else (y, real(x))
    re, im = part("real", z), part("imag", z)
    match op:
        case "add":
            parts = b.prim("add", re, r), im
        case "sub" if first:
            parts = b.prim("sub", re, r), im
        case "sub":
            parts = b.prim("sub", r, re), b.prim("neg", im)
        case "mul":
            parts = b.prim("mul", re, r), b.prim("mul", im, r)
        case "truediv" if first:
            s.check(b.prim("ne", r, ir.Const(0.0, PYFLOAT), type=PYBOOL), "ZeroDivisionError", "division by zero")
            parts = b.prim("div", re, r), b.prim("div", im, r)
        case "truediv":
            nonzero = b.logical_or(*(b.prim("ne", one, ir.Const(0.0, PYFLOAT), type=PYBOOL) for one in (re, im)))
            s.check(nonzero, "ZeroDivisionError", "division by zero")
            parts = _over_complex(s, r, re, im)
        case _:
            return None
    return ScalarV(b.prim("complex", *parts, type=PYCOMPLEX))


def _over_complex(s: Context, r: ir.Operand, c: ir.Operand, d: ir.Operand) -> tuple[ir.Operand, ir.Operand]:
    """r / (c + di), by Smith's method as CPython has it."""
    b = s.builder
    first = b.prim("ge", b.prim("abs", c), b.prim("abs", d), type=PYBOOL)
    larger, smaller = b.prim("select", first, c, d, type=PYFLOAT), b.prim("select", first, d, c, type=PYFLOAT)
    ratio = b.prim("div", smaller, larger)
    below = b.prim("add", larger, b.prim("mul", smaller, ratio))
    minus = b.prim("neg", r)
    above = b.prim("select", first, r, b.prim("mul", r, ratio), type=PYFLOAT)
    beside = b.prim("select", first, b.prim("mul", minus, ratio), minus, type=PYFLOAT)
    ordered = b.logical_and(*(b.prim("not", b.prim("isnan", one, type=PYBOOL)) for one in (c, d)))
    s.check(ordered, "Deoptimize", _RECOVERED)
    real, imag = b.prim("div", above, below), b.prim("div", beside, below)
    _not_recovered(s, real, imag)
    return real, imag


_RECOVERED = "infinities and NaN in complex arithmetic, which Python looks into"


def _not_recovered(s: Context, real: ir.Operand, imag: ir.Operand) -> None:
    """From Python 3.14 on, products and quotients that come out as NaN + NaN i may be infinite or zero nevertheless."""
    b = s.builder
    both = b.logical_and(*(b.prim("isnan", one, type=PYBOOL) for one in (real, imag)))
    s.check(b.prim("not", both), "Deoptimize", _RECOVERED)


def _checked_complex(s: Context, op: str, x: ir.Operand, y: ir.Operand) -> ir.Operand:
    """A product or quotient of complex numbers."""
    result = s.builder.prim(op, x, y)
    if sys.version_info >= (3, 14) and not isinstance(result, ir.Const):
        _not_recovered(s, *(s.builder.prim(part, result, type=PYFLOAT) for part in ("real", "imag")))
    return result


def python_unary(s: Context, op: str, value: ScalarV) -> ScalarV:
    """neg, pos, invert and abs of a Python scalar."""
    b = s.builder
    operand = value.operand
    if value.dtype == "bool":
        operand = b.cast(operand, PYINT)
    kind = operand.type
    assert isinstance(kind, Scalar)
    match op, kind.dtype:
        case "pos", _:
            return ScalarV(operand)
        case "neg", "int64":
            if isinstance(operand, ir.Const):
                return ScalarV(ir.Const(-operand.value, PYINT))
            return ScalarV(int_add(s, ir.Const(0, PYINT), operand, -1))
        case "neg", _:
            if isinstance(operand, ir.Const):
                return ScalarV(ir.Const(-operand.value, kind))
            return ScalarV(b.prim("neg", operand))
        case "invert", "int64":
            return ScalarV(b.prim("not", operand))
        case "abs", "int64":
            return ScalarV(b.prim("abs_checked", operand))
        case "abs", "float64":
            return ScalarV(b.prim("abs", operand))
        case "abs", _:
            return scalar_abs(s, operand)
    raise s.unsupported(f"bad operand type for {op}")


def scalar_abs(s: Context, z: ir.Operand) -> ScalarV:
    """The absolute value of a complex number, Python's or NumPy's; that of an array's elements has other last bits."""
    kind = PYFLOAT if z.type == PYCOMPLEX else Scalar(real_dtype(ir.dtype_of(z)))
    b = s.builder
    parts = [b.prim(part, z, type=kind) for part in ("real", "imag")]
    size = b.prim("hypot", *parts, type=kind)
    if kind == PYFLOAT:
        over = b.prim("gt", size, ir.Const(sys.float_info.max, PYFLOAT), type=PYBOOL)
        finite = b.logical_and(*(b.prim("isfinite", part, type=PYBOOL) for part in parts))
        s.check(b.prim("not", b.logical_and(over, finite)), "OverflowError", "absolute value too large")
    return ScalarV(size)


__all__ = ["FLOAT64", "OVERFLOW", "compare", "int_add", "python_binary", "python_unary", "scalar_abs"]
