"""What handlers of signals raise in compiled loops, where the function has handlers of exceptions around them."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from types import FrameType
from typing import Any

import numpy as np
import pytest

import parakeet_py
from parakeet_py import accelerate, options

LOCK = threading.Lock()
EVENTS: list[Any] = []
FOREVER = 10**13
PACKAGE = Path(parakeet_py.__file__).parent


class Expired(Exception):
    pass


class Suppressing:
    def __enter__(self) -> Suppressing:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        EVENTS.append((kind, str(error)))
        return kind is Expired


def restores(x, n):
    x[0] = 1.0
    try:
        s = 0.0
        for i in range(n):
            s = s * 0.5 + x[i % 3]
    finally:
        x[0] = 5.0
    return s


def best_so_far(x, n):
    best, i = 0.0, 0
    try:
        for i in range(n):
            best = max(best, x[i % 3])
            x[1] = -x[1]
    except Expired as error:
        return best, i > 1000, str(error)
    return best, i < 0, ""


def endless(x, n):
    k = 0
    try:
        while k != n:
            k = (k * 5 + 1) % 1000003
            if n < 0:
                k = 0
    except Expired:
        return -1
    return k


def nested_handlers(x, n):
    found = 0
    try:
        for i in range(n):
            try:
                for j in range(i, i + 1000):
                    x[1] = x[1] * 0.5 + j
            except IndexError:
                found = 1
            finally:
                x[2] = 7.0
    except Expired:
        found += 2
    return found


def step(x, n):
    s = 0.0
    for i in range(n):
        s = s * 0.5 + x[i % 3]
    return s


def in_a_function(x, n):
    try:
        s = step(x, n)
    except Expired as error:
        return error.args
    return s


def careful(x, n):
    try:
        s = step(x, n)
    finally:
        x[2] = 9.0
    return s


def in_functions(x, n):
    try:
        return careful(x, n)
    except Expired:
        return x[2]


def suppressed(x, n):
    s, i = 0.0, 0
    with Suppressing():
        for i in range(n):
            s = s * 0.5 + x[i % 3]
    return i > 1000


def locked(x, n):
    with LOCK:
        for i in range(n):
            x[1] = x[1] * 0.5 + x[i % 3]
    return 1


def lists(x, n):
    found = [0]
    try:
        for i in range(n):
            found.append(i)
            if len(found) > 1000:
                found.clear()
    except Expired:
        return len(found) <= 1000
    return found


def arrays(x, n):
    u = np.zeros(100)
    try:
        for _ in range(n):
            u[1:-1] = (u[:-2] + u[2:]) * 0.5 + x[0]
            u = u + 1.0
    except Expired:
        return u.shape, bool(u[0] > 10)
    return u.shape, False


def after_handlers(x, n):
    with contextlib.suppress(ZeroDivisionError):
        for i in range(3):
            x[1] += 1.0 / (i + 1)
    k = 0
    while k != n:
        k = (k * 5 + 1) % 1000003
    return k


CASES: list[tuple[Callable[..., Any], Any, list[float]]] = [
    (restores, Expired, [5.0, 2.0, 3.0]),
    (best_so_far, (3.0, True, "time"), [1.0, 2.0, 3.0]),
    (endless, -1, [1.0, 2.0, 3.0]),
    (nested_handlers, 2, [1.0, 2.0, 7.0]),
    (in_a_function, ("time",), [1.0, 2.0, 3.0]),
    (in_functions, 9.0, [1.0, 2.0, 9.0]),
    (suppressed, True, [1.0, 2.0, 3.0]),
    (locked, Expired, [1.0, 2.0, 3.0]),
    (lists, True, [1.0, 2.0, 3.0]),
    (arrays, ((100,), True), [1.0, 2.0, 3.0]),
    (after_handlers, Expired, [1.0, 2.0, 3.0]),
]
SHORT = {endless: 1, after_handlers: 1}


def files_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


@pytest.fixture
def alarm() -> Iterator[None]:
    def expire(number: int, frame: FrameType | None) -> None:
        if any(Path(file).is_relative_to(PACKAGE) for file in files_of(frame)):  # the function is being compiled
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        EVENTS.append("expired")
        raise Expired("time")

    before = signal.signal(signal.SIGALRM, expire)
    EVENTS.clear()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("function", "wanted", "left"), CASES, ids=lambda one: getattr(one, "__name__", ""))
def test_handlers_see_what_signals_raise(alarm: None, function: Any, wanted: Any, left: list[float]) -> None:
    compiled = accelerate(when="now", tiers=False)(function)
    for _ in range(3):
        compiled(np.array([1.0, 2.0, 3.0]), SHORT.get(function, 5))
    EVENTS.clear()
    x = np.array([1.0, 2.0, 3.0])
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    if wanted is Expired:
        with pytest.raises(Expired, match="time") as caught:
            compiled(x, FOREVER)
        assert [one.name for one in caught.traceback][1] == function.__name__
    else:
        assert compiled(x, FOREVER) == wanted
    assert (x[0], x[2]) == (left[0], left[2])
    assert EVENTS[0] == "expired" and not LOCK.locked()
    if function is suppressed:
        assert EVENTS[1:] == [(Expired, "time")]


def test_loops_that_memory_bounds_do_not_look() -> None:
    """What other loops pay is nothing: they are compiled as if no handler were around."""

    @accelerate
    def rows(a, out):
        try:
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    out[i] = out[i] * 0.5 + a[i, j]
        finally:
            out[0] = 0.0

    assert "interrupted" not in rows.imp(np.ones((3, 4)), np.zeros(3))


def test_devices_do_not_look() -> None:
    """Code that has been compiled for the CPU is used there, too."""

    def steps(x, n):
        y = x * 0.0
        try:
            for _ in range(n):
                y = y * 0.5 + np.sqrt(x)
        finally:
            x[0] = 1.0
        return y

    compiled, x = accelerate(when="now")(steps), np.arange(10.0)
    wanted = steps(x.copy(), 3)
    assert np.array_equal(compiled(x.copy(), 3), wanted)
    assert "interrupted" in compiled.imp(x, 3) and ".entry steps" in compiled.ptx(x, 3, target="sm_80")
    with options(devices="emulated"):
        assert np.array_equal(compiled(x.copy(), 3), wanted)
        assert compiled.explain(x, 3).opaque_calls == ()


def test_larger_calls_of_code_from_the_disk(tmp_path: Path) -> None:
    """What is made quickly is not kept beside what Python goes on with."""
    with options(cache=True, cache_dir=tmp_path, tiers=True):
        for _ in range(2):
            compiled = accelerate(when="now")(restores)
            for n in (5, 5, 100_000):
                assert compiled(np.ones(3), n) == pytest.approx(restores(np.ones(3), n))


def then_opaque(x, n):
    s = step(x, n)
    return s + NormalDist().inv_cdf(0.3)


def then_left(x, n):
    with LOCK:
        s = step(x, n)
    return s


def then_caught(x, n):
    try:
        s = step(x, n)
        x[1] = NormalDist().inv_cdf(0.3)
    except Expired:
        return -1.0
    return s


@pytest.mark.parametrize("function", [then_opaque, then_left, then_caught])
def test_signals_before_operations_handed_back(monkeypatch: Any, function: Any) -> None:
    """What a handler raises where Python is entered for an operation, as it does behind a loop that is too short to
    look at signals, is not lost."""

    def expire(number: int, frame: FrameType | None) -> None:
        EVENTS.append("expired")
        raise Expired("time")

    before = signal.signal(signal.SIGALRM, expire)
    compiled = accelerate(when="now", tiers=False)(function)
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    try:
        for _ in range(3):
            compiled(np.ones(3), 5)
        assert not compiled.fell_back and compiled.opaque_calls
        for milliseconds in range(1, 9):
            EVENTS.clear()
            result = None
            try:
                signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
                result = compiled(np.ones(3), 4_000_000)
                time.sleep(0.1)
            except Expired:
                EVENTS.append("raised")
            assert EVENTS == ["expired", "raised"] or (EVENTS, result) == (["expired"], -1.0)
            assert not LOCK.locked() and not lost
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
