"""Forks, threads and the end of the process, at awkward moments; and functions that meet very many signatures."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import FallbackWarning, UnsupportedError, accelerate, options

HEAD = """
import os, sys, threading, time, warnings
import numpy as np
from parakeet_py import accelerate, options

@accelerate(threads=2)
def f(x):
    return np.sqrt(x[1:] * 2.0) + x[:-1]

@accelerate(threads=2)
def g(x):
    return np.exp(-x) * x - 1.0

big = np.arange(400_000.0)

def check(function, x):
    np.testing.assert_allclose(function(x), function.__wrapped__(x), rtol=1e-14)
    assert not function.fell_back

def in_child(work):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    for _ in range(600):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.1)
    os.kill(pid, 9)
    raise SystemExit("the child hangs")
"""

PROGRAMS = {
    "fork_after_a_call": """
check(f, big)                      # the pool has threads
in_child(lambda: check(f, big))    # known code
in_child(lambda: check(g, big))    # new code
check(g, big)
in_child(lambda: in_child(lambda: check(g, big)))
""",
    "fork_before_the_first_call": """
in_child(lambda: check(f, big))
check(f, big)
""",
    "fork_while_another_thread_compiles": """
started = threading.Event()
def compile_many():
    for k in range(6):
        made = accelerate(lambda x: np.sin(x * 2.0) + np.cumsum(x) + x[::-1])
        started.set()
        made(np.arange(50.0) if k % 2 else np.arange(50.0, dtype="f4"))
worker = threading.Thread(target=compile_many)
worker.start()
started.wait()
for delay in (0.0, 0.03, 0.1):
    time.sleep(delay)
    in_child(lambda: check(g, np.arange(20.0)))
worker.join()
""",
    "fork_while_other_threads_run": """
check(f, big)
stop = threading.Event()
def run():
    while not stop.is_set():
        f(big)
workers = [threading.Thread(target=run) for _ in range(2)]
for worker in workers: worker.start()
for _ in range(3):
    in_child(lambda: check(f, big))
stop.set()
for worker in workers: worker.join()
check(f, big)
""",
    "pool_of_processes": """
import multiprocessing
check(f, big)
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = pool.map(f, [big, big[:1000], big[:10]])
for result, x in zip(results, (big, big[:1000], big[:10])):
    np.testing.assert_array_equal(result, f(x))
""",
    "exit_while_threads_run": """
check(f, big)
def run():
    while True:
        f(big)
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
""",
    "exit_while_a_thread_compiles": """
def compile_many():
    for k in range(100):
        accelerate(lambda x: np.sin(x * 2.0) + np.cumsum(x))(np.arange(50.0))
threading.Thread(target=compile_many, daemon=True).start()
time.sleep(0.3)
""",
    "a_call_while_the_interpreter_ends": """
import atexit
check(f, big)
atexit.register(lambda: check(f, big))
class Last:
    def __del__(self, f=f, x=big):
        f(x)
last = Last()
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("name", PROGRAMS)
def test_process(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(HEAD + PROGRAMS[name])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PARAKEET_")}
    environment["PARAKEET_WHEN"] = "now"
    root = os.fspath(Path(__file__).parents[3])
    environment |= {"PYTHONPATH": root, "PARAKEET_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", os.fspath(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_very_many_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is specialized by value stops being compiled anew."""
    import importlib

    module = importlib.import_module("parakeet_py.call.dispatch.specializations")
    monkeypatch.setattr(module, "MAX_SPECIALIZATIONS", 3)

    def labelled(x: Any, label: str) -> Any:
        return x * len(label.strip())  # by its value: not all it does is compiled

    x = np.arange(4.0)
    with options(cache=False):
        f: Any = accelerate(labelled)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                for k in range(10):
                    np.testing.assert_array_equal(f(x, "a" * k), labelled(x, "a" * k))
        assert len(f.specializations) == 3
        assert len(f._dispatcher.refused) <= 3
        (warning,) = caught
        assert issubclass(warning.category, FallbackWarning) and "new ones run in Python" in str(warning.message)
        strict: Any = accelerate(strict=True)(labelled)
        for k in range(3):
            strict(x, "b" * k)
        with pytest.raises(UnsupportedError, match="has met 3 signatures"):
            strict(x, "c" * 9)
