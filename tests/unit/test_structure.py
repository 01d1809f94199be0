"""The structure of the package: sizes of folders, circles of imports.

The layers of packages are contracts of import-linter (`make lint`); `make house` prints goals and present values.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

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
        assert len(circle) <= 3 and not house.crossing(circle), circle


def test_imports_in_functions_do_not_break_circles(house: ModuleType) -> None:
    assert house.circle_breaking_imports(house.modules()) == []


def test_only_containers_know_the_kinds_of_lists(house: ModuleType) -> None:
    known = house.files_that_say(house.modules(), *house.LIST_VALUES)
    folder = "parakeet_py.typed_ir.specialize.containers"
    assert {name for name in known if name.rpartition(".")[0] != folder} == {"parakeet_py.typed_ir.specialize.values"}


def test_circles_are_found(house: ModuleType) -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert house.circles(graph) == [["a", "b", "c"]]
