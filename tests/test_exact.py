"""Programs of the corpus in exact code, compared with plain Python by `==`: no tolerance, NaN for NaN.

A share of those that have tolerances otherwise; `PARAKEET_TEST_EXACT=all` runs all of them, and all others.
"""

from __future__ import annotations

import os

import pytest

from tests.corpus import Program, all_programs, assert_same, lot, outcome

EVERY = 10
# What is said in docs/semantics.md of exact code: results that are handed back in an order of axes that only the run
# tells, and numbers of two types by the path.
DIFFERENT = frozenset({"linear_algebra.named_indices", "mixed_scalars.powers_by_elements_of_two_arrays"})
ALL = os.environ.get("PARAKEET_TEST_EXACT") == "all"


def _is_drawn(program: Program) -> bool:
    if program.name in DIFFERENT:
        return False
    return ALL or (bool(program.ulp or program.sums or program.regrouped) and lot(program, EVERY) == 0)


@pytest.mark.parametrize("program", [one for one in all_programs() if _is_drawn(one)], ids=repr)
def test_exact_program(program: Program) -> None:
    from parakeet_py import accelerate, options

    function = accelerate(program.function, exact=True)
    with options(threads=1 if ALL and lot(program, 2) else 2, when="now"):
        for number, case in enumerate(program.cases):
            for _ in range(2):  # what is handed back is observed first
                args, kwargs = case.make()
                expected = outcome(program.function, args, kwargs)
                args, kwargs = case.make()
                actual = outcome(function, args, kwargs)
                try:
                    assert_same(expected, actual, message=program.message, order=program.order)
                except BaseException as error:
                    error.add_note(f"case {number}: {case!r}")
                    raise
