"""Modules that are executed when they are used."""

from __future__ import annotations

import ast
import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import parakeet_py
from parakeet_py.base.lazy_modules import LateTable, submodules

NAME = "package_of_lazy_modules"
LATE = "import builtins\nbuiltins.executed.append(__name__)\nvalue = 5\ntable = {}\n"
BROKEN = "import builtins\nbuiltins.executed.append(__name__)\n1 / (len(builtins.executed) - 1)\nvalue = 6\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "late.py").write_text(LATE)
    (folder / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.executed", [], raising=False)
    found = importlib.import_module(NAME)
    found.__getattr__ = submodules(NAME)  # type: ignore[method-assign]
    yield found
    for name in [one for one in sys.modules if one.partition(".")[0] == NAME]:
        del sys.modules[name]


def executed() -> list[str]:
    import builtins

    return builtins.executed  # type: ignore[attr-defined, no-any-return]


def test_a_module_is_executed_when_it_is_used(package: ModuleType) -> None:
    late = package.late
    assert late is sys.modules[f"{NAME}.late"] and late.__name__ == f"{NAME}.late" and late.__file__ is not None
    assert executed() == []
    assert late.value == 5 and executed() == [f"{NAME}.late"]
    assert type(late) is ModuleType and package.late is importlib.import_module(f"{NAME}.late") is late
    late.value = 7
    assert late.value == 7 and executed() == [f"{NAME}.late"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        package.__wrapped__  # noqa: B018


def test_a_name_of_a_module_executes_it(package: ModuleType) -> None:
    late = package.late
    scope: dict[str, object] = {}
    exec(f"from {NAME}.late import value", scope)
    assert scope["value"] == 5 and type(late) is ModuleType


def test_what_has_failed_is_tried_again(package: ModuleType) -> None:
    broken = package.broken
    with pytest.raises(ZeroDivisionError):
        broken.value  # noqa: B018
    assert broken.value == 6 and len(executed()) == 2


def test_one_thread_executes_it(package: ModuleType) -> None:
    late, seen = package.late, []
    threads = [threading.Thread(target=lambda: seen.append(late.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [5] * 8 and executed() == [f"{NAME}.late"]


def test_tables_that_modules_fill(package: ModuleType) -> None:
    table: LateTable[str, int] = LateTable()
    table["known"] = 1
    table.of_key = {"late": package.late}
    assert table.find("known") == 1 and table.find("other") is None and executed() == []
    assert table.find("late") is None and executed() == [f"{NAME}.late"]
    table.of_any = (package.broken,)
    assert table.find("known") == 1 and executed() == [f"{NAME}.late"]
    assert table.find("other") is None and executed() == [f"{NAME}.late", f"{NAME}.broken"]


def test_tables_that_lazy_modules_fill_are_late_tables() -> None:
    """What a module adds to a table of another one is not there before it is executed: the table has to see to it."""
    folder = Path(parakeet_py.__file__).parent
    filled: set[tuple[str, str]] = set()
    for path in folder.rglob("*.py"):
        if "submodules(__name__)" not in (path.parent / "__init__.py").read_text():
            continue
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name: (statement.module or "", alias.name)
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }
        for statement in tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            names = [t.value.id for t in targets if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name)]
            filled.update(imported[name] for name in names if name in imported)
    assert ("parakeet_py.typed_ir.specialize.opaque.operands", "LISTS") in filled
    plain = [one for one in filled if not isinstance(getattr(importlib.import_module(one[0]), one[1]), LateTable)]
    assert not plain
