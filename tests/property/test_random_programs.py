"""Random programs do on every stage of the compiler what they do in Python."""

from __future__ import annotations

from hypothesis import given

from tests.property.generated import check_program
from tests.property.random_programs import Program, programs


@given(programs())
def test_random_programs(program: Program) -> None:
    # Zeros may differ in sign: which of 0.0 and -0.0 is the larger is left open by NumPy.
    check_program(program)
