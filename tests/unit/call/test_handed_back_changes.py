"""Operations handed back to Python: exceptions, results of changing types, what is said about it."""

from __future__ import annotations

import gc
import math
import traceback
import warnings
import weakref
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import FallbackWarning, UnsupportedError
from tests.helpers.handed_back_calls import compiled, hidden, identity, x4

pytestmark = pytest.mark.filterwarnings("error::parakeet_py.base.errors.FallbackWarning")


def test_exceptions_pass_through() -> None:
    class Special(Exception):
        pass

    fail = hidden("def fail(x, n):\n    if n > 2:\n        raise Special(n)\n    return x", Special=Special)

    def function(x: Any, n: int) -> Any:
        x += 1
        y = fail(x * 2, n)
        x += 1
        return y

    made = accelerate(function)
    for _ in range(3):
        made(np.zeros(2), 1)
    for _ in range(3):
        x = np.zeros(2)
        with pytest.raises(Special) as info:
            made(x, 3)
        assert info.value.args == (3,)
        assert x.tolist() == [1, 1]
        names = [entry.name for entry in traceback.extract_tb(info.tb)]
        assert names[-2:] == ["function", "fail"]
        assert traceback.extract_tb(info.tb)[-2].line == "y = fail(x * 2, n)"


def test_exceptions_in_evaluated_calls_have_pythons_traceback() -> None:
    def helper(x: Any) -> Any:
        return x[10]

    def function(x: Any) -> Any:
        y = identity(x)
        return helper(list(y))

    made = accelerate(function)
    with pytest.raises(IndexError) as info:
        made(x4)
    entries = traceback.extract_tb(info.tb)
    assert [(entry.name, entry.line) for entry in entries[-2:]] == [
        ("function", "return helper(list(y))"),
        ("helper", "return x[10]"),
    ]


def test_exceptions_leave_no_memory_behind() -> None:
    references: list[Any] = []
    fail = hidden(
        "def fail(x):\n    references.append(weakref.ref(x))\n    if len(references) > 1: raise KeyError\n    return x",
        references=references,
        weakref=weakref,
    )

    def function(x: Any) -> Any:
        return fail(x * 2) + 1

    made = compiled(function, x4)
    for _ in range(3):
        with pytest.raises(KeyError):
            made(x4)
    gc.collect()
    assert [reference() for reference in references[1:]] == [None] * 3


def test_another_type_is_told_again() -> None:
    seen: list[Any] = []
    vary = hidden("def vary(k): seen.append(k); return k if k < 3 else k * 0.5", seen=seen)

    def function(x: Any, k: int) -> Any:
        a = vary(1)
        y = x * vary(k)
        return y, a + vary(2)

    made = accelerate(function)
    for k in (1, 2, 3, 4, 1, 3):
        seen.clear()
        found, expected = made(x4, k), (x4 * (k if k < 3 else k * 0.5), 3)
        assert repr(found) == repr(expected)
        assert seen == [1, k, 2]
    assert made.fell_back is False


@pytest.mark.parametrize("devices", ["cpu", "emulated"])
def test_ints_beyond_64_bits_are_told_again(devices: str) -> None:
    seen: list[Any] = []
    note = hidden("def note(k): seen.append(k); return k + 1", seen=seen)

    def function(n: int) -> Any:
        first = note(n)
        note(first)
        return first, n**30

    made = accelerate(function)
    for n in (2, 2, 10, 3, 10):
        seen.clear()
        with options(devices=devices):
            assert made(n) == (n + 1, n**30)
        assert seen == [n, n + 1]
    assert made.fell_back is False


def test_python_goes_on_where_ints_leave_64_bits_after_a_change() -> None:
    note = hidden("def note(k): return k + 1")

    def function(x: Any, n: int) -> Any:
        x += note(n)
        return n**30

    made = accelerate(function)
    assert [made(np.zeros(2), 2) for _ in range(2)] == [2**30, 2**30]
    for _ in range(4):
        x = np.zeros(2)
        assert made(x, 10) == 10**30
        assert x.tolist() == [11, 11]
    assert made.fell_back is False


def test_python_goes_on_after_another_type() -> None:
    vary = hidden("def vary(k): return k if k < 3 else k * 0.5")

    def function(x: Any, k: int) -> Any:
        x += 1
        return x * vary(k)

    made = accelerate(function)
    for k in (1, 2):
        made(np.zeros(2), k)
    for k in (3, 3, 1, 4):
        assert made(np.zeros(2), k).tolist() == [k if k < 3 else k * 0.5] * 2


def test_arrays_that_may_have_been_changed_are_not_told_again() -> None:
    double = hidden("def double(x): x *= 2; return 1 if x[0] < 10 else 0.5")

    def function(x: Any) -> Any:
        y = x + 1
        return double(y) * y

    made = accelerate(function)
    for _ in range(2):
        made(np.zeros(2))
    assert made(np.full(2, 10.0)).tolist() == [11, 11]
    assert made(np.full(2, 10.0)).tolist() == [11, 11]
    assert made(np.zeros(2)).tolist() == [2, 2]


def test_none_or_a_number() -> None:
    find = hidden("def find(k): return None if k < 0 else k")

    def function(k: int) -> Any:
        found = find(k)
        return -1 if found is None else found

    made = accelerate(function)
    for k in (1, 2, -1, 3, -1, 4):
        assert made(k) == k


def test_layouts_of_results() -> None:
    order = hidden("def order(x, f): return np.asfortranarray(x) if f else x.copy()")

    def function(x: Any, f: bool) -> Any:
        y = order(x, f)
        return y * 2, y.sum()

    x = np.arange(6.0).reshape(2, 3)
    made = accelerate(function)
    for f in (False, False, True, False, True, True):
        found, expected = made(x, f), function(x, f)
        assert (found[0] == expected[0]).all()
        assert found[1] == expected[1]


def test_types_of_each_signature() -> None:
    def function(x: Any) -> Any:
        return identity(x) + 1

    made = accelerate(function)
    for x in (x4, np.float32([1]), 3, 2.5, x4, np.arange(6).reshape(2, 3), 3):
        assert repr(made(x)) == repr(x + 1)
    assert made.fell_back is False


def test_what_no_call_has_reached() -> None:
    seen: list[int] = []
    note = hidden("def note(k): seen.append(k); return k", seen=seen)

    def function(x: Any, k: int) -> Any:
        if k > 2:
            return x * note(k)
        return x + k

    made = accelerate(function)
    for k in (1, 2, 1, 3, 4, 1, 5):
        assert made(x4, k).tolist() == function(x4, k).tolist()
    assert seen == [3, 3, 4, 4, 5, 5]
    assert made.opaque_calls


def test_globals_that_change_in_a_call() -> None:
    scope: dict[str, Any] = {"np": np}
    exec("level = 1.0\ndef raise_level():\n    global level\n    level += 1\n    return 0\n", scope)
    raise_level = scope["raise_level"]
    scope["accelerate"] = accelerate
    text = "def function(x):\n    a = x * level\n    raise_level()\n    return a, x * level\n"
    import linecache

    linecache.cache["<levels>"] = (len(text), None, text.splitlines(keepends=True), "<levels>")
    exec(compile(text, "<levels>", "exec"), scope)
    made, plain = accelerate(scope["function"]), scope["function"]
    assert raise_level is scope["raise_level"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            scope["level"] = 1.0
            expected = plain(x4)
            scope["level"] = 1.0
            assert repr(made(x4)) == repr(expected)


def test_strict() -> None:
    @accelerate(strict=True)
    def function(x: Any) -> Any:
        return identity(x)

    with pytest.raises(
        UnsupportedError, match=r"exceptions cannot be caught .*: with strict=True nothing is handed back"
    ):
        function(x4)


def test_explain_before_the_first_call() -> None:
    seen: list[Any] = []
    note = hidden("def note(x): seen.append(x); return x", seen=seen)

    @accelerate
    def function(x: Any) -> Any:
        return note(x)

    assert "call the function with such arguments first" in str(function.explain(x4))
    with pytest.raises(UnsupportedError, match="no call has shown yet what it gives"):
        function.typed_ir(x4)
    assert seen == []
    function(x4)
    assert function.explain(x4).opaque_calls
    assert "opaque" in function.typed_ir(x4)
    assert len(seen) == 1


def test_functions_that_need_their_frame() -> None:
    @accelerate
    def function(x: Any) -> Any:
        y = identity(x)
        return sorted(locals()), y

    with pytest.warns(FallbackWarning):
        assert function(x4)[0] == ["x", "y"]


def test_a_list_that_is_changed() -> None:
    push = hidden("def push(items, x): items.append(x)")

    def function(items: Any, x: Any) -> Any:
        push(items, x)
        return len(items)

    made = accelerate(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            items = [1.0, 2.0]
            assert made(items, 3.0) == 3
            assert items == [1.0, 2.0, 3.0]


@pytest.mark.usefixtures("loops_are_worth_it")
def test_results_of_iterations_are_dropped() -> None:
    seen: list[Any] = []
    alive: list[int] = []

    text = """def step(x):
    alive.append(sum(one() is not None for one in seen))
    made = x + 1
    seen.append(weakref.ref(x))
    seen.append(weakref.ref(made))
    return made
"""
    step = hidden(text, seen=seen, alive=alive, weakref=weakref)

    def results(x: Any, n: int) -> Any:
        y = x
        for _ in range(n):
            y = step(y)
        return y

    def temporaries(x: Any, n: int) -> Any:
        y = x
        for _ in range(n):
            z = step(y * 2)
            y = z * 0.5
        return y

    for function in (results, temporaries):
        made = accelerate(function)
        for _ in range(3):
            assert (made(x4, 10) == function(x4, 10)).all()
        seen.clear()
        alive.clear()
        made(x4, 10)
        assert len(alive) == 10
        assert max(alive) <= 6, function


@pytest.mark.usefixtures("loops_are_worth_it")
def test_objects_of_iterations_are_dropped() -> None:
    class Thing:
        alive = 0

        def __init__(self) -> None:
            Thing.alive += 1

        def __del__(self) -> None:
            Thing.alive -= 1

    counts: list[int] = []
    make = hidden("def make(i): counts.append(Thing.alive); return Thing()", counts=counts, Thing=Thing)

    def function(n: int) -> Any:
        for i in range(n):
            thing = make(i)
        return identity(thing)

    made = compiled(function, 3)
    made(3)
    counts.clear()
    assert type(made(20)) is Thing
    assert max(counts) <= 10  # some are kept so that the call could be told again
    gc.collect()
    assert Thing.alive == 0


def test_numpy_makes_complex_numbers_real_and_warns() -> None:
    @accelerate
    def function(z: Any, x: Any) -> Any:
        x[...] = z
        return z.astype(np.float32), np.sum(z, dtype=float), math.floor(z[-1])

    for _ in range(3):
        with pytest.warns(np.exceptions.ComplexWarning) as given:
            made, total, whole = function(x4 + 1j, np.zeros(4))
        assert len(given) == 4
        assert (made == x4).all() and made.dtype == np.float32 and total == x4.sum() and whole == x4[-1]
    assert len(function.opaque_calls) == 4


def test_what_no_call_shows_is_left_to_python() -> None:
    """Code that each call leaves at the same place, where Python shows nothing either, is not made for ever."""
    refuse = hidden("def refuse(x):\n    raise ValueError(x)")

    def caught(x: Any) -> Any:
        try:
            refuse(x)
        except ValueError:
            return x + 1
        return x

    made = accelerate(caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        results = [made(x4).tolist() for _ in range(20)]
    assert results == [[1.0, 2.0, 3.0, 4.0]] * 20
    assert len(made._dispatcher.observed_runs) <= 2
    assert made._dispatcher.made < 20


def test_arrays_made_read_only_by_python() -> None:
    def stores(n: int, call: Any) -> Any:
        a = np.arange(float(n))
        try:
            call(a)
            a[1] = 5.0
        except ValueError as error:
            return str(error), a * 2
        return "", a * 2

    compiled = accelerate(when="now")(stores)
    for call in 3 * [np.ndarray.sum] + 2 * [methodcaller("setflags", write=False), np.ndarray.sum]:
        text, doubled = compiled(4, call)
        wanted, expected = stores(4, call)
        assert text == wanted and np.array_equal(doubled, expected)
