"""Compiling off the path of calls. The price of compiling is given, and the thread waited for: no time is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options
from parakeet_py.base import compiler_thread, gc_pause
from parakeet_py.call import pricing, renting
from parakeet_py.call.dispatch import background, first_calls
from parakeet_py.call.dispatch.compiling import Compiling
from parakeet_py.call.renting import Account, Trial

X = np.arange(6.0)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The second call is to be compiled; machine code wins."""
    monkeypatch.setattr(pricing.compile_cost, "of", lambda size: 1.0)
    monkeypatch.setattr(pricing.CompileCost, "room", 1e18)
    monkeypatch.setattr(renting, "LONGEST", 1e18)
    monkeypatch.setattr(first_calls, "BUDGET", 0)
    monkeypatch.setattr(Account, "goes_on", lambda self, normal: not (self.loading or self.waits))
    monkeypatch.setattr(Trial, "judge", lambda self, native, python: self.finish(True))
    monkeypatch.setattr(Compiling, "cpus", lambda self: 2)
    with options(when="pays", background=True):
        yield
    background.wait()


def compiled_in(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each function is compiled off the path."""
    found: list[bool] = []
    compile_one = Compiling.compile

    def noted(self: Compiling, *args: Any) -> Any:
        found.append(compiler_thread.is_here())
        return compile_one(self, *args)

    monkeypatch.setattr(Compiling, "compile", noted)
    return found


def until_native(call: Callable[..., Any], *args: Any) -> list[Any]:
    results = []
    for _ in range(8):
        results.append(call(*args))
        background.wait()
    return results


def test_calls_go_on_until_there_is_code(monkeypatch: pytest.MonkeyPatch) -> None:
    where = compiled_in(monkeypatch)
    python: list[int] = []

    @accelerate
    def f(x: Any, n: int) -> Any:
        total = 0.0
        for value in x:
            total += n * value
        return total

    plain = f.__wrapped__
    f._dispatcher.account.run = lambda normal, call: python.append(1) or call()
    assert until_native(f, X, 2) == [plain(X, 2)] * 8
    assert where == [True] and len(f.specializations) == 1
    before = len(python)
    assert f(X, 3) == plain(X, 3) and len(python) == before


def test_what_cannot_be_compiled_is_told_by_a_call() -> None:
    def f(x: Any) -> Any:
        class Sum:
            value = x.sum()

        return Sum.value

    fast = accelerate(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert until_native(fast, X) == [15.0] * 8
    (only,) = [one for one in caught if issubclass(one.category, FallbackWarning)]
    assert only.filename == __file__ and "class" in str(only.message)


def test_what_is_handed_back_is_observed_by_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    where = compiled_in(monkeypatch)

    def f(m: Any) -> Any:
        total = 0.0
        for row in m:
            total += row[0] * row[1]
        return total + np.partition(m * m, 1, axis=None)[1]

    fast, m = accelerate(f), np.arange(12.0).reshape(4, 3)
    assert until_native(fast, m) == [f(m)] * 8
    assert where == [True, True] and len(fast.specializations) == 1


def test_what_fails_there_is_compiled_by_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_one, where = Compiling.compile, []

    def failing(self: Compiling, *args: Any) -> Any:
        where.append(compiler_thread.is_here())
        if compiler_thread.is_here():
            raise RuntimeError("dictionary changed size during iteration")
        return compile_one(self, *args)

    monkeypatch.setattr(Compiling, "compile", failing)
    fast = accelerate(lambda x: x * 2.0)
    assert all(np.array_equal(one, X * 2.0) for one in until_native(fast, X))
    assert where == [True, False] and len(fast.specializations) == 1


def test_one_at_a_time_and_not_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    began, end = threading.Event(), threading.Event()
    done: list[bool] = []

    def work() -> None:
        began.set()
        with gc_pause.put_off():
            done.append(compiler_thread.is_here())
        end.wait(60)

    assert not background.begin(work, 1)
    threading.settrace(lambda *event: None)
    try:
        assert not background.begin(work, 2)
    finally:
        threading.settrace(None)  # type: ignore[arg-type]
    assert background.begin(work, 2) and background.is_busy() and not background.begin(work, 2)
    began.wait(60)
    where = compiled_in(monkeypatch)
    fast = accelerate(lambda x: x - 1.0)
    assert all(np.array_equal(fast(X), X - 1.0) for _ in range(5)) and not where
    end.set()
    background.wait()
    assert done == [True] and not background.is_busy() and not compiler_thread.is_here()
    monkeypatch.setattr(Compiling, "cpus", lambda self: 1)
    assert all(np.array_equal(one, X - 1.0) for one in until_native(fast, X)) and where == [False]


AWKWARD = """
import os, sys, threading, warnings
warnings.simplefilter("error")
import numpy as np
from parakeet_py import accelerate
from parakeet_py.base import interrupts
from parakeet_py.call import renting
from parakeet_py.call.dispatch import background, compiling

began = threading.Event()
compile_one = compiling.Compiling.compile

def endless(self, *args):
    began.set()
    if interrupts.compiler_thread.is_here():
        while True:
            interrupts.poll()
    return compile_one(self, *args)

compiling.Compiling.compile = endless
compiling.Compiling.cpus = lambda self: 2
renting.Account.goes_on = lambda self, normal: not (self.loading or self.waits)
renting.compile_cost.of = lambda size: 1.0

@accelerate
def f(x):
    return x + 1.0

f._dispatcher
x = np.ones(3)
while not began.is_set():
    assert f(x)[0] == 2.0
"""


@pytest.mark.parametrize("end", ["", "os.fork() or os._exit(background.begin(int, 2))\nassert os.wait()[1] == 0\n"])
def test_the_thread_ends_with_the_process_and_before_a_fork(end: str, tmp_path: Path) -> None:
    if end and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    path = tmp_path / "program.py"
    path.write_text(AWKWARD + end)
    environment = {**os.environ, "PARAKEET_WHEN": "pays", "PARAKEET_BACKGROUND": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
