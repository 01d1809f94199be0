"""Functions that LLVM's vectorizer has to see as calls, and that are written out once it has run.

Generated code declares them and names their vector forms (`vector-function-abi-variant`). When the passes are through,
the definitions are linked to the module and inlined wherever they are called: a branch inside of a vector loop, which
the vectorizer itself cannot make.

    double @pk.over(double x, double d, double r, i64 odd)           x / d
    <8 x double> @pk.over.8(...)                                     the same of eight x, all lanes of the others equal
    double @pk.inverse_power(double x)                               x ** -1.5 (x is not -0.0), on AVX-512

**Division by what does not change.** A vector's division takes as long as a dozen other operations. With r = RN(1 / d)

    q0 = RN(x * r)    e0 = RN(q0 * d - x)    q1 = RN(q0 - e0 * r)    e1 = q1 * d - x    q2 = RN(q1 - e1 * r)

q2 is the correctly rounded quotient: q1 is within an ulp of x / d, so e1 is exact, and Markstein's theorem holds for
the last step (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, IBM J. Res. Dev.
34(1), 1990; J.-M. Muller et al., Handbook of Floating-Point Arithmetic, chapter 4). No step may overflow, become
subnormal or be inexact below the normal range: x is 0 or has an exponent in `NUMERATORS`, and d is positive with one
in `DIVISORS` (else the caller passes `odd` = -1, and any number for r). Where one lane is different, all are divided.
Zeros keep their sign, as e0 and e1 are +0 then. Flags that NumPy's warnings are made from are set by divisions only.

**x ** -1.5** without the division and the root, which take 27 cycles and more: r is 1 / sqrt(x) by an instruction of
14 bits, cut to 17, so that r**2 and r**3 are exact and 1 - x * r**2 = e has one rounding and is below 2**-12. Five
terms of the series of (1 - e) ** -1.5 then give the power to half a unit in the last place and 2**-11 of one. Numbers
far from 1, and what is none, go the other way. All forms have the same bits in each lane.
"""

from __future__ import annotations

import re

OVER = "pk.over"
NUMERATORS = (-700, 900)
DIVISORS = (-100, 100)
INVERSE = "pk.inverse_power"
ROOTS = (-600, 600)
_NAMED = re.compile(r"@pk\.(over|inverse_power)(?:\.(\d+))?\(")


def needed(text: str) -> str:
    """The module with the definitions of the functions that the text of another one declares; empty without any."""
    if f"@{OVER}" not in text and f"@{INVERSE}" not in text:
        return ""
    lines, declared = [], set()
    for which, lanes in sorted({(which, int(lanes or 1)) for which, lanes in _NAMED.findall(text)}):
        kind, whole = _types(lanes)
        name = f"pk.{which}" + (f".{lanes}" if lanes > 1 else "")
        parameters = f"{kind} %x, {kind} %d, {kind} %r, {whole} %odd" if which == "over" else f"{kind} %x"
        if which == "inverse_power":
            body, calls = _inverse_power(lanes)
        elif lanes > 1:
            body, calls = _quotient(lanes), {_fma(lanes)}
        else:
            body, calls = "  %q = fdiv double %x, %d\n  ret double %q", set()
        lines += [f"define available_externally {kind} @{name}({parameters}) alwaysinline nounwind {{", body, "}"]
        declared |= calls
    return "\n".join([*lines, *sorted(declared), '!0 = !{!"branch_weights", i32 1048575, i32 1}', ""])


def _fma(lanes: int) -> str:
    kind, _ = _types(lanes)
    return f"declare {kind} @llvm.fma.{_suffix(lanes)}({kind}, {kind}, {kind})"


def _suffix(lanes: int) -> str:
    return "f64" if lanes == 1 else f"v{lanes}f64"


def _types(lanes: int) -> tuple[str, str]:
    """The types of numbers and of their bits."""
    return ("double", "i64") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i64>")


def _quotient(lanes: int) -> str:
    """The body of a vector form of a division."""
    kind, whole = _types(lanes)
    least, most = ((1023 + exponent) << 53 for exponent in NUMERATORS)

    def fma(name: str, *operands: str) -> str:
        passed = ", ".join(f"{kind} %{one}" for one in operands)
        return f"  %{name} = call {kind} @llvm.fma.v{lanes}f64({passed})"

    return "\n".join(
        [
            f"  %bits = bitcast {kind} %x to {whole}",
            f"  %shifted = shl {whole} %bits, splat (i64 1)",
            f"  %size = or {whole} %shifted, %odd",
            f"  %above = sub {whole} %size, splat (i64 {least})",
            f"  %usual = icmp ult {whole} %above, splat (i64 {most - least})",
            f"  %zero = icmp eq {whole} %size, zeroinitializer",
            f"  %serves = or <{lanes} x i1> %usual, %zero",
            f"  %lanes = bitcast <{lanes} x i1> %serves to i{lanes}",
            f"  %all = icmp eq i{lanes} %lanes, -1",
            "  br i1 %all, label %product, label %division, !prof !0",
            "product:",
            f"  %minus = fneg {kind} %x",
            f"  %back = fneg {kind} %r",
            f"  %q0 = fmul {kind} %x, %r",
            fma("e0", "q0", "d", "minus"),
            fma("q1", "e0", "back", "q0"),
            fma("e1", "q1", "d", "minus"),
            fma("q2", "e1", "back", "q1"),
            f"  ret {kind} %q2",
            "division:",
            f"  %q = fdiv {kind} %x, %d",
            f"  ret {kind} %q",
        ]
    )


def _inverse_power(lanes: int) -> tuple[str, set[str]]:
    """The body of a form of x ** -1.5, and the declarations of what it calls."""
    kind, whole = _types(lanes)
    mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
    least, most = ((1023 + exponent) << 52 for exponent in ROOTS)

    def spread(part: str, literal: str) -> str:
        return literal if lanes == 1 else f"splat ({part} {literal})"

    def number(value: float) -> str:
        return spread("double", repr(value))

    def binary(name: str, operation: str, left: str, right: str) -> str:
        return f"  %{name} = {operation} {kind} {left}, {right}"

    def fma(name: str, *operands: str) -> str:
        passed = ", ".join(f"{kind} {one}" for one in operands)
        return f"  %{name} = call {kind} @llvm.fma.{_suffix(lanes)}({passed})"

    if lanes == 1:
        pair = "<2 x double>"
        estimate = "llvm.x86.avx512.rsqrt14.sd"
        kinds = f"{pair}, {pair}, {pair}, i8"
        all_lanes = ["  %all = or i1 %usual, false"]
    else:
        pair = kind
        estimate = f"llvm.x86.avx512.rsqrt14.pd.{64 * lanes}"
        kinds = f"{kind}, {kind}, i8"
        all_lanes = [f"  %lanes = bitcast {mask} %usual to i{lanes}", f"  %all = icmp eq i{lanes} %lanes, -1"]

    def series(x: str, to: str) -> list[str]:
        """The power of usual numbers; the names of its steps end with that of the result."""
        if lanes == 1:
            start = [
                f"  %first.{to} = insertelement {pair} zeroinitializer, double {x}, i64 0",
                f"  %both.{to} = call {pair} @{estimate}({pair} %first.{to}, {pair} %first.{to}, "
                f"{pair} zeroinitializer, i8 -1)",
                f"  %r0.{to} = extractelement {pair} %both.{to}, i64 0",
            ]
        else:
            start = [f"  %r0.{to} = call {kind} @{estimate}({kind} {x}, {kind} zeroinitializer, i8 -1)"]
        return [
            *start,
            f"  %all_bits.{to} = bitcast {kind} %r0.{to} to {whole}",
            f"  %few_bits.{to} = and {whole} %all_bits.{to}, {spread('i64', str(-1 << 36))}",
            f"  %r.{to} = bitcast {whole} %few_bits.{to} to {kind}",
            binary(f"s.{to}", "fmul", f"%r.{to}", f"%r.{to}"),
            binary(f"t.{to}", "fmul", f"%s.{to}", f"%r.{to}"),
            f"  %minus.{to} = fneg {kind} {x}",
            fma(f"rest.{to}", f"%minus.{to}", f"%s.{to}", number(1.0)),
            # (1 - rest) ** -1.5 - 1 = 3/2 rest + 15/8 rest**2 + 35/16 rest**3 + 315/128 rest**4 + ...
            fma(f"c3.{to}", f"%rest.{to}", number(315 / 128), number(35 / 16)),
            fma(f"c2.{to}", f"%rest.{to}", f"%c3.{to}", number(15 / 8)),
            fma(f"c1.{to}", f"%rest.{to}", f"%c2.{to}", number(3 / 2)),
            binary(f"change.{to}", "fmul", f"%rest.{to}", f"%c1.{to}"),
            fma(to, f"%t.{to}", f"%change.{to}", f"%t.{to}"),
        ]

    lines = [
        f"  %bits = bitcast {kind} %x to {whole}",
        f"  %above = sub {whole} %bits, {spread('i64', str(least))}",
        f"  %usual = icmp ult {whole} %above, {spread('i64', str(most - least))}",
        *all_lanes,
        "  br i1 %all, label %series, label %others, !prof !0",
        "series:",
        *series("%x", "quick"),
        f"  ret {kind} %quick",
        "others:",
        f"  %tame = select {mask} %usual, {kind} %x, {kind} {number(1.0)}",  # others would set flags of their own
        *series("%tame", "same"),
        f"  %minus_x = fneg {kind} %x",
        binary("inverse", "fdiv", number(1.0), "%x"),
        f"  %root = call {kind} @llvm.sqrt.{_suffix(lanes)}({kind} %inverse)",
        binary("power", "fmul", "%inverse", "%root"),
        fma("lacks", "%minus_x", "%inverse", number(1.0)),
        binary("more", "fmul", "%lacks", number(1.5)),
        fma("better", "%power", "%more", "%power"),
        f"  %finite = fcmp ord {kind} %better, %better",  # where neither the inverse nor the power overflows
        f"  %slow = select {mask} %finite, {kind} %better, {kind} %power",
        f"  %mixed = select {mask} %usual, {kind} %same, {kind} %slow",
        f"  ret {kind} %mixed",
    ]
    declared = {
        _fma(lanes),
        f"declare {kind} @llvm.sqrt.{_suffix(lanes)}({kind})",
        f"declare {pair} @{estimate}({kinds})",
    }
    return "\n".join(lines), declared
