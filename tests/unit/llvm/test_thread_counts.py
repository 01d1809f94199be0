"""How many threads a call may use: the decorator's number, the settings of its context, the environment's."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from parakeet_py.base import config
from parakeet_py.base.config import current, environment, options
from parakeet_py.llvm.entry import boxing
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.runtime.call_context import Context
from parakeet_py.signature.results import ResultLeaf
from parakeet_py.signature.specs import Signature

TELL = f"""
define i32 @entry(ptr %ctx, ptr %arguments, ptr %results) {{
  %p = getelementptr i8, ptr %ctx, i64 {Context.MAX_THREADS}
  %threads = load i32, ptr %p
  %wide = sext i32 %threads to i64
  store i64 %wide, ptr %results
  ret i32 0
}}
"""


def teller(threads: int = 0) -> Any:
    """A function that gives the number of threads its call may use."""
    from parakeet_py.llvm.engine import compiler
    from parakeet_py.llvm.entry.entry_stub import load_gate
    from parakeet_py.llvm.entry.stub_text import gate_ir

    result = ResultLeaf(0, "scalar", "int64", True)
    text = TELL + gate_ir(Signature(()), result, "entry", "gate")

    def slow() -> None:
        raise AssertionError

    f = AcceleratedFunction(slow)
    gate = load_gate(
        compiler.compile_ir(text), Signature(()), result, slow, raise_failure=print, following=slow, threads=threads
    )
    install(f, [gate])
    return f


def test_the_environments() -> None:
    assert teller()() == environment().thread_count


def test_options() -> None:
    f = teller()
    with options(threads=3):
        assert f() == 3
        with options(threads=5):
            assert f() == 5
        assert f() == 3
    assert f() == environment().thread_count


def test_the_decorators_own() -> None:
    f = teller(7)
    assert f() == 7
    with options(threads=3):
        assert f() == 7


def test_every_thread_has_its_own() -> None:
    f = teller()
    inside, told = threading.Event(), threading.Event()
    found: list[int] = []

    def other() -> None:
        inside.wait()
        found.append(f())
        told.set()

    thread = threading.Thread(target=other)
    thread.start()
    with options(threads=9):
        inside.set()
        assert told.wait(120)
        assert f() == 9
    thread.join()
    assert found == [environment().thread_count]


def test_the_environment_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from parakeet_py.base.config import reload

    f = teller()
    try:
        monkeypatch.setenv("PARAKEET_NUM_THREADS", "4")
        reload()
        assert f() == 4
    finally:
        monkeypatch.undo()
        reload()
    assert f() == current().thread_count


def test_settings_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    f = teller()
    asked: list[int] = []
    answer = boxing._answer

    def counted(question: int) -> int:
        asked.append(question)
        return answer(question)

    monkeypatch.setattr(boxing, "_answer", counted)
    for threads in (3, 4):
        with options(threads=threads):
            assert [f() for _ in range(5)] == [threads] * 5
    assert len(asked) == 2
    with options(threads=3):  # other settings, equal ones
        assert f() == 3
    assert len(asked) == 3


def test_the_environment_is_read_again_beside_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    f = teller()
    before, done = threading.Event(), threading.Event()

    def open_block() -> None:
        with options(threads=9):
            before.set()
            done.wait()

    thread = threading.Thread(target=open_block)
    thread.start()
    before.wait()
    try:
        assert f() == environment().thread_count
        monkeypatch.setenv("PARAKEET_NUM_THREADS", "6")
        config.reload()
        assert [f(), f()] == [6, 6]
        monkeypatch.undo()
        config.reload()
        assert f() == environment().thread_count
    finally:
        done.set()
        thread.join()


def test_a_tracer_is_seen_inside_a_block() -> None:
    f = teller()
    with options(threads=3):
        assert f() == 3
        sys.settrace(lambda *event: None)
        try:
            with pytest.raises(AssertionError):  # `slow` is called
                f()
        finally:
            sys.settrace(None)
        assert f() == 3
