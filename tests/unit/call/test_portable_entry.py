"""Compiled code on an interpreter whose layouts are not known: it is entered without a look into any object."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options
from parakeet_py.llvm.entry.callable_type import gates_of, vectorcall_of
from parakeet_py.llvm.entry.entry_kind import why_portable
from parakeet_py.llvm.runtime.object_layout import Layout, unknown_layout
from tests.corpus import Program, all_programs, assert_same, outcome


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One of the offsets is another one here."""
    monkeypatch.setattr(Layout, "LIST_ITEMS", Layout.LIST_ITEMS + 8)
    _ask_anew()
    assert why_portable()
    yield
    monkeypatch.undo()
    _ask_anew()
    assert not why_portable()


def _ask_anew() -> None:
    unknown_layout.cache_clear()
    why_portable.cache_clear()


def _is_chosen(program: Program) -> bool:
    return program.fell_back is False and not program.opaque and zlib.crc32(program.name.encode()) % 150 == 0


@pytest.mark.parametrize("program", [one for one in all_programs() if _is_chosen(one)], ids=repr)
def test_programs(program: Program) -> None:
    """What programs give and do is the same; each call twice."""
    made: Any = accelerate(program.function, when="now")
    with options(threads=2, check=1, tiers=False):
        for case in program.cases:
            for _ in range(2):
                args, kwargs = case.make()
                expected = outcome(program.function, args, kwargs)
                args, kwargs = case.make()
                actual = outcome(made, args, kwargs)
                assert_same(
                    expected, actual, ulp=program.ulp, sums=program.sums, message=program.message, order=program.order
                )
    assert made._dispatcher.specializations or all(case.raises for case in program.cases)


def compiled(function: Callable[..., Any]) -> Any:
    return accelerate(function, when="now", strict=True)


def mixed(x: np.ndarray, i: int) -> Any:
    y = x * 2
    return y, y[1:], x, x[::-1], float(x[i]), [i, x.sum()]


def test_results_share_memory_as_in_python() -> None:
    f, x = compiled(mixed), np.arange(6.0)
    new, part, same, view, number, items = f(x, 2)
    assert vectorcall_of(f) is None and f.specializations
    assert new.tolist() == [0, 2, 4, 6, 8, 10] and np.shares_memory(new, part) and not np.shares_memory(new, x)
    assert same is x and view.base is x and view.strides == (-8,) and view.flags.writeable
    assert (number, items) == (2.0, [2, 15.0]) and type(number) is float and type(items[0]) is int
    part[0] = 7
    assert new[1] == 7
    del f, new
    assert part.tolist() == [7, 4, 6, 8, 10]  # and it keeps its memory


def test_new_arrays_own_theirs() -> None:
    @compiled
    def turned(x: np.ndarray) -> np.ndarray:
        return (x + 1).T

    x = np.ones((2, 3))
    made, plain = turned(x), turned.__wrapped__(x)
    assert made.strides == plain.strides and made.tolist() == plain.tolist() and made.flags.writeable


def test_arguments_are_left_as_python_leaves_them() -> None:
    def f(x: np.ndarray, i: int) -> float:
        x[0] += 1
        return float(x[i])

    made = compiled(f)
    for i in (1, 9, -1):
        one, other = np.zeros(3), np.zeros(3)
        assert_same(outcome(f, (one, i)), outcome(made, (other, i)), message=True)
        assert one.tolist() == other.tolist()


def test_what_needs_objects_runs_in_python() -> None:
    """With one warning, and the same results."""

    def f(x: np.ndarray, share: float) -> Any:
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = x[i] * i + x[i - 1] ** 2
        return (y * y).sum(), NormalDist().inv_cdf(share)

    g = accelerate(f, when="now")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(4):
            assert g(np.ones(3), 0.5) == (14.0, 0.0)
    assert {w.category for w in warned} == {FallbackWarning} and len(warned) == 1
    assert "for which compiled code has to know their layout" in str(warned[0].message)
    assert "unknown-interpreter" in str(warned[0].message)


def test_warnings_about_numbers() -> None:
    @compiled
    def inverse(x: np.ndarray) -> np.ndarray:
        return 1 / x

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert inverse(np.zeros(2)).tolist() == [np.inf, np.inf]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        inverse(np.zeros(2))


def test_long_loops_are_interrupted() -> None:
    @compiled
    def turns(n: int) -> int:
        state = 1
        for i in range(n):
            state = (state * 1103515245 + i) % 2147483647
        return state

    assert turns(10) == turns.__wrapped__(10)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells may have switched off
    try:
        timer = threading.Timer(0.1, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            turns(10**13)
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads() -> None:
    @compiled
    def norm(x: np.ndarray, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += x[i % len(x)] * i
        return total + float((x * x).sum())

    x = np.arange(100.0)
    expected, found = norm.__wrapped__(x, 500), []
    threads = [threading.Thread(target=lambda: found.extend(norm(x, 500) for _ in range(20))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 160


SCALE = np.arange(3.0)


def test_globals_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def multiply(x: np.ndarray) -> np.ndarray:
        return x * SCALE

    scaled, x = accelerate(multiply, when="now"), np.ones(3)
    assert scaled(x).tolist() == [0, 1, 2]
    for other in (np.arange(3.0) + 1, np.arange(3), np.arange(6.0)[::2], 2.0):
        monkeypatch.setitem(globals(), "SCALE", other)
        assert scaled(x).tolist() == (x * other).tolist()
    with pytest.raises(NameError):
        monkeypatch.delitem(globals(), "SCALE")
        scaled(x)


def test_when_it_pays() -> None:
    """Whatever is decided of calls, results are the same, and no gate of machine code takes those that Python runs."""

    def total(x: np.ndarray) -> float:
        found = 0.0
        for i in range(len(x)):
            for j in range(50):
                found += x[i] * j
        return found

    with options(when="pays", check=0):
        made, x = accelerate(total), np.ones(2_000)
        made.compile(x)
        assert {made(x) for _ in range(6)} == {total(x)} and made.specializations
        assert all(gate.address == 0 for gate in gates_of(made))


def test_by_the_environment() -> None:
    """A process that is told to: the type of accelerated functions is an ordinary class there, methods included."""
    text = """
import numpy as np
from parakeet_py import accelerate
from parakeet_py.llvm.entry.callable_type import HAS_NATIVE_CALLS

class Scaled:
    def __init__(self, factor): self.factor = factor
    @accelerate(when="now", strict=True)
    def of(self, x, *, offset=0.0): return x * self.factor + offset

assert not HAS_NATIVE_CALLS
x = np.arange(4.0)
assert Scaled(3.0).of(x, offset=1.0).tolist() == [1, 4, 7, 10]
assert Scaled.of(Scaled(2.0), x).tolist() == [0, 2, 4, 6]
assert len(Scaled.of.specializations) == 1, Scaled.of.specializations
print("done")
"""
    from os import environ

    done = subprocess.run(
        [sys.executable, "-c", text], env={**environ, "PARAKEET_PORTABLE": "entry"}, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
