"""Conversions between dtypes, with the values of `ndarray.astype`.

C leaves out-of-range conversions of floats to integers undefined and LLVM makes them poison; NumPy gives what the
machine's instructions give. Those values are spelled out here, for x86's `cvtt`: out of range and NaN is the lowest
int32 or int64; narrower integers are cut from an int32, uint32 from an int64, and uint64 takes its upper half from a
shifted conversion. (For AArch64: `codegen.aarch64`.)
"""

from __future__ import annotations

from parakeet_py.base.types import is_complex, is_float, is_unsigned, itemsize, real_dtype
from parakeet_py.llvm.codegen import aarch64
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText, Value, float_literal, is_literal

_INFINITE = 65521  # as a float16


def cast(f: FunctionText, value: Value, source: str, target: str) -> Value:
    """Convert a value of dtype `source` to dtype `target`."""
    if source == target:
        return value
    if is_complex(target):
        part = real_dtype(target)
        if is_complex(source):
            return _real(f, value[0], real_dtype(source), part), _real(f, value[1], real_dtype(source), part)
        assert isinstance(value, str)
        return _real(f, value, source, part), float_literal(0.0, LLVM_TYPE[part])
    if is_complex(source):
        part = real_dtype(source)
        if target == "bool":
            return f.binary("or", "i1", _real(f, value[0], part, "bool"), _real(f, value[1], part, "bool"))
        return _real(f, value[0], part, target)
    assert isinstance(value, str)
    return _real(f, value, source, target)


def _real(f: FunctionText, value: str, source: str, target: str) -> str:
    if source == target:
        return value
    kind, wanted = LLVM_TYPE[source], LLVM_TYPE[target]
    if is_float(source):
        if is_float(target):
            return _float_to_float(f, value, kind, wanted)
        if target == "bool":
            return f.binary("fcmp une", kind, value, float_literal(0.0, kind))
        return _float_to_integer(f, value, kind, target)
    if target == "bool":
        return f.binary("icmp ne", kind, value, "0")
    if is_float(target):
        operation = "uitofp" if source == "bool" or is_unsigned(source) else "sitofp"
        if wanted == "half":  # through float32, as NumPy does
            value = _near_half(f, value, source, kind)
            return f.value(f"fptrunc float {f.value(f'{operation} {kind} {value} to float')} to half")
        return f.value(f"{operation} {kind} {value} to {wanted}")
    if source == "bool":
        return f.value(f"zext i1 {value} to {wanted}")
    if itemsize(source) == itemsize(target):
        if is_literal(value) and not is_unsigned(target):
            half_range = 1 << 8 * itemsize(target) - 1
            return str((int(value) + half_range) % (2 * half_range) - half_range)
        return value
    if itemsize(source) > itemsize(target):
        return f.value(f"trunc {kind} {value} to {wanted}")
    return f.value(f"{'zext' if is_unsigned(source) else 'sext'} {kind} {value} to {wanted}")


def _float_to_float(f: FunctionText, value: str, kind: str, wanted: str) -> str:
    order = ("half", "float", "double")
    if order.index(wanted) > order.index(kind):
        return f.value(f"fpext {kind} {value} to {wanted}")
    if (kind, wanted) == ("double", "half"):
        return _double_to_half(f, value)
    return f.value(f"fptrunc {kind} {value} to {wanted}")


def _double_to_half(f: FunctionText, value: str) -> str:
    """Round once although the machine only narrows double to float to half.

    The first step rounds to odd: an inexact float with an even last bit is moved to its odd neighbour on the side of
    the value, so that the second step sees on which side of a tie the value was (Boldo and Melquiond, "Emulation of
    FMA and correctly rounded sums", 2008).
    """
    near = f.value(f"fptrunc double {value} to float")
    back = f.value(f"fpext float {near} to double")
    inexact = f.binary("fcmp one", "double", back, value)
    bits = f.value(f"bitcast float {near} to i32")
    even = f.binary("icmp eq", "i32", f.binary("and", "i32", bits, "1"), "0")
    beyond = f.binary("fcmp ogt", "double", f.intrinsic("fabs", "double", back), f.intrinsic("fabs", "double", value))
    moved = f.binary("add", "i32", bits, f.select(beyond, "i32", "-1", "1"))
    adjust = f.binary("and", "i1", inexact, even)
    odd = f.value(f"bitcast i32 {f.select(adjust, 'i32', moved, bits)} to float")
    return f.value(f"fptrunc float {odd} to half")


def _float_to_integer(f: FunctionText, value: str, kind: str, target: str) -> str:
    if kind == "half":
        value, kind = f.value(f"fpext half {value} to float"), "float"
    if f.module.host.aarch64:
        return aarch64.to_integer(f, value, kind, target)
    if target == "uint64":
        half_range = float_literal(2.0**63, kind)
        upper = f.binary("fcmp oge", kind, value, half_range)
        lowered = f.select(upper, kind, f.binary("fsub", kind, value, half_range), value)
        signed = _to_signed(f, lowered, kind, 64)
        return f.binary("xor", "i64", signed, f.select(upper, "i64", str(-(1 << 63)), "0"))
    if target in ("int64", "uint32"):
        wide = _to_signed(f, value, kind, 64)
        return wide if target == "int64" else f.value(f"trunc i64 {wide} to i32")
    word = _to_signed(f, value, kind, 32)
    return word if target == "int32" else f.value(f"trunc i32 {word} to {LLVM_TYPE[target]}")


def _to_signed(f: FunctionText, value: str, kind: str, bits: int) -> str:
    """`cvtt`: the lowest integer for what is out of range (which may be itself: -2**63 is not less in size)."""
    fits = f.binary("fcmp olt", kind, f.intrinsic("fabs", kind, value), float_literal(2.0 ** (bits - 1), kind))
    return f.select(fits, f"i{bits}", f.value(f"fptosi {kind} {value} to i{bits}"), str(-(1 << bits - 1)))


def _near_half(f: FunctionText, value: str, source: str, kind: str) -> str:
    """An integer that is the same float16, with significant bits enough that LLVM converts it.

    LLVM leaves out a conversion to float16 and back if an integer has no more significant bits than a float16, in spite
    of its size: 2**62 would stay what it is. The bound has 16 of them, and from 65520 on all are infinite.
    """
    if source == "bool" or itemsize(source) <= 2:
        return value
    below = f.value(f"icmp {'ult' if is_unsigned(source) else 'slt'} {kind} {value}, {_INFINITE}")
    value = f.select(below, kind, value, str(_INFINITE))
    if is_unsigned(source):
        return value
    above = f.value(f"icmp sgt {kind} {value}, {-_INFINITE}")
    return f.select(above, kind, value, str(-_INFINITE))
