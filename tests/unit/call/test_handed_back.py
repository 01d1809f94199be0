"""Operations handed back to Python: their values and effects, and memory."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import FallbackWarning
from parakeet_py.base.types import DTYPES
from tests.helpers.handed_back_calls import compiled, hidden, identity, same, x4

pytestmark = pytest.mark.filterwarnings("error::parakeet_py.base.errors.FallbackWarning")


pass_on = hidden("def pass_on(*args, **named): return (*args, *named.values())")


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_scalars(dtype: str) -> None:
    def function(x: Any) -> Any:
        return identity(x), identity(x[0]), identity(x[0] + x[1])

    x = np.array([1, 2, 3]).astype(dtype)
    same(accelerate(function), function, x)


@pytest.mark.parametrize("value", [True, False, 0, -5, 2**62, 0.0, -0.5, float("inf"), 1 + 2j, None, "text"])
def test_python_scalars(value: Any) -> None:
    def function(v: Any) -> Any:
        return identity(v), pass_on(v, [v, (v,)], key="k")

    same(accelerate(function), function, value)


def test_calculated_scalars() -> None:
    def function(i: Any, x: Any) -> Any:
        return identity(i + 1), identity(x * 2), identity(x > 1), identity(x * 1j), identity(i), identity(range(i))

    same(accelerate(function), function, 3, 0.5)


def test_objects_of_all_ranks() -> None:
    def function(x: Any) -> Any:
        return identity(x), identity(x + 1), identity(x.T), identity(x[..., ::-1])

    for rank in range(1, 5):
        x = np.arange(float(np.prod(range(2, rank + 2)))).reshape(range(2, rank + 2))
        same(accelerate(function), function, x)
        same(accelerate(function), function, np.asfortranarray(x))


def test_loops_that_do_little_else_are_for_python() -> None:
    note = hidden("def note(x): return x + 1")

    def light(n: int) -> int:
        total = 0
        for i in range(n):
            total += note(i)
        return total

    def heavy(x: Any) -> Any:
        for i in range(3):
            x = x * 2 + note(i)
        return x

    made = accelerate(light)
    with pytest.warns(FallbackWarning, match="in a loop that does little else"):
        assert [made(3), made(3), made(3)] == [6, 6, 6]
    made = accelerate(heavy)
    for _ in range(3):
        assert np.array_equal(made(x4), heavy(x4))
    assert len(made.opaque_calls) == 1 and not made.fell_back


@pytest.mark.usefixtures("loops_are_worth_it")
def test_effects_happen_once_in_order() -> None:
    seen: list[Any] = []
    note = hidden("def note(x): seen.append(x); return x + 1", seen=seen)

    def function(n: int) -> int:
        total = 0
        for i in range(n):
            total += note(i)
        note(total)
        return total

    made = accelerate(function)
    for _ in range(4):
        seen.clear()
        assert made(3) == 6
        assert seen == [0, 1, 2, 6]
    assert len(made.opaque_calls) == 2


@pytest.mark.usefixtures("loops_are_worth_it")
def test_effects_without_results() -> None:
    seen: list[Any] = []
    note = hidden("def note(x): seen.append(float(x))", seen=seen)

    def function(x: Any) -> Any:
        for v in x:
            note(v)
        return x

    made = accelerate(function)
    for _ in range(3):
        seen.clear()
        assert made(x4) is x4
        assert seen == [0, 1, 2, 3]


def test_arguments_stay_the_same_objects() -> None:
    def function(x: Any) -> Any:
        return identity(x)

    made = compiled(function, x4)
    assert made(x4) is x4
    assert made(x4) is x4


def test_python_may_keep_temporaries() -> None:
    kept: list[Any] = []
    keep = hidden("def keep(x): kept.append(x)", kept=kept)

    def function(x: Any) -> Any:
        y = x * 2
        keep(y)
        z = y + 1
        keep(z)
        return z[1:]

    made = compiled(function, x4)
    for _ in range(3):
        result = made(x4)
    assert result.tolist() == [3, 5, 7]
    assert [array.tolist() for array in kept] == 4 * [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert np.shares_memory(result, kept[-1])
    kept[-1][1] = 99
    assert result[0] == 99
    assert len({array.ctypes.data for array in kept}) == 8


def test_the_same_array_is_the_same_object() -> None:
    kept: list[Any] = []
    keep = hidden("def keep(x): kept.append(x); return x.sum()", kept=kept)

    def function(x: Any) -> Any:
        y = x * 2
        keep(y)
        keep(y)
        return y

    made = compiled(function, x4)
    kept.clear()
    result = made(x4)
    assert kept[0] is kept[1] is result


def test_python_may_change_temporaries() -> None:
    double = hidden("def double(x): x *= 2")

    def function(x: Any) -> Any:
        y = x + 1
        double(y)
        double(y[1:])
        return y * 10, y.sum()

    same(accelerate(function), function, x4)


def test_python_may_change_arguments() -> None:
    double = hidden("def double(x): x *= 2")

    def function(x: Any) -> Any:
        before = x.sum()
        double(x[::2])
        return before, x.sum()

    made, a, b = accelerate(function), np.arange(5.0), np.arange(5.0)
    for _ in range(4):
        assert made(a) == function(b)
        assert a.tolist() == b.tolist()


def test_views_come_back_as_views() -> None:
    tail = hidden("def tail(x): return x[1:]")

    def function(x: Any) -> Any:
        y = x * 2
        z = tail(y)
        z += 1
        return y, z

    made = compiled(function, x4)
    for _ in range(2):
        y, z = made(x4)
        assert y.tolist() == [0, 3, 5, 7]
        assert z.tolist() == [3, 5, 7]
        assert np.shares_memory(y, z)


def test_stores_into_results() -> None:
    make = hidden("def make(n): return np.zeros(n)")

    def function(n: int) -> Any:
        y = make(n)
        for i in range(n):
            y[i] = i * i
        return y

    same(accelerate(function), function, 5)


def test_nothing_is_kept_after_the_call() -> None:
    references: list[Any] = []
    note = hidden(
        "def note(x): references.append(weakref.ref(x)); return x + 1", references=references, weakref=weakref
    )

    def function(x: Any) -> Any:
        y = x * 2
        z = note(y)
        w = note(z)
        return w.sum()

    made = compiled(function, x4)
    references.clear()
    gc.collect()
    before = sys.getrefcount(x4)
    for _ in range(5):
        made(x4)
    gc.collect()
    assert len(references) == 10
    assert all(reference() is None for reference in references)
    assert sys.getrefcount(x4) == before


def test_reference_counts_of_objects() -> None:
    class Thing:
        pass

    thing = Thing()

    def function(t: Any, x: Any) -> Any:
        u = identity(t)
        return identity(u), x + 1

    made = compiled(function, thing, x4)
    gc.collect()
    before = sys.getrefcount(thing)
    for _ in range(10):
        assert made(thing, x4)[0] is thing
    assert sys.getrefcount(thing) == before


def test_large_arrays_without_the_gil() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        z = identity(y)
        return (z + y).sum(), z

    x = np.ones(200_000)
    made = compiled(function, x)
    for _ in range(5):
        total, z = made(x)
        assert total == 800_000
        assert (z == 2).all()


def test_many_results_in_a_loop() -> None:
    shift = hidden("def shift(x): return x + 1")

    def function(x: Any, n: int) -> Any:
        y = x
        for _ in range(n):
            y = shift(y) * 0.5
        return y

    same(accelerate(function), function, x4, 50)


def test_many_threads() -> None:
    def function(x: Any, k: int) -> Any:
        y = identity(x * k)
        return (y + identity(k)).sum()

    made = compiled(function, x4, 1)
    wrong: list[Any] = []

    def work(k: int) -> None:
        for _ in range(200):
            if made(x4, k) != 6 * k + 4 * k:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_inside_calls() -> None:
    def inner(x: Any) -> Any:
        return identity(x) + 1

    inside = accelerate(inner)
    again = hidden("def again(x): return inside(x) * 2", inside=inside)

    def outer(x: Any) -> Any:
        y = again(x * 2)
        return y + again(y)

    made = accelerate(outer)
    for _ in range(4):
        assert made(x4).tolist() == ((((x4 * 2) + 1) * 2) + (((x4 * 2) + 1) * 2 + 1) * 2).tolist()


@pytest.mark.parametrize(
    ("body", "argument"),
    [("a |= {9}", {1}), ("a -= {x, 2}", {1}), ("a.update({x})", {1}), ("a.append(x)", [1]), ("a[0] = x", [1]),
     ("a.sort()", [2, 1]), ("a[x] = a.get(x, 0) + 1", {1: 2})],
)  # fmt: skip
def test_changes_of_containers_alone_are_for_python(body: str, argument: Any) -> None:
    scope: dict[str, Any] = {}
    exec(f"def change(a, x): {body}", scope)
    plain = scope["change"]
    made, mine, own = accelerate(plain), copy.copy(argument), copy.copy(argument)
    with options(check=0):
        for _ in range(3):
            assert made(mine, 5) is plain(own, 5) and mine == own
    assert made.opaque_calls and not made.specializations and not made.fell_back
