"""How loops are written: the ends of vector loops, choices by bits, quotients on the way from turn to turn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from parakeet_py.base.types import Array, Scalar
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen.loops.quotients import divides
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.llvm.engine import compiler
from parakeet_py.typed_ir.ir import Const, Dim, Load, Var
from tests.helpers.native_functions import INT, POS, Native, block, const, function, let, prim

FLOAT = Scalar("float64")
MASKED = "llvm.loop.vectorize.predicate.enable"


def long_body(operations: int, last: str = "add", dtype: str = "float64") -> ir.Function:
    """out[i] = ((x[i] + x[i]) + x[i]) + ..., a vector loop over the last axis."""
    x, out, i, n = Var("x", Array(dtype, 1, "C")), Var("out", Array(dtype, 1, "C")), Var("i", INT), Var("n", INT)
    first = total = Var("t", Scalar(dtype))
    lets = [let(first, Load(x, (i,)))]
    for number in range(operations):
        following = Var(f"t{number}", Scalar(dtype))
        lets.append(let(following, prim(last if number == operations - 1 else "add", total, first)))
        total = following
    loop = ir.For(i, const(0), n, const(1), block(*lets, ir.Store(out, (i,), total, POS)), "vector")
    return function([x, out], [let(n, Dim(x, 0)), loop], roots={x: frozenset({0}), out: frozenset({1})})


@pytest.mark.parametrize(("operations", "last", "masked"), [(20, "add", True), (3, "add", False), (20, "div", False)])
def test_long_bodies_end_in_a_masked_vector(operations: int, last: str, masked: bool) -> None:
    fn = long_body(operations, last)
    host = compiler.host()
    assert (MASKED in generate(fn, host._replace(vector_bits=512)).text) == masked
    assert MASKED not in generate(fn, host._replace(vector_bits=256)).text
    run = Native(fn)
    for size in (0, 1, 7, 8, 9, 20):
        x, out = np.arange(1.0, size + 1), np.full(size + 1, 7.0)
        run(x, out[:size])
        np.testing.assert_array_equal(out, [*(x * operations / x if last == "div" else x * (operations + 1)), 7.0])


@pytest.mark.parametrize("divisor", [9.0, -0.375, 1e10, 0.1])
def test_what_is_handed_on_is_divided_exactly(divisor: float) -> None:
    x, out, i, n = (
        Var("x", Array("float64", 1, "C")),
        Var("out", Array("float64", 1, "C")),
        Var("i", INT),
        Var("n", INT),
    )
    cell, t, before, both, q = ir.Cell("last", FLOAT), *(Var(name, FLOAT) for name in "tbsq")
    body = block(
        let(t, Load(x, (i,))),
        let(before, ir.Read(cell)),
        let(both, prim("add", t, before)),
        let(q, prim("div", both, Const(divisor, FLOAT))),
        ir.Write(cell, q),
        ir.Store(out, (i,), q, POS),
    )
    lines = [let(n, Dim(x, 0)), ir.Declare(cell, const(0.0, "float64")), ir.For(i, const(0), n, const(1), body)]
    fn = function([x, out], lines, roots={x: frozenset({0}), out: frozenset({1})})
    quick = divisor != 0.1  # whose odd part has 53 bits
    assert divides(divisor, "float64") == quick
    assert ("llvm.fma" in generate(fn, compiler.host()).text) == (quick and compiler.host().fma)
    rng = np.random.default_rng(3)
    halves = [float((2 * Fraction(int(m)) + 1) * Fraction(divisor) / 2) for m in rng.integers(2**52, 2**53, 200)]
    odd = [0.0, -0.0, 5e-324, 1e-300, 1.7e308, -1e290, np.inf, np.nan]
    data = np.concatenate([halves, rng.standard_normal(50), odd])
    given, found, last = data.copy(), np.empty_like(data), 0.0
    Native(fn)(given, found)
    with np.errstate(all="ignore"):
        for number, quotient in zip(data, found, strict=True):
            last = np.float64(number + last) / divisor
            assert quotient == last or (quotient != quotient and last != last)


def near_halves(divisor: float, rng: np.random.Generator) -> np.ndarray:
    """Numbers whose quotients lie as near to the middle between two floats as there are any."""
    middles = (2 * Fraction(int(m)) + 1 for m in rng.integers(2**52, 2**53, 400))
    nearest = np.array([float(middle * Fraction(divisor) / 2**54) for middle in middles])
    return np.concatenate([nearest, np.nextafter(nearest, 0), np.nextafter(nearest, 9e99)])


def test_vectors_are_divided_exactly_by_what_does_not_change() -> None:
    x, out = Var("x", Array("float64", 1, "C")), Var("out", Array("float64", 1, "C"))
    d, i, n, t, q = Var("d", FLOAT), Var("i", INT), Var("n", INT), Var("t", FLOAT), Var("q", FLOAT)
    body = block(let(t, Load(x, (i,))), let(q, prim("div", t, d)), ir.Store(out, (i,), q, POS))
    loop = ir.For(i, const(0), n, const(1), body, "vector")
    fn = function([x, out, d], [let(n, Dim(x, 0)), loop], roots={x: frozenset({0}), out: frozenset({1})})
    assert ("@pk.over(" in generate(fn, compiler.host()).text) == compiler.host().fma
    native, rng = Native(fn), np.random.default_rng(5)
    odd = [0.0, -0.0, 5e-324, 1e-300, 1.7e308, -1e290, np.inf, np.nan]
    divisors = [
        3.0,
        0.1,
        1e-25,
        1.9999999999999998,
        1.0000000000000002,
        2.0**100,
        1e31,
        -3.0,
        0.0,
        np.inf,
        np.nan,
        5e-324,
    ]
    for divisor in divisors:
        usual = near_halves(divisor if 0 < divisor < 9e99 else 3.0, rng)
        for data in (usual, -usual, np.zeros(16), -np.zeros(19), np.append(usual, odd), rng.standard_normal(13)):
            found = np.empty_like(data)
            native(data, found, divisor)
            with np.errstate(all="ignore"):
                expected = data / divisor
            numbers = ~np.isnan(expected)
            assert np.array_equal(np.isnan(found), ~numbers)
            assert np.array_equal(found[numbers].view(np.int64), expected[numbers].view(np.int64))


def test_a_choice_by_a_bit_of_what_it_changes_takes_one_side() -> None:
    state, i, count = ir.Cell("state", INT), Var("i", INT), Var("count", INT)
    s, bit, odd, half, changed, even, result = (Var(name, INT) for name in ("s", "b", "o", "h", "c", "e", "r"))
    condition = Var("condition", Scalar("bool"))
    body = block(
        let(s, ir.Read(state)),
        let(bit, prim("and", s, const(1))),
        let(condition, prim("ne", bit, const(0))),
        ir.If(
            condition,
            block(
                let(half, prim("shr", s, const(1))),
                let(changed, prim("xor", half, const(0x8408))),
                ir.Write(state, changed),
            ),
            block(let(even, prim("shr", s, const(1))), ir.Write(state, even)),
        ),
    )
    loop = ir.For(i, const(0), count, const(1), body)
    fn = function([count, odd], [ir.Declare(state, odd), loop, let(result, ir.Read(state))], [result])
    assert "!unpredictable" in (text := generate(fn, compiler.host()).text) and "select i1" in text
    expected = 0xFFFF
    for _ in range(20):
        expected = (expected >> 1) ^ 0x8408 if expected & 1 else expected >> 1
    assert Native(fn)(20, 0xFFFF) == expected
