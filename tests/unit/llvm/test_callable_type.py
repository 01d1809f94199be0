"""The type of decorated functions, without any native code: calls, binding, identity, garbage."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import types
import weakref
from typing import Any

import pytest

from parakeet_py.llvm.entry.callable_type import (
    AcceleratedFunction,
    gates_of,
    install,
    set_slow,
    set_vectorcall,
    vectorcall_of,
)


def plain(x: float, y: float = 2.0, *rest: float, scale: float = 1.0) -> Any:
    """Add and scale."""
    return (x + y + sum(rest)) * scale


named = AcceleratedFunction(plain)
named.__name__ = "named"  # type: ignore[attr-defined]
named.__qualname__ = "named"  # type: ignore[attr-defined]


class Holder:
    factor = 3

    @AcceleratedFunction
    def method(self, x: float, y: float = 1.0) -> Any:
        return self.factor * x + y

    @staticmethod
    @AcceleratedFunction
    def static(x: float) -> float:
        return x

    @classmethod
    @AcceleratedFunction
    def of_class(cls, x: float) -> Any:
        return cls, x


def test_calls_reach_slow() -> None:
    f = AcceleratedFunction(plain)
    assert f(1.0) == 3.0
    assert f(1.0, y=5.0, scale=2.0) == 12.0
    assert f(*(1.0, 2.0, 3.0), **{"scale": 2.0}) == 12.0
    assert functools.partial(f, 1.0)(y=1.0) == 2.0
    assert list(map(f, [1.0, 2.0])) == [3.0, 4.0]
    with pytest.raises(TypeError, match="missing 1 required"):
        f()


def test_slow_can_be_another_callable() -> None:
    f = AcceleratedFunction(plain, lambda *args, **kwargs: (args, kwargs))
    assert f(1, a=2) == ((1,), {"a": 2})
    set_slow(f, max)
    assert f(3, 4) == 4
    assert gates_of(f) == ()


def test_it_looks_like_its_function() -> None:
    f: Any = AcceleratedFunction(plain)
    assert f.__wrapped__ is plain
    assert (f.__name__, f.__qualname__, f.__module__, f.__doc__) == ("plain", "plain", __name__, "Add and scale.")
    assert f.__annotations__ == plain.__annotations__
    assert inspect.signature(f) == inspect.signature(plain) == f.__signature__
    assert inspect.unwrap(f) is plain
    assert repr(f).startswith("<accelerated function plain at 0x")
    assert callable(f) and isinstance(f, AcceleratedFunction)
    assert "function" in str(inspect.signature(AcceleratedFunction))
    assert (f.__code__, f.__defaults__, f.__globals__) == (plain.__code__, plain.__defaults__, globals())
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        f.nothing  # noqa: B018
    f.note = 5
    assert f.note == 5 and "note" not in vars(plain)
    assert {f: 1}[f] == 1


def test_functions_that_are_no_python_functions() -> None:
    f: Any = AcceleratedFunction(len)
    assert f([1, 2]) == 2 and f.__name__ == "len"
    assert "accelerated function" in repr(AcceleratedFunction(functools.partial(len, [1])))


def test_methods_bind() -> None:
    holder = Holder()
    assert holder.method(2.0) == 7.0
    assert holder.method(2.0, y=2.0) == 8.0
    assert Holder.method(holder, 2.0) == 7.0
    assert isinstance(Holder.method, AcceleratedFunction)
    bound: Any = holder.method
    assert isinstance(bound, types.MethodType) and bound.__self__ is holder and bound(1.0) == 4.0
    assert Holder.static(4.0) == holder.static(4.0) == 4.0
    assert Holder.of_class(1.0) == holder.of_class(1.0) == (Holder, 1.0)

    class Derived(Holder):
        factor = 10

        def method(self, x: float, y: float = 1.0) -> Any:
            return super().method(x, y)

    assert Derived().method(1.0) == 11.0


def test_pickled_and_copied_by_name() -> None:
    for f in (named, Holder.method):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(f, protocol)) is f
        assert copy.copy(f) is f and copy.deepcopy(f) is f
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(AcceleratedFunction(lambda: 0))


def test_short_lived_functions_are_freed() -> None:
    def make() -> weakref.ref[Any]:
        def inner(x: float) -> float:
            return x

        return weakref.ref(AcceleratedFunction(inner))

    assert make()() is None  # by reference count alone

    def cycle() -> weakref.ref[Any]:
        @AcceleratedFunction
        def inner(x: int) -> Any:
            return inner(x - 1) if x else 0

        inner.me = inner
        assert inner(3) == 0
        return weakref.ref(inner)

    references = [cycle() for _ in range(10)]
    gc.collect()
    assert all(reference() is None for reference in references)


def test_no_references_are_lost_or_gained() -> None:
    value = object()
    f = AcceleratedFunction(lambda *args, **kwargs: args[0])
    function = f.__wrapped__
    before = sys.getrefcount(value), sys.getrefcount(f), sys.getrefcount(function), sys.getrefcount(AcceleratedFunction)
    for _ in range(10_000):
        f(value, other=value)
    assert before == (
        sys.getrefcount(value),
        sys.getrefcount(f),
        sys.getrefcount(function),
        sys.getrefcount(AcceleratedFunction),
    )


def test_subclasses_work_through_call() -> None:
    class Louder(AcceleratedFunction):
        pass

    assert Louder(plain)(1.0) == 3.0


def test_instances_show_what_their_function_has() -> None:
    f: Any = AcceleratedFunction(plain)
    assert (f.__name__, f.__qualname__, f.__module__, f.__doc__) == ("plain", "plain", __name__, plain.__doc__)
    assert f.__wrapped__ is plain and vars(f) == {}
    f.__name__, f.__doc__ = "other", "a text"
    assert (f.__name__, f.__doc__, vars(f)) == ("other", "a text", {"__name__": "other", "__doc__": "a text"})
    assert AcceleratedFunction.__module__ == "parakeet_py.llvm.entry.callable_type"
    assert str(AcceleratedFunction.__doc__).startswith("A function that runs")
    assert pickle.loads(pickle.dumps(AcceleratedFunction)) is AcceleratedFunction


def test_the_type_is_immutable_and_subclasses_are_not() -> None:
    class Own(AcceleratedFunction):
        pass

    Own.answer = property(lambda self: (self.__name__, 42))
    assert Own(plain).answer == ("plain", 42)
    with pytest.raises(TypeError, match="immutable type"):
        AcceleratedFunction.answer = 42  # type: ignore[attr-defined]


def test_the_forward_gate() -> None:
    from parakeet_py.llvm.entry import boxing

    boxing.support()
    f = AcceleratedFunction(plain)
    assert vectorcall_of(f) is None
    install(f, [])
    assert vectorcall_of(f) is not None
    assert f(1.0, y=1.0) == 2.0 and f(*[1.0]) == 3.0
    set_slow(f, max)
    assert f(3, 4) == 4
    reference = weakref.ref(f)
    del f
    assert reference() is None
    g = AcceleratedFunction(plain)
    install(g, [])
    set_vectorcall(g, None)
    assert g(1.0) == 3.0


def test_slow_changes_while_threads_call() -> None:
    from parakeet_py.llvm.entry import boxing

    boxing.support()
    f = AcceleratedFunction(plain, lambda x: x)
    install(f, [])
    stop = threading.Event()
    wrong: list[Any] = []

    def run() -> None:
        while not stop.is_set():
            if f(1.0) not in (1.0, 2.0):
                wrong.append(f)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for index in range(2000):
        set_slow(f, (lambda x: x) if index % 2 else (lambda x: x + 1))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_import_is_cheap() -> None:
    code = "import sys, parakeet_py.llvm.entry.callable_type; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
