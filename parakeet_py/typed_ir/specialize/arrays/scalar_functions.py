"""What each ufunc computes on scalars of its loop dtypes.

`UFUNC_PRIMS` maps a ufunc to the primitive that is its loop for every dtype; `_SPECIAL` holds the few whose meaning
depends on the dtype (bool arithmetic, integer classification). All others are functions of the library, written in the
accelerated language over scalars and found through `library.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import BOOL, Scalar, is_complex, is_float, is_integer, is_unsigned
from parakeet_py.typed_ir import ir

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

Loop = Callable[[list[ir.Operand]], Sequence[ir.Operand]]

UFUNC_PRIMS: dict[np.ufunc, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "div",
    np.floor_divide: "floordiv",
    np.remainder: "mod",
    np.fmod: "fmod",
    np.negative: "neg",
    np.absolute: "abs",
    np.fabs: "abs",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
    np.invert: "not",
    np.left_shift: "shl",
    np.right_shift: "shr",
    np.equal: "eq",
    np.not_equal: "ne",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
    np.minimum: "minimum",
    np.maximum: "maximum",
    np.fmin: "fmin",
    np.fmax: "fmax",
    np.sqrt: "sqrt",
    np.exp: "exp",
    np.exp2: "exp2",
    np.expm1: "expm1",
    np.log: "log",
    np.log2: "log2",
    np.log10: "log10",
    np.log1p: "log1p",
    np.sin: "sin",
    np.cos: "cos",
    np.tan: "tan",
    np.arcsin: "asin",
    np.arccos: "acos",
    np.arctan: "atan",
    np.sinh: "sinh",
    np.cosh: "cosh",
    np.tanh: "tanh",
    np.arcsinh: "asinh",
    np.arccosh: "acosh",
    np.arctanh: "atanh",
    np.cbrt: "cbrt",
    np.floor: "floor",
    np.ceil: "ceil",
    np.trunc: "trunc",
    np.rint: "rint",
    np.arctan2: "atan2",
    np.hypot: "hypot",
    np.copysign: "copysign",
    np.nextafter: "nextafter",
    np.float_power: "pow",
    np.isnan: "isnan",
    np.isinf: "isinf",
    np.isfinite: "isfinite",
    np.signbit: "signbit",
    np.conjugate: "conj",
}

_BOOL = {
    "add": "or",
    "mul": "and",
    "minimum": "and",
    "fmin": "and",
    "maximum": "or",
    "fmax": "or",
    "eq": "eq",
    "ne": "xor",
}
_COMPLEX = frozenset({"add", "sub", "mul", "div", "neg", "abs", "eq", "ne", "conj"})


def scalar_loop(s: Context, ufunc: np.ufunc, names: Sequence[str]) -> Loop:
    """The function from operands of the loop's input dtypes to its results."""
    dtype = names[0]
    output = Scalar(names[ufunc.nin])
    special = _special(s, ufunc, dtype)
    if special is not None:
        return special
    prim = UFUNC_PRIMS.get(ufunc)
    if prim in ir.COMPARE and {*names[:2]} == {"int64", "uint64"}:
        return _mixed_comparison(s, prim, names[0] == "int64")
    if prim is not None and _has(prim, dtype):
        if dtype == "bool":
            prim = _BOOL.get(prim, prim)
        return lambda operands: [s.builder.prim(prim, *operands, type=output)]
    return s.library_loop(ufunc, names)


def _mixed_comparison(s: Context, prim: str, signed_first: bool) -> Loop:
    """int64 with uint64, by value: a negative number is less than all of the other type."""
    b = s.builder
    smaller = prim in ("lt", "le", "ne") if signed_first else prim in ("gt", "ge", "ne")

    def compare(operands: list[ir.Operand]) -> Sequence[ir.Operand]:
        signed = operands[0] if signed_first else operands[1]
        negative = b.prim("lt", signed, ir.Const(0, Scalar("int64")), type=BOOL)
        same = [b.cast(operand, Scalar("uint64")) for operand in operands]
        return [b.select(negative, ir.Const(smaller, BOOL), b.prim(prim, *same, type=BOOL))]

    return compare


def _has(prim: str, dtype: str) -> bool:
    if is_complex(dtype):
        return prim in _COMPLEX
    if prim == "conj":
        return False
    if prim in ir.FLOAT_UNARY or prim in ir.FLOAT_BINARY or prim in ir.FLOAT_TESTS:
        return is_float(dtype)
    if dtype == "bool":
        return prim in _BOOL or prim in ir.BITS or prim in ir.COMPARE
    if is_integer(dtype):
        return prim != "div"
    return prim not in ir.BITS


def _special(s: Context, ufunc: np.ufunc, dtype: str) -> Loop | None:
    b = s.builder

    def constant(value: bool) -> Loop:
        return lambda operands: [ir.Const(value, BOOL)]

    def truth(operand: ir.Operand) -> ir.Operand:
        return b.cast(operand, BOOL)

    discrete = dtype == "bool" or is_integer(dtype)
    if ufunc is np.positive or (ufunc is np.conjugate and not is_complex(dtype)):
        return lambda operands: operands
    if discrete and ufunc in (np.floor, np.ceil, np.trunc, np.rint):
        return lambda operands: operands
    if discrete and ufunc in (np.isnan, np.isinf):
        return constant(False)
    if discrete and ufunc is np.isfinite:
        return constant(True)
    if is_complex(dtype) and ufunc in (np.isnan, np.isinf, np.isfinite):
        test, join = UFUNC_PRIMS[ufunc], "and" if ufunc is np.isfinite else "or"
        part = Scalar("float32" if dtype == "complex64" else "float64")
        return lambda operands: [
            b.prim(
                join,
                *(b.prim(test, b.prim(half, operands[0], type=part), type=BOOL) for half in ("real", "imag")),
                type=BOOL,
            )
        ]
    if is_unsigned(dtype) and ufunc is np.absolute:
        return lambda operands: operands
    if dtype == "bool" and ufunc is np.absolute:
        return lambda operands: operands
    if ufunc is np.square:
        return lambda operands: [b.prim("and" if dtype == "bool" else "mul", operands[0], operands[0])]
    if ufunc is np.reciprocal and is_float(dtype):
        one = ir.Const(1.0, Scalar(dtype))
        return lambda operands: [b.prim("div", one, operands[0])]
    if ufunc is np.power and is_float(dtype):
        return lambda operands: [b.prim("pow", *operands)]
    if ufunc is np.logical_not:
        return lambda operands: [b.prim("not", truth(operands[0]), type=BOOL)]
    if ufunc in (np.logical_and, np.logical_or, np.logical_xor):
        name = {np.logical_and: "and", np.logical_or: "or", np.logical_xor: "xor"}[ufunc]
        return lambda operands: [b.prim(name, truth(operands[0]), truth(operands[1]), type=BOOL)]
    return None
