"""Generator functions: what a `yield` is to the rest of the compiler. Syntax trees to syntax trees.

    yield v                     if yielded(v): return
    yield from items            for $item in items:
                                    if yielded($item): return

`yielded` gives an item to the consumer of the generator, and says whether no more are wanted. What a consumer does
with an item is done there: a loop over a generator is the generator, with the body of the loop at its yields
(`typed_ir/specialize/paths/generators.py`). What is sent to a generator, and yields that a handler or `with` stands
around, are refused.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any, TypeVar

from parakeet_py.frontend.desugar.nodes import place
from parakeet_py.frontend.syntax_walk import children, walk

_N = TypeVar("_N", bound=ast.AST)
_Refuse = Callable[[ast.AST, str, str], None]
_YIELDS = (ast.Yield, ast.YieldFrom)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def yielded(item: object) -> bool:
    """Stands for the consumer of a generator in the untyped IR; nothing calls it."""
    raise RuntimeError("a yield outside of a generator")


_YIELDED: Any = yielded  # stands for itself among literals


def without_yield(node: _N, refuse: _Refuse) -> _N:
    """The same function, or a copy of it in which there is no `yield`. `refuse` raises."""
    if not any(isinstance(inner, _YIELDS) for inner in walk(node)):
        return node
    rewritten: _N = _Rewriter(refuse).visit(copy.deepcopy(node))
    return rewritten


def is_generator(node: ast.AST) -> bool:
    """Does a function, which has been rewritten, yield?"""
    return any(isinstance(part, ast.Constant) and part.value is _YIELDED for part in _own_parts(node))


def _own_parts(node: ast.AST) -> list[ast.AST]:
    found = children(node)
    for part in found:
        if not isinstance(part, _NESTED):
            found += children(part)
    return found


class _Rewriter(ast.NodeTransformer):
    def __init__(self, refuse: _Refuse) -> None:
        self.refuse = refuse
        self.count = 0

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Yield(value=value):
                item = value or ast.copy_location(ast.Constant(None), node)
                return place(_unless_done(self.visit(item)), node.value)
            case ast.YieldFrom(value=value):
                self.count += 1
                name = f"$item{self.count}"
                body = _unless_done(ast.Name(name, ast.Load()))
                return place(ast.For(ast.Name(name, ast.Store()), self.visit(value), [body], []), node.value)
        return self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        self.refuse(node, "what is sent to a generator cannot be accelerated", "write `yield` as a statement")
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        self.refuse(node, "what a generator returns cannot be accelerated", "write `yield from` as a statement")
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return self._around(node, "`try`")

    def visit_With(self, node: ast.With) -> ast.AST:
        return self._around(node, "`with`")

    def _around(self, node: ast.Try | ast.With, what: str) -> ast.AST:
        if any(isinstance(part, _YIELDS) for part in _own_parts(node)):
            self.refuse(node, f"a yield inside {what} cannot be accelerated", "catch what is raised elsewhere")
        return self.generic_visit(node)


def _unless_done(item: ast.expr) -> ast.stmt:
    return ast.If(ast.Call(ast.Constant(_YIELDED), [item], []), [ast.Return(None)], [])
