"""Division of integers by a divisor that is the same in all iterations of a loop, but known only when the program runs.

Vectors have no integer division, so the quotient is a product with a reciprocal, which is made once, in the entry block
of the function. It is that of Granlund and Montgomery (Division by Invariant Integers using Multiplication, figure
4.1), exact for all unsigned numbers of N bits and all divisors d > 0: with s = ceil(log2(d)),

    factor = floor(2**N * (2**s - d) / d) + 1          (2**N less than the reciprocal, which takes N + 1 bits)
    high   = n * factor >> N
    n // d = ((n - high >> min(s, 1)) + high) >> max(s - 1, 0)

Signed numbers are brought there by complements, which turn rounding up into rounding down without a branch or a
product: a // d is ~(~a // d) for a < 0, and a // -d is ~((a - 1) // d).

As elsewhere, `x // 0` and `x % 0` are 0 and `minimum // -1` wraps (NumPy's values).
"""

from __future__ import annotations

from parakeet_py.base.fast_dataclass import record
from parakeet_py.llvm.codegen.builder import PURE, FunctionText

_HALF = (1 << 32) - 1


def serves(f: FunctionText, kind: str, divisor: str) -> bool:
    """Whether divisions by this value are better done here. Narrow integers have exact float quotients."""
    return kind in ("i32", "i64") and f.widened and f.is_steady(divisor) and not f.module.host.gpu


def integer(f: FunctionText, name: str, kind: str, unsigned: bool, left: str, right: str) -> str:
    """floordiv, mod (Python's signs) and fmod (C's signs) of integers by a divisor made in the entry block."""
    by = _reciprocal(f, kind, unsigned, right)
    last = str(by.bits - 1)
    if name == "fmod" and not unsigned:
        sign = f.binary("ashr", kind, left, last)
        size = f.binary("sub", kind, f.binary("xor", kind, left, sign), sign)
        rest = f.binary("sub", kind, size, f.binary("mul", kind, _quotient(f, by, size), by.magnitude))
        return f.binary("sub", kind, f.binary("xor", kind, rest, sign), sign)
    if unsigned:
        quotient = _quotient(f, by, left)
    else:
        # the least number minus 1 wraps, but one of both is negative as their difference would be
        moved = f.binary("add", kind, left, by.sign)
        sign = f.binary("ashr", kind, f.binary("or", kind, left, moved), last)
        quotient = _quotient(f, by, f.binary("xor", kind, moved, sign))
        quotient = f.binary("xor", kind, quotient, f.binary("xor", kind, sign, by.sign))
    if name == "floordiv":
        return f.binary("and", kind, quotient, by.nonzero)
    # with the divisor 1 in place of 0, the remainder is 0 of itself
    return f.binary("sub", kind, left, f.binary("mul", kind, quotient, by.divisor))


@record
class _Reciprocal:
    """Values of the entry block.

    Attributes
    ----------
    divisor : the divisor, or 1 in place of 0
    sign : 0, or -1 where the divisor is negative
    magnitude : the divisor without its sign
    nonzero : -1, or 0 where the divisor is 0
    factor, first, second : the reciprocal less 2**bits, and the two shifts
    """

    bits: int
    divisor: str
    sign: str
    magnitude: str
    nonzero: str
    factor: str
    first: str
    second: str


def _reciprocal(f: FunctionText, kind: str, unsigned: bool, right: str) -> _Reciprocal:
    bits = int(kind[1:])

    def binary(operation: str, left: str, other: str, of: str = kind) -> str:
        return f.steady_value(f"{operation} {of} {left}, {other}")

    def select(condition: str, then: str, orelse: str) -> str:
        return f.steady_value(f"select i1 {condition}, {kind} {then}, {kind} {orelse}")

    by_zero = binary("icmp eq", right, "0")
    divisor = select(by_zero, "1", right)
    sign, magnitude = "0", divisor
    if not unsigned:
        sign = binary("ashr", divisor, str(bits - 1))
        magnitude = binary("sub", binary("xor", divisor, sign), sign)
    zeros = f.module.declare(kind, f"llvm.ctlz.{kind}", f"{kind}, i1", "")
    free = f.steady_value(f"call {kind} {zeros}({kind} {binary('sub', magnitude, '1')}, i1 false)")
    shift = binary("sub", str(bits), free)  # ceil(log2(magnitude))
    by_one = binary("icmp eq", magnitude, "1")
    first = select(by_one, "0", "1")
    second = binary("sub", shift, first)
    rest = select(by_one, "0", binary("sub", binary("shl", "2", second), magnitude))
    if kind == "i64":
        floor = f.steady_value(f"call i64 {_long_division(f)}(i64 {rest}, i64 {magnitude})")
    else:
        wide = [f.steady_value(f"zext {kind} {value} to i64") for value in (rest, magnitude)]
        floor = binary("udiv", binary("shl", wide[0], str(bits), "i64"), wide[1], "i64")
        floor = f.steady_value(f"trunc i64 {floor} to {kind}")
    nonzero = select(by_zero, "0", "-1")
    return _Reciprocal(bits, divisor, sign, magnitude, nonzero, binary("add", floor, "1"), first, second)


def _quotient(f: FunctionText, by: _Reciprocal, number: str) -> str:
    """The quotient of an unsigned number."""
    kind = f"i{by.bits}"
    if by.bits == 64:
        low = f.steady_value(f"and i64 {by.factor}, {_HALF}")
        high = upper_half(f, number, low, f.steady_value(f"lshr i64 {by.factor}, 32"))
    else:
        factor = f.steady_value(f"zext {kind} {by.factor} to i64")
        product = f.binary("mul", "i64", f.value(f"zext {kind} {number} to i64"), factor)
        high = f.value(f"trunc i64 {f.binary('lshr', 'i64', product, str(by.bits))} to {kind}")
    part = f.binary("lshr", kind, f.binary("sub", kind, number, high), by.first)
    return f.binary("lshr", kind, f.binary("add", kind, part, high), by.second)


def upper_half(f: FunctionText, left: str, low_factor: str, high_factor: str) -> str:
    """left * factor >> 64, of unsigned numbers, by products of 32 bits, which vectors have."""

    def product(half: str, by: str) -> str:
        return f.binary("mul", "i64", half, by)

    low, high = f.binary("and", "i64", left, str(_HALF)), f.binary("lshr", "i64", left, "32")
    carried = f.binary("lshr", "i64", product(low, low_factor), "32")
    middle = f.binary("add", "i64", product(high, low_factor), carried)
    other = f.binary("add", "i64", product(low, high_factor), f.binary("and", "i64", middle, str(_HALF)))
    upper = f.binary("add", "i64", product(high, high_factor), f.binary("lshr", "i64", middle, "32"))
    return f.binary("add", "i64", upper, f.binary("lshr", "i64", other, "32"))


def _long_division(f: FunctionText) -> str:
    """The function that gives floor(2**64 * rest / divisor), for rest < divisor: two digits of 32 bits where the
    divisor is one, or bit by bit."""
    name = "pk.long_division"
    if f.module.is_new(name):
        f.module.functions.append(f"""define internal i64 @{name}(i64 %rest, i64 %divisor) noinline {PURE} {{
entry:
  %short = icmp ule i64 %divisor, {_HALF}
  br i1 %short, label %digits, label %turn
digits:
  %dividend = shl i64 %rest, 32
  %upper = udiv i64 %dividend, %divisor
  %left = urem i64 %dividend, %divisor
  %next = shl i64 %left, 32
  %lower = udiv i64 %next, %divisor
  %above = shl i64 %upper, 32
  %both = or i64 %above, %lower
  ret i64 %both
turn:
  %todo = phi i64 [ 64, %entry ], [ %todo.next, %turn ]
  %r = phi i64 [ %rest, %entry ], [ %r.next, %turn ]
  %q = phi i64 [ 0, %entry ], [ %q.next, %turn ]
  %carry = icmp slt i64 %r, 0
  %double = shl i64 %r, 1
  %reached = icmp uge i64 %double, %divisor
  %bit = or i1 %carry, %reached
  %less = sub i64 %double, %divisor
  %r.next = select i1 %bit, i64 %less, i64 %double
  %q.double = shl i64 %q, 1
  %unit = zext i1 %bit to i64
  %q.next = or i64 %q.double, %unit
  %todo.next = sub i64 %todo, 1
  %done = icmp eq i64 %todo.next, 0
  br i1 %done, label %end, label %turn
end:
  ret i64 %q.next
}}""")
    return f"@{name}"
