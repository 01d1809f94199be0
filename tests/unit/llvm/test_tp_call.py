"""Callers in C that use the type's `tp_call`, and `__call__` itself, enter machine code as others do."""

from __future__ import annotations

import ctypes
import functools
import gc
import operator
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install, vectorcall_of

_TP_CALL = 128  # offset in PyTypeObject


def called_by_type(f: Any, *args: Any, **kwargs: Any) -> Any:
    """A call as C code makes it through the type: tp_call(f, args, kwargs)."""
    slot = ctypes.c_void_p.from_address(id(type(f)) + _TP_CALL).value
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)
    assert slot is not None
    return prototype(slot)(f, args, kwargs)


def make() -> tuple[Any, list[object]]:
    """An accelerated function, and what is put down whenever Python runs a call of it."""
    in_python: list[object] = []

    @accelerate
    def f(w, scale=1.0):
        total = 0.0
        for v in w:
            total += scale * v * v
        return total

    plain = f._dispatcher.function
    run_python = f._dispatcher.run_python
    f._dispatcher.run_python = lambda normal: in_python.append(normal) or run_python(normal)
    assert f(np.arange(4.0)) == plain(np.arange(4.0))
    return f, in_python


def ways(f: Any) -> list[Any]:
    return [
        functools.partial(called_by_type, f),
        f.__call__,
        functools.partial(f),
        functools.partial(operator.call, f),
        lambda *args, **kwargs: AcceleratedFunction.__call__(f, *args, **kwargs),
    ]


@pytest.mark.parametrize("way", range(5))
def test_machine_code_is_entered(way: int) -> None:
    f, in_python = make()
    call = ways(f)[way]
    w = np.arange(4.0)
    assert call(w) == 14.0
    assert call(w, 2.0) == call(w, scale=2.0) == call(w=w, scale=2.0) == 28.0
    assert call(w.astype(np.float32)) == 14.0
    assert in_python == [] and len(f.specializations) >= 2
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'w'"):
        call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        call(w, other=1)


def test_pandas_rolling_apply() -> None:
    pandas = pytest.importorskip("pandas")
    f, in_python = make()
    x = pandas.Series(np.arange(50.0))
    found = x.rolling(5).apply(f, raw=True)
    expected = x.rolling(5).apply(f.__wrapped__, raw=True)
    pandas.testing.assert_series_equal(found, expected)
    pandas.testing.assert_series_equal(x.rolling(5).apply(f, raw=True, kwargs={"scale": 1.0}), expected)
    pandas.testing.assert_series_equal(x.expanding(5).apply(f, raw=True), x.expanding(5).apply(f.__wrapped__, raw=True))
    assert in_python == []


def test_builtins_that_take_functions() -> None:
    @accelerate
    def key(v):
        return -v * v

    assert list(map(key, [1, 2])) == [-1, -4]
    assert sorted([1, -3, 2], key=key) == [-3, 2, 1]
    assert max([1, -3, 2], key=key) == 1
    assert functools.reduce(accelerate(lambda a, b: a - b), [10, 1, 2]) == 7
    assert np.apply_along_axis(accelerate(lambda row: row.sum()), 1, np.ones((2, 3))).tolist() == [3.0, 3.0]


def test_bound_methods() -> None:
    class Scaled:
        @accelerate
        def times(self, x):
            return x * 3

    bound = Scaled().times
    assert isinstance(bound, types.MethodType)
    assert bound(2) == called_by_type(bound, 2) == called_by_type(bound, x=2) == 6


def test_subclasses() -> None:
    boxing.support()

    class Plain(AcceleratedFunction):
        pass

    class Further(Plain):
        pass

    class Own(AcceleratedFunction):
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
            return "own", super().__call__(*args, **kwargs)

    for cls in (Plain, Further, Own):
        f = cls(lambda x, y=1: x + y)
        for installed in (False, True):
            if installed:
                install(f, [])  # from now on, the pointer is set
            assert (vectorcall_of(f) is not None) == installed
            expected: Any = ("own", 3) if cls is Own else 3
            assert f(1, 2) == f(1, y=2) == called_by_type(f, 1, y=2) == expected
    Plain.__call__ = lambda self, x: "new"  # type: ignore[method-assign]
    assert Plain(len)(3) == Further(len)(3) == called_by_type(Further(len), 3) == "new"
    del Plain.__call__  # type: ignore[misc]
    assert Plain(len)([3]) == Further(len)([3]) == 1


def test_exceptions_and_references() -> None:
    boxing.support()
    f = AcceleratedFunction(lambda x: x.nothing)
    install(f, [])
    with pytest.raises(AttributeError, match="nothing"):
        called_by_type(f, 1)
    value = object()
    g = AcceleratedFunction(lambda *args, **kwargs: args[0])
    install(g, [])
    before = sys.getrefcount(value), sys.getrefcount(g)
    for _ in range(1000):
        called_by_type(g, value, other=value)
        g.__call__(value)
    assert before == (sys.getrefcount(value), sys.getrefcount(g))
    reference = weakref.ref(g)
    del g
    gc.collect()
    assert reference() is None
