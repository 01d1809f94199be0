"""Attributes of arguments that functions assign: in Python's order, also when an exception ends the call."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options
from parakeet_py.call.interpreters import run_imp, run_typed
from parakeet_py.signature.results import ResultStatic, ResultTuple, SetAttributes
from parakeet_py.signature.serialization import from_json, to_json
from tests.corpus import assert_same, outcome


class Part:
    __slots__ = ("n", "size")

    def __init__(self) -> None:
        self.n, self.size = 3, 0.5


class Body:
    def __init__(self) -> None:
        self.t, self.n = 0.0, 0
        self.x, self.v = np.arange(4.0), np.ones(4)
        self.best: Any = None
        self.part = Part()

    def step(self, dt: float) -> Any:
        self.x = self.x + self.v * dt
        self.t += dt
        self.n += 1
        return self.t, self.x

    def loop(self, k: int, dt: float) -> Any:
        for i in range(k):
            self.x = self.x + self.v * dt
            if i % 2:
                self.t += dt
            if self.t > 1:
                break
        else:
            self.n = -k
        while self.n < 0:
            self.n += 1
            self.v *= 2
        return self.n

    def add(self, k: int) -> int:
        self.n = self.n + k
        return self.n

    def calls(self, k: int) -> Any:
        a = self.add(k)
        while self.n < 20:
            a += self.add(2)
        return a, self.n, [self.n for _ in range(2)]

    def fails(self, i: int) -> Any:
        self.n += 1
        self.v[0] = 7.0
        self.t = self.x[i]
        self.n += 1
        return self.t

    def swap(self) -> Any:
        self.x, self.v = self.v, self.x
        return self.x

    def keep(self, y: Any) -> Any:
        if self.best is None or self.n > 0:
            self.best = y
        self.n += 1
        return y

    def another_type(self, x: int) -> Any:
        self.n = x * 0.5  # type: ignore[assignment]
        return self.n

    def early(self, k: int) -> Any:
        if k > 1:
            return self.n
        self.n = k
        if k > 0:
            raise ValueError("k is positive")
        self.t = 2.0
        return None

    def of_a_part(self, k: int) -> Any:
        self.part.n += k
        self.part.size = self.part.size * self.part.n
        return self.part

    def itself(self) -> Any:
        self.t = self.t + 1
        return self


@dataclass(slots=True)
class Pair:
    a: float
    b: int


def scaled(p: Pair, k: float) -> float:
    p.a *= k
    p.b = p.b + 1
    return p.a + p.b


def contents(value: Any) -> Any:
    """What can be compared of an object."""
    names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
    if names:
        return [contents(getattr(value, name)) for name in names]
    return value.copy() if isinstance(value, np.ndarray) else value


CASES: list[tuple[Callable[..., Any], type, list[tuple[Any, ...]]]] = [
    (Body.step, Body, [(0.5,), (0.25,)]),
    (Body.loop, Body, [(5, 0.5), (3, 0.25), (0, 1.0)]),
    (Body.calls, Body, [(3,)]),
    (Body.fails, Body, [(1,), (9,), (-1,)]),
    (Body.swap, Body, [()]),
    (Body.keep, Body, [(3.0,), (4.0,), (np.arange(3.0),)]),
    (Body.another_type, Body, [(3,)]),
    (Body.early, Body, [(0,), (1,), (2,)]),
    (Body.of_a_part, Body, [(2,)]),
    (Body.itself, Body, [()]),
    (scaled, lambda: Pair(1.5, 2), [(2.0,)]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("where", ["native", "emulated", "typed", "imp"])
@pytest.mark.parametrize("function, make, calls", CASES, ids=[case[0].__name__ for case in CASES])
def test_as_python(function: Callable[..., Any], make: Callable[[], Any], calls: Any, where: str) -> None:
    accelerated = accelerate(function)
    runs = {"typed": run_typed, "imp": run_imp}
    mine, theirs = make(), make()
    for args in calls * 2:
        expected = outcome(function, (mine, *copy.deepcopy(args)))
        with options(check=True, devices="emulated" if where == "emulated" else "cpu"):
            if where in runs:
                actual = outcome(lambda *given: runs[where](accelerated, given), (theirs, *copy.deepcopy(args)))
            else:
                actual = outcome(accelerated, (theirs, *copy.deepcopy(args)))
        expected.args, actual.args = (contents(mine), *expected.args[1:]), (contents(theirs), *actual.args[1:])
        if isinstance(expected.result, Body | Part):
            assert actual.result is (theirs if expected.result is mine else theirs.part)
            expected.result = actual.result = None
        assert_same(expected, actual)
    assert not accelerated.fell_back and not accelerated.opaque_calls


def test_what_is_replaced_is_let_go() -> None:
    step, body = accelerate(Body.step), Body()
    step(body, 0.5)
    last = body.x
    before, counts = sys.getrefcount(last), []
    for _ in range(3):
        result = step(body, 0.5)
        counts.append(sys.getrefcount(result[1]))
    assert sys.getrefcount(last) == before - 1
    assert result[1] is body.x
    assert counts == [3, 3, 3]  # the result, the attribute and the argument of getrefcount


class Doubling:
    def __init__(self) -> None:
        self.y = 1.0

    @property
    def x(self) -> float:
        return self.y

    @x.setter
    def x(self, value: float) -> None:
        self.y = value * 2


class Watched:
    def __init__(self) -> None:
        self.__dict__["x"] = 1.0

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__[name] = value * 3  # type: ignore[operator]


def add_one(p: Any) -> Any:
    p.x = p.x + 1
    return p.x


def caught(p: Any, a: Any) -> Any:
    try:
        p.n += 1
        return a[p.n]
    except IndexError:
        return p.n


def of_two(p: Any, q: Any) -> Any:
    p.n = 5
    q.n += 1
    return p.n


def made_up(p: Any) -> Any:
    p.something = 3
    return p.something


@pytest.mark.parametrize(
    "function, make",
    [
        (add_one, lambda: (Watched(),)),
        (caught, lambda: (Body(), np.arange(1.0))),
        (of_two, lambda: (Body(),) * 2),
        (made_up, lambda: (Body(),)),
    ],
)
def test_what_is_left_to_python(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]]) -> None:
    mine, theirs = make(), make()
    accelerated = accelerate(function)
    with pytest.warns(FallbackWarning, match="attribute"):
        assert accelerated(*theirs) == function(*mine)
    assert np.array_equal(repr(contents(theirs[0])), repr(contents(mine[0])))


def test_a_property() -> None:
    mine, theirs = Doubling(), Doubling()
    assert accelerate(add_one)(theirs) == add_one(mine)
    assert mine.y == theirs.y == 4.0


def test_kept_on_the_disk() -> None:
    tree = ResultTuple((ResultStatic(None), ResultStatic(2)), "tuple", SetAttributes(((0, "x"),)))
    assert from_json(to_json(tree)) == tree
