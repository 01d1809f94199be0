"""`power`: pow as NumPy's loop takes it where one exponent is for all elements.

NumPy does not call pow for the exponents 2, 0.5, -1, 1 and 0: it multiplies, takes a square root, divides. These are
exact to the last bit, and many times as fast. An exponent that is known when the program is compiled has become such
an operation already (`typed_ir/passes/scalar/algebra`); here is the function for those that are known when it runs:

    define double @pk.power.f64(double %x, double %y)
    define <8 x double> @pk.power.f64x8(<8 x double> %x, <8 x double> %y)

Its vector forms look for such an exponent in any lane. Where there is one, they look at the exponent of the first lane
and at whether the others have the same. The branches are the same at every turn of a loop over one exponent, and cost
next to nothing beside a load. In lanes with different exponents every lane
has what its own exponent asks for, so that the bits do not depend on how a loop was widened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.llvm.codegen.builder import LLVM_TYPE, PURE, FunctionText, ModuleText
from parakeet_py.llvm.math.lanes import Lanes
from parakeet_py.llvm.math.names import BITS

Pow = Callable[[FunctionText, list[str]], str]
"""Writes a call of pow for so many lanes."""

EXPONENTS = (2.0, 0.5, -1.0, 1.0, 0.0)


def symbol(dtype: str, lanes: int = 1) -> str:
    """The symbol of the function's form for so many lanes."""
    return f"pk.power.f{BITS[dtype]}" + (f"x{lanes}" if lanes > 1 else "")


def define(module: ModuleText, dtype: str, forms: Sequence[tuple[int, Pow]]) -> str:
    """Define the function's forms, given pow's; the value of the attribute that names the vector forms, or ""."""
    scalar = symbol(dtype)
    if module.is_new(scalar):
        for lanes, pow in forms:
            _define(module, dtype, lanes, pow)
            if lanes > 1:
                module.keep(symbol(dtype, lanes))
    wide = [lanes for lanes, _ in forms if lanes > 1]
    return ",".join(f"_ZGV_LLVM_N{lanes}vv_{scalar}({symbol(dtype, lanes)})" for lanes in wide)


def _define(module: ModuleText, dtype: str, lanes: int, pow: Pow) -> None:
    f = FunctionText(module)
    k = Lanes(f, lanes, LLVM_TYPE[dtype], dtype == "float32", False)
    x, y = "%x", "%y"
    first = y if lanes == 1 else f.value(f"extractelement {k.kind} {y}, i64 0")
    mask = k.of("i1")
    if lanes > 1:
        # all these exponents are powers of two, or 0
        other, simple, same, mixed = (f.label(stem) for stem in ("other", "simple", "same", "mixed"))
        candidates = k.is_zero(k.integer("and", k.to_bits(y), k.bits((1 << k.mantissa) - 1)))
        any_lane = module.declare("i1", f"llvm.vector.reduce.or.v{lanes}i1", mask, "")
        f.branch_if(f.value(f"call i1 {any_lane}({mask} {candidates})"), simple, other)
        f.begin(other)
        with f.inner():
            f.effect(f"ret {k.kind} {pow(f, [x, y])}")
        f.begin(simple)
        spread = f.value(f"insertelement {k.kind} poison, {k.part} {first}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        spread = f.value(f"shufflevector {k.kind} {spread}, {k.kind} poison, {zeros}")
        all_lanes = module.declare("i1", f"llvm.vector.reduce.and.v{lanes}i1", mask, "")
        agree = f.value(f"call i1 {all_lanes}({mask} {k.compare('oeq', y, spread)})")
        f.branch_if(agree, same, mixed)
        f.begin(same)
    for exponent in EXPONENTS:
        quick, other = f.label("quick"), f.label("other")
        literal = Lanes(f, 1, k.part, k.short, False).constant(exponent)
        f.branch_if(f.value(f"fcmp oeq {k.part} {first}, {literal}"), quick, other)
        f.begin(quick)
        with f.inner():
            f.effect(f"ret {k.kind} {_shortcut(k, x, exponent)}")
        f.begin(other)
    with f.inner():
        f.effect(f"ret {k.kind} {pow(f, [x, y])}")
    if lanes > 1:
        f.begin(mixed)
        result = pow(f, [x, y])
        for exponent in EXPONENTS:
            own = k.compare("oeq", y, k.constant(exponent))
            result = k.select(own, _shortcut(k, x, exponent), result)
        f.effect(f"ret {k.kind} {result}")
    # weak: an internal function would lose arguments that are constant, and with them its vector forms
    linkage, group = ("internal", PURE) if module.host.gpu else ("weak dso_local", f"noinline {PURE}")
    header = f"define {linkage} {k.kind} @{symbol(dtype, lanes)}({k.kind} {x}, {k.kind} {y})"
    module.functions.append(f.text(f"{header} {module.attributes(group)}"))


def _shortcut(k: Lanes, x: str, exponent: float) -> str:
    """x to the power of an exponent that NumPy does not call pow for."""
    if exponent == 2.0:
        return k.mul(x, x)
    if exponent == 0.5:
        return k.call("sqrt", x)
    if exponent == -1.0:
        return k.div(k.constant(1.0), x)
    return x if exponent == 1.0 else k.constant(1.0)
