"""The gate that accelerated functions begin with: what it takes and lets pass, and that its bytes are its text's."""

from __future__ import annotations

import gc
import runpy
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.dispatch.first_calls import begins
from parakeet_py.llvm.entry import first_gate, first_gate_code
from parakeet_py.llvm.entry.argument_sizes import add_unsized
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction
from parakeet_py.signature.small_arguments import SMALL

pytestmark = pytest.mark.skipif(not first_gate.address(), reason="there is no code for this machine")
LEFT = 10**17


class Other:
    """A class that is not known."""


def behind(function: Callable[..., Any]) -> tuple[Any, list[Any]]:
    """A function whose calls enter the gate, and the calls that this has let pass."""
    passed: list[Any] = []

    def slow(*args: Any, **kwargs: Any) -> str:
        passed.append((args, kwargs))
        return "passed"

    made = AcceleratedFunction(function, slow, begins=begins())
    made._left = LEFT
    return made, passed


def test_the_bytes_are_what_the_text_says() -> None:
    if ".".join(map(str, llvmlite.binding.llvm_version_info)) != first_gate_code.LLVM:
        pytest.skip("another LLVM has made them")
    script = Path(__file__).parents[3] / "scripts" / "first_gate.py"
    assert runpy.run_path(str(script))["made"]().hex() == first_gate_code.X86_64.replace("\n", "")


def test_small_calls_are_pythons() -> None:
    call, passed = behind(lambda *args, **kwargs: (args, kwargs))
    small: list[Any] = [
        1.5,
        True,
        None,
        "text" * 100,
        SMALL,
        -SMALL,
        np.ones(SMALL),
        [0] * SMALL,
        (),
        {},
        np.ones((0, 9)),
    ]
    for value in small:
        assert call(value) == ((value,), {}) and call(value, 1.0, k=value) == ((value, 1.0), {"k": value})
    assert call() == ((), {}) and call(*small, **{f"k{n}": n for n in range(30)})[0] == tuple(small) and not passed
    for large in (SMALL + 1, -SMALL - 1, 2**70, -(2**63), np.ones(SMALL + 1), [0] * (SMALL + 1), Other()):
        assert call(large) == call(1.0, k=large) == "passed"
    assert len(passed) == 14 and passed[1] == ((1.0,), {"k": SMALL + 1})
    call._largest_int = 2**62
    assert call(SMALL + 1) == ((SMALL + 1,), {}) and call(2**70) == call([0] * (SMALL + 1)) == "passed"
    call._largest = 2**62
    assert call([0] * 99) == (([0] * 99,), {})
    add_unsized([Other])
    assert call(Other()) != "passed"


def test_calls_pass_when_nothing_is_left_or_a_block_is_open() -> None:
    call, passed = behind(lambda x: x)
    with options(threads=1):
        assert call(1) == "passed"
    assert call(1) == 1
    call._left = 0
    assert call(1) == "passed" and len(passed) == 2


def test_it_keeps_account() -> None:
    call, _ = behind(lambda x: x)
    before = booked[0]
    call(1)
    for _ in range(1000):  # until a call is short: another process may have had the CPU in its midst
        if call._untimed:
            break
        call(1)
    left, untimed = call._left, call._untimed
    assert 0 < untimed == min(first_gate.SPAN // call._estimate, first_gate.MOST)
    for _ in range(untimed):
        call(1)
    assert call._untimed == 0 and left - call._left == untimed * call._estimate
    assert booked[0] - before >= LEFT - call._left > 0  # calls that were much longer than others do not count in full
    inner, _ = behind(lambda: sum(range(1000)))
    outer, _ = behind(lambda: inner())
    before = booked[0]
    outer()  # what calls within it take is not its own
    assert booked[0] - before == 2 * LEFT - inner._left - outer._left and inner._left < LEFT


def test_what_python_raises_is_raised() -> None:
    call, passed = behind(lambda x: 1 / x)
    for _ in range(20):
        with pytest.raises(ZeroDivisionError) as caught:
            call(0)
        assert [entry.name for entry in caught.traceback][1:] == ["<lambda>"]
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        call(1, 2)
    assert not passed


def test_callers_in_c_enter_it() -> None:
    call, passed = behind(lambda x, y=2: (x, y))
    assert list(map(call, range(3))) == [(0, 2), (1, 2), (2, 2)]
    assert call.__call__(1, y=3) == (1, 3) and sorted([3, 1], key=lambda k: call(k)) == [1, 3] and not passed

    class Holder:
        method = call

    assert isinstance(Holder().method(), str)  # `self` is of a class that is not known
    assert passed[0][0][0].__class__ is Holder


def test_recursion_and_many_calls() -> None:
    made: Any = accelerate(when="pays")(lambda n: n and 1 + made(n - 1))
    assert made(200) == 200
    with pytest.raises(RecursionError):
        made(10**6)
    for _ in range(2000):
        assert made(3) == 3


def test_a_call_while_it_is_being_freed() -> None:
    class Late:
        function: Any = None
        seen: Any = None

        def __del__(self) -> None:
            try:
                Late.seen = self.function(1)
            except SystemError as error:
                Late.seen = error

    def holding(late: Late) -> None:
        function: Any = accelerate(when="pays")(lambda x: (x, late))
        late.function = function

    holding(Late())
    gc.collect()
    assert isinstance(Late.seen, tuple | SystemError)


def test_large_ints_pass_by_where_no_loop_counts_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parakeet_py.call.dispatch.first_calls.COMPILER", "not imported")
    added: Any = accelerate(when="pays")(lambda n, x: x + n)
    counted: Any = accelerate(when="pays")(lambda n: [k for k in range(n % 10)])
    for _ in range(3):
        assert added(10**12, 1) == 10**12 + 1 and counted(10**3 + 2) == [0, 1]
    assert added._largest_int == 2**63 - 1 and SMALL < counted._largest_int < 10**9
    calls = added._calls.calls
    assert added(10**15, 1.0) == 1e15 + 1 and added._calls.calls == calls


def test_nothing_is_made_for_small_calls_that_would_have_to_be_collected() -> None:
    made: Any = accelerate(when="pays")(lambda x: x)
    assert made(1) == 1
    gone = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert gone() is None
    finally:
        gc.enable()
    other: Any = accelerate(when="pays")(lambda x: x)
    unknown = type("Unknown", (), {})()
    assert other(unknown) is unknown and other._slow == other._calls.run
