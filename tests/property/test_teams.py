"""Random programs do on teams what they do in Python, wherever their index spaces are cut."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from parakeet_py import options
from tests.backends import accelerated
from tests.corpus import Case, assert_same, outcome
from tests.property.generated import function
from tests.property.random_programs import Program, programs
from tests.teams import PLACES, TEAMS, cut_at


@settings(max_examples=8, phases=(Phase.generate,))
@given(programs(), st.sampled_from(TEAMS), st.sampled_from(list(PLACES)))
def test_random_programs_on_teams(program: Program, devices: str, place: str) -> None:
    note(program.source)
    f = function(program.source)

    def on_team(*args: Any) -> Any:
        with options(devices=devices, check=True), cut_at(place):
            return accelerated(f)(*args)

    case = Case(program.args if callable(program.args) else tuple(program.args))
    expected = outcome(f, case.make()[0])
    actual = outcome(on_team, case.make()[0])
    assert_same(expected, actual, sums=1, order=False)
