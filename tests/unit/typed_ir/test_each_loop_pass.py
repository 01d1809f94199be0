"""Each pass about loops and the operators that they become, alone: see `test_each_pass`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from parakeet_py.base.config import Config
from parakeet_py.base.types import BOOL, FLOAT64, PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir.ir import (
    Alloc,
    Block,
    Check,
    Compress,
    Const,
    Failure,
    For,
    Function,
    If,
    Interrupted,
    Load,
    Map,
    Matmul,
    Operand,
    Store,
    Var,
    While,
    walk,
)
from parakeet_py.typed_ir.passes.loops import shared_matrices, time_tiles
from parakeet_py.typed_ir.pipeline import run_passes
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.one_pass import count, names, only, top
from tests.helpers.typed_ir_programs import DATA, GRID, ONE, OTHER, TWO, ZERO, Program, accumulate, array, loop, real

# ---- count-loops -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("test", "step", "becomes"), [("lt", 2, "For"), ("le", 1, "For"), ("gt", 1, "While")])
def test_a_while_loop_that_counts_is_a_for_loop(x: Var, test: str, step: int, becomes: str) -> None:
    p = Program(x)
    i, last = Var("i", PYINT), Var("last", PYINT)
    condition, body = Program(), Program()
    limit = condition.minus(p.dim(x), 1)
    holds = condition.prim(test, i, limit, type_=PYBOOL)
    body.store(x, [i], body.cast(i, "float64"))
    following = body.prim("add_checked", i, index_const(step))
    p.let(While((i,), (ONE,), condition.block(holds), body.block(following)), last)
    _, after = only("count-loops", p, last, x=DATA)
    assert becomes in top(after)


# ---- counter-rebase --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_count_of_an_inner_while_loop_begins_at_zero_if_nothing_looks_at_it(x: Var, looked_at: bool) -> None:
    p = Program(x)
    n, outer, inner, left = p.dim(x), Var("count", PYINT), Var("count", PYINT), Var("left", PYINT)
    i, part, end, total = Var("i", PYINT), Var("part", PYINT), Var("end", PYINT), Var("total", PYINT)
    step, turn, test = Writer(), Writer(), Writer()
    following = step.prim("add_checked", inner, ONE)
    half = step.prim("floordiv", left, TWO, type_=PYINT)
    more = test.prim("gt", test.prim("mul", left, inner, type_=PYINT) if looked_at else left, ZERO, type_=PYBOOL)
    turn.let(While((inner, left), (outer, i), test.block(more), step.block(following, half)), part, end)
    p.let(For(i, ZERO, n, ONE, (outer,), (index_const(5),), turn.block(part)), total)
    _, after = only("counter-rebase", p, total, x=DATA)
    starts = [let.op.inits[0] for let in after.statements() if isinstance(let.op, While)]
    assert any(isinstance(start, Var) for start in starts) == looked_at
    assert count(after)["add_checked"] == (1 if looked_at else 2)
    assert count(run_passes(Function("f", p.params, p.block(total)), Config()))["add_checked"] == 1  # of the sum


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_count_of_an_inner_loop_begins_at_zero_if_nothing_looks_at_it(x: Var, looked_at: bool) -> None:
    p = Program(x)
    n, outer, inner = p.dim(x), Var("count", PYINT), Var("count", PYINT)
    i, j, part, total = Var("i", PYINT), Var("j", PYINT), Var("part", PYINT), Var("total", PYINT)
    step, turn = Writer(), Writer()
    following = step.prim("add_checked", inner, TWO)
    if looked_at:
        step.store(x, [j], step.cast(inner, "float64"))
    turn.let(For(j, ZERO, n, ONE, (inner,), (outer,), step.block(following)), part)
    p.let(For(i, ZERO, n, ONE, (outer,), (index_const(5),), turn.block(part)), total)
    _, after = only("counter-rebase", p, total, x=DATA)
    starts = [let.op.inits[0] for let in after.statements() if isinstance(let.op, For)]
    assert any(isinstance(start, Var) for start in starts) == looked_at
    assert count(after)["add_checked"] == (1 if looked_at else 2)


# ---- signal-polls ----------------------------------------------------------------------------------------------------


def looking(b: Program) -> None:
    flag = Var("interrupted", BOOL)
    b.let(Interrupted(), flag)
    b.let(If(flag, Block((), ()), Block((), ())))


def test_loops_up_to_an_argument_look_at_signals_and_those_that_memory_bounds_do_not(x: Var) -> None:
    n = Var("n", PYINT)
    p = Program(x, n)

    def body(b: Program, i: Var) -> None:
        looking(b)
        b.store(x, [ZERO], b.cast(i, "float64"))

    loop(p, p.dim(x), body)
    loop(p, n, body)
    before, after = only("signal-polls", p, x=DATA, n=3)
    assert count(before)["Interrupted"] == 2 and count(after)["Interrupted"] == count(after)["If"] == 1


def test_loops_over_what_others_leave_do_not_look(x: Var) -> None:
    n = Var("n", PYINT)
    p = Program(x, n)

    def inner(b: Program, i: Var) -> None:
        looking(b)
        b.store(x, [ZERO], b.cast(i, "float64"))

    def outer(b: Program, i: Var) -> None:
        looking(b)
        loop(b, b.prim("add", i, i, type_=PYINT), inner)

    loop(p, n, outer)
    before, after = only("signal-polls", p, x=DATA, n=3)
    assert count(before)["Interrupted"] == 2 and count(after)["Interrupted"] == 1


# ---- licm ------------------------------------------------------------------------------------------------------------


def test_scalars_that_stay_the_same_leave_and_loads_do_not(x: Var) -> None:
    a = Var("a", FLOAT64)
    p = Program(x, a)

    def body(b: Program, i: Var) -> None:
        first = b.load(x, ZERO)  # the loop writes it
        b.store(x, [i], b.prim("add", first, b.prim("exp", a)))

    loop(p, p.dim(x), body)
    before, after = only("licm", p, x=DATA, a=1.5)
    assert top(before) == ["Dim", "For"] and top(after) == ["Dim", "exp", "For"]
    (still,) = [let.op for let in after.statements() if isinstance(let.op, For)]
    assert any(isinstance(let.op, Load) for let in still.body.statements)


def test_what_may_raise_stays(x: Var) -> None:
    k = Var("k", PYINT)
    p = Program(x, k)

    def body(b: Program, i: Var) -> None:
        b.store(x, [i], b.cast(b.prim("add_checked", k, k, type_=PYINT), "float64"))

    loop(p, p.dim(x), body)
    before, after = only("licm", p, x=np.zeros(0), k=1 << 62)
    assert after is before


# ---- parallelize -----------------------------------------------------------------------------------------------------


def test_independent_iterations_are_a_map_and_sums_of_ints_a_reduce(x: Var) -> None:
    whole = array("whole", 1, "int64")
    p = Program(x, whole)
    loop(p, p.dim(x), lambda b, i: b.store(x, [i], b.prim("exp", b.load(x, i))))
    from parakeet_py.base.types import INT64

    total = accumulate(p, "add", Var("s", INT64), p.dim(whole), lambda w, i: w.load(whole, i))
    before, after = only("parallelize", p, total, x=DATA, whole=np.arange(5))
    assert count(before)["For"] == 2
    assert (count(after)["For"], count(after)["Map"], count(after)["Reduce"]) == (0, 1, 1)


def test_dependent_iterations_and_sums_of_floats_stay_loops(x: Var, y: Var) -> None:
    p = Program(x, y)
    loop(p, p.dim(x), lambda b, i: b.store(x, [i], b.load(x, b.minus(i, 1))), start=ONE)
    total = accumulate(p, "add", Var("t", FLOAT64), p.dim(y), lambda w, i: w.load(y, i))
    before, after = only("parallelize", p, total, x=DATA, y=OTHER)
    assert count(before)["For"] == count(after)["For"] == 2


# ---- carried-extents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begin", "end", "shared"), [("n", "n", True), ("m", "n", False), ("n", "less", False)])
def test_arrays_that_stay_as_long_as_each_other_have_one_length(
    x: Var, y: Var, begin: str, end: str, shared: bool
) -> None:
    p = Program(x, y)
    n, m = p.dim(x), p.dim(y)
    one = p.each([n], "neg", x)
    other = p.each([n], "neg", x) if begin == "n" else p.each([m], "neg", y)
    a, b, k = array("a"), array("b"), Var("k", PYINT)
    body = Program()
    length, width = body.dim(a), body.dim(b)
    less = body.prim("sub", length, ONE, type_=PYINT)
    swapped = body.each([length if shared else width], "abs", b)
    kept = body.each([less if end == "less" else length], "exp", a)
    outs = Var("first", a.type), Var("second", b.type)
    p.let(For(k, ZERO, TWO, ONE, (a, b), (one, other), Block(tuple(body.statements), (swapped, kept))), *outs)
    _, after = only("carried-extents", p, *outs, x=DATA, y=OTHER[: len(DATA) - 3])
    (turn,) = [let.op for let in after.statements() if isinstance(let.op, For)]
    assert [type(let.op).__name__ for let in turn.body.statements].count("Dim") == (1 if shared else 2)


# ---- scalar-replacement ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "left"), [(1, 0), (0, 3)])
def test_an_element_apart_from_all_others_is_handed_on(first: int, left: int) -> None:
    x = array("x")
    p = Program(x)

    def body(q: Program, k: Var) -> None:
        q.store(x, (ZERO,), q.prim("add", q.load(x, ZERO), q.load(x, k)))

    loop(p, p.dim(x), body, start=index_const(first))
    _, after = only("scalar-replacement", p, x=DATA)
    loads = [let for one in after.statements() if isinstance(one.op, For) for let in walk(one.op.body)]
    assert sum(isinstance(let.op, Load | Store) for let in loads) == (left or 1)


# ---- unrolling -------------------------------------------------------------------------------------------------------


def test_a_reduction_over_three_elements_is_arithmetic() -> None:
    grid = array("grid", 2)
    p = Program(grid)
    n = p.dim(grid)
    (total,) = p.reduce((n,), (index_const(3),), lambda w, i, k: w.load(grid, i, k), "add", (real(0.0),))
    before, after = only("unroll-reductions", p, total, grid=GRID)
    assert count(before)["Reduce"] == 1 and count(after)["Reduce"] == 0
    assert (count(after)["Map"], count(after)["Load"]) == (1, 3)


def test_a_map_over_two_elements_stores_them() -> None:
    grid = array("grid", 2)
    p = Program(grid)
    before, after = only(
        "unroll-maps",
        p,
        p.map1((p.dim(grid), TWO), lambda w, i, j: w.prim("exp", w.load(grid, i, j))),
        grid=GRID / 9,
    )
    assert count(before)["Store"] == 0 and count(after)["Store"] == 2
    (left,) = [let.op for let in after.statements() if isinstance(let.op, Map)]
    assert len(left.extents) == 1


@pytest.mark.parametrize("name", ["unroll-reductions", "unroll-maps"])
def test_longer_axes_stay(name: str) -> None:
    grid = array("grid", 2)
    p = Program(grid)
    n, five = p.dim(grid), index_const(5)
    (total,) = p.reduce((n,), (five,), lambda w, i, k: w.load(grid, i, k), "add", (real(0.0),))
    table = p.map1((n, five), lambda w, i, j: w.load(grid, i, j))
    before, after = only(name, p, total, table, grid=np.arange(10.0).reshape(2, 5))
    assert after is before


@pytest.mark.parametrize(("turns", "left"), [(3, 1), (9, 2)])
def test_inner_loops_of_a_few_turns_are_written_out(turns: int, left: int) -> None:
    grid = array("grid", 2)
    p = Program(grid)
    total = p.prim("abs", real(0.5))

    def row(q: Program, i: Var) -> None:
        added = accumulate(q, "add", Var("t", FLOAT64), index_const(turns), lambda w, k: w.load(grid, i, k))
        q.store(grid, (i, ZERO), added)

    loop(p, p.dim(grid), row)
    outer = accumulate(p, "add", Var("u", FLOAT64), index_const(3), lambda w, i: w.load(grid, i, ZERO))
    before, after = only("unroll-loops", p, total, outer, grid=np.arange(36.0).reshape(4, 9))
    assert count(before)["For"] == 3  # one that is in no other has nothing to gain
    assert (count(after)["For"], count(after)["Load"]) == (left + 1, turns + 1 if left == 1 else 2)


# ---- interchange -----------------------------------------------------------------------------------------------------


def rounds(p: Program, x: Var, update: Callable[[Program, Var, Operand], Var]) -> Var:
    n, z, last = p.dim(x), array("z"), array("last")
    start = p.each([n], "mul", x, real(0.5))
    body = Program()
    p.let(For(Var("t", PYINT), ZERO, index_const(3), ONE, (z,), (start,), body.block(update(body, z, n))), last)
    return last


def test_rounds_of_a_pointwise_operator_run_inside_tiles(x: Var) -> None:
    p = Program(x)
    last = rounds(p, x, lambda b, z, n: b.map1((n,), lambda w, i: w.prim("mul", w.load(z, i), w.load(x, i))))
    before, after = only("interchange", p, last, x=DATA / 8)
    assert "For" in top(before) and "For" not in top(after)
    outer = next(let.op for let in after.body.statements if isinstance(let.op, Map) and _has_loop(let.op.body))
    assert len(outer.extents) == 1


def test_rounds_that_look_at_neighbours_stay(x: Var) -> None:
    p = Program(x)

    def shifted(w: Writer, z: Var, n: Operand, i: Operand) -> Operand:
        return w.load(z, w.prim("sub", w.prim("sub", n, ONE, type_=PYINT), i, type_=PYINT))

    last = rounds(p, x, lambda b, z, n: b.map1((n,), lambda w, i: shifted(w, z, n, i)))
    before, after = only("interchange", p, last, x=DATA)
    assert after is before


def _has_loop(block: Block) -> bool:
    return any(isinstance(let.op, For) for let in walk(block))


# ---- row-sweeps ------------------------------------------------------------------------------------------------------


def filtered(p: Program, a: Var, own: bool, along: bool) -> None:
    """for k in 1 ..: map i: a[i, k] := a[i, k - 1] + a[i, k], or with a[i // 2, k - 1], or of the transposed array"""
    i, k, body, turn = Var("i", PYINT), Var("k", PYINT), Program(), Program()

    def place(row: Operand, column: Operand) -> tuple[Operand, Operand]:
        return (row, column) if along else (column, row)

    before = place(i if own else body.prim("floordiv", i, TWO, type_=PYINT), body.prim("sub", k, ONE, type_=PYINT))
    total = body.prim("add", body.load(a, *before), body.load(a, *place(i, k)))
    body.store(a, place(i, k), total)
    rows, columns = place(p.dim(a), p.dim(a, 1))
    turn.let(Map((rows,), (i,), body.block()))
    p.let(For(k, ONE, columns, ONE, (), (), turn.block()))


@pytest.mark.parametrize("rows", [0, 3, 4, 9])
def test_loops_along_rows_run_four_rows_at_a_time(rows: int) -> None:
    p = Program(a := array("a", 2))
    filtered(p, a, own=True, along=True)
    before, after = only("row-sweeps", p, a=np.random.default_rng(0).random((rows, 5)))
    assert "For" in top(before) and "For" not in top(after)
    four, one = [let.op for let in after.statements() if isinstance(let.op, For)]
    assert (len(four.params), len(one.params)) == (4, 1)  # what a round hands to the next
    assert count(after)["Load"] == 2 * (4 + 1)  # one in a round, and one before the first


@pytest.mark.parametrize(("own", "along"), [(False, True), (True, False)], ids=["rows that meet", "down columns"])
def test_other_loops_around_operators_stay(own: bool, along: bool) -> None:
    p = Program(a := array("a", 2))
    filtered(p, a, own, along)
    before, after = only("row-sweeps", p, a=np.random.default_rng(0).random((6, 5)))
    assert after is before


# ---- time-tiles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "tiled"), [(0, True), (2, True), (None, False)])
def test_sweeps_over_neighbouring_rows_run_tile_by_tile(
    place: int | None, tiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_tiles, "INNER", 800)
    monkeypatch.setattr(time_tiles, "OUTER", 800)
    p = Program(a := array("a"), b := array("b"))
    length, body = p.minus(p.dim(a), 2), Program()
    for target, source in ((b, a), (a, b)):

        def sweep(w: Writer, i: Var, target: Var = target, source: Var = source) -> None:
            beside = ONE if place is None else w.prim("add", i, index_const(place), type_=PYINT)
            w.store(target, (w.prim("add", i, ONE, type_=PYINT),), w.prim("mul", w.load(source, beside), real(0.5)))

        body.map((length,), sweep)
    p.let(For(Var("t", PYINT), ZERO, index_const(9), ONE, (), (), body.block()))
    _, after = only("time-tiles", p, a=np.arange(200.0), b=np.arange(200.0))
    assert ("If" in names(after)) == tiled


# ---- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raised", [True, False], ids=["what is behind", "all"])
def test_dot_products_of_a_loop_are_a_product_of_a_matrix_and_a_vector(raised: bool) -> None:
    a, x = array("a", 2), array("x")
    p = Program(a, x)
    n = p.dim(a)

    def turn(w: Writer, i: Var) -> None:
        start = w.prim("add", i, ONE, type_=PYINT) if raised else ZERO
        length = w.prim("sub", n, start, type_=PYINT)

        def product(inner: Writer, k: Var) -> Operand:
            at = inner.prim("add", start, k, type_=PYINT)
            return inner.prim("mul", inner.load(a, i, at), inner.load(x, at))

        products = w.map1((length,), product)
        (total,) = w.reduce((), (length,), lambda inner, k: inner.load(products, k), "add", (real(0.0),))
        w.store(x, (i,), total)

    loop(p, n, turn)
    _, after = only("products", p, a=np.ones((40, 40)), x=np.arange(40.0))
    assert ("Matmul" in names(after)) == raised


# ---- computed-products -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("computed", [True, False], ids=["for it", "and kept"])
def test_a_product_of_a_matrix_that_is_computed_for_it_is_a_sum(computed: bool) -> None:
    p = Program(a := array("a", 2), x := array("x"))
    rows, columns = p.dim(a), p.dim(a, 1)
    double = p.map1((rows, columns), lambda w, i, j: w.prim("mul", w.load(a, i, j), real(2.0)))
    out = p.alloc("float64", rows)
    p.let(Matmul(out, double, x))
    results = (out,) if computed else (out, double)
    _, after = only("computed-products", p, *results, a=np.arange(12.0).reshape(3, 4), x=np.arange(4.0))
    assert ("Matmul" in names(after)) != computed


# ---- shared-matrices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [None, "x", "y"])
def test_two_products_of_a_matrix_read_it_once(stored: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_matrices, "BLOCK", 2048)
    monkeypatch.setattr(shared_matrices, "NARROWEST", 1)
    monkeypatch.setattr(shared_matrices, "product_parts", lambda: 3)
    p = Program(a := array("a", 2), x := array("x"), y := array("y"))
    rows, columns = p.dim(a), p.dim(a, 1)
    first, second = p.alloc("float64", rows), Var("second", Array("float64", 1))
    p.let(Matmul(first, a, x))
    p.let(Check(p.prim("eq", p.dim(y), rows, type_=PYBOOL), Failure("ValueError", "lengths"), ()))
    if stored is not None:
        p.store(x if stored == "x" else y, (ONE,), real(5.0))
    p.let(Alloc((columns,)), second)
    p.let(Matmul(second, y, a))
    a_, x_, y_ = np.arange(1560.0).reshape(195, 8), np.arange(8.0), np.arange(195.0)
    before, after = only("shared-matrices", p, first, second, a=a_, x=x_, y=y_)
    assert (after is before) == (stored == "y")


# ---- mirrored-updates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [1, 2], ids=["image", "another place"])
def test_an_update_by_the_mirror_image_takes_pairs(shift: int) -> None:
    p = Program(x := array("x"))
    n = p.prim("sub", p.dim(x), ONE, type_=PYINT)
    last = p.prim("sub", n, index_const(shift), type_=PYINT)

    def image(w: Writer, i: Var) -> Operand:
        place = w.prim("maximum", w.prim("sub", last, i), ZERO) if shift > 1 else w.prim("sub", last, i)
        return w.prim("mul", w.load(x, place), real(2.0))

    kept = p.map1((n,), image)
    p.map((n,), lambda w, i: w.store(x, (i,), w.prim("add", w.load(x, i), w.load(kept, i))))
    _, after = only("mirrored-updates", p, x, x=np.arange(8.0))
    assert ("If" in names(after)) == (shift == 1)


# ---- blended-stores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_complex_elements_are_stored_in_any_case_where_they_are_read(read: bool) -> None:
    p = Program(x := array("x"))
    n = p.dim(x)
    kind = Scalar("complex128")
    z = p.map1((n,), lambda w, i: w.cast(w.load(x, i), "complex128"))

    def step(w: Writer, i: Var) -> None:
        size = w.prim("abs", w.load(z, i)) if read else w.load(x, i)
        then = Writer()
        value = then.load(z, i)
        then.store(z, (i,), then.prim("add", then.prim("mul", value, value), Const(1j, kind)))
        w.let(If(w.prim("lt", size, real(2.0)), then.block(), Block((), ())))

    p.map((n,), step)
    _, after = only("blended-stores", p, z, x=np.arange(4.0))
    assert ("If" in names(after)) != read


# ---- collapse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [True, False], ids=["from elsewhere", "from what is stored"])
def test_a_map_around_a_map_is_one_if_what_it_reads_stays(apart: bool) -> None:
    a, x, kept = array("a", 2), array("x"), array("kept")
    p = Program(a, x, kept)
    rows, columns = p.dim(a), p.dim(a, 1)

    def column(w: Writer, j: Var) -> None:
        factor = w.load(x, j) if apart else w.load(a, ZERO, j)
        w.store(kept, (j,), factor)
        w.map((rows,), lambda inner, i: inner.store(a, (i, j), inner.prim("mul", inner.load(a, i, j), factor)))
        w.store(kept, (j,), w.prim("add", w.load(a, ONE, j), w.load(kept, j)))

    p.map((columns,), column)
    _, after = only("collapse", p, a=np.arange(12.0).reshape(3, 4), x=np.arange(4.0), kept=np.zeros(4))
    assert [len(let.op.indices) for let in after.body.statements if isinstance(let.op, Map)] == (
        [1, 2, 1] if apart else [1]
    )


# ---- binned-selections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "stored", "falling"), [(49, False, False), (49, False, True), (49, True, False), (47, False, False)]
)
def test_what_a_loop_selects_by_intervals_is_found_before_it(rounds: int, stored: bool, falling: bool) -> None:
    p = Program(x := array("x"), edges := array("edges"), sums := array("sums"))
    n = p.dim(x)
    i, j, body, mask = Var("i", PYINT), Var("j", PYINT), Writer(), Writer()
    lower = body.load(edges, i)
    upper = body.load(edges, body.prim("add", i, ONE, type_=PYINT))
    element = mask.load(x, j)
    inside = mask.prim("and", mask.prim("ge", element, lower), mask.prim("gt", upper, element))
    chosen, length = array("chosen"), Var("length", PYINT)
    body.let(Compress((n,), (j,), mask.block(inside, element)), length, chosen)
    (total,) = body.reduce((), (length,), lambda w, k: w.load(chosen, k), "add", (real(0.0),))
    body.store(x if stored else sums, (i,), total)
    p.let(For(i, ZERO, index_const(rounds), ONE, (), (), body.block()))
    bounds = np.linspace(0.0, 12.0, 50)[:: -1 if falling else 1]
    _, after = only("binned-selections", p, x=np.arange(300.0) % 13, edges=bounds, sums=np.zeros(49))
    assert ("If" in names(after)) == (rounds == 49 and not stored)
