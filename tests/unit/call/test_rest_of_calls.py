"""Calls that compiled code cannot finish, as an operation gives another type or replaces a global."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options

calls: list[int] = []


def vary(k: int) -> Any:
    """A result of another type for another argument, which only Python knows."""
    calls.append(k)
    return eval("k if k < 3 else k * 0.5 if k < 5 else str(k) if k < 7 else np.full(2, k)")


def touch(x: Any, k: int) -> Any:
    x[0] += eval("1")
    return vary(k)


shared: Any = 1.0


def share(value: Any) -> None:
    globals()["shared"] = value


def after_a_store(x: Any, k: int) -> Any:
    x[0] = 7
    y = vary(k)
    x[1] = 8
    return x.sum(), y


def in_a_loop(x: Any, k: int) -> Any:
    s = 0.0
    for i in range(len(x)):
        x[i] += 1
        if i == 2:
            v = vary(k)
        s += x[i]
    return s, v


def in_loops(x: Any, k: int) -> Any:
    for i in range(5, 0, -2):
        for j in range(2):
            x[j] += i
            if i == 3 and j == 1:
                v = touch(x, k)
    return v, x.sum(), i, j


def in_while(x: Any, k: int) -> Any:
    i = 0
    while i < 4:
        x[i] *= 2
        if i % 2:
            w = vary(k + i)
        i += 1
    return x.sum(), w


def loop_that_is_left(x: Any, k: int) -> Any:
    for i in range(3):
        x[0] += 1
        v = vary(k + i)
        if i == 1 and k > 3:
            break
    else:
        v = (v, "else")
    return v, x[0]


def caught(x: Any, k: int) -> Any:
    x[0] = 1
    try:
        v = vary(k)
    except ValueError:
        v = 3
    x[1] = 2
    return v, x.tolist()


def twice(x: Any, k: int) -> Any:
    a = vary(1)
    x[0] = a
    if k > 2:
        b = vary(k)
        x[1] = 5
    else:
        b = None
    return a, b, x.sum()


def arrays_of_python(x: Any, k: int) -> Any:
    y = np.partition(x, 1)
    x[0] = 9
    v = touch(y, k)
    return v, y.sum(), x.sum()


def generators(x: Any, k: int) -> Any:
    x[0] = 9
    rng = np.random.default_rng(3)
    a = rng.random()
    v = vary(k)
    return a, v, rng.random()


def scalars_and_tuples(x: Any, k: int) -> Any:
    u = k * 1.0 if k > 1 else k
    x[0] = 2
    n = k * 2
    t = (n, k)
    v = vary(k)
    return v, n, t, t[0], u


def shuffled(x: Any, k: int) -> Any:
    x.sort()
    v = vary(k)
    x[::2] = 0
    return v, x.sum()


def fails_later(x: Any, k: int) -> Any:
    x[0] = 3
    v = vary(k)
    return v, 1 // (k - k)


def replaced(x: Any, k: int) -> Any:
    x[0] = shared if isinstance(shared, float) else 2.0
    share(float(vary(2)))
    x[1] = shared
    return x.sum()


def replaced_by_others(x: Any, k: int) -> Any:
    a = shared
    share(vary(k))
    return a, shared


PROGRAMS = [
    after_a_store, in_a_loop, in_loops, in_while, loop_that_is_left, caught, twice, arrays_of_python, generators,
    scalars_and_tuples, shuffled, fails_later, replaced, replaced_by_others,
]  # fmt: skip
ORDERS = [(1, 2, 1, 3, 4, 1, 5, 6, 8, 1), (1, 1, 5, 1, 3, 8, 8), (4, 4, 1, 1, 4), (8, 8, 1, 6)]


@pytest.mark.parametrize("order", ORDERS, ids=repr)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_nothing_is_done_twice_or_lost(program: Callable[..., Any], order: tuple[int, ...]) -> None:
    def outcome(function: Callable[..., Any], k: int) -> tuple[Any, ...]:
        x = np.arange(6.0)[::-1].copy()
        calls.clear()
        try:
            result = repr(function(x, k))
        except ZeroDivisionError as error:
            result = repr(error)
        return result, x.tolist(), calls.copy(), repr(shared)

    made = accelerate(program)
    share(1.0)
    with options(cache=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be compiled for all types falls back
        for k in order:
            before = shared
            expected = outcome(program, k)
            share(before)
            assert outcome(made, k) == expected, k


def test_code_from_the_disk_goes_on_too(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAKEET_CACHE_DIR", str(tmp_path))
    for k in (1, 3):
        x, y = np.zeros(4), np.zeros(4)
        made = accelerate(after_a_store)
        for one in (1, 1, k):
            x[:], y[:] = 0, 0
            assert repr(made(x, one)) == repr(after_a_store(y, one)) and np.array_equal(x, y)


class Tree:
    def __init__(self, label: int, left: Any = None, right: Any = None) -> None:
        self.label, self.left, self.right = label, left, right


def same_trees(one: Any, other: Any) -> Any:
    if not isinstance(other, Tree):
        return NotImplemented
    if one.label == other.label:
        return one.left == other.left and one.right == other.right
    return False


def test_what_one_gate_gives_up_no_other_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gate may take the same arguments; only Python knows what the first has done of the call, and later calls
    must not find that."""
    entered: list[int] = []

    def enter(label: int) -> None:
        eval("entered.append(label)", {"entered": entered, "label": label})

    def counted(one: Any, other: Any) -> Any:
        enter(one.label)
        return same_trees(one, other)

    def tree() -> Tree:
        return Tree(0, Tree(-8), Tree(8, Tree(4), Tree(11, Tree(10), Tree(12))))

    for method in (same_trees, counted):
        monkeypatch.setattr(Tree, "__eq__", accelerate(method), raising=False)
        for _ in range(6):
            entered.clear()
            assert tree() == tree() and tree() != Tree(0, Tree(-8), Tree(8, Tree(5), Tree(11, Tree(10), Tree(12))))
            assert entered in ([], [0, -8, 8, 4, 11, 10, 12, 0, -8, 8, 4])
