"""Conversions of the emulator, bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.helpers.emulator_kernels import evaluate, floats, integers
from tests.unit.emulator.test_float import _MODES, _bf16, _compare, _rounded

_INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


@pytest.mark.parametrize("source", _INTEGERS)
@pytest.mark.parametrize("target", ["f16", "f32", "f64"])
def test_integer_to_float(source: str, target: str) -> None:
    (column,) = integers(source, 80)
    for mode in _MODES:
        found = evaluate(f"cvt.{mode}.{target}.{source} %r, %a;", target, (source, column))
        for x, got in zip(column.tolist(), found.astype(np.float64).tolist(), strict=True):
            assert got == (_rounded(Fraction(x), target, mode) if x else 0.0), (x, got)


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("target", _INTEGERS)
def test_float_to_integer(source: str, target: str) -> None:
    (column,) = floats(source, 200, 1, seed=20)
    bits = int(target[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
    near = np.array([float(low), float(high), low - 0.5, high + 0.5, high - 0.5, 0.5, -0.5, 1.5, -1.5, 2.5])
    with np.errstate(all="ignore"):
        column = np.concatenate([column, near.astype(column.dtype)])
    empty = low if low else 1 << (bits - 1)
    wide = target if bits > 8 else f"{target[0]}16"
    functions = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    for mode, function in functions.items():
        found = evaluate(f"cvt.{mode}.{target}.{source} %r, %a;", wide, (source, column))
        for x, got in zip(column.astype(np.float64).tolist(), found.tolist(), strict=True):
            if math.isnan(x):
                want = empty if source == "f64" or bits == 64 else 0
            elif math.isinf(x):
                want = high if x > 0 else low
            else:
                want = max(low, min(high, function(x)))
            assert got == want, (x, got, want)


@pytest.mark.parametrize("mode", _MODES)
def test_narrowing(mode: str) -> None:
    (wide,), (single,) = floats("f64", 500, 1, seed=21), floats("f32", 500, 1, seed=22)
    with np.errstate(all="ignore"):
        wide = np.concatenate([wide, single.astype(np.float64) * (1 + 2.0**-25), single * np.float64(2.0**-30)])

    def exact(x: float, form: str) -> float:
        return x if x == 0 or not math.isfinite(x) else _rounded(Fraction(x), form, mode)

    found = evaluate(f"cvt.{mode}.f32.f64 %r, %a;", "f32", ("f64", wide))
    _compare(found, lambda x: exact(x, "f32"), wide)
    found = evaluate(f"cvt.{mode}.f16.f64 %r, %a;", "f16", ("f64", wide))
    _compare(found, lambda x: exact(x, "f16"), wide)
    found = evaluate(f"cvt.{mode}.f16.f32 %r, %a;", "f16", ("f32", single))
    _compare(found, lambda x: exact(x, "f16"), single)
    if mode in ("rn", "rz"):
        found = evaluate(f"cvt.{mode}.bf16.f32 %r, %a;", "b16", ("f32", single))
        _compare(_bf16(found), lambda x: exact(x, "bf16"), single)


def test_widening() -> None:
    (half,), (single,) = floats("f16", 300, 1, seed=23), floats("f32", 300, 1, seed=24)
    _compare(evaluate("cvt.f32.f16 %r, %a;", "f32", ("f16", half)), float, half)
    _compare(evaluate("cvt.f64.f16 %r, %a;", "f64", ("f16", half)), float, half)
    _compare(evaluate("cvt.f64.f32 %r, %a;", "f64", ("f32", single)), float, single)
    patterns = (single.view("u4") >> 16).astype("u2")
    _compare(evaluate("cvt.f32.bf16 %r, %a;", "f32", ("b16", patterns)), float, _bf16(patterns))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_rounding_to_whole_numbers(kind: str) -> None:
    (column,) = floats(kind, 300, 1, seed=25)
    functions = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    for mode, function in functions.items():
        found = evaluate(f"cvt.{mode}.{kind}.{kind} %r, %a;", kind, (kind, column))
        _compare(found, lambda x, f=function: float(f(x)), column)


def test_saturating_float_conversion() -> None:
    (column,) = floats("f64", 300, 1, seed=26)
    found = evaluate("cvt.rn.sat.f32.f64 %r, %a;", "f32", ("f64", column))
    with np.errstate(all="ignore"):
        wanted = np.nan_to_num(np.clip(column.astype("f4"), 0, 1), nan=0)
    assert (found == wanted).all() and not np.signbit(found).any()


def test_packed_conversions() -> None:
    upper, lower = floats("f32", 300, 2, seed=27)
    with np.errstate(all="ignore"):
        found = (
            evaluate("cvt.rn.f16x2.f32 %r, %a, %b;", "b32", ("f32", upper), ("f32", lower)).view("f2").reshape(-1, 2)
        )
        assert np.array_equal(found[:, 0], lower.astype("f2"), equal_nan=True)
        assert np.array_equal(found[:, 1], upper.astype("f2"), equal_nan=True)
        found = (
            evaluate("cvt.rn.bf16x2.f32 %r, %a, %b;", "b32", ("f32", upper), ("f32", lower)).view("u2").reshape(-1, 2)
        )
        alone = evaluate("cvt.rn.bf16.f32 %r, %a;", "b16", ("f32", lower))
        assert (found[:, 0] == alone).all()
        found = evaluate("cvt.rn.relu.f16x2.f32 %r, %a, %b;", "b32", ("f32", upper), ("f32", lower)).view("f2")
        assert not (found < 0).any()
    a, b = integers("s32", 100, 2)
    packed = evaluate("cvt.pack.sat.s16.s32 %r, %a, %b;", "b32", ("s32", a), ("s32", b)).view("i2").reshape(-1, 2)
    assert (packed[:, 0] == np.clip(b, -32768, 32767)).all() and (packed[:, 1] == np.clip(a, -32768, 32767)).all()
    c = integers("u32", 100)[0]
    packed = evaluate("cvt.pack.sat.u8.s32.b32 %r, %a, %b, %c;", "b32", ("s32", a), ("s32", b), ("u32", c))
    want = np.clip(a, 0, 255).astype("u4") << 8 | np.clip(b, 0, 255).astype("u4") | c << 16
    assert (packed == want).all()


def test_tf32() -> None:
    (single,) = floats("f32", 300, 1, seed=28)
    good = single[np.isfinite(single)]
    found = evaluate("cvt.rna.tf32.f32 %r, %a;", "b32", ("f32", good))
    assert (found & 0x1FFF == 0).all()
    middle = (good.view("u4").astype("u8") + 0x1000) & 0xFFFFE000
    assert (found == middle).all()
