"""Rows that are changed by another name than their place in a list. Syntax trees to syntax trees.

    for row in rows:                                for $row.1 in range(len(rows)):
        row.sort()                                      rows[$row.1].sort()

    groups.setdefault(key, []).append(v)            $key.2 = key
                                                    groups.setdefault($key.2, [])
                                                    groups[$key.2].append(v)

This is done for lists and dicts that the function makes itself, by displays and comprehensions, if a loop does not name
the list in its body and the row is not used behind it. Whether the rows may change is seen afterwards (`own_rows`).
"""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeGuard, TypeVar

from parakeet_py.frontend.desugar.exceptions import place
from parakeet_py.frontend.ownership.lists import CHANGES, changed_by_call, mentions
from parakeet_py.frontend.syntax_walk import children, walk

_N = TypeVar("_N", bound=ast.AST)
_LEN: Any = len
_RANGE: Any = range
_INSIDE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def without_row_names(node: _N) -> _N:
    """The same function, or a copy of it in which rows are changed where they stand."""
    if isinstance(node, ast.Lambda) or not any(map(_may_be, walk(node))):
        return node
    rewritten: _N = copy.deepcopy(node)
    rewriter = _Rewriter(rewritten)
    rewriter.generic_visit(rewritten)
    return rewritten if rewriter.count else node


def _may_be(node: ast.AST) -> bool:
    match node:
        case ast.For(target=target, body=body):
            return _row_of(node) is not None and _changes(_row_name(target), body)
        case ast.Expr():
            return _by_default(node) is not None
    return False


def _row_name(target: ast.expr) -> str:
    if isinstance(target, ast.Tuple):
        target = target.elts[-1]
    return target.id if isinstance(target, ast.Name) else ""


def _row_of(node: ast.For) -> str | None:
    """The list in `for row in rows` and `for i, row in enumerate(rows)`."""
    match node:
        case ast.For(target=ast.Name(), iter=ast.Name(id=held)):
            return held
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(), ast.Name()]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=held)], keywords=[]),
        ):
            return held
    return None


def _changes(row: str, body: list[ast.stmt]) -> bool:
    """Does a loop's body change a row by a method?"""
    for statement in body:
        for part in walk(statement):
            if isinstance(part, ast.Call) and changed_by_call(part) in ((row, "pop"), *((row, one) for one in CHANGES)):
                return True
    return False


def _by_default(node: ast.Expr) -> tuple[ast.Name, ast.expr, ast.expr, ast.Call] | None:
    """The parts of `held.setdefault(key, []).append(item)`."""
    match node.value:
        case (
            ast.Call(
                func=ast.Attribute(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name() as held, attr="setdefault"),
                        args=[key, ast.List(elts=[]) as nothing],
                        keywords=[],
                    ),
                    attr="append",
                ),
                args=[_],
                keywords=[],
            ) as call
        ):
            return held, key, nothing, call
    return None


class _Rewriter(ast.NodeTransformer):
    def __init__(self, function: ast.AST) -> None:
        self.function = function
        self.count = 0
        self.made: set[str] = set()  # by displays and comprehensions, and by nothing else
        others: set[str] = set()
        for part in walk(function):
            match part:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp(),
                ):
                    self.made.add(name)
                case ast.Assign(targets=targets):
                    others |= {one.id for each in targets for one in walk(each) if _is_store(one)}
                case ast.arg(arg=name):
                    others.add(name)
                case ast.For(target=target) | ast.NamedExpr(target=target) | ast.AnnAssign(target=target):
                    others |= {one.id for one in walk(target) if _is_store(one)}
        self.made -= others

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        held, row = _row_of(node), _row_name(node.target)
        if held not in self.made or held == row or not _changes(row, node.body):
            return node
        parts = [part for statement in node.body for part in walk(statement)]
        if any(isinstance(part, _INSIDE) for part in parts) or any(mentions(one, held) for one in node.body):
            return node
        if any(_is_store(part) and part.id == row for part in parts):
            return node
        uses = sum(isinstance(part, ast.Name) and part.id == row for part in parts)
        if _uses(self.function, row) != uses + 1:
            return node
        inner = [part for part in walk(self.function) if isinstance(part, _INSIDE) and part is not self.function]
        if any(mentions(part, held) for part in inner):
            return node
        self.count += 1
        index = f"${row}.{self.count}"
        length = ast.Call(ast.Constant(_LEN), [ast.Name(held, ast.Load())], [])
        places = place(ast.Call(ast.Constant(_RANGE), [length], []), node.iter)
        if isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Call):
            node.target.elts[-1] = place(ast.Name(index, ast.Store()), node.target)
            node.iter.args = [places]
        else:
            node.target = place(ast.Name(index, ast.Store()), node.target)
            node.iter = places
        node.body = [_Placed(row, held, index).visit(statement) for statement in node.body]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        found = _by_default(node)
        if found is None or found[0].id not in self.made:
            return node
        held, key, nothing, call = found
        self.count += 1
        name = f"$key.{self.count}"
        first = ast.Assign([ast.Name(name, ast.Store())], key)
        method = ast.Attribute(held, "setdefault", ast.Load())
        second = ast.Expr(ast.Call(method, [ast.Name(name, ast.Load()), nothing], []))
        row = ast.Subscript(ast.Name(held.id, ast.Load()), ast.Name(name, ast.Load()), ast.Load())
        third = ast.Expr(ast.Call(ast.Attribute(row, "append", ast.Load()), call.args, []))
        return [place(one, node) for one in (first, second, third)]


def _uses(node: ast.AST, name: str) -> int:
    """How often a name stands in a function, but for comprehensions with a variable of that name."""
    own = isinstance(node, ast.Name) and node.id == name
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) and any(
        _is_store(part) and part.id == name for generator in node.generators for part in walk(generator.target)
    ):
        return 1000 if mentions(node.generators[0].iter, name) else 0
    return own + sum(_uses(child, name) for child in children(node))


def _is_store(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


class _Placed(ast.NodeTransformer):
    """Puts the place of a row for its name."""

    def __init__(self, row: str, held: str, index: str) -> None:
        self.row, self.held, self.index = row, held, index

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.row:
            return node
        made = ast.Subscript(ast.Name(self.held, ast.Load()), ast.Name(self.index, ast.Load()), ast.Load())
        return place(made, node)
