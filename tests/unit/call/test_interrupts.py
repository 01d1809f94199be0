"""Exceptions from outside while the compiler works: they pass through, and the function compiles next time."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base import interrupts
from parakeet_py.call import compile as compiler
from parakeet_py.imp.lower.function import lower
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy


class Late(Exception):
    """Raised by handlers."""


def product(x: Any) -> Any:
    return (x * 2).sum()


def by_another_thread(kind: type[BaseException]) -> None:
    """What `PyThreadState_SetAsyncExc` does."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(kind))
    for _ in range(1000):
        pass


@pytest.mark.parametrize("kind", [Late, ValueError, TimeoutError, KeyboardInterrupt, SystemExit, StopIteration])
@pytest.mark.parametrize("once", [False, True])
def test_what_a_handler_raises_passes_through(
    kind: type[BaseException], once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(number: int, frame: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN if once else handler)
        raise kind("late")

    specialize, calls = compiler.specialize_call, []

    def interrupted(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            try:
                signal.raise_signal(signal.SIGALRM)
            except Exception:
                raise AssertionError("raised inside the compiler") from None
        return specialize(*args, **named)

    monkeypatch.setattr(compiler, "specialize_call", interrupted)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        accelerated = accelerate(product)
        with options(cache=False), pytest.raises(kind, match="late"):
            accelerated(np.arange(3.0))
        assert signal.getsignal(signal.SIGALRM) is (signal.SIG_IGN if once else handler)
        assert not accelerated.fell_back
        assert accelerated(np.arange(3.0)) == 6.0
        assert len(accelerated.specializations) == 1 and not accelerated.fell_back
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", [Late, ValueError, TimeoutError, KeyboardInterrupt])
def test_what_another_thread_raises_passes_through(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    specialize, calls = compiler.specialize_call, []

    def interrupted(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            by_another_thread(kind)
        return specialize(*args, **named)

    monkeypatch.setattr(compiler, "specialize_call", interrupted)
    accelerated = accelerate(product)
    with options(cache=False), pytest.raises(kind):
        accelerated(np.arange(3.0))
    assert not accelerated.fell_back
    assert accelerated(np.arange(3.0)) == 6.0
    assert len(accelerated.specializations) == 1 and not accelerated.fell_back


@pytest.mark.parametrize("make", [lambda: int("x"), lambda: [][0], lambda: _assert(), lambda: _raise(KeyError())])
def test_errors_of_the_compiler_are_its_own(make: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any, **named: Any) -> Any:
        make()

    monkeypatch.setattr(compiler, "specialize_call", failing)
    accelerated = accelerate(product)
    with options(cache=False, check=False), pytest.warns(UserWarning, match="the compiler has failed"):
        assert accelerated(np.arange(3.0)) == 6.0


def _assert() -> None:
    assert not make_true()


def make_true() -> bool:
    return True


def _raise(error: Exception) -> None:
    raise error


MANY_DELAYS = """
import linecache, signal, sys
import numpy as np
from parakeet_py import accelerate

kinds = (ValueError, TimeoutError, KeyError, KeyboardInterrupt, AssertionError, type("Late", (Exception,), {}))
raised = 0

def handler(number, frame):
    global raised
    raised += 1
    raise kind("late")

signal.signal(signal.SIGALRM, handler)
x = np.arange(12.0)
for turn in range(24):
    source = f'''
def function(x):
    total = {turn}
    for i in range(x.shape[0]):
        if x[i] > {turn}:
            total += x[i] * 2
    return total, x[:, None] * x
'''
    name = f"<turn {turn}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space = {}
    exec(compile(source, name, "exec"), space)
    plain = space["function"]
    accelerated = accelerate(plain)
    kind, raised, caught = kinds[turn % len(kinds)], 0, 0
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 5e-5 * 1.5**turn)
            accelerated(x)
        finally:  # where the alarm may still come
            signal.setitimer(signal.ITIMER_REAL, 0)
    except kind as error:
        caught += 1
        assert error.args == ("late",), error
    assert caught == raised, (turn, kind, caught, raised)
    assert signal.getsignal(signal.SIGALRM) is handler
    for _ in range(2):
        total, products = accelerated(x)
        assert total == plain(x)[0] and np.array_equal(products, plain(x)[1])
    assert len(accelerated.specializations) == 1 and not accelerated.fell_back, (turn, accelerated.fell_back)
"""


def test_alarms_at_many_times() -> None:
    run = subprocess.run([sys.executable, "-c", MANY_DELAYS], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("made", ["1 / 0", "next(iter(()))", "open('/nonexistent')"])
def test_what_functions_in_c_raise_is_from_inside(made: str) -> None:
    try:
        eval(made)
    except Exception as error:
        assert not interrupts.came_from_outside(error)


def test_every_stage_asks_for_the_time() -> None:
    """A pass over a long function would take much longer than the compiler may."""
    function = accelerate(when="now")(product)
    compiled = function._dispatcher.compiled_for((np.ones(3),), {})
    stages: tuple[Callable[[], Any], ...] = (
        lambda: Rewriter().function(compiled.typed),
        lambda: fresh_copy(compiled.typed.body),
        lambda: lower(compiled.typed),
        lambda: compiler.generate_llvm(compiled, False),
    )
    for stage in stages:
        stage()
        with interrupts.deadline(-1.0), pytest.raises(interrupts.OutOfTime):
            stage()
