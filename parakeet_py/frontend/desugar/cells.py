"""`nonlocal` as what it is: names in cells, which functions share. Syntax trees to syntax trees.

    count = 0                       count = 0; count = CellType(count)
    def add(k):                     def add(k):
        nonlocal count
        count += k                      count.cell_contents += k
    add(2)                          add(2)
    return count                    return count.cell_contents

The name then stands for one cell for good, so that it can be captured by value. That is done for names that are surely
bound before any function can see them: parameters, and names whose first mention is an assignment among the statements
of the function itself. All others stay, and are refused where they are bound.

A list that functions inside append to (a dict they fill, a set they add to) is such a name as well, if all that it is
bound to is made on the spot: changes of it may then be bindings of what is in the cell (`frontend/ownership`).

In the tree, what a cell holds is a name of two parts, `count.cell_contents`: read and bound as an attribute of the
first, and a name to all else.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from parakeet_py.base.callee_effects import MADE, MAKERS
from parakeet_py.frontend.desugar.nodes import CONTENTS
from parakeet_py.frontend.ownership.changes import changed_by
from parakeet_py.frontend.syntax_walk import children, walk

_N = TypeVar("_N", bound=ast.AST)
_CELL: Any = types.CellType  # stands for itself among literals
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def without_nonlocal(node: _N) -> _N:
    """The same function, or a copy of it whose shared names are cells."""
    if not any(_names(inner) for inner in walk(node) if isinstance(inner, ast.FunctionDef)):
        return node
    rewritten = copy.deepcopy(node)
    for inner in walk(rewritten):
        if isinstance(inner, ast.FunctionDef):
            _share(inner)
    return rewritten


def _names(function: ast.FunctionDef) -> set[str]:
    """The names of one function that others inside it bind, or lists that they change."""
    return _wanted(function.body) | _changed_names_of_several(function)


def _share(function: ast.FunctionDef) -> None:
    """Put the names of one function that others inside it bind, or lists that they change, into cells."""
    parameters, wanted = _parameters(function), _wanted(function.body)
    for name in sorted(_names(function)):
        is_parameter = name in parameters and name in wanted
        place = _first_binding(function.body, name, is_parameter, name in parameters)
        if place is None or any(map(_hides_in(name), _own_parts(function.body))):
            continue
        first: list[ast.expr] = [ast.Name(name, ast.Load())]
        if name not in wanted and name not in parameters:  # the list is made in the cell
            place, first = place - 1, []
        made = ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Constant(_CELL), first, []))
        like = function.body[place - 1] if place else function.body[0]
        for inner in walk(made):
            ast.copy_location(inner, like)
        rest = [_Contents(name).visit(statement) for statement in function.body[place:]]
        function.body[place:] = [made, *rest]


def _changed_names_of_several(function: ast.FunctionDef) -> set[str]:
    """The names of lists, dicts and sets that a function, or one inside it, changes, and that both know."""
    found: set[str] = set()
    own = _own_parts(function.body)
    if not any(isinstance(part, _FUNCTIONS) for part in own):
        return found
    changed = _changed_names(function)
    changed |= {name for part in own if (name := _defaultdict(part)) is not None}  # which reading changes
    for name in changed & _bound(function):
        parts = _parts_that_see(name, function)
        values = [value for part in parts for value in _values_of(name, part)]
        if len(parts) > 1 and values and all(value is not None and _makes_container(value) for value in values):
            found.add(name)
    return found


def _defaultdict(node: ast.AST) -> str | None:
    """The name in `name = defaultdict(int)`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Name(id="defaultdict") | ast.Attribute(attr="defaultdict")),
        ):
            return name
    return None


def _changed_names(function: ast.AST) -> set[str]:
    """The names of what is changed in a function or in those inside it, by the form of the change."""
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Call():
                found.add(changed_by(node) or "")
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=name)), ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def _values_of(name: str, body: list[ast.stmt]) -> list[ast.expr | None]:
    """What a name is bound to by the statements of one function; None for what is no value of its own."""
    found: list[ast.expr | None] = []
    parts = _own_parts(body)
    assigned = set()
    for part in parts:
        match part:
            case ast.Assign(targets=[ast.Name(id=bound) as target], value=value) if bound == name:
                found.append(value)
                assigned.add(target)
            case ast.AnnAssign(target=ast.Name(id=bound) as target, value=value) if bound == name:
                found.append(value)
                assigned.add(target)
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=ast.Tuple(elts=values)) if len(elts) == len(values):
                for one, value in zip(elts, values, strict=True):
                    if isinstance(one, ast.Name) and one.id == name:
                        found.append(value)
                        assigned.add(one)
            case ast.AugAssign(target=ast.Name(id=bound) as target, op=ast.Add()) if bound == name:
                assigned.add(target)
    for part in parts:
        binds = isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        if binds and part not in assigned:
            found.append(None)
    return found


def _makes_container(value: ast.expr) -> bool:
    """Does an expression make a list, dict or set on the spot?"""
    match value:
        case ast.List() | ast.ListComp() | ast.Set() | ast.SetComp() | ast.Dict() | ast.DictComp():
            return True
        case ast.Subscript(slice=ast.Slice()) | ast.Call(func=ast.Attribute(attr="copy"), args=[]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in MAKERS and MADE[name] not in ("frozenset", "tuple")
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _makes_container(left) or _makes_container(right)
    return False


def _parts_that_see(name: str, function: ast.FunctionDef) -> list[list[ast.stmt]]:
    """The bodies of a function and of those inside it for which a name is the same."""
    found = [function.body]
    waiting: list[ast.AST] = list(_own_parts(function.body))
    while waiting:
        part = waiting.pop()
        if isinstance(part, _FUNCTIONS) and name not in _bound(part):
            body: list[ast.stmt] = [ast.Expr(part.body)] if isinstance(part, ast.Lambda) else part.body
            if any(isinstance(inner, ast.Name) and inner.id == name for one in body for inner in walk(one)):
                found.append(body)
            waiting += _own_parts(body)
    return found


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    own = function.args
    stars = [star for star in (own.vararg, own.kwarg) if star is not None]
    return {arg.arg for arg in (*own.posonlyargs, *own.args, *own.kwonlyargs, *stars)}


def _wanted(body: list[ast.stmt]) -> set[str]:
    """The names that functions in this body declare nonlocal, but not names of functions in between."""
    found: set[str] = set()
    for part in _own_parts(body):
        if isinstance(part, ast.FunctionDef):
            own = {name for inner in _own_parts(part.body) if isinstance(inner, ast.Nonlocal) for name in inner.names}
            found |= own | (_wanted(part.body) - _bound(part))
    return found


def _bound(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names that are a function's own."""
    body = [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
    found, shared = _parameters(function), set()
    for part in _own_parts(body):
        match part:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.Nonlocal(names=names) | ast.Global(names=names):
                shared.update(names)
    return found - shared


def _own_parts(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """What stands in a function itself; functions inside it are one part each."""
    found: list[ast.AST] = list(body)
    for node in found:
        if isinstance(node, _FUNCTIONS):
            found += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        else:
            found += children(node)
    return found


def _first_binding(body: list[ast.stmt], name: str, is_parameter: bool, is_bound: bool) -> int | None:
    """The number of statements after which the name is surely bound, and before which no function can see it;
    `is_bound`: it has a value before."""
    for place, statement in enumerate(body):
        mentioned = any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(statement))
        shared = any(isinstance(inner, ast.Nonlocal) and name in inner.names for inner in walk(statement))
        if not mentioned and not shared:
            continue
        if is_parameter:
            return place
        match statement:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                named = any(isinstance(part, ast.Name) and part.id == name for part in parts)
                before = any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(value))
                return place + 1 if named and (is_bound or not before) else None
        return None
    return None


def _hides_in(name: str) -> Callable[[ast.AST], bool]:
    """Does a part of a function bind a name in a way that an attribute cannot be bound?"""

    def hides(part: ast.AST) -> bool:
        match part:
            case ast.NamedExpr(target=ast.Name(id=bound)) | ast.FunctionDef(name=bound) | ast.MatchAs(name=bound):
                return bound == name
            case ast.MatchStar(name=bound) | ast.MatchMapping(rest=bound) | ast.ExceptHandler(name=bound):
                return bound == name
            case ast.alias():
                return name in (part.asname, part.name.partition(".")[0])
            case ast.Global(names=names):
                return name in names
            case ast.Delete(targets=targets):
                return any(isinstance(target, ast.Name) and target.id == name for target in targets)
            case ast.comprehension(target=target):
                return any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(target))
        return False

    def look(part: ast.AST) -> bool:
        if hides(part):
            return True
        if not isinstance(part, _FUNCTIONS) or name in _bound(part):
            return False
        body = [ast.Expr(part.body)] if isinstance(part, ast.Lambda) else part.body
        return any(map(look, _own_parts(body)))

    return look


class _Contents(ast.NodeTransformer):
    """Makes a name the contents of a cell of that name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name:
            return node
        return ast.copy_location(ast.Name(node.id + CONTENTS, node.ctx), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        names = [name for name in node.names if name != self.name]
        return ast.copy_location(ast.Nonlocal(names) if names else ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.Lambda) -> ast.AST:
        if self.name not in _bound(node):
            return self.generic_visit(node)
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        return node
