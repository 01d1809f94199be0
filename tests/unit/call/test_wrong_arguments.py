"""Calls with the wrong number or names of arguments raise what Python raises, on every way a call can take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def nothing() -> Any:
    return 1


def one(x: Any) -> Any:
    return x + 1


def default(x: Any, y: Any = 2) -> Any:
    return x + y


def by_keyword(x: Any, /, y: Any, *, z: Any = 3) -> Any:
    return x + y + z


def rest(x: Any, *args: Any) -> Any:
    return x + len(args)


def named(x: Any, **kwargs: Any) -> Any:
    return x + len(kwargs)


def all_kinds(a: Any, b: Any, /, c: Any, d: Any = 1, *args: Any, e: Any, g: Any = 2, **kwargs: Any) -> Any:
    return a + b + c + d + e + g + len(args) + len(kwargs)


def positions(a: Any, b: Any = 1, /, c: Any = 2, *, d: Any = 3) -> Any:
    return a + b + c + d


def in_python(x: Any, y: Any = 1) -> Any:
    class Sum:
        value = x + y

    return Sum.value


def of_self(self: Any, function: Any = 1) -> Any:
    return self + function


FUNCTIONS = [
    nothing,
    one,
    default,
    by_keyword,
    rest,
    named,
    all_kinds,
    positions,
    in_python,
    of_self,
    lambda x, y: x + y,
]
X = np.arange(3.0)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}), ((X,), {}), ((X, X), {}), ((X, X, X), {}), ((X,) * 5, {}), ((1, 2, 3, 4, 5, 6), {"e": 1, "h": 3}),
    ((), {"x": X}), ((X,), {"x": X}), ((X,), {"y": 1}), ((X,), {"z": 1}), ((X, 1), {"y": 1}), ((X, 1), {"z": 1}),
    ((X, 1), {"z": 1, "w": 2}), ((X,), {"q": 2}), ((), {"y": 2}), ((X,), {"yy": 1}), ((), {"args": 1}),
    ((X,), {"kwargs": 1}), ((1, 2, 3), {"e": 1}), ((1, 2), {"e": 1}), ((1, 2, 3), {}), ((1, 2, 3), {"e": 1, "a": 2}),
    ((1, 2, 3), {"e": 1, "c": 2}), ((1,), {"c": 1, "b": 2}), ((1, 2, 3, 4), {}), ((X, 1), {"self": 3}),
    ((), {"self": 1}),
    ((), {"self": 1, "function": 2}), ((X,), {"": 1}), ((X,), {"args": 2, "kwargs": 3}), ((X,), {"normal": 1}),
]  # fmt: skip


def outcome(function: Callable[..., Any], call: tuple[tuple[Any, ...], dict[str, Any]]) -> str:
    try:
        return repr(function(*call[0], **call[1]))
    except TypeError as error:
        return f"TypeError: {error}"


@pytest.mark.parametrize("settings", [{}, {"strict": True}, {"devices": "cpu,emulated"}], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_new_functions_and_known_ones(function: Any, settings: dict[str, Any]) -> None:
    expected = [outcome(function, call) for call in CALLS]
    wrong = [(call, text) for call, text in zip(CALLS, expected, strict=True) if "argument" in text]
    assert wrong
    for call, text in wrong:
        assert outcome(accelerate(**settings)(function), call) == text
    known = accelerate(**settings)(function)
    if not settings.get("strict"):
        assert [outcome(known, call) for call in CALLS] == expected
    for call, text in wrong:
        assert outcome(known, call) == text


def test_functions_from_the_disk(tmp_path: Path) -> None:
    with options(cache=True, cache_dir=tmp_path / "cache", check=False):
        for _ in range(2):
            known = accelerate(default)
            assert outcome(known, ((X,), {})) == repr(X + 2)
            for call in CALLS:
                assert outcome(known, call) == outcome(default, call)
        assert known.specializations[0].from_disk


class Plain:
    def method(self, x: Any, y: Any = 1) -> Any:
        return x + y

    @staticmethod
    def static(x: Any) -> Any:
        return x + 1

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x + 2


@pytest.mark.parametrize("name", ["method", "static", "of_class"])
@pytest.mark.parametrize("bound", [True, False])
def test_methods(name: str, bound: bool) -> None:
    made = type("Plain", (), {name: accelerate(vars(Plain)[name])})
    plain, fast = (getattr(cls() if bound else cls, name) for cls in (Plain, made))
    for _ in range(2):
        for call in CALLS:
            assert outcome(fast, call) == outcome(plain, call)


@pytest.mark.parametrize("way", ["explain", "typed_ir", "imp", "llvm", "ptx"])
def test_what_asks_for_a_call(way: str) -> None:
    ask = getattr(accelerate(default), way)
    with pytest.raises(TypeError, match=r"default\(\) missing 1 required positional argument: 'x'"):
        ask()
    with pytest.raises(TypeError, match=r"default\(\) takes from 1 to 2 positional arguments but 3 were given"):
        ask(1, 2, 3)


def test_what_asks_a_bound_method() -> None:
    """It is Python's own, whose attributes are those of the function: the object is not among the arguments."""
    made = type("Plain", (Plain,), {"method": accelerate(Plain.method)})
    said = r"'x'; the object of a method comes first, as in Plain.method.explain\(object, ...\)"
    with pytest.raises(TypeError, match=said):
        made().method.explain(1.0)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'$"):
        made.method.explain(made())
    assert made.method.explain(made(), 1.0).fell_back is None
