"""Calls of decorated functions: by each other, again with new values, and with new types."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


def _square(x: Any) -> Any:
    return x * x


@functools.cache
def _decorated() -> Any:
    from parakeet_py import accelerate

    return accelerate(_square)


def _uses_decorated(x: Any) -> Any:
    square = _decorated_square
    return square(x) + square(2)


_decorated_square: Any = None


def test_decorated_function_is_compiled_into_its_caller() -> None:
    global _decorated_square
    from parakeet_py import accelerate

    _decorated_square = _decorated()
    caller = accelerate(_uses_decorated)
    x = np.arange(5.0)
    np.testing.assert_array_equal(caller(x), x * x + 4)
    assert not caller.opaque_calls and not caller.fell_back


def test_new_values_compile_nothing() -> None:
    from parakeet_py import accelerate

    f = accelerate(lambda x, a: x * a + 1)
    for size, a in ((3, 2.0), (4, 2.5), (0, -1.0), (1000, 0.0)):
        np.testing.assert_array_equal(f(np.ones(size), a), np.ones(size) * a + 1)
    assert len(f.specializations) == 1


def test_new_types_compile_anew() -> None:
    from parakeet_py import accelerate

    f = accelerate(lambda x, a: x * a)
    x = np.arange(6.0)
    calls = [(x, 2.0), (x, 2), (x.astype("f4"), 2.0), (x.reshape(2, 3), 2.0), (3, 2.0), (np.float64(3), 2.0)]
    for _ in range(2):
        for args in calls:
            result, plain = f(*args), args[0] * args[1]
            assert type(result) is type(plain) and np.array_equal(result, plain)
            assert np.asarray(result).dtype == np.asarray(plain).dtype
    assert len(f.specializations) == len(calls)


def test_the_decorated_function_looks_like_the_plain_one() -> None:
    f = _decorated()
    assert f.__name__ == "_square" and f.__wrapped__ is _square
    assert f.__doc__ == _square.__doc__ and f.__module__ == _square.__module__
