"""The accuracy of elementary functions against mpmath, and that vector lanes and scalars agree bit for bit."""

from __future__ import annotations

import ctypes
import math
import platform
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from parakeet_py.base.types import Scalar
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.compiler import HostInfo
from parakeet_py.llvm.math import forms, functions, library, names
from tests.helpers.native_functions import Native, Var, elementwise, function, let, prim

EXACT: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    # function: (exactly, low, high)
    "exp": (mp.exp, -700, 700),
    "exp2": (lambda x: mp.mpf(2) ** x, -1000, 1000),
    "expm1": (mp.expm1, -30, 700),
    "log": (mp.log, 1e-300, 1e300),
    "log2": (lambda x: mp.log(x, 2), 1e-300, 1e300),
    "log10": (mp.log10, 1e-300, 1e300),
    "log1p": (mp.log1p, -0.99, 1e6),
    "sin": (mp.sin, -1e5, 1e5),
    "cos": (mp.cos, -1e5, 1e5),
    "tan": (mp.tan, -1e5, 1e5),
    "asin": (mp.asin, -1, 1),
    "acos": (mp.acos, -1, 1),
    "atan": (mp.atan, -1e10, 1e10),
    "sinh": (mp.sinh, -700, 700),
    "cosh": (mp.cosh, -700, 700),
    "tanh": (mp.tanh, -20, 20),
    "asinh": (mp.asinh, -1e10, 1e10),
    "acosh": (mp.acosh, 1, 1e10),
    "atanh": (mp.atanh, -0.9999, 0.9999),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), -1e10, 1e10),
    "erf": (mp.erf, -6, 6),
    "erfc": (mp.erfc, -6, 26),
}
DTYPES = ("float64", "float32")
C_NAME = {"gamma": "tgamma"}


def points(name: str, dtype: str, count: int) -> Any:
    """Arguments over the whole range, evenly and by magnitude."""
    _, low, high = EXACT[name]
    if dtype == "float32":
        low, high = max(low, -80 if high < 1e5 else -1e30), min(high, 80 if high < 1e5 else 1e30)
        low = 1e-30 if name.startswith("log") and name != "log1p" else low
    rng = np.random.default_rng(len(name))
    even = rng.uniform(low, high, count // 2)
    scaled = 10.0 ** rng.uniform(-9, math.log10(high) if high > 1 else 0, count)
    if low < 0:
        scaled *= rng.choice([-1, 1], count)
    return np.concatenate([even, scaled[(scaled >= low) & (scaled <= high)]]).astype(dtype)


def error(found: Any, exact: Any, dtype: str) -> float:
    """The distance in units in the last place."""
    info = np.finfo(dtype)
    exponent = max(int(mp.frexp(abs(exact))[1]) if exact else -2000, info.minexp + 1)
    return float(abs(mp.mpf(float(found)) - exact) / mp.ldexp(1, exponent - 1 - info.nmant))


def limit(name: str, dtype: str) -> float:
    """What is promised: 2 units for float64; libmvec's float32 functions, the same as NumPy's, are a little worse."""
    if name in functions._BETTER_OWN[dtype]:
        return 1.1
    return 2.05 if dtype == "float64" else 2.6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_accuracy(name: str, dtype: str) -> None:
    x = points(name, dtype, 300)
    out = np.empty_like(x)
    Native(elementwise(name, [dtype], dtype, layout="C"))(x, out)
    with mp.workprec(150):
        exact = [EXACT[name][0](mp.mpf(float(v))) for v in x]
        assert max(error(f, e, dtype) for f, e in zip(out, exact, strict=True)) < limit(name, dtype)


@pytest.mark.skipif(not forms.supported(compiler.host()), reason="needs fused multiply-add")
@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracy_of_gamma(dtype: str) -> None:
    x = np.random.default_rng(9).uniform(-20, 30, 500).astype(dtype)
    out = np.empty_like(x)
    Native(elementwise("gamma", [dtype], dtype, layout="C"))(x, out)
    with mp.workprec(150):
        assert max(error(r, mp.gamma(mp.mpf(float(v))), dtype) for r, v in zip(out, x, strict=True)) < 1.5


@pytest.mark.skipif(not forms.supported(compiler.host()), reason="needs fused multiply-add")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(set(forms.KERNELS) - {"fmod", "hypot", "pow"}))
def test_accuracy_of_our_own_functions(name: str, dtype: str) -> None:
    x = points(name, dtype, 300)
    scalar = own(name, dtype)
    with mp.workprec(150):
        worst = max(error(scalar(float(v)), EXACT[name][0](mp.mpf(float(v))), dtype) for v in x)
    assert worst < (1.4 if name == "tanh" else 1.1)


@pytest.mark.skipif(not forms.supported(compiler.host()), reason="needs fused multiply-add")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_next_to_multiples_of_a_quarter_turn(name: str, dtype: str) -> None:
    """Where the argument's reduction cancels most."""
    scalar = own(name, dtype)
    with mp.workprec(200):
        for n in (*range(1, 200), *range(600_000, 600_200)):
            x = float(np.array(float(n * mp.pi / 2), dtype))
            assert error(scalar(x), EXACT[name][0](mp.mpf(x)), dtype) < 1.1, x


def own(name: str, dtype: str) -> Callable[..., float]:
    kind = ctypes.c_double if dtype == "float64" else ctypes.c_float
    address = library.resolve(names.symbol(name, dtype))
    assert address
    return ctypes.CFUNCTYPE(kind, kind)(address)


def c_library(name: str, dtype: str) -> Callable[..., float]:
    kind = ctypes.c_double if dtype == "float64" else ctypes.c_float
    found = ctypes.CDLL("libm.so.6")[C_NAME.get(name, name) + ("f" if dtype == "float32" else "")]
    found.restype, found.argtypes = kind, [kind]
    return found  # type: ignore[no-any-return]


def specials(dtype: str) -> Any:
    info = np.finfo(dtype)
    some = [0.0, np.inf, 1, 2, 0.5, 100, 800, 1e5, 1e8, 1e22, 710, 745.1, 745.2, 708.5, 88.7, 88.8, 103.9, 104, 740.5]
    some += [709.7, 1022.5, 1074.9, 1024, 1023.99, 0.99999, 1.00001, math.pi / 2, math.pi, 2e6 * math.pi]
    some += [info.max, info.tiny, info.smallest_subnormal, 1e-20]
    return np.array([np.nan, *some, *(-s for s in some)]).astype(dtype)


def same(found: Any, wanted: Any) -> bool:
    if np.isnan(wanted) or np.isnan(found):
        return bool(np.isnan(wanted) and np.isnan(found))
    return (
        bool(abs(found - wanted) <= 4 * np.spacing(abs(wanted)))
        if found != wanted
        else bool(np.signbit(found) == np.signbit(wanted))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*EXACT, "gamma", "lgamma"])
def test_special_values(name: str, dtype: str) -> None:
    x = specials(dtype)
    with np.errstate(all="ignore"):
        out = np.empty_like(x)
        Native(elementwise(name, [dtype], dtype, layout="C"))(x, out)
        reference = c_library(name, dtype)
        for argument, found in zip(x, out, strict=True):
            wanted = np.array(reference(float(argument)), dtype)[()]
            assert same(found, wanted), (argument, found, wanted)
        if name in forms.KERNELS and forms.supported(compiler.host()):
            scalar = own(name, dtype)
            for argument in x:
                found, wanted = (np.array(f(float(argument)), dtype)[()] for f in (scalar, reference))
                assert same(found, wanted), (argument, found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*EXACT, "pow", "atan2", "hypot", "fmod"])
def test_bits_do_not_depend_on_the_position(name: str, dtype: str) -> None:
    """Every start and length, and the scalar, give the same bits."""
    arity = 2 if name in ("pow", "atan2", "hypot", "fmod") else 1
    rng = np.random.default_rng(5)
    args = [
        rng.uniform(1.0 if name == "acosh" else 0.05, 30 if name == "acosh" else 0.95, 67).astype(dtype)
        for _ in range(arity)
    ]
    native = Native(elementwise(name, [dtype] * arity, dtype, layout="C"))
    whole = np.empty(67, dtype)
    native(*args, whole)
    for start in range(0, 19):
        for length in (1, 3, 8, 15, 16, 17, 48):
            part = np.empty(length, dtype)
            native(*[a[start : start + length].copy() for a in args], part)
            np.testing.assert_array_equal(part, whole[start : start + length])
    params = [Var("x", Scalar(dtype)) for _ in range(arity)]
    result = Var("r", Scalar(dtype))
    scalar = Native(function(params, [let(result, prim(name, *params))], [result]))
    np.testing.assert_array_equal([scalar(*values) for values in zip(*args, strict=True)], whole)


@pytest.mark.skipif(not forms.supported(compiler.host()), reason="needs fused multiply-add")
@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracy_of_powers(dtype: str) -> None:
    """Results up to the ends of the range; exact ones; special arguments beside ordinary ones."""
    rng = np.random.default_rng(8)
    wide = dtype == "float64"
    reach = 690 if wide else 80
    x = np.concatenate([10.0 ** rng.uniform(-30, 30, 200), rng.uniform(0.97, 1.03, 200), [1e-300 if wide else 1e-30]])
    x = x.astype(dtype)
    y = (rng.uniform(-reach, reach, len(x)) / np.maximum(abs(np.log(x)), 1e-6)).astype(dtype)
    whole = [(base, power) for base in range(2, 30) for power in range(2, 9) if base**power < 1 << (53 if wide else 24)]
    special = specials(dtype)
    few = np.array([a for a in np.meshgrid(special, special)]).reshape(2, -1)
    native = Native(elementwise("pow", [dtype, dtype], dtype, layout="C"))
    with mp.workprec(200):
        out = np.empty_like(x)
        native(x, y, out)
        exact = [mp.mpf(float(base)) ** mp.mpf(float(power)) for base, power in zip(x, y, strict=True)]
        assert max(error(float(found), wanted, dtype) for found, wanted in zip(out, exact, strict=True)) < 0.8
    bases, powers = (np.array(part, dtype) for part in zip(*whole, strict=True))
    out = np.empty_like(bases)
    native(bases, powers, out)
    np.testing.assert_array_equal(out, [base**power for base, power in whole])
    bases, powers = np.array([few[0], np.resize(x, few.shape[1])]), np.array([few[1], np.resize(y, few.shape[1])])
    bases, powers = bases.T.ravel().copy(), powers.T.ravel().copy()  # by turns
    out = np.empty_like(bases)
    native(bases, powers, out)
    with np.errstate(all="ignore"):
        wanted = np.power(bases, powers)
    np.testing.assert_allclose(out, wanted, 2e-15 if wide else 1e-6, np.finfo(dtype).smallest_subnormal)
    finite = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(out[finite]), np.signbit(wanted[finite]))


def test_floats_beside_doubles() -> None:
    """A loop over float32 and float64 uses half-width forms: still the same bits."""
    rng = np.random.default_rng(6)
    x = rng.uniform(0.1, 3, 100).astype("float32")
    for name in ("exp", "sinh", "cbrt"):
        single, widened = np.empty(100, "float32"), np.empty(100)
        Native(elementwise(name, ["float32"], "float32", layout="C"))(x, single)
        fn = elementwise(name, ["float32"], "float64", layout="C")
        from parakeet_py.imp import ir

        loop = fn.body.statements[1]
        assert isinstance(loop, ir.For)
        load, compute, store = loop.body.statements
        assert isinstance(load, ir.Let) and isinstance(compute, ir.Let) and isinstance(store, ir.Store)
        narrow = Var("narrow", Scalar("float32"))
        body = ir.Block((load, ir.Let(narrow, compute.rhs, compute.pos), let(compute.out, ir.Cast(narrow)), store))
        mixed = ir.For(loop.index, loop.start, loop.stop, loop.step, body, loop.kind)
        Native(function(fn.params, [fn.body.statements[0], mixed], roots=dict(fn.roots)))(x, widened)
        np.testing.assert_array_equal(widened, single.astype("float64"))


@pytest.mark.parametrize(
    ("exponent", "wanted"), [(1.0, lambda x: x), (2.0, np.square), (3.0, lambda x: x * x * x), (-1.0, np.reciprocal)]
)
def test_small_powers_are_products(exponent: float, wanted: Callable[[Any], Any]) -> None:
    from tests.helpers.native_functions import const

    x, r = Var("x", Scalar("float64")), Var("r", Scalar("float64"))
    native = Native(function([x], [let(r, prim("pow", x, const(exponent, "float64")))], [r]))
    assert not any("pow" in symbol for symbol in native.code.symbols)
    with np.errstate(all="ignore"):
        for value in specials("float64"):
            np.testing.assert_array_equal(native(value), wanted(value))
            np.testing.assert_allclose(native(value), np.power(value, exponent), 1e-15)


@pytest.mark.parametrize("estimate", [False, True])
def test_inverse_powers_have_the_same_bits_beside_odd_ones(estimate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """x ** -1.5, of which vectors with unusual numbers in some lanes are put right."""
    if estimate and not compiler.host().root_estimate:
        pytest.skip("the processor has no estimate of 1 / sqrt(x)")
    monkeypatch.setattr(HostInfo, "root_estimate", estimate)
    from parakeet_py.imp import ir
    from tests.helpers.native_functions import const

    x, r = Var("x", Scalar("float64")), Var("r", Scalar("float64"))
    single = Native(function([x], [let(r, prim("pow", x, const(-1.5, "float64")))], [r]))
    rng = np.random.default_rng(2)
    data = np.exp(rng.normal(size=200) * 80)
    odd = [*specials("float64"), -1.0, 5e-324, 1e-308, 1e-210, 1e308, 2.0**600, 2.0**-600]
    data[::7] = np.resize(odd, data[::7].size)
    fn = elementwise("sqrt", ["float64"], "float64", layout="C")
    first, loop = fn.body.statements
    assert isinstance(loop, ir.For)
    load, compute, store = loop.body.statements
    assert isinstance(load, ir.Let) and isinstance(compute, ir.Let)
    body = ir.Block((load, let(compute.out, prim("pow", load.out, const(-1.5, "float64"))), store))
    powers = function(fn.params, [first, replace(loop, body=body)], roots=dict(fn.roots))
    out = np.empty_like(data)
    Native(powers)(data, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, [single(value) for value in data])
        np.testing.assert_allclose(out, np.power(data, -1.5), 1e-15)
    for value, found in zip(data, out, strict=True):
        if 1e-200 < value < 1e200:
            assert error(found, mp.mpf(float(value)) ** mp.mpf(-1.5), "float64") < 1.1


def test_without_libmvec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our functions stand in where the library has none; the rest is scalar."""
    monkeypatch.setattr(functions, "resolve", lambda name: None)
    monkeypatch.setattr(forms, "supported", lambda host: True)
    host = compiler.host()
    assert generate(elementwise("log10", ["float64"], "float64"), host).symbols[0].startswith("pk_math_log10")
    assert generate(elementwise("cbrt", ["float64"], "float64"), host).symbols == ("cbrt",)
    x = np.linspace(0.5, 3, 1000)
    out = np.empty_like(x)
    for name in ("log2", "atan", "exp2", "erfc"):
        Native(elementwise(name, ["float64"], "float64", layout="C"))(x, out)
        np.testing.assert_allclose(out, [c_library(name, "float64")(v) for v in x], 1e-15)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("avx512", [False, True])
def test_text_for_other_machines(bits: int, avx512: bool) -> None:
    """Every form compiles for every vector width, with and without AVX-512's instructions."""
    host = compiler.host()
    features = ",".join(f for f in host.features.split(",") if avx512 or not f.startswith("+avx512"))
    if avx512 and "+avx512f" not in features.split(","):
        pytest.skip("this machine has no AVX-512")
    other = HostInfo(host.cpu, features, bits, host.triple, host.data_layout)
    for name in forms.KERNELS:
        for dtype in DTYPES:
            compiler.compile_ir(forms.library_ir(name, dtype, other), level=1, vectorize=False)


@pytest.mark.skipif(not forms.supported(compiler.host()), reason="needs fused multiply-add")
@pytest.mark.skipif(platform.libc_ver() < (("glibc", "2.35")), reason="the C library has another algorithm")
@pytest.mark.parametrize("dtype", DTYPES)
def test_hypotenuse_is_the_c_librarys(dtype: str) -> None:
    """All bits, of sides of any size, far apart, subnormal, infinite and NaN."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal(3000).astype(dtype) * dtype_scale(rng, dtype)
    with np.errstate(over="ignore", under="ignore"):
        y = (x * np.exp2(rng.integers(-60, 60, 3000)) * rng.standard_normal(3000)).astype(dtype)
    left, right = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    for a, b in ((x, y), (y, x), (left, right)):
        out = np.empty_like(a)
        Native(elementwise("hypot", [dtype, dtype], dtype, layout="C"))(a.copy(), b.copy(), out)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(out, np.hypot(a, b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainder_is_exact(dtype: str) -> None:
    """Quotients just below an integer, far apart magnitudes, subnormal numbers: all bits as the C library's."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(3000).astype(dtype) * dtype_scale(rng, dtype)
    y = rng.standard_normal(3000).astype(dtype) * dtype_scale(rng, dtype)
    whole = (y * rng.integers(1, 1000, 3000).astype(dtype)).astype(dtype)
    near = np.nextafter(whole, rng.choice([-np.inf, np.inf], 3000).astype(dtype))
    special = specials(dtype)
    left, right = (a.ravel() for a in np.meshgrid(special, special))
    for a, b in ((x, y), (whole, y), (near, y), (y, near), (left, right)):
        out = np.empty_like(a)
        Native(elementwise("fmod", [dtype, dtype], dtype, layout="C"))(a.copy(), b.copy(), out)
        with np.errstate(all="ignore"):
            wanted = np.fmod(a, b)
        np.testing.assert_array_equal(out, wanted)
        finite = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(out[finite]), np.signbit(wanted[finite]))


def dtype_scale(rng: Any, dtype: str) -> Any:
    limit = 300 if dtype == "float64" else 36
    return (10.0 ** rng.integers(-limit, limit, 3000)).astype(dtype)


def test_squares_are_exact() -> None:
    """An exponent that turns out to be 2 squares, to the bit."""
    x = np.random.default_rng(8).standard_normal(1000)
    out = np.empty_like(x)
    Native(elementwise("pow", ["float64", "float64"], "float64"))(x, np.full_like(x, 2.0), out)
    np.testing.assert_array_equal(out, x * x)
