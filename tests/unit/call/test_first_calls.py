"""Calls that Python runs because the compiler cannot, or does not yet: what Python gives is given, once."""

from __future__ import annotations

import inspect
import linecache
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options
from parakeet_py.base.errors import LONGEST, UnsupportedError, cut
from parakeet_py.call import compile as compiler
from parakeet_py.call import dispatcher as dispatching
from parakeet_py.call.dispatch import specializations
from parakeet_py.frontend.evaluate import evaluator
from parakeet_py.typed_ir.specialize.observed import Observations


def stored(x: Any) -> Any:
    x[0] += 1
    return np.partition(x, 1)[0]


def refused(x: Any) -> Any:
    x[0] += 1

    class Kind:
        value = x[0]

    return Kind.value


def failing(*args: Any, **named: Any) -> Any:
    raise KeyError("of the compiler's own")


@pytest.mark.parametrize("function", [stored, refused])
@pytest.mark.parametrize("name", ["_is_readable", "Dispatcher.known_of", "Refusals.settle", "compile_call"])
def test_failures_beside_a_call_do_not_show(function: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holders: dict[str, Any] = {"compile_call": compiler, "Refusals.settle": specializations}
    holder = holders.get(name, dispatching)
    *path, last = name.split(".")
    for part in path:
        holder = getattr(holder, part)
    monkeypatch.setattr(holder, last, failing)
    accelerated = accelerate(function)
    with options(cache=False, check=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(1, 5):
            x = np.array([1.0, 5.0, 7.0])
            assert accelerated(x) == 2.0, turn
            assert x.tolist() == [2.0, 5.0, 7.0]


@pytest.mark.parametrize("name", ["observe", "looked_into", "watch", "code_of"])
def test_failures_of_observation_do_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match name:
        case "observe":
            monkeypatch.setattr(Observations, "__call__", failing)
        case "looked_into":
            monkeypatch.setattr("parakeet_py.typed_ir.specialize.python.inlined_functions.looked_into", failing)
        case "watch":
            monkeypatch.setattr(specializations, "present", failing)
        case "code_of":
            monkeypatch.setattr(evaluator, "code_of", failing)

    def function(x: Any) -> Any:
        total = 0.0
        for _ in range(200):
            x[0] += 1
            total += np.partition(x, 1)[0]
        return total

    accelerated = accelerate(function)
    x, y = np.array([1.0, 500.0, 700.0]), np.array([1.0, 500.0, 700.0])
    with options(cache=False, check=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert accelerated(x) == function(y)
    assert np.array_equal(x, y)


def own_name(x: Any) -> Any:
    if x[0] > 3:
        raise IndexError("{}")
    return sys._getframe().f_code.co_name, x.sum()


def own_name_by_inspect(x: Any) -> Any:
    if x[0] > 3:
        raise IndexError("{}")
    frame = inspect.currentframe()
    assert frame is not None
    return frame.f_code.co_name, x.sum()


def own_names(x: Any) -> Any:
    if x[0] > 3:
        raise IndexError("{}")
    found = vars()
    return sorted(found), x.sum()


class Base:
    def total(self, x: Any) -> Any:
        return x.sum()


class Derived(Base):
    def total(self, x: Any) -> Any:
        if x[0] > 3:
            raise IndexError("{}")
        return super().total(x) + np.partition(x, 1)[0]


@pytest.mark.parametrize("function", [own_name, own_name_by_inspect, own_names, lambda x: Derived().total(x)])
def test_frames_after_first_calls_that_raise(function: Any) -> None:
    accelerated = accelerate(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for first in (5, 5, 1, 1, 5, 1, 1):
            x = np.arange(4.0) + first
            if first > 3:
                with pytest.raises(IndexError, match=r"\{\}"):
                    accelerated(x)
            else:
                assert accelerated(x) == function(x)


def test_a_method_with_super_after_a_call_that_raised() -> None:
    method = accelerate(Derived.total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for first in (5, 1, 5, 1):
            x = np.arange(4.0) + first
            if first > 3:
                with pytest.raises(IndexError, match=r"\{\}"):
                    method(Derived(), x)
            else:
                assert method(Derived(), x) == Derived().total(x)


def braces(x: Any, k: Any) -> Any:
    d = {"a{}": x[0]}
    return d["a{}" if k else "b{0}"]


def test_braces_of_the_users() -> None:
    accelerated = accelerate(braces)
    for _ in range(3):
        with pytest.raises(KeyError) as error:
            accelerated(np.ones(3), 0)
        assert error.value.args == ("b{0}",)
        assert accelerated(np.ones(3), 1) == 1.0
    assert "the compiler has failed" not in str(accelerated.fell_back)


def test_warnings_fit_on_a_screen() -> None:
    numbers = ", ".join(map(str, range(60_000)))
    source = f"def function(x):\n    class Kind: value = [{numbers}]\n    return x + Kind.value[1]\n"
    linecache.cache["<long>"] = len(source), None, source.splitlines(True), "<long>"
    space: dict[str, Any] = {}
    exec(compile(source, "<long>", "exec"), space)
    with pytest.warns(FallbackWarning) as warned:
        assert accelerate(space["function"])(1) == 2
    assert len(str(warned[0].message)) < 2 * LONGEST and "class Kind" in str(warned[0].message)


@pytest.mark.parametrize("text", ["x" * 400_000, "line\n" * 90_000, "x" * 400_000 + "\n" * 100])
def test_long_messages_are_cut(text: str) -> None:
    assert len(cut(text)) < LONGEST + 100 and cut(text).count("\n") < 24
    assert len(str(UnsupportedError(text, "file.py", hint=text))) < 2 * LONGEST + 400
    assert cut("as it is") == "as it is"


def seeded(seed: int, n: int) -> float:
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(n):
        total += rng.normal() + rng.random()
    return total


def test_generators_seeded_inside_are_compiled_at_once() -> None:
    accelerated = accelerate(seeded)
    assert accelerated(3, 200) == seeded(3, 200)
    assert len(accelerated.specializations) == 1 and accelerated._dispatcher.evaluated_for == 0.0


def test_observation_is_bounded_inside_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    see = evaluator.Hooks.see

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return see(*args)

    def function(x: Any) -> Any:
        total = 0.0
        for i in range(5000):
            x[i % 3] += 1
            total += np.partition(x, 1)[0]
        return total

    monkeypatch.setattr(evaluator.Hooks, "see", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert accelerate(function)(np.arange(3.0)) == function(np.arange(3.0))
    assert 0 < calls < 1000


@pytest.mark.parametrize("asked", ["warn", "raise"])
def test_the_compilers_own_numbers_give_no_warnings(asked: Any) -> None:
    def below(k: int, x: Any) -> Any:
        m = 300
        if k == 1:
            m = x[0]
        elif k == 2:
            m = np.float32(0.5)
        return abs(m) < 1e300  # beyond float32, on a path that is not taken

    fast = accelerate(below, when="now")
    with warnings.catch_warnings(), np.errstate(over=asked):
        warnings.simplefilter("error")
        assert fast(0, np.ones(1)) is True
        assert fast(1, np.ones(1))
    assert not fast.fell_back


@pytest.mark.parametrize("when", ["pays", "now"])
@pytest.mark.parametrize("base", [object, np.ndarray])
def test_look_up_of_attributes_is_pythons(base: type, when: str) -> None:
    class Watched(base):  # type: ignore[misc]
        @accelerate(when=when)
        def __getattribute__(self, name: str) -> Any:
            return super().__getattribute__(name)

        @accelerate(when=when)
        def __getattr__(self, name: str) -> Any:
            if name != "missing":
                raise AttributeError(name)
            return type(self)

    value = Watched() if base is object else np.arange(3.0).view(Watched)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            assert value.missing is Watched and isinstance(value, Watched) and not hasattr(value, "other")
            assert accelerate(lambda x: x, when=when)(value) is value
