"""Calls while NumPy's error state asks for exceptions: Python's, by way of a gate if there are many."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.call.dispatch import error_states
from parakeet_py.call.dispatch.first_calls import BUDGET, FirstCalls
from parakeet_py.llvm.entry.entry_kind import why_portable

needs_gates = pytest.mark.skipif(bool(why_portable()), reason="there are no gates here")


@needs_gates
def test_many_calls_go_to_a_gate() -> None:
    f = accelerate(when="now", devices="cpu")(lambda x, y: x / y)
    x = np.ones(3)
    assert f(x, x).tolist() == [1, 1, 1]  # compiled
    states = f._dispatcher.error_states
    with np.errstate(all="raise"):
        for _ in range(4 * error_states.FEW):
            assert f(x, x).tolist() == [1, 1, 1]
        assert states.calls <= error_states.FEW + 1 and states.gate.left > 0
        with pytest.raises(FloatingPointError):
            f(x, 0 * x)
        left = states.gate.left
    assert f(x, x).tolist() == [1, 1, 1] and states.gate.left == left  # machine code is before it
    with np.errstate(all="raise"):
        states.gate.left = 0
        assert f(x, x).tolist() == [1, 1, 1]
        assert states.gate.left == error_states.SPAN


@needs_gates
def test_other_kinds_of_calls_are_compiled_again() -> None:
    f = accelerate(when="now", devices="cpu")(operator.add)
    with np.errstate(all="raise"):
        for _ in range(2 * error_states.FEW):
            assert f(1.0, 2.0) == 3.0
    f._dispatcher.error_states.gate.left = 0
    assert f(1.0, 2.0) == 3.0 and f.explain(1.0, 2.0).fell_back is None
    assert len(f.specializations) == 1


def test_first_calls_go_on() -> None:
    f = accelerate(operator.add)
    first = FirstCalls(f.__wrapped__, f)
    first.budget = 1 << 60  # nothing is left because of time that has passed
    assert first.more() == 0
    with np.errstate(all="raise"):
        assert first.more() == BUDGET
