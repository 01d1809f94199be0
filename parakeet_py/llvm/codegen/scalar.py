"""Scalar primitives as LLVM IR, each with the meaning `typed_ir/ir.py` gives it and NumPy's values.

Everything is free of branches, so that loops of primitives can be widened; only the checked ones leave the straight
line, through the `overflow` callback. Floats are strict IEEE 754 (no contraction, no reassociation) unless the module
or the statement allows more. Half precision computes in single precision and rounds back, as NumPy does; for the
basic operations that is the same as rounding once.

`minimum` and `maximum` give NaN when an argument is NaN, and their second argument when both are equal (two zeros of
different sign), as NumPy's do (the first one in half precision); on AArch64 -0.0 is below 0.0 (`codegen.aarch64`), but
not for `at_least` and `at_most`. Accumulating ones (`reassoc`) need not care about the sign of zeros, and `minimum` and
`maximum` not about NaN (see `imp/lower/extrema.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from parakeet_py.base.types import is_complex, is_float, is_unsigned, same_bits
from parakeet_py.llvm.codegen import aarch64, complex, division
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText, Value, float_literal, is_literal
from parakeet_py.llvm.math import functions
from parakeet_py.typed_ir.ir import EXTREMA, ROUNDED

Overflow = Callable[[str], None]  # given the i1 that is set by an overflow, leaves the function if it is set

_FLOAT_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_FLOAT_ORDER = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_BOOL = {"add": "or", "mul": "and", "and": "and", "or": "or", "xor": "xor", "ne": "xor", "sub": "xor"}
_BOOL_EXTREMA = {"minimum": "and", "fmin": "and", "maximum": "or", "fmax": "or"}
_STAYS_HALF = frozenset({"neg", "abs", "copysign", "signbit", "select", "nextafter", "bits"})  # work on the bits


def primitive(
    f: FunctionText,
    name: str,
    dtype: str,
    arguments: tuple[Value, ...],
    *,
    reassoc: bool = False,
    python: bool = False,
    overflow: Overflow | None = None,
) -> Value:
    """Write a primitive and give its value.

    Parameters
    ----------
    dtype : of the arguments (of the last ones for `select`)
    reassoc : a float accumulation may be regrouped
    python : the result is a Python number (complex division rounds as Python's)
    overflow : leaves the function, for the checked primitives
    """
    if name == "complex":
        real, imag = arguments
        assert isinstance(real, str) and isinstance(imag, str)
        return real, imag
    if is_complex(dtype):
        return complex.primitive(f, name, dtype, arguments, reassoc=reassoc, python=python)
    if name in ("real", "conj"):
        return arguments[0]
    operands = [argument for argument in arguments if isinstance(argument, str)]
    if name == "select":
        return f.select(operands[0], LLVM_TYPE[dtype], operands[1], operands[2])
    if dtype == "bool":
        return _bool(f, name, operands)
    if is_float(dtype):
        if dtype == "float16" and name not in _STAYS_HALF:
            return _half(f, name, operands, reassoc)
        return _float(f, name, dtype, operands, reassoc)
    return _integer(f, name, dtype, operands, overflow)


def _bool(f: FunctionText, name: str, arguments: list[str]) -> str:
    operation = _BOOL.get(name) or _BOOL_EXTREMA.get(name)
    if operation:
        return f.binary(operation, "i1", *arguments)
    match name:
        case "not":
            return f.binary("xor", "i1", arguments[0], "true")
        case "abs" | "neg":
            return arguments[0]
        case "eq":
            return f.binary("icmp eq", "i1", *arguments)
        case "lt" | "le" | "gt" | "ge":
            return f.binary(f"icmp u{name}", "i1", *arguments)
        case "imag" | "isnan" | "isinf" | "signbit":
            return "false"
        case "isfinite":
            return "true"
    raise NotImplementedError(f"{name} of bool")


def _integer(f: FunctionText, name: str, dtype: str, arguments: list[str], overflow: Overflow | None) -> str:
    kind, unsigned = LLVM_TYPE[dtype], is_unsigned(dtype)
    sign = "u" if unsigned else "s"
    first = arguments[0]
    if name in _INTEGER:
        return f.binary(_INTEGER[name], kind, *arguments)
    match name:
        case "eq" | "ne":
            even = division.divides(f, kind, unsigned, first) if arguments[1] == "0" else None
            if even is not None:
                return even if name == "eq" else f.binary("xor", "i1", even, "true")
            return f.binary(f"icmp {name}", kind, *arguments)
        case "lt" | "le" | "gt" | "ge":
            return f.binary(f"icmp {sign}{name}", kind, *arguments)
        case "minimum" | "fmin" | "maximum" | "fmax":
            return _integer_extremum(f, f"{sign}{name.removeprefix('f')[:3]}", kind, arguments)
        case "neg":
            return f.binary("sub", kind, "0", first)
        case "not":
            return f.binary("xor", kind, first, "-1")
        case "abs":
            return first if unsigned else _absolute(f, kind, first)
        case "mul_high":
            wide = [f.value(f"zext i64 {argument} to i128") for argument in arguments]
            return f.value(f"trunc i128 {f.binary('lshr', 'i128', f.binary('mul', 'i128', *wide), '64')} to i64")
        case "shl" | "shr":
            return _shift(f, name, kind, unsigned, *arguments)
        case "floordiv" | "mod" | "fmod":
            return division.integer(f, name, kind, unsigned, *arguments)
        case "add_checked" | "sub_checked" | "mul_checked":
            return _checked(f, name.removesuffix("_checked"), kind, *arguments, overflow=overflow)
        case "neg_checked":
            return _checked(f, "sub", kind, "0", first, overflow=overflow)
        case "abs_checked":
            assert overflow is not None
            overflow(f.binary("icmp eq", kind, first, str(-(1 << 63))))
            return _absolute(f, kind, first)
        case "imag":
            return "0"
        case "isnan" | "isinf":
            return "false"
        case "isfinite":
            return "true"
        case "from_bits":
            return f.value(f"bitcast {kind} {first} to {LLVM_TYPE[same_bits(dtype)]}")
        case "signbit":
            return "false" if unsigned else f.binary("icmp slt", kind, first, "0")
    raise NotImplementedError(f"{name} of {dtype}")


def _integer_extremum(f: FunctionText, name: str, kind: str, arguments: list[str]) -> str:
    result = f.intrinsic(name, kind, *arguments)
    known = [bound for argument in arguments if (bound := f.bound(argument)) is not None]
    if name == "smax" and known:
        f.bounds[result] = max(known)
    elif name == "smin" and len(known) == 2:
        f.bounds[result] = min(known)
    return result


def _absolute(f: FunctionText, kind: str, value: str) -> str:
    function = f.module.declare(kind, f"llvm.abs.{kind}", f"{kind}, i1", "")
    return f.value(f"call {kind} {function}({kind} {value}, i1 false)")


def _checked(f: FunctionText, operation: str, kind: str, left: str, right: str, *, overflow: Overflow | None) -> str:
    assert overflow is not None
    function = f.module.declare(f"{{{kind}, i1}}", f"llvm.s{operation}.with.overflow.{kind}", f"{kind}, {kind}", "")
    pair = f.value(f"call {{{kind}, i1}} {function}({kind} {left}, {kind} {right})")
    result = f.value(f"extractvalue {{{kind}, i1}} {pair}, 0")
    overflow(f.value(f"extractvalue {{{kind}, i1}} {pair}, 1"))
    return result


def _shift(f: FunctionText, name: str, kind: str, unsigned: bool, value: str, amount: str) -> str:
    """Shifts by the width or more (or by a negative number) shift everything out, as NumPy's."""
    if is_literal(amount) and 0 <= int(amount) < int(kind[1:]):
        result = f.binary({"shl": "shl", "shr": "lshr" if unsigned else "ashr"}[name], kind, value, amount)
        bound = f.bound(value)
        if name == "shr" and not unsigned and bound is not None and bound >= 0:
            f.bounds[result] = 0
        return result
    small = f.binary("icmp ult", kind, amount, kind[1:])
    if f.module.host.gpu and kind == "i64" and (name == "shl" or unsigned):
        # in two steps: NVPTX (LLVM 22) makes a shift and a select one shift by the lower half of the amount
        operation = "shl" if name == "shl" else "lshr"
        first = f.binary(operation, kind, value, f.intrinsic("umin", kind, amount, "63"))
        return f.binary(operation, kind, first, f.value(f"zext i1 {f.binary('xor', 'i1', small, 'true')} to {kind}"))
    if name == "shl":
        return f.select(small, kind, f.binary("shl", kind, value, amount), "0")
    if unsigned:
        return f.select(small, kind, f.binary("lshr", kind, value, amount), "0")
    return f.binary("ashr", kind, value, f.select(small, kind, amount, str(int(kind[1:]) - 1)))


def _half(f: FunctionText, name: str, arguments: list[str], reassoc: bool) -> str:
    wide = [f.value(f"fpext half {argument} to float") for argument in arguments]
    if name in EXTREMA and not reassoc:
        result = _extremum(f, name, "float", wide[0], wide[1], "e")
    else:
        result = _float(f, name, "float32", wide, reassoc)
    if name in _FLOAT_ORDER or name in ("isnan", "isinf", "isfinite"):
        return result
    return f.value(f"fptrunc float {result} to half")


def _float(f: FunctionText, name: str, dtype: str, arguments: list[str], reassoc: bool) -> str:
    kind = LLVM_TYPE[dtype]
    flags = f.module.flags + ("reassoc " if reassoc else "")
    first = arguments[0]
    if name in _FLOAT_ARITHMETIC:
        return f.binary(f"{_FLOAT_ARITHMETIC[name]} {flags}", kind, *arguments)
    if name in _FLOAT_ORDER:
        return f.binary(f"fcmp {_FLOAT_ORDER[name]}", kind, *arguments)
    if name in ROUNDED:
        return f.intrinsic(name, kind, first)
    match name:
        case "neg":
            return f.value(f"fneg {kind} {first}")
        case "abs":
            return f.intrinsic("fabs", kind, first)
        case "copysign":
            return f.intrinsic("copysign", kind, *arguments)
        case "imag":
            return float_literal(0.0, kind)
        case "isnan":
            return f.binary("fcmp uno", kind, first, first)
        case "isinf" | "isfinite":
            order = "oeq" if name == "isinf" else "olt"
            return f.binary(f"fcmp {order}", kind, f.intrinsic("fabs", kind, first), infinity(kind))
        case "bits":
            return f.value(f"bitcast {kind} {first} to {_BITS[kind]}")
        case "signbit":
            integer = _BITS[kind]
            return f.binary("icmp slt", integer, f.value(f"bitcast {kind} {first} to {integer}"), "0")
        case "at_least" | "at_most":
            return _extremum(f, "maximum" if name == "at_least" else "minimum", kind, first, arguments[1], "t")
        case "minimum" | "maximum" | "fmin" | "fmax":
            if f.module.host.aarch64:
                return aarch64.extremum(f, name, kind, first, arguments[1])
            if reassoc and name in ("fmin", "fmax"):
                function = f"llvm.{'minimum' if name == 'fmin' else 'maximum'}num.f{64 if kind == 'double' else 32}"
                declared = f.module.declare(kind, function, f"{kind}, {kind}", "")
                return f.value(f"call nsz {kind} {declared}({kind} {first}, {kind} {arguments[1]})")
            if reassoc:
                order = "olt" if name == "minimum" else "ogt"
                better = f.binary(f"fcmp nnan nsz {order}", kind, arguments[1], first)
                return f.value(f"select nnan nsz i1 {better}, {kind} {arguments[1]}, {kind} {first}")
            return _extremum(f, name, kind, arguments[0], arguments[1], "t")
        case "floordiv" | "mod" | "fmod":
            return division.floating(f, name, kind, arguments[0], arguments[1])
        case "pow":
            return functions.power(f, dtype, arguments[0], arguments[1])
        case "power":
            return functions.power_of_arrays(f, dtype, arguments[0], arguments[1])
    return functions.call(f, name, dtype, arguments)


_BITS = {"half": "i16", "float": "i32", "double": "i64"}


def infinity(kind: str) -> str:
    """The literal of +inf."""
    return float_literal(float("inf"), kind)


def _extremum(f: FunctionText, name: str, kind: str, left: str, right: str, strict: str) -> str:
    order = f"ol{strict}" if name in ("minimum", "fmin") else f"og{strict}"
    better = f.select(f.binary(f"fcmp {order}", kind, left, right), kind, left, right)
    # `better` is `right` when either is NaN: right for a NaN there under minimum, and for a NaN on the left under fmin
    odd = left if name in ("minimum", "maximum") else right
    return f.select(f.binary("fcmp uno", kind, odd, odd), kind, left, better)
