"""Programs of the corpus through Dask arrays in one chunk, uneven ones and tiny ones: a sample that a fixed seed draws.

`PARAKEET_TEST_DASK=all` runs every case of every program in all three. What Python has to do parts of is left out.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from tests.corpus import Case, Program, all_programs

dask_arrays = pytest.importorskip("tests.dask_arrays", exc_type=ImportError)

SEED, ONE_OF = 2, 150


def _drawn(program: Program, *where: object) -> bool:
    """Whether a run is in the sample: what else is in the corpus does not change it."""
    return zlib.crc32(repr((SEED, program.name, *where)).encode()) % ONE_OF == 0


def _runs() -> Iterator[object]:
    every = os.environ.get("PARAKEET_TEST_DASK") == "all"
    for program in all_programs():
        for number, case in enumerate(program.cases):
            for chunking in dask_arrays.CHUNKINGS:
                if (every or _drawn(program, number, chunking)) and not (case.native_only or program.overflow):
                    yield pytest.param(program, case, chunking, id=f"{program.name}-{number}-{chunking}")


@pytest.mark.parametrize(("program", "case", "chunking"), list(_runs()))
def test_program_on_dask(program: Program, case: Case, chunking: str) -> None:
    if not dask_arrays.is_meant(case):
        pytest.skip("arguments that share memory, or are no arrays in C order")
    try:
        dask_arrays.assert_same_on_dask(program, case, chunking)
    except dask_arrays.LeftToPython as left:
        pytest.skip(f"left to Python: {left}")
