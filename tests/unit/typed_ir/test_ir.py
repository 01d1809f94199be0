"""The printer, checker, interpreter and rewriter of the typed IR."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import FLOAT64, INT64, PYBOOL, PYFLOAT, PYINT, Array, Scalar
from parakeet_py.typed_ir.check import InvalidTypedIR, check_function
from parakeet_py.typed_ir.interpret import BrokenInvariant, run_function
from parakeet_py.typed_ir.ir import (
    Block,
    Cast,
    Compress,
    Const,
    For,
    Function,
    If,
    Let,
    Matmul,
    Opaque,
    Prim,
    Scan,
    Scatter,
    Var,
    ViewAxis,
    While,
)
from parakeet_py.typed_ir.print import format_function
from parakeet_py.typed_ir.rewrite import NOWHERE, Rewriter, Uses, free_variables, fresh_copy, substitute
from parakeet_py.typed_ir.semantics import OVERFLOW, convert, evaluate
from parakeet_py.typed_ir.writer import Writer, combiner, index_const

ZERO, ONE = index_const(0), index_const(1)


def vector(name: str, dtype: str = "float64", layout: str = "C") -> Var:
    return Var(name, Array(dtype, 1, layout))


def dots() -> Function:
    """sum(x * y, axis=1), as the specializer writes it."""
    x, y = Var("x", Array("float64", 2)), vector("y")
    w = Writer()
    n, m = w.dim(x, 0), w.dim(x, 1)
    t = w.map1((n, m), lambda v, i, j: v.prim("mul", v.load(x, i, j), v.load(y, j)))
    (s,) = w.reduce((n,), (m,), lambda v, i, j: v.load(t, i, j), "add", (Const(0.0, FLOAT64),))
    return Function("dots", (x, y), w.block(s), "example.py")


# ---- printing --------------------------------------------------------------------------------------------------------


def test_the_text_is_readable() -> None:
    text = format_function(dots())
    first = dots().params[0].uid  # numbers grow with every variable made
    assert first > 0
    shape = "".join("#" if character.isdigit() else character for character in text)
    while "##" in shape:
        shape = shape.replace("##", "#")
    assert shape == (
        "def dots(x.#: float#[#C], y.#: float#[#C]):\n"
        "    n.#: pyint = dim x.#, #\n"
        "    n.#: pyint = dim x.#, #\n"
        "    m.#: float#[#C] = map i.# < n.#, i.# < n.#:\n"
        "        e.#: float# = x.#[i.#, i.#]\n"
        "        e.#: float# = y.#[i.#]\n"
        "        t.#: float# = mul e.#, e.#\n"
        "        yield t.#\n"
        "    r.#: float#[#C] = reduce i.# < n.# over k.# < n.#:\n"
        "        e.#: float# = m.#[i.#, k.#]\n"
        "        yield e.#\n"
        "    combine from #.#:float# with acc.#: float#, new.#: float#:\n"
        "        t.#: float# = add acc.#, new.#\n"
        "        yield t.#\n"
        "    return r.#\n"
    )


# ---- checking --------------------------------------------------------------------------------------------------------


def problems(function: Function) -> str:
    with pytest.raises(InvalidTypedIR) as caught:
        check_function(function)
    return str(caught.value)


def test_a_good_program_passes() -> None:
    check_function(dots())


def test_problems_are_collected_with_their_place() -> None:
    x = vector("x")
    w = Writer()
    w.let(Prim("add", (Const(1.0, FLOAT64), Const(1, INT64))), Var("a", FLOAT64))
    w.load(x, ZERO, ZERO)
    text = problems(Function("bad", (x,), w.block(Var("lost", FLOAT64)), "there.py"))
    assert "3 problem(s)" in text
    assert "there.py:0:0: add of different dtypes 1.0:float64 (float64), 1:int64 (int64), in `a." in text
    assert "not of rank 2" in text and "is not bound" in text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w, x: w.bind(Prim("sqrt", (Const(1, INT64),)), INT64), "sqrt is not defined for int64"),
        (lambda w, x: w.bind(Prim("add_checked", (Const(1, Scalar("int32")),) * 2), Scalar("int32")), "int32"),
        (lambda w, x: w.bind(Cast(x), FLOAT64), "cast of x"),
        (lambda w, x: w.dim(x, 1), "has no axis 1"),
        (lambda w, x: w.store(x, [ZERO], Const(1, INT64)), "not float64"),
        (lambda w, x: w.view(x, [ZERO], [ViewAxis(0, ONE, ONE), ViewAxis(0, ONE, ONE)]), "two view axes"),
        (lambda w, x: w.bind(Prim("frobnicate", ()), FLOAT64), "no primitive frobnicate"),
        (lambda w, x: w.prim("not", Const(0.5, FLOAT64)), "not is not defined for float64"),
        (lambda w, x: w.check(ZERO, "ValueError", "no"), "the condition is 0 (pyint), not bool"),
        (lambda w, x: w.let(Matmul(x, x, x)), "matmul of ranks (1, 1, 1)"),
        (
            lambda w, x: w.reduce((), (ONE,), lambda v, i: (v.store(x, [i], v.load(x, i)), i)[1], "add", [ZERO]),
            "is written in a body that may not store",
        ),
        (lambda w, x: w.map((ONE,), lambda v, i: v.let(Opaque(0, ()))), "a call back into Python"),
        (lambda w, x: w.bind(Prim("neg", (Const(1 << 70, PYINT),)), PYINT), "is no constant of type pyint"),
    ],
)
def test_each_rule(make: object, message: str) -> None:
    x = vector("x")
    w = Writer()
    make(w, x)  # type: ignore[operator]
    assert message in problems(Function("bad", (x,), w.block()))


def test_a_variable_is_bound_once() -> None:
    w = Writer()
    a = w.prim("neg", Const(1.0, FLOAT64))
    w.statements.append(w.statements[0])
    assert f"{a!r} is bound twice" in problems(Function("bad", (), w.block()))


def test_scopes_end() -> None:
    w = Writer()
    inner = Writer()
    hidden = inner.prim("neg", Const(1.0, FLOAT64))
    w.let(If(Const(True, PYBOOL), inner.block(), Block(())))
    assert "is out of scope" in problems(Function("bad", (), w.block(hidden)))


# ---- the meaning of scalars ------------------------------------------------------------------------------------------

I8, I64 = np.int8, np.int64


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("add", (I8(127), I8(1)), I8(-128)),
        ("mul", (np.uint8(200), np.uint8(2)), np.uint8(144)),
        ("neg", (np.uint8(1),), np.uint8(255)),
        ("abs", (I8(-128),), I8(-128)),
        ("floordiv", (I64(-7), I64(2)), I64(-4)),
        ("floordiv", (I64(7), I64(0)), I64(0)),
        ("floordiv", (I8(-128), I8(-1)), I8(-128)),
        ("mod", (I64(-7), I64(3)), I64(2)),
        ("mod", (I64(7), I64(0)), I64(0)),
        ("fmod", (I64(-7), I64(3)), I64(-1)),
        ("shl", (I8(1), I8(9)), I8(0)),
        ("shl", (I8(1), I8(-1)), I8(0)),
        ("shr", (I8(-5), I8(9)), I8(-1)),
        ("shr", (I8(-5), I8(1)), I8(-3)),
        ("not", (np.bool_(True),), np.bool_(False)),
        ("not", (I8(5),), I8(-6)),
        ("maximum", (np.float64(math.nan), np.float64(1)), np.float64(math.nan)),
        ("fmax", (np.float64(math.nan), np.float64(1)), np.float64(1)),
        ("div", (np.float32(1), np.float32(3)), np.float32(1) / np.float32(3)),
        ("floordiv", (np.float64(-1), np.float64(0.3)), np.float64(-4)),
        ("select", (np.bool_(False), I8(1), I8(2)), I8(2)),
        ("complex", (np.float32(1), np.float32(2)), np.complex64(1 + 2j)),
        ("abs", (np.complex128(3 + 4j),), np.float64(5)),
        ("gamma", (np.float64(-1),), np.float64(math.nan)),
        ("gamma", (np.float64(200),), np.float64(math.inf)),
        ("lgamma", (np.float64(-3),), np.float64(math.inf)),
        ("add_checked", (I64(2**62), I64(-(2**62))), I64(0)),
    ],
)
def test_primitives(name: str, args: tuple[object, ...], want: object) -> None:
    got = evaluate(name, list(args))
    assert type(got) is type(want)
    assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f")  # type: ignore[arg-type, attr-defined]


def test_checked_arithmetic_raises() -> None:
    with pytest.raises(OverflowError, match=OVERFLOW):
        evaluate("mul_checked", [I64(2**62), I64(2)])
    with pytest.raises(OverflowError, match=OVERFLOW):
        evaluate("neg_checked", [I64(-(2**63))])


def test_conversions() -> None:
    assert convert(np.float64(-1.9), "int64") == -1
    assert convert(np.int64(300), "uint8") == 44
    assert convert(np.float64(math.nan), "bool") == np.bool_(True)
    assert convert(np.complex128(2 + 3j), "float32") == np.float32(2)


# ---- the meaning of operators ----------------------------------------------------------------------------------------


def run(writer: Writer, args: dict[Var, object], *results: Var, **options: object) -> list[object]:
    function = Function("f", tuple(args), writer.block(*results))
    check_function(function)
    return run_function(function, list(args.values()), **options)  # type: ignore[arg-type]


def test_views_share_memory_and_may_run_backwards() -> None:
    x = Var("x", Array("float64", 2))
    w = Writer()
    back = w.view(
        x,
        [index_const(2), ONE],
        [ViewAxis(0, index_const(3), index_const(-1)), ViewAxis(None, index_const(2), ZERO)],
    )
    w.store(back, [ZERO, ONE], Const(99.0, FLOAT64))
    data = np.arange(12.0).reshape(3, 4)
    (view,) = run(w, {x: data}, back)
    assert data[2, 1] == 99 and np.shares_memory(view, data)
    assert np.array_equal(view, np.repeat(data[::-1, 1:2], 2, axis=1))  # type: ignore[arg-type]


def test_empty_views_may_start_at_the_end() -> None:
    x = vector("x")
    w = Writer()
    view = w.view(x, [index_const(3)], [ViewAxis(0, ZERO, ONE)])
    (got,) = run(w, {x: np.arange(3.0)}, view)
    assert got.shape == (0,)  # type: ignore[attr-defined]


def test_indices_out_of_range_are_found_out() -> None:
    x = vector("x")
    w = Writer()
    e = w.load(x, index_const(-1))
    with pytest.raises(BrokenInvariant, match="index"):
        run(w, {x: np.arange(3.0)}, e)


@pytest.mark.parametrize(("inclusive", "want"), [(True, [1, 3, 6]), (False, [0, 1, 3])])
def test_scan(inclusive: bool, want: list[float]) -> None:
    x = vector("x")
    w = Writer()
    n, i = w.dim(x), Var("i", PYINT)
    inner = Writer()
    e = inner.load(x, i)
    zero = Const(0.0, FLOAT64)
    scan = Scan((n,), (i,), 0, inner.block(e), (zero,), combiner("add", ["float64"]), inclusive)
    (got,) = run(w, {x: np.array([1.0, 2.0, 3.0])}, w.bind(scan, Array("float64", 1)))
    assert got.tolist() == want  # type: ignore[attr-defined]


def test_compress_and_scatter() -> None:
    x, counts = vector("x"), vector("counts", "int64")
    w = Writer()
    n, i = w.dim(x), Var("i", PYINT)
    inner = Writer()
    e = inner.load(x, i)
    keep = inner.prim("gt", e, Const(0.0, FLOAT64))
    number, kept = Var("number", PYINT), vector("kept")
    w.let(Compress((n,), (i,), inner.block(keep, e)), number, kept)
    j = Var("j", PYINT)
    inner = Writer()
    bin_ = inner.cast(inner.load(kept, j), "int64")
    block = inner.block(Const(True, PYBOOL), bin_, Const(1, INT64))
    w.let(Scatter(counts, (number,), (j,), block, combiner("add", ["int64"])))
    data = np.zeros(4, dtype=np.int64)
    got = run(w, {x: np.array([1.0, -1.0, 3.0, 1.0]), counts: data}, number, kept)
    assert got[0] == 3 and type(got[0]) is int
    assert got[1].tolist() == [1, 3, 1] and data.tolist() == [0, 2, 0, 1]  # type: ignore[attr-defined]


def test_loops_gates_and_stop_flags() -> None:
    """while-else: the first i with i*i > n; for counting down."""
    n = Var("n", PYINT)
    w = Writer()
    i, s = Var("i", PYINT), Var("s", PYINT)
    condition, body = Writer(), Writer()
    below = condition.prim("lt", i, index_const(100))
    square = body.prim("mul_checked", i, i)
    stop = body.prim("gt", square, n)
    following = body.prim("select", stop, i, body.prim("add_checked", i, ONE))
    stopped, last = Var("stopped", PYBOOL), Var("last", PYINT)
    w.let(While((i,), (ZERO,), condition.block(below), body.block(stop, following), True), stopped, last)
    down = Writer()
    k = Var("k", PYINT)
    total = down.prim("add_checked", down.prim("mul_checked", s, index_const(10)), k)
    out = Var("out", PYINT)
    w.let(For(k, index_const(3), ZERO, index_const(-1), (s,), (ZERO,), down.block(total)), out)
    assert run(w, {n: 10}, stopped, last, out) == [True, 4, 321]


def test_failures_are_python_exceptions() -> None:
    n = Var("n", PYINT)
    w = Writer()
    w.check(w.prim("ge", n, ZERO), "ValueError", "negative: {0}", n)
    with pytest.raises(ValueError, match="negative: -3"):
        run(w, {n: -3})


def test_opaque_calls_back() -> None:
    x = Var("x", PYFLOAT)
    w = Writer()
    y = w.bind(Opaque(7, (x,)), FLOAT64)
    (got,) = run(w, {x: 2.0}, y, opaque=lambda site, args: [np.float64(site + args[0])])
    assert got == 9.0


def test_dependent_iterations_show_in_a_shuffled_order() -> None:
    x = vector("x")
    w = Writer()
    n = w.prim("sub", w.dim(x), ONE, type_=PYINT)
    w.map((n,), lambda v, i: v.store(x, [v.prim("add", i, ONE, type_=PYINT)], v.load(x, i)))
    straight, shuffled = np.arange(6.0), np.arange(6.0)
    run(w, {x: straight})
    run(w, {x: shuffled}, order=random.Random(0))
    assert straight.tolist() == [0.0] * 6 and shuffled.tolist() != straight.tolist()


# ---- rewriting -------------------------------------------------------------------------------------------------------


def test_unchanged_programs_are_shared() -> None:
    function = dots()
    assert Rewriter().function(function) is function
    for let in function.statements():
        assert rebuild(let.op, lambda operand: operand) is let.op
    assert substitute(function.body, {Var("other", PYINT): ZERO}) is function.body


def test_fresh_copies_bind_new_variables() -> None:
    function = dots()
    copy = fresh_copy(function.body)
    check_function(Function("copy", function.params, copy))
    before = {out for let in function.statements() for out in let.outs}
    after = {out for let in Function("copy", function.params, copy).statements() for out in let.outs}
    assert before.isdisjoint(after)
    args = [np.arange(6.0).reshape(2, 3), np.ones(3)]
    want = run_function(function, args)
    got = run_function(Function("copy", function.params, copy), args)
    assert np.array_equal(want[0], got[0])


def test_substitution_reaches_everywhere() -> None:
    function = dots()
    x, y = function.params
    other = vector("other")
    body = substitute(function.body, {y: other})
    assert list(free_variables(body)) == [x, other]


def test_uses_tell_data_from_shape() -> None:
    function = dots()
    x, y = function.params
    uses = Uses(function.body)
    assert uses.shape == {x: 2} and uses.data[x] == 1 and uses.data[y] == 1


def test_positions_are_kept() -> None:
    let = Let((Var("a", FLOAT64),), Prim("neg", (Const(1.0, FLOAT64),)), NOWHERE)
    assert fresh_copy(Block((let,))).statements[0].pos is NOWHERE
