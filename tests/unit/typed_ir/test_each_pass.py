"""Each pass of the typed IR alone: a small program before and after it, and one that it has to leave as it is.

`test_pipeline` looks at what all passes together leave. Here a program goes through one pass; both versions are
checked and run on the interpreter. At the end: every pass of the list is looked at, and a pass that breaks the IR is
found where it does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parakeet_py.base.config import Config
from parakeet_py.base.types import FLOAT64, PYBOOL, PYCOMPLEX, PYFLOAT, PYINT, Array, Scalar
from parakeet_py.typed_ir import pipeline
from parakeet_py.typed_ir.check import InvalidTypedIR
from parakeet_py.typed_ir.ir import (
    Compress,
    Const,
    For,
    Function,
    If,
    Map,
    Operand,
    Prim,
    Var,
    View,
    While,
    walk,
)
from parakeet_py.typed_ir.pipeline import PASSES, run_passes
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.one_pass import count, names, only, top
from tests.helpers.typed_ir_programs import DATA, ONE, OTHER, TWO, ZERO, Program, array, loop, real

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


def test_equal_loops_of_scalars_run_once(x: Var) -> None:
    p = Program(x)
    n, found = p.dim(x), []
    for start in (ONE, ONE, TWO):
        value, out = Var("value", PYINT), Var("power", PYINT)
        test, turn = Writer(), Writer()
        condition = test.prim("lt", value, n, type_=PYBOOL)
        p.let(While((value,), (start,), test.block(condition), turn.block(turn.prim("add", value, value))), out)
        found.append(out)
    _, after = only("cse", p, *found, x=DATA)
    assert count(after)["While"] == 2


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


# ---- modular-arithmetic ----------------------------------------------------------------------------------------------


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


# ---- abs-comparisons -------------------------------------------------------------------------------------------------


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


# ---- selection-lengths, masked-updates, joined-selections ------------------------------------------------------------

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


# ---- index-remainders ------------------------------------------------------------------------------------------------


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


def test_every_pass_is_looked_at() -> None:
    files = Path(__file__).parent.glob("test_each_*pass.py")
    source = "".join(file.read_text(encoding="utf-8") for file in files)
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
