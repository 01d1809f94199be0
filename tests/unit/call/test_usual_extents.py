"""Specializations for the usual extents: what runs when a call has others."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.interpreters import run_imp, run_typed


def step(a: Any, b: Any) -> Any:
    return a[1:] - b[:-1]


def nudge(a: Any, b: Any) -> None:
    a[1:] += b[:-1]


def outcome(function: Any, *args: Any) -> Any:
    try:
        result = function(*args)
    except Exception as error:
        result = (type(error), str(error))
    return result, args


def same(left: Any, right: Any) -> bool:
    return bool(repr(left) == repr(right))


def forms(function: Any) -> list[tuple[bool, bool]]:
    return [(one.native.guarded, one.from_disk) for one in function.specializations]


LENGTHS = [(5, 5), (5, 2), (2, 5), (5, 4), (2, 2), (0, 0), (5, 0)]


@pytest.mark.parametrize("plain", [step, nudge])
def test_other_extents_get_the_general_form(plain: Any) -> None:
    with options(cache=False):
        function: Any = accelerate(plain)
        for lengths in LENGTHS:
            fast, slow = ([np.arange(float(n)) for n in lengths] for _ in range(2))
            assert same(outcome(function, *fast), outcome(plain, *slow)), lengths
        assert forms(function) == [(True, False), (False, False)]
        assert not function.fell_back


def test_the_usual_form_comes_first() -> None:
    with options(cache=False):
        function: Any = accelerate(step)
        function(np.arange(2.0), np.arange(5.0))  # made for the first call, although that is not a usual one
        assert forms(function) == [(True, False), (False, False)]
        function(np.arange(5.0), np.arange(5.0))
        assert len(function.specializations) == 2
        text = str(function.explain(np.arange(5.0), np.arange(5.0)))
        assert "other calls get a form of their own" in text


def test_the_interpreters_run_both_forms() -> None:
    with options(cache=False, check=True):
        function: Any = accelerate(step)
        function(np.arange(5.0), np.arange(5.0))
        for lengths in LENGTHS:
            args = [np.arange(float(n)) for n in lengths]
            for run in (run_typed, run_imp):
                assert same(outcome(lambda *a, run=run: run(function, a), *args), outcome(step, *args)), lengths


def test_both_forms_come_from_the_disk(tmp_path: Path) -> None:
    with options(cache=True, cache_dir=os.fspath(tmp_path)):
        usual, other = np.arange(5.0), np.arange(2.0)
        for from_disk in (False, True):
            function: Any = accelerate(step)
            np.testing.assert_array_equal(function(usual, usual), step(usual, usual))
            assert forms(function) == [(True, from_disk)]
            np.testing.assert_array_equal(function(other, usual), step(other, usual))
            assert forms(function) == [(True, from_disk), (False, from_disk)]


def test_one_overlap_or_another_shares_the_general_form() -> None:
    with options(cache=False):
        function: Any = accelerate(step)
        a = np.arange(5.0)
        function(a, a.copy())
        function(a, a)
        function(a[:2], a)
        function(a[:2], a.copy())
        assert forms(function) == [(True, False), (False, False)]


def test_threads_that_call_at_once_compile_once() -> None:
    runs: list[int] = []

    def work(a: Any) -> Any:
        return np.sqrt(a[1:] * 2.0) + a[:-1]

    with options(cache=False):
        function: Any = accelerate(work)
    python = function._dispatcher.run_python

    def run_python(normal: Any) -> Any:
        runs.append(1)
        return python(normal)

    function._dispatcher.run_python = run_python
    results: list[Any] = []
    start = threading.Barrier(6)

    def call() -> None:
        start.wait()
        with options(cache=False):
            results.append(function(np.arange(9.0)))

    workers = [threading.Thread(target=call) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 6
    for result in results:
        np.testing.assert_array_equal(result, work(np.arange(9.0)))
    assert len(function.specializations) == 1
    assert not runs  # those that waited for the compiler run its code, not Python


def borders(a: Any, n: int, step: int) -> float:
    total = 0.0
    for k in range(0, 3):
        a[1 : n - 1] += 1.0
        a[n - 2 : n + step] = -a[0]
        total += a[step * k - n]
    return total


HUGE = [(6, 1), (3, 2**31), (-(2**63), 1), (2**63 - 1, 2**62), (5, -(2**62)), (2**70, 1), (4, 2)]


def test_ints_behind_stores_are_checked_on_entry() -> None:
    with options(cache=False):
        function: Any = accelerate(borders)
        for number, (n, step) in enumerate(HUGE):
            fast, slow = np.arange(6.0), np.arange(6.0)
            assert same(outcome(function, fast, n, step), outcome(borders, slow, n, step)), (n, step)
            if number == 0:  # no way out of it but the one at its beginning
                assert forms(function) == [(True, False)]
                assert "opaque" not in function.typed_ir(fast, n, step)
        assert not function.fell_back


def test_a_first_call_with_large_ints_has_the_general_form() -> None:
    with options(cache=False):
        function: Any = accelerate(borders)
        for n, step in [(2**40, 0), (4, 1)]:
            fast, slow = np.arange(6.0), np.arange(6.0)
            assert same(outcome(function, fast, n, step), outcome(borders, slow, n, step)), (n, step)
        assert not function.fell_back
