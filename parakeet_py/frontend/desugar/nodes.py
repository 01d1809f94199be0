"""Statements and expressions that Python's syntax trees lack: what `try` is rewritten to."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from parakeet_py.base.positions import Handler
from parakeet_py.frontend.syntax_walk import children, walk

_S = TypeVar("_S", bound=ast.AST)

CONTENTS = ".cell_contents"
"""What follows the name of a cell in that of its contents (see `cells`)."""


def cell_of(name: str) -> str:
    """The name of the cell whose contents a name stands for; any other name as it is."""
    return name.removesuffix(CONTENTS)


HANDLERS = "inside_handlers"
"""The attribute of nodes in handlers that says which these are, outermost first."""


ANNOTATED = "annotated"
"""The attribute of functions in bytecode that says whether they have annotations."""


class Guarded(ast.stmt):
    """`body`, one statement; if it raises what handler i of `handlers` catches, `exit` becomes i + 1, else 0, and
    `error` the exception, if it is wanted."""

    _fields = ("body", "exit", "classes", "error")
    body: list[ast.stmt]
    exit: ast.Name
    classes: list[ast.expr]
    error: ast.Name | None
    handlers: list[Handler]


class Caught(ast.expr):
    """The exception that has been caught: the variable `$error`, which is bound where a handler runs."""

    _fields = ("name",)
    name: ast.Name


class Managed(ast.Try):
    """A `try` whose statements `leaving` stand on every way out of its body but that of an exception."""

    leaving: list[ast.stmt]


class Leave(ast.stmt):
    """Leave the `TryBody` that this stands in."""


class TryBody(ast.stmt):
    """What `Leave` leaves."""

    _fields = ("body",)
    body: list[ast.stmt]


def listed(made: Any) -> list[ast.stmt]:
    """What a transformer has made of a statement: one, or several."""
    return made if isinstance(made, list) else [made]


def mark(statements: list[ast.stmt], handler: Handler) -> None:
    """Note of all nodes of a handler that they are in it; what functions inside do, they do when they are called."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        setattr(node, HANDLERS, (*getattr(node, HANDLERS, ()), handler))
        if isinstance(node, Managed):
            waiting += node.leaving
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += children(node)


def place(node: _S, where: ast.AST) -> _S:
    """The node, with a position for all parts that have none."""
    for inner in walk(node):
        if isinstance(inner, ast.stmt | ast.expr) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node
