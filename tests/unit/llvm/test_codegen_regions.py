"""Parallel regions, run natively: failures, captures, threads, the runtime's own."""

from __future__ import annotations

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base.types import Array, Scalar
from parakeet_py.imp import ir
from parakeet_py.typed_ir.ir import Dim, Load, Var
from tests.helpers.native_functions import (
    BOOL,
    FAILURES,
    FLOAT,
    INT,
    POS,
    Failed,
    Native,
    block,
    const,
    function,
    let,
    prim,
)


def region(kind: str, work: int = 1000, extra: tuple[ir.Statement, ...] = ()) -> ir.Function:
    """out[i] = a[i] * scale + shift in a parallel region; scale is captured, shift is read from a cell."""
    a, out = Var("a", Array("float64", 1, "A")), Var("out", Array("float64", 1))
    scale, shift = Var("scale", FLOAT), ir.Cell("shift", FLOAT)
    flag = Var("flag", BOOL)
    n, lo, hi, i = (Var(name, INT) for name in ("n", "lo", "hi", "i"))
    x, y, s, z = (Var(name, FLOAT) for name in "xysz")
    body = block(
        ir.For(
            i,
            lo,
            hi,
            const(1),
            block(
                let(x, Load(a, (i,))),
                let(y, prim("mul", x, scale)),
                let(s, ir.Read(shift)),
                let(z, prim("add", y, s)),
                ir.If(flag, block(ir.Store(out, (i,), z, POS)), block(ir.Store(out, (i,), x, POS))),
                *extra,
            ),
            kind,
        )
    )
    return function(
        [a, scale, flag],
        [
            let(n, Dim(a, 0)),
            let(out, ir.NewArray((n,))),
            ir.Declare(shift, const(0.5, "float64")),
            ir.Parallel(lo, hi, n, const(16), const(work), body, "scale"),
        ],
        [out],
        {a: frozenset({0}), out: frozenset({1})},
        FAILURES,
        "scaled",
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_region(threads: int) -> None:
    native = Native(region("vector"))
    for n in (0, 1, 15, 16, 17, 1000, 40_000):
        x = np.arange(2 * n, dtype=float)[::-2]
        np.testing.assert_array_equal(native(x, 3.0, True, threads=threads), x * 3 + 0.5)
        np.testing.assert_array_equal(native(x, 3.0, False, threads=threads), x)


def test_region_of_unknown_work() -> None:
    work, lo, hi, i, n = (Var(name, INT) for name in ("work", "lo", "hi", "i", "n"))
    out = Var("out", Array("int64", 1))
    body = block(ir.For(i, lo, hi, const(1), block(ir.Store(out, (i,), i, POS)), "vector"))
    native = Native(function([out, work], [let(n, Dim(out, 0)), ir.Parallel(lo, hi, n, const(8), work, body)]))
    for amount in (-5, 0, 1, 100, 2**63 - 1):
        result = np.zeros(5000, np.int64)
        native(result, amount, threads=2)
        np.testing.assert_array_equal(result, np.arange(5000))


@pytest.mark.parametrize("threads", [1, 3])
def test_first_failure_of_a_region_wins(threads: int) -> None:
    """a[i] must be below 10: the failure of the smallest i is reported."""
    a = Var("a", Array("int64", 1))
    n, lo, hi, i, x = (Var(name, INT) for name in ("n", "lo", "hi", "i", "x"))
    fine = Var("fine", BOOL)
    body = block(
        ir.For(
            i,
            lo,
            hi,
            const(1),
            block(let(x, Load(a, (i,))), let(fine, prim("lt", x, const(10))), ir.Check(fine, 1, (i, x), i, POS)),
        )
    )
    native = Native(
        function([a], [let(n, Dim(a, 0)), ir.Parallel(lo, hi, n, const(64), const(1000), body)], [n], failures=FAILURES)
    )
    value = np.zeros(10_000, np.int64)
    assert native(value, threads=threads) == 10_000
    value[[700, 3000, 9000]] = 11, 12, 13
    with pytest.raises(Failed) as failed:
        native(value, threads=threads)
    assert (failed.value.status, failed.value.order, failed.value.arguments[:2]) == (1, 700, (700, 11))


def test_overflow_in_a_region() -> None:
    a = Var("a", Array("int64", 1))
    n, lo, hi, i, x, y = (Var(name, INT) for name in ("n", "lo", "hi", "i", "x", "y"))
    body = block(
        ir.For(
            i,
            lo,
            hi,
            const(1),
            block(let(x, Load(a, (i,))), let(y, prim("mul_checked", x, x)), ir.Store(a, (i,), y, POS)),
        )
    )
    native = Native(
        function([a], [let(n, Dim(a, 0)), ir.Parallel(lo, hi, n, const(64), const(1000), body)], [n], failures=FAILURES)
    )
    value = np.full(1000, 2**33)
    with pytest.raises(Failed) as failed:
        native(value, threads=1)
    assert (failed.value.status, failed.value.order) == (2, 0)
    value = np.full(1000, 2**20)
    native(value, threads=2)
    assert (value == 2**40).all()


def test_nested_regions_capture_through_both() -> None:
    """out[i, j] = i * k + j with one region inside another."""
    out = Var("out", Array("int64", 2))
    names = ("k", "n", "m", "lo", "hi", "lo2", "hi2", "i", "j", "p", "s")
    k, n, m, lo, hi, lo2, hi2, i, j, p, s = (Var(name, INT) for name in names)
    inner = ir.Parallel(
        lo2,
        hi2,
        m,
        const(4),
        const(10_000),
        block(
            ir.For(
                j,
                lo2,
                hi2,
                const(1),
                block(let(p, prim("mul", i, k)), let(s, prim("add", p, j)), ir.Store(out, (i, j), s, POS)),
            )
        ),
    )
    outer = ir.Parallel(
        lo, hi, n, const(1), const(10_000), block(ir.For(i, lo, hi, const(1), block(inner), "independent"))
    )
    native = Native(
        function(
            [k],
            [let(n, prim("add", k, const(0))), let(m, prim("add", k, const(3))), let(out, ir.NewArray((n, m))), outer],
            [out],
        )
    )
    np.testing.assert_array_equal(native(7, threads=2), np.arange(7)[:, None] * 7 + np.arange(10))


def test_scalars_of_every_kind_are_captured() -> None:
    dtypes = ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"]
    given = [Var(dtype, Scalar(dtype)) for dtype in dtypes]
    arrays = [Var(f"out_{dtype}", Array(dtype, 1)) for dtype in dtypes]
    lo, hi = Var("lo", INT), Var("hi", INT)
    body = block(*[ir.Store(array, (lo,), value, POS) for array, value in zip(arrays, given, strict=True)])
    native = Native(function([*given, *arrays], [ir.Parallel(lo, hi, const(1), const(1), const(1), body)]))
    values = [True, -5, 2**63 + 1, 0.5, 0.25, 1 - 2j, 3 + 4j]
    results = [np.zeros(1, dtype) for dtype in dtypes]
    native(*values, *results)
    assert [result[0] for result in results] == values


def test_lists_grow_by_a_region_of_the_runtime() -> None:
    def grown(n):  # type: ignore[no-untyped-def]
        found = []
        for i in range(n):
            found.append(i)
        for i in range(n):
            if i % 3:
                found.append(2 * i)
        for i in range(n):
            found.append(3 * i)
        return found

    function = accelerate(grown)
    assert function(40) == grown(40)  # type: ignore[no-untyped-call]
    text = function.llvm(40)
    assert text.count("define internal void @grown.map.") == 0
    assert "@pk_copy(ptr %ctx" in text


def test_regions_that_do_the_same_to_different_arrays_are_one() -> None:
    def scaled(a, b):  # type: ignore[no-untyped-def]
        return a * 2.0 + 1.0, b * 2.0 + 1.0

    a, b = np.arange(5.0), np.arange(300.0)
    function = accelerate(scaled)
    assert all(map(np.array_equal, function(a, b), scaled(a, b)))  # type: ignore[no-untyped-call]
    assert function.explain(a, b).kernels == 2
    assert function.llvm(a, b).count("define internal void @scaled.map.") == 1


def test_regions_that_differ_in_their_failures_are_one() -> None:
    def pooled(a, b, step):  # type: ignore[no-untyped-def]
        c, d = np.empty(len(a) // 2), np.empty(len(b) // 2)
        for i in range(len(c)):
            c[i] = np.max(a[2 * i : 2 * i + step])
        for i in range(len(d)):
            d[i] = np.max(b[2 * i : 2 * i + step])
        return c, d

    function = accelerate(pooled)
    a, b = np.arange(9.0), np.arange(300.0)
    assert all(map(np.array_equal, function(a, b, 2), pooled(a, b, 2)))  # type: ignore[no-untyped-call]
    assert function.llvm(a, b, 2).count("define internal void @pooled.map.") == 1
    with pytest.raises(ValueError, match="zero-size array") as caught:
        function(a, b, 0)
    assert caught.traceback[-1].lineno + 1 == pooled.__code__.co_firstlineno + 3
    with pytest.raises(ValueError, match="zero-size array") as caught:
        function(a[:1], b, 0)
    assert caught.traceback[-1].lineno + 1 == pooled.__code__.co_firstlineno + 5


def test_nests_are_entered_if_all_their_loops_have_iterations() -> None:
    x, n, m = Var("x", Array("int64", 1, "C")), Var("n", INT), Var("m", INT)
    i, j, value, more = (Var(name, INT) for name in ("i", "j", "value", "more"))
    inner = ir.For(
        j,
        const(0),
        m,
        const(1),
        block(let(value, Load(x, (j,))), let(more, prim("add", value, i)), ir.Store(x, (j,), more, POS)),
    )
    nest = ir.For(i, const(2), n, const(1), block(inner))
    fn = function([x, n, m], [nest], roots={x: frozenset({0})})
    run = Native(fn)
    for count in (0, 2, 3, 6):
        for size in (0, 1, 4):
            values = np.arange(4)
            run(values, count, size)
            np.testing.assert_array_equal(values, np.arange(4) + (np.arange(4) < size) * sum(range(2, count)))
