"""Operations handed back to Python: results, effects, memory, exceptions, changing types."""

from __future__ import annotations

import ast
import gc
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.errors import FallbackWarning, OpaqueResultChanged, UnsupportedError
from parakeet_py.typed_ir.types import DTYPES

x4 = np.arange(4.0)


@pytest.fixture(autouse=True)
def _no_fallback() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def hidden(text: str, **scope: Any) -> Any:
    """A function that only Python can run: it catches an exception."""
    scope |= {"np": np}
    module = ast.parse(text)
    for function in module.body:
        assert isinstance(function, ast.FunctionDef)
        handler = ast.ExceptHandler(ast.Name("GeneratorExit", ast.Load()), None, [ast.Raise()])
        function.body = [ast.Try(function.body, [handler], [], [])]
    exec(compile(ast.fix_missing_locations(module), "<string>", "exec"), scope)
    return scope[text.split("(")[0].removeprefix("def ")]


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """The function, accelerated, after a first call (which the evaluator has run)."""
    made = accelerate(function)
    made(*args)
    return made


def same(made: Any, function: Callable[..., Any], *args: Any) -> None:
    """Several calls give what Python gives."""
    for _ in range(3):
        found, expected = made(*args), function(*args)
        assert repr(found) == repr(expected)
        assert type(found) is type(expected)
    assert made.fell_back is False


# ---- values ----------------------------------------------------------------------------------------------------------

pass_on = hidden("def pass_on(*args, **named): return (*args, *named.values())")
identity = hidden("def identity(x): return x")


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


@pytest.fixture
def loops_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are compiled, however little they do besides what is handed back."""
    monkeypatch.setattr("parakeet_py.typed_ir.specialize.light_site", lambda function, seldom: None)


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


# ---- memory ----------------------------------------------------------------------------------------------------------


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


# ---- exceptions ------------------------------------------------------------------------------------------------------


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


# ---- results of changing types ---------------------------------------------------------------------------------------


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


def test_ints_beyond_64_bits_after_a_change_are_an_error() -> None:
    note = hidden("def note(k): return k + 1")

    def function(x: Any, n: int) -> Any:
        x += note(n)
        return n**30

    made = accelerate(function)
    assert [made(np.zeros(2), 2) for _ in range(2)] == [2**30, 2**30]
    with pytest.raises(OverflowError):
        made(np.zeros(2), 10)


def test_another_type_after_a_change_is_an_error_once() -> None:
    vary = hidden("def vary(k): return k if k < 3 else k * 0.5")

    def function(x: Any, k: int) -> Any:
        x += 1
        return x * vary(k)

    made = accelerate(function)
    for k in (1, 2):
        made(np.zeros(2), k)
    with pytest.raises(OpaqueResultChanged, match=r"vary has given a float, not what it gave before"):
        made(np.zeros(2), 3)
    for k in (3, 1, 4):
        assert made(np.zeros(2), k).tolist() == [k if k < 3 else k * 0.5] * 2


def test_arrays_that_may_have_been_changed_are_not_told_again() -> None:
    double = hidden("def double(x): x *= 2; return 1 if x[0] < 10 else 0.5")

    def function(x: Any) -> Any:
        y = x + 1
        return double(y) * y

    made = accelerate(function)
    for _ in range(2):
        made(np.zeros(2))
    with pytest.raises(OpaqueResultChanged):
        made(np.full(2, 10.0))
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


# ---- what is said about it -------------------------------------------------------------------------------------------


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
        return z.astype(np.float32), np.sum(z, dtype=float)

    for _ in range(3):
        with pytest.warns(np.exceptions.ComplexWarning) as given:
            made, total = function(x4 + 1j, np.zeros(4))
        assert len(given) == 3
        assert (made == x4).all() and made.dtype == np.float32 and total == x4.sum()
    assert len(function.opaque_calls) == 3


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
