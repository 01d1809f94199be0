"""Attributes and methods of arguments: read at every call, natively where objects hold them plainly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from parakeet_py import accelerate
from tests.corpus import assert_same, outcome


class Grid:
    __slots__ = ("n", "spacing")

    def __init__(self, n: int) -> None:
        self.n = n
        self.spacing = 1 / n


class Field:
    decay = 0.5

    def __init__(self, n: int) -> None:
        self.grid = Grid(n)
        self.values = np.arange(float(n))
        self.shift: Any = 2

    def scaled(self, x: Any) -> Any:
        return x * self.decay + self.shift

    @staticmethod
    def square(x: Any) -> Any:
        return x * x

    @property
    def twice(self) -> Any:
        return self.shift * 2


class Other(Field):
    def scaled(self, x: Any) -> Any:
        return x - self.grid.spacing


@dataclass(frozen=True)
class Pair:
    a: float
    b: Any


class Named(NamedTuple):
    a: float
    b: Any


class Computed:
    b = 1.0

    @property
    def a(self) -> float:
        return 7.0


class Missing:
    a = 1.0


class Lazy:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return len(name)


def fields(f: Field, x: Any) -> Any:
    return x * f.decay + f.shift, f.grid.spacing * f.grid.n, f.values[1:]


def methods(f: Field, x: Any) -> Any:
    return f.scaled(x) + f.square(x)


def loop(f: Field, x: Any) -> Any:
    total = 0.0
    for i in range(f.grid.n):
        f.values[i] = f.values[i] * (1 - f.decay) + f.shift
        total += f.square(f.values[i])
    return total


def in_place(f: Field, x: Any) -> Any:
    f.values += x[0]
    f.values *= f.shift
    return f.values.sum()


def both(p: Any, x: Any) -> Any:
    return x * p.a + p.b


def computed(f: Field, x: Any) -> Any:
    return f.twice + x


X = np.arange(4.0)
NATIVE: list[tuple[Callable[..., Any], Any]] = [
    (fields, Field(5)),
    (fields, Other(5)),
    (methods, Field(5)),
    (methods, Other(5)),
    (loop, Field(7)),
    (in_place, Field(4)),
    (both, Pair(2.0, X)),
    (both, Pair(2, 3)),
    (both, Named(2.0, X)),
    (both, Computed()),
    (computed, Field(3)),
]
HANDED_BACK: list[tuple[Callable[..., Any], Any]] = [(both, Lazy())]


@pytest.mark.parametrize("place", range(len(NATIVE) + len(HANDED_BACK)))
def test_as_python(place: int) -> None:
    function, value = [*NATIVE, *HANDED_BACK][place]
    accelerated = accelerate(function)
    for _ in range(3):
        mine, theirs = copy.deepcopy(value), copy.deepcopy(value)
        expected, actual = outcome(function, (mine, X)), outcome(accelerated, (theirs, X))
        expected.args = actual.args = ()
        assert_same(expected, actual)
        if isinstance(value, Field):
            assert np.array_equal(mine.values, theirs.values)
    assert (accelerated.opaque_calls == []) == (place < len(NATIVE))
    assert not accelerated.fell_back


def test_values_are_read_at_every_call() -> None:
    accelerated = accelerate(fields)
    f = Field(4)
    for change in ("shift", "decay", "shift"):
        setattr(f, change, getattr(f, change) + 1)
        assert accelerated(f, 1.0)[0] == fields(f, 1.0)[0]
    f.grid = Grid(8)
    assert accelerated(f, 1.0)[1] == 1.0
    f.shift = np.float32(1.5)
    assert type(accelerated(f, np.float32(1))[0]) is type(fields(f, np.float32(1))[0])
    f.values = X
    assert np.shares_memory(accelerated(f, 1.0)[2], X)


def test_methods_are_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerated = accelerate(methods)
    f = Other(4)
    assert accelerated(f, 2.0) == methods(f, 2.0)
    monkeypatch.setattr(Field, "square", staticmethod(lambda x: x * 3))
    assert accelerated(f, 2.0) == methods(f, 2.0)
    monkeypatch.setattr(Other, "scaled", lambda self, x: x * 10)
    assert accelerated(f, 2.0) == methods(f, 2.0) == 26.0


def test_a_property_that_comes_later() -> None:
    class Late:
        pass

    late = Late()
    late.__dict__.update(a=1.0, b=2.0)
    accelerated = accelerate(both)
    assert accelerated(late, 3.0) == 5.0
    Late.a = property(lambda self: 5.5)  # type: ignore[attr-defined]
    assert accelerated(late, 3.0) == both(late, 3.0) == 18.5


def test_missing_attributes() -> None:
    accelerated = accelerate(both)
    assert accelerated(Pair(1.0, 2.0), 3.0) == 5.0
    with pytest.raises(AttributeError, match="'Missing' object has no attribute 'b'"):
        accelerated(Missing(), 3.0)
    assert accelerated(Pair(1.0, 2.0), 3.0) == 5.0


def change(f: Field) -> None:
    f.__dict__["shift"] = f.shift + 1  # no assignment that the compiler knows


def around(f: Field, x: float) -> Any:
    before = f.shift
    change(f)
    return before, f.shift * x


def test_what_python_calls_may_change_is_not_read_before() -> None:
    accelerated = accelerate(around)
    mine, theirs = Field(3), Field(3)
    for _ in range(4):
        assert accelerated(theirs, 2.0) == around(mine, 2.0)


def test_methods_that_are_accelerated() -> None:
    class Model:
        def __init__(self) -> None:
            self.k = 3.0

        @accelerate
        def inner(self, x: Any) -> Any:
            return x * self.k

        @accelerate(strict=True)
        def outer(self, x: Any) -> Any:
            return self.inner(x) + 1

    model = Model()
    assert np.array_equal(model.outer(X), X * 3 + 1)
    assert type(model).outer.opaque_calls == []
