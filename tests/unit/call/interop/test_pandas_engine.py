"""`engine=` of pandas gives what pandas gives by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.call.interop import pandas_engine

pandas = pytest.importorskip("pandas", minversion="3.0")
testing = pandas.testing
now = accelerate(when="now")


def spread(row: Any, scale: float = 1.0) -> Any:
    largest = smallest = row[0]
    for value in row:
        largest, smallest = max(largest, value), min(smallest, value)
    return (largest - smallest) * scale


FRAME = pandas.DataFrame(np.arange(12.0).reshape(4, 3) ** 2, columns=list("abc"), index=[3, 5, 7, 9])
ROWS = {
    "a number": spread,
    "an array": lambda row: row * 2,
    "first an int, then floats": lambda row: 1 if row[0] == 0 else 2.5,
    "text": lambda row: "many" if row[0] > 0 else "no",
}


@pytest.mark.parametrize("axis", [0, 1, "columns"])
@pytest.mark.parametrize("function", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("engine", [now, accelerate], ids=["now", "pays"])
def test_rows_and_columns(engine: Any, function: Any, axis: Any) -> None:
    expected = FRAME.apply(function, axis=axis, raw=True)
    found = FRAME.apply(function, axis=axis, raw=True, engine=engine)
    assert_same(found, expected)


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    check = testing.assert_series_equal if isinstance(found, pandas.Series) else testing.assert_frame_equal
    check(found, expected, check_exact=True)


def test_arguments_and_frames_of_ints_and_objects() -> None:
    for frame in (FRAME.astype(int), FRAME, FRAME.astype(object)):
        for axis in (0, 1):
            expected = frame.apply(spread, axis=axis, raw=True, args=(2.0,))
            assert_same(frame.apply(spread, axis=axis, raw=True, args=(2.0,), engine=now), expected)
            assert_same(frame.apply(spread, axis=axis, raw=True, scale=2.0, engine=now), expected)


def test_without_raw_the_function_takes_series() -> None:
    for function in (lambda row: row["a"] + 1, lambda row: row * 2):
        assert_same(FRAME.apply(function, axis=1, engine=now), FRAME.apply(function, axis=1))


def test_the_loop_is_compiled_once() -> None:
    loop = pandas_engine._loop(now, spread, {}, pandas_engine.over_rows)
    FRAME.apply(spread, axis=1, raw=True, engine=now)
    assert pandas_engine._loop(now, spread, {}, pandas_engine.over_rows) is loop
    assert loop.fell_back is False and loop.opaque_calls == [] and loop.specializations
    assert loop.__name__ == "spread"


ITEMS = {
    "floats": lambda v: v * 0.5,
    "ints": lambda v: 1 if v > 2 else 0,
    "bools": lambda v: v > 2,
    "numbers of two types": lambda v: 1 if v > 2 else 0.5,
    "bools and floats": lambda v: True if v > 2 else 0.5,
    "text": lambda v: "high" if v > 2 else "low",
    "None": lambda v: None if v > 2 else 1.0,
    "types": lambda v: type(v).__name__,
}


@pytest.mark.parametrize("function", ITEMS.values(), ids=ITEMS)
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "bool", "Int64", "category"])
def test_items(function: Any, dtype: str) -> None:
    series = pandas.Series([3, 1, 4, 1, 5], index=list("abcde"), name="x").astype(dtype)
    try:
        expected = series.map(function)
    except TypeError:
        with pytest.raises(TypeError):
            series.map(function, engine=now)
        return
    assert_same(series.map(function, engine=now), expected)


def test_missing_items_are_skipped() -> None:
    series = pandas.Series([1.0, np.nan, 3.0])
    for function in (lambda v: v + 1, lambda v: int(v)):
        expected = series.map(function, na_action="ignore")
        assert_same(series.map(function, na_action="ignore", engine=now), expected)


def test_exceptions_come_through() -> None:
    def picky(v: float) -> float:
        if v > 2:
            raise ValueError("too much")
        return v

    with pytest.raises(ValueError, match="too much"):
        pandas.Series([1.0, 3.0]).map(picky, engine=now)
    with pytest.raises(ValueError, match="too much"):
        FRAME.apply(lambda row: picky(row[0]), axis=1, raw=True, engine=now)
