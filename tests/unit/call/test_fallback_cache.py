"""Calls that plain Python runs: found without their signature when they come often, and looked at again in time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from parakeet_py import UnsupportedError, accelerate, asdevice, options
from parakeet_py.call import dispatcher
from parakeet_py.call.dispatch import specializations
from parakeet_py.call.fallback_cache import (
    AGAIN,
    AT_GATES,
    FIRST_LOOK,
    MAX_FORGIVEN,
    MAX_KINDS,
    MAX_RAISED,
    SETTLED,
    Refusals,
    kind_of,
)
from parakeet_py.call.renting import Account
from parakeet_py.llvm.entry.callable_type import Plain, gates_of
from parakeet_py.signature.specs import NoneSpec, Signature

SCALE: Any = object()


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that are looked at in full, from now on."""
    seen: list[Any] = []
    original = dispatcher.Dispatcher.call_normal

    def call_normal(self: Any, normal: tuple[Any, ...]) -> Any:
        seen.append(normal)
        return original(self, normal)

    monkeypatch.setattr(dispatcher.Dispatcher, "call_normal", call_normal)
    return seen


def test_refused_kinds_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    def attribute(holder: Any, x: Any) -> Any:
        holder.made = x  # there is no such attribute before
        return x * 2

    class Holder:
        made: Any

    f: Any = accelerate(attribute)
    seen, holder, x = looks(monkeypatch), Holder(), np.arange(3.0)
    for _ in range(SETTLED + 20):
        np.testing.assert_array_equal(f(holder, x), x * 2)
    assert f.fell_back and holder.made is x
    assert len(seen) == SETTLED
    f(holder, x.astype(np.float32))  # another kind
    assert len(seen) == SETTLED + 1


def test_a_function_that_cannot_be_read_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sends(x: Any) -> Any:
        def numbers() -> Any:
            sent = yield 1.0
            yield sent

        run = numbers()
        next(run)
        return x + run.send(2.0)

    f: Any = accelerate(sends)
    seen, x = looks(monkeypatch), np.arange(3.0)
    for argument in (x, x.astype(np.int8), x[::2], 3, x):
        np.testing.assert_array_equal(f(argument), argument + 2.0)
    assert len(seen) == 1 and f.fell_back
    with options(strict=True), pytest.raises(UnsupportedError):
        f(x.astype(np.int16))


def test_kinds_of_which_some_call_is_compiled_do_not_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    def sometimes(x: Any, k: int) -> Any:
        return np.zeros((2,) * k) + x  # the rank is a number in the signature

    f: Any = accelerate(sometimes)
    x = np.float64(1.0)
    for k in (1, 2, 3, 1, 2, 3, 4, 5):
        assert f(x, k).shape == (2,) * k
    assert not f.fell_back
    assert not f._dispatcher.refused.cover((x, 1))


def test_settled_kinds_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Any) -> Any:
        SCALE.last = x
        return x + 1

    class Scale:
        last: Any = None

    monkeypatch.setitem(globals(), "SCALE", Scale())
    monkeypatch.setattr(Account, "gate_for_refused", lambda *_: None)  # which takes calls that count for others
    f: Any = accelerate(scaled)
    seen, x = looks(monkeypatch), np.arange(3.0)
    for _ in range(SETTLED + FIRST_LOOK):
        f(x)
    assert len(seen) == SETTLED
    f(x)
    assert len(seen) == SETTLED + 1
    for _ in range(2 * FIRST_LOOK):
        f(x)
    assert len(seen) == SETTLED + 1
    f(x)
    assert len(seen) == SETTLED + 2


def test_gates_take_refused_calls_and_let_them_pass_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def total(values: Any) -> Any:
        found = 0.0
        for value in values:
            found += value.real
        return found

    monkeypatch.setattr("parakeet_py.call.renting.gates_pay", lambda: True)
    f: Any = accelerate(total)
    fractions = [Fraction(1, 4)] * 40
    for _ in range(SETTLED + 2):
        assert f(fractions) == 10
    (gate,) = gates_of(f)
    assert gate.largest >= len(fractions)
    gate.left = 10**9  # what it has been given is a matter of time
    entered: list[Any] = []
    original = dispatcher.Dispatcher.enter
    monkeypatch.setattr(
        dispatcher.Dispatcher, "enter", lambda self, *call: entered.append(call) or original(self, *call)
    )
    assert f(fractions) == 10 and not entered
    with options(strict=True), pytest.raises(UnsupportedError, match="iteration over a list of Fraction"):
        f(fractions)
    assert f([2.0] * 500) == 1000 and len(f.specializations) == 1  # a longer one, which is looked at
    seen = looks(monkeypatch)
    for _ in range(FIRST_LOOK // AT_GATES + 1):
        gate.left = 0
        assert f(fractions) == 10
    assert len(seen) == 1


def test_arrays_on_devices_are_always_looked_at() -> None:
    x = np.arange(3.0)
    held = asdevice(x, "emulated")
    assert kind_of((held,)) is None and kind_of((1, [held])) is None
    refused = Refusals()
    for _ in range(SETTLED):
        refused.settle((held,))
        refused.settle((x,))
    assert refused.cover((x,)) and not refused.cover((held,))
    refused.everything = True
    assert refused.cover((1,)) and not refused.cover((held,))


def test_the_number_of_kinds_is_bounded() -> None:
    refused = Refusals()
    for k in range(2 * MAX_KINDS):
        for _ in range(SETTLED):
            refused.settle((str(k),))
    assert sum(refused.cover((str(k),)) for k in range(2 * MAX_KINDS)) == MAX_KINDS


def test_kinds() -> None:
    x = np.arange(3.0)
    assert kind_of((x, 1, "a")) == kind_of((x[::2], 2, "a")) != kind_of((x, 1, "b"))
    assert kind_of(([x],)) == kind_of(([x, x],)) != kind_of(([x[:, None]],))
    assert kind_of((x,)) != kind_of((x.astype(">f8"),))
    assert kind_of((True,)) != kind_of((False,)) and kind_of((None,)) != kind_of((False,))


def test_calls_that_compiled_code_gives_up_are_known_by_their_kind() -> None:
    made = accelerate(lambda a, k: a * 2**k)
    a = np.arange(3.0)
    refused = made._dispatcher.refused
    assert [made(a, k).tolist() for k in (2, -1)] == [[0.0, 4.0, 8.0], [0.0, 0.5, 1.0]]
    assert not refused.is_left((a, -1))
    for _ in range(SETTLED):
        made(a, -1)
    assert refused.is_left((a, -1))
    assert not refused.is_left((a[::2], -1))
    assert made(a, 3).tolist() == [0.0, 8.0, 16.0]
    assert made(a.astype("f4"), 1).dtype == "f4"
    assert not refused.is_left((a, -1))


def test_calls_that_python_does_almost_all_of_are_python_calls() -> None:
    def bytes_of(x: Any, k: int) -> Any:
        return x[k:].tobytes(), k + 1

    def sums(x: Any, k: int) -> Any:
        return (x * 2 + k).tobytes()

    def negated(x: Any, k: int) -> Any:
        return np.partition(-x, k)

    x = np.arange(6.0)
    small, large, simple = accelerate(bytes_of), accelerate(sums), accelerate(negated)
    with options(check=False):
        for k in range(8):
            assert small(x, k) == bytes_of(x, k)
            assert large(x, k) == sums(x, k)
            assert simple(x, min(k, 5)).tolist() == negated(x, min(k, 5)).tolist()
        notes = str(small.explain(x, 1))
    assert len(small.opaque_calls) == 1 and ".tobytes() of an array" in small.opaque_calls[0]
    assert small.specializations == [] and small.fell_back is False
    assert "Python runs such calls as a whole" in notes
    assert simple.specializations == [] and len(simple.opaque_calls) == 1
    assert len(large.specializations) == 1 and len(large.opaque_calls) == 1


def with_a_class(text: str) -> int:
    class Number:
        base = 10

    return int(text, Number.base)


class Last:
    number: Any = None


def kept(text: str) -> Any:
    SCALE.number = int(text)  # there is no such attribute of the object before
    return SCALE.number


def raises(f: Any, *args: Any) -> str:
    with pytest.raises(Exception) as found:
        f(*args)
    return f"{type(found.value).__name__}: {found.value}"


def test_calls_that_raise_and_are_refused_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(x: Any) -> Any:
        return x.missing

    def outside(x: Any) -> Any:
        return x[3, 3, 3]

    def unlike(x: Any) -> Any:
        return x + "text"

    for function in (missing, outside, unlike):
        f, x = accelerate(function), np.arange(3.0)
        expected = raises(function, x)
        seen = looks(monkeypatch)
        for _ in range(60):
            assert raises(f, x) == expected
        monkeypatch.undo()
        assert len(seen) < 25 and not f.fell_back and len(f._dispatcher.refused) == 0


def test_calls_that_raise_do_not_count() -> None:
    f: Any = accelerate(with_a_class)
    for k in range(specializations.MAX_SPECIALIZATIONS + 10):
        assert raises(f, f"no {k}").startswith("ValueError")
    refused = f._dispatcher.refused
    assert len(refused) == 0 and not refused.everything and len(refused._raised) == MAX_RAISED


def test_new_calls_are_seldom_compiled_where_all_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    f: Any = accelerate(with_a_class)
    compiled: list[Any] = []
    original = dispatcher.Dispatcher.specialize

    def specialize(self: Any, *args: Any) -> Any:
        compiled.append(args)
        return original(self, *args)

    monkeypatch.setattr(dispatcher.Dispatcher, "specialize", specialize)
    for k in range(MAX_RAISED + FIRST_LOOK):
        raises(f, f"no {k}")
    assert len(compiled) == MAX_RAISED
    raises(f, "another")
    assert len(compiled) == MAX_RAISED + 1
    refused = f._dispatcher.refused
    assert refused.raises_again()
    assert f("12") == 12  # from now on all is looked at again
    assert not refused.raises_again()


@pytest.mark.parametrize("times", [1, 3, SETTLED + 1, 30])
def test_a_call_that_does_not_raise_is_told_of(times: int) -> None:
    f: Any = accelerate(with_a_class)
    for _ in range(times):
        raises(f, "none")
    assert not f.fell_back
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [f(text) for text in ("12", "13", "14")] == [12, 13, 14]
    assert "a class cannot be defined" in f.fell_back
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("times", [1, 3, SETTLED + 1, 30])
def test_what_raised_at_first_is_compiled_later(times: int) -> None:
    class Holder:
        weight: float

    f: Any = accelerate(lambda holder, x: x * holder.weight + x)
    holder, x = Holder(), np.arange(3.0)
    for _ in range(times):
        assert raises(f, holder, x) == "AttributeError: 'Holder' object has no attribute 'weight'"
    holder.weight = 2.0
    for _ in range(4):
        assert f(holder, x).tolist() == [0.0, 3.0, 6.0]
    assert not f.fell_back and f.specializations


def test_calls_that_raise_again_and_again_are_taken_by_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parakeet_py.call.renting.gates_pay", lambda: True)

    def three(v: Any) -> Any:
        a, b, c = v
        return a + b * c

    f: Any = accelerate(three)
    for _ in range(SETTLED + AGAIN + 2):
        assert raises(f, (1, 2)) == "ValueError: not enough values to unpack (expected 3, got 2)"
    assert f((1, 2, 3)) == 7
    assert any(isinstance(gate, Plain) for gate in gates_of(f)) and not f.fell_back


def test_calls_that_compiled_code_gives_up_are_taken_by_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parakeet_py.call.renting.gates_pay", lambda: True)

    def powers(n: int) -> Any:
        found = np.zeros(2, dtype=np.int64)
        product = 1
        for i in range(n):
            product *= i + 7
            found[i % 2] = product
        return found

    f: Any = accelerate(powers)
    assert f(3).tolist() == [504, 56]
    for _ in range(SETTLED + 4):
        assert raises(f, 40).startswith("OverflowError")
    assert any(isinstance(gate, Plain) for gate in gates_of(f)) and f(3).tolist() == [504, 56]


def test_calls_that_raise_and_others_in_turn() -> None:
    refused, signature, x = Refusals(), Signature((NoneSpec(),)), (np.arange(3.0),)
    found = []
    for _ in range(MAX_FORGIVEN + 2):
        refused.add_raised(x, signature, "a reason")
        assert refused.untold and signature in refused and refused.reason(signature) == "a reason"
        found.append(refused.went_well(x, signature))
    assert found[: MAX_FORGIVEN + 1] == [""] * MAX_FORGIVEN + ["a reason"]
    assert not refused.untold
    refused.clear()
    for _ in range(SETTLED):
        refused.add_raised(x, signature, "a reason")
    assert refused.cover(x) and refused.went_well(x) == "" and not refused.cover(x) and not refused.untold
    assert refused.went_well(x) is None and refused.went_well(x, signature) is None


def test_refused_signatures_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specializations, "MAX_SPECIALIZATIONS", 5)
    monkeypatch.setitem(globals(), "SCALE", Last())
    f: Any = accelerate(kept)
    seen = looks(monkeypatch)
    assert [f(str(k)) for k in range(20)] == list(range(20))
    assert len(seen) == 5


def test_recursion_of_a_function_that_falls_back_goes_as_deep_as_in_python() -> None:
    """A gate takes larger calls before the first of them is run, which leads to all the others."""

    def descend(n: int) -> int:
        eval("0")
        return 0 if n == 0 else 1 + function(n - 1)

    function = accelerate(when="now")(descend)
    for _ in range(20):
        assert function(5) == 5
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    room = sys.getrecursionlimit() - depth - 60
    assert function.fell_back and function(room) == room


def test_containers_in_themselves() -> None:
    """Lists are looked into only so far to tell calls apart."""
    itself: list[Any] = []
    itself.append(itself)
    pair: tuple[list[Any], int] = ([], 1)
    pair[0].append(pair)
    by_name: dict[str, Any] = {}
    by_name["itself"] = by_name
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    for held in (itself, pair, by_name, deep):
        function = accelerate(when="now")(lambda held, x: (len(held), str(type(held)), x.sum()))
        for _ in range(3 * SETTLED):
            assert function(held, np.arange(3.0)) == (len(held), str(type(held)), 3.0)
