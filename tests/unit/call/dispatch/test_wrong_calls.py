"""Calls whose arguments a function does not take."""

from __future__ import annotations

from typing import Any

import pytest

from parakeet_py import accelerate
from parakeet_py.call.dispatch import wrong_calls
from parakeet_py.call.dispatch.wrong_calls import WrongCalls
from parakeet_py.llvm.entry.callable_type import gates_of
from parakeet_py.llvm.entry.entry_kind import why_portable


def two(a: Any, b: Any = 1) -> Any:
    return a + b


def by_place(a: Any, /, b: Any) -> Any:
    return a + b


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((), {}), ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((), {"a": 1}), ((), {"b": 1}), ((1,), {"b": 2})),
    *(((1,), {"a": 2}), ((1,), {"c": 2}), ((1, 2), {"b": 3}), ((1, 2, 3), {"b": 3}), ((), {"a": 1, "b": 2})),
]


@pytest.mark.parametrize("function", [two, by_place])
@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_wrong_is_what_python_refuses(function: Any, args: Any, kwargs: Any) -> None:
    try:
        function(*args, **kwargs)
        refused = False
    except TypeError:
        refused = True
    found = WrongCalls(function).has(len(args), kwargs)
    assert found == refused or (function is by_place and not args and not found)


def test_a_gate_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_calls, "gates_pay", lambda: True)

    @accelerate(when="now")
    def function(a: Any, b: Any) -> Any:
        return a + b

    assert function(1, 2) == 3
    messages = set()
    for _ in range(3 * wrong_calls.ENOUGH):
        for call in (lambda: function(1), lambda: function(1, 2, 3), lambda: function(1, b=2, c=3)):
            with pytest.raises(TypeError) as caught:
                call()
            messages.add(str(caught.value))
    assert len(messages) == 3 and all("function" in text for text in messages)
    lasting = [gate for gate in gates_of(function) if getattr(gate, "is_lasting", False)]
    assert why_portable() or len(lasting) == 3
    assert function(1.5, 2) == 3.5
    function.__wrapped__.__defaults__ = (5,)  # what was wrong is right from now on
    assert function(1) == 6


def test_other_functions_are_not_asked() -> None:
    def any_names(a: Any, **others: Any) -> Any:
        return a, others

    assert not WrongCalls(any_names).has(3, {})
    with pytest.raises(TypeError, match="missing"):
        accelerate(any_names)(b=1)
