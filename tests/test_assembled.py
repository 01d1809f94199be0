"""The assembler accepts the kernels of the corpus: a third of its programs, for six architectures in turn.

The emulator runs all kernels (`test_programs.py`). Both share what has been compiled of a program.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parakeet_py import options
from tests.backends import accelerated
from tests.corpus import Program, all_programs, lot
from tests.ptxas import ARCHITECTURES, PTXAS, assemble, kernels

EVERY = 3


def _programs() -> list[Program]:
    return [
        program
        for program in all_programs()
        if program.fell_back is False
        and not (program.cases[0].kwargs or program.cases[0].raises)
        and lot(program, EVERY * len(ARCHITECTURES)) < len(ARCHITECTURES)
    ]


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("program", _programs(), ids=repr)
def test_program_is_assembled(program: Program, tmp_path: Path) -> None:
    """The first input of a program."""
    architecture = ARCHITECTURES[lot(program, EVERY * len(ARCHITECTURES))]
    with options(strict=False, check=1):
        texts = kernels(accelerated(program.function), program.cases[0].make()[0], architecture)
    assemble(texts, architecture, tmp_path)
