"""The evaluator of the untyped IR: what it observes, what it does not do again, how errors look."""

from __future__ import annotations

import bisect
import operator
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py.frontend import ssa, to_ssa
from parakeet_py.frontend.evaluate import evaluator
from parakeet_py.frontend.evaluate.evaluator import evaluate
from parakeet_py.frontend.evaluate.frames import reads_its_frame
from parakeet_py.frontend.evaluate.observed_values import CHANGED
from parakeet_py.frontend.serialization import from_bytes, to_bytes
from parakeet_py.signature.specs import ArraySpec, NoneSpec, ObjectSpec, ScalarSpec, StaticSpec, TupleSpec
from parakeet_py.typed_ir.specialize.observed import ANY, Observations, accepts, join_specs, observed_spec
from parakeet_py.typed_ir.specialize.python.inlined_functions import looked_into
from tests.property.generated import function as from_text


def helper(x: Any) -> Any:
    return x.sum() + 1


def run(function: Any, *args: Any, **options: Any) -> tuple[Any, dict[Any, Any]]:
    """The result of a call and what was observed."""
    seen: dict[Any, Any] = {}
    evaluated = evaluate(to_ssa(function), function, observe=seen.__setitem__, inline=looked_into, **options)
    return evaluated(*args), seen


def places(seen: dict[Any, Any]) -> dict[tuple[Any, ...], Any]:
    """Observations by line (relative to the first) and operator, with the names of the functions on the way."""
    first = min(part.line for key in seen for part in key if isinstance(part, ssa.Pos))
    return {
        (*(part for part in key[:-3] if isinstance(part, str)), key[-2].line - first, key[-1]): value
        for key, value in seen.items()
    }


def test_results_are_observed_along_the_path() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return helper(y)

    result, seen = run(function, np.arange(3.0))
    assert result == 7
    found = {key[-1] if len(key) == 3 else (key[1], key[-1]): value for key, value in seen.items()}
    assert set(found) == {"Binary", "Call", ("helper", "Attribute"), ("helper", "Call"), ("helper", "Binary")}
    assert found["Call"] == 7
    assert found["helper", "Call"] == 6
    keys = [key for key in seen if len(key) == 5]
    assert all(isinstance(key[0], ssa.Pos) and key[1] == "helper" for key in keys)


def test_nested_functions_have_a_path_when_they_are_called_here() -> None:
    def function(x: Any) -> Any:
        def inner(v: Any) -> Any:
            return v + 1

        return inner(x), list(map(inner, [x]))

    _, seen = run(function, 2)
    lengths = sorted(len(key) for key in seen if key[-1] == "Binary")
    assert lengths == [3, 5]  # once by way of `map`, once called


def test_the_first_different_spec_wins_nothing() -> None:
    observed: dict[Any, Any] = {}
    note = Observations(observed)
    key = ("path", "file", "place", "Call")
    for result, expected in (
        (1, ScalarSpec("int64", True)),
        (2, ScalarSpec("int64", True)),
        (2.5, ANY),
        (1, ANY),
        (CHANGED, CHANGED),
        (1, CHANGED),
    ):
        note(key, result)
        assert observed[key] == observed[key[-3:]] == expected


def test_specs_join() -> None:
    c, f = np.zeros((2, 3)), np.zeros((2, 3), order="F")
    assert observed_spec(c) == ArraySpec("float64", 2, "C", (False, False), True)
    assert join_specs(observed_spec(c), observed_spec(f)) == ArraySpec("float64", 2, "A", (False, False), True)
    assert join_specs(observed_spec(c), observed_spec(c[0])) == ANY
    pair = join_specs(observed_spec((1, c)), observed_spec((2.5, c)))
    assert pair == TupleSpec((ANY, observed_spec(c)))
    assert join_specs(StaticSpec("a"), StaticSpec("b")) == ANY
    assert accepts(ANY, NoneSpec())
    assert accepts(ANY, ObjectSpec(dict))
    assert accepts(observed_spec(f), observed_spec(c))
    assert not accepts(observed_spec(c), observed_spec(f))


def test_operations_done_already_are_not_done_again() -> None:
    done: list[Any] = []

    def act(x: Any) -> Any:
        done.append(x)
        return x

    def function(x: int) -> Any:
        return act(x) + act(x + 1) + act(x + 2)

    function.__globals__["_act"] = act
    _, seen = run(function, 1)
    keys = [key for key in seen if key[-1] == "Call" and len(key) == 3]
    assert len(keys) == 3
    done.clear()
    result, _ = run(function, 1, replay=[(keys[0], 10), (keys[1], 20)])
    assert result == 33
    assert done == [3]


def test_changes_of_lists_and_of_what_is_watched() -> None:
    state = [0]

    def function(items: Any) -> Any:
        items.append(1)
        list.append(items, 2)
        state.__setitem__(0, object())
        return len(items)

    seen: list[Any] = []

    def observe(key: Any, result: Any) -> None:
        if result is CHANGED:
            seen.append(key[-2].line - function.__code__.co_firstlineno)

    evaluate(to_ssa(function), function, observe=observe, watch=lambda: [state[:]])([])
    assert seen == [2, 3]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [len(v) for v in x],
        lambda x: (lambda *, k: k)(),
        lambda x: (lambda a, b=1: a)(1, 2, 3),
        lambda x: (lambda a: a)(**{"b": 1}),
        lambda x: dict(**x, **x),
        lambda x: max(*x),
        lambda x: undefined_name,  # type: ignore[name-defined]  # noqa: F821
        lambda x: x.missing,
        lambda x: x[10],
        lambda x: -x,
    ],
)
def test_errors_are_pythons(function: Callable[..., Any]) -> None:
    for argument in ({"a": 1}, [1, 2], 3, "text"):
        outcomes = []
        for run_ in (function, evaluate(to_ssa(function), function)):  # type: ignore[arg-type]
            try:
                outcomes.append(repr(run_(argument)))
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        assert outcomes[0] == outcomes[1]


def test_unpacking_errors() -> None:
    def two(x: Any) -> Any:
        a, b = x
        return a, b

    def some(x: Any) -> Any:
        a, *b, c = x
        return a, b, c

    for function in (two, some):
        for argument in ((1,), (1, 2), (1, 2, 3), 5, iter([1, 2]), "xy"):
            outcomes = []
            for run_ in (function, evaluate(to_ssa(function), function)):
                try:
                    outcomes.append(repr(run_(argument if argument != 5 else 5)))
                except Exception as error:
                    outcomes.append(f"{type(error).__name__}: {error}")
                if not isinstance(argument, str | tuple | int):
                    argument = iter([1, 2])
            assert outcomes[0] == outcomes[1]


def test_tracebacks_show_the_users_functions() -> None:
    def inner(x: Any) -> Any:
        return 1 / x

    def function(x: Any) -> Any:
        total = 0
        for v in x:
            if v < 3:
                total += (lambda w: inner(w))(v)
        return total

    with pytest.raises(ZeroDivisionError) as info:
        evaluate(to_ssa(function), function, inline=looked_into)([1, 0])
    entries = traceback.extract_tb(info.tb)
    assert [entry.name for entry in entries[-3:]] == ["function", "<lambda>", "inner"]
    assert entries[-1].line == "return 1 / x"


def test_results_are_observed_until_their_types_are_known() -> None:
    sightings: list[Any] = []

    def turned(x: Any) -> Any:
        return x * 3

    def function(n: int, found: Any) -> Any:
        total, k, seen = 0, 0, []
        for i in range(n):
            if i % 7 == 3:
                continue
            while k * k < i:
                k += 1
            total += turned(i) % (k + 1)
            try:
                seen.append(1 // (i % 5))
            except ZeroDivisionError as error:
                seen.append(len(str(error)))
            if i == 400:
                total += found.sum()
            if i > 500:
                break
        else:
            total = -1
        return total, k, seen

    for n in (30, 1000):
        found = np.arange(4.0)
        observed: dict[Any, Any] = {}

        def observe(key: Any, value: Any) -> None:
            sightings.append(key)
            observed[key] = value  # noqa: B023

        assert evaluate(to_ssa(function), function, observe=observe, inline=looked_into)(n, found) == function(n, found)
    sites = [key for key, value in observed.items() if value == 6.0 and type(value) is np.float64]
    assert len(sites) == 1 and sites[0][-1] == "Call"  # calls are observed however late they come
    assert len(sightings) < 64 * 40


def test_tracebacks_of_long_loops() -> None:
    def inner(x: Any) -> Any:
        return 1 / x

    def function(n: int) -> Any:
        total = 0
        for i in range(n):
            if i > 150:
                total += inner(i - 200)
        return total

    def entries(call: Any) -> list[tuple[str, int | None]]:
        with pytest.raises(ZeroDivisionError) as info:
            call(300)
        return [(entry.name, entry.lineno) for entry in traceback.extract_tb(info.tb)][-2:]

    assert entries(evaluate(to_ssa(function), function, inline=looked_into)) == entries(function)


def test_lists_changed_late_in_long_loops() -> None:
    """Code that hands the list over would not see it."""

    def change(held: list[int], i: int) -> None:
        if i == 200:
            held.append(i)

    def function(n: int, change: Any) -> Any:
        held = [1, 2]
        for i in range(n):
            change(held, i)
        return held

    result, observed = run(function, 300, lambda held, i: change(held, i))
    assert result == [1, 2, 200] and CHANGED in observed.values()


def test_comparing_what_calls_are_given_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is no longer compared is taken for one that changes what it is given; functions that are known to
    change nothing are never compared."""
    monkeypatch.setattr(evaluator, "MOST", 1000)
    unknown = operator.methodcaller("count", 1.0)

    def function(x: list[float], n: int) -> tuple[int, int]:
        found = counted = 0
        for i in range(n):
            found += bisect.bisect(x, i + 0.5)
            counted += unknown(x)
        return found, counted

    x = [float(i) for i in range(100)]
    result, seen = run(function, x, 30)
    assert result == function(x, 30)
    assert [value for value in seen.values() if value is CHANGED] == [CHANGED]
    assert CHANGED not in run(function, x, 3)[1].values()


def test_functions_that_need_their_frame() -> None:
    def function() -> Any:
        return sys._getframe()

    assert reads_its_frame(to_ssa(function))
    assert not reads_its_frame(to_ssa(helper))


def leaves_inside(x: Any) -> Any:
    with np.errstate(all="ignore"):
        if x[0] > 5:
            return np.log(-x)
        y = np.log(x)
    return y + np.sqrt(x - 100)


def in_turns(x: Any) -> Any:
    s = 0.0
    for v in x:
        with np.errstate(divide="ignore"):
            if v > 1:
                s = s + np.log(v - 2)
                continue
            s = s + np.log(v)
        s = s + np.sqrt(v - 3)
    return s


def around_another(x: Any) -> Any:
    def inner(v: Any) -> Any:
        return np.log(v)

    with np.errstate(all="ignore"), np.errstate(invalid="warn"):
        y = np.sqrt(x - 5) + inner(x)
        with np.errstate(all="warn"):
            z = 1 / x
        w = [inner(v) for v in x]
    return y, z, w, inner(x)


@pytest.mark.parametrize("function", [leaves_inside, in_turns, around_another])
@pytest.mark.parametrize("state", [{}, {"divide": "raise"}, {"all": "raise"}, {"all": "ignore"}])
@pytest.mark.parametrize("x", [[0.0, 1.0, 2.0, -3.0], [7.0, 0.0, -1.0]])
def test_error_states_are_entered(function: Any, state: dict[str, Any], x: list[float]) -> None:
    def told(call: Any) -> Any:
        with warnings.catch_warnings(record=True) as met, np.errstate(**state):
            warnings.simplefilter("always")
            try:
                result = repr(call(np.array(x)))
            except FloatingPointError as error:
                result = str(error)
            return result, [(str(one.message), one.lineno) for one in met], np.geterr()

    again = from_bytes(to_bytes(to_ssa(function)))
    for made in (evaluate(again, function), evaluate(again, function, observe=lambda key, value: None)):
        assert told(made) == told(function)


@pytest.mark.parametrize(
    "statement",
    [
        "assert not x",
        "assert x > 3",
        "assert x and (x < 0), 'no ' + str(x)",
        "assert not x or (x < 0 if x == 2 else\n         x < -1), (\n         'no')",
        "assert (x ==\n        0 or x - 1)",
        "assert 0 < x < 1, x",
    ],
)
def test_a_failed_assertion_is_marked_where_python_marks_it(statement: str) -> None:
    function = from_text(f"def f(x):\n    {statement}\n")  # pytest writes other assertions into this file

    def place(call: Any) -> Any:
        with pytest.raises(AssertionError) as caught:
            call(1)
        found = traceback.extract_tb(caught.value.__traceback__)[-1]
        return found.lineno, found.end_lineno, found.colno, found.end_colno

    assert place(evaluate(to_ssa(function), function)) == place(function)
