"""Complex primitives: a complex value is a pair (real part, imaginary part) of float values.

The formulas are NumPy's loops: products without contraction, quotients by Smith's method (scaling by the larger part
of the divisor; NumPy multiplies by a reciprocal where Python divides), absolute values by the quotient of the parts.
Those of scalars, which NumPy and Python compute by the C library's hypot, are `hypot` in the IR.
"""

from __future__ import annotations

import math

from parakeet_py.base.types import real_dtype
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText, Value, float_literal
from parakeet_py.llvm.math import forms


def primitive(
    f: FunctionText,
    name: str,
    dtype: str,
    arguments: tuple[Value, ...],
    *,
    reassoc: bool = False,
    python: bool = False,
) -> Value:
    """Write a primitive whose arguments are complex."""
    part = real_dtype(dtype)
    kind = LLVM_TYPE[part]
    flags = f.module.flags + ("reassoc " if reassoc else "")
    if name == "select":
        condition, then, orelse = arguments
        assert isinstance(condition, str)
        return (
            f.select(condition, kind, then[0], orelse[0]),
            f.select(condition, kind, then[1], orelse[1]),
        )
    first = arguments[0]
    real, imag = first[0], first[1]

    def each(operation: str, left: Value, right: Value) -> tuple[str, str]:
        return f.binary(operation, kind, left[0], right[0]), f.binary(operation, kind, left[1], right[1])

    match name:
        case "add" | "sub":
            return each(f"f{name} {flags}", arguments[0], arguments[1])
        case "mul":
            return _product(f, kind, flags, (real, imag), arguments[1])
        case "div":
            return _quotient(f, kind, (real, imag), arguments[1], python)
        case "neg":
            return f.value(f"fneg {kind} {real}"), f.value(f"fneg {kind} {imag}")
        case "conj":
            return real, f.value(f"fneg {kind} {imag}")
        case "real":
            return real
        case "imag":
            return imag
        case "abs":
            return _absolute(f, kind, real, imag)
        case "eq":
            same = each("fcmp oeq", arguments[0], arguments[1])
            return f.binary("and", "i1", *same)
        case "ne":
            other = each("fcmp une", arguments[0], arguments[1])
            return f.binary("or", "i1", *other)
        case "isnan":
            return f.binary("fcmp uno", kind, real, imag)
        case "isinf" | "isfinite":
            limit = "0x7FF0000000000000"
            order, joined = ("oeq", "or") if name == "isinf" else ("olt", "and")
            sizes = f.intrinsic("fabs", kind, real), f.intrinsic("fabs", kind, imag)
            return f.binary(joined, "i1", *each(f"fcmp {order}", sizes, (limit, limit)))
    raise NotImplementedError(f"{name} of {dtype}")


def _absolute(f: FunctionText, kind: str, real: str, imag: str) -> str:
    """m * sqrt(1 + q * q) with m the larger of the parts' sizes and q the quotient of the smaller by it, as NumPy's
    vector loop has it, with a fused multiply-add where the machine has one. An infinite part outweighs NaN."""
    zero, one, infinity = (float_literal(value, kind) for value in (0.0, 1.0, math.inf))
    a, b = f.intrinsic("fabs", kind, real), f.intrinsic("fabs", kind, imag)
    swap = f.binary("fcmp ogt", kind, b, a)
    larger, smaller = f.select(swap, kind, b, a), f.select(swap, kind, a, b)
    quotient = f.binary("fdiv", kind, smaller, larger)
    if f.module.host.gpu or forms.supported(f.module.host):
        total = f.intrinsic("fma", kind, quotient, quotient, one)
    else:
        total = f.binary("fadd", kind, f.binary("fmul", kind, quotient, quotient), one)
    size = f.binary("fmul", kind, f.intrinsic("sqrt", kind, total), larger)
    ends = [f.binary("fcmp oeq", kind, part, infinity) for part in (a, b)]
    size = f.select(f.binary("fcmp oeq", kind, larger, zero), kind, f.binary("fadd", kind, larger, smaller), size)
    return f.select(f.binary("or", "i1", *ends), kind, infinity, size)


def _product(f: FunctionText, kind: str, flags: str, left: Value, right: Value) -> tuple[str, str]:
    def times(a: str, b: str) -> str:
        return f.binary(f"fmul {flags}", kind, a, b)

    real = f.binary(f"fsub {flags}", kind, times(left[0], right[0]), times(left[1], right[1]))
    imag = f.binary(f"fadd {flags}", kind, times(left[0], right[1]), times(left[1], right[0]))
    return real, imag


def _quotient(f: FunctionText, kind: str, left: Value, right: Value, python: bool) -> tuple[str, str]:
    """Smith, "Algorithm 116: Complex division", CACM 5(8), 1962, in the two roundings of NumPy and Python."""
    size_real, size_imag = f.intrinsic("fabs", kind, right[0]), f.intrinsic("fabs", kind, right[1])
    wide = f.binary("fcmp oge", kind, size_real, size_imag)
    major = f.select(wide, kind, right[0], right[1])
    minor = f.select(wide, kind, right[1], right[0])
    ratio = f.binary("fdiv", kind, minor, major)
    scale = f.binary("fadd", kind, major, f.binary("fmul", kind, minor, ratio))

    # wide: (a + b r, b - a r) / scale; else: (a r + b, b r - a) / scale
    a_major = f.select(wide, kind, left[0], left[1])
    b_major = f.select(wide, kind, left[1], left[0])
    real = f.binary("fadd", kind, a_major, f.binary("fmul", kind, b_major, ratio))
    tail = f.binary("fmul", kind, a_major, ratio)
    imag = f.select(
        wide,
        kind,
        f.binary("fsub", kind, b_major, tail),
        f.binary("fsub", kind, tail, left[0]),
    )
    if python:
        return f.binary("fdiv", kind, real, scale), f.binary("fdiv", kind, imag, scale)
    reciprocal = f.binary("fdiv", kind, "0x3FF0000000000000", scale)
    real, imag = f.binary("fmul", kind, real, reciprocal), f.binary("fmul", kind, imag, reciprocal)
    # a zero divisor (|right| is 0 + 0i) gives infinities and NaNs by parts
    by_zero = f.binary("and", "i1", wide, f.binary("fcmp oeq", kind, size_real, "0x0000000000000000"))
    return (
        f.select(by_zero, kind, f.binary("fdiv", kind, left[0], size_real), real),
        f.select(by_zero, kind, f.binary("fdiv", kind, left[1], size_real), imag),
    )
