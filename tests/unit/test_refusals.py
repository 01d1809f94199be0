"""Calls that plain Python runs: found without their signature when they come often, and looked at again in time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import UnsupportedError, accelerate, asdevice, dispatcher, options
from parakeet_py.refusals import FIRST_LOOK, MAX_KINDS, SETTLED, Refusals, kind_of

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
