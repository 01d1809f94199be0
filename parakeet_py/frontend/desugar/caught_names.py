"""`except ... as error`: the name is unbound when its handler is left, on whatever way.

That makes a difference only where something else reads the name, which then finds it unbound, although it had a value
before the `try`. Names that only their own handlers read may stay bound.
"""

from __future__ import annotations

import ast

from parakeet_py.frontend.syntax_walk import children, walk


def names_read_elsewhere(node: ast.AST) -> frozenset[str]:
    """The names in a function, and in those inside it, that are read outside of the handlers that bind them."""
    found: set[str] = set()
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset())]
    while waiting:
        inner, bound = waiting.pop()
        match inner:
            case ast.Name(id=name, ctx=ast.Load() | ast.Del()) if name not in bound:
                found.add(name)
            case ast.Nonlocal(names=names) | ast.Global(names=names):
                found.update(names)
            case ast.ExceptHandler(name=str(name)):
                found.update({name} & bound)  # a handler in another one unbinds the name of both
                bound |= {name}
        waiting += [(part, bound) for part in children(inner)]
    return frozenset(found)


def unbound(name: str) -> list[ast.stmt]:
    """What unbinds a name that may be unbound already."""
    return [
        ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)),
        ast.Delete([ast.Name(name, ast.Del())]),
    ]


def bound_in(name: str, caught: ast.expr, body: list[ast.stmt], *, read: bool, guarded: bool) -> list[ast.stmt]:
    """The body of a handler whose exception has a name. It may be `read` elsewhere; exceptions of the body may be
    caught around it (`guarded`)."""
    bind = ast.Assign([ast.Name(name, ast.Store())], caught)
    jumps = any(isinstance(inner, ast.Break | ast.Continue) for part in body for inner in walk(part))
    if read and (guarded or jumps):
        return [bind, ast.Try(body, [], [], unbound(name))]
    return [bind, *body, *unbound(name)]


def is_caught_error(name: str) -> bool:
    """Is this what a variable is called that keeps an exception for handlers (unless the program has that name)?"""
    return name.startswith("error") and name[5:].isdigit()
