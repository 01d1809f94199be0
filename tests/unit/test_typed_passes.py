"""What the passes of the typed IR leave: how many operators, loops, checks and allocations, and that it is right."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py.config import Config
from parakeet_py.typed_ir.check_ir import InvalidTypedIR
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import (
    Block,
    Check,
    Const,
    For,
    Function,
    If,
    Load,
    Map,
    Operand,
    Prim,
    Reduce,
    Store,
    Var,
    ViewAxis,
    While,
    walk,
)
from parakeet_py.typed_ir.passes.algebra import simplify_prim
from parakeet_py.typed_ir.passes.equal_extents import GENERAL
from parakeet_py.typed_ir.passes.facts import Facts
from parakeet_py.typed_ir.passes.linear import Linear, atom
from parakeet_py.typed_ir.pipeline import PASSES, PassReport, count_operators, run_passes
from parakeet_py.typed_ir.types import FLOAT64, INT64, PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.unit.typed_ir_programs import (
    CHECKED_PASSES,
    DATA,
    GRID,
    ONE,
    OTHER,
    TWO,
    ZERO,
    Program,
    accumulate,
    array,
    loop,
    real,
)


@pytest.fixture
def x() -> Var:
    return array("x")


@pytest.fixture
def y() -> Var:
    return array("y")


# ---- vertical --------------------------------------------------------------------------------------------------------


def test_a_chain_is_one_map(x: Var, y: Var) -> None:
    p = Program(x, y)
    n = p.dim(x)
    t = p.each([n], "sqrt", p.each([n], "mul", p.each([n], "add", x, y), x))
    assert p.optimised(t, x=DATA, y=OTHER)[0] == {"Map": 1}


def test_shared_intermediate_values_are_computed_once(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "exp", x)
    t = p.each([n], "mul", p.each([n], "add", t, real(1.0)), p.each([n], "sub", t, real(1.0)))
    counts, after = p.optimised(t, x=DATA)
    assert counts == {"Map": 1}
    assert sum(isinstance(let.op, Prim) and let.op.name == "exp" for let in after.statements()) == 1


def test_expensive_work_is_not_repeated_through_a_broadcast(x: Var, y: Var) -> None:
    p = Program(x, y)
    n, m = p.dim(x), p.dim(y)
    t = p.each([n], "exp", x)
    counts, _ = p.optimised(p.map1((n, m), lambda w, i, j: w.prim("add", w.load(t, i), w.load(y, j))), x=DATA, y=OTHER)
    assert counts == {"Map": 2}


def test_cheap_work_is(x: Var, y: Var) -> None:
    p = Program(x, y)
    n, m = p.dim(x), p.dim(y)
    t = p.each([n], "neg", x)
    counts, _ = p.optimised(p.map1((n, m), lambda w, i, j: w.prim("add", w.load(t, i), w.load(y, j))), x=DATA, y=OTHER)
    assert counts == {"Map": 1}


def test_stencils_read_stored_inputs(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "exp", x)
    m = p.minus(n, 1)
    result = p.each([m], "add", p.part(t, ZERO, m), p.part(t, ONE, m))
    assert p.optimised(result, x=DATA)[0] == {"Map": 2}


def test_views_do_not_stop_fusion(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    back = p.part(p.each([n], "exp", x), p.minus(n, 1), n, index_const(-1))
    assert p.optimised(p.each([n], "add", back, x), x=DATA)[0] == {"Map": 1}


def test_only_the_element_read_is_computed(x: Var) -> None:
    p = Program(x)
    t = p.each([p.dim(x)], "exp", x)
    assert p.optimised(p.load(t, TWO), x=DATA)[0] == {}


def test_serial_loops_do_not_swallow_producers(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "exp", x)
    i, s, total = Var("i", PYINT), Var("s", FLOAT64), Var("total", FLOAT64)
    body = Writer()
    following = body.prim("add", s, body.load(t, i))
    p.let(For(i, ZERO, n, ONE, (s,), (real(0.0),), body.block(following)), total)
    assert p.optimised(total, x=DATA)[0] == {"Map": 1, "For": 1}


def test_a_write_in_between_keeps_the_order(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "add", x, real(1.0))
    p.store(x, [ZERO], real(50.0))
    assert p.optimised(p.each([n], "mul", t, x), x=DATA)[0] == {"Map": 2}


def test_what_reads_only_values_moves_before_the_write(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "add", x, real(1.0))
    p.store(x, [ZERO], real(50.0))
    assert p.optimised(p.each([n], "mul", t, t), x=DATA)[0] == {"Map": 1}


def test_kmeans_stores_no_distances() -> None:
    points, centres = array("points", 2), array("centres", 2)
    p = Program(points, centres)
    n, k, d = p.dim(points, 0), p.dim(centres, 0), p.dim(points, 1)
    difference = p.map1((n, k, d), lambda w, i, j, c: w.prim("sub", w.load(points, i, c), w.load(centres, j, c)))
    square = p.each([n, k, d], "mul", difference, difference)
    (distance,) = p.reduce((n, k), (d,), lambda w, i, j, c: w.load(square, i, j, c), "add", (real(0.0),))

    def least(w: Writer, a: Operand, i: Operand, b: Operand, j: Operand) -> tuple[Operand, Operand]:
        closer = w.prim("lt", b, a)
        return w.prim("select", closer, b, a), w.prim("select", closer, j, i)

    root = p.each([n, k], "sqrt", distance)
    _, where = p.reduce((n,), (k,), lambda w, i, j: (w.load(root, i, j), j), least, (real(np.inf), ZERO))
    counts, after = p.optimised(where, points=GRID, centres=GRID[:2] + 1.0)
    assert counts == {"Reduce": 2}
    outer = [let.op for let in after.body.statements if isinstance(let.op, Reduce)]
    assert len(outer) == 1 and any(isinstance(let.op, Reduce) for let in walk(outer[0].body))


def test_a_mean_of_columns_keeps_its_own_reduction() -> None:
    grid = array("grid", 2)
    p = Program(grid)
    n, m = p.dim(grid, 0), p.dim(grid, 1)
    (total,) = p.reduce((m,), (n,), lambda w, j, i: w.load(grid, i, j), "add", (real(0.0),))
    assert p.optimised(p.each([m], "div", total, real(3.0)), grid=GRID)[0] == {"Reduce": 1, "Map": 1}


# ---- horizontal ------------------------------------------------------------------------------------------------------


def test_two_results_of_one_input_are_one_map(x: Var, y: Var) -> None:
    p = Program(x, y)
    n = p.dim(x)
    counts, _ = p.optimised(p.each([n], "add", x, y), p.each([n], "sub", x, y), x=DATA, y=OTHER)
    assert counts == {"Map": 1}


def test_a_result_that_is_also_read_is_made_once(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    t = p.each([n], "exp", x)
    counts, after = p.optimised(t, p.each([n], "sqrt", t), x=DATA)
    assert counts == {"Map": 1}
    assert sum(isinstance(let.op, Load) for let in after.statements()) == 1


def test_a_sum_and_a_sum_of_squares_are_one_reduction(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    (total,) = p.reduce((), (n,), lambda w, i: w.load(x, i), "add", (real(0.0),))
    square = p.each([n], "mul", x, x)
    (squares,) = p.reduce((), (n,), lambda w, i: w.load(square, i), "add", (real(0.0),))
    assert p.optimised(total, squares, x=DATA)[0] == {"Reduce": 1}


def test_results_that_depend_on_each_other_through_a_third_stay_apart(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    (largest,) = p.reduce((), (n,), lambda w, i: w.load(x, i), "maximum", (real(-np.inf),))
    shifted = p.each([n], "sub", x, largest)
    (total,) = p.reduce((), (n,), lambda w, i: w.load(shifted, i), "add", (real(0.0),))
    assert p.optimised(total, x=DATA)[0] == {"Reduce": 2}


# ---- stores ----------------------------------------------------------------------------------------------------------


def stored(write: Callable[[Program, Var, Operand], None], *params: Var) -> dict[str, int]:
    """The operators left of a program that stores into its first parameter, an array of extent n."""
    p = Program(*params)
    write(p, params[0], p.dim(params[0]))
    return p.optimised(**dict(zip([param.name for param in params], (DATA, OTHER), strict=False)))[0]


def test_a_store_at_the_same_element_needs_no_snapshot(x: Var, y: Var) -> None:
    def write(p: Program, x: Var, n: Operand) -> None:
        p.assign(x, [n], p.each([n], "add", x, p.params[1]))

    assert stored(write, x, y) == {"Map": 1}


def test_a_shifted_store_takes_a_snapshot(x: Var) -> None:
    def write(p: Program, x: Var, n: Operand) -> None:  # x[1:] += x[:-1]
        m = p.minus(n, 1)
        tail = p.part(x, ONE, m)
        p.assign(tail, [m], p.each([m], "add", tail, p.part(x, ZERO, m)))

    assert stored(write, x) == {"Map": 2}


def test_even_from_odd_needs_no_snapshot(x: Var) -> None:
    def write(p: Program, x: Var, n: Operand) -> None:  # x[::2] = x[1::2] * 3, n even
        half = p.prim("floordiv", n, TWO, type_=PYINT)
        p.assign(p.part(x, ZERO, half, TWO), [half], p.each([half], "mul", p.part(x, ONE, half, TWO), real(3.0)))

    assert stored(write, x) == {"Map": 1}


def test_a_reversed_store_takes_a_snapshot(x: Var) -> None:
    def write(p: Program, x: Var, n: Operand) -> None:
        p.assign(x, [n], p.each([n], "add", x, p.part(x, p.minus(n, 1), n, index_const(-1))))

    assert stored(write, x) == {"Map": 2}


def test_another_row_needs_no_snapshot() -> None:
    grid, i = array("grid", 2), Var("i", PYINT)
    p = Program(grid)
    m = p.minus(p.dim(grid, 1), 2)
    body = Program()
    above = body.minus(i, 1)
    row = body.view(grid, [i, ONE], [ViewAxis(1, m, ONE)])
    before = body.view(grid, [above, ONE], [ViewAxis(1, m, ONE)])
    body.assign(row, [m], body.each([m], "add", row, before))
    p.let(For(i, ONE, p.dim(grid, 0), ONE, (), (), body.block()))
    assert p.optimised(grid=GRID)[0] == {"For": 1, "Map": 1}


def test_the_rest_of_a_row_and_a_column_are_apart() -> None:
    """Elimination: a[1:, 1:] -= a[1:, :1] * a[:1, 1:]."""
    grid = array("grid", 2)
    p = Program(grid)
    n, m = p.minus(p.dim(grid, 0), 1), p.minus(p.dim(grid, 1), 1)
    rest = p.view(grid, [ONE, ONE], [ViewAxis(0, n, ONE), ViewAxis(1, m, ONE)])
    column, row = p.view(grid, [ONE, ZERO], [ViewAxis(0, n, ONE)]), p.view(grid, [ZERO, ONE], [ViewAxis(1, m, ONE)])
    product = p.map1((n, m), lambda w, i, j: w.prim("mul", w.load(column, i), w.load(row, j)))
    p.assign(rest, [n, m], p.each([n, m], "sub", rest, product))
    assert p.optimised(grid=GRID)[0] == {"Map": 1}


def test_only_the_row_and_the_column_that_are_read_are_copied() -> None:
    """Floyd-Warshall: path[:] = minimum(path, path[:, k:k+1] + path[k, :])."""
    path, k = array("path", 2), Var("k", PYINT)
    p = Program(path, k)
    n, m = p.dim(path, 0), p.dim(path, 1)
    through = p.map1((n, m), lambda w, i, j: w.prim("add", w.load(path, i, k), w.load(path, k, j)))
    p.assign(path, [n, m], p.each([n, m], "minimum", path, through))
    counts, after = p.optimised(path=GRID[:3] * np.array([1.0, -2.0, 1.0]), k=1)
    assert counts == {"Map": 3}
    assert [len(let.op.extents) for let in after.statements() if isinstance(let.op, Map)] == [1, 1, 2]


def test_neighbours_of_gathered_indices_are_not_apart(x: Var) -> None:
    where = array("where", 1, "int64")
    p = Program(x, where)
    n = p.dim(where)
    m = p.minus(p.dim(x), 1)
    following = p.map1((m,), lambda w, i: w.load(x, w.prim("add", i, ONE, type_=PYINT)))

    def write(w: Writer, i: Operand) -> None:  # x[where] = x[where + 1]
        index = w.load(where, i)
        w.store(x, [index], w.load(following, index))

    p.map((n,), write)
    assert p.optimised(x=DATA, where=np.array([1, 3, 2, 0]))[0] == {"Map": 2}


def test_overlapping_parameters_are_kept_apart(x: Var, y: Var) -> None:
    p = Program(x, y)
    n = p.dim(x)
    p.assign(x, [n], p.each([n], "add", y, real(1.0)))
    body = p.block()
    after = run_passes(Function("f", (x, y), body, disjoint=False), CHECKED_PASSES)
    assert count_operators(after) == {"Map": 2}
    assert count_operators(run_passes(Function("f", (x, y), body), CHECKED_PASSES)) == {"Map": 1}


def test_filling_an_empty_array_is_making_it(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    out = p.alloc("float64", n)
    p.assign(out, [n], p.each([n], "sqrt", x))
    zeros = p.map1((n,), lambda w, i: real(0.0))
    p.assign(zeros, [n], p.each([n], "add", zeros, out))
    counts, after = p.optimised(zeros, x=DATA)
    assert counts == {"Map": 1} and not any(isinstance(let.op, Store) for let in after.statements())


# ---- loops -----------------------------------------------------------------------------------------------------------


def test_an_explicit_loop_over_an_array_is_a_map(x: Var, y: Var) -> None:
    p = Program(x, y)

    def body(b: Program, i: Var) -> None:
        value = b.prim("mul", b.load(x, b.index(x, i)), real(2.0))
        b.store(x, [b.index(x, i)], value)

    loop(p, p.dim(x), body)
    assert p.optimised(x=DATA, y=OTHER)[0] == {"Map": 1}


def test_checks_are_tested_before_the_loop(x: Var, y: Var) -> None:
    n = Var("n", PYINT)
    p = Program(x, y, n)

    def body(b: Program, i: Var) -> None:
        following = b.prim("add_checked", i, ONE, type_=PYINT)
        b.store(y, [b.index(y, i)], b.load(x, b.index(x, following)))

    loop(p, n, body)
    for count in (0, 3, 7, 8, 12):  # in range, and failing midway
        counts, after = p.optimised(x=DATA, y=OTHER, n=count)
    assert counts == {"Map": 1, "For": 1, "Check": 2}
    (choice,) = [let.op for let in after.statements() if isinstance(let.op, If)]
    assert not any(isinstance(let.op, Check | For) for let in walk(choice.then))


def test_a_recurrence_stays_serial(x: Var) -> None:
    p = Program(x)
    loop(
        p,
        p.dim(x),
        lambda b, i: b.store(x, [i], b.load(x, b.prim("sub", i, ONE, type_=PYINT))),
        start=ONE,
    )
    assert p.optimised(x=DATA)[0] == {"For": 1}


def test_a_nest_is_one_map() -> None:
    grid = array("grid", 2)
    p = Program(grid)

    def rows(b: Program, i: Var) -> None:
        loop(b, b.dim(grid, 1), lambda c, j: c.store(grid, [i, j], c.prim("neg", c.load(grid, i, j))))

    loop(p, p.dim(grid, 0), rows)
    counts, after = p.optimised(grid=GRID)
    (only,) = [let.op for let in after.statements() if isinstance(let.op, Map)]
    assert counts == {"Map": 1} and len(only.extents) == 2


def test_integers_are_summed_in_any_order_and_floats_are_not(x: Var) -> None:
    whole = array("whole", 1, "int64")
    p = Program(x, whole)
    exact = accumulate(p, "add", Var("s", INT64), p.dim(whole), lambda w, i: w.load(whole, i))
    rounded = accumulate(p, "add", Var("t", FLOAT64), p.dim(x), lambda w, i: w.load(x, i))
    largest = accumulate(p, "maximum", Var("m", FLOAT64), p.dim(x), lambda w, i: w.load(x, i))
    counts, _ = p.optimised(exact, rounded, largest, x=DATA, whole=np.arange(5) * 2**61)
    assert counts == {"Reduce": 2, "For": 1}


def test_rounds_of_a_pointwise_operator_run_tile_by_tile(x: Var, y: Var) -> None:
    rounds = Var("rounds", PYINT)
    p = Program(x, y, rounds)
    n = p.dim(x)
    start = p.each([n], "mul", x, real(0.5))
    i, z, last = Var("i", PYINT), array("z"), array("last")
    body = Program()
    square = body.each([n], "mul", z, z)
    following = body.each([n], "add", square, x)
    body.assign(y, [n], body.each([n], "add", y, following))
    p.let(For(i, ZERO, rounds, ONE, (z,), (start,), body.block(following)), last)
    for count in (0, 1, 3):
        counts, after = p.optimised(last, x=DATA / 8, y=OTHER, rounds=count)
    assert counts == {"Map": 3, "For": 1, "Alloc": 1}
    (outer,) = [let.op for let in after.body.statements if isinstance(let.op, Map)]
    assert any(isinstance(let.op, For) for let in outer.body.statements)


def test_invariant_scalars_leave_the_loop(x: Var) -> None:
    a = Var("a", FLOAT64)
    p = Program(x, a)

    def body(b: Program, i: Var) -> None:
        b.store(x, [i], b.prim("mul", b.load(x, i), b.prim("exp", a)))

    loop(p, p.dim(x), body)
    _, after = p.optimised(x=DATA, a=1.5)
    assert any(isinstance(let.op, Prim) and let.op.name == "exp" for let in after.body.statements)


def test_the_condition_of_a_while_loop_bounds_its_counter(x: Var) -> None:
    p = Program(x)
    i = Var("i", PYINT)
    condition, body = Program(), Program()
    below = condition.prim("lt", i, p.dim(x), type_=PYBOOL)
    body.store(x, [body.index(x, i)], real(0.0))
    near, far = (body.prim("add_checked", i, by, type_=PYINT) for by in (ONE, TWO))
    following = body.prim("select", body.prim("lt", i, TWO, type_=PYBOOL), near, far, type_=PYINT)
    p.let(While((i,), (ZERO,), condition.block(below), body.block(following)), Var("last", PYINT))
    counts, after = p.optimised(x=DATA)
    assert counts == {"While": 1}
    assert not any(isinstance(let.op, Prim) and let.op.name == "add_checked" for let in after.statements())


def test_equal_extents_have_a_copy_of_their_own(x: Var, y: Var) -> None:
    p = Program(x, y)  # x[1:-1] += y[1:-1], either of which may have one element
    views, extents = [], []
    for base in (x, y):
        n = p.dim(base)
        extents.append(p.prim("maximum", p.minus(n, 2), ZERO, type_=PYINT))
        views.append(p.part(base, p.prim("minimum", n, ONE, type_=PYINT), extents[-1]))
    one = p.prim("eq", extents[1], ONE)
    p.check(p.prim("or", p.prim("eq", *extents), one), "ValueError", "broadcast")

    def add(w: Writer, i: Operand) -> Operand:
        return w.prim("add", w.load(views[0], i), w.load(views[1], w.prim("select", one, ZERO, i, type_=PYINT)))

    value = p.map1((extents[0],), add)
    p.assign(views[0], [extents[0]], value)
    for other in (DATA, OTHER[:3], OTHER[:5]):
        _, after = p.optimised(x=DATA, y=other)
    (choice,) = [let.op for let in after.body.statements if isinstance(let.op, If)]
    names = {let.op.name for let in walk(choice.then) if isinstance(let.op, Prim)}
    assert "select" not in names and not any(isinstance(let.op, Check) for let in walk(choice.then))


def test_the_usual_and_the_general_version_on_their_own(x: Var, y: Var) -> None:
    p = Program(x, y)
    n, m = p.minus(p.dim(x), 1), p.minus(p.dim(y), 1)
    one = p.prim("eq", m, ONE)
    p.check(p.prim("or", p.prim("eq", n, m), one), "ValueError", "broadcast {0} {1}", n, m)

    def add(w: Writer, i: Operand) -> Operand:
        return w.prim("add", w.load(x, i), w.load(y, w.prim("select", one, ZERO, i, type_=PYINT)))

    before = Function("f", (x, y), p.block(p.map1((n,), add)))
    report = PassReport()
    usual = run_passes(before, CHECKED_PASSES, report, "usual")
    general = run_passes(before, CHECKED_PASSES, None, "general")
    assert report.guarded and not any(isinstance(let.op, If) for let in usual.statements())
    first = next(let.op for let in usual.body.statements if isinstance(let.op, Check))
    assert first.failure == GENERAL
    for function in (usual, general):
        assert np.array_equal(run_function(function, [DATA, OTHER])[0], DATA[:-1] + OTHER[:-1])
    assert np.array_equal(run_function(general, [DATA, OTHER[:2]])[0], DATA[:-1] + OTHER[0])


# ---- simplification --------------------------------------------------------------------------------------------------

F, K = Var("f", FLOAT64), Var("k", INT64)
INT0, INT1 = Const(0, INT64), Const(1, INT64)


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("add", (F, real(0.0)), None),  # -0.0 + 0.0 is 0.0
        ("add", (F, real(-0.0)), F),
        ("sub", (F, real(0.0)), F),
        ("sub", (F, real(-0.0)), None),
        ("mul", (F, real(0.0)), None),
        ("mul", (F, real(1.0)), F),
        ("mul", (real(1.0), F), F),
        ("mul", (F, real(-1.0)), Prim("neg", (F,))),
        ("div", (F, real(4.0)), Prim("mul", (F, real(0.25)))),
        ("div", (F, real(3.0)), None),
        ("sub", (F, F), None),
        ("eq", (F, F), None),
        ("pow", (F, real(2.0)), Prim("mul", (F, F))),
        ("pow", (F, real(0.5)), None),
        ("add", (K, INT0), K),
        ("mul", (K, INT0), INT0),
        ("sub", (K, K), INT0),
        ("eq", (K, K), Const(True, PYBOOL)),
        ("floordiv", (K, INT1), K),
        ("minimum", (K, K), K),
        ("lt", (INT0, K), Prim("gt", (K, INT0))),
        ("add", (INT1, K), Prim("add", (K, INT1))),
        ("add_checked", (Const(2**63 - 1, INT64), INT1), None),
        ("mul", (Const(2**62, INT64), Const(4, INT64)), INT0),
    ],
)
def test_identities(name: str, args: tuple[Operand, ...], want: object) -> None:
    kind = PYBOOL if name in ("eq", "lt") else args[-1].type
    assert isinstance(kind, Scalar)
    assert simplify_prim(name, args, kind, {}) == want


def test_facts_prove_and_forget() -> None:
    facts = Facts({})
    i, n = Var("i", PYINT), Var("n", PYINT)
    facts.define_extent(n)
    mark = facts.push()
    facts.define_index(i, n)
    assert facts.less(i, n) and facts.at_most(ZERO, i) and not facts.less(i, ZERO)
    assert facts.nonnegative(atom(n) - atom(i) - Linear(1))
    facts.pop(mark)
    assert not facts.less(i, n)
    facts.learn(atom(i) - Linear(3))
    assert facts.decide("gt", i, TWO) is True and facts.decide("eq", i, ONE) is False
    assert facts.decide("lt", i, n) is None


def test_a_maximum_above_its_one_side_is_the_other() -> None:
    n, m = Var("n", PYINT), Var("m", PYINT)
    op = Prim("maximum", (n, ZERO))
    facts = Facts({m: op})
    facts.define_extent(n)
    facts.define(m, Prim("maximum", (n, index_const(5))))
    facts.learn(atom(m) - Linear(7))
    assert facts.at_most(index_const(7), n) and facts.resolve(atom(m)) == atom(n)


# ---- the pipeline ----------------------------------------------------------------------------------------------------


def chain(length: int) -> Function:
    x = array("x")
    p = Program(x)
    n = p.dim(x)
    value = x
    for number in range(length):
        value = p.each([n], "add" if number % 2 else "mul", value, real(1.5 + number))
    return Function("chain", (x,), p.block(value))


def test_names_are_unique_and_described() -> None:
    names = [one.name for one in PASSES]
    assert len(set(names)) == len(names) and all(one.summary for one in PASSES)
    assert all(earlier in names for one in PASSES for earlier in one.after)


def test_printing_stopping_and_reporting(caplog: pytest.LogCaptureFixture) -> None:
    report = PassReport()
    with caplog.at_level(logging.WARNING, "parakeet_py"):
        after = run_passes(chain(3), Config(print_passes=("dce",), stop_pass="dce"), report)
    assert "chain after dce:\ndef chain(" in caplog.text
    first = ["sink", "count-loops", "partial-counts", "low-bits", "simplify", "cse", "dce"]
    assert list(report.seconds) == first and report.total_seconds > 0
    assert report.before == report.after == {"Map": 3} == count_operators(after)
    with caplog.at_level(logging.WARNING, "parakeet_py"):
        run_passes(chain(1), Config(stop_pass="nonsense"))
    assert "there is no pass 'nonsense'" in caplog.text


def test_the_checker_runs_after_passes() -> None:
    broken = Function("broken", (), Block((), (Var("lost", FLOAT64),)))
    with pytest.raises(InvalidTypedIR):
        run_passes(broken, CHECKED_PASSES)


def test_long_chains_fuse() -> None:
    function = chain(100)
    after = run_passes(function, CHECKED_PASSES)
    assert count_operators(after) == {"Map": 1}


def work(length: int) -> int:
    """How many times the passes look at a statement: the walk over the program, counted."""
    import sys

    function = chain(length)
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run_passes(function, Config())
    finally:
        sys.setprofile(before)
    return calls


def test_the_work_of_the_passes_grows_linearly() -> None:
    short, long = work(40), work(160)
    assert long < 5.5 * short
