"""Gates to the plain function: which calls they take, how long, and what of their time they book."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.llvm.entry.argument_sizes import add_unsized
from parakeet_py.llvm.entry.booked_time import booked
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.entry.plain_gate import FOR_EVER, MOST, SPAN, PlainGate, Shape
from tests.helpers.called_in_python import of, plain


def behind(gate: PlainGate) -> tuple[Any, list[Any]]:
    """A function whose calls meet a gate, and those that it has let pass."""
    passed: list[Any] = []
    instance = AcceleratedFunction(plain, lambda *args, **kwargs: passed.append((args, kwargs)))
    install(instance, [gate])
    return instance, passed


def test_a_gate_takes_calls_of_one_shape() -> None:
    x = np.ones(10)
    call, passed = behind(PlainGate(plain, of(x, 3), 100, FOR_EVER))
    assert call(x, 3) == (3, 1) and call(x, -100) == (-100, 1) and not passed
    others: list[tuple[Any, ...]] = [
        (x,),
        (x, 3, 4),
        (x, 101),
        (x, -101),
        (x, 2**70),
        (x, 3.0),
        (x, True),
        (np.ones(101), 3),
        (np.ones((2, 5)), 3),
        (x.astype("f4"), 3),
        ([1.0], 3),
    ]
    for args in others:
        assert call(*args) is None
    assert call(x, n=3) is None
    assert [args for args, _ in passed[:-1]] == others and passed[-1][1] == {"n": 3}


def test_a_gate_compares_names_and_values_of_few_kinds() -> None:
    call, passed = behind(PlainGate(plain, of([1, 2], "a", k=None), 2, FOR_EVER))
    assert call([3, 4], "a", k=None) == ("a", None) and not passed
    for args, kwargs in (
        (([1, 2, 3], "a"), {"k": None}),
        (([1, 2], "b"), {"k": None}),
        (([1, 2], "a"), {"k": 1}),
        (([1, 2], "a"), {"n": None}),
        (([1, 2], "a", None), {}),
    ):
        assert call(*args, **kwargs) is None
    assert len(passed) == 5
    assert call([3, 4], "".join(["", "a"]), k=None) == ("a", None) and call([3], str(b"a", "ascii"), k=None) == (
        "a",
        None,
    )
    assert Shape.of(range(17), {}) is None and Shape.of(range(16), {}) is not None


def test_a_gate_lets_calls_pass_when_its_time_is_over() -> None:
    gate = PlainGate(plain, of(1.0, 3), 100, 1)
    call, passed = behind(gate)
    assert call(1.0, 3) == (3, 1) and gate.left <= 0
    assert call(1.0, 3) is None and len(passed) == 1
    gate.left = 10**9
    assert call(1.0, 3) == (3, 1) and 0 < gate.left < 10**9


def test_a_gate_takes_no_calls_in_blocks_of_options_but_those_that_profilers_see() -> None:
    call, passed = behind(PlainGate(plain, of(1.0, 3), 100, FOR_EVER))
    with options(threads=1):
        assert call(1.0, 3) is None
    before, seen = sys.getprofile(), []
    sys.setprofile(lambda frame, event, _: seen.append((frame.f_code.co_name, event)))
    try:
        assert call(1.0, 3) == (3, 1)
    finally:
        sys.setprofile(before)
    assert ("plain", "call") in seen and len(passed) == 1 and call(1.0, 3) == (3, 1)


def test_a_gate_may_look_less_closely() -> None:
    shape = Shape.of((np.ones(3, "f4"), "a"), {"k": True}, closely=False)
    assert shape is not None
    call, passed = behind(PlainGate(plain, shape, 100, FOR_EVER))
    for x in (np.ones(3), np.zeros(3, [("a", "f8")])):
        assert call(x, "b", k=False) == ("b", False)
    assert call(np.ones((2, 2)), "a", k=True) is None and call(np.ones(3), None, k=True) is None and len(passed) == 2


def test_a_gate_books_the_time_of_recursive_calls_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def calls_itself(n: int) -> int:
        if n == 0:
            booked[0] += 10**15  # a call within the others has taken long
            return 0
        found: int = instance(n - 1) + 1
        seen.append(gate.left)
        return found

    gate = PlainGate(calls_itself, of(3), 100, 10**17)
    instance = AcceleratedFunction(calls_itself)
    install(instance, [gate])
    before = booked[0]
    assert instance(50) == 50
    assert {*seen, gate.left} == {10**17}  # what the others have taken is less
    assert booked[0] == before + 10**15


def test_a_gate_counts_references_and_raises_what_the_function_raises() -> None:
    def fails(x: Any) -> Any:
        raise KeyError(x)

    marker = "".join(["a", "b"])
    gate = PlainGate(fails, of(marker), 100, 10**9)
    instance = AcceleratedFunction(fails)
    install(instance, [gate])
    before = sys.getrefcount(marker)
    for _ in range(100):
        with pytest.raises(KeyError, match="ab"):
            instance(marker)
    assert sys.getrefcount(marker) == before and gate.left < 10**9


def test_a_gate_without_a_shape_looks_at_sizes_and_classes() -> None:
    gate = PlainGate(plain, None, 100, FOR_EVER)
    call, passed = behind(gate)

    class Other:
        pass

    others: list[Any] = [np.ones(101), 101, -(2**70), [0] * 101, dict.fromkeys(range(101)), Other()]
    for value in others:
        assert call(value) is None and call(1.0, k=value) is None
    assert len(passed) == 2 * len(others)
    add_unsized([float, Other])
    for value in (np.ones(100), 100, [0] * 100, (1,), {}, Other()):
        assert call(value) == (3, 1) and call(1.0, 2.0, k=3) == (2.0, 3)


def test_short_calls_are_measured_now_and_then() -> None:
    gate = PlainGate(plain, None, 100, 10**17)
    call, _ = behind(gate)
    before = booked[0]
    call(1)
    while gate.until_sample == 0:  # another process had the CPU in the midst of the call
        call(1)
    estimate, left = gate.estimate, gate.left
    untimed = min(SPAN // estimate, MOST)
    assert 0 < gate.until_sample == untimed
    for _ in range(untimed):
        call(1)
    assert gate.until_sample == 0 and left - gate.left == untimed * estimate
    assert 10**17 - gate.left == booked[0] - before
    gate.estimate = -1
    call(1)
    assert gate.estimate >= 0


def test_gates_that_let_an_equal_dtype_pass_are_not_made_anew() -> None:
    function = accelerate(when="pays")(lambda x: x + 1)
    for largest, gates, retired in ((100, 1, 0), (100, 1, 0), (50, 1, 0), (200, 1, 1)):
        dtype = np.dtype([("a", "f8")])  # equal to the former one
        function._dispatcher.install_plain(PlainGate(plain, of(np.ones(3, dtype)), largest, FOR_EVER))
        kept = [gate for gate in function._retired if isinstance(gate, PlainGate)]
        assert (len(function._gates), len({id(gate) for gate in kept} - {id(function._gates[0])})) == (gates, retired)
