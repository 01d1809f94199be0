"""Programs of the corpus with every array among their arguments on devices: a sample that a fixed seed draws.

`PARAKEET_TEST_RESIDENTS=all` runs every case of every program, with arrays of ours and of another library, on one
device and on teams; `=one` each case once, of a kind and at a place that are drawn. Half of these are devices that do
nothing before a thread waits for it (`late_devices`), `=late` has all cases on them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from tests.corpus import Case, Program, all_programs, assert_same, outcome
from tests.residents import KINDS, PLACES, can_nothing, run_with_residents
from tests.test_teams import SHOWS_GROUPING

SEED, ONE_OF = 7, 300
# Python has arrays of lists in the midst of these calls: always here, on one device and on a team
SHOWN_TO_PYTHON = {
    "kept_arguments.array_beside_a_list_of_it": [("ours", "emulated"), ("theirs", "emulated"), ("ours", "emulated*2")]
}
# Python sets what an array is taken to be, or asks it for a view and hides that it has none: theirs can do neither
NOT_THEIRS = {
    "opaque.dtype_set_by_python",
    "opaque.shape_set_by_python",
    "exceptions.inner_loop_over_what_no_path_has_bound",
}
SHARED_BY_CLOSURES = {"functions.closure_over_another_argument"}  # cells of closures keep arrays of the host


def _runs() -> Iterator[object]:
    wanted = os.environ.get("PARAKEET_TEST_RESIDENTS")
    ways = [(kind, place) for kind in KINDS for place in PLACES]
    for program in all_programs():
        if program.name in SHOWS_GROUPING or program.name in SHARED_BY_CLOSURES:
            continue
        for number, case in enumerate(program.cases):
            if case.host_only:
                continue
            drawn = zlib.crc32(repr((SEED, program.name, number)).encode())
            always = SHOWN_TO_PYTHON.get(program.name)
            if wanted is None and not always and (drawn % ONE_OF or case.native_only):
                continue
            chosen = ways if wanted == "all" else always or [ways[drawn // ONE_OF % len(ways)]]
            for kind, place in chosen:
                if kind == "theirs" and program.name in NOT_THEIRS:
                    continue
                late = wanted == "late" or (wanted != "all" and drawn // ONE_OF // len(ways) % 2 == 1)
                name = f"{program.name}-{number}-{kind}-{place}{'-late' if late else ''}"
                yield pytest.param(program, case, kind, place, late, id=name)


@pytest.mark.parametrize(("program", "case", "kind", "place", "late"), list(_runs()))
def test_program_with_residents(program: Program, case: Case, kind: str, place: str, late: bool) -> None:
    args, kwargs = case.make()
    expected = outcome(program.function, args, kwargs)
    actual = run_with_residents(program, case, kind, place, late)
    if can_nothing(actual, kind):
        return
    sums = max(program.sums, program.regrouped)
    assert_same(
        expected, actual, ulp=program.ulp, sums=sums, message=program.message, order=program.order, identity=False
    )
