"""Division that rounds down, and remainders, with the values of Python and NumPy.

Integers: `x // 0` and `x % 0` are 0 and `minimum // -1` wraps (NumPy's values; Python ints are checked before). The
divisor is replaced by 1 where the machine would trap, which costs a select and keeps loops free of branches.

Floats follow NumPy's `npy_divmod`: an exact remainder with C's signs, turned to the divisor's sign; the quotient is
taken from what is left and snapped to the nearest integer, so that both agree; zeros are signed as Python's.
"""

from __future__ import annotations

from parakeet_py.llvm.codegen import reciprocal
from parakeet_py.llvm.codegen.builder import FunctionText, float_literal, is_literal
from parakeet_py.llvm.math import functions


def integer(f: FunctionText, name: str, kind: str, unsigned: bool, left: str, right: str) -> str:
    """floordiv, mod (Python's signs) and fmod (C's signs) of integers."""
    by_zero = "false"
    divisor = right
    least, smallest, full = f.bound(left), f.bound(right), unsigned
    if not unsigned and least is not None and least >= 0 and smallest is not None and smallest >= 1:
        unsigned = True  # both are, in fact
    if is_literal(right) and int(right) > 0 and (unsigned or name != "fmod"):
        result = _by_known(f, name, kind, unsigned, left, int(right), full)
        if not full and (unsigned or name == "mod"):
            f.bounds[result] = 0
        if name == "mod":
            f.remainders[result] = (left, right)
        return result
    if reciprocal.serves(f, kind, right):
        return reciprocal.integer(f, name, kind, unsigned, left, right)
    if (smallest is None or smallest < 1) and (not is_literal(right) or int(right) in (0, -1)):
        by_zero = f.binary("icmp eq", kind, right, "0")
        unsafe = by_zero
        if not unsigned:
            lowest = f.binary("icmp eq", kind, left, str(-(1 << int(kind[1:]) - 1)))
            minus_one = f.binary("icmp eq", kind, right, "-1")
            unsafe = f.binary("or", "i1", by_zero, f.binary("and", "i1", lowest, minus_one))
        divisor = f.select(unsafe, kind, "1", right)
    quotient = _quotient(f, kind, unsigned, left, divisor)
    if unsigned and name == "floordiv":
        return quotient if by_zero == "false" else f.select(by_zero, kind, "0", quotient)
    # with the divisor 1 in place of 0, the remainder is 0 of itself
    if kind == "i64" and name != "floordiv" and not is_literal(right):
        remainder = f.binary("urem" if unsigned else "srem", kind, left, divisor)  # the division gives both
    else:
        remainder = f.binary("sub", kind, left, f.binary("mul", kind, quotient, divisor))
    if unsigned or name == "fmod":
        return remainder
    some = f.binary("icmp ne", kind, remainder, "0")
    opposite = f.binary("icmp slt", kind, f.binary("xor", kind, remainder, divisor), "0")
    adjust = f.binary("and", "i1", some, opposite)
    if name == "mod":
        return f.select(adjust, kind, f.binary("add", kind, remainder, divisor), remainder)
    floored = f.select(adjust, kind, f.binary("sub", kind, quotient, "1"), quotient)
    return floored if by_zero == "false" else f.select(by_zero, kind, "0", floored)


def _by_known(f: FunctionText, name: str, kind: str, unsigned: bool, left: str, divisor: int, full: bool) -> str:
    """floordiv and mod by a known positive number, and fmod of what is not negative (`full`: by its type)."""
    if divisor & (divisor - 1) == 0:
        if name != "floordiv":
            return f.binary("and", kind, left, str(divisor - 1))
        return f.binary("lshr" if unsigned else "ashr", kind, left, str(divisor.bit_length() - 1))
    if unsigned:
        quotient = _known_quotient(f, kind, left, divisor, full)
    else:
        sign = f.binary("ashr", kind, left, str(int(kind[1:]) - 1))
        quotient = _known_quotient(f, kind, f.binary("xor", kind, left, sign), divisor, full)
        quotient = f.binary("xor", kind, quotient, sign)
    if name == "floordiv":
        return quotient
    return f.binary("sub", kind, left, f.binary("mul", kind, quotient, str(divisor)))


def divides(f: FunctionText, kind: str, unsigned: bool, remainder: str) -> str | None:
    """Whether a remainder by a known number is 0, which one product shows, whatever the sign.

    A multiple of an odd d times its inverse modulo 2**bits is the quotient, and a small number; what is no multiple
    becomes one of the other numbers, which are large. Of d * 2**k, the lowest k bits have to be 0, too: rotated, they
    make large numbers (Warren, Hacker's Delight, 10-17). LLVM does so for single numbers, but not for vectors.
    """
    if f.module.host.gpu or remainder not in f.remainders:
        return None
    number, divisor = f.remainders[remainder]
    known, bits = int(divisor), int(kind[1:])
    if not f.widened or bits < 32 or known & (known - 1) == 0:
        return f.binary("icmp eq", kind, f.binary("urem" if unsigned else "srem", kind, number, divisor), "0")
    shift = (known & -known).bit_length() - 1
    odd = known >> shift
    product = f.binary("mul", kind, number, str(_signed(pow(odd, -1, 1 << bits), bits)))
    if unsigned:
        most = ((1 << bits) - 1) // known
    else:
        size = ((1 << bits - 1) - 1) // odd >> shift << shift
        product, most = f.binary("add", kind, product, str(size)), 2 * size >> shift
    if shift:
        low = f.binary("shl", kind, product, str(bits - shift))
        product = f.binary("or", kind, f.binary("lshr", kind, product, str(shift)), low)
    return f.binary("icmp ule", kind, product, str(_signed(most, bits)))


def _signed(number: int, bits: int) -> int:
    return number - (number >> bits - 1 << bits)


def _known_quotient(f: FunctionText, kind: str, left: str, divisor: int, full: bool) -> str:
    """The quotient of an unsigned number and a known one, no power of two; only `full` numbers use the highest bit."""
    if kind != "i64" or not f.widened or f.module.host.gpu:
        return f.binary("udiv", kind, left, str(divisor))
    bits = 64 if full else 63
    shift = (divisor - 1).bit_length()
    factor = (1 << bits + shift) // divisor + 1  # makes quotients exact up to 2**bits (Granlund, Montgomery)
    low_half, high_half = str(factor & (1 << 32) - 1), str(factor >> 32 & (1 << 32) - 1)
    high = reciprocal.upper_half(f, left, low_half, high_half)
    if factor < 1 << 64:
        return f.binary("lshr", "i64", high, str(bits + shift - 64))
    # left * factor >> 64 is left + high, which may take 65 bits
    half = f.binary("lshr", "i64", f.binary("sub", "i64", left, high), "1")
    return f.binary("lshr", "i64", f.binary("add", "i64", half, high), str(shift - 1))


def _quotient(f: FunctionText, kind: str, unsigned: bool, left: str, right: str) -> str:
    """The truncated quotient, which is in range. A CPU's vectors have no integer division, but a float quotient of
    integers of half its precision cannot round up to the next integer, and loops of it are widened."""
    bits = int(kind[1:])
    if bits == 64 or is_literal(right) or f.module.host.gpu:
        return f.binary("udiv" if unsigned else "sdiv", kind, left, right)
    letter = "u" if unsigned else "s"
    wide = "double" if bits == 32 else "float"
    a, b = (f.value(f"{letter}itofp {kind} {value} to {wide}") for value in (left, right))
    return f.value(f"fpto{letter}i {wide} {f.binary('fdiv', wide, a, b)} to {kind}")


def floating(f: FunctionText, name: str, kind: str, left: str, right: str) -> str:
    """floordiv, mod and fmod of floats (see `npy_divmod` in NumPy's npy_math_internal)."""
    zero, one = float_literal(0.0, kind), float_literal(1.0, kind)
    remainder = functions.call(f, "fmod", "float64" if kind == "double" else "float32", [left, right])
    if name == "fmod":
        return remainder
    by_zero = f.binary("fcmp oeq", kind, right, zero)
    some = f.binary("fcmp une", kind, remainder, zero)
    negative = f.binary("fcmp olt", kind, right, zero)
    opposite = f.binary("xor", "i1", negative, f.binary("fcmp olt", kind, remainder, zero))
    if name == "mod":
        turned = f.select(opposite, kind, f.binary("fadd", kind, remainder, right), remainder)
        signed = f.select(some, kind, turned, f.intrinsic("copysign", kind, zero, right))
        return f.select(by_zero, kind, remainder, signed)
    plain = f.binary("fdiv", kind, left, right)
    whole = f.binary("fdiv", kind, f.binary("fsub", kind, left, remainder), right)
    adjust = f.binary("and", "i1", some, opposite)
    whole = f.select(adjust, kind, f.binary("fsub", kind, whole, one), whole)
    down = f.intrinsic("floor", kind, whole)
    off = f.binary("fcmp ogt", kind, f.binary("fsub", kind, whole, down), float_literal(0.5, kind))
    snapped = f.select(off, kind, f.binary("fadd", kind, down, one), down)
    nonzero = f.binary("fcmp une", kind, whole, zero)
    result = f.select(nonzero, kind, snapped, f.intrinsic("copysign", kind, zero, plain))
    return f.select(by_zero, kind, plain, result)
