"""Ctrl-C in compiled loops, and other threads beside them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

LOOPS = {
    "a while loop": """
        def f(n, x):
            k = 0
            while k != n:
                k = (k * 5 + 1) % 1000003
                if k == n:
                    k = 0
            return k
        short, long = (0, x), (-1, x)
        """,
    "a counted loop": """
        def f(n, x):
            s = 0
            for i in range(n):
                s = (s * 3 + i) % 1000003
            return s
        short, long = (5, x), (10**14, x)
        """,
    "a loop that may leave": """
        def f(n, x):
            s = 0
            for i in range(n):
                s = (s * 3 + i) % 1000003
                if s == 2000000:
                    break
            return s
        short, long = (5, x), (10**14, x)
        """,
    "steps of two": """
        def f(n, x):
            s = 0
            for i in range(0, n, 2):
                s = (s * 3 + x[s % 3]) % 1000003
            return s
        short, long = (5, x.astype(int)), (10**14, x.astype(int))
        """,
    "stores": """
        def f(n, x):
            for i in range(n):
                x[i % 2] += 1.0
        short, long = (5, x), (10**14, x)
        """,
    "nested loops": """
        def f(n, x):
            s = 0.0
            for i in range(n):
                for j in range(n):
                    s = s * 0.5 + x[(i + j) % 3]
            return s
        short, long = (5, x), (10**6, x)
        """,
    "three loops": """
        def f(n, x):
            s = 0.0
            for h in range(3):
                for i in range(n):
                    for j in range(1000):
                        s = s * 0.5 + x[(i + j) % 3]
            return s
        short, long = (5, x), (10**9, x)
        """,
    "a parallel region": """
        def f(n, x):
            out = np.empty(len(x))
            for i in range(len(x)):
                a = x[i]
                for j in range(n):
                    a = a * 0.999 + 0.1
                out[i] = a
            return out
        short, long = (5, np.arange(10000.0)), (10**6, np.arange(100000.0))
        """,
    "random numbers": """
        def f(n, x):
            s = 0.0
            while s > -1:
                s = np.random.rand()
                if n == 1:
                    break
            return s
        short, long = (1, x), (0, x)
        """,
    "an inlined function": """
        def step(s, x):
            return (s * 3 + x[s % 3]) % 1000003
        def f(n, x):
            s = 0
            for i in range(n):
                s = step(s, x)
            return s
        short, long = (5, x.astype(int)), (10**14, x.astype(int))
        """,
    "a while loop inside another": """
        def f(n, x):
            s = 0
            for i in range(1, n):
                k = i
                while k != 1:
                    k = k * 3 + 1 if k % 2 else k // 2
                    if n > 10 and k == 1:
                        k = 5
                    s += 1
            return s
        short, long = (5, x), (30, x)
        """,
    "repetitions of a nest": """
        def f(n, x):
            s = 0.0
            for repetition in range(3):
                for row in range(x.shape[0]):
                    for column in range(x.shape[1]):
                        for k in range(x.shape[0]):
                            s = s * 0.5 + x[row, column] + x[k, column]
            return s
        short, long = (0, np.zeros((2, 3))), (0, np.zeros((3000, 3000)))
        """,
    "an inner loop up to an argument": """
        def f(n, x):
            s = 0
            for repetition in range(3):
                for i in range(n):
                    s = (s * 3 + i) % 1000003
            return s
        short, long = (5, x), (10**13, x)
        """,
    "a scan": """
        def f(n, x):
            y = np.zeros(len(x))
            for i in range(n):
                y = np.cumsum(y * 0.5 + x)
            return y
        short, long = (2, x), (10**8, np.arange(1000.0))
        """,
    "a recursive function": """
        def g(n, m, x):
            if n == 0:
                s = 0.0
                for i in range(m):
                    s = s * 0.5 + x[i % 3]
                return s
            return g(n - 1, m, x) + g(n - 1, m, x)
        def f(n, x):
            return g(10, n, x)
        short, long = (5, x), (10**9, x)
        """,
    "a recursive function without loops": """
        def g(n):
            return n if n < 2 else g(n - 1) + g(n - 2)
        def f(n, x):
            return g(n)
        short, long = (5, x), (60, x)
        """,
    "array operations again and again": """
        def f(n, x):
            y = x
            for i in range(2 * n):
                y = np.sqrt(y * y + x)
            return y
        short, long = (2, x), (10**9, np.arange(1000.0))
        """,
    "tasks": """
        def f(n, x):
            return [sum(x[j] * i for j in range(len(x))) for i in range(n)]
        short, long = (5, x), (10**7, np.arange(10000.0))
        """,
    "calls handed back": """
        def f(n, x):
            s = 0
            for i in range(n):
                for j in range(1000):
                    s += len(str(x)) + j
            return s
        short, long = (2, x), (10**9, x)
        """,
}

CHILD = """
import os, signal, sys, threading, time, traceback
import numpy as np
from parakeet_py import accelerate, options

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

x = np.zeros(3)
{loop}
f = accelerate(f)
for _ in range(3):
    f(*short)
x[:] = 0
ticks = 0

def background():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.001)

def interrupt():
    time.sleep(0.4)
    while ticks < before + {ticks}:  # the call is running, and other threads with it
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=background, daemon=True).start()
{handler}
for attempt in range(4):  # a busy machine may not have come to the call yet
    before = ticks
    {timer}
    try:
        with options(threads={threads}):
            f(*long)
    except {expected} as error:
        names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
        if "f" not in names and attempt < 3:
            continue
        assert names[:2] == ["<module>", "f"]
        assert ticks >= before + {ticks}, ticks
        assert x[0] - x[1] in (0, 1) and (x[0] > 1000 or 'x[i % 2]' not in {loop!r}), x
        f(*short)
        print("ended")
        break
"""


def run(loop: str, **changes: object) -> str:
    timer = "threading.Thread(target=interrupt, daemon=True).start()"
    given = {"timer": timer, "handler": "", "threads": 2, "expected": "KeyboardInterrupt", "ticks": 4}
    text = CHILD.format(loop=textwrap.dedent(loop), **(given | changes))
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_sigint_ends_loops(loop: str) -> None:
    if "np.random" in loop:  # which keeps the GIL
        alarm = "signal.signal(signal.SIGALRM, signal.default_int_handler); signal.setitimer(signal.ITIMER_REAL, 0.4)"
        assert run(loop, timer=alarm, ticks=0) == "ended\n"
        return
    assert run(loop) == "ended\n"


@pytest.mark.parametrize("name", ["a while loop", "a parallel region"])
def test_one_thread(name: str) -> None:
    assert run(LOOPS[name], threads=1) == "ended\n"


def test_handlers_that_raise_something_else() -> None:
    handler = "def stop(*event): raise ZeroDivisionError('stop')\nsignal.signal(signal.SIGUSR1, stop)"
    timer = "threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()"
    assert run(LOOPS["nested loops"], handler=handler, timer=timer, expected="ZeroDivisionError") == "ended\n"


def test_handlers_that_return() -> None:
    """The call goes on, and is ended by the next signal."""
    handler = textwrap.dedent(
        """
        seen = []
        def note(*event):
            seen.append(f(*short))
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        signal.signal(signal.SIGUSR1, note)
        """
    )
    timer = "threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()"
    assert run(LOOPS["a counted loop"], handler=handler, timer=timer) == "ended\n"


def test_calls_of_other_threads_are_not_interrupted() -> None:
    text = textwrap.dedent(
        """
        import os, signal, threading, time
        from parakeet_py import accelerate

        signal.signal(signal.SIGINT, signal.default_int_handler)

        @accelerate
        def f(n):
            s = 0
            for i in range(n):
                s = (s * 3 + i) % 1000003
            return s

        expected = f(40_000_000)
        found = []
        thread = threading.Thread(target=lambda: found.append(f(400_000_000) >= 0 and f(40_000_000)))
        thread.start()
        try:
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            print("main")
        thread.join()
        assert found == [expected]
        """
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "main\n" and ran.returncode == 0, ran.stderr
