"""The switch, and calls under debuggers, coverage tools and profilers."""

from __future__ import annotations

import cProfile
import os
import pstats
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options


def twice(x: Any) -> Any:
    y = x * 2
    return y + 1


def with_default(x: Any, *, k: int = 2) -> Any:
    return x * k


def fails(x: Any, k: int) -> Any:
    return x[k]


def lines_of(function: Any, *args: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            found.append((event, frame.f_code.co_name))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return found


def test_disabled_functions_are_python() -> None:
    fast = accelerate(twice)
    x = np.arange(4.0)
    for _ in range(2):
        with options(enabled=False):
            assert np.array_equal(fast(x), twice(x))
        assert not fast.specializations
    fast(x)
    (made,) = fast.specializations
    seen: list[str] = []

    @accelerate
    def looks(x: Any) -> Any:
        seen.append(sys._getframe(0).f_code.co_name)
        return x

    with options(enabled=False):
        fast(x.astype("f4"))
        fast(x)
        looks(1)
    assert fast.specializations == [made] and seen == ["looks"]
    fast(x.astype("f4"))
    assert len(fast.specializations) == 2
    with pytest.raises(TypeError):
        options(enabled=1).__enter__()


@pytest.mark.parametrize("warm", [False, True])
def test_lines_are_seen_by_tracers(warm: bool) -> None:
    fast, other = accelerate(twice), accelerate(with_default)
    x = np.arange(4.0)
    if warm:
        for _ in range(3):
            fast(x), other(x)
    for _ in range(2):
        assert lines_of(fast, x) == lines_of(twice, x)
        assert lines_of(other, x) == lines_of(with_default, x)
    assert np.array_equal(fast(x), twice(x)) and len(fast.specializations) == 1


@pytest.mark.parametrize("warm", [False, True])
def test_profilers_see_calls_of_compiled_code(warm: bool) -> None:
    fast, other, third = accelerate(twice), accelerate(with_default), accelerate(fails)
    x = np.arange(4.0)

    def work() -> None:
        for _ in range(5):
            fast(x)
            other(x, k=3)
            with pytest.raises(IndexError):
                third(x, 7)

    if warm:
        work()
    for _ in range(2):
        profile = cProfile.Profile()
        profile.runcall(work)
        stats: Any = pstats.Stats(profile)
        calls = {key[2]: value[0] for key, value in stats.stats.items() if key[0] == __file__}
        assert calls == {"work": 1, "twice": 5, "with_default": 5, "fails": 5}
        places = {key[2]: key[1] for key in stats.stats if key[0] == __file__}
        assert places["twice"] == twice.__code__.co_firstlineno
    assert len(fast.specializations) == 1
    with pytest.raises(IndexError) as found:
        third(x, 7)
    assert [entry.name for entry in found.traceback][1:] == ["fails"]


def seen_by_profiler(work: Any) -> list[tuple[str, str]]:
    """The events of a profiler, but those of C functions: what, and the name of the function."""
    found: list[tuple[str, str]] = []

    def note(frame: Any, event: str, arg: Any) -> None:
        if not event.startswith("c_"):
            found.append((event, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found[:-1] if found and found[-1] == ("return", "seen_by_profiler") else found


def test_profilers_see_nothing_of_the_package() -> None:
    inner = accelerate(with_default)

    def keeps(found: Any, x: Any) -> Any:
        y = x + 1
        found.append(inner(x, k=5))  # handed back to Python
        return y

    fast, third, outer = accelerate(twice), accelerate(fails), accelerate(keeps)
    x, found = np.arange(4.0), []

    def work() -> None:
        fast(x)
        fast(x=x)
        inner(x)
        inner(x, k=3)
        with pytest.raises(IndexError):
            third(x, 7)
        outer(found, x)

    def events() -> list[tuple[str, str]]:
        own = {"twice", "with_default", "fails", "keeps"}
        calls = seen_by_profiler(work)
        assert not {name for _, name in calls if name in ("slow", "enter", "_answer", "_call")}
        return [one for one in calls if one[1] in own]

    for _ in range(8):
        work()
    seen_by_profiler(work)  # makes the frames
    expected = [(event, name) for name in ("twice", "twice", "with_default", "with_default", "fails")
                for event in ("call", "return")]  # fmt: skip
    for _ in range(2):
        seen = events()
        assert seen[: len(expected)] == expected
        # (What is handed back runs in a frame of the function's name, too.)
        assert seen[len(expected)] == ("call", "keeps") and seen[-1] == ("return", "keeps")


def test_profilers_see_calls_in_python_once() -> None:
    for when in ("now", "pays"):
        runs = accelerate(when=when)(lambda x: eval("x"))
        for _ in range(4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                runs(1)
        for _ in range(2):
            assert [one for one in seen_by_profiler(lambda f=runs: (f(1), f(2))) if one[1] == "<lambda>"] == [
                ("call", "<lambda>"), *[("call", "<lambda>"), ("return", "<lambda>")] * 2, ("return", "<lambda>")
            ]  # fmt: skip


def run(script: Path, *command: str, **environment: str) -> str:
    given = os.environ | {"PARAKEET_CACHE_DIR": str(script.parent / "cache")} | environment
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=given, cwd=script.parent, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from parakeet_py import accelerate

            @accelerate
            def f(x, k):
                if k > 0:
                    x = x * 2
                else:
                    x = x - 1
                return x

            for k in (1, 2, 3):
                f(np.arange(3.0), k)
            print(len(f.specializations))
            """
        )
    )
    return path


def test_coverage_in_a_child_process(script: Path) -> None:
    assert run(script, "-m", "coverage", "run", "script.py") == "0\n"
    report = run(script, "-m", "coverage", "report", "-m", "--include=script.py")
    assert report.splitlines()[2].split()[-1] == "10"


def test_cprofile_in_a_child_process(script: Path) -> None:
    for _ in range(2):
        out = run(script, "-m", "cProfile", "script.py")
        assert out.startswith("1\n")
        (line,) = [line for line in out.splitlines() if line.endswith("script.py:5(f)")]
        assert line.split()[0] == "3"


def test_the_variable(script: Path) -> None:
    assert run(script, "script.py", PARAKEET_DISABLE="1") == "0\n"
    assert run(script, "script.py", PARAKEET_DISABLE="0") == "1\n"
    script.write_text(
        textwrap.dedent(
            """
            from parakeet_py import accelerate

            @accelerate
            def descend(n):
                return 0 if n == 0 else 1 + descend(n - 1)

            print(descend(950), descend(950))
            """
        )
    )
    assert run(script, "script.py", PARAKEET_DISABLE="1") == "950 950\n"


def in_a_thread(work: Any) -> Any:
    """What `work()` gives in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_thread_is_traced_while_the_main_one_is_not() -> None:
    fast, x = accelerate(twice), np.arange(4.0)
    for _ in range(3):
        fast(x)
    assert in_a_thread(lambda: lines_of(fast, x)) == lines_of(twice, x)


def test_a_thread_is_profiled_while_the_main_one_is_not() -> None:
    fast, x = accelerate(twice), np.arange(4.0)
    for _ in range(3):
        fast(x)

    def calls() -> int:
        seen: list[str] = []
        sys.setprofile(lambda frame, event, arg: seen.append(event) if frame.f_code.co_name == "twice" else None)
        try:
            fast(x), fast(x)
        finally:
            sys.setprofile(None)
        return seen.count("call")

    assert in_a_thread(calls) == 2 == calls() and len(fast.specializations) == 1


needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")


@needs_monitoring
@pytest.mark.parametrize("warm", [False, True])
def test_tools_of_sys_monitoring_see_calls_and_lines(warm: bool) -> None:
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
    events, fast, x = monitoring.events, accelerate(twice), np.arange(4.0)
    if warm:
        for _ in range(3):
            fast(x)
    kind = monitoring.PROFILER_ID

    def seen(asked: int, local: bool = False) -> list[str]:
        found: list[str] = []
        monitoring.use_tool_id(kind, "calls")
        try:
            for event in (events.PY_START, events.PY_RETURN, events.LINE):
                name = {events.PY_START: "start", events.PY_RETURN: "return", events.LINE: "line"}[event]
                monitoring.register_callback(
                    kind, event, lambda code, *_, name=name: found.append(name) if code.co_name == "twice" else None
                )
            if local:
                monitoring.set_local_events(kind, twice.__code__, asked)
            else:
                monitoring.set_events(kind, asked)
            assert np.array_equal(fast(x), x * 2 + 1)
        finally:
            monitoring.set_local_events(kind, twice.__code__, 0)
            monitoring.set_events(kind, 0)
            monitoring.free_tool_id(kind)
        return found

    for _ in range(2):
        assert seen(events.PY_START | events.PY_RETURN) == ["start", "return"]
        assert seen(events.LINE) == ["line", "line"]
        assert seen(events.LINE, local=True) == ["line", "line"]
        assert seen(0) == []
    assert len(fast.specializations) == 1


@needs_monitoring
def test_coverage_by_sys_monitoring(script: Path) -> None:
    assert run(script, "-m", "coverage", "run", "script.py", COVERAGE_CORE="sysmon") == "0\n"
    report = run(script, "-m", "coverage", "report", "-m", "--include=script.py")
    assert report.splitlines()[2].split()[-1] == "10"
