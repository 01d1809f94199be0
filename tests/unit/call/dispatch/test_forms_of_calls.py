"""Calls with keywords and defaults: a gate brings them into positional form."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.dispatch import forms_of_calls
from parakeet_py.call.dispatch.forms_of_calls import ENOUGH, MAX_FORMS
from parakeet_py.call.dispatcher import Dispatcher
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, gates_of, install
from parakeet_py.llvm.entry.positional_gate import MAX_PARAMETERS, PositionalGate

TWO, THREE = [2], [3]


def given(a: Any, b: Any = TWO, c: Any = THREE) -> Any:
    return a, b, c


FUNCTION: Any = given


def behind(*forms: tuple[int, tuple[str, ...]]) -> tuple[Any, list[Any]]:
    """A function with gates for some forms of calls, and what arrives behind them."""
    arrived: list[Any] = []
    instance = AcceleratedFunction(given, lambda *args, **kwargs: arrived.append((args, kwargs)))
    install(instance, [PositionalGate(FUNCTION, instance, *form) for form in forms])
    return instance, arrived


def test_calls_are_brought_into_positional_form() -> None:
    call, arrived = behind((1, ()), (1, ("c",)), (0, ("c", "a")), (2, ("c",)))
    call(1)
    call(1, c=5)
    call(c=5, a=1)
    call(1, 4, c=5)
    assert arrived == [((1, TWO, THREE), {}), ((1, TWO, 5), {}), ((1, TWO, 5), {}), ((1, 4, 5), {})]
    assert arrived[0][0][1] is TWO


@pytest.mark.parametrize(
    "args, kwargs",
    [
        ((), {}),
        ((1, 2), {}),
        ((1, 2, 3), {}),
        ((1,), {"b": 2}),
        ((1,), {"c": 2, "b": 3}),
        ((1,), {"d": 2}),
        ((1, 2, 3, 4), {}),
    ],
)
def test_other_forms_pass(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    call, arrived = behind((1, ()), (1, ("c",)))
    call(*args, **kwargs)
    assert arrived == [(args, kwargs)]


def test_calls_pass_while_settings_or_a_profiler_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    call, arrived = behind((1, ()))
    with options(threads=1):
        call(1)
    sys.setprofile(lambda *event: None)
    try:
        call(1)
    finally:
        sys.setprofile(None)
    assert arrived == [((1,), {})] * 2


def test_arguments_keep_their_references() -> None:
    call, arrived = behind((1, ("c",)))
    x, y = object(), object()
    counts = [sys.getrefcount(one) for one in (x, y, TWO)]
    for _ in range(100):
        call(x, c=y)
        arrived.clear()
    assert [sys.getrefcount(one) for one in (x, y, TWO)] == counts


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that reach a dispatcher."""
    calls: list[Any] = []
    enter = Dispatcher.enter

    def noted(self: Dispatcher, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls.append((args, kwargs))
        return enter(self, args, kwargs)

    monkeypatch.setattr(Dispatcher, "enter", noted)
    return calls


def test_calls_of_a_form_that_come_again_do_not_reach_the_dispatcher(entered: list[Any]) -> None:
    def scaled(x: Any, factor: Any = 2.0, offset: Any = 1.0) -> Any:
        return x * factor + offset

    fast: Any = accelerate(scaled, when="now")
    x = np.arange(5.0)
    for _ in range(ENOUGH + 1):
        for kwargs in ({}, {"factor": 3.0}, {"offset": 4.0, "factor": 5.0}):
            assert np.array_equal(fast(x, **kwargs), scaled(x, **kwargs))
    entered.clear()
    for kwargs in ({}, {"factor": 3.0}, {"offset": 4.0, "factor": 5.0}):
        assert np.array_equal(fast(x, **kwargs), scaled(x, **kwargs))
    assert not entered
    assert np.array_equal(fast(x, factor=np.ones(5)), scaled(x, factor=np.ones(5)))  # is compiled
    with pytest.raises(TypeError, match="factors"):
        fast(x, factors=3.0)
    with pytest.raises(TypeError, match="multiple values"):
        fast(x, 2.0, factor=3.0)
    scaled.__defaults__ = (7.0, 8.0)
    assert np.array_equal(fast(x), x * 7.0 + 8.0)
    assert np.array_equal(fast(x, factor=3.0), x * 3.0 + 8.0)


def test_what_only_keywords_reach(entered: list[Any]) -> None:
    def scaled(x: Any, *, factor: Any = 2.0, offset: Any) -> Any:
        return x * factor + offset

    fast: Any = accelerate(scaled, when="now")
    x = np.arange(5.0)
    calls: list[dict[str, Any]] = [{"offset": 1.0}, {"offset": 1.0, "factor": 3.0}]
    for _ in range(ENOUGH + 1):
        for kwargs in calls:
            assert np.array_equal(fast(x, **kwargs), scaled(x, **kwargs))
    entered.clear()
    for kwargs in calls:
        assert np.array_equal(fast(x, **kwargs), scaled(x, **kwargs))
    assert not entered
    other = x.astype("f4")
    assert fast(other, offset=1.0).dtype == "f4" and not entered  # is compiled without being brought into another form
    for args, kwargs in (((x,), {}), ((x, 2.0), {"offset": 1.0}), ((x,), {"offset": 1.0, "other": 2.0})):
        with pytest.raises(TypeError) as expected:
            scaled(*args, **kwargs)
        with pytest.raises(TypeError) as found:
            fast(*args, **kwargs)
        assert str(found.value) == str(expected.value)
    assert scaled.__kwdefaults__ is not None
    scaled.__kwdefaults__["factor"] = 5.0
    assert np.array_equal(fast(x, offset=1.0), x * 5.0 + 1.0)
    scaled.__kwdefaults__ = {"factor": 6.0, "offset": 7.0}
    assert np.array_equal(fast(x, offset=1.0), x * 6.0 + 1.0) and np.array_equal(fast(x), x * 6.0 + 7.0)
    scaled.__kwdefaults__ = None
    with pytest.raises(TypeError):
        fast(x, offset=1.0)


def test_calls_that_python_runs_keep_their_form() -> None:
    def first(x: Any, *, key: Any = None, default: Any = 0) -> Any:
        return x[0] if key is None else default

    fast: Any = accelerate(first, when="pays")
    fast.compile(np.ones(3))
    for _ in range(50):
        assert fast(np.ones(3)) == 1 and fast([2, 3]) == 2 and fast("text") == "t" and fast((4,), default=5) == 4
    with pytest.raises(IndexError):
        fast([])


def test_gates_are_few_and_come_with_machine_code() -> None:
    names = [f"p{k}" for k in range(MAX_PARAMETERS + 1)]
    space: dict[str, Any] = {}
    exec(f"def many({', '.join(name + '=1' for name in names)}): return p0 + p1", space)
    assert forms_of([accelerate(space["many"], when="now")], [{"p0": 2}]) == 0

    def both(a: Any, b: Any = 1, c: Any = 2, d: Any = 3) -> Any:
        return a + b + c + d

    assert forms_of([accelerate(both, when="pays")], [{}]) == 0
    orders = [dict.fromkeys(some, 4) for some in ("", "b", "c", "d", "bc", "cb", "bd", "db", "cd", "dc", "bcd")]
    assert forms_of([accelerate(both, when="now")], orders) == MAX_FORMS


def forms_of(functions: list[Any], calls: list[dict[str, Any]]) -> int:
    """How many gates bring calls of functions into positional form, after many calls."""
    for function in functions:
        for kwargs in calls:
            for _ in range(forms_of_calls.ENOUGH + 1):
                args = () if "p0" in kwargs else (1,)
                assert function(*args, **kwargs) == function.__wrapped__(*args, **kwargs)
    return sum(isinstance(gate, PositionalGate) for function in functions for gate in gates_of(function))


def collecting(a: Any, /, b: Any = TWO, *rest: Any, c: Any = THREE, **named: Any) -> Any:
    return a, b, rest, c, named


@pytest.mark.parametrize(
    "args, kwargs, expected",
    [
        ((1,), {}, (1, TWO, (), THREE, ())),
        ((1, 2, 3, 4), {}, (1, 2, (3, 4), THREE, ())),
        ((1,), {"c": 5, "x": 6}, (1, TWO, (), 5, ("x", 6))),
        ((1,), {"y": 5, "b": 6, "a": 7}, (1, 6, (), THREE, ("y", 5, "a", 7))),
        ((1, 2, 3), {"x": 4, "rest": 5}, (1, 2, (3,), THREE, ("x", 4, "rest", 5))),
    ],
)
def test_what_is_collected_is_put_into_tuples(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    things = {number: object() for number in range(1, 8)}

    def thing(value: Any) -> Any:
        return tuple(map(thing, value)) if type(value) is tuple else things[value] if type(value) is int else value

    args, kwargs, expected = thing(args), {name: thing(value) for name, value in kwargs.items()}, thing(expected)
    arrived: list[Any] = []
    instance = AcceleratedFunction(collecting, lambda *given, **named: arrived.append((given, named)))
    function: Any = collecting
    install(instance, [PositionalGate(function, instance, len(args), tuple(kwargs))])
    before = [sys.getrefcount(value) for value in (*args, *kwargs.values())]
    for _ in range(3):
        instance(*args, **kwargs)
    assert arrived == [(expected, {})] * 3
    arrived.clear()
    assert [sys.getrefcount(value) for value in (*args, *kwargs.values())] == before
    forms = forms_of_calls.FormsOfCalls(function)
    forms.forms.append((len(args), tuple(kwargs)))
    assert forms.of_last(expected) == (args, kwargs)


def test_collected_arguments_of_compiled_calls() -> None:
    @accelerate(when="now", devices="cpu")
    def total(*arrays: Any, scale: float = 2.0, **named: Any) -> Any:
        result = arrays[0] * scale
        for one in arrays[1:]:
            result = result + one
        return result + named["offset"] if named else result

    x = np.arange(3.0)
    for _ in range(3 * ENOUGH):
        assert total(x, x).tolist() == (3 * x).tolist()
        assert total(x, x, x, scale=1.0).tolist() == (3 * x).tolist()
        assert total(x, offset=x).tolist() == (3 * x).tolist()
    assert len(total._dispatcher.forms.gates) == 3
    with pytest.raises(IndexError, match="tuple index out of range"):
        total()
    with pytest.raises(KeyError, match="offset"):
        total(x, other=x)
