"""Kept calls, made once more: does the accelerated function give what the plain one gives, and how fast when warm?

A call is read from its pickle for each time it is made, so that nothing it changes is seen by the next, and begins with
the same state of random numbers; only those that leave their arguments alone are timed, plain and accelerated in turns,
as the best of several rounds in CPU time, in which nothing is compiled meanwhile. Where that says that a call is slower
than it should be, there are more rounds: other processes may have had the caches.
"""

from __future__ import annotations

import importlib
import json
import math
import pickle
import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_py import accelerate
from parakeet_py.call.dispatch import background
from tests.corpus import Difference, assert_same, outcome

MARK = "replayed: "  # begins the lines that are the replay's, among what calls print
WARM = 0.3  # seconds in which a function may become warm
ROUNDS = 7
MORE = 4  # times as many, where a call seems to be slower than
ENOUGH = 0.9  # of plain speed
SHORT = 2e-3  # seconds of a round


def replay(path: Path) -> dict[str, Any] | None:
    """What a kept call shows; None if it cannot be made again."""
    module, name, *_ = _read(path)
    owner: Any = importlib.import_module(module)
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    plain = vars(owner).get(name.split(".")[-1])
    plain = getattr(plain, "__func__", plain)
    plain = plain.fget if type(plain) is property else plain
    if not callable(plain) or not hasattr(plain, "__code__"):
        return None
    fast = accelerate(plain)
    expected = _outcome(plain, path)
    if _difference(plain, path, expected):
        return None
    end = time.perf_counter() + WARM
    wrong = ""
    for _ in range(400):
        if wrong := _difference(fast, path, expected, ulp=4, sums=64):
            if _difference(plain, path, expected):
                return None  # not the same from call to call
            break
        if time.perf_counter() > end:
            break
    found = {"call": f"{module}.{name}", "wrong": wrong, "class": _class(fast, expected.exception)}
    args, kwargs = _arguments(path)
    try:
        assert_same(expected, outcome(plain, args, kwargs))
        assert_same(expected, outcome(plain, args, kwargs))
    except Difference:
        return found | {"seconds": None, "ratio": None}  # it changes its arguments
    plain_time, fast_time = _times(plain, fast, args, kwargs)
    return found | {"seconds": plain_time, "ratio": plain_time / fast_time}


def _difference(function: Callable[..., Any], path: Path, expected: Any, **tolerance: Any) -> str:
    """What a call shows that was not expected; nothing if it is the same."""
    found = _outcome(function, path)
    try:
        try:
            assert_same(expected, found, **tolerance)
        except Difference:
            raise
        except Exception:  # as of numbers with units, from which nothing can be taken
            assert_same(expected, found)
    except Difference as error:
        return str(error) or "it differs"
    except Exception as error:
        return f"not comparable: {error}"
    return ""


def _class(fast: Any, exception: BaseException | None) -> str:
    if exception is not None:
        return "raising"
    native = bool(fast.specializations) and not fast.fell_back and not fast.opaque_calls
    return "native" if native else "not native"


def _times(plain: Callable[..., Any], fast: Any, args: Any, kwargs: Any) -> tuple[float, float]:
    def once(function: Callable[..., Any], times: int) -> float:
        background.wait()
        start = time.process_time()
        for _ in range(times):
            try:
                function(*args, **kwargs)
            except Exception:
                continue
        taken = (time.process_time() - start) / times
        return math.inf if background.is_busy() else taken

    times = max(1, int(SHORT / max(min(once(plain, 1) for _ in range(2)), 1e-7)))
    once(fast, times)
    best = once(plain, times), once(fast, times)
    for number in range(ROUNDS * MORE):
        if number >= ROUNDS and best[0] >= ENOUGH * best[1]:
            break
        best = min(best[0], once(plain, times)), min(best[1], once(fast, times))
    return best


def _outcome(function: Callable[..., Any], path: Path) -> Any:
    args, kwargs = _arguments(path)
    random.seed(0)
    np.random.seed(0)
    return outcome(function, args, kwargs)


def _read(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


def _arguments(path: Path) -> tuple[tuple[Any, ...], dict[str, Any]]:
    _, _, args, kwargs = _read(path)
    return args, kwargs


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for one in map(Path, sys.argv[1:]):
        print("\n" + MARK + json.dumps({"begun": str(one)}), flush=True)
        try:
            found = replay(one)
        except Exception as error:
            found = {"call": one.stem, "skipped": f"{type(error).__name__}: {error}"[:200]}
        if found is not None:
            print("\n" + MARK + json.dumps(found), flush=True)
