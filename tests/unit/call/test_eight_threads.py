"""Eight threads call functions for the first time at once, and then again and again.

On free-threaded builds, where functions run in Python, nothing of it may need the global lock, or bring it back.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, accelerate, options

FREE_THREADED = "free-threading" in sys.version


def scaled(x: np.ndarray, factor: float = 2.0) -> np.ndarray:
    return np.sqrt(x * x + 1.0) * factor


def counted(x: np.ndarray) -> tuple[dict[int, int], list[int]]:
    found: dict[int, int] = {}
    seen = []
    for value in x.astype(np.int64) % 7:
        found[int(value)] = found.get(int(value), 0) + 1
        if value == 3:
            seen.append(int(value))
    return found, seen


def smeared(x: np.ndarray) -> float:
    x[1:] += x[:-1]
    return float(x[-1])


def fails(x: np.ndarray) -> float:
    if x[0] >= 4.0:
        raise ValueError(f"{int(x[0])} is not below four")
    return float(x[0])


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def recursive(x: np.ndarray) -> int:
    return fibonacci(int(x[0]) % 10)


def outcome(f: Callable[..., Any], x: np.ndarray) -> Any:
    x = x.copy()
    try:
        result = f(x)
    except ValueError as error:
        return str(error), x.tolist()
    return result.tolist() if isinstance(result, np.ndarray) else result, x.tolist()


@pytest.mark.parametrize("plain", [scaled, counted, smeared, fails, recursive])
def test_first_calls_of_eight_threads(plain: Callable[..., Any]) -> None:
    f = accelerate(plain)
    together = threading.Barrier(8)
    wrong: list[Any] = []

    def calls(number: int) -> None:
        x = np.arange(float(number), number + 20.0)
        others = x.astype(np.float32)[::2]
        expected = [outcome(plain, x), outcome(plain, others)]
        together.wait()
        try:
            with options(when="now"):
                for _ in range(20):
                    got = [outcome(f, x), outcome(f, others)]
                    if got != expected:
                        wrong.append((got, expected))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if FREE_THREADED else "error", FallbackWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[0]
    assert bool(f.fell_back) == FREE_THREADED


@pytest.mark.skipif(not FREE_THREADED, reason="this Python has a global lock")
def test_there_is_no_lock_afterwards() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined, unused-ignore]
