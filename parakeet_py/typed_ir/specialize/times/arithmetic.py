"""NumPy's ufuncs, and Python's operators, for times.

Which loop NumPy takes, and of which units its result is, NumPy itself says (`resolve_dtypes`); what the loop does with
the int64 is here. NaT, the least of them, gives NaT, or compares as NaN does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.types import BOOL, FLOAT64, INT64, INTEGERS, PYBOOL, is_float
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays.array_store import fit_outputs, store_array
from parakeet_py.typed_ir.specialize.arrays.elementwise import elementwise
from parakeet_py.typed_ir.specialize.arrays.ufuncs import BINARY_UFUNCS, UNARY_UFUNCS, resolution_type
from parakeet_py.typed_ir.specialize.times.times import NAT, as_unit, dtype_of, is_time, like
from parakeet_py.typed_ir.specialize.values import ArrayV, NeverV, ScalarV, TimeV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.builder import Builder
    from parakeet_py.typed_ir.specialize.context import Context

Loop = Callable[["Context", list[ir.Operand], str], ir.Operand]
"""Of operands, the kinds of which are written as NumPy does (M, m, l)."""


def ufunc(s: Context, function: np.ufunc, args: Sequence[Value]) -> Value | None:
    """function(*args), some of which are times; None if that is not compiled."""
    loop = _LOOPS.get(function)
    types = _resolved(function, args)
    if loop is None or types is None:
        return None
    values: list[Value] = []
    for value, dtype in zip(args, types, strict=False):
        number = _as_loop(s, value, dtype)
        if number is None:
            return None
        values.append(number)
    kinds = "".join(dtype.char for dtype in types[: function.nin])
    if kinds == "mm" and function in _BY_KNOWN and not _is_known_divisor(values[1]):
        return None
    made = elementwise(s, lambda operands: [loop(s, operands, kinds)], values)[0]
    return like(made, types[-1].str[1:]) if types[-1].kind in "mM" else made


def _resolved(function: np.ufunc, args: Sequence[Value]) -> Sequence[np.dtype[Any]] | None:
    if len(args) != function.nin or function.nout != 1:
        return None
    given: list[Any] = []
    for value in args:
        if is_time(value):
            given.append(dtype_of(value))
        elif isinstance(value, ScalarV | ArrayV) and (value.dtype in INTEGERS or is_float(value.dtype)):
            given.append(resolution_type(value))
        else:
            return None
    try:
        return function.resolve_dtypes((*given, None))
    except TypeError:
        return None


def _as_loop(s: Context, value: Value, dtype: np.dtype[Any]) -> Value | None:
    """An operand as the loop takes it."""
    if is_time(value):
        time = as_unit(s, value, dtype.str[1:]) if dtype.kind in "mM" else None
        return None if time is None else time.value
    if not isinstance(value, ScalarV | ArrayV) or dtype.itemsize != _SIZE or dtype.kind not in "mif":
        return None
    number = FLOAT64 if dtype.kind == "f" else INT64
    if isinstance(value, ScalarV):
        return ScalarV(s.builder.cast(value.operand, number))
    return s.cast_array(value, number.dtype) if value.dtype != number.dtype else value


_SIZE = 8  # bytes


def _is_known_divisor(value: Value) -> bool:
    return isinstance(value, ScalarV) and isinstance(value.operand, ir.Const) and value.operand not in (NAT, _ZERO)


_ZERO = ir.Const(0, INT64)
_ONE = ir.Const(1, INT64)


# ---- operators -------------------------------------------------------------------------------------------------------


def binary(s: Context, op: str, left: Value, right: Value) -> Value:
    """A Python operator or comparison, one side of which is a time."""
    function = BINARY_UFUNCS.get(op)
    made = None if function is None else ufunc(s, function, [left, right])
    if made is None:
        raise s.hand_back(f"{op} of {s.describe(left)} and {s.describe(right)}")
    return made


def inplace(s: Context, op: str, left: TimeV, right: Value) -> Value:
    """`left op= right`."""
    made = binary(s, op, left, right)
    if not isinstance(left.value, ArrayV):
        return made
    if not isinstance(made, TimeV) or made.unit != left.unit:
        raise s.hand_back(f"{op}= of {s.describe(left)} and {s.describe(right)}")
    if not fit_outputs(s, [made.value], [left.value]):
        return NeverV()
    store_array(s, left.value, made.value, casting="same_kind", out=True)
    return left


def unary(s: Context, op: str, value: TimeV) -> Value:
    made = ufunc(s, UNARY_UFUNCS[op], [value])
    if made is None:
        raise s.hand_back(f"{op} of {s.describe(value)}")
    return made


# ---- loops -----------------------------------------------------------------------------------------------------------


def is_nat(b: Builder, *operands: ir.Operand) -> ir.Operand:
    """Is one of them NaT?"""
    found: ir.Operand = ir.Const(False, PYBOOL)
    for operand in operands:
        found = b.logical_or(found, b.prim("eq", operand, NAT, type=PYBOOL))
    return found


def _arithmetic(prim: str) -> Loop:
    def loop(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
        b = s.builder
        if "d" in kinds:
            return _rounded(s, prim, operands)
        times = [operand for operand, kind in zip(operands, kinds, strict=True) if kind in "mM"]
        return b.select(is_nat(b, *times), NAT, b.prim(prim, *operands, type=INT64))

    return loop


def _comparison(prim: str) -> Loop:
    def loop(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
        b = s.builder
        answer = b.prim(prim, *operands, type=BOOL)
        return b.select(is_nat(b, *operands), ir.Const(prim == "ne", BOOL), answer)

    return loop


def _chosen(prim: str, ignores_nat: bool) -> Loop:
    def loop(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
        b, (left, right) = s.builder, operands
        chosen = b.select(b.prim(prim, left, right, type=PYBOOL), left, right)
        if not ignores_nat:
            return b.select(is_nat(b, left, right), NAT, chosen)
        return b.select(is_nat(b, left), right, b.select(is_nat(b, right), left, chosen))

    return loop


def _rounded(s: Context, prim: str, operands: list[ir.Operand]) -> ir.Operand:
    """A duration times, or by, a float, or a float times one: computed in float64, whose fraction is cut off."""
    b = s.builder
    duration = next(operand for operand in operands if operand.type == INT64)
    exact = b.prim(prim, *(b.cast(operand, FLOAT64) for operand in operands))
    whole = b.select(b.prim("isfinite", exact, type=PYBOOL), b.cast(exact, INT64), NAT)
    return b.select(is_nat(b, duration), NAT, whole)


def _by_int(s: Context, operands: list[ir.Operand]) -> ir.Operand:
    """A duration by an int, as C divides: the fraction is cut off."""
    b, (duration, number) = s.builder, operands
    s.check(b.prim("ne", number, _ZERO, type=PYBOOL), "Deoptimize", "a duration divided by 0, of which NumPy warns")
    down = b.prim("floordiv", duration, number, type=INT64)
    rest = b.prim("sub", duration, b.prim("mul", down, number, type=INT64), type=INT64)
    up = b.logical_and(b.prim("lt", down, _ZERO, type=PYBOOL), b.prim("ne", rest, _ZERO, type=PYBOOL))
    cut = b.select(up, b.prim("add", down, _ONE, type=INT64), down)
    return b.select(is_nat(b, duration), NAT, cut)


def _ratio(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    b = s.builder
    if kinds != "mm":
        return _by_int(s, operands) if "d" not in kinds else _rounded(s, "div", operands)
    left, right = (b.cast(operand, FLOAT64) for operand in operands)
    return b.select(is_nat(b, *operands), ir.Const(float("nan"), FLOAT64), b.prim("div", left, right))


def _times_of(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    """How often the second goes into the first, of which NumPy warns for NaT; a duration by a number is as with /."""
    b = s.builder
    if kinds != "mm":
        return _ratio(s, operands, kinds)
    s.check(b.prim("ne", operands[0], NAT, type=PYBOOL), "Deoptimize", "NaT divided, of which NumPy warns")
    return b.prim("floordiv", *operands, type=INT64)


def _absolute(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    return s.builder.prim("abs", operands[0], type=INT64)  # that of NaT is NaT


def _negative(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    return s.builder.prim("neg", operands[0], type=INT64)


def _same(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    return operands[0]


def _nat(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    return s.builder.prim("eq", operands[0], NAT, type=BOOL)


def _finite(s: Context, operands: list[ir.Operand], kinds: str) -> ir.Operand:
    return s.builder.prim("ne", operands[0], NAT, type=BOOL)


_LOOPS: dict[np.ufunc, Loop] = {
    np.add: _arithmetic("add"),
    np.subtract: _arithmetic("sub"),
    np.multiply: _arithmetic("mul"),
    np.true_divide: _ratio,
    np.floor_divide: _times_of,
    np.remainder: _arithmetic("mod"),
    np.equal: _comparison("eq"),
    np.not_equal: _comparison("ne"),
    np.less: _comparison("lt"),
    np.less_equal: _comparison("le"),
    np.greater: _comparison("gt"),
    np.greater_equal: _comparison("ge"),
    np.minimum: _chosen("lt", False),
    np.maximum: _chosen("gt", False),
    np.fmin: _chosen("lt", True),
    np.fmax: _chosen("gt", True),
    np.negative: _negative,
    np.positive: _same,
    np.absolute: _absolute,
    np.isnat: _nat,
    np.isfinite: _finite,
}
_BY_KNOWN = frozenset({np.floor_divide, np.remainder})
