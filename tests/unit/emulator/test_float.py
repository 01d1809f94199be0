"""Floating-point instructions of the emulator, bit for bit against exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.helpers.emulator_kernels import evaluate, floats

Values = np.ndarray[Any, Any]
_FORMATS = {"f16": (11, 15), "bf16": (8, 127), "f32": (24, 127), "f64": (53, 1023)}
_MODES = ("rn", "rz", "rm", "rp")


def _rounded(exact: Fraction, form: str, mode: str) -> float:
    """An exact value (not zero) in a format."""
    precision, largest = _FORMATS[form]
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, 1 - largest) - precision + 1)
    below = math.floor(size / quantum)
    rest = size / quantum - below
    away = {"rz": False, "rm": exact < 0, "rp": exact > 0}.get(mode)
    if away is None:
        away = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
    result = quantum * (below + (1 if away and rest else 0))
    limit = (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** largest
    if result > limit:
        inward = mode == "rz" or (mode == "rm" and exact > 0) or (mode == "rp" and exact < 0)
        value = float(limit) if inward else math.inf
    else:
        value = float(result)
    return -value if exact < 0 else value


def _is_same(found: float, wanted: float) -> bool:
    if math.isnan(wanted):
        return math.isnan(found)
    return found == wanted and math.copysign(1, found) == math.copysign(1, wanted)


def _negative(x: float) -> bool:
    return math.copysign(1, x) < 0


def _add(a: float, b: float, form: str, mode: str) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    exact = Fraction(a) + Fraction(b)
    if exact == 0:
        if a == 0 and b == 0 and _negative(a) == _negative(b):
            return a
        return -0.0 if mode == "rm" else 0.0
    return _rounded(exact, form, mode)


def _mul(a: float, b: float, form: str, mode: str) -> float:
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0 or b == 0:
        return a * b
    return _rounded(Fraction(a) * Fraction(b), form, mode)


def _div(a: float, b: float, form: str, mode: str) -> float:
    if math.isnan(a) or math.isnan(b) or not math.isfinite(b) or b == 0 or not math.isfinite(a) or a == 0:
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    return _rounded(Fraction(a) / Fraction(b), form, mode)


def _fma(a: float, b: float, c: float, form: str, mode: str) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        if math.isfinite(a) and math.isfinite(b):
            return c
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        product_negative = _negative(a) != _negative(b)
        if (a == 0 or b == 0) and c == 0 and product_negative == _negative(c):
            return c
        return -0.0 if mode == "rm" else 0.0
    return _rounded(exact, form, mode)


def _compare(found: Values, function: Callable[..., float], *columns: Values) -> None:
    with np.errstate(invalid="ignore"):  # signalling NaN among the random patterns
        rows = zip(*[c.astype(np.float64).tolist() for c in columns], strict=True)
        results = found.astype(np.float64).tolist()
    for got, row in zip(results, rows, strict=True):
        want = function(*row)
        assert _is_same(got, want), (row, got, want)


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(("opcode", "function"), [("add", _add), ("mul", _mul), ("div", _div)])
def test_rounding_of_binary_operations(opcode: str, function: Any, kind: str, mode: str) -> None:
    a, b = floats(kind, 300, 2, seed=1)
    found = evaluate(f"{opcode}.{mode}.{kind} %r, %a, %b;", kind, (kind, a), (kind, b))
    _compare(found, lambda x, y: function(x, y, kind, mode), a, b)
    if opcode == "add":
        found = evaluate(f"sub.{mode}.{kind} %r, %a, %b;", kind, (kind, a), (kind, b))
        _compare(found, lambda x, y: _add(x, -y, kind, mode), a, b)


def _near_ties(kind: str) -> list[Values]:
    """Factors and addends whose sum lies next to the middle between two floats, and near-total cancellations."""
    precision, largest = _FORMATS[kind]
    rng = np.random.default_rng(7)
    rows = []
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    for _ in range(400):
        a = float(rng.integers(1 << (precision - 1), 1 << precision)) * 2.0 ** (1 - precision)
        b = float(rng.integers(1 << (precision - 1), 1 << precision)) * 2.0 ** (1 - precision)
        product = Fraction(a) * Fraction(b)
        choice = rng.integers(5)
        if choice == 0:
            c = -float(dtype(float(product)))
        elif choice == 1:
            c = float(rng.standard_normal()) * 2.0 ** float(
                rng.integers(-2 * precision, 2 * precision) % largest - largest // 2
            )
        elif choice == 2:
            c = 2.0 ** float(rng.integers(0, min(2 * precision, largest - 1)))
        elif choice == 3:
            a, b = 1.0 + 2.0 ** (1 - precision), 1.0 - 2.0 ** (1 - precision)
            c = float(rng.choice([-1.0, 1.0, 2.0, -2.0, 0.5]))
        else:
            a *= 2.0 ** -(largest - 2)
            b *= 2.0 ** float(rng.integers(-precision, precision) // 2)
            c = float(rng.choice([-1.0, 1.0])) * a
        rows.append((a, b, c))
    with np.errstate(all="ignore"):
        return [np.array([row[k] for row in rows]).astype(dtype) for k in range(3)]


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fma_is_rounded_once(kind: str, mode: str) -> None:
    for a, b, c in (floats(kind, 400, 3, seed=2), _near_ties(kind)):
        found = evaluate(f"fma.{mode}.{kind} %r, %a, %b, %c;", kind, (kind, a), (kind, b), (kind, c))
        _compare(found, lambda x, y, z: _fma(x, y, z, kind, mode), a, b, c)
    found = evaluate(f"mad.{mode}.{kind} %r, %a, %b, %c;", kind, (kind, a), (kind, b), (kind, c))
    _compare(found, lambda x, y, z: _fma(x, y, z, kind, mode), a, b, c)


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_roots_and_reciprocals(kind: str, mode: str) -> None:
    (a,) = floats(kind, 300, 1, seed=3)
    found = evaluate(f"sqrt.{mode}.{kind} %r, %a;", kind, (kind, a))
    for x, r in zip(a.tolist(), found.tolist(), strict=True):
        if x == 0 or not math.isfinite(x) or x < 0:
            with np.errstate(all="ignore"):
                assert _is_same(r, float(np.sqrt(np.float64(x))))
            continue
        exact, root = Fraction(x), Fraction(r)
        dtype = a.dtype.type
        below, above = (
            Fraction(float(np.nextafter(dtype(r), dtype(0)))),
            Fraction(float(np.nextafter(dtype(r), dtype(np.inf)))),
        )
        if mode in ("rm", "rz"):
            assert root**2 <= exact < above**2
        elif mode == "rp":
            assert below**2 < exact <= root**2
        else:
            assert ((below + root) / 2) ** 2 <= exact <= ((root + above) / 2) ** 2
    found = evaluate(f"rcp.{mode}.{kind} %r, %a;", kind, (kind, a))
    _compare(found, lambda x: _div(1.0, x, kind, mode), a)


def _bf16(patterns: Values) -> Values:
    return (patterns.astype(np.uint32) << 16).view(np.float32)


def test_half_precision() -> None:
    a, b, c = floats("f16", 300, 3, seed=4)
    with np.errstate(all="ignore"):
        for opcode, function in (("add", _add), ("mul", _mul)):
            found = evaluate(f"{opcode}.rn.f16 %r, %a, %b;", "f16", ("f16", a), ("f16", b))
            _compare(found, lambda x, y, f=function: f(x, y, "f16", "rn"), a, b)
        for x, y, z in ((a, b, c), _near_ties("f16")):
            found = evaluate("fma.rn.f16 %r, %a, %b, %c;", "f16", ("f16", x), ("f16", y), ("f16", z))
            _compare(found, lambda p, q, s: _fma(p, q, s, "f16", "rn"), x, y, z)
            found = evaluate("fma.rn.relu.f16 %r, %a, %b, %c;", "f16", ("f16", x), ("f16", y), ("f16", z))
            for got, p, q, s in zip(found.tolist(), x.tolist(), y.tolist(), z.tolist(), strict=True):
                want = _fma(p, q, s, "f16", "rn")
                assert math.isnan(got) if math.isnan(want) else got == max(want, 0)


def test_bfloat16() -> None:
    rng = np.random.default_rng(9)
    patterns = [rng.integers(0, 1 << 16, 600).astype("u2") for _ in range(3)]
    alike = [(rng.standard_normal(400).astype("f4").view("u4") >> 16).astype("u2") for _ in range(3)]
    for a, b, c in (patterns, alike):
        inputs = [("b16", v) for v in (a, b, c)]
        found = evaluate("fma.rn.bf16 %r, %a, %b, %c;", "b16", *inputs)
        _compare(_bf16(found), lambda x, y, z: _fma(x, y, z, "bf16", "rn"), _bf16(a), _bf16(b), _bf16(c))
        found = evaluate("add.rn.bf16 %r, %a, %b;", "b16", *inputs[:2])
        _compare(_bf16(found), lambda x, y: _add(x, y, "bf16", "rn"), _bf16(a), _bf16(b))
        found = evaluate("mul.rn.bf16 %r, %a, %b;", "b16", *inputs[:2])
        _compare(_bf16(found), lambda x, y: _mul(x, y, "bf16", "rn"), _bf16(a), _bf16(b))


def test_packed_formats_compute_each_half() -> None:
    columns = floats("f16", 301, 6, seed=5)
    pairs = [np.stack(columns[2 * k : 2 * k + 2], 1) for k in range(3)]
    words = [np.ascontiguousarray(p).view("u4").reshape(-1) for p in pairs]
    inputs = [("b32", w) for w in words]
    found = evaluate("fma.rn.f16x2 %r, %a, %b, %c;", "b32", *inputs).view("f2").reshape(-1, 2)
    for half in range(2):
        single = evaluate("fma.rn.f16 %r, %a, %b, %c;", "f16", *[("f16", p[:, half].copy()) for p in pairs])
        assert np.array_equal(found[:, half], single, equal_nan=True)
    found = evaluate("neg.f16x2 %r, %a;", "b32", inputs[0])
    assert (found == words[0] ^ 0x80008000).all()
    found = evaluate("abs.bf16x2 %r, %a;", "b32", inputs[0])
    assert (found == words[0] & 0x7FFF7FFF).all()
    first, second = evaluate("setp.lt.f16x2 %r0|%r1, %a, %b;", ("pred", "pred"), *inputs[:2])
    assert (first == (pairs[0][:, 0] < pairs[1][:, 0])).all()
    assert (second == (pairs[0][:, 1] < pairs[1][:, 1])).all()
    single = floats("f32", 100, 2, seed=6)
    packed = np.ascontiguousarray(np.stack(single, 1)).view("u8").reshape(-1)
    found = (
        evaluate("fma.rn.f32x2 %r, %a, %a, %a;", "b64", ("b64", packed), version="8.6", target="sm_100")
        .view("f4")
        .reshape(-1, 2)
    )
    _compare(found[:, 0].copy(), lambda x: _fma(x, x, x, "f32", "rn"), single[0])
    _compare(found[:, 1].copy(), lambda x: _fma(x, x, x, "f32", "rn"), single[1])


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_minimum_and_maximum(kind: str) -> None:
    a, b = floats(kind, 300, 2, seed=7)
    for opcode, pick in (("min", min), ("max", max)):
        found = evaluate(f"{opcode}.{kind} %r, %a, %b;", kind, (kind, a), (kind, b))

        def wanted(x: float, y: float, pick: Any = pick) -> float:
            if math.isnan(x) or math.isnan(y):
                return y if math.isnan(x) else x
            return float(pick((x, math.copysign(1, x)), (y, math.copysign(1, y)))[0])

        _compare(found, wanted, a, b)
        if kind == "f32":
            found = evaluate(f"{opcode}.NaN.f32 %r, %a, %b;", kind, (kind, a), (kind, b))
            nan = np.isnan(a) | np.isnan(b)
            assert (found[nan].view("u4") == 0x7FFFFFFF).all()
            _compare(found[~nan], wanted, a[~nan], b[~nan])
            found = evaluate(f"{opcode}.xorsign.abs.f32 %r, %a, %b;", kind, (kind, a), (kind, b))
            good = ~nan
            size = (np.minimum if opcode == "min" else np.maximum)(np.abs(a[good]), np.abs(b[good]))
            assert (np.abs(found[good]) == size).all()
            assert (np.signbit(found[good]) == (np.signbit(a[good]) ^ np.signbit(b[good]))).all()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_signs_and_classes(kind: str) -> None:
    a, b = floats(kind, 300, 2, seed=8)
    bits = f"u{a.itemsize}"
    top = np.array(1 << (8 * a.itemsize - 1), dtype=bits)
    assert (evaluate(f"neg.{kind} %r, %a;", kind, (kind, a)).view(bits) == a.view(bits) ^ top).all()
    assert (evaluate(f"abs.{kind} %r, %a;", kind, (kind, a)).view(bits) == a.view(bits) & ~top).all()
    found = evaluate(f"copysign.{kind} %r, %a, %b;", kind, (kind, a), (kind, b))
    assert (found.view(bits) == (b.view(bits) & ~top | a.view(bits) & top)).all()
    small = np.finfo(a.dtype).smallest_normal
    classes = {
        "finite": np.isfinite(a),
        "infinite": np.isinf(a),
        "number": ~np.isnan(a),
        "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & (np.abs(a) >= small),
        "subnormal": (a != 0) & (np.abs(a) < small),
    }
    for name, wanted in classes.items():
        assert (evaluate(f"testp.{name}.{kind} %r, %a;", "pred", (kind, a)) == wanted).all()


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_comparisons(kind: str) -> None:
    a, b = floats(kind, 200, 2, seed=10)
    b[::7] = a[::7]
    nan = np.isnan(a) | np.isnan(b)
    plain = {"eq": a == b, "ne": (a != b) & ~nan, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    for name, wanted in plain.items():
        assert (evaluate(f"setp.{name}.{kind} %r, %a, %b;", "pred", (kind, a), (kind, b)) == wanted).all()
        found = evaluate(f"setp.{name}u.{kind} %r, %a, %b;", "pred", (kind, a), (kind, b))
        assert (found == (wanted | nan)).all()
    assert (evaluate(f"setp.nan.{kind} %r, %a, %b;", "pred", (kind, a), (kind, b)) == nan).all()
    assert (evaluate(f"setp.num.{kind} %r, %a, %b;", "pred", (kind, a), (kind, b)) == ~nan).all()
    if kind != "f16":
        found = evaluate(f"set.lt.f32.{kind} %r, %a, %b;", "f32", (kind, a), (kind, b))
        assert (found == (a < b)).all()


def test_flushing_and_saturation() -> None:
    a, b = floats("f32", 300, 2, seed=11)

    def flushed(x: Values) -> Values:
        return np.where(np.abs(x) < np.finfo("f4").smallest_normal, np.copysign(np.float32(0), x), x)

    with np.errstate(all="ignore"):
        wanted = flushed(flushed(a) * flushed(b))
        found = evaluate("mul.rn.ftz.f32 %r, %a, %b;", "f32", ("f32", a), ("f32", b))
        assert np.array_equal(found, wanted, equal_nan=True)
        assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all()
        found = evaluate("add.rn.sat.f32 %r, %a, %b;", "f32", ("f32", a), ("f32", b))
        wanted = np.nan_to_num(np.clip(a + b, 0, 1), nan=0)
        assert (found == wanted).all() and not np.signbit(found).any()
        found = evaluate("fma.rn.ftz.sat.f32 %r, %a, %b, %a;", "f32", ("f32", a), ("f32", b))
        assert ((found >= 0) & (found <= 1)).all()


_APPROXIMATE = {
    "rcp.approx.f32": lambda x: 1 / x,
    "rsqrt.approx.f32": lambda x: 1 / np.sqrt(x),
    "sqrt.approx.f32": np.sqrt,
    "sin.approx.f32": np.sin,
    "cos.approx.f32": np.cos,
    "lg2.approx.f32": np.log2,
    "ex2.approx.f32": np.exp2,
    "tanh.approx.f32": np.tanh,
    "rsqrt.approx.f64": lambda x: 1 / np.sqrt(x),
}


@pytest.mark.parametrize("name", list(_APPROXIMATE))
def test_approximations(name: str) -> None:
    kind = name[-3:]
    a = np.concatenate([np.linspace(-6, 6, 200), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(f"f{int(kind[1:]) // 8}")
    with np.errstate(all="ignore"):
        wanted = _APPROXIMATE[name](a.astype(np.float64))
    found = evaluate(f"{name} %r, %a;", kind, (kind, a))
    np.testing.assert_allclose(found, wanted.astype(a.dtype), rtol=1e-6)
    if kind == "f32" and not name.startswith("tanh"):
        name = name.replace(".approx", ".approx.ftz")
        found = evaluate(f"{name} %r, %a;", kind, (kind, a))
        np.testing.assert_allclose(found, wanted.astype(a.dtype), rtol=1e-6)


def test_approximate_double_reciprocal_has_twenty_bits() -> None:
    a = np.array([3.0, -7.0, 1e300, 0.1, np.inf, 0.0])
    found = evaluate("rcp.approx.ftz.f64 %r, %a;", "f64", ("f64", a))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, 1 / a, rtol=2e-6)
    assert (found.view("u8") & 0xFFFFFFFF == 0).all()


def test_half_approximations() -> None:
    a = np.linspace(-4, 4, 50).astype("f2")
    np.testing.assert_allclose(evaluate("ex2.approx.f16 %r, %a;", "f16", ("f16", a)), np.exp2(a), rtol=2e-3)
    np.testing.assert_allclose(evaluate("tanh.approx.f16 %r, %a;", "f16", ("f16", a)), np.tanh(a), rtol=2e-3)


def test_division_of_other_kinds() -> None:
    a, b = np.linspace(1, 9, 40).astype("f4"), np.linspace(-3, -1, 40).astype("f4")
    for name in ("div.approx.f32", "div.full.f32", "div.approx.ftz.f32"):
        np.testing.assert_allclose(evaluate(f"{name} %r, %a, %b;", "f32", ("f32", a), ("f32", b)), a / b, rtol=1e-6)


def test_patterns_of_nan() -> None:
    """Arithmetic of float32 and float16 gives one NaN; what is only moved keeps its bits."""
    odd = np.array([0x7FC12345, 0xFFC54321, 0x7F800000, 0x3F800000], "u4").view("f4")
    minus = np.full(4, -np.inf, "f4")
    found = evaluate("add.f32 %r, %a, %b;", "b32", ("f32", odd), ("f32", minus))
    assert found.tolist() == [0x7FFFFFFF] * 3 + [0xFF800000]
    found = evaluate("mov.f32 %r, %a;", "b32", ("f32", odd))
    assert (found == odd.view("u4")).all()
    found = evaluate("setp.lt.f32 %t0, %b, 0f00000000;\nselp.f32 %r, %a, %b, %t0;", "b32", ("f32", odd), ("f32", minus))
    assert (found == odd.view("u4")).all()
    body = "mov.b32 %r, %a;\nand.b32 %x3, %i, 1;\nsetp.eq.u32 %t0, %x3, 0;\n@%t0 bra SKIP;\nadd.f32 %r, %a, %b;\nSKIP:"
    found = evaluate(body, "b32", ("f32", odd), ("f32", minus))
    assert found.tolist() == [0x7FC12345, 0x7FFFFFFF, 0x7F800000, 0xFF800000]
    body = "@%c mul.f32 %a, %a, %b;\nmov.b32 %r, %a;"
    found = evaluate(body, "b32", ("f32", odd), ("f32", minus), ("pred", [True, False, True, False]))
    assert found.tolist() == [0x7FFFFFFF, 0xFFC54321, 0xFF800000, 0x3F800000]
    zero = np.zeros(4, "f4")
    assert (evaluate("div.rn.f32 %r, %a, %a;", "b32", ("f32", zero)) == 0x7FFFFFFF).all()
    half = np.full(4, np.inf, "f2")
    assert (evaluate("sub.f16 %r, %a, %a;", "b16", ("f16", half)) == 0x7FFF).all()
    assert (evaluate("cvt.rn.f16.f32 %r, %a;", "b16", ("f32", odd[:2])) == 0x7FFF).all()
    pair = np.full(2, 0x7C007C00, "u4")
    assert (evaluate("sub.f16x2 %r, %a, %a;", "b32", ("b32", pair)) == 0x7FFF7FFF).all()
