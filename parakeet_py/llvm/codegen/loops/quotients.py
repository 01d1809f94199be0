"""Divisions by a constant on the way from turn to turn of a loop, where what counts is how long they take.

    for j in range(1, n):  x[j] = (x[j] + x[j - 1]) / 9.0

A division takes 11 to 14 cycles, a product and an FMA 8. With h = RN(1 / y) and l = RN(1 / y - h),

    q = fma(x, h, RN(x * l))

is the correctly rounded quotient, if y = d * 2**b for an odd d < 2**(p - 5), p bits being the precision: x / y lies at
least ulp / (2 * d) from any number half way between two floats, as the difference is a multiple of that and not zero;
and what q is rounded from lies within 2**(2 - p) ulp of it. (For which other divisors it is, too: N. Brisebarre, J.-M.
Muller, S. K. Raina, Accelerating correctly rounded floating-point division when the divisor is known in advance, IEEE
Trans. Computers 53(8), 2004.) Nothing may overflow or become subnormal for that. So the exponent of x is compared with
bounds, beside the product, and numbers outside of them (and zeros, infinities, NaNs) are divided.

Elsewhere a division is one instruction, which others do not wait for. But vectors of float64 take 16 cycles, in which
the other units do twenty operations: where a vector loop divides by a number that does not change in it, a call stands
for the division, which is written out as products once LLVM has made vectors (`engine.late_functions`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, PURE, FunctionText, float_literal
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.llvm.engine.late_functions import DIVISORS, OVER
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var, dtype_of

_PRECISION = {"float64": 53, "float32": 24}
_EXPONENTS = {"float64": (-700, 900), "float32": (-60, 90)}  # of x; those of y lie within the sixth part
_BESIDE = 20  # other operations, for each division, that hide how long it takes
_MOST = 16  # divisions of a loop that are written out
_UNLIKELY = '!{!"branch_weights", i32 1048575, i32 1}'


def chained(scope: Scope, loop: ir.For | ir.While) -> frozenset[Var]:
    """The quotients that a loop without others inside hands on to its next turn, by its cells and arrays."""
    if not scope.f.module.host.fma or scope.f.module.checks is not None:
        return frozenset()
    blocks = [loop.body] if isinstance(loop, ir.For) else [loop.head, loop.body]
    inside = [one for block in blocks for one in ir.walk(block)]
    if not any(isinstance(one, ir.Let) and _is_quotient(one.rhs) for one in inside):
        return frozenset()
    if any(isinstance(one, ir.For | ir.While) for one in inside):
        return frozenset()
    written = {one.cell for one in inside if isinstance(one, ir.Write)}
    roots = scope.unit.function.roots
    stored = frozenset[int]().union(*(roots.get(one.array, frozenset()) for one in inside if isinstance(one, ir.Store)))
    handed: set[Operand] = set()
    found = set()
    for one in inside:
        if not isinstance(one, ir.Let):
            continue
        match one.rhs:
            case ir.Read(cell):
                waits = cell in written
            case Load(array, _):
                waits = not stored.isdisjoint(roots.get(array, frozenset()))
            case Prim(_, operands):
                waits = _any(operands, handed)
            case Cast(operand):
                waits = operand in handed
            case _:
                waits = False
        if waits:
            handed.add(one.out)
            if _is_quotient(one.rhs):
                found.add(one.out)
    return frozenset(found)


def _any(operands: Iterable[Operand], handed: set[Operand]) -> bool:
    return any(operand in handed for operand in operands)


def _is_quotient(rhs: ir.Rhs) -> bool:
    """Whether this is a division by a number for which the product is exact."""
    match rhs:
        case Prim("div", (_, Const(value=float() | int() as value) as divisor)):
            return divides(float(value), dtype_of(divisor))
    return False


def divides(divisor: float, dtype: str) -> bool:
    """Whether a division by this number can be a product and an FMA. (By powers of two, LLVM multiplies.)"""
    if dtype not in _PRECISION or not math.isfinite(divisor) or divisor == 0:
        return False
    mantissa, exponent = math.frexp(abs(divisor))
    whole = int(mantissa * 2**53)
    odd = whole // (whole & -whole)
    least, most = _EXPONENTS[dtype]
    return 1 < odd < 1 << _PRECISION[dtype] - 5 and least // 6 < exponent < most // 6


def divide(f: FunctionText, dtype: str, numerator: str, divisor: float) -> str:
    """A quotient, correctly rounded."""
    kind, bits, fraction = LLVM_TYPE[dtype], 8 * np.dtype(dtype).itemsize, _PRECISION[dtype] - 1
    real = np.dtype(dtype).type
    high = float(real(1) / real(divisor))
    low = float(real(float(1 / Fraction(divisor) - Fraction(high))))
    integer = f"i{bits}"
    whole = f.value(f"bitcast {kind} {numerator} to {integer}")
    least, most = ((bound + (1 << bits - fraction - 2) - 1) << fraction + 1 for bound in _EXPONENTS[dtype])
    above = f.binary("sub", integer, f.binary("shl", integer, whole, "1"), str(least))
    usual = f.binary("icmp ult", integer, above, str(most - least))
    product, division, end = f.label("product"), f.label("division"), f.label("end")
    f.branch_if(usual, product, division, f", !prof {f.module.shared_node(_UNLIKELY)}")
    f.begin(product)
    with f.inner():
        small = f.binary("fmul", kind, numerator, float_literal(low, kind))
        first = f.intrinsic("fma", kind, numerator, float_literal(high, kind), small)
        f.branch(end)
    f.begin(division)
    with f.inner():
        second = f.binary("fdiv", kind, numerator, float_literal(divisor, kind))
        f.branch(end)
    f.begin(end)
    return f.value(f"phi {kind} [ {first}, %{product} ], [ {second}, %{division} ]")


# ---- in vectors ------------------------------------------------------------------------------------------------------


def steady(scope: Scope, loop: ir.For) -> frozenset[Var]:
    """The quotients of a vector loop of float64 by what it does not change, if products are faster."""
    module = scope.f.module
    if not module.host.fma or module.host.gpu or module.checks is not None or module.flags:
        return frozenset()
    inside = list(ir.walk(loop.body))
    lets = [one for one in inside if isinstance(one, ir.Let)]
    made: set[Operand] = {loop.index, *(one.out for one in lets)}
    found = []
    for one in lets:
        match one.rhs:
            case Prim("div", (numerator, divisor)) if dtype_of(divisor) == "float64" and numerator in made:
                if divisor not in made and not _is_power_of_two(divisor):
                    found.append(one.out)
    if not 0 < len(found) <= _MOST or any(isinstance(one, ir.For | ir.While) for one in inside):
        return frozenset()
    others = sum(isinstance(one.rhs, Prim) and dtype_of(one.out) == "float64" for one in lets) - len(found)
    return frozenset(found) if others <= _BESIDE * len(found) else frozenset()


def _is_power_of_two(divisor: Operand) -> bool:
    """Whether LLVM multiplies by the reciprocal."""
    return isinstance(divisor, Const) and math.frexp(abs(float(divisor.value.real)))[0] == 0.5


def divide_steadily(f: FunctionText, numerator: str, divisor: str) -> str:
    """The call that stands for a quotient of float64; the reciprocal leaves the loop."""
    module = f.module
    least, most = (float_literal(2.0**exponent, "double") for exponent in DIVISORS)
    inside = f.binary(
        "and",
        "i1",
        f.binary("fcmp oge", "double", divisor, least),
        f.binary("fcmp ole", "double", divisor, most),
    )
    one = float_literal(1.0, "double")
    reciprocal = f.binary("fdiv", "double", one, f.select(inside, "double", divisor, one))
    odd = f.select(inside, "i64", "0", "-1")
    mapping = []
    full = module.host.vector_bits // 64
    for lanes in (1, full, *([full // 2] if full > 2 else [])):
        kind, whole = ("double", "i64") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i64>")
        name = OVER if lanes == 1 else f"{OVER}.{lanes}"
        module.declare_late(kind, name, f"{kind}, {kind}, {kind}, {whole}", PURE)
        if lanes > 1:
            module.keep(name)
            mapping.append(f"_ZGV_LLVM_N{lanes}vvvv_{OVER}({name})")
    group = module.attributes(f'{PURE} "vector-function-abi-variant"="{",".join(mapping)}"')
    passed = f"double {numerator}, double {divisor}, double {reciprocal}, i64 {odd}"
    return f.value(f"call double @{OVER}({passed}) {group}")
