"""Loops, branches, descriptors, references and checks, run natively."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base.types import Array, Object, Scalar
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import pack
from parakeet_py.llvm.codegen.module import OUT_OF_MEMORY, generate
from parakeet_py.llvm.codegen.pack import PREFIX
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.engine.compiler import HostInfo
from parakeet_py.typed_ir.ir import Dim, Load, Operand, Reshape, Var, View, ViewAxis
from tests.helpers import native_functions as native_module
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
    elementwise,
    function,
    let,
    prim,
)


def counter(start: Operand, stop: Operand, step: Operand, params: list[Var], limit: int = 50) -> ir.Function:
    """Write the indices of a loop into an array and count them."""
    out = Var("out", Array("int64", 1))
    count, i, k, next_, full = ir.Cell("count", INT), Var("i", INT), Var("k", INT), Var("next", INT), Var("full", BOOL)
    result = Var("result", INT)
    body = block(
        let(k, ir.Read(count)),
        ir.Store(out, (k,), i, POS),
        let(next_, prim("add", k, const(1))),
        ir.Write(count, next_),
        let(full, prim("ge", next_, const(limit))),
        ir.If(full, block(ir.Break()), block()),
    )
    return function(
        [*params, out],
        [ir.Declare(count, const(0)), ir.For(i, start, stop, step, body), let(result, ir.Read(count))],
        [result],
    )


BOUNDS = [
    (0, 10, 1),
    (0, 10, 3),
    (5, -5, -1),
    (5, -5, -4),
    (3, 3, 1),
    (3, 3, -1),
    (10, 0, 1),
    (0, 10, -2),
    (2**63 - 10, 2**63 - 1, 4),
    (2**63 - 3, 2**63 - 1, 1),
    (-(2**63) + 5, -(2**63), -3),
    (0, 2**63 - 1, 2**62),
    (-(2**63), 2**63 - 1, 2**62),
    (2**63 - 1, -(2**63), -(2**63)),
]


@pytest.mark.parametrize(("start", "stop", "step"), BOUNDS)
def test_range(start: int, stop: int, step: int) -> None:
    wanted = list(range(start, stop, step))[:50]
    out = np.zeros(50, np.int64)
    assert Native(counter(const(start), const(stop), const(step), []))(out) == len(wanted)
    assert out[: len(wanted)].tolist() == wanted
    names = [Var(name, INT) for name in ("start", "stop", "step")]
    out[:] = 0
    assert Native(counter(*names, names))(start, stop, step, out) == len(wanted)
    assert out[: len(wanted)].tolist() == wanted


def test_while_and_break_in_nested_loops() -> None:
    """Collatz steps of n, given up after 1000."""
    n, m, one, half, odd, tripled, next_, result = (
        Var(name, INT) for name in ("n", "m", "one", "half", "odd", "tripled", "next", "result")
    )
    goes, isodd, k, k1, stop = Var("goes", BOOL), Var("isodd", BOOL), Var("k", INT), Var("k1", INT), Var("stop", BOOL)
    value, steps = ir.Cell("value", INT), ir.Cell("steps", INT)
    chosen = ir.Cell("chosen", INT)
    loop = ir.While(
        block(let(m, ir.Read(value)), let(goes, prim("ne", m, const(1)))),
        goes,
        block(
            let(odd, prim("and", m, const(1))),
            let(isodd, prim("ne", odd, const(0))),
            ir.Declare(chosen),
            ir.If(
                isodd,
                block(
                    let(tripled, prim("mul", m, const(3))),
                    let(next_, prim("add", tripled, const(1))),
                    ir.Write(chosen, next_),
                ),
                block(let(half, prim("shr", m, const(1))), ir.Write(chosen, half)),
            ),
            let(one, ir.Read(chosen)),
            ir.Write(value, one),
            let(k, ir.Read(steps)),
            let(k1, prim("add", k, const(1))),
            ir.Write(steps, k1),
            let(stop, prim("ge", k1, const(1000))),
            ir.If(stop, block(ir.Break()), block()),
        ),
    )
    native = Native(
        function([n], [ir.Declare(value, n), ir.Declare(steps, const(0)), loop, let(result, ir.Read(steps))], [result])
    )

    def collatz(n: int) -> int:
        steps = 0
        while n != 1 and steps < 1000:
            n = 3 * n + 1 if n & 1 else n >> 1
            steps += 1
        return steps

    for n_ in (1, 2, 3, 7, 27, 97):
        assert native(n_) == collatz(n_)
    assert native(0) == 1000


def test_break_that_always_happens_and_dead_code() -> None:
    i, x = Var("i", INT), Var("x", INT)
    cell = ir.Cell("c", INT)
    loop = ir.For(i, const(3), const(9), const(2), block(ir.Write(cell, i), ir.Break(), ir.Write(cell, const(-1))))
    native = Native(function([], [ir.Declare(cell, const(0)), loop, let(x, ir.Read(cell))], [x]))
    assert native() == 3
    flag = Var("flag", BOOL)
    forever = ir.While(block(), const(True, "bool"), block(ir.If(flag, block(ir.Break()), block(ir.Break()))))
    assert Native(function([flag], [forever], [const(5)]))(True) == 5


LAYOUTS = [
    ("C", lambda a: np.ascontiguousarray(a)),
    ("F", lambda a: np.asfortranarray(a)),
    ("S", lambda a: np.repeat(a, 2, axis=0)[::2]),
    ("A", lambda a: np.repeat(np.repeat(a, 3, axis=1), 2, axis=0)[::-2, ::-3]),
    ("A", lambda a: np.broadcast_to(a[:1], a.shape)),
]


@pytest.mark.parametrize("case", range(len(LAYOUTS)))
@pytest.mark.parametrize("dtype", ["float64", "int16", "bool", "complex128", "complex64", "float16"])
def test_layouts_and_new_arrays(case: int, dtype: str) -> None:
    """Copy any layout into new C and F arrays."""
    layout, arrange = LAYOUTS[case]
    a = Var("a", Array(dtype, 2, layout))
    for target in "CF":
        out = Var("out", Array(dtype, 2, target))
        n, m, i, j, x = Var("n", INT), Var("m", INT), Var("i", INT), Var("j", INT), Var("x", Scalar(dtype))
        inner = ir.For(
            j, const(0), m, const(1), block(let(x, Load(a, (i, j))), ir.Store(out, (i, j), x, POS)), "vector"
        )
        body = [
            let(n, Dim(a, 0)),
            let(m, Dim(a, 1)),
            let(out, ir.NewArray((n, m))),
            ir.For(i, const(0), n, const(1), block(inner), "independent"),
        ]
        native = Native(function([a], body, [out], {a: frozenset({0}), out: frozenset({1})}))
        for shape in ((3, 5), (1, 17), (0, 4), (4, 0)):
            value = arrange((np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype))
            found = native(value)
            np.testing.assert_array_equal(found, value)
            assert found.dtype == dtype


def test_views_and_reshape() -> None:
    """out = a.reshape(n, m)[n-1::-1, newaxis, 1] with everything known only when it runs."""
    a, n, m = Var("a", Array("float64", 1)), Var("n", INT), Var("m", INT)
    b, v, last = Var("b", Array("float64", 2)), Var("v", Array("float64", 2, "A")), Var("last", INT)
    one = const(1)
    body = [
        let(b, Reshape(a, (n, m))),
        let(last, prim("sub", n, one)),
        let(v, View(b, (last, one), (ViewAxis(0, n, const(-1)), ViewAxis(None, one, const(0))))),
    ]
    native = Native(function([a, n, m], body, [v, b]))
    x = np.arange(12.0)
    found, reshaped = native(x, 3, 4)
    np.testing.assert_array_equal(found, x.reshape(3, 4)[::-1, np.newaxis, 1])
    np.testing.assert_array_equal(reshaped, x.reshape(3, 4))


def test_descriptor_of_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument is its own object; its view is not but keeps the base; a temporary hands over its block."""
    a = Var("a", Array("float64", 1))
    v, t = Var("v", Array("float64", 1, "A")), Var("t", Array("float64", 1))
    n = Var("n", INT)
    fn = function(
        [a],
        [
            let(n, Dim(a, 0)),
            let(v, View(a, (const(0),), (ViewAxis(0, n, const(1)),))),
            let(t, ir.NewArray((n,))),
        ],
        [a, v, t],
    )
    native = Native(fn)
    slots: list[Any] = []
    monkeypatch.setattr(native_module, "read", lambda s, kind: slots.append(s.copy()))
    x = np.arange(4.0)
    native(x)
    assert slots[0][:4].tolist() == [id(x), id(x), 0, x.ctypes.data]
    assert slots[1][:4].tolist() == [0, id(x), 0, x.ctypes.data]
    assert slots[2][0] == slots[2][1] == 0
    assert slots[2][2] != 0
    assert slots[2][3] == slots[2][2] + 64


def test_array_cells() -> None:
    """Swap two arrays n times through cells."""
    a, b, n = Var("a", Array("int64", 1)), Var("b", Array("int64", 1)), Var("n", INT)
    left, right = ir.Cell("left", Array("int64", 1)), ir.Cell("right", Array("int64", 1))
    x, y, r = (Var(name, Array("int64", 1)) for name in "xyr")
    i = Var("i", INT)
    body = [
        ir.Declare(left, a),
        ir.Declare(right, b),
        ir.For(
            i,
            const(0),
            n,
            const(1),
            block(
                let(x, ir.Read(left)),
                let(y, ir.Read(right)),
                ir.Write(left, y),
                ir.Write(right, x),
            ),
        ),
        let(r, ir.Read(left)),
    ]
    native = Native(function([a, b, n], body, [r]))
    one, two = np.arange(3), np.arange(5) * 2
    assert native(one, two, 4).tolist() == one.tolist()
    assert native(one, two, 7).tolist() == two.tolist()


def test_retain_release_and_null_blocks() -> None:
    a, t, n = Var("a", Array("int64", 1)), Var("t", Array("int64", 1)), Var("n", INT)
    holder = ir.Cell("holder", Array("int64", 1))
    body = [
        ir.Declare(holder),
        ir.Release(holder),
        let(n, Dim(a, 0)),
        let(t, ir.NewArray((n,))),
        ir.Retain(t),
        ir.Write(holder, t),
        ir.Store(t, (const(0),), const(42), POS),
        ir.Release(holder),
        ir.Retain(a),
        ir.Release(a),
    ]
    assert Native(function([a], body, [t]))(np.zeros(1, np.int64)).tolist() == [42]


def test_no_memory_is_a_status() -> None:
    n, t = Var("n", INT), Var("t", Array("float64", 2))
    native = Native(function([n], [let(t, ir.NewArray((n, n)))], [t]))
    assert native(3).shape == (3, 3)
    for huge in (2**40, 2**30):
        with pytest.raises(Failed) as failed:
            native(huge)
        assert failed.value.status == OUT_OF_MEMORY


def test_stack_arrays_in_loops_are_not_independent() -> None:
    """Each iteration fills a small array and sums it: no iteration may see another's."""
    a, out = Var("a", Array("float64", 1)), Var("out", Array("float64", 1))
    tmp = Var("tmp", Array("float64", 1))
    n, i, j, k = (Var(name, INT) for name in "nijk")
    x, y, z, s, t = (Var(name, FLOAT) for name in "xyzst")
    f = Var("f", FLOAT)
    total = ir.Cell("total", FLOAT)
    body = block(
        let(tmp, ir.NewArray((const(4),), "stack")),
        let(x, Load(a, (i,))),
        ir.For(
            j,
            const(0),
            const(4),
            const(1),
            block(let(f, ir.Cast(j)), let(y, prim("mul", x, f)), ir.Store(tmp, (j,), y, POS)),
            "vector",
        ),
        ir.Declare(total, const(0.0, "float64")),
        ir.For(
            k,
            const(0),
            const(4),
            const(1),
            block(
                let(z, Load(tmp, (k,))),
                let(s, ir.Read(total)),
                let(t, prim("add", s, z), reassoc=True),
                ir.Write(total, t),
            ),
            "vector",
        ),
        let(r := Var("r", FLOAT), ir.Read(total)),
        ir.Store(out, (i,), r, POS),
    )
    native = Native(
        function(
            [a, out],
            [let(n, Dim(a, 0)), ir.For(i, const(0), n, const(1), body, "vector")],
            roots={a: frozenset({0}), out: frozenset({1}), tmp: frozenset({2})},
        )
    )
    value = np.arange(100.0)
    result = np.zeros(100)
    native(value, result)
    np.testing.assert_array_equal(result, value * 6)


def test_aliasing_roots_keep_order() -> None:
    """a[i+1] = a[i] in order, through two names of one root."""
    a, b = Var("a", Array("float64", 1)), Var("b", Array("float64", 1))
    n, m, i, i1, x = Var("n", INT), Var("m", INT), Var("i", INT), Var("i1", INT), Var("x", FLOAT)
    body = block(let(i1, prim("add", i, const(1))), let(x, Load(b, (i,))), ir.Store(a, (i1,), x, POS))
    native = Native(
        function(
            [a, b],
            [let(n, Dim(a, 0)), let(m, prim("sub", n, const(1))), ir.For(i, const(0), m, const(1), body)],
            roots={a: frozenset({0, 1}), b: frozenset({1})},
        )
    )
    value = np.arange(100.0)
    native(value, value)
    np.testing.assert_array_equal(value, 0)


def test_check_reports_code_order_and_arguments() -> None:
    i, n, ok = Var("i", INT), Var("n", INT), Var("ok", BOOL)
    body = [
        let(ok, prim("lt", i, n)),
        ir.Check(ok, 1, (i, n, const(1.5, "float64")), None, POS),
    ]
    native = Native(function([i, n], body, [i], failures=FAILURES))
    assert native(3, 4) == 3
    with pytest.raises(Failed) as failed:
        native(7, 4)
    assert failed.value.status == 1
    assert failed.value.arguments[:2] == (7, 4)
    assert np.array(failed.value.arguments[2]).view(np.float64) == 1.5
    always = function([], [ir.Check(const(False, "bool"), 1, (), None, POS)], [const(1)], failures=FAILURES)
    with pytest.raises(Failed):
        Native(always)()


def test_opaque_slots() -> None:
    """What is handed to Python and taken back goes through slots."""
    a, o, r, s = Var("a", Array("float64", 1)), Var("o", Object()), Var("r", Array("float64", 2, "A")), Var("s", FLOAT)
    fn = function([a, o], [ir.Opaque((r, s), 3, (a, o, const(1.5, "float64")), POS)], [r, s, o])
    text = generate(fn, compiler.host()).text
    assert "call i32 @pk_opaque(ptr %ctx, i64 3" in text
    compiler.compile_ir(text)


def test_reductions_and_elementwise_loops_are_vectorized() -> None:
    a = Var("a", Array("float64", 1))
    n, i = Var("n", INT), Var("i", INT)
    x, s, t, r = (Var(name, FLOAT) for name in "xstr")
    total = ir.Cell("total", FLOAT)
    for name in ("add", "maximum", "fmin"):
        body = block(let(x, Load(a, (i,))), let(s, ir.Read(total)), let(t, prim(name, s, x), True), ir.Write(total, t))
        fn = function(
            [a],
            [
                let(n, Dim(a, 0)),
                ir.Declare(total, const(0.0, "float64")),
                ir.For(i, const(0), n, const(1), body, "vector"),
                let(r, ir.Read(total)),
            ],
            [r],
        )
        optimized = compiler.optimized_ir(generate(fn, compiler.host()).text)
        assert re.search(r"<\d+ x double>", optimized), name
        value = np.random.default_rng(0).standard_normal(1001)
        wanted = {"add": value.sum(), "maximum": max(0, value.max()), "fmin": min(0, value.min())}[name]
        np.testing.assert_allclose(Native(fn)(value), wanted, 1e-12)
    for name in ("exp", "sub", "minimum", "mod", "floordiv"):
        for dtype in ("float64",) if name == "exp" else ("float64", "float32", "int32", "uint8"):
            fn = elementwise(name, [dtype] * (1 if name == "exp" else 2), dtype, layout="C")
            optimized = compiler.optimized_ir(generate(fn, compiler.host()).text)
            assert re.search(r"store <\d+ x ", optimized), (name, dtype)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_text_is_valid_for_every_vector_width(bits: int) -> None:
    host = compiler.host()
    other = HostInfo(host.cpu, host.features, bits, host.triple, host.data_layout)
    for name, arity in (("exp", 1), ("pow", 2), ("floordiv", 2), ("hypot", 2), ("gamma", 1)):
        for dtype in ("float16", "float32", "float64"):
            compiler.compile_ir(generate(elementwise(name, [dtype] * arity, dtype), other).text, level=1)


def test_names_that_need_quotes() -> None:
    fn = function([], [], [const(1)], name="outer.<locals>.<lambda>")
    assert Native(fn)() == 1


def test_contraction_is_off_unless_asked_for() -> None:
    x, y, z = (Var(name, FLOAT) for name in "xyz")
    p, s = Var("p", FLOAT), Var("s", FLOAT)
    fn = function([x, y, z], [let(p, prim("mul", x, y)), let(s, prim("add", p, z))], [s])
    a = 1 + 2.0**-30
    exact = a * a  # rounded
    assert Native(fn)(a, a, -exact) == 0
    if "+fma" in compiler.host().features:
        assert Native(fn, contract=True)(a, a, -exact) != 0


def test_fast_math_compiles() -> None:
    for name in ("add", "mul", "mod", "maximum", "exp"):
        fn = elementwise(name, ["float64"] * (1 if name == "exp" else 2), "float64", layout="C")
        args = [np.linspace(1, 2, 33)] * (len(fn.params) - 1)
        out = np.empty(33)
        Native(fn, fastmath=True)(*args, out)
        assert np.isfinite(out).all()


@pytest.mark.parametrize("features", [None, "+fma"])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_packing(dtype: str, features: str | None) -> None:
    host = compiler.host() if features is None else compiler.host()._replace(features=features)
    size = np.dtype(dtype).itemsize
    name = f"{PREFIX}{size}"
    compiled = compiler.compile_ir(pack.library_ir(size, host), level=0, vectorize=False, codegen_level=2)
    code = compiler.load(compiled, {}, [name])
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    run = ctypes.CFUNCTYPE(word, pointer, word, word, pointer, pointer, word)(code[name])
    rng = np.random.default_rng(0)
    for length, share in [(0, 0.5), (1, 1), (63, 0.0), (64, 1), (65, 0.02), (300, 0.4), (512, 0.1), (512, 1)]:
        values, flags = rng.integers(1, 100, 512).astype(dtype), rng.random(512) < share
        kept = values[:length][flags[:length]]
        out, want = np.zeros(600, dtype), np.zeros(600, dtype)
        end = 3 + len(kept)
        want[3:end] = kept
        assert run(out.ctypes.data, 3, end, values.ctypes.data, flags.ctypes.data, length) == end
        assert np.array_equal(out, want)


def test_branches_on_single_bits_are_not_predicted() -> None:
    @accelerate
    def steps(data: Any, limit: float) -> tuple[int, float]:
        odd, total = 0, 0.0
        for value in data:
            if (value >> 1) ^ value & 1:
                odd = odd ^ 3
            if total < limit:
                total = total + 1.0
            if value & 4 == 0:
                odd = odd + 1
        return odd, total

    data = np.arange(9, dtype=np.uint8)
    text = steps.llvm(data, 4.5)
    branches = [line for line in text.splitlines() if "!unpredictable" in line]
    assert len(branches) == 1 and "label %then" in branches[0]  # value & 4: the others are no single bits
    assert steps(data, 4.5) == steps.__wrapped__(data, 4.5)
