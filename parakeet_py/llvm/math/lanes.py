"""Arithmetic on one float or on several at once, as LLVM IR text.

A kernel of the vector math library is written once, with the operations below, and printed for every number of lanes
(1 is the scalar form). All its operations are IEEE 754 basic operations, fused multiply-add, comparisons, selects and
integer operations on the bits, so that every lane of every form has the same bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from parakeet_py.llvm.codegen.builder import FunctionText, float_literal

Pair = tuple[str, str]  # the unevaluated sum of two values, the second much smaller than the first


class Lanes:
    """Writes operations on `count` lanes into a function.

    Attributes
    ----------
    part : the type of a lane, double or float
    short : the result is a float32, so short polynomials are enough (even where lanes are doubles)
    scale : the machine has AVX-512's multiplication by powers of two
    """

    def __init__(self, f: FunctionText, count: int, part: str, short: bool, scale: bool) -> None:
        self.f = f
        self.count = count
        self.part = part
        self.short = short
        self.scale = scale
        self.double = part == "double"
        self.integers = "i64" if self.double else "i32"
        self.mantissa = 52 if self.double else 23
        self.bias = 1023 if self.double else 127
        # adding 1.5 * 2**mantissa rounds to an integer, and leaves it in the low bits
        self.magic = 1.5 * 2.0**self.mantissa
        self.magic_bits = (self.bias + self.mantissa) << self.mantissa | 1 << self.mantissa - 1

    def of(self, part: str) -> str:
        """The type of `count` values of type `part`."""
        return part if self.count == 1 else f"<{self.count} x {part}>"

    @property
    def kind(self) -> str:
        return self.of(self.part)

    def constant(self, value: float) -> str:
        return self.spread(self.part, self._rounded_literal(value))

    def _rounded_literal(self, value: float) -> str:
        if not self.double:
            (value,) = struct.unpack("f", struct.pack("f", value))
        return float_literal(value, self.part)

    def bits(self, value: int) -> str:
        return self.spread(self.integers, str(value))

    def spread(self, part: str, literal: str) -> str:
        return literal if self.count == 1 else f"splat ({part} {literal})"

    # ---- floats -------------------------------------------------------------------------------------------------

    def _binary(self, operation: str, left: str, right: str, part: str = "") -> str:
        return self.f.value(f"{operation} {self.of(part or self.part)} {left}, {right}")

    def add(self, left: str, right: str) -> str:
        return self._binary("fadd", left, right)

    def sub(self, left: str, right: str) -> str:
        return self._binary("fsub", left, right)

    def mul(self, left: str, right: str) -> str:
        return self._binary("fmul", left, right)

    def div(self, left: str, right: str) -> str:
        return self._binary("fdiv", left, right)

    def neg(self, value: str) -> str:
        return self.f.value(f"fneg {self.kind} {value}")

    def fma(self, left: str, right: str, addend: str) -> str:
        """left * right + addend, rounded once."""
        return self.call("fma", left, right, addend)

    def call(self, name: str, *arguments: str) -> str:
        """An intrinsic on floats."""
        kind = self.kind
        bits = 64 if self.double else 32
        suffix = f"f{bits}" if self.count == 1 else f"v{self.count}f{bits}"
        function = self.f.module.declare(kind, f"llvm.{name}.{suffix}", ", ".join([kind] * len(arguments)), "")
        return self.f.value(f"call {kind} {function}({', '.join(f'{kind} {a}' for a in arguments)})")

    def absolute(self, value: str) -> str:
        return self.call("fabs", value)

    def copysign(self, size: str, sign: str) -> str:
        return self.call("copysign", size, sign)

    def compare(self, order: str, left: str, right: str) -> str:
        return self._binary(f"fcmp {order}", left, right)

    def select(self, condition: str, then: str, orelse: str, part: str = "") -> str:
        kind = self.of(part or self.part)
        return self.f.value(f"select {self.of('i1')} {condition}, {kind} {then}, {kind} {orelse}")

    def at_most(self, value: str, limit: float) -> str:
        """min(value, limit); NaN stays."""
        bound = self.constant(limit)
        return self.select(self.compare("ogt", value, bound), bound, value)

    def at_least(self, value: str, limit: float) -> str:
        bound = self.constant(limit)
        return self.select(self.compare("olt", value, bound), bound, value)

    def either(self, left: str, right: str) -> str:
        return self._binary("or", left, right, "i1")

    def both(self, left: str, right: str) -> str:
        return self._binary("and", left, right, "i1")

    def pair(self, high: float, low: float) -> Pair:
        """A constant of twice the precision, given as the sum of two doubles."""
        if self.double:
            return self.constant(high), self.constant(low)
        (first,) = struct.unpack("f", struct.pack("f", high))
        return self.constant(first), self.constant(high - first + low)

    # ---- control, of one lane ------------------------------------------------------------------------------------

    def choose(self, condition: str, then: Callable[[], Pair], orelse: Callable[[], Pair]) -> Pair:
        """One of two computations, whichever the condition says; only this one runs if there is one lane."""
        if self.count > 1:
            left, right = then(), orelse()
            return self.select(condition, left[0], right[0]), self.select(condition, left[1], right[1])
        f = self.f
        labels = f.label("then"), f.label("else")
        done = f.label("done")
        f.branch_if(condition, *labels)
        ends = []
        for label, compute in zip(labels, (then, orelse), strict=True):
            f.begin(label)
            with f.inner():
                values = compute()
            ends.append((values, f.block))
            f.branch(done)
        f.begin(done)
        first, second = (
            f.value(f"phi {self.part} " + ", ".join(f"[ {values[place]}, %{block} ]" for values, block in ends))
            for place in (0, 1)
        )
        return first, second

    def either_way(self, condition: str, then: Callable[[], str], orelse: Callable[[], str]) -> str:
        """`choose`, of single numbers."""
        zero = self.constant(0.0)
        return self.choose(condition, lambda: (then(), zero), lambda: (orelse(), zero))[0]

    def loop(
        self, kinds: Sequence[str], start: Sequence[str], test: Callable[..., str], step: Callable[..., Sequence[str]]
    ) -> list[str]:
        """Values of types `kinds`, from `start` on replaced by `step(values)` while `test(values)`."""
        assert self.count == 1
        f = self.f
        before, (head, body, end) = f.block, (f.label(stem) for stem in ("loop", "step", "end"))
        f.branch(head)
        f.begin(head)
        values = [f.fresh() for _ in kinds]
        lines = [f.reserve() for _ in kinds]
        f.branch_if(test(*values), body, end)
        f.begin(body)
        with f.inner():
            following = step(*values)
        for line, value, kind, first, next_ in zip(lines, values, kinds, start, following, strict=True):
            f.fill(line, f"{value} = phi {kind} [ {first}, %{before} ], [ {next_}, %{f.block} ]")
        f.branch(head)
        f.begin(end)
        return values

    # ---- integers of the same size -------------------------------------------------------------------------------

    def integer(self, operation: str, left: str, right: str) -> str:
        return self._binary(operation, left, right, self.integers)

    def to_bits(self, value: str) -> str:
        return self.f.value(f"bitcast {self.kind} {value} to {self.of(self.integers)}")

    def from_bits(self, value: str) -> str:
        return self.f.value(f"bitcast {self.of(self.integers)} {value} to {self.kind}")

    def is_zero(self, value: str) -> str:
        return self._binary("icmp eq", value, self.bits(0), self.integers)

    # ---- building blocks -----------------------------------------------------------------------------------------

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Estrin's scheme: neighbours are joined by powers x, x**2, x**4... so that few steps depend on each other."""
        terms = [self.constant(c) for c in coefficients]
        power = x
        while len(terms) > 1:
            pairs = [self.fma(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[len(terms) & ~1 :]
            if len(terms) > 1:
                power = self.mul(power, power)
        return terms[0]

    def two_chains(self, coefficients: Sequence[float], x: str) -> str:
        """Horner's scheme for the even powers of x and for the odd ones: fewer steps, but more of them in a row."""
        square = self.mul(x, x)
        even, odd = [[self.constant(c) for c in coefficients[first::2]] for first in (0, 1)]

        def sum_of(terms: list[str]) -> str:
            total = terms[-1]
            for term in terms[-2::-1]:
                total = self.fma(total, square, term)
            return total

        return self.fma(sum_of(odd), x, sum_of(even))

    def lookup(self, name: str, table: Sequence[float], index: str) -> str:
        """The numbers of a table of 16, by the lowest four bits of `index` (of the integer type)."""
        assert len(table) == 16
        f, module = self.f, self.f.module
        numbers = [f"{self.part} {self._rounded_literal(number)}" for number in table]
        if self.count >= 4 and "+avx512f" in module.host.features.split(","):
            full = 8 if self.double else 16
            parts = [self._permuted(numbers, index, first) for first in range(0, self.count, full)]
            if len(parts) == 1:
                return parts[0]
            assert len(parts) == 2
            places = ", ".join(f"i32 {lane}" for lane in range(2 * full))
            few = f"<{full} x {self.part}>"
            return f.value(f"shufflevector {few} {parts[0]}, {few} {parts[1]}, <{2 * full} x i32> <{places}>")
        symbol = f"@pk.table.{name.lower()}"
        if module.is_new(symbol):
            kind = f"[16 x {self.part}]"
            module.functions.append(f"{symbol} = private unnamed_addr constant {kind} [{', '.join(numbers)}]")
        low = self.integer("and", index, self.bits(15))
        result = "poison"
        for lane in range(self.count):
            one = low
            if self.count > 1:
                one = f.value(f"extractelement {self.of(self.integers)} {low}, i64 {lane}")
            place = f.value(f"getelementptr {self.part}, ptr {symbol}, {self.integers} {one}")
            item = f.value(f"load {self.part}, ptr {place}")
            if self.count == 1:
                return item
            result = f.value(f"insertelement {self.kind} {result}, {self.part} {item}, i64 {lane}")
        return result

    def _permuted(self, numbers: Sequence[str], index: str, first: int) -> str:
        """`lookup` for at most as many lanes as fill a vector, from lane `first` on: one instruction of AVX-512."""
        f = self.f
        full = 8 if self.double else 16
        few = min(self.count, full)
        if self.count != full:
            places = ", ".join(f"i32 {first + lane % few}" for lane in range(full))
            whole = self.of(self.integers)
            index = f.value(f"shufflevector {whole} {index}, {whole} poison, <{full} x i32> <{places}>")
        kind, wide = f"<{full} x {self.part}>", f"<{full} x {self.integers}>"
        tables = [f"{kind} <{', '.join(numbers[start : start + full])}>" for start in range(0, 16, full)]
        if self.double:
            name = "llvm.x86.avx512.vpermi2var.pd.512"
            kinds, passed = f"{kind}, {wide}, {kind}", f"{tables[0]}, {wide} {index}, {tables[1]}"
        else:
            name = "llvm.x86.avx512.permvar.sf.512"
            kinds, passed = f"{kind}, {wide}", f"{tables[0]}, {wide} {index}"
        function = f.module.declare(kind, name, kinds, "")
        found = f.value(f"call {kind} {function}({passed})")
        if few == full:
            return found
        places = ", ".join(f"i32 {lane}" for lane in range(few))
        return f.value(f"shufflevector {kind} {found}, {kind} poison, <{few} x i32> <{places}>")

    def round_to_integer(self, value: str) -> tuple[str, str]:
        """The nearest integer of a number far below 2**mantissa, as a float and as the low bits of an integer."""
        shifted = self.add(value, self.constant(self.magic))
        return self.sub(shifted, self.constant(self.magic)), self.to_bits(shifted)

    def integer_to_float(self, whole: str) -> str:
        """The float of a small integer."""
        if not self.double:  # vectors have no instruction for 64 bits, but for AVX-512
            return self.f.value(f"sitofp {self.of(self.integers)} {whole} to {self.kind}")
        shifted = self.integer("add", whole, self.bits(self.magic_bits))
        return self.sub(self.from_bits(shifted), self.constant(self.magic))

    def two_sum(self, left: str, right: str) -> tuple[str, str]:
        """left + right exactly: the rounded sum and what rounding took (D. E. Knuth, TAOCP 4.2.2)."""
        total = self.add(left, right)
        moved = self.sub(total, left)
        lost = self.add(self.sub(left, self.sub(total, moved)), self.sub(right, moved))
        return total, lost

    def fast_two_sum(self, left: str, right: str) -> tuple[str, str]:
        """The same where |left| >= |right| or left is 0 (T. J. Dekker)."""
        total = self.add(left, right)
        return total, self.add(self.sub(left, total), right)

    def power_of_two(self, exponent: str) -> str:
        """2**exponent for an integer that keeps it normal."""
        biased = self.integer("add", exponent, self.bits(self.bias))
        return self.from_bits(self.integer("shl", biased, self.bits(self.mantissa)))

    def times_power_of_two(self, value: str, exponent: str, exponent_bits: str) -> str:
        """value * 2**exponent for value near 1 and |exponent| < 2 * bias, rounded once.

        `exponent_bits` are those of `round_to_integer`.
        """
        if self.double and self.short:  # a result in the range of float32 is normal as a double
            shifted = self.integer("shl", exponent_bits, self.bits(self.mantissa))
            return self.from_bits(self.integer("add", self.to_bits(value), shifted))
        bits = self.count * (64 if self.double else 32)
        if self.scale and (self.count == 1 or bits == 512):
            return self._scalef(value, exponent)
        whole = self.integer("sub", exponent_bits, self.bits(self.magic_bits))
        first = self.integer("ashr", whole, self.bits(1))
        second = self.integer("sub", whole, first)
        return self.mul(self.mul(value, self.power_of_two(first)), self.power_of_two(second))

    def _scalef(self, value: str, exponent: str) -> str:
        f = self.f
        letter = "d" if self.double else "s"
        if self.count > 1:
            kind, mask = self.kind, f"i{self.count}"
            name = f"llvm.x86.avx512.mask.scalef.p{letter}.512"
            function = f.module.declare(kind, name, f"{kind}, {kind}, {kind}, {mask}, i32", "")
            return f.value(
                f"call {kind} {function}({kind} {value}, {kind} {exponent}, {kind} zeroinitializer, {mask} -1, i32 4)"
            )
        few = f"<{2 if self.double else 4} x {self.part}>"
        name = f"llvm.x86.avx512.mask.scalef.s{letter}"
        function = f.module.declare(few, name, f"{few}, {few}, {few}, i8, i32", "")
        left, right = (f.value(f"insertelement {few} poison, {self.part} {v}, i64 0") for v in (value, exponent))
        result = f.value(f"call {few} {function}({few} {left}, {few} {right}, {few} zeroinitializer, i8 -1, i32 4)")
        return f.value(f"extractelement {few} {result}, i64 0")
