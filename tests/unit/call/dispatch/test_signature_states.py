"""The states of a signature, and their transitions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.call.dispatch.signature_states import STEPS, Call, State, state_of


def state(accelerated: Any, *args: Any, log: Any = None) -> State:
    dispatcher = accelerated._dispatcher
    return state_of(dispatcher, Call(args, dispatcher.signature(args), (), log))


def test_every_state_has_a_step() -> None:
    assert set(STEPS) == set(State)


def test_a_call_that_is_compiled() -> None:
    @accelerate
    def doubled(x: Any) -> Any:
        return 2 * x

    x = np.arange(3.0)
    with options(cache=False):
        assert state(doubled, x) is State.NEW
        doubled(x)
        assert state(doubled, x) is State.COMPILED
        assert state(doubled, x, log=()) is State.INTERRUPTED
        assert state(doubled, x.astype("f4")) is State.NEW


def test_code_for_the_usual_extents() -> None:
    @accelerate
    def nudge(a: Any, b: Any) -> None:
        a[1:] += b[:-1]

    a = np.arange(5.0)
    with options(cache=False):
        nudge(a, np.arange(5.0))
        assert state(nudge, a, np.arange(5.0)) is State.USUAL
        nudge(a, np.arange(2.0))
        assert state(nudge, a, np.arange(5.0)) is State.COMPILED


def test_an_operation_that_is_observed_first() -> None:
    seen = []

    @accelerate
    def partitioned(x: Any) -> Any:
        y = np.partition(x * 2.0 + 1.0, 1)
        return y.sum() * 2.0

    def watched(*args: Any) -> Any:
        seen.append(state(partitioned, x))
        return found(*args)

    x = np.arange(5.0)
    with options(cache=False), pytest.MonkeyPatch.context() as patch:
        found = partitioned._dispatcher.evaluate
        patch.setattr(partitioned._dispatcher, "evaluate", watched)
        partitioned(x)
        assert seen == [State.OBSERVED]
        assert state(partitioned, x) is State.NEW
        partitioned(x)
        assert state(partitioned, x) is State.COMPILED


def test_a_call_that_cannot_be_compiled() -> None:
    @accelerate
    def unusual(x: Any) -> Any:
        class Held:
            value = x

        return Held.value

    with options(cache=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unusual(1)
        assert state(unusual, 1) is State.REFUSED


OFFSET = 1


def test_a_refusal_is_of_the_hidden_arguments_too() -> None:
    """The second call is not compiled to be refused once more; one with another type of a global is compiled."""
    global OFFSET

    @accelerate
    def shifted(x: Any) -> Any:
        return x[OFFSET, 0, 0]

    x = np.ones((2, 2))
    with options(cache=False):
        with pytest.raises(IndexError):
            shifted(x)
        assert state(shifted, x) is State.REFUSED
        OFFSET = np.int64(1)  # type: ignore[assignment]
        assert state(shifted, x) is State.NEW
    OFFSET = 1
