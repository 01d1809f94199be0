"""Comprehensions that change a list as they go are loops. Syntax trees to syntax trees.

    return [heappop(heap) for _ in range(3)]        $list.1 = []
                                                    for $_.1 in range(3):
                                                        $list.1.append(heappop(heap))
                                                    return $list.1

Elsewhere the elements of a comprehension are computed in any order. This is done where a statement binds or returns the
comprehension itself, so that it is clear what comes before it.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from parakeet_py.frontend.desugar.nodes import place
from parakeet_py.frontend.ownership.changes import changed_by
from parakeet_py.frontend.syntax_walk import walk

_N = TypeVar("_N", bound=ast.AST)
_OTHERS = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def without_changes_inside(node: _N) -> _N:
    """The same function, or a copy of it whose comprehensions change nothing."""
    if not any(isinstance(inner, ast.ListComp) and _changes(inner) for inner in walk(node)):
        return node
    rewritten: _N = copy.deepcopy(node)
    count = 0
    for inner in walk(rewritten):
        for name, value in ast.iter_fields(inner):
            if not isinstance(value, list) or not any(isinstance(part, ast.stmt) for part in value):
                continue
            made: list[ast.stmt] = []
            for part in value:
                match part:
                    case ast.Assign(value=ast.ListComp() as inside) | ast.AnnAssign(value=ast.ListComp() as inside):
                        found: ast.ListComp | None = inside
                    case ast.Return(value=ast.ListComp() as inside):
                        found = inside
                    case _:
                        found = None
                if found is not None and _changes(found):
                    count += 1
                    made += _loop(part, found, count)
                made.append(part)
            setattr(inner, name, made)
    return rewritten


def _changes(node: ast.ListComp) -> bool:
    """Does a comprehension change a list, and can it be a loop?"""
    parts = walk(node)
    if any(isinstance(part, _OTHERS) for part in parts) or any(generator.is_async for generator in node.generators):
        return False
    return any(changed_by(part) is not None for part in parts)


def _loop(statement: ast.Assign | ast.AnnAssign | ast.Return, node: ast.ListComp, count: int) -> list[ast.stmt]:
    """The statements that make the list, which the statement then finds under a name."""
    name = f"$list.{count}"
    targets = {
        inner.id for generator in node.generators for inner in walk(generator.target) if isinstance(inner, ast.Name)
    }

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, inner: ast.Name) -> ast.Name:
            if inner.id not in targets:
                return inner
            return ast.copy_location(ast.Name(f"${inner.id}.{count}", inner.ctx), inner)

    held = ast.Name(name, ast.Load())
    add = ast.Call(ast.Attribute(held, "append", ast.Load()), [Renamed().visit(node.elt)], [])
    body: list[ast.stmt] = [ast.Expr(add)]
    for place_of, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            body = [ast.If(Renamed().visit(test), body, [])]
        iterable = generator.iter if place_of == 0 else Renamed().visit(generator.iter)
        body = [ast.For(Renamed().visit(generator.target), iterable, body, [])]
    made = ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load()))
    statement.value = place(ast.Name(name, ast.Load()), node)
    return [place(made, node), *(place(one, node) for one in body)]
