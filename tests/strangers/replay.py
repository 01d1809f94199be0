"""Kept calls, made once more: does the accelerated function give what the plain one gives, and how fast when warm?

A call is read from its pickle for each time it is made, so that nothing it changes is seen by the next; only those that
leave their arguments alone are timed, plain and accelerated in turns, as the best of several rounds in CPU time.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parakeet_py import accelerate
from tests.corpus import Difference, assert_same, outcome

MARK = "replayed: "  # begins the lines that are the replay's, among what calls print
WARM = 0.3  # seconds in which a function may become warm
ROUNDS = 7
SHORT = 2e-3  # seconds of a round


def replay(path: Path) -> dict[str, Any] | None:
    """What a kept call shows; None if it cannot be made again."""
    module, name, *_ = _read(path)
    owner: Any = importlib.import_module(module)
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    plain = vars(owner).get(name.split(".")[-1])
    plain = getattr(plain, "__func__", plain)
    if not callable(plain) or not hasattr(plain, "__code__"):
        return None
    fast = accelerate(plain)
    expected = outcome(plain, *_arguments(path))
    again = outcome(plain, *_arguments(path))
    try:
        assert_same(expected, again)
    except Exception:
        return None  # not the same from call to call, or not comparable
    end = time.perf_counter() + WARM
    wrong = ""
    for _ in range(400):
        try:
            assert_same(expected, outcome(fast, *_arguments(path)), ulp=4, sums=64)
        except Difference as error:
            wrong = str(error)
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


def _class(fast: Any, exception: BaseException | None) -> str:
    if exception is not None:
        return "raising"
    native = bool(fast.specializations) and not fast.fell_back and not fast.opaque_calls
    return "native" if native else "not native"


def _times(plain: Callable[..., Any], fast: Any, args: Any, kwargs: Any) -> tuple[float, float]:
    def once(function: Callable[..., Any], times: int) -> float:
        start = time.process_time()
        for _ in range(times):
            try:
                function(*args, **kwargs)
            except Exception:
                continue
        return (time.process_time() - start) / times

    times = max(1, int(SHORT / max(once(plain, 1), 1e-7)))
    once(fast, times)
    rounds = [(once(plain, times), once(fast, times)) for _ in range(ROUNDS)]
    return min(one for one, _ in rounds), min(other for _, other in rounds)


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
