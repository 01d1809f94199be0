"""Each pass of the typed IR alone: a small program before and after it, and one that it has to leave as it is.

`test_pipeline` looks at what all passes together leave. Here a program goes through one pass; both versions are
checked and run on the interpreter. At the end: every pass of the list is looked at, and a pass that breaks the IR is
found where it does.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.config import Config
from parakeet_py.base.types import BOOL, FLOAT64, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Array, Scalar
from parakeet_py.typed_ir import pipeline
from parakeet_py.typed_ir.check import InvalidTypedIR, check_function
from parakeet_py.typed_ir.interpret import run_function
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
    Prim,
    Store,
    Var,
    View,
    While,
    walk,
)
from parakeet_py.typed_ir.passes.loops import shared_matrices, time_tiles
from parakeet_py.typed_ir.pipeline import PASSES, run_passes
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.typed_ir_programs import DATA, GRID, ONE, OTHER, TWO, ZERO, Program, accumulate, array, loop, real


def only(name: str, p: Program, *results: Operand, **args: Any) -> tuple[Function, Function]:
    """The program before and after one pass; both are well-formed and do the same to the arguments."""
    run = next(one.run for one in PASSES if one.name == name)
    before = Function("f", p.params, p.block(*results))
    check_function(before)
    after = run(before)
    check_function(after)
    mine, theirs = copy.deepcopy(list(args.values())), copy.deepcopy(list(args.values()))
    for want, got in zip(outcome(before, mine), outcome(after, theirs), strict=True):
        assert np.array_equal(want, got)
    for want, got in zip(mine, theirs, strict=True):
        assert np.array_equal(want, got)
    return before, after


def outcome(function: Function, args: list[Any]) -> list[Any]:
    try:
        return list(run_function(function, args))
    except Exception as error:
        return [repr(error)]


def names(function: Function) -> list[str]:
    """The operations of a function in the order of its text: kinds of operators, names of primitives."""
    return [let.op.name if isinstance(let.op, Prim) else type(let.op).__name__ for let in function.statements()]


def top(function: Function) -> list[str]:
    return [let.op.name if isinstance(let.op, Prim) else type(let.op).__name__ for let in function.body.statements]


def count(function: Function) -> Counter[str]:
    return Counter(names(function))


@pytest.fixture
def x() -> Var:
    return array("x")


@pytest.fixture
def y() -> Var:
    return array("y")


# ---- sink ------------------------------------------------------------------------------------------------------------


def test_operators_sink_below_checks(x: Var, y: Var) -> None:
    p = Program(x, y)
    n, m = p.dim(x), p.dim(y)
    t = p.each([n], "exp", x)
    p.check(p.prim("eq", n, m), "ValueError", "no")
    before, after = only("sink", p, p.each([n], "add", t, y), x=DATA, y=OTHER)
    assert top(before) == ["Dim", "Dim", "Map", "eq", "Check", "Map"]
    assert top(after) == ["Dim", "Dim", "eq", "Check", "Map", "Map"]


def test_an_operator_does_not_sink_below_a_write_to_what_it_reads(x: Var, y: Var) -> None:
    p = Program(x, y)
    t = p.each([p.dim(x)], "exp", x)
    p.store(x, [ZERO], real(9.0))
    p.store(y, [ZERO], real(9.0))
    _, after = only("sink", p, t, x=DATA, y=OTHER)
    assert top(after) == ["Dim", "Map", "Store", "Store"]


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


# ---- partial-counts --------------------------------------------------------------------------------------------------


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


# ---- simplify --------------------------------------------------------------------------------------------------------


def test_views_of_views_and_decided_checks_go(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    m = p.prim("maximum", p.minus(n, 1), ZERO, type_=PYINT)
    tail = p.part(p.part(x, ONE, m), ZERO, m)
    p.check(p.prim("le", m, n, type_=PYBOOL), "IndexError", "never")
    before, after = only("simplify", p, p.each([m], "add", tail, real(0.0)), x=DATA)
    assert count(before)["View"] == 2 and count(before)["Check"] == 1
    assert not any(isinstance(let.op, View) and let.op.base is not x for let in after.statements())
    assert count(after)["Check"] == 0


def test_a_branch_on_a_literal_is_its_block_and_an_open_one_stays(x: Var) -> None:
    for condition, left in ((Const(True, PYBOOL), 0), (None, 1)):
        p = Program(x)
        flag = condition or p.prim("gt", p.dim(x), index_const(3), type_=PYBOOL)
        yes, no = Program(), Program()
        yes.store(x, [ZERO], real(1.0))
        no.store(x, [ZERO], real(2.0))
        p.let(If(flag, yes.block(), no.block()))
        _, after = only("simplify", p, x=DATA)
        assert count(after)["If"] == left and count(after)["Store"] == 1 + left


def test_floats_keep_what_zeros_and_nan_would_tell(x: Var) -> None:
    p = Program(x)
    value = p.load(x, ZERO)
    kept = p.prim("mul", p.prim("add", value, real(0.0)), real(0.0))
    dropped = p.prim("mul", value, real(1.0))
    _, after = only("simplify", p, kept, dropped, x=np.array([-0.0]))
    assert count(after)["add"] == 1 and count(after)["mul"] == 1  # -0.0 + 0.0 is 0.0, nan * 0.0 is nan


# ---- cse -------------------------------------------------------------------------------------------------------------


def test_a_value_is_computed_once_and_an_element_read_once_between_writes(x: Var) -> None:
    p = Program(x)
    first = p.prim("exp", p.load(x, ZERO))
    again = p.prim("exp", p.load(x, ZERO))
    p.store(x, [ZERO], first)
    later = p.prim("exp", p.load(x, ZERO))
    before, after = only("cse", p, first, again, later, x=DATA)
    assert count(before)["Load"] == 3 and count(after) == Counter({"Load": 1, "exp": 2, "Store": 1})


def test_a_write_through_another_view_counts(x: Var) -> None:
    p = Program(x)
    whole = p.part(x, ZERO, p.dim(x))
    first = p.load(x, ZERO)
    p.store(whole, [ZERO], real(7.0))
    _, after = only("cse", p, first, p.load(x, ZERO), x=DATA)
    assert count(after)["Load"] == 2


# ---- dce -------------------------------------------------------------------------------------------------------------


def test_what_nothing_needs_goes_and_effects_stay(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    p.each([n], "exp", x)
    own = p.alloc("float64", n)
    p.store(own, [ZERO], real(1.0))
    p.store(x, [ZERO], real(1.0))
    p.check(p.prim("gt", n, TWO, type_=PYBOOL), "ValueError", "no")
    before, after = only("dce", p, x=DATA)
    assert count(before)["Map"] == count(before)["Alloc"] == 1 and count(before)["Store"] == 2
    assert top(after) == ["Dim", "Store", "gt", "Check"]


def test_memory_that_is_read_keeps_its_stores(x: Var) -> None:
    p = Program(x)
    own = p.alloc("float64", ONE)
    p.store(own, [ZERO], real(3.0))
    before, after = only("dce", p, p.load(own, ZERO), x=DATA)
    assert after is before


def test_a_fill_that_nobody_sees_is_memory_alone(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)
    whole, part = (p.map1([n], lambda w, i: real(0.0)) for _ in range(2))
    p.assign(whole, [n], x)
    p.assign(part, [p.prim("floordiv", n, TWO, type_=PYINT)], x)
    before, after = only("dce", p, whole, part, x=DATA)
    assert count(before)["Map"] == 4 and count(before)["Alloc"] == 0
    assert count(after)["Map"] == 3 and count(after)["Alloc"] == 1


def test_nor_does_anybody_see_it_in_a_loop(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)

    def body(b: Program, i: Var) -> None:
        made = b.map1([n], lambda w, i: real(0.0))
        b.assign(made, [n], x)
        b.store(x, [ZERO], b.load(made, ZERO))

    loop(p, n, body)
    before, after = only("dce", p, x=DATA)
    assert count(before)["Map"] == 2 and count(after)["Map"] == 1 and count(after)["Alloc"] == 1


# ---- looks -----------------------------------------------------------------------------------------------------------


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
    before, after = only("looks", p, x=DATA, n=3)
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
    before, after = only("looks", p, x=DATA, n=3)
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


# ---- equal-extents ---------------------------------------------------------------------------------------------------


def broadcast(p: Program, x: Var, y: Var, *, open_: bool) -> Var:
    n, m = p.dim(x), p.dim(y)
    one = p.prim("eq", m, ONE)
    equal = p.prim("eq", n, m)
    p.check(p.prim("or", equal, one) if open_ else equal, "ValueError", "broadcast")

    def add(w: Writer, i: Operand) -> Operand:
        place = w.prim("select", one, ZERO, i, type_=PYINT) if open_ else i
        return w.prim("add", w.load(x, i), w.load(y, place))

    return p.map1((n,), add)


def test_the_body_is_copied_for_equal_extents(x: Var, y: Var) -> None:
    p = Program(x, y)
    before, after = only("equal-extents", p, broadcast(p, x, y, open_=True), x=DATA, y=OTHER)
    assert count(before)["Map"] == 1 and count(after)["Map"] == 2
    (choice,) = [let.op for let in after.body.statements if isinstance(let.op, If)]
    assert any(isinstance(let.op, Map) for let in walk(choice.then))
    assert any(isinstance(let.op, Map) for let in walk(choice.orelse))


def test_extents_that_are_checked_to_be_equal_need_no_copy(x: Var, y: Var) -> None:
    p = Program(x, y)
    before, after = only("equal-extents", p, broadcast(p, x, y, open_=False), x=DATA, y=OTHER)
    assert after is before


# ---- hoist-checks ----------------------------------------------------------------------------------------------------


def checked_loop(p: Program, stop: Operand, index: Callable[[Program, Var], Operand]) -> None:
    x, y = p.params[:2]
    extent = p.dim(y)

    def body(b: Program, i: Var) -> None:
        place = index(b, i)
        b.check(b.prim("lt", place, extent, type_=PYBOOL), "IndexError", "out of range")
        b.store(x, [i], b.load(y, place))

    loop(p, stop, body)


def test_a_check_that_follows_the_index_is_tested_before_the_loop(x: Var, y: Var) -> None:
    p = Program(x, y)
    checked_loop(p, p.dim(x), lambda b, i: i)
    before, after = only("hoist-checks", p, x=DATA, y=OTHER)
    only("hoist-checks", p, x=DATA, y=OTHER[:3])  # fails midway
    assert count(before)["For"] == 1 and count(after)["For"] == 2
    assert "For" not in top(after) and "If" in top(after)


def test_a_check_of_what_is_read_in_the_loop_stays(x: Var, y: Var) -> None:
    which = array("which", 1, "int64")
    p = Program(x, y, which)
    checked_loop(p, p.dim(x), lambda b, i: b.cast(b.load(which, i), "int64"))
    before, after = only("hoist-checks", p, x=DATA, y=OTHER, which=np.arange(8)[::-1].copy())
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


# ---- fuse ------------------------------------------------------------------------------------------------------------


def test_a_producer_is_computed_where_it_is_read(x: Var, y: Var) -> None:
    p = Program(x, y)
    n = p.dim(x)
    t = p.each([n], "exp", p.each([n], "add", x, y))
    (total,) = p.reduce((), (n,), lambda w, i: w.load(t, i), "add", (real(0.0),))
    before, after = only("fuse", p, total, x=DATA / 9, y=OTHER / 99)
    assert count(before)["Map"] == 2
    assert count(after)["Map"] == 0 and count(after)["Reduce"] == 1 and count(after)["Load"] == 2


def test_expensive_work_is_not_repeated(x: Var, y: Var) -> None:
    p = Program(x, y)
    n, m = p.dim(x), p.dim(y)
    t = p.each([n], "exp", x)
    table = p.map1((n, m), lambda w, i, j: w.prim("add", w.load(t, i), w.load(y, j)))
    before, after = only("fuse", p, table, x=DATA, y=OTHER)
    assert count(before)["Map"] == count(after)["Map"] == 2


def test_a_store_that_would_be_read_after_keeps_its_snapshot(x: Var) -> None:
    p = Program(x)
    m = p.minus(p.dim(x), 1)
    p.assign(p.part(x, ONE, m), [m], p.each([m], "mul", p.part(x, ZERO, m), real(2.0)))
    _, after = only("fuse", p, x=DATA)
    assert count(after)["Map"] == 2


# ---- low-bits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "by", "left"), [("and", 2**32 - 1, 0), ("mod", 2**20, 0), ("and", -8, 2), ("mod", 12, 2)]
)
def test_masked_arithmetic_may_wrap(name: str, by: int, left: int) -> None:
    n = Var("n", PYINT)
    p = Program(n)
    product = p.prim("mul_checked", n, index_const(1103515245), type_=PYINT)
    result = p.prim(name, p.prim("add_checked", product, n, type_=PYINT), index_const(by), type_=PYINT)
    _, after = only("modular-arithmetic", p, result, n=12345)
    assert sum(one in ("mul_checked", "add_checked") for one in names(after)) == left


# ---- magnitudes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_loop", "name", "limit"), [(True, "gt", 2.0), (True, "le", 2.0), (False, "gt", 2.0)])
@pytest.mark.parametrize("start", [0.3 + 0.5j, 2 + 0j, 1.2 + 1.6j, np.nextafter(2, 3) + 0j, complex("inf+1j"), 1e300j])
def test_squares_decide_comparisons_of_absolute_values(start: complex, in_loop: bool, name: str, limit: float) -> None:
    z, count_, i = Var("z", PYCOMPLEX), Var("count", PYINT), Var("i", PYINT)
    p = Program(z)
    body, total = Writer() if in_loop else p, Var("total", PYINT)
    outside = body.prim(name, body.prim("abs", z), Const(limit, PYFLOAT), type_=PYBOOL)
    result = body.prim("select", outside, ONE, ZERO, type_=PYINT)
    if in_loop:
        following = body.prim("add", count_, result, type_=PYINT)
        p.let(For(i, ZERO, TWO, ONE, (count_,), (ZERO,), body.block(following)), total)
    _, after = only("abs-comparisons", p, total if in_loop else result, z=start)
    assert ("If" in names(after)) == in_loop


# ---- counts, masked-updates ------------------------------------------------------------------------------------------

CHOSEN = np.median(DATA) < DATA


def selected(p: Program, n: Operand, mask: Var, x: Var) -> tuple[Var, Var]:
    """The length of x[mask], and its elements."""
    outs = Var("count", PYINT), Var("chosen", Array("float64", 1, "C"))
    (i,), body = (Var("i", PYINT),), Writer()
    p.let(Compress((n,), (i,), body.block(body.load(mask, i), body.load(x, i))), *outs)
    return outs


@pytest.mark.parametrize("written", [False, True])
def test_selections_by_one_mask_have_one_length(x: Var, y: Var, written: bool) -> None:
    mask = array("mask", dtype="bool")
    p = Program(x, y, mask)
    n = p.dim(x)
    first, _ = selected(p, n, mask, x)
    if written:
        p.store(mask, (ONE,), Const(True, Scalar("bool")))
    second, _ = selected(p, n, mask, y)
    _, after = only("selection-lengths", p, first, second, x=DATA, y=OTHER, mask=CHOSEN.copy())
    assert (after.body.results[0] is after.body.results[1]) == (not written)


@pytest.mark.parametrize("written", [None, "mask", "y"])
def test_selections_by_one_mask_are_made_together(x: Var, y: Var, written: str | None) -> None:
    mask = array("mask", dtype="bool")
    p = Program(x, y, mask)
    n = p.dim(x)
    first, chosen = selected(p, n, mask, x)
    if written is not None:
        p.store(*((mask, (ONE,), Const(True, Scalar("bool"))) if written == "mask" else (y, (ONE,), real(7.0))))
    second, other = selected(p, n, mask, y)
    _, again = selected(p, n, mask, y)
    total = p.each([second], "add", other, again)
    results = (first, second, chosen, total)
    _, after = only("joined-selections", p, *results, x=DATA, y=OTHER.copy(), mask=CHOSEN.copy())
    operators = [let for let in after.statements() if isinstance(let.op, Compress)]
    assert len(operators) == (1 if written is None else 2)
    assert len(operators[-1].outs) == (4 if written is None else 3)


@pytest.mark.parametrize("written", [False, True])
def test_masks_that_are_computed_alike_are_one(x: Var, written: bool) -> None:
    p = Program(x)
    n = p.dim(x)
    lengths = []
    for turn in range(2):
        mask = p.map1((n,), lambda w, i: w.prim("gt", w.load(x, i), real(0.5)))
        lengths.append(selected(p, n, mask, x)[0])
        if written and not turn:
            p.store(x, (ONE,), real(9.0))
    _, after = only("selection-lengths", p, *lengths, x=DATA.copy())
    assert (after.body.results[0] is after.body.results[1]) == (not written)


@pytest.mark.parametrize("way", ["plain", "divided", "dear", "written", "shifted"])
def test_selected_elements_are_changed_where_they_are(x: Var, y: Var, way: str) -> None:
    mask = array("mask", dtype="bool")
    p = Program(x, y, mask)
    n = p.dim(x)
    count_, chosen = selected(p, n, mask, x)
    places, (i,), body = Var("places", Array("int64", 1, "C")), (Var("i", PYINT),), Writer()
    p.let(Compress((n,), (i,), body.block(body.load(mask, i), i)), Var("length", PYINT), places)

    def value(w: Writer, k: Var) -> Operand:
        element = w.load(chosen, k)
        return (
            w.prim("exp", element)
            if way == "dear"
            else w.prim("div" if way == "divided" else "mul", element, real(3.0))
        )

    new = p.map1([count_], value)
    if way == "written":
        p.store(x, (ZERO,), real(1.0))
    target = p.part(y, ZERO, n) if way == "shifted" else x
    p.map((count_,), lambda w, k: w.store(target, (w.load(places, k),), w.load(new, k)))
    _, after = only("masked-updates", p, x=DATA.copy(), y=OTHER.copy(), mask=CHOSEN.copy())
    assert ("If" in names(after)) == (way != "written")
    assert ("Reduce" in names(after)) == (way == "dear")  # how many there are


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


# ---- promote ---------------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(shared_matrices, "product_parts", lambda: 1)
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


# ---- wrap ------------------------------------------------------------------------------------------------------------


def test_remainders_of_what_is_hardly_out_of_range_are_choices(x: Var) -> None:
    p = Program(x)
    n = p.dim(x)

    def body(w: Writer, i: Var) -> Operand:
        places = [w.prim("mod", w.prim("add", i, index_const(k), type_=PYINT), n, type_=PYINT) for k in (-1, 1, 2)]
        return w.prim("add", w.prim("add", w.load(x, places[0]), w.load(x, places[1])), w.load(x, places[2]))

    before, after = only("index-remainders", p, p.map1([n], body), x=DATA)
    names = [let.op.name for let in after.statements() if isinstance(let.op, Prim)]
    # n may be 1, so that i + 2 may be out of range by more
    assert names.count("select") == 2 and names.count("mod") == 1
    assert "select" not in [let.op.name for let in before.statements() if isinstance(let.op, Prim)]


# ---- all of them -----------------------------------------------------------------------------------------------------


def test_every_pass_is_looked_at_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    looked_at = {one.run for one in PASSES if f'only("{one.name}"' in source or f'"{one.name}", "unroll' in source}
    looked_at |= {one.run for one in PASSES if f'"{one.name}",\n' in source}
    assert {one.run for one in PASSES} == looked_at


def broken_by(function: Function) -> Function:
    """What a wrong pass might make: a result that nothing binds."""
    return replace(function, body=replace(function.body, results=(Var("lost", FLOAT64),)))


@pytest.mark.parametrize("position", range(len(PASSES)), ids=[one.name for one in PASSES])
def test_the_checker_runs_after_each_pass(
    position: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = replace(PASSES[position], run=broken_by, after=())
    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:position], wrong, *PASSES[position + 1 :]))
    x = array("x")
    p = Program(x)
    function = Function("f", (x,), p.block(p.each([p.dim(x)], "exp", x)))
    with caplog.at_level(logging.ERROR, "parakeet_py"), pytest.raises(InvalidTypedIR, match=r"lost.* is not bound"):
        run_passes(function, Config(check=True))
    assert f"the typed IR of f is broken after {wrong.name}" in caplog.text
    run_passes(function, Config(check=False, stop_pass=wrong.name))  # no checker looks
