"""dtypes that mean the same are one to a specialization, whichever object they are: pickling makes new ones."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate

NAMES = ("bool", "int8", "uint16", "int32", "int64", "uint64", "float32", "float64", "complex64", "complex128")
KIND, SHORT = np.dtype("f4"), np.dtype("i2")


def others(name: str) -> list[np.dtype[Any]]:
    """NumPy's own object of a dtype, and others that mean the same."""
    own = np.dtype(name)
    return [own, pickle.loads(pickle.dumps(own)), own.newbyteorder("="), own.newbyteorder().newbyteorder()]


class Holder:
    def __init__(self, kind: np.dtype[Any]) -> None:
        self.kind = kind


def zeros(kind: Any) -> Any:
    return np.zeros(3, kind)


def item(pair: Any) -> Any:
    return np.ones(pair[1], pair[0])


def field(holder: Any) -> Any:
    return np.ones(2, holder.kind), holder.kind.itemsize


def default(x: Any, kind: Any = SHORT) -> Any:
    return x.astype(kind) + 1


WAYS: list[Callable[[np.dtype[Any]], tuple[Callable[..., Any], tuple[Any, ...]]]] = [
    lambda kind: (zeros, (kind,)),
    lambda kind: (item, ((kind, 2),)),
    lambda kind: (field, (Holder(kind),)),
    lambda kind: (default, (np.arange(3.0), kind)),
    lambda kind: (default, (np.ones(3, kind),)),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_equal_dtypes_are_compiled_once(way: int, name: str) -> None:
    made: dict[Any, Any] = {}
    for kind in others(name):
        function, args = WAYS[way](kind)
        fast = made.setdefault(function, accelerate(function))
        for _ in range(2):
            np.testing.assert_array_equal(fast(*args)[0], function(*args)[0], strict=True)
    (fast,) = made.values()
    assert fast._dispatcher.made == 1 and not fast.fell_back


def test_other_dtypes_are_told_apart() -> None:
    fast = accelerate(zeros)
    kinds: list[Any] = [
        np.dtype("f8"), np.dtype(">f8"), np.dtype("f8", metadata={"a": 1}), np.dtype("i8"), np.dtype("u8"),
        np.dtype([("x", "f8")]), np.dtype("M8[s]"), np.dtype("S8"), float, "f8", None, np.float64,
    ]  # fmt: skip
    for kind in (*kinds, *kinds[::-1], *others("f8")):
        np.testing.assert_array_equal(fast(kind), zeros(kind), strict=True)


def test_a_global_that_is_pickled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, x = accelerate(lambda x: x.astype(KIND)), np.arange(3.0)
    for name in ("f4", "f4", "f4", "i4", "f4"):
        monkeypatch.setitem(globals(), "KIND", pickle.loads(pickle.dumps(np.dtype(name))))
        assert fast(x).dtype == name
    assert fast._dispatcher.made == 2


def test_what_python_gives_is_no_other_result() -> None:
    def through_bytes(x: Any, kind: Any) -> Any:
        return np.zeros(2, pickle.loads(kind).dtype) + x

    fast, kind = accelerate(through_bytes), pickle.dumps(np.zeros(1, "f4"))
    for _ in range(6):
        assert fast(1.5, kind).dtype == np.float32
    assert fast._dispatcher.made <= 2 and not fast.fell_back


def test_arguments_are_the_same_whichever_came_first() -> None:
    @accelerate
    def same(x: Any, kind: Any) -> Any:
        return kind is np.dtype("f8"), kind is x.dtype, np.zeros(2, kind).dtype is kind

    x = np.ones(2)
    for kind in (pickle.loads(pickle.dumps(x.dtype)), x.dtype, x.dtype.newbyteorder("=")):
        assert same(x, kind) == (True, True, True)
