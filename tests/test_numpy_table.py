"""A sample of the table of NumPy's functions on the interpreter; the page says what the table finds."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import numpy as np
import pytest

from parakeet_py.library import registry
from tests.numpy_table import families, page
from tests.numpy_table.compare import verdict
from tests.numpy_table.rows import TABLE, Case, Row, cases

PAGE = Path(__file__).parents[1] / "docs" / "numpy.md"
CASES_OF_A_ROW = 8
ROWS_OF_THE_PAGE = 40

assert families
FAMILIES = sorted({row.family for row in TABLE.values()})
SAMPLE = random.Random(5)


def chosen(row: Row) -> list[Case]:
    """A few cases of a row."""
    every = list(cases(row))
    return SAMPLE.sample(every, min(CASES_OF_A_ROW, len(every)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_sample(family: str) -> None:
    for row in TABLE.values():
        if row.family == family:
            for case in chosen(row):
                verdict(case)


@pytest.mark.filterwarnings("ignore")
def test_page_is_in_step() -> None:
    """Every row is on the page, and a sample of them says what is found now."""
    written = PAGE.read_text().splitlines()
    rows = [line for line in written if line.startswith("| `")]
    assert sorted(re.match(r"\| `([^`]+)`", line)[1] for line in rows) == sorted(TABLE), "run make docs"  # type: ignore[index]
    for name in random.Random(7).sample(sorted(TABLE), ROWS_OF_THE_PAGE):
        assert page.line(TABLE[name])[1] in rows, f"{name}: run make docs"


def test_everything_registered_has_a_row() -> None:
    registered = registry.registered()
    names = [re.sub(r"^numpy\.", "np.", name) for name in registered["functions"] if name.startswith("numpy.")]
    names += [f"np.{name}" for name in registered["ufuncs"] if hasattr(np, name)]
    others = ("ufunc.", "generator.", "__")  # methods of what is no array
    names += [f"ndarray.{name}" for name in registered["methods"] if not name.startswith(others)]
    names = [name for name in names if not name.startswith("np.random.")]  # each call gives something else
    missing = [name for name in names if name not in TABLE and "_impl" not in name and name not in WITHOUT_ROW]
    assert not missing


WITHOUT_ROW = {"np.ndarray"}


def test_cases_are_what_they_say() -> None:
    """The generator: ranks, empty shapes, layouts and every dtype of a row are there."""
    found = list(itertools.islice(cases(TABLE["np.sum"]), 2000))
    assert {len(case.shape) for case in found} == {0, 1, 2, 3}
    assert any(0 in case.shape for case in found)
    assert {case.dtype for case in found} == set(TABLE["np.sum"].dtypes)
