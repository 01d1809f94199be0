"""The structure of the package: sizes of folders, circles of imports.

The layers of packages are contracts of import-linter (`make lint`). What is not reached yet is an upper bound here,
which may only shrink; `make house` prints the goals beside the present values.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SPECIALIZE = "parakeet_py.typed_ir.specialize."
LARGEST_CIRCLE = 69  # among the rules of the specializer, which know each other; the goal is 3
LATE = 29  # imports in functions of the specializer that only break circles; the goal is 0
FULLEST = 20


@pytest.fixture(scope="module")
def house() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    assert spec is not None and spec.loader is not None
    made = sys.modules["house"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_no_folder_is_too_full(house: ModuleType) -> None:
    assert {name: size for name, size in house.folder_sizes().items() if size > FULLEST} == {}


def test_circles_are_small_and_in_one_folder(house: ModuleType) -> None:
    for circle in house.import_circles(house.modules()):
        if any(name.startswith(SPECIALIZE) for name in circle):
            assert len(circle) <= LARGEST_CIRCLE
            assert all(name.startswith("parakeet_py.typed_ir.") for name in circle), circle
        else:
            assert len(circle) <= 3 and not house.crossing(circle), circle


def test_imports_in_functions_do_not_break_circles(house: ModuleType) -> None:
    found = house.circle_breaking_imports(house.modules())
    assert [pair for pair in found if not pair[0].startswith(SPECIALIZE)] == []
    assert len(found) <= LATE, found


def test_circles_are_found(house: ModuleType) -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert house.circles(graph) == [["a", "b", "c"]]
