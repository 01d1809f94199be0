"""Measures of the structure of the package: `make house` prints them.

Imports are counted wherever they stand: at the top of a module, inside functions and under TYPE_CHECKING. The tests
(`tests/unit/test_structure.py`) hold what has been reached. With `--slow` programs of the corpus are compiled, too;
with `--circles` the circles of imports are listed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "parakeet_py"
CONTEXT = f"{PACKAGE}.typed_ir.specialize.context"


@dataclass
class Module:
    """One file: the modules of the package that it imports, by where the imports stand."""

    path: Path
    top: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    typing: set[str] = field(default_factory=set)

    @property
    def imports(self) -> set[str]:
        return self.top | self.late | self.typing


def modules(root: Path = ROOT) -> dict[str, Module]:
    """All modules of the package by their dotted names; packages by the name of their folder."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = Module(path)
    for module in found.values():
        _read_imports(module, set(found))
    return found


def _read_imports(module: Module, names: set[str]) -> None:
    def walk(node: ast.AST, into: set[str]) -> None:
        for child in ast.iter_child_nodes(node):
            target = into
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                target = module.late
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                target = module.typing
            into |= _imported(child, names)
            walk(child, target)

    walk(ast.parse(module.path.read_text()), module.top)


def _imported(node: ast.AST, names: set[str]) -> set[str]:
    match node:
        case ast.ImportFrom(module=str(source)) if source.split(".")[0] == PACKAGE:
            return {f"{source}.{one.name}" if f"{source}.{one.name}" in names else source for one in node.names}
        case ast.Import():
            return {one.name for one in node.names if one.name in names}
    return set()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node, largest first (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            component = sorted(stack[cut:])
            del stack[cut:]
            if len(component) > 1:
                found.append(component)

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def import_circles(found: dict[str, Module]) -> list[list[str]]:
    """Circles of modules that import each other."""
    return circles({name: module.imports for name, module in found.items()})


def crossing(circle: list[str]) -> bool:
    """Does a circle go through more than one folder?"""
    return len({name.rpartition(".")[0] for name in circle}) > 1


def circle_breaking_imports(found: dict[str, Module]) -> list[tuple[str, str]]:
    """Imports inside functions without which, at the top, there would be one circle more."""
    graph = {name: set(module.top) for name, module in found.items()}

    def reaches(start: str, goal: str) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            for other in graph.get(waiting.pop(), ()):
                if other == goal:
                    return True
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return False

    return [
        (name, other)
        for name, module in found.items()
        for other in sorted(module.late - module.top)
        if other != name and reaches(other, name)
    ]


def folder_sizes(root: Path = ROOT) -> dict[str, int]:
    """How many modules each folder has, without its `__init__`."""
    folders = [path for path in [root / PACKAGE, *(root / PACKAGE).rglob("*")] if path.is_dir()]
    sizes = {  # without the files that only name a package
        str(folder.relative_to(root)): sum(
            one.name not in ("__init__.py", "__main__.py") for one in folder.glob("*.py")
        )
        for folder in folders
    }
    return {name: size for name, size in sizes.items() if size}


def lines(found: dict[str, Module]) -> int:
    return sum(module.path.read_text().count("\n") for module in found.values())


def files_that_say(found: dict[str, Module], *words: str) -> list[str]:
    """Modules that use one of these names, as a name, an attribute or a class pattern."""

    def says(node: ast.AST) -> bool:
        return (isinstance(node, ast.Name) and node.id in words) or (
            isinstance(node, ast.Attribute) and node.attr in words
        )

    return [name for name, one in found.items() if any(map(says, ast.walk(ast.parse(one.path.read_text()))))]


LIST_VALUES = ("ListValue", "Columns", "Ragged")


def attributes_of(module: Module, name: str) -> int:
    """How many attributes the `__init__` of a class sets."""
    (node,) = (
        one
        for one in ast.walk(ast.parse(module.path.read_text()))
        if isinstance(one, ast.ClassDef) and one.name == name
    )
    return len(set(_set_by_init(node)))


def _set_by_init(node: ast.ClassDef) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            for inner in ast.walk(one):
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    yield inner.attr


def table() -> Table:
    """The measures, with the goals."""
    found = modules()
    round_trips = import_circles(found)
    sizes = folder_sizes()
    fullest = max(sizes, key=lambda name: sizes[name])
    late = circle_breaking_imports(found)
    made = Table("measure", "now", "goal")
    made.add_row("modules in the largest import circle", str(len(round_trips[0]) if round_trips else 1), "3 or fewer")
    made.add_row("import circles across folders", str(sum(map(crossing, round_trips))), "0")
    made.add_row("files in the fullest folder", f"{sizes[fullest]} ({fullest})", "20 or fewer")
    made.add_row("imports in functions that break circles", str(len(late)), "0")
    made.add_row("attributes of the specializer's state", str(attributes_of(found[CONTEXT], "Context")), "under 20")
    made.add_row("files that name `Strided`", str(len(files_that_say(found, "Strided"))), "8 or fewer")
    made.add_row("files that name a value of lists", str(len(files_that_say(found, *LIST_VALUES))), "8 or fewer")
    made.add_row("lines of the package", f"{lines(found):,}", "92,000 or fewer")
    if "--slow" in sys.argv:
        from compile_measures import measures  # which imports the package

        for row in measures():
            made.add_row(*row)
    return made


if __name__ == "__main__":
    Console().print(table())
    if "--circles" in sys.argv:
        for circle in import_circles(modules()):
            print(len(circle), *(name.removeprefix(f"{PACKAGE}.") for name in circle))
