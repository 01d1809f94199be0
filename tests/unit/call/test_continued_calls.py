"""Compiled code is left at each operation that it hands back, whatever that gives: Python does the rest of the call."""

from __future__ import annotations

from typing import Any

import pytest

from parakeet_py import accelerate, options
from parakeet_py.call import handed_back, handed_back_plans
from tests.corpus import Program, all_programs, assert_same, outcome

_PROGRAMS = [one for one in all_programs() if one.name.startswith("continued.") and one.opaque is None]


@pytest.mark.parametrize("program", _PROGRAMS, ids=repr)
@pytest.mark.usefixtures("loops_are_worth_it")
def test_python_goes_on_behind_any_operation(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    done = wanted = left = 0
    performer, usual = handed_back_plans.Plan.performer, handed_back.CallState.look_for_changes

    def look(state: Any, plan: Any, results: int, result: Any) -> int:
        nonlocal done, left
        done += 1
        if done != wanted or not plan.site.exits:
            return usual(state, plan, results, result)
        state.safe, left = False, left + 1
        return int(state.leave(plan, results, lambda: result))

    monkeypatch.setattr(
        handed_back_plans.Plan, "performer", lambda plan, function, hidden: performer(plan, function, True)
    )
    monkeypatch.setattr(handed_back.CallState, "look_for_changes", look)
    made = accelerate(program.function)
    with options(check=1):
        for case in program.cases:  # some operations are met with some arguments alone
            for number in (0, 0, 0, 1, 2, 3):
                wanted = number
                expected, done = outcome(program.function, *case.make()), 0
                actual = outcome(made, *case.make())
                assert_same(expected, actual, ulp=program.ulp, sums=program.sums)
            if left or made.fell_back:
                break
    assert left or made.fell_back
