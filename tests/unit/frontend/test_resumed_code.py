"""Functions that are stopped after some operation, and go on as Python code that begins there."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend import ssa, to_ssa
from parakeet_py.frontend.evaluate.evaluator import Evaluation, Hooks
from parakeet_py.frontend.evaluate.python_code import Writer
from parakeet_py.frontend.evaluate.resumed_code import Way, live_at, resume, way_to
from tests.helpers.ssa_programs import define
from tests.unit.frontend.test_random_control_flow import PRELUDE, run
from tests.unit.frontend.test_random_control_flow import Writer as Programs


class Stopped(BaseException):
    """A function has been stopped."""

    def __init__(self, way: Way, live: Sequence[Any], items: Sequence[Any], value: Any) -> None:
        self.way, self.live, self.items, self.value = way, live, items, value


class StoppingWriter(Writer):
    """Makes code that calls `stop` after each operation, with all that is needed to go on there."""

    def __init__(self, function: ssa.Function, stop: Callable[..., None]) -> None:
        super().__init__(function)
        self.stop = self.constant(stop)
        self.nested = Writer

    def operation(self, let: ssa.Let, out: str | None) -> list[ast.stmt]:
        way = way_to(self.function, let)
        loops = [one.op for one in way if isinstance(one.op, ssa.For)]
        live = self.tuple_of([self.read(var) for var in live_at(self.function, way)])
        items = self.tuple_of([self.load(f"items.{op.item.uid}") for op in loops])
        value = self.literal(None) if out is None else self.load(out)
        return [
            *super().operation(let, out),
            self.set(None, self.call(self.stop, self.constant(way), live, items, value)),
        ]

    def repeated(
        self,
        op: ssa.For | ssa.While,
        outs: Sequence[ssa.Var],
        body: list[ast.stmt],
        item: ast.expr | None,
        items: ast.expr | None,
    ) -> list[ast.stmt]:
        if not isinstance(op, ssa.For) or items is None:
            return super().repeated(op, outs, body, item, items)
        name = f"items.{op.item.uid}"
        begin = self.set(name, self.call(self.predefined("iter"), items))
        return [begin, *super().repeated(op, outs, body, item, self.load(name))]


def stopped_at(python: FunctionType, number: int) -> tuple[Callable[..., Any], Callable[[], int]]:
    """The function, stopped after so many operations and resumed; and how many have been done before it was stopped."""
    function = to_ssa(python)
    done = 0

    def stop(*state: Any) -> None:
        nonlocal done
        done += 1
        if done == number:
            raise Stopped(*state)

    code = StoppingWriter(function, stop).finish()
    hooks = Hooks(Evaluation(None, None, [], tuple), code, python, (), (function,))
    first = hooks.made(python.__defaults__, python.__kwdefaults__)

    def call(*args: Any) -> Any:
        nonlocal done
        done = 0
        try:
            return first(*args)
        except Stopped as stopped:
            state = stopped
        return resume(function, python, state.way, state.live, lambda: state.value, state.items)

    return call, lambda: done


@pytest.mark.parametrize("closures", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_go_on_where_they_were_stopped(seed: int, closures: bool) -> None:
    source = random.Random(seed)
    for _ in range(6):
        lines = Programs(source, closures).block(3, False)
        python = define("\n".join(["def f(a, b):", *([PRELUDE] if closures else []), *lines, "    return (a, b, c)"]))
        scope = python.__globals__
        try:
            whole, count = stopped_at(python, -1)
        except UnsupportedError:
            continue
        for args in ((0, 1), (3, 2)):
            expected = run(python, scope, args)
            assert run(whole, scope, args) == expected
            for number in source.sample(range(1, count() + 1), min(count(), 6)):
                resumed, _ = stopped_at(python, number)
                assert run(resumed, scope, args) == expected, (number, "\n".join(lines))


def caught(x: Any, k: int) -> Any:
    total, seen = 0.0, []
    for i, v in enumerate(x):
        try:
            total += 10 / (v - k)
            seen.append(float(np.partition(x, i + 1)[0]))
        except ZeroDivisionError:
            total -= 1
        except ValueError as error:
            seen.append(str(error)[:4])
        while total > 3:
            total /= 2
    return total, seen, [v for v in x if v > k]


def items_of(x: Any, k: int) -> Any:
    for v in x:
        if v > k:
            yield v * 2
        yield from (v, k)


@pytest.mark.parametrize("number", range(1, 60, 3))
def test_handlers_and_generators(number: int) -> None:
    for python in (caught, items_of):
        resumed, _ = stopped_at(python, number)
        try:
            got: Any = resumed([1, 2, 3, 4], 2)
            got = got if python is caught else list(got)
        except Stopped:
            assert python is items_of  # stopped while it was consumed
            continue
        assert got == (caught([1, 2, 3, 4], 2) if python is caught else list(items_of([1, 2, 3, 4], 2)))


def test_entry_at_the_header_of_a_loop() -> None:
    def python(n: int) -> Any:
        total, last = 0, None
        for i in range(n):
            total += i
            last = i
            if total > 50:
                break
        else:
            total = -total
        return total, last

    function = to_ssa(python)
    (loop,) = [let for let in function.statements() if isinstance(let.op, ssa.For)]
    way = way_to(function, loop)
    for done in range(4):
        carried = {"total": sum(range(done)), "last": done - 1 if done else None}
        values = [carried.get(var.name, 20) for var in live_at(function, way)]
        assert resume(function, python, way, values, lambda: None, [iter(range(done, 20))]) == python(20)


def test_tracebacks_of_what_is_resumed() -> None:
    def python(x: Any) -> Any:
        y = len(x)
        return 1 // (y - y)

    resumed, _ = stopped_at(python, 1)
    with pytest.raises(ZeroDivisionError) as info:
        resumed([1])
    last = info.traceback[-1]
    assert (last.name, last.lineno) == ("python", python.__code__.co_firstlineno + 1)
