"""Going through syntax trees, as most that is known of a function before its conversion is found.

A library function is read in each process that uses it, and a user's function when it is first called: `ast.walk` in
every pass would be the larger part of that. `walk` gives its nodes in its order, but for those that say nothing about
names or control flow: contexts (`ctx`) and operators, which belong to the nodes that have them.
"""

from __future__ import annotations

import ast

__all__ = ["children", "walk"]

_NO_NODES = frozenset({"ctx", "op", "ops", "id", "attr", "kind", "type_comment", "conversion", "is_async"})
_fields: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a class of nodes that may have nodes in them."""
    found = _fields[kind] = tuple(name for name in kind._fields if name not in _NO_NODES)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all that is inside it, level by level."""
    found = [node]
    for each in found:
        _add_children(each, found)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """What is directly in a node."""
    found: list[ast.AST] = []
    _add_children(node, found)
    return found


def _add_children(node: ast.AST, found: list[ast.AST]) -> None:
    kind = type(node)
    fields = _fields.get(kind)
    for name in _fields_of(kind) if fields is None else fields:
        part = getattr(node, name, None)
        if type(part) is list:
            for one in part:
                if isinstance(one, ast.AST):
                    found.append(one)
        elif isinstance(part, ast.AST):
            found.append(part)
