"""What is fused, vertically and horizontally, and what stores keep apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parakeet_py.base.types import FLOAT64, PYINT
from parakeet_py.typed_ir.ir import (
    For,
    Function,
    Load,
    Map,
    Operand,
    Prim,
    Reduce,
    Store,
    Var,
    ViewAxis,
    walk,
)
from parakeet_py.typed_ir.pipeline import count_operators, run_passes
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.typed_ir_programs import (
    CHECKED_PASSES,
    DATA,
    GRID,
    ONE,
    OTHER,
    TWO,
    ZERO,
    Program,
    array,
    real,
)


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


def test_checks_stay_before_another_check_and_nothing_is_stored(x: Var, y: Var) -> None:
    p = Program(x, y)
    n = p.dim(x)

    def checked(w: Writer, i: Var) -> Operand:
        w.check(w.prim("lt", i, p_dim), "IndexError", "index")
        return w.load(x, i)

    p_dim = p.dim(y)
    t = p.map1((n,), checked)
    p.check(p.prim("eq", n, p_dim), "ValueError", "lengths")
    (total,) = p.reduce((), (n,), lambda w, i: w.prim("mul", w.load(t, i), w.load(y, i)), "add", (real(0.0),))
    counts, after = p.optimised(total, x=DATA, y=OTHER)
    assert counts["Reduce"] == 1
    assert not any(let.outs and isinstance(let.op, Map) for let in after.statements())


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


def test_an_empty_array_that_a_view_is_made_of_later_is_filled_first(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    made = p.alloc("float64", n)
    p.assign(made, [n], p.each([n], "sqrt", x))
    view = p.part(made, ONE, ONE)
    p.store(view, [ZERO], real(5.0))
    counts, _ = p.optimised(made, p.load(view, ZERO), x=DATA)
    assert "Alloc" not in counts


def test_filling_an_empty_array_is_making_it(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    out = p.alloc("float64", n)
    p.assign(out, [n], p.each([n], "sqrt", x))
    zeros = p.map1((n,), lambda w, i: real(0.0))
    p.assign(zeros, [n], p.each([n], "add", zeros, out))
    counts, after = p.optimised(zeros, x=DATA)
    assert counts == {"Map": 1} and not any(isinstance(let.op, Store) for let in after.statements())
