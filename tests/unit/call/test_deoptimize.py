"""Calls that compiled code gives up: Python runs them instead, as if they had never been begun."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, asdevice, options
from parakeet_py.base.config import current
from parakeet_py.call.compile import compile_call
from parakeet_py.call.load import Knowledge
from parakeet_py.hybrid.residency.device_array import DeviceArray
from parakeet_py.imp.schedule.effects import checks_before_effects, stores_only_into_its_own


def test_the_call_goes_to_python() -> None:
    @accelerate
    def power(a: int, b: int) -> Any:
        return a**b

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [power(2, b) for b in (3, -1, 5, -2)] == [8, 0.5, 32, 0.25]
    assert len(power.specializations) == 1
    assert power.fell_back is False


def test_memory_of_its_own_may_have_been_written() -> None:
    @accelerate
    def function(x: Any, a: int, b: int) -> Any:
        y = x + 1
        y[0] = a**b
        return y

    x = np.zeros(3)
    for b in (2, -1, 3, -2):
        assert function(x, 2, b).tolist() == [2.0**b, 1, 1]


def test_a_store_after_the_check() -> None:
    @accelerate
    def function(x: Any, a: int, b: int) -> None:
        x[0] = a**b

    x = np.zeros(2)
    for b in (2, -1, 3, -2):
        function(x, 2, b)
        assert x[0] == 2.0**b


def test_a_store_before_the_check_is_undone() -> None:
    @accelerate
    def function(x: Any, y: Any, a: int, b: int) -> Any:
        x += 1
        y[::-1, 1:] = x[0]
        return a**b

    x, y = np.zeros(2), np.zeros((5, 4), order="F")[::2]
    for count, b in enumerate((3, -1, 0, -2, 4), 1):
        references = sys.getrefcount(x)
        assert function(x, y, 2, b) == 2**b
        assert sys.getrefcount(x) == references
        assert x.tolist() == [count, count]
        assert y.tolist() == [[0] + 3 * [count]] * 3
    assert function.fell_back is False
    assert "the contents of x, y are kept" in str(function.explain(x, y, 2, 3))


@pytest.mark.parametrize("devices", ["emulated", "emulated*2", "cpu,emulated"])
def test_stores_are_undone_on_devices(devices: str) -> None:
    """What is put back lies on a device, on several, or in the host's memory."""

    @accelerate
    def function(x: Any, y: Any, a: int, b: int) -> Any:
        x += 1
        y[::-1, 1:] = x[0]
        return a**b

    with options(devices=devices):
        x, y = asdevice(np.zeros(1000)), asdevice(np.zeros((3, 4), order="F"))
        for count, b in enumerate((3, -1, 0, -2, -2, 4), 1):
            assert function(x, y, 2, b) == 2**b
            if count in (1, 4):
                continue  # the next call finds them as this one has left them
            assert np.array_equal(x, np.full(1000, count)) and type(x) is DeviceArray
            assert np.array_equal(y, [[0] + 3 * [count]] * 3)
        given = np.zeros(3)  # an array of the host beside one on a device
        assert function(x, given.reshape(3, 1), 2, -1) == 0.5
        with pytest.raises(ValueError, match="negative"):
            function(x, y, np.int64(2), np.int64(-1))
        assert np.asarray(x)[-1] == 8.0
    assert function.fell_back is False


def test_overlapping_arguments_are_put_back() -> None:
    @accelerate
    def function(x: Any, y: Any, a: int, b: int) -> Any:
        x += 1
        y += 2
        return a**b

    x = np.zeros(6)
    assert function(x[:4], x[2:], 2, 3) == 8
    assert function(x[:4], x[2:], 2, -1) == 0.5
    assert x.tolist() == [2, 2, 6, 6, 4, 4]


def test_what_has_been_printed_stays_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What shows in other places than arguments is not undone: Python goes on from there."""

    @accelerate
    def function(x: Any, a: int, b: int) -> Any:
        x += 1
        print(a)
        return a**b

    x = np.zeros(2)
    assert [function(x, 2, b) for b in (3, 3, -1, -1, 3)] == [8, 8, 0.5, 0.5, 8]
    assert x.tolist() == [5, 5]
    assert capsys.readouterr().out == "2\n" * 5
    assert function.fell_back is False


def test_arguments_are_not_leaked() -> None:
    @accelerate
    def function(x: Any, a: int, b: int) -> Any:
        y = x * 2
        return y.sum() + a**b

    x = np.ones(100_000)
    function(x, 2, 2)
    before = sys.getrefcount(x)
    for _ in range(10):
        assert function(x, 2, -1) == 200_000.5
    assert sys.getrefcount(x) == before


def test_which_checks_come_first() -> None:
    def function(x: Any, y: Any, i: int) -> Any:
        z = np.zeros(3)
        z[i] = 1
        x[i] = 2
        y[i + 1] = 3
        return z

    args = (np.zeros(3), np.zeros(3), 1)
    made = compile_call(function, args, Knowledge(), current()).imp  # type: ignore[arg-type]
    early = checks_before_effects(made)
    lines = [made.failures[code].pos.line for code in sorted(early) if made.failures[code].pos.line]
    first = function.__code__.co_firstlineno
    assert first + 2 in lines
    assert first + 4 not in lines
    assert not stores_only_into_its_own(made)


def test_numpy_words_its_exceptions_itself() -> None:
    """Where nothing has happened yet, and there is no loop to go through again."""

    @accelerate
    def function(a: Any, b: Any) -> Any:
        return np.broadcast_arrays(a, b)

    @accelerate
    def after_a_loop(a: Any, b: Any, n: int) -> Any:
        total = 0.0
        for i in range(n):
            total += a[0, i % 2]
        return total, np.broadcast_arrays(a, b)

    text = r"single shape\.  Mismatch is between arg 0 with shape \(2, 3\) and arg 1 with shape \(2, 2\)\."
    with pytest.raises(ValueError, match=text):
        function(np.ones((2, 3)), np.ones((2, 2)))
    assert len(function.specializations) == 1
    with pytest.raises(ValueError, match=r"single shape\.$"):
        after_a_loop(np.ones((2, 3)), np.ones((2, 2)), 3)
