"""Native gates: failures, references and memory, threads, caches."""

from __future__ import annotations

import gc
import struct
import sys
import threading
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.config import options
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.entry.entry_stub import load_gate
from parakeet_py.llvm.entry.stub_text import gate_ir
from parakeet_py.llvm.runtime.loop_polls import LENT
from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.signature.results import ResultLeaf, ResultStatic
from parakeet_py.signature.specs import HiddenSpec, ObjectSpec, Signature, signature_of
from tests.helpers.entry_stub_programs import (
    Failure,
    Probe,
    Slow,
    blocks_entry,
    fail,
    function_of,
    make_gate,
    probe_of,
)
from tests.helpers.entry_stub_values import CALLS, reads_globals


def test_failures_raise() -> None:
    x = np.ones(3)
    probe = Probe(signature_of([x]), status=7)
    references = sys.getrefcount(x)
    for _ in range(1000):
        with pytest.raises(Failure) as caught:
            probe.f(x)
    assert caught.value.args == (7, 11, 0, 0, 0, 0, -16)
    caught = None  # type: ignore[assignment]
    assert sys.getrefcount(x) == references
    probe.status.value = 0
    assert probe.f(x) is None


def test_a_helper_that_does_not_raise() -> None:
    function = AcceleratedFunction(lambda: None)
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  store i64 1, ptr %c\n  ret i32 1\n}"
    handle = make_gate(
        entry,
        Signature(()),
        ResultStatic(None),
        None,
        raise_failure=lambda *words: None,
        following=function.__wrapped__,
    )
    install(function, [handle])
    with pytest.raises(SystemError):
        function()


def test_blocks_are_freed_when_a_call_fails() -> None:
    size = 1 << 20
    entry = blocks_entry([size], []).replace("  ret i32 0", "  store i64 3, ptr %ctx\n  ret i32 3")
    f = function_of(entry, Signature(()), ResultStatic(None))
    pooled = []
    for _ in range(20):
        with pytest.raises(Failure):
            f()
        pooled.append(runtime().pooled_bytes())
    assert pooled[0] == pooled[-1] >= size


def test_state_is_dropped_and_shown() -> None:
    state: Any = [1, 2]
    entry = """
@probe.state = external global i64
@probe.status = external global i64
define i32 @entry(ptr %ctx, ptr %args, ptr %results) {
  %n = load i64, ptr @probe.state
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @probe.state
  %p = getelementptr i8, ptr %ctx, i64 72
  store ptr @probe.state, ptr %p
  %s = load i64, ptr @probe.status
  store i64 %s, ptr %ctx
  %r = trunc i64 %s to i32
  ret i32 %r
}"""
    import ctypes

    status = ctypes.c_int64(0)
    names = {"probe.state": id(state), "probe.status": ctypes.addressof(status)}
    f = function_of(entry, Signature(()), ResultStatic(None), external=names)
    references = sys.getrefcount(state)
    for _ in range(100):
        f()
    status.value = 5
    with pytest.raises(Failure) as caught:
        f()
    assert caught.value.args == (5, 0, 0, 0, 0, 0, 0, state)
    del caught
    assert sys.getrefcount(state) == references


def test_the_context_at_the_start() -> None:
    state = object()
    probe = Probe(Signature(()), state=state)
    with options(threads=5):
        probe.f()
    raw = probe.context.raw
    assert struct.unpack_from("<Q", raw, 72)[0] == id(state)
    assert struct.unpack_from("<i", raw, 80)[0] == 5
    assert struct.unpack_from("<Q", raw, 112)[0] == LENT
    assert raw[:72] == bytes(72) and raw[84:112] == bytes(28) and raw[120:] == bytes(8)
    references = sys.getrefcount(state)
    for _ in range(100):
        probe.f()
    assert sys.getrefcount(state) == references


def test_no_references_leak() -> None:
    x, y = np.arange(4.0), np.arange(12.0).reshape(3, 4)[:, ::2]
    key: Any = (5, [2.5, x], "name")
    values: list[Any] = [x, y, key, key[1], 10**10, 2.5, None, np.float32(1), {}]
    probe = probe_of(x, y, key, 10**10, 2.5, None, np.float32(1), {})
    args = (x, y, key, 10**10, 2.5, None, np.float32(1), {})
    bad = (x, y, key, 10**10, 2.5, None, np.float32(1), [])
    assert probe.takes(*args)
    assert not probe.takes(*bad)
    probe.slow.calls.clear()
    before = [sys.getrefcount(value) for value in values]
    for _ in range(CALLS):
        probe.f(*args)
    for _ in range(100):
        probe.f(*bad)
    probe.slow.calls.clear()
    after = [sys.getrefcount(value) for value in values]
    assert all(abs(b - a) < 20 for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("options", [{"always_release": True}, {"release_elements": 3}, {}])
def test_the_gil_around_the_call(options: dict[str, Any]) -> None:
    entry = """
@asked = external global i64
declare i32 @PyGILState_Check()
define i32 @entry(ptr %ctx, ptr %args, ptr %results) {
  %held = call i32 @PyGILState_Check()
  %wide = zext i32 %held to i64
  store i64 %wide, ptr %results
  ret i32 0
}"""
    x = np.ones(4)
    f = function_of(entry, signature_of([x]), ResultLeaf(0, "scalar", "bool", True), external={"asked": 0}, **options)
    assert f(x) is (not options)
    assert f(x[:3]) is ("always_release" not in options)
    assert f(x[:0]) is ("always_release" not in options)


def test_many_threads_while_gates_change() -> None:
    x = np.ones(40_000)
    probes = [probe_of(1), probe_of(1.0), probe_of(x), probe_of("a")]
    function = AcceleratedFunction(lambda value: None, Slow())
    stop = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.is_set():
                for value in (1, 1.0, x, "a", None):
                    assert function(value) in (None, "slow")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    rng = np.random.default_rng(0)
    for _ in range(300):
        order = rng.permutation(len(probes))[: rng.integers(0, len(probes) + 1)]
        install(function, [probes[index].handle for index in order])
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_object_code_is_the_same_everywhere() -> None:
    from parakeet_py.llvm.engine import compiler

    x = np.ones(3)
    signature = signature_of([x, "mode"], [(("global", "np"), np)])
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  ret i32 0\n}\n"
    code = compiler.compile_ir(entry + gate_ir(signature, ResultStatic("done"), "entry", "gate"))
    for _ in range(3):
        slow = Slow()
        function = AcceleratedFunction(reads_globals, slow)
        handle = load_gate(code, signature, ResultStatic("done"), reads_globals, raise_failure=fail, following=slow)
        install(function, [handle])
        assert function(x, "mode") == "done" and function(x, "other") == "slow"


def test_gates_die_with_their_function() -> None:
    import weakref

    probe = probe_of(1)
    dead = weakref.ref(probe.f), weakref.ref(probe.handle), weakref.ref(probe.handle.code)
    assert probe.f(1) is None
    del probe
    gc.collect()
    assert [reference() for reference in dead] == [None] * 3


def test_object_spec_of_a_hidden_list() -> None:
    signature = Signature((), (HiddenSpec(("global", "scale"), ObjectSpec(list)),))
    probe = Probe(signature, function=reads_globals)
    assert not probe.takes()


def test_a_helper_that_gives_the_exception() -> None:
    """It is raised as if by the call itself: no frame of the helper, the exception that is being handled as context."""
    function = AcceleratedFunction(lambda: None)
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  store i64 1, ptr %c\n  ret i32 1\n}"
    given = KeyError("given")
    references = sys.getrefcount(given)
    handle = make_gate(
        entry,
        Signature(()),
        ResultStatic(None),
        None,
        raise_failure=lambda *words: given,
        following=function.__wrapped__,
    )
    install(function, [handle])
    try:
        raise ValueError("handled")
    except ValueError as handled:
        with pytest.raises(KeyError) as caught:
            function()
        assert caught.value is given and given.__context__ is handled
    assert [frame.name for frame in caught.traceback] == ["test_a_helper_that_gives_the_exception"]
    given.__traceback__ = None
    del caught
    assert sys.getrefcount(given) == references
