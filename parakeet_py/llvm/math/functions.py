"""Elementary functions, scalar and widened with the loop around them.

The loop vectorizer widens a call whose `vector-function-abi-variant` attribute names a vector version. There are three
places to take a function from:

- our own library (`library`), whose scalar form has the same bits as every lane of the vector forms;
- glibc's libmvec. An array's elements must not differ in the last bit by where they stand in it, so the scalar call
  that runs in a loop's remainder is lane 0 of the very version that runs in its body: a small function (`@pk.asinh`)
  that is never inlined, because the vectorizer has to see the call;
- the C library, one element at a time.

libmvec comes first, except for functions where its error is larger or its time longer (`_BETTER_OWN`). On AArch64 many
of its functions of -0.0 are 0.0, by a sum of both zeros; those that are a zero of the same sign (`_KEEPS_ZERO`) are
called by functions of ours that put this right. A GPU
has none of the three: `vector_math_inline` defines what is called in the module itself, and gamma for CPUs too.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.base.types import itemsize
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, PURE, FunctionText, ModuleText, float_literal, is_literal
from parakeet_py.llvm.engine.late_functions import INVERSE
from parakeet_py.llvm.math.names import symbol as own_symbol
from parakeet_py.llvm.runtime.symbols import resolve
from parakeet_py.typed_ir.ir import FLOAT_UNARY, HALF_POWERS

_LIBRARY_NAME = {"gamma": "tgamma"}  # where C's name is another
_VECTOR = (FLOAT_UNARY | {"pow", "atan2", "hypot"}) - {"gamma", "lgamma"}
_BETTER_OWN = {
    "float64": frozenset({"exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "tanh", "erf", "pow", "hypot"}),
    "float32": frozenset({"exp", "log", "erf", "pow", "hypot"}),
}
_BETTER_INLINE = frozenset({"gamma"})  # glibc's errors reach 6 units, and it takes three times as long
_KEEPS_ZERO = frozenset(
    {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "cbrt", "erf"}
)
_SUFFIX = {"float": "f32", "double": "f64"}
_ISA = {128: "b", 256: "d", 512: "e"}  # letters of the x86-64 vector ABI


def call(f: FunctionText, name: str, dtype: str, arguments: list[str]) -> str:
    """Call function `name` on float32 or float64 values."""
    if name == "nextafter":
        return _next(f, dtype, *arguments)
    from parakeet_py.llvm.math import forms  # most programs need none of it

    if f.module.host.gpu or (name in _BETTER_INLINE and forms.supported(f.module.host)):
        from parakeet_py.llvm.math import inline

        other = f.module.elementary and f.module.elementary(f, name, dtype, arguments)
        if other:
            return other
        return inline.call(f, name, dtype, arguments)
    kind = LLVM_TYPE[dtype]
    module, arity = f.module, len(arguments)
    passed = ", ".join(f"{kind} {argument}" for argument in arguments)
    symbol = _LIBRARY_NAME.get(name, name) + ("f" if dtype == "float32" else "")
    variant = _vector_symbol(module, name, symbol, dtype, arity)
    if (variant is None or name in _BETTER_OWN[dtype]) and name in forms.KERNELS and forms.supported(module.host):
        mapping = _own_variants(module, name, dtype, arity)
        function = f"@{own_symbol(name, dtype)}"
    elif variant is not None:
        lanes = module.host.vector_bits // (8 * itemsize(dtype))
        keeps_zero = module.host.aarch64 and name in _KEEPS_ZERO
        mapping = _define_variants(module, symbol, variant, kind, lanes, arity, keeps_zero)
        function = f"@pk.{symbol}"
    else:
        function = module.declare(kind, symbol, ", ".join([kind] * arity), PURE)
        return f.value(f"call {kind} {function}({passed})")
    f.calls_vector_functions = True
    group = module.attributes(f'{PURE} "vector-function-abi-variant"="{mapping}"')
    return f.value(f"call {kind} {function}({passed}) {group}")


def _own_variants(module: ModuleText, name: str, dtype: str, arity: int) -> str:
    """Declare all forms of a function of our library, and give the value of the attribute that names them."""
    from parakeet_py.llvm.math import forms

    kind = LLVM_TYPE[dtype]
    scalar = own_symbol(name, dtype)
    module.declare(kind, scalar, ", ".join([kind] * arity), PURE)
    mapping = []
    for lanes in forms.lane_counts(module.host, dtype):
        form = own_symbol(name, dtype, lanes)
        vector = f"<{lanes} x {kind}>"
        module.declare(vector, form, ", ".join([vector] * arity), PURE)
        module.keep(form)
        mapping.append(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{scalar}({form})")
    return ",".join(mapping)


def power(f: FunctionText, dtype: str, base: str, exponent: str) -> str:
    """base ** exponent; small constant exponents are products, and so is 2 that is only seen when it runs: NumPy's
    squares are exact to the bit."""
    kind = LLVM_TYPE[dtype]
    if exponent == float_literal(1.0, kind):
        return base
    if exponent == float_literal(2.0, kind):
        return f.binary("fmul", kind, base, base)
    if exponent == float_literal(3.0, kind):
        return f.binary("fmul", kind, f.binary("fmul", kind, base, base), base)
    if exponent == float_literal(-1.0, kind):
        return f.binary("fdiv", kind, float_literal(1.0, kind), base)
    for half in HALF_POWERS:
        if exponent == float_literal(half, kind) and dtype != "float16":
            return _half_power(f, kind, base, half)
    result = call(f, "pow", dtype, [base, exponent])
    if is_literal(exponent):
        return result
    squares = f.binary("fcmp oeq", kind, exponent, float_literal(2.0, kind))
    return f.select(squares, kind, f.binary("fmul", kind, base, base), result)


def power_of_arrays(f: FunctionText, dtype: str, base: str, exponent: str) -> str:
    """base ** exponent with NumPy's shortcuts (see `vector_math_shortcuts`)."""
    from parakeet_py.llvm.math import forms, shortcuts

    module, kind = f.module, LLVM_TYPE[dtype]

    def vector_pow(lanes: int) -> shortcuts.Pow:
        vector = f"<{lanes} x {kind}>"

        def write(g: FunctionText, arguments: list[str]) -> str:
            form = module.declare(vector, own_symbol("pow", dtype, lanes), f"{vector}, {vector}", PURE)
            return g.value(f"call {vector} {form}({', '.join(f'{vector} {argument}' for argument in arguments)})")

        return write

    written = [(1, lambda g, arguments: call(g, "pow", dtype, arguments))]
    if not module.host.gpu and forms.supported(module.host):
        written += [(lanes, vector_pow(lanes)) for lanes in forms.lane_counts(module.host, dtype)]
    mapping = shortcuts.define(module, dtype, written)
    passed = f"{kind} {base}, {kind} {exponent}"
    if not mapping:
        return f.value(f"call {kind} @{shortcuts.symbol(dtype)}({passed})")
    f.calls_vector_functions = True
    group = module.attributes(f'{PURE} "vector-function-abi-variant"="{mapping}"')
    return f.value(f"call {kind} @{shortcuts.symbol(dtype)}({passed}) {group}")


def _half_power(f: FunctionText, kind: str, base: str, exponent: float) -> str:
    """base ** (+-0.5 or +-1.5) by square roots: at most 2 ulp, in an order that cannot overflow before the result does.

    pow takes -0.0 for 0.0 and -inf for inf here; a square root does not.
    """
    sqrt = f.module.declare(kind, f"llvm.sqrt.{_SUFFIX[kind]}", kind)
    zero, one, infinity = (float_literal(number, kind) for number in (0.0, 1.0, float("-inf")))
    if exponent == -1.5 and f.module.host.fma:
        return _inverse_half_power(f, kind, f.binary("fadd", kind, base, zero), sqrt)
    intrinsic = f.module.declare(kind, f"llvm.fabs.{_SUFFIX[kind]}", kind)
    either = [f.value(f"fcmp oeq {kind} {base}, {limit}") for limit in (zero, infinity)]
    odd = f.binary("or", "i1", *either)
    x = f.select(odd, kind, f.value(f"call {kind} {intrinsic}({kind} {base})"), base)
    root = f.value(f"call {kind} {sqrt}({kind} {x})")
    if exponent == 0.5:
        return root
    if exponent == 1.5:
        return f.binary("fmul", kind, x, root)
    return f.binary("fdiv", kind, one if exponent == -0.5 else f.binary("fdiv", kind, one, x), root)


def _inverse_half_power(f: FunctionText, kind: str, x: str, sqrt: str) -> str:
    """x ** -1.5 with one division (which takes as long as all else), for x other than -0.0: r * sqrt(r) of r = 1 / x,
    plus what the error of r makes of that, where it is a number. (It is none where x, r or the power is infinite.) For
    x = -inf, r is -0.0, and so is its root. With AVX-512 by an estimate of 1 / sqrt(x) (`engine.late_functions`)."""
    if kind == "double" and f.module.host.root_estimate:
        return _late_inverse_half_power(f, x)
    inverse = f.binary("fdiv", kind, float_literal(1.0, kind), x)
    power = f.binary("fmul", kind, inverse, f.value(f"call {kind} {sqrt}({kind} {inverse})"))
    rest = f.intrinsic("fma", kind, f.value(f"fneg {kind} {x}"), inverse, float_literal(1.0, kind))
    better = f.intrinsic("fma", kind, power, f.binary("fmul", kind, rest, float_literal(1.5, kind)), power)
    return f.select(f.binary("fcmp ord", kind, better, better), kind, better, power)


def _late_inverse_half_power(f: FunctionText, x: str) -> str:
    module, mapping = f.module, []
    full = module.host.vector_bits // 64
    for lanes in (1, full, *([full // 2] if full > 4 else [])):
        kind, name = ("double", INVERSE) if lanes == 1 else (f"<{lanes} x double>", f"{INVERSE}.{lanes}")
        module.declare_late(kind, name, kind, PURE)
        if lanes > 1:
            module.keep(name)
            mapping.append(f"_ZGV_LLVM_N{lanes}v_{INVERSE}({name})")
    group = module.attributes(f'{PURE} "vector-function-abi-variant"="{",".join(mapping)}"')
    return f.value(f"call double @{INVERSE}(double {x}) {group}")


def _vector_symbol(module: ModuleText, name: str, symbol: str, dtype: str, arity: int) -> str | None:
    """The vector version for this machine's widest vectors, if its library has one."""
    if name not in _VECTOR:
        return None
    bits = module.host.vector_bits
    isa = "n" if module.host.aarch64 else _ISA[bits]
    variant = f"_ZGV{isa}N{bits // (8 * itemsize(dtype))}{'v' * arity}_{symbol}"
    return variant if resolve(variant) else None


def _define_variants(
    module: ModuleText, symbol: str, variant: str, kind: str, lanes: int, arity: int, keeps_zero: bool
) -> str:
    """Define the scalar form of a vector function (and for floats the half-width form, used in loops that also have
    doubles) and give the value of the attribute that names the vector forms. Where a zero is to be kept, which the
    function may not do, the full-width form is defined, too."""
    full = f"pk.{symbol}.{lanes}" if keeps_zero else variant
    mapping = f"_ZGV_LLVM_N{lanes}{'v' * arity}_pk.{symbol}({full})"
    half = f"pk.{symbol}.{lanes // 2}"
    if kind == "float":
        mapping += f",_ZGV_LLVM_N{lanes // 2}{'v' * arity}_pk.{symbol}({half})"
    if not module.is_new(f"pk.{symbol}"):
        return mapping
    vector = f"<{lanes} x {kind}>"
    module.declare(vector, variant, ", ".join([vector] * arity), PURE)
    module.keep(variant)
    group = module.attributes(f"noinline {PURE}")
    names = ["%x", "%y"][:arity]

    def define(name: str, given: str, narrow: str, widen: str, take: str) -> None:
        lines = [widen.replace("$", argument) for argument in names]
        wide = ", ".join(f"{vector} {argument}.w" for argument in names)
        if keeps_zero:
            take = take.replace("%r", "%kept")
        parameters = ", ".join(f"{given} {argument}" for argument in names)
        module.functions.append(
            "\n".join(
                [
                    # weak: an internal function would lose arguments that are constant, and with them its vector forms
                    f"define weak dso_local {given} @{name}({parameters}) {group} {{",
                    *lines,
                    f"  %r = call {vector} @{variant}({wide})",
                    *(_kept(vector, lanes) if keeps_zero else ()),
                    f"  %s = {take}",
                    f"  ret {narrow} %s",
                    "}",
                ]
            )
        )

    define(
        f"pk.{symbol}",
        kind,
        kind,
        f"  $.v = insertelement {vector} poison, {kind} $, i64 0\n"
        f"  $.w = shufflevector {vector} $.v, {vector} poison, <{lanes} x i32> zeroinitializer",
        f"extractelement {vector} %r, i64 0",
    )
    if keeps_zero:
        define(full, vector, vector, f"  $.w = bitcast {vector} $ to {vector}", f"bitcast {vector} %r to {vector}")
        module.keep(full)
    if kind == "float":
        narrow = f"<{lanes // 2} x {kind}>"
        twice = ", ".join(f"i32 {lane % (lanes // 2)}" for lane in range(lanes))
        first = ", ".join(f"i32 {lane}" for lane in range(lanes // 2))
        define(
            half,
            narrow,
            narrow,
            f"  $.w = shufflevector {narrow} $, {narrow} poison, <{lanes} x i32> <{twice}>",
            f"shufflevector {vector} %r, {vector} poison, <{lanes // 2} x i32> <{first}>",
        )
        module.keep(half)
    return mapping


def _kept(vector: str, lanes: int) -> tuple[str, ...]:
    """The result %kept: %r, but the argument %x.w where that is a zero."""
    return (
        f"  %zero = fcmp oeq {vector} %x.w, zeroinitializer",
        f"  %kept = select <{lanes} x i1> %zero, {vector} %x.w, {vector} %r",
    )


# Of two zeros the second, as C does; NumPy's own function for half precision gives the first before 2.5.
_GIVES_FIRST = not np.signbit(np.nextafter(np.float16(0.0), np.float16(-0.0)))


def _next(f: FunctionText, dtype: str, value: str, toward: str) -> str:
    """nextafter, on the bits: sign and magnitude, so that a step away from zero adds 1."""
    kind = LLVM_TYPE[dtype]
    width = 8 * itemsize(dtype)
    word, top = f"i{width}", 1 << width - 1
    x, y = (f.value(f"bitcast {kind} {argument} to {word}") for argument in (value, toward))
    size, other = (f.binary("and", word, bits, str(top - 1)) for bits in (x, y))
    sign = f.binary("and", word, y, str(-top))
    same_sign = f.binary("icmp sge", word, f.binary("xor", word, x, y), "0")
    grows = f.binary("and", "i1", same_sign, f.binary("icmp ult", word, size, other))
    stepped = f.binary("add", word, x, f.select(grows, word, "1", "-1"))
    from_zero = f.binary("or", word, sign, "1")
    result = f.select(f.binary("icmp eq", word, size, "0"), word, from_zero, stepped)
    equal = f.binary("fcmp oeq", kind, value, toward)
    result = f.select(equal, word, x if kind == "half" and _GIVES_FIRST else y, result)
    unordered = f.binary("fcmp uno", kind, value, toward)
    result = f.value(f"bitcast {word} {result} to {kind}")
    return f.select(unordered, kind, float_literal(float("nan"), kind), result)
