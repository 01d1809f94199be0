"""Lists, dicts and sets that a function shares with those inside it: `own_lists` for a name of several functions.

Each function is looked at as if the name were its own. Beside that, no function inside may give the list away, and
where a list waits for something else to be computed, or is iterated, nothing may be called that might change it.
"""

from __future__ import annotations

import ast

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.ownership.lists import Uses, changed_by_call, changed_item, mentions, replaced_first
from parakeet_py.frontend.syntax_walk import walk


@record
class Part:
    """The body of one of several functions that share a name; `first`: of the one whose name it is."""

    body: list[ast.stmt]
    first: bool


def changed_names(function: ast.AST) -> frozenset[str]:
    """The names of what is changed in a function or in those inside it, if these are lists, dicts or sets."""
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Call() if (changed := changed_by_call(node) or changed_item(node)) is not None:
                found.add(changed[0])
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                found.add(name)
    return frozenset(found)


def shared_lists(name: str, parts: list[Part], parameters: set[str]) -> bool | None:
    """Does a name stand for a list that only these functions know and change? If so, whether it is a deque."""
    known = _called_functions(name, parts)
    made, queue, as_list, changed = False, False, False, False
    for part in parts:
        uses = Uses(name, known)
        if part.first and name in parameters - replaced_first(part.body, parameters):
            return None
        if not part.first and any(_gives(name, node) for one in part.body for node in walk(one)):
            return None
        uses.all(part.body)
        if name in uses.escaped:
            return None
        made, changed = made or name in uses.made, changed or name in uses.changed
        queue, as_list = queue or name in uses.queues, as_list or name in uses.as_list
    return queue if made and changed and not (queue and as_list) else None


def _gives(name: str, node: ast.AST) -> bool:
    """Does a function return this list, or, as a lambda, give it?"""
    match node:
        case ast.Return(value=ast.Name(id=given)) | ast.Expr(value=ast.Name(id=given)):
            return given == name
        case ast.Return(value=ast.Tuple(elts=elts)) | ast.Expr(value=ast.Tuple(elts=elts)):
            return any(isinstance(part, ast.Name) and part.id == name for part in elts)
    return False


def _called_functions(name: str, parts: list[Part]) -> frozenset[str] | None:
    """The names of the functions that might change a list; None where that might be any call."""
    names: set[str] = set()
    nodes = [node for part in parts if part.first for one in part.body for node in walk(one)]
    for node in nodes:
        match node:
            case ast.FunctionDef(name=function) if mentions(node, name):
                names.add(function)
            case ast.Assign(targets=[ast.Name(id=function)], value=ast.Lambda() as made) if mentions(made, name):
                names.add(function)
    while True:  # those that call them
        more = {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef) and any(mentions(node, other) for other in names)
        }
        if more <= names:
            break
        names |= more
    called = sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names for node in nodes
    )
    mentioned = sum(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names for node in nodes
    )
    return frozenset(names) if called == mentioned else None
