"""Interval arithmetic holds all values; intervals of what loops hand on hold what the loops compute."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable

import numpy as np
import pytest

from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir.ir import Const, For, Let, Operand, Prim, Var
from parakeet_py.typed_ir.passes.analysis.facts import Facts
from parakeet_py.typed_ir.passes.analysis.intervals import FULL, of_primitive
from parakeet_py.typed_ir.passes.analysis.ranges import Ranges, small_enough
from parakeet_py.typed_ir.rewrite import NOWHERE
from parakeet_py.typed_ir.semantics import evaluate
from parakeet_py.typed_ir.writer import Writer, index_const
from tests.helpers.typed_ir_programs import ONE, ZERO

NAMES = ("add", "sub", "mul", "minimum", "maximum", "floordiv", "mod", "and", "or", "xor", "shl", "shr")
ENDS = (-(2**63), -(2**40), -9, -2, -1, 0, 1, 2, 5, 31, 62, 70, 2**33, 2**63 - 1)


@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_in_its_interval(name: str) -> None:
    draw = random.Random(name)
    for _ in range(400):
        intervals = [tuple(sorted(draw.choices(ENDS, k=2))) for _ in range(2)]
        low, high = of_primitive(name, intervals)  # type: ignore[arg-type]
        for args in itertools.product(*[(a, b, draw.randint(a, b)) for a, b in intervals]):
            value = plain(name, *args)
            assert low <= value <= high or not FULL[0] <= value <= FULL[1], (name, intervals, args)


EXACT: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def plain(name: str, left: int, right: int) -> int:
    """Sums and products as Python's, all else as the primitive."""
    exact = EXACT.get(name)
    return exact(left, right) if exact else int(evaluate(name, [np.int64(left), np.int64(right)]))


def counted(param: Var, stop: Operand, body: Callable[[Writer, Var], Operand], start: int = 0) -> Let:
    index, writer = Var("i", PYINT), Writer()
    result = body(writer, index)
    loop = For(index, ZERO, stop, ONE, (param,), (Const(start, PYINT),), writer.block(result))
    return Let((Var("out", PYINT),), loop, NOWHERE)


def found(let: Let, **assumed: tuple[int, int]) -> tuple[tuple[int, int], Ranges]:
    names = {var.name: var for var in NUMBERS}
    ranges = Ranges(Facts({}), lambda operand: operand, {names[name]: at for name, at in assumed.items()})
    assert isinstance(let.op, For)
    ranges.loop(let.outs, let.op)
    return ranges.of(let.outs[0]), ranges


N, X = NUMBERS = Var("n", PYINT), Var("x", PYINT)


def prim(writer: Writer, name: str, *args: Operand) -> Var:
    return writer.prim(name, *args, type_=PYINT)


def test_remainders_stay_below_the_divisor() -> None:
    def body(w: Writer, i: Var) -> Operand:
        return prim(w, "mod", prim(w, "add_checked", prim(w, "mul_checked", x, index_const(1103515245)), i), N)

    x = Var("t", PYINT)
    let = counted(x, index_const(1000), body)
    assert found(let)[1].overflowing
    interval, ranges = found(let, n=(1, 2**31))
    assert interval == (0, 2**31 - 1) and not ranges.overflowing
    assert small_enough(Facts({}), lambda operand: operand, let) == {N: (-(2**31), 2**31)}


def test_steps_add_up_to_the_number_of_turns() -> None:
    def body(w: Writer, i: Var) -> Operand:
        return prim(w, "add_checked", total, prim(w, "mul_checked", i, i))

    total = Var("t", PYINT)
    let = counted(total, N, body)
    assert found(let, n=(0, 10))[0] == (0, 810)
    assert small_enough(Facts({}), lambda operand: operand, let) == {N: (-(2**20), 2**20)}


def test_growth_by_products_is_not_bounded() -> None:
    def body(w: Writer, i: Var) -> Operand:
        return prim(w, "mul_checked", grown, index_const(3))

    grown = Var("t", PYINT)
    let = counted(grown, index_const(100), body, 1)
    interval, ranges = found(let)
    assert interval[1] == 2**63 - 1 and ranges.overflowing
    assert small_enough(Facts({}), lambda operand: operand, let) == {}
    wrapped = counted(grown, index_const(100), lambda w, i: prim(w, "mul", grown, X), 1)
    assert found(wrapped, x=(3, 3))[0] == FULL
    assert isinstance(wrapped.op, For) and isinstance(wrapped.op.body.statements[0].op, Prim)
