"""What the debug levels and PARAKEET_PRINT show, and where things are said to happen."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options


def scaled(x: Any) -> Any:
    y = x * 2
    return y.sum()


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_debug_levels(level: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "parakeet_py"), options(debug=level):
        accelerate(scaled)(np.ones(3))
    shown = caplog.text
    assert "scaled(float64[1 axis]): compiled, 1 operators" in shown
    for least, what in ((2, "reduce"), (3, "define i32 @scaled"), (4, "specialize")):
        assert (what in shown) == (level >= least), what


def test_print_after_passes(caplog: pytest.LogCaptureFixture) -> None:
    with options(print_passes="specialize,nonsense"):
        accelerate(scaled)(np.ones(3))
    assert "scaled after specialize:\ndef scaled(" in caplog.text
    assert "no pass 'nonsense'" in caplog.text


def test_the_library_happens_where_it_is_called() -> None:
    (operator,) = accelerate(scaled).explain(np.ones(3)).operators
    first = scaled.__code__.co_firstlineno
    assert first < operator.line <= first + 2


def test_specializations_name_their_types() -> None:
    function = accelerate(scaled)
    with options(cache=False):
        function(np.ones(3))
    assert repr(function.specializations) == "[<scaled(float64[1 axis]), compiled>]"
