"""Random programs do on every stage of the compiler what they do in Python."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings

from tests.arrays import Array
from tests.corpus import Difference
from tests.property.crashes import in_process
from tests.property.generated import check_program, function
from tests.property.mixed_scalars import mixed_programs
from tests.property.random_programs import Program, programs
from tests.property.reference_counts import check_counts, compared
from tests.property.smaller import smaller


@settings(phases=(Phase.generate,))  # `smaller` does better than Hypothesis's minutes
@given(programs(most=5))
def test_random_programs(program: Program) -> None:
    # Zeros may differ in sign: which of 0.0 and -0.0 is the larger is left open by NumPy.
    check_program(program)


@seed(0)
@settings(phases=(Phase.generate,), max_examples=8)
@given(mixed_programs())
def test_mixed_scalars(program: Program) -> None:
    check_program(program)
    check_counts(program, function(program.source))


class Leaks:
    """Calls a function, and keeps what `kept` gives each time."""

    def __init__(self, f: Callable[..., Any], kept: Callable[[Any], Any]) -> None:
        self.f, self.kept, self.all = f, kept, [None]

    def __call__(self, *args: Any) -> Any:
        self.all.append(self.kept(args[0]))
        return self.f(*args)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (lambda x: x, "calls change the reference count of argument 0"),
        (lambda x: np.True_, "calls change the reference count of np.True_"),
        (lambda x: [float(len(x))], "blocks of memory allocated"),
    ],
)
def test_leaks_are_found(kept: Callable[[Any], Any], message: str) -> None:
    f = function("def f(x, k):\n    return x[0] + k, x\n")
    compared(f, lambda x, k: f(x, k), (Array("f8", (3,)), 1), attempts=2)
    with pytest.raises(Difference, match=message):
        compared(f, Leaks(f, kept), (Array("f8", (3,)), 1), attempts=2)


def test_crashes_are_survived() -> None:
    assert in_process(lambda: os.kill(os.getpid(), signal.SIGKILL)) == -signal.SIGKILL
    assert in_process(lambda: None) == 0


def test_programs_that_differ_are_made_smaller() -> None:
    lines = [
        "def f(a, k):",
        "    t1 = a + 1",
        "    for i in range(k):",
        "        if i > 1:",
        "            t2 = a[::-1]",
    ]
    lines += ["            a[0] += i", "        t1 = t1 * 2", "    t3 = np.sort(a)", "    return a, k, t1, t3", ""]
    program = Program("\n".join(lines), (3, 1), ((4, 1), (5, 2)))
    small = smaller(program, lambda one: "a[0] += i" in one.source and one.recipes == (5, 2))
    assert small.source == "def f(a, k):\n    a[0] += i\n" and small.recipes == (5, 2) and not small.variants
