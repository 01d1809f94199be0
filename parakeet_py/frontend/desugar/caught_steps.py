"""Loops in a `try` over what may be an iterator, whose steps may raise what the `try` catches.

    for v in items(x): ...          $part = guarded: steps(items(x))
                                    for $item in $part:
                                        $exit = guarded: v = item_of($item)
                                        ...

`steps` gives, in the place of an exception with which a step ends, a `Failed` item as the last; `item_of` raises it
where a handler can catch it. Arrays, lists and the like are iterated as they are: their steps do not raise. Nor do
those of what the compiler goes through at all in such a loop: it refuses the others.

The form of an expression says whether it may give an iterator, and what is assigned to a name whether the name may be
one. Parameters of nested functions always may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from parakeet_py.base.callee_effects import MAKERS, named
from parakeet_py.frontend.syntax_walk import walk

_SAFE_TYPES = (np.ndarray, list, tuple, dict, set, frozenset, str, range)
_SAFE_CALLS = (MAKERS & named()) | named(keeps_items=False)
_OF_ARGUMENTS = named(lazy=True, calls=False) - {"iter"}
_MODULES = frozenset({"np", "numpy", "math"})
_METHODS = frozenset(name for kind in (np.ndarray, list, str) for name in dir(kind))
_SAFE = (
    ast.Constant, ast.Attribute, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp,
    ast.BinOp, ast.Compare, ast.UnaryOp, ast.JoinedStr,
)  # fmt: skip


class Failed:
    """In the place of the item that a step has not given."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def steps(iterable: Iterable[Any]) -> Iterable[Any]:
    """The items of an iterable; if a step raises, a `Failed` item is the last."""
    return iterable if type(iterable) in _SAFE_TYPES else _steps(iter(iterable))


def _steps(items: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except BaseException as error:
            item = Failed(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
        yield item


def item_of(item: Any) -> Any:
    """An item that `steps` has given."""
    if type(item) is Failed:
        raise item.error
    return item


STEPS: Any = steps  # stand for themselves among literals
ITEM_OF: Any = item_of


def iterator_names(node: ast.AST) -> frozenset[str]:
    """The names of a function, and of those inside it, that may be bound to iterators."""
    found: set[str] = set()
    bound: list[tuple[ast.expr, ast.expr]] = []
    for inner in walk(node):
        match inner:
            case ast.Assign(targets=targets, value=value):
                bound += [(target, value) for target in targets]
            case ast.NamedExpr(target=name, value=value):
                bound.append((name, value))
            case ast.FunctionDef(args=args) | ast.Lambda(args=args) if inner is not node:
                found |= {one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    before = -1
    while before != len(found):
        before = len(found)
        for target, value in bound:
            if may_be_iterator(value, found):
                found |= {inner.id for inner in walk(target) if isinstance(inner, ast.Name)}
    return frozenset(found)


def may_be_iterator(node: ast.expr, names: frozenset[str] | set[str]) -> bool:
    """May an expression give an iterator? `names` are the names that may."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Call(func=ast.Name(id=name), args=args) if name in _OF_ARGUMENTS:
            return any(may_be_iterator(arg, names) for arg in args)
        case ast.Call(func=ast.Name(id=name)):
            return name not in _SAFE_CALLS
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in _MODULES:
            return False
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in _METHODS
        case ast.IfExp(body=body, orelse=orelse):
            return may_be_iterator(body, names) or may_be_iterator(orelse, names)
        case ast.Subscript(value=ast.Tuple(elts=parts) | ast.List(elts=parts)):
            return any(may_be_iterator(part, names) for part in parts)
        case ast.Subscript(value=value):
            return may_be_iterator(value, names)
    return not isinstance(node, _SAFE)


__all__ = ["ITEM_OF", "STEPS", "item_of", "iterator_names", "may_be_iterator", "steps"]
