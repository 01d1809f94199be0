"""Control flow and the ownership of arrays that flow through it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base.types import BOOL, FLOAT64, PYINT, Array
from parakeet_py.imp import ir
from parakeet_py.imp.check import IllFormed, check_function
from parakeet_py.imp.interpret import BrokenInvariant, run_function
from parakeet_py.imp.lower.function import lower
from parakeet_py.imp.storage.allocations import report
from parakeet_py.imp.storage.may_alias import PYTHON
from parakeet_py.typed_ir.ir import Block, Const, For, If, Opaque, Operand, Var, ViewAxis, While
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.imp_programs import agree, array, function, made, scalar, statements

ZERO, ONE = index_const(0), index_const(1)
TWO = Const(2.0, FLOAT64)
VECTOR = Array("float64", 1)


def _scaled(w: Writer, x: Var, by: Operand = TWO) -> Var:
    return w.map1((w.dim(x),), lambda v, i: v.prim("mul", v.load(x, i), by))


def _for(w: Writer, stop: Operand, inits: list[Operand], types: list[Any], body: Any, stoppable: bool = False) -> Any:
    index = Var("t", PYINT)
    params = tuple(Var("c", kind) for kind in types)
    inner = Writer()
    block = inner.block(*body(inner, index, *params))
    inner_block = Block(tuple(inner.statements), block.results)
    outs = tuple(Var("c", kind) for kind in ([BOOL] if stoppable else []) + types)
    w.let(For(index, ZERO, stop, ONE, params, tuple(inits), inner_block, stoppable), *outs)
    return outs


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_carried_arrays_that_trade_places(count: int) -> None:
    def body(w: Writer, x: Var, y: Var, k: Var) -> list[Operand]:
        def step(v: Writer, t: Var, a: Var, b: Var) -> list[Operand]:
            return [b, _scaled(v, a)]

        return list(_for(w, k, [x, y], [VECTOR, VECTOR], step))

    code = function([array("x", 1), array("y", 1), scalar("k")], body)
    agree(code, np.arange(3.0), np.arange(3.0) + 10, count)


def test_carried_arrays_that_only_trade_places() -> None:
    def body(w: Writer, x: Var, k: Var) -> list[Operand]:
        made_first, made_second = _scaled(w, x), _scaled(w, x, Const(3.0, FLOAT64))
        return list(_for(w, k, [made_first, made_second], [VECTOR, VECTOR], lambda v, t, a, b: [b, a]))

    for count in range(4):
        agree(function([array("x", 1), scalar("k")], body), np.arange(3.0), count)


def test_an_unchanged_parameter_is_no_cell() -> None:
    def body(w: Writer, x: Var, k: Var) -> list[Operand]:
        def step(v: Writer, t: Var, a: Var, s: Var) -> list[Operand]:
            return [a, v.prim("add", s, v.load(a, ZERO))]

        return list(_for(w, k, [x, TWO], [VECTOR, FLOAT64], step))

    code = agree(function([array("x", 1), scalar("k")], body), np.arange(3.0) + 1, 3)
    assert len(statements(code, ir.Declare)) == 1


def test_a_stopped_loop() -> None:
    def body(w: Writer, x: Var, k: Var) -> list[Operand]:
        def step(v: Writer, t: Var, a: Var) -> list[Operand]:
            following = _scaled(v, a)
            stop = v.prim("gt", v.load(following, ONE), Const(20.0, FLOAT64), type_=BOOL)
            return [stop, following]

        return list(_for(w, k, [x], [VECTOR], step, stoppable=True))

    code = function([array("x", 1), scalar("k")], body)
    for count in (0, 2, 9):
        agree(code, np.arange(3.0), count)


def test_while_over_a_temporary_in_its_condition() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        param, out = Var("a", VECTOR), Var("a", VECTOR)
        head, inner = Writer(), Writer()
        shown = _scaled(head, param)
        condition = head.prim("lt", head.load(shown, ONE), Const(50.0, FLOAT64), type_=BOOL)
        block = inner.block(_scaled(inner, param))
        inner_block = Block(tuple(inner.statements), block.results)
        w.let(While((param,), (x,), head.block(condition), inner_block), out)
        return [out]

    agree(function([array("x", 1)], body), np.arange(3.0))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_gate_between_a_view_and_a_new_array(flag: int) -> None:
    def body(w: Writer, x: Var, k: Var) -> list[Operand]:
        then, orelse = Writer(), Writer()
        first = _scaled(then, x)
        tail = orelse.view(x, (ONE,), [ViewAxis(0, index_const(2), ONE)], "C")
        out = Var("v", Array("float64", 1, "A"))
        w.let(If(w.prim("gt", k, ZERO), then.block(first), orelse.block(tail)), out)
        return [out, _scaled(w, out), out]

    agree(function([array("x", 1), scalar("k")], body), np.arange(4.0), flag)


def _reversed(w: Writer, x: Var) -> Var:
    n = w.dim(x)

    def point(v: Writer, i: Operand) -> Operand:
        return v.load(x, v.prim("sub", v.prim("sub", n, ONE), i))

    return w.map1((n,), point)


def test_a_chain_of_elementwise_temporaries_is_one_array() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        value = x
        for _ in range(5):
            value = _scaled(w, value)
        return [value]

    assert made(agree(function([array("x", 1)], body), np.arange(4.0))) == 1


def test_memory_is_not_reused_while_somebody_needs_it() -> None:
    def body(w: Writer, x: Var, k: Var) -> list[Operand]:
        first = _scaled(w, x)
        second = _scaled(w, first)
        third = _scaled(w, first)
        part = w.view(second, (ZERO,), [ViewAxis(0, ONE, ONE)], "C")
        fourth = _scaled(w, second)
        out = Var("v", VECTOR)
        fifth = _scaled(w, third)
        w.let(If(w.prim("gt", k, ZERO), Block((), (third,)), Block((), (fourth,))), out)
        return [part, fourth, fifth, out]

    code = function([array("x", 1), scalar("k")], body)
    for flag in (0, 1):
        agree(code, np.arange(4.0), flag)


def test_memory_is_not_reused_where_a_loop_stores_again() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        old, n = _scaled(w, x), w.dim(x)
        new = w.alloc("float64", n)

        def point(v: Writer, i: Operand) -> None:
            inner = Writer()
            task = Var("task", PYINT)
            inner.store(new, (i,), inner.prim("mul", inner.load(old, i), TWO))
            v.let(For(task, ZERO, index_const(3), ONE, (), (), inner.block()))

        w.map((n,), point)
        return [new]

    assert made(agree(function([array("x", 1)], body), np.arange(4.0))) == 2


def test_a_chain_of_temporaries_holds_two_at_a_time() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        value = x
        for _ in range(5):
            value = _reversed(w, value)
        return [value]

    code = agree(function([array("x", 1)], body), np.arange(4.0))
    held = most = 0
    for statement in code.body.statements:
        match statement:
            case ir.Let(_, ir.NewArray()):
                held += 1
                most = max(most, held)
            case ir.Release():
                held -= 1
    assert (most, held) == (2, 1)


def test_results_that_are_the_same_array_or_a_parameter() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        value = _scaled(w, x)
        part = w.view(value, (ZERO,), [ViewAxis(0, ONE, ONE)], "C")
        return [value, value, part, x]

    agree(function([array("x", 1)], body), np.arange(4.0))


def test_results_of_python_are_released() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        out, other = Var("o", VECTOR), Var("p", VECTOR)
        w.let(Opaque(0, (x,)), out)
        w.let(Opaque(0, (out,)), other)
        return [_scaled(w, other)]

    code = agree(function([array("x", 1)], body), np.arange(4.0), opaque=lambda site, args: [args[0] + 1])
    opaque = [statement.outs[0] for statement in statements(code, ir.Opaque)]
    assert all(PYTHON in code.roots[out] and code.roots[code.params[0]] <= code.roots[out] for out in opaque)


def test_roots() -> None:
    def body(w: Writer, x: Var, y: Var, k: Var) -> list[Operand]:
        view = w.view(x, (ZERO,), [ViewAxis(0, ONE, ONE)], "C")
        out = Var("v", VECTOR)
        w.let(If(w.prim("gt", k, ZERO), Block((), (x,)), Block((), (y,))), out)
        return [view, out, _scaled(w, x)]

    code = lower(function([array("x", 1), array("y", 1), scalar("k")], body))
    x, y, _ = code.params
    view, out, new = code.results
    roots = code.roots
    assert roots[x].isdisjoint(roots[y])
    assert roots[view] == roots[x] and roots[out] == roots[x] | roots[y]
    assert roots[new].isdisjoint(roots[x] | roots[y])


def test_report_names_sizes() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        return [_reversed(w, _scaled(w, x))]

    storage = report(lower(function([array("x", 1)], body)))
    assert [one.bytes for one in storage.temporaries] == ["x.shape[0] * 8"]
    assert [one.bytes for one in storage.results] == ["x.shape[0] * 8"]
    assert [one.size for one in storage.results] == [None]
    known = report(lower(function([array("x", 1)], body)), ["points"], [np.zeros(5)])
    assert [str(one).partition(": ")[2] for one in known.results] == ["40 bytes on the heap (points.shape[0] * 8)"]


def test_report_of_sizes_beyond_64_bits() -> None:
    @accelerate
    def repeated(x, n):
        return np.repeat(x, n)

    storage = repeated.explain(np.arange(3), 2**62).storage
    assert [(one.bytes, one.size) for one in storage.results] == [("(x.shape[0] * n) * 8", None)]


# ---- the checker and the interpreter notice what is wrong ------------------------------------------------------------


def _changed(code: ir.Function, change: Any) -> ir.Function:
    body = ir.Block(tuple(one for old in code.body.statements for one in change(old)))
    return ir.Function(code.name, code.params, body, code.results, code.failures, code.roots)


def _simple() -> ir.Function:
    return lower(function([array("x", 1)], lambda w, x: [_reversed(w, _scaled(w, x))]))


def test_a_missing_release_is_a_leak() -> None:
    leaking = _changed(_simple(), lambda old: [] if isinstance(old, ir.Release) else [old])
    with pytest.raises(BrokenInvariant, match="still holds"):
        run_function(leaking, [np.arange(3.0)])


def test_an_early_release_is_found_out() -> None:
    def change(old: Any) -> list[Any]:
        if isinstance(old, ir.Release):
            return []
        is_new = isinstance(old, ir.Let) and isinstance(old.rhs, ir.NewArray)
        return [old, ir.Release(old.out)] if is_new else [old]

    with pytest.raises(BrokenInvariant, match="was freed"):
        run_function(_changed(_simple(), change), [np.arange(3.0)])


def test_the_checker_lists_all_errors() -> None:
    def change(old: Any) -> list[Any]:
        is_new = isinstance(old, ir.Let) and isinstance(old.rhs, ir.NewArray)
        return [ir.Break()] if is_new else [old]

    with pytest.raises(IllFormed) as caught:
        check_function(_changed(_simple(), change))
    text = str(caught.value)
    assert "break outside of a loop" in text and "is not bound here" in text


def test_the_checker_refuses_heap_memory_in_a_region() -> None:
    code = _simple()
    (new, *_) = [s for s in statements(code, ir.Let) if isinstance(s.rhs, ir.NewArray)]
    copy = ir.Let(Var("other", new.out.type), new.rhs, new.pos)

    def change(old: Any) -> list[Any]:
        if not isinstance(old, ir.Parallel):
            return [old]
        body = ir.Block((copy, *old.body.statements))
        return [ir.Parallel(old.lo, old.hi, old.extent, old.grain, old.work, body, old.name)]

    with pytest.raises(IllFormed, match="heap inside a region"):
        check_function(_changed(code, change))


def test_memory_of_a_chain() -> None:
    code = lower(function([array("x", 1)], lambda w, x: [_scaled(w, x)]))
    assert made(code) == 1 and not statements(code, ir.Release)
