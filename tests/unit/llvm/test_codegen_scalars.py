"""Every primitive and cast on every dtype, special values included, against NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from parakeet_py.base.types import COMPLEX, DTYPES, FLOATS, INTEGERS, Array, Scalar
from parakeet_py.export.targets import TARGETS
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.typed_ir.ir import Prim, Var
from parakeet_py.typed_ir.semantics import OVERFLOW, evaluate
from tests.helpers.native_functions import INT, POS, Failed, Native, block, const, elementwise, function, let

SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    3.0,
    -7.25,
    1e-3,
    100.7,
    np.inf,
    -np.inf,
    np.nan,
    1e4,
    -6.5e4,
    1e-7,
)


def values(dtype: str) -> Any:
    """Special and ordinary values of a dtype."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        some = [0, 1, 2, 3, 5, 7, 8, 13, 31, 63, 64, 100, info.max, info.max - 1, info.min, info.min + 1]
        if info.min:
            some += [-1, -2, -3, -7, -13, -64]
        return np.array([v for v in some if info.min <= v <= info.max], dtype)
    if dtype in FLOATS:
        info = np.finfo(dtype)
        more = [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, info.eps]
        return np.array([*SPECIAL, *more], dtype)
    parts = values("float32" if dtype == "complex64" else "float64")[:15]
    return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)


def pairs(dtype: str) -> tuple[Any, Any]:
    """Every pair of values (of complex ones, a sample)."""
    some = values(dtype)
    if dtype in COMPLEX:
        rng = np.random.default_rng(0)
        return some[rng.integers(len(some), size=3000)], some[rng.integers(len(some), size=3000)]
    left, right = np.meshgrid(some, some)
    return left.ravel(), right.ravel()


def assert_same(found: Any, wanted: Any, signs: bool = True) -> None:
    """Equal bit for bit, but for the payload of NaN."""
    np.testing.assert_array_equal(found, wanted)
    if signs and wanted.dtype.kind == "f":
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


def run(name: str, dtypes: list[str], out: str, *args: Any) -> Any:
    result = np.empty(args[0].shape, out)
    Native(elementwise(name, dtypes, out))(*args, result)
    return result


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "fmod": np.fmod,
}
COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift}
UNARY = {"neg": np.negative, "abs": np.abs}
REAL = (*INTEGERS, *FLOATS)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name: str, dtype: str) -> None:
    left, right = pairs(dtype)
    with np.errstate(all="ignore"):
        wanted = BINARY[name](left, right)
    # which zero fmin and fmax give depends on how NumPy's loop was entered
    assert_same(run(name, [dtype, dtype], dtype, left, right), wanted, signs=name not in ("fmin", "fmax"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_are_the_second_of_two_zeros(dtype: str) -> None:
    """On every processor, as NumPy's `clip`; `minimum` and `maximum` may order them."""
    left, right = pairs(dtype)
    for name, ufunc in (("at_least", np.maximum), ("at_most", np.minimum)):
        wanted = np.where(left == right, right, ufunc(left, right))
        assert_same(run(name, [dtype, dtype], dtype, left, right), wanted)
        assert_same(np.array([evaluate(name, [x, y]) for x, y in zip(left, right, strict=True)], dtype), wanted)


def test_text_for_aarch64() -> None:
    """There the processor's own instructions are NumPy's; what they give is compared where the tests run on one."""
    host = TARGETS["aarch64"].host()
    for name, source, target, called in (
        ("minimum", "float32", "float32", "llvm.minimum.f32"),
        ("fmax", "float64", "float64", "llvm.maximumnum.f64"),
        ("cast", "float64", "uint8", "llvm.fptoui.sat.i32.f64"),
        ("cast", "float16", "int64", "llvm.fptosi.sat.i64.f32"),
    ):
        text = generate(elementwise(name, [source] * (1 if name == "cast" else 2), target), host).text
        assert f"@{called}(" in text and "fcmp" not in text
        binding.parse_assembly(text).verify()
    text = generate(elementwise("maximum", ["float16"] * 2, "float16"), host).text
    assert "llvm.maximum" not in text and "fcmp oge" in text
    text = generate(elementwise("at_most", ["float32"] * 2, "float32"), host).text
    assert "llvm.minimum" not in text and "fcmp olt" in text


@pytest.mark.parametrize("kind", ["vector", "serial"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_known_numbers(dtype: str, kind: str) -> None:
    info = np.iinfo(dtype)
    divisors = [
        1,
        2,
        3,
        7,
        10,
        64,
        127,
        255,
        641,
        2**31,
        2**32 + 1,
        10**18 + 9,
        2**63 - 1,
        2**63 + 1,
        2**64 - 1,
        -1,
        -6,
    ]
    cases = [(name, d) for name in ("floordiv", "mod", "fmod") for d in divisors if info.min <= d <= info.max]
    rng = np.random.default_rng(0)
    left = np.concatenate([values(dtype), rng.integers(info.min, info.max, 50, dtype=dtype)])
    x, n, i = Var("x", Array(dtype, 1, "C")), Var("n", INT), Var("i", INT)
    element, out = Var("e", Scalar(dtype)), Var("out", Array(dtype, 2, "C"))
    body: list[ir.Statement] = [let(element, ir.Load(x, (i,)))]
    for row, (name, divisor) in enumerate(cases):
        result = Var("r", Scalar(dtype))
        body.append(let(result, Prim(name, (element, const(divisor, dtype)))))
        body.append(ir.Store(out, (const(row), i), result, POS))
    loop = ir.For(i, const(0), n, const(1), block(*body), kind)
    found = np.empty((len(cases), left.size), dtype)
    roots = {x: frozenset({0}), out: frozenset({1})}
    Native(function([x, out], [let(n, ir.Dim(x, 0)), loop], roots=roots))(left, found)
    with np.errstate(all="ignore"):
        for got, (name, divisor) in zip(found, cases, strict=True):
            np.testing.assert_array_equal(got, BINARY[name](left, np.array(divisor, dtype)), f"{name} {divisor}")


@pytest.mark.parametrize("kind", ["vector", "serial"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_one_number_for_all(dtype: str, kind: str) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    left = np.concatenate([values(dtype), rng.integers(info.min, info.max, 50, dtype=dtype)])
    some = [10, 127, 641, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 10**18 + 9, 2**62 + 1, 2**63 + 1, 2**64 - 2]
    some += [-10, -(2**31), -(2**32) - 1]
    some += [int(1.5**e) for e in range(2, 110, 3)]
    divisors = [*values(dtype), *[d for d in some if info.min <= d <= info.max]]
    x, by, n, i = Var("x", Array(dtype, 1, "C")), Var("by", Scalar(dtype)), Var("n", INT), Var("i", INT)
    element, out = Var("e", Scalar(dtype)), Var("out", Array(dtype, 2, "C"))
    body: list[ir.Statement] = [let(element, ir.Load(x, (i,)))]
    names = ("floordiv", "mod", "fmod")
    for row, name in enumerate(names):
        result = Var("r", Scalar(dtype))
        body.append(let(result, Prim(name, (element, by))))
        body.append(ir.Store(out, (const(row), i), result, POS))
    loop = ir.For(i, const(0), n, const(1), block(*body), kind)
    found = np.empty((len(names), left.size), dtype)
    roots = {x: frozenset({0}), out: frozenset({1})}
    native = Native(function([x, by, out], [let(n, ir.Dim(x, 0)), loop], roots=roots))
    for divisor in divisors:
        native(left, divisor, found)
        with np.errstate(all="ignore"):
            for got, name in zip(found, names, strict=True):
                np.testing.assert_array_equal(got, BINARY[name](left, np.array(divisor, dtype)), f"{name} {divisor}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_division(dtype: str) -> None:
    left, right = pairs(dtype)
    with np.errstate(all="ignore"):
        assert_same(run("div", [dtype, dtype], dtype, left, right), left / right)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floored_division_of_random_floats(dtype: str) -> None:
    rng = np.random.default_rng(1)
    left = (rng.standard_normal(2000) * 10.0 ** rng.integers(-3, 4, 2000)).astype(dtype)
    right = (rng.standard_normal(2000) * 10.0 ** rng.integers(-3, 3, 2000)).astype(dtype)
    with np.errstate(all="ignore"):
        for name in ("floordiv", "mod", "fmod"):
            assert_same(run(name, [dtype, dtype], dtype, left, right), BINARY[name](left, right))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARE)
def test_comparison(name: str, dtype: str) -> None:
    if dtype in COMPLEX and name not in ("eq", "ne"):
        pytest.skip("complex numbers have no order in the IR")
    left, right = pairs(dtype)
    assert_same(run(name, [dtype, dtype], "bool", left, right), COMPARE[name](left, right))


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS))
@pytest.mark.parametrize("name", BITS)
def test_bits(name: str, dtype: str) -> None:
    if dtype == "bool" and name in ("shl", "shr"):
        pytest.skip("NumPy shifts bools as int8")
    left, right = pairs(dtype)
    assert_same(run(name, [dtype, dtype], dtype, left, right), BITS[name](left, right))


@pytest.mark.parametrize("dtype", ("bool", *INTEGERS))
def test_not(dtype: str) -> None:
    x = values(dtype)
    assert_same(run("not", [dtype], dtype, x), np.invert(x))


@pytest.mark.parametrize("name", ["add", "mul", "minimum", "maximum"])
def test_bool_arithmetic(name: str) -> None:
    left, right = pairs("bool")
    assert_same(run(name, ["bool", "bool"], "bool", left, right), BINARY[name](left, right))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", UNARY)
def test_sign(name: str, dtype: str) -> None:
    x = values(dtype)
    assert_same(run(name, [dtype], dtype, x), UNARY[name](x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "rint", "sqrt"])
def test_rounding(name: str, dtype: str) -> None:
    x = values(dtype)
    with np.errstate(all="ignore"):
        assert_same(run(name, [dtype], dtype, x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit"])
def test_tests(name: str, dtype: str) -> None:
    x = values(dtype)
    assert_same(run(name, [dtype], "bool", x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["copysign", "nextafter"])
def test_sign_and_neighbour(name: str, dtype: str) -> None:
    left, right = pairs(dtype)
    with np.errstate(all="ignore"):
        assert_same(run(name, [dtype, dtype], dtype, left, right), getattr(np, name)(left, right))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_cast(source: str, target: str) -> None:
    x = values(source)
    if source in FLOATS:
        rng = np.random.default_rng(2)
        limits = [s * 2.0**e + d for s in (1, -1) for e in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1.5, 0, 1.5)]
        with np.errstate(all="ignore"):
            x = np.concatenate([x, np.array(limits).astype(source), rng.standard_normal(500).astype(source) * 300])
    with np.errstate(all="ignore"):
        # element by element: NumPy's loops for uint32 differ from its scalars where C leaves the value open
        wanted = np.array([item.astype(target) for item in x], target)
    assert_same(run("cast", [source], target, x), wanted)


def test_cast_to_half_rounds_once() -> None:
    ties = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 2**-11, 65519.99999, 65520.0, 2**-25 * (1 + 2**-30)])
    x = np.concatenate([ties, -ties, np.random.default_rng(3).standard_normal(5000)])
    with np.errstate(all="ignore"):
        assert_same(run("cast", ["float64"], "float16", x), x.astype("float16"))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_arithmetic(dtype: str) -> None:
    left, right = pairs(dtype)
    part = left.real.dtype.name
    tolerance = 4 * np.finfo(part).eps
    with np.errstate(all="ignore"):
        for name, ufunc in (("add", np.add), ("sub", np.subtract)):
            np.testing.assert_array_equal(run(name, [dtype, dtype], dtype, left, right), ufunc(left, right))
        # by parts: NumPy fuses products and sums where the machine can
        product = run("mul", [dtype, dtype], dtype, left, right)
        a, b, c, d = left.real, left.imag, right.real, right.imag
        assert_same(product.real.copy(), a * c - b * d)
        assert_same(product.imag.copy(), a * d + b * c)
        quotient, wanted = run("div", [dtype, dtype], dtype, left, right), left / right
        np.testing.assert_allclose(quotient.real, wanted.real, tolerance, tolerance)
        np.testing.assert_allclose(quotient.imag, wanted.imag, tolerance, tolerance)
        np.testing.assert_allclose(run("abs", [dtype], part, left), np.abs(left), tolerance)
        np.testing.assert_array_equal(run("neg", [dtype], dtype, left), -left)
        np.testing.assert_array_equal(run("conj", [dtype], dtype, left), np.conj(left))
        np.testing.assert_array_equal(run("real", [dtype], part, left), left.real)
        np.testing.assert_array_equal(run("imag", [dtype], part, left), left.imag)
        np.testing.assert_array_equal(run("isnan", [dtype], "bool", left), np.isnan(left))
        np.testing.assert_array_equal(run("isinf", [dtype], "bool", left), np.isinf(left))
        np.testing.assert_array_equal(run("isfinite", [dtype], "bool", left), np.isfinite(left))
        np.testing.assert_array_equal(run("complex", [part, part], dtype, left.real, right.real).imag, right.real)


def test_python_complex_division() -> None:
    x, y, q = (Var(name, Scalar("complex128", True)) for name in "xyq")
    divide = Native(function([x, y], [let(q, Prim("div", (x, y)))], [q]))
    rng = np.random.default_rng(4)
    for _ in range(200):
        a, b = (complex(*rng.standard_normal(2)) for _ in range(2))
        assert divide(a, b) == a / b


@pytest.mark.parametrize("dtype", DTYPES)
def test_select(dtype: str) -> None:
    left, right = pairs(dtype)
    mask = np.arange(len(left)) % 3 == 0
    assert_same(run("select", ["bool", dtype, dtype], dtype, mask, left, right), np.where(mask, left, right))


CHECKED = {
    "add_checked": lambda a, b: a + b,
    "sub_checked": lambda a, b: a - b,
    "mul_checked": lambda a, b: a * b,
    "neg_checked": lambda a: -a,
    "abs_checked": abs,
}


@pytest.mark.parametrize("name", CHECKED)
def test_checked(name: str) -> None:
    arity = CHECKED[name].__code__.co_argcount if name != "abs_checked" else 1
    params = [Var("x", INT) for _ in range(arity)]
    result = Var("r", INT)
    reasons = ("none", ""), ("ZeroDivisionError", ""), ("OverflowError", OVERFLOW)
    failures = [ir.FailureSite(ir.Failure(name, message), POS) for name, message in reasons]
    native = Native(function(params, [let(result, Prim(name, tuple(params)))], [result], failures=failures))
    some = [int(v) for v in values("int64")] + [3037000500, -3037000500]
    for args in itertools.product(some, repeat=arity):
        wanted = CHECKED[name](*args)
        if -(2**63) <= wanted < 2**63:
            assert native(*args) == wanted
        else:
            with pytest.raises(Failed) as failed:
                native(*args)
            assert failed.value.status == 2


def test_bool_memory_that_is_not_one() -> None:
    x = np.array([0, 1, 2, 255], np.uint8).view(bool)
    np.testing.assert_array_equal(run("cast", ["bool"], "int64", x), [0, 1, 1, 1])


def test_constants() -> None:
    for dtype in DTYPES:
        for value in values(dtype)[:40]:
            native = Native(function([], [], [const(value.item(), dtype)])) if dtype in ("bool", "float16") else None
            if native is not None:
                assert_same(np.array([native()]), np.array([value]))
    out = Var("out", Array("complex64", 1))
    store = function([out], [ir.Store(out, (const(0),), const(1 - 2j, "complex64"), POS)])
    target = np.zeros(1, "complex64")
    Native(store)(target)
    assert target[0] == 1 - 2j
    assert math.isclose(Native(function([], [], [const(0.1, "float64")]))(), 0.1, rel_tol=0)
    assert Native(function([], [], [const(2**64 - 1, "uint64")]))() == 2**64 - 1
    assert block().statements == ()


def test_division_knows_signs() -> None:
    """What is known of an operand's sign never changes the quotient."""
    x, y = Var("x", INT), Var("y", INT)
    names = ("low", "high", "shifted", "a", "b", "c", "d")
    low, high, shifted, a, b, c, d = (Var(name, INT) for name in names)
    native = Native(
        function(
            [x, y],
            [
                let(low, Prim("maximum", (y, const(1)))),
                let(high, Prim("maximum", (x, const(0)))),
                let(shifted, Prim("shr", (high, const(2)))),
                let(a, Prim("floordiv", (x, low))),
                let(b, Prim("mod", (x, low))),
                let(c, Prim("floordiv", (shifted, low))),
                let(d, Prim("mod", (high, low))),
            ],
            [a, b, c, d],
        )
    )
    for left, right in itertools.product((-(2**63), -7, -1, 0, 5, 2**63 - 1), repeat=2):
        by, up = max(right, 1), max(left, 0)
        assert native(left, right) == (left // by, left % by, (up >> 2) // by, up % by)


def test_constants_of_the_other_sign() -> None:
    """A literal that is reinterpreted is no longer what it was."""
    x = Var("x", Scalar("int8"))
    y, q = Var("y", Scalar("int8")), Var("q", Scalar("int8"))
    native = Native(function([x], [let(y, ir.Cast(const(200, "uint8"))), let(q, Prim("floordiv", (x, y)))], [y, q]))
    found, quotient = native(100)
    assert (int(found), int(quotient)) == (-56, 100 // -56)
