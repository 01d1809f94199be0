"""Functions that LLVM's vectorizer has to see as calls, and that are written out once it has run.

Generated code declares them and names their vector forms (`vector-function-abi-variant`). When the passes are through,
the definitions are linked to the module and inlined wherever they are called: a branch inside of a vector loop, which
the vectorizer itself cannot make.

    double @pk.over(double x, double d, double r, i64 odd)           x / d
    <8 x double> @pk.over.8(...)                                     the same of eight x, all lanes of the others equal

**Division by what does not change.** A vector's division takes as long as a dozen other operations. With r = RN(1 / d)

    q0 = RN(x * r)    e0 = RN(q0 * d - x)    q1 = RN(q0 - e0 * r)    e1 = q1 * d - x    q2 = RN(q1 - e1 * r)

q2 is the correctly rounded quotient: q1 is within an ulp of x / d, so e1 is exact, and Markstein's theorem holds for
the last step (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, IBM J. Res. Dev.
34(1), 1990; J.-M. Muller et al., Handbook of Floating-Point Arithmetic, chapter 4). No step may overflow, become
subnormal or be inexact below the normal range: x is 0 or has an exponent in `NUMERATORS`, and d is positive with one
in `DIVISORS` (else the caller passes `odd` = -1, and any number for r). Where one lane is different, all are divided.
Zeros keep their sign, as e0 and e1 are +0 then. Flags that NumPy's warnings are made from are set by divisions only.
"""

from __future__ import annotations

import re

OVER = "pk.over"
NUMERATORS = (-700, 900)
DIVISORS = (-100, 100)
_NAMED = re.compile(rf"@{re.escape(OVER)}(?:\.(\d+))?\(")


def needed(text: str) -> str:
    """The module with the definitions of the functions that the text of another one declares; empty without any."""
    if f"@{OVER}" not in text:
        return ""
    lines = []
    for lanes in sorted({int(lanes or 1) for lanes in _NAMED.findall(text)}):
        kind, whole, name = _types(lanes)
        body = _vector(lanes) if lanes > 1 else "  %q = fdiv double %x, %d\n  ret double %q"
        parameters = f"{kind} %x, {kind} %d, {kind} %r, {whole} %odd"
        lines += [f"define available_externally {kind} @{name}({parameters}) alwaysinline nounwind {{", body, "}"]
        if lanes > 1:
            lines.append(f"declare {kind} @llvm.fma.v{lanes}f64({kind}, {kind}, {kind})")
    return "\n".join([*lines, '!0 = !{!"branch_weights", i32 1048575, i32 1}', ""])


def _types(lanes: int) -> tuple[str, str, str]:
    """The types of numbers and of their bits, and the name of a form."""
    if lanes == 1:
        return "double", "i64", OVER
    return f"<{lanes} x double>", f"<{lanes} x i64>", f"{OVER}.{lanes}"


def _vector(lanes: int) -> str:
    """The body of a vector form."""
    kind, whole, _ = _types(lanes)
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
