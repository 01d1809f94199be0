"""Bodies that users register for functions: called by compiled code, taken back, never mistaken for one another."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

from parakeet_py import accelerate, options, register, unregister
from parakeet_py.base import extensions

SCALE = 2.0


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    unregister(*(target for target, _ in list(extensions._bodies.values())))


def spread(x: Any) -> Any:
    return scipy.special.cbrt(x)[2] - statistics.fmean((3.0, 4.0))


def root(x: Any) -> Any:
    return np.cbrt(x)


def test_body_is_compiled_in_place_of_the_function() -> None:
    x = np.array([3.0, 1.0, 8.0, 0.5])
    function: Any = accelerate(spread)
    for _ in range(2):
        assert function(x) == spread(x)
    assert len(function.opaque_calls) == 2
    assert register(scipy.special.cbrt)(root) is root

    @register(statistics.fmean)
    def mean(values: Any) -> Any:
        return sum(values) / len(values)

    assert function(x) == spread(x)
    assert not function.opaque_calls
    assert "is done by root, registered for it" in str(function.explain(x))
    unregister(statistics.fmean)
    for _ in range(2):
        assert function(x) == spread(x)
    (left,) = function.opaque_calls
    assert "fmean" in left


def test_registered_before_the_library() -> None:
    """What a body says is done, in the user's code; the library's own calls are not touched."""

    def both(x: Any) -> Any:
        return np.sum(x), np.mean(x), x.sum()

    x = np.array([1.0, 2.0])
    register(np.sum)(lambda a: np.prod(a) * SCALE)
    function: Any = accelerate(both)
    assert function(x) == (4.0, 1.5, 3.0)
    globals()["SCALE"] = 3.0  # read at every call, as globals are
    try:
        assert function(x) == (6.0, 1.5, 3.0)
    finally:
        globals()["SCALE"] = 2.0
    unregister(np.sum)
    assert function(x) == both(x)


def test_body_may_call_what_it_stands_for() -> None:
    @register(np.sort)
    def downwards(a: Any, axis: int = -1) -> Any:
        return np.flip(np.sort(a, axis), axis)

    function: Any = accelerate(lambda x: np.sort(x, axis=0))
    assert function(np.array([1.0, 3.0, 2.0])).tolist() == [3.0, 2.0, 1.0]
    assert not function.opaque_calls


def test_methods_of_arrays() -> None:
    @register(np.ndarray.partition, np.ndarray.byteswap)
    def in_order(a: Any, kth: Any = None) -> Any:
        a.sort()

    def smallest(x: Any) -> Any:
        x.partition(2)
        return x[:2]

    function: Any = accelerate(smallest)
    x = np.array([3.0, 1.0, 2.0, 0.5])
    assert function(x).tolist() == [0.5, 1.0]
    assert x.tolist() == [0.5, 1.0, 2.0, 3.0]
    assert not function.opaque_calls


def test_ufuncs_of_other_packages() -> None:
    def entropy(x: Any) -> Any:
        return scipy.special.xlogy(x, x).sum()

    x = np.linspace(0.1, 2.0, 9)
    function: Any = accelerate(entropy)
    for _ in range(2):
        assert function(x) == entropy(x)
    assert len(function.opaque_calls) == 1

    @register(scipy.special.xlogy)
    def xlogy(x: Any, y: Any) -> Any:
        return np.where((x == 0) & ~np.isnan(y), 0.0, x * np.log(np.where(x == 0, 1.0, y)))

    assert abs(function(x) - entropy(x)) < 1e-14
    assert not function.opaque_calls
    assert function.explain(x).kernels == 1


def test_arguments_a_body_does_not_know() -> None:
    """The call goes to the function itself, as does one of a body that cannot be compiled."""
    register(scipy.special.cbrt)(root)
    function: Any = accelerate(lambda x: scipy.special.cbrt(x, dtype="f8") + scipy.special.cbrt(x))
    x = np.array([8.0, 1.0, 27.0])
    for _ in range(2):
        assert function(x).tolist() == [4.0, 2.0, 6.0]
    assert len(function.opaque_calls) == 1

    @register(np.unwrap)
    def odd(p: Any) -> Any:
        class Local:
            pass

        return Local()

    other: Any = accelerate(lambda x: np.unwrap(x) * 2)
    for _ in range(2):
        assert other(x).tolist() == (np.unwrap(x) * 2).tolist()
    assert len(other.opaque_calls) == 1


def test_any_callable_object() -> None:
    class Twice:
        def __call__(self, x: Any) -> Any:
            return x * 2

    twice = Twice()
    register(twice)(lambda x: x + x)
    function: Any = accelerate(lambda x: twice(x) + 1)
    assert function(np.arange(3.0)).tolist() == [1.0, 3.0, 5.0]
    assert not function.opaque_calls


def test_code_on_disk_belongs_to_registrations(tmp_path: Path) -> None:
    x = np.array([3.0, 1.0, 2.0, 0.5])

    def call() -> tuple[Any, bool]:
        function: Any = accelerate(total)
        value = function(x)
        (made,) = function.specializations
        return value, made.from_disk

    with options(cache=True, cache_dir=os.fspath(tmp_path / "cache")):
        assert call() == (6.5, False)
        assert call() == (6.5, True)
        register(np.sum)(partition_sum)
        assert call() == (13.0, False)
        assert call() == (13.0, True)
        unregister(np.sum)
        assert call() == (6.5, True)


def total(x: Any) -> Any:
    return np.sum(x)


def partition_sum(a: Any) -> Any:
    return np.dot(a, np.full(len(a), 2.0))


def test_mistakes() -> None:
    with pytest.raises(TypeError, match="needs the functions"):
        register()
    with pytest.raises(TypeError, match="3 cannot be called"):
        register(3)
    with pytest.raises(TypeError, match=r"the body of numpy\.sum has to be a Python function"):
        register(np.sum)(math.fsum)
    with pytest.raises(KeyError, match=r"nothing is registered for numpy\.sum"):
        unregister(np.sum)
    function = accelerate(root)
    assert register(scipy.special.cbrt)(function) is function
    assert extensions.body_of(scipy.special.cbrt) is root
