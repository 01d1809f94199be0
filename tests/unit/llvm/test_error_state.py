"""NumPy's error state and warnings around compiled calls: errors that are asked for, warnings once for each place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call import floating_warnings
from parakeet_py.llvm.runtime import error_state

ZEROS, ONES = np.zeros(3), np.ones(3)
flags = pytest.mark.skipif(not error_state.HAS_FLAGS, reason="the flags of this processor are not known")


def quotient(x: Any, y: Any) -> Any:
    return x / y


def line_of(function: Any, offset: int = 1) -> int:
    return int(function.__code__.co_firstlineno) + offset


@pytest.fixture
def divide() -> Any:
    """A compiled quotient, of which nothing has been told yet."""
    found: Any = accelerate(quotient)
    found(ONES, ONES)
    quotient.__globals__.pop("__warningregistry__", None)
    return found


@pytest.fixture(autouse=True)
def _state() -> Iterator[None]:
    before = np.geterr()
    yield
    np.seterr(**before)
    np.seterrcall(None)


def test_errors_around_a_call(divide: Any) -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        divide(ONES, ZEROS)
    assert np.isinf(divide(ONES, ONES * 0)).all()


def test_errors_everywhere(divide: Any) -> None:
    np.seterr(all="raise")
    with pytest.raises(FloatingPointError, match="invalid value"):
        divide(ZEROS, ZEROS)
    np.seterr(all="ignore")
    assert np.isnan(divide(ZEROS, ZEROS)).all()
    assert not divide.fell_back


def test_a_function_that_is_called(divide: Any) -> None:
    seen: list[Any] = []
    np.seterrcall(lambda kind, mask: seen.append(kind))
    with np.errstate(divide="call"):
        divide(ONES, ZEROS)
    assert seen == ["divide by zero"]


def test_a_line_that_is_printed(divide: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with np.errstate(divide="print"):
        divide(ONES, ZEROS)
    assert "divide by zero" in capfd.readouterr().err


def test_errors_in_the_first_call() -> None:
    found: Any = accelerate(quotient)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        found(ONES, ZEROS)
    found(ONES, ONES)
    assert found.specializations and not found.fell_back


def test_errors_of_integers() -> None:
    found: Any = accelerate(lambda x, y: x // y)
    a = np.arange(3)
    with np.errstate(all="ignore"):
        found(a, a)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        found(a, a)


def test_errors_of_numbers(divide: Any) -> None:
    divide(np.float64(1), np.float64(2))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        divide(np.float64(1), np.float64(0))


def test_the_mask_is_that_of_the_state() -> None:
    for action in ("ignore", "warn", "raise", "call", "print", "log"):
        with np.errstate(over=action):
            assert error_state.asks_for_errors() == (action not in ("ignore", "warn"))


@flags
def test_a_warning_once_for_a_place(divide: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            divide(ONES, ZEROS)
    assert [str(one.message) for one in caught] == ["divide by zero encountered in divide"]
    assert (caught[0].filename, caught[0].lineno) == (__file__, line_of(quotient))


@flags
def test_every_warning(divide: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            divide(ONES, ZEROS)
        divide(ONES, ONES)
    assert len(caught) == 3


@flags
def test_a_warning_as_an_error(divide: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(RuntimeWarning, match="divide by zero") as caught:
                divide(ONES, ZEROS)
    assert [entry.name for entry in caught.traceback][1:] == ["quotient"]


@flags
def test_new_filters_show_it_again(divide: Any) -> None:
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            divide(ONES, ZEROS)
        assert len(caught) == 1


def test_filters_that_are_known_have_their_place_in_memory() -> None:
    record = error_state.Record()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        record.settle(error_state.DIVIDE)
    others = [[*warnings.filters] for _ in range(100)]
    assert record.filters not in [id(one) for one in others]


@flags
def test_kinds_that_are_ignored_hide_no_others() -> None:
    found: Any = accelerate(lambda x: np.log(x))
    x = np.array([-1.0, 0.0])
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        found(x)
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log"):
        found(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        found(x)


@flags
def test_no_warning_that_is_ignored(divide: Any) -> None:
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        divide(ONES, ZEROS)
    assert not caught


@flags
def test_flags_of_lanes_that_are_not_used() -> None:
    found: Any = accelerate(lambda x: np.array([1 / one if one > 0 else 0.0 for one in x]))
    x = np.arange(64.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found(x)
        found(x)
    assert not caught


@flags
def test_flags_of_other_threads() -> None:
    found: Any = accelerate(lambda x: 1 / x)
    x = np.ones(500_000)
    with options(threads=2):
        found(x)
        for place in range(0, len(x), 49_999):
            x[:] = 1
            x[place] = 0
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found(x)
            assert len(caught) == 1


@flags
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x: np.log(x), 0),
        (lambda x: np.log(x), -1),
        (lambda x: np.log2(x), 0),
        (lambda x: np.log10(x), -1),
        (lambda x: np.sqrt(x), -1),
        (lambda x: np.exp(x), 1e4),
        (lambda x: x**-0.5, 0),
        (lambda x: x**2.5, -1),
        (lambda x: x * x * x * x * x, 1e30),
        (lambda x: np.sin(x), np.inf),
        (lambda x: x.astype(np.int32), np.nan),
        (lambda x: x % 0, 1),
    ],
)
def test_warnings_are_numpys(function: Any, value: float, dtype: str) -> None:
    """The same as without the decorator, for arrays and for numbers."""
    found: Any = accelerate(function)
    for x in (np.full(9, value, dtype), np.dtype(dtype).type(value)):
        told = []
        for one in (function, found):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                one(x)
            told.append([(str(warning.message), warning.lineno) for warning in caught])
        assert told[0] == told[1]
        if isinstance(x, np.ndarray) and value != 1e30:
            assert told[0]


@flags
def test_what_shows_is_not_done_twice() -> None:
    def halve(x: Any) -> None:
        x /= 2
        x /= 0

    found: Any = accelerate(halve)
    with np.errstate(all="ignore"):
        found(np.ones(3))
    x = np.array([0.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found(x)
    assert np.isnan(x[0]) and np.isinf(x[1])


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def divide(self, x: Any) -> Any:
        self.calls += 1
        return 1.0 / x


def test_attributes_are_not_set_twice() -> None:
    counting, divide = Counting(), accelerate(Counting.divide)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for calls in range(1, 4):
            assert np.isinf(divide(counting, ZEROS)).all() and counting.calls == calls
    assert not caught and not divide.fell_back


@flags
def test_long_loops_are_not_gone_through() -> None:
    def total(x: Any, n: int) -> Any:
        found = x[0] / x[1]
        for i in range(n):
            found = found + 1.5 * i
        return found

    found: Any = accelerate(total)
    x = np.array([1.0, 0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert np.isinf(found(x, 200_000_000))
    assert len(caught) == 1


@flags
def test_short_calls_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    def inverses(x: Any) -> Any:
        return [1 / one for one in x]

    def until(x: Any) -> Any:
        while x[0] < 1:
            x = x + 1 / (x - x)
        return x

    watched: list[float] = []
    monkeypatch.setattr(floating_warnings, "_tracer", lambda end: watched.append(end))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (quotient, inverses, until):
            found: Any = accelerate(function)
            found(ONES, ZEROS) if function is quotient else found(ZEROS)
            assert (len(watched) == 1) is (function is until)
    assert len(caught) == 5
