"""Random programs do on every stage of the compiler what they do in Python."""

from __future__ import annotations

from hypothesis import Phase, given, settings

from tests.property.generated import check_program
from tests.property.random_programs import Program, programs
from tests.property.smaller import smaller


@settings(phases=(Phase.generate,))  # `smaller` does better than Hypothesis's minutes
@given(programs(most=5))
def test_random_programs(program: Program) -> None:
    # Zeros may differ in sign: which of 0.0 and -0.0 is the larger is left open by NumPy.
    check_program(program)


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
