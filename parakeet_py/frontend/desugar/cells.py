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

A list that functions inside append to (a dict they fill, a set they add to) is such a name as well: its changes are
bindings (`own_lists`). It has to belong to all these functions together, and to nothing else.

In the tree, what a cell holds is a name of two parts, `count.cell_contents`: read and bound as an attribute of the
first, and a name to all else. The second part says whether it is a list, or a deque, of their own.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from parakeet_py.frontend.ownership.lists import CONTENTS, OWN_LIST, OWN_QUEUE, OWN_ROWS
from parakeet_py.frontend.ownership.nested_lists import rows_of_own
from parakeet_py.frontend.ownership.shared_lists import Part, changed_names, shared_lists
from parakeet_py.frontend.syntax_walk import children, walk

_N = TypeVar("_N", bound=ast.AST)
_CELL: Any = types.CellType  # stands for itself among literals
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def without_nonlocal(node: _N) -> _N:
    """The same function, or a copy of it whose shared names are cells."""
    if not any(_kinds(inner) for inner in walk(node) if isinstance(inner, ast.FunctionDef)):
        return node
    rewritten = copy.deepcopy(node)
    for inner in walk(rewritten):
        if isinstance(inner, ast.FunctionDef):
            _share(inner)
    return rewritten


def _kinds(function: ast.FunctionDef) -> dict[str, str]:
    """The names of one function that others inside it bind, or lists that they change: what their cells hold."""
    return dict.fromkeys(_wanted(function.body), CONTENTS) | _shared_lists(function)


def _share(function: ast.FunctionDef) -> None:
    """Put the names of one function that others inside it bind, or lists that they change, into cells."""
    parameters = _parameters(function)
    for name, kind in sorted(_kinds(function).items()):
        place = _first_binding(function.body, name, name in parameters)
        if place is None or any(map(_hides_in(name), _own_parts(function.body))):
            continue
        first: ast.expr = ast.Name(name, ast.Load())
        if kind != CONTENTS and name not in parameters:  # the list is made in the cell
            place, first = place - 1, ast.Constant(None)
        made = ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Constant(_CELL), [first], []))
        like = function.body[place - 1] if place else function.body[0]
        for inner in walk(made):
            ast.copy_location(inner, like)
        rest = [_Contents(name, kind).visit(statement) for statement in function.body[place:]]
        function.body[place:] = [made, *rest]


def _shared_lists(function: ast.FunctionDef) -> dict[str, str]:
    """The names of lists, dicts and sets of a function that it and those inside it change, without other references."""
    if not any(isinstance(part, _FUNCTIONS) for part in _own_parts(function.body)):
        return {}
    found = {}
    for name in sorted((_bound(function) & changed_names(function)) - {function.name}):
        parts = _parts_that_see(name, function)
        queue = shared_lists(name, parts, _parameters(function)) if len(parts) > 1 else None
        if queue is not None:
            found[name] = OWN_QUEUE if queue else OWN_ROWS if rows_of_own(function, name) else OWN_LIST
    return found


def _parts_that_see(name: str, function: ast.FunctionDef) -> list[Part]:
    """The bodies of a function and of those inside it for which a name is the same."""
    found = [Part(function.body, True)]
    waiting: list[ast.AST] = list(_own_parts(function.body))
    while waiting:
        part = waiting.pop()
        if isinstance(part, _FUNCTIONS) and name not in _bound(part):
            body: list[ast.stmt] = [ast.Expr(part.body)] if isinstance(part, ast.Lambda) else part.body
            if any(isinstance(inner, ast.Name) and inner.id == name for one in body for inner in walk(one)):
                found.append(Part(body, False))
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


def _first_binding(body: list[ast.stmt], name: str, is_parameter: bool) -> int | None:
    """The number of statements after which the name is surely bound, and before which no function can see it."""
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
                return place + 1 if named and not before else None
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

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name:
            return node
        return ast.copy_location(ast.Name(node.id + self.kind, node.ctx), node)

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
