"""`with` without jumps: syntax trees to syntax trees, before `try` is rewritten.

A manager is Python's: it is entered and left by operations that are handed back, the body is compiled like that of a
`try`.

    with EXPR as NAME:                 $manager = EXPR
        BODY                           NAME = entered($manager)
                                       Managed:
                                           BODY
                                       except BY_PYTHON as $raised:
                                           if not left_by($manager, $raised): raise
                                       on any other way out: left($manager)

Handlers of `BY_PYTHON` are not compiled: where something raises in the body, Python goes on with the call from there.
`np.errstate` stays what it is, and so do managers that change what the body would show (`KEPT`), which are refused.
"""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeVar

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.frontend.desugar.nodes import Managed, place
from parakeet_py.frontend.syntax_walk import walk

_N = TypeVar("_N", bound=ast.AST)


class ByPython(BaseException):
    """Marks handlers that only Python runs; nothing raises it."""


BY_PYTHON: Any = (BaseException, ByPython)
KEPT = ("errstate", "catch_warnings", "warns", "patch")


@hidden
def entered(manager: Any) -> Any:
    """Enter a manager; gives what `as` binds."""
    cls = type(manager)
    enter, leave = getattr(cls, "__enter__", None), getattr(cls, "__exit__", None)
    if enter is None or leave is None:
        module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
        missed = "" if enter is None else " (missed __exit__ method)"
        text = f"'{module}{cls.__qualname__}' object does not support the context manager protocol{missed}"
        raise TypeError(text)
    return enter(manager)


@hidden
def left(manager: Any) -> None:
    """Leave a manager without an exception."""
    type(manager).__exit__(manager, None, None, None)


@hidden
def left_by(manager: Any, error: BaseException) -> bool:
    """Leave a manager by an exception; does it end here?"""
    traceback = error.__traceback__
    try:
        raise error
    except BaseException:
        error.__traceback__ = traceback
        return bool(type(manager).__exit__(manager, type(error), error, traceback))


def without_managers(node: _N) -> _N:
    """The same function, or a copy of it in which `with` is about what is `KEPT` only."""
    if not any(isinstance(inner, ast.With) and not all(map(is_kept, inner.items)) for inner in walk(node)):
        return node
    rewritten: _N = _Rewriter().visit(copy.deepcopy(node))
    return rewritten


def is_kept(item: ast.withitem) -> bool:
    """Is this a call of what has one of the names that are `KEPT`?"""
    return name_of(item) in KEPT


def name_of(item: ast.withitem) -> str:
    """The name of what is called, or of the manager."""
    call = item.context_expr
    function = call.func if isinstance(call, ast.Call) else call
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        self.generic_visit(node)
        body = node.body
        for item in reversed(node.items):
            if is_kept(item):
                body = [ast.copy_location(ast.With([item], body), node)]
            else:
                body = [place(made, item.context_expr) for made in self.managed(item, body, node)]
        return body

    def managed(self, item: ast.withitem, body: list[ast.stmt], node: ast.With) -> list[ast.stmt]:
        self.count += 1
        manager, raised = f"$manager{self.count}", f"$raised{self.count}"

        def called(function: Any, *names: str) -> ast.expr:
            return ast.Call(ast.Constant(function), [ast.Name(name, ast.Load()) for name in names], [])

        made: list[ast.stmt] = [ast.Assign([ast.Name(manager, ast.Store())], item.context_expr)]
        target = item.optional_vars
        if target is None:
            made.append(ast.Expr(called(entered, manager)))
        elif isinstance(target, ast.Name):
            made.append(ast.Assign([target], called(entered, manager)))
        else:
            given = f"$entered{self.count}"
            made.append(ast.Assign([ast.Name(given, ast.Store())], called(entered, manager)))
            bound = ast.Assign([target], ast.Name(given, ast.Load()))
            body = [place(ast.copy_location(bound, target), target), *body]
        ends = ast.UnaryOp(ast.Not(), called(left_by, manager, raised))
        handler = ast.ExceptHandler(ast.Constant(BY_PYTHON), raised, [ast.If(ends, [ast.Raise(None, None)], [])])
        inside = Managed(body, [place(handler, item.context_expr)], [], [])
        inside.leaving = [place(ast.Expr(called(left, manager)), item.context_expr)]
        return [*made, ast.copy_location(inside, node)]
