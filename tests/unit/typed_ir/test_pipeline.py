"""Loops that become operators, simplification, the pipeline."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.config import Config
from parakeet_py.base.errors import UnusualExtentsError
from parakeet_py.base.types import FLOAT64, INT64, PYBOOL, PYINT, Array, Scalar
from parakeet_py.typed_ir.check import InvalidTypedIR
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import (
    Block,
    Check,
    Const,
    For,
    Function,
    If,
    Map,
    Operand,
    Prim,
    Var,
    While,
    walk,
)
from parakeet_py.typed_ir.passes.analysis.facts import Facts
from parakeet_py.typed_ir.passes.analysis.linear import Linear, atom
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.passes.scalar.algebra import simplify_prim
from parakeet_py.typed_ir.pipeline import PASSES, PassReport, count_operators, run_passes
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
    accumulate,
    array,
    loop,
    real,
)


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


def test_what_loops_along_rows_check_is_tested_on_entry() -> None:
    a, b = Var("a", Array("float64", 2)), Var("b", Array("float64", 2))
    p = Program(a, b)
    i, k, turn, body = Var("i", PYINT), Var("k", PYINT), Program(), Program()
    turn.check(turn.prim("lt", k, turn.dim(b, 1)), "IndexError", "{0}", k)
    last = body.load(a, i, body.prim("sub", k, ONE, type_=PYINT))
    body.store(a, (i, k), body.prim("add", last, body.load(b, i, k)))
    turn.let(Map((p.dim(b),), (i,), body.block()))
    p.let(For(k, ONE, p.dim(a, 1), ONE, (), (), turn.block()))
    before, report = Function("f", (a, b), p.block()), PassReport()
    usual = run_passes(before, CHECKED_PASSES, report, "usual")
    general = run_passes(before, CHECKED_PASSES, None, "general")
    assert report.guarded and [let.op.failure for let in usual.statements() if isinstance(let.op, Check)] == [GENERAL]
    assert not any(isinstance(let.op, For) for let in usual.body.statements)
    for function in (usual, general):
        first, second = np.zeros((3, 4)), np.ones((3, 6))
        run_function(function, [first, second])
        assert first.tolist() == [[0, 1, 2, 3]] * 3
    with pytest.raises(IndexError):
        run_function(general, [np.zeros((3, 6)), np.ones((3, 4))])
    with pytest.raises(UnusualExtentsError):
        run_function(usual, [np.zeros((3, 6)), np.ones((3, 4))])


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
    first = ["sink", "simplify", "cse", "dce"]  # there are no loops, masks or remainders
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
