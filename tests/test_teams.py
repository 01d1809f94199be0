"""Programs of the corpus on teams, their index spaces cut at 0, 1, n/2, n-1 and n: a sample that a fixed seed draws.

`PARAKEET_TEST_TEAMS=all` runs every case of every program on every team at every place.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from tests.corpus import Case, Program, all_programs, assert_same, outcome
from tests.teams import PLACES, TEAMS, run_on_team

SEED, ONE_OF = 4, 600
# sums of so few floats that NumPy's order is stated to be kept; on teams each part is summed on its own
SHOWS_GROUPING = {"opaque.types_of_numbers_given_to_python", "lists.kept_apart_from_arrays"}


def _drawn(program: Program, *where: object) -> bool:
    """Whether a run is in the sample: what else is in the corpus does not change it."""
    return zlib.crc32(repr((SEED, program.name, *where)).encode()) % ONE_OF == 0


def _runs() -> Iterator[object]:
    programs = [program for program in all_programs() if program.name not in SHOWS_GROUPING]
    cases = [(program, number) for program in programs for number in range(len(program.cases))]
    runs = [(*case, devices, place) for case in cases for devices in TEAMS for place in PLACES]
    if os.environ.get("PARAKEET_TEST_TEAMS") != "all":
        runs = [run for run in runs if not run[0].cases[run[1]].native_only and _drawn(*run)]
    for program, number, devices, place in runs:
        case = program.cases[number]
        yield pytest.param(program, case, devices, place, id=f"{program.name}-{number}-{devices}-{place}")


@pytest.mark.parametrize(("program", "case", "devices", "place"), list(_runs()))
def test_program_on_team(program: Program, case: Case, devices: str, place: str) -> None:
    args, kwargs = case.make()
    expected = outcome(program.function, args, kwargs)
    actual = run_on_team(program, case, devices, place)
    sums = max(program.sums, program.regrouped)  # parts are summed on their own
    assert_same(expected, actual, ulp=program.ulp, sums=sums, message=program.message, order=program.order)
