"""Which loops branch the same way in all iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate
from parakeet_py.base import config
from parakeet_py.call.compile import compile_call
from parakeet_py.call.load import Knowledge
from parakeet_py.imp.schedule.loop_branches import branches_alike


def by_a_flag(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] * x[i] if squared else s + x[i]
    return s


def by_elements(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            s += x[i]
    return s


def by_the_outer_index(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(3):
        for j in range(len(x)):
            if i == 1:
                s += x[j] * s
            s = s / 2
    return s


def by_a_flag_or_elements(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if squared or x[i] > 0.0:
            s = s / 2 + x[i]
    return s


def around_a_loop(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(3):
        if squared:
            for j in range(len(x)):
                s = s / 2 + x[j] * i
    return s


def by_what_changed(x: Any, squared: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if squared:
            s = s / 2 + x[i]
        squared = s < 1.0
    return s


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (by_a_flag, True),
        (by_elements, False),
        (by_the_outer_index, True),
        (by_a_flag_or_elements, True),
        (around_a_loop, False),
        (by_what_changed, False),
    ],
)
def test_branches(function: Any, expected: bool) -> None:
    x = np.array([0.5, -2.0, 3.0])
    compiled = accelerate(when="now")(function)
    assert compiled(x, True) == function(x, True)
    assert compiled(x, False) == function(x, False)
    known = compile_call(function, (x, True), Knowledge(), config.current())
    assert branches_alike(known.imp) == expected
