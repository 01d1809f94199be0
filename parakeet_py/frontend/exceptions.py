"""`try` without jumps: syntax trees to syntax trees, before anything else looks at them.

Each simple statement of a `try` becomes a `Guarded` statement, which does not let the exceptions of the handlers out
but sets a name no program can have, `$exit`, to the number of the handler. Statements after it are left out if that
has happened (`Leave`, which is to the `TryBody` what `continue` is to a loop; `break` in loops inside of it), and the
handlers are branches behind:

    try:                               TryBody:
        y = a[i]                           $exit = guarded: y = a[i]
        return y / x                       if $exit != 0: Leave
    except IndexError:                     $exit = guarded: $value = y / x
        y = 0.0                            if $exit != 0: Leave
                                           $exit = -3
                                           Leave
                                       if $exit == 1: y = 0.0
                                       elif $exit == -3: return $value

So the state of all names where an exception comes is what the gates make of it, as for any other branch. `return`,
`break` and `continue` inside a `try` leave it in the same way, by negative numbers.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import TypeVar

BREAKS, CONTINUES, RETURNS = -1, -2, -3  # the first `return`; others have smaller numbers

_N = TypeVar("_N", bound=ast.AST)
_Refuse = Callable[[ast.AST, str, str], None]


class Guarded(ast.stmt):
    """`body`, one statement; if it raises what handler i of `handlers` catches, `exit` becomes i + 1, else 0."""

    _fields = ("body", "exit", "classes")
    body: list[ast.stmt]
    exit: ast.Name
    classes: list[ast.expr]


class Leave(ast.stmt):
    """Leave the `TryBody` that this stands in."""


class TryBody(ast.stmt):
    """What `Leave` leaves."""

    _fields = ("body",)
    body: list[ast.stmt]


def without_try(node: _N, refuse: _Refuse) -> _N:
    """The same function, or a copy of it in which there is no `try`. `refuse` raises."""
    if not any(isinstance(inner, ast.Try) for inner in ast.walk(node)):
        return node
    rewritten: _N = _Rewriter(refuse).visit(copy.deepcopy(node))
    return rewritten


class _Rewriter(ast.NodeTransformer):
    def __init__(self, refuse: _Refuse) -> None:
        self.refuse = refuse
        self.count = 0

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        self.count += 1
        return _Try(node, self.refuse, self.count).statements(self)


class _Try:
    """One `try`."""

    def __init__(self, node: ast.Try, refuse: _Refuse, number: int) -> None:
        self.node, self.refuse = node, refuse
        self.exit_name, self.value_name = f"$exit{number}", f"$value{number}"
        self.temporaries = 0
        self.number = number
        self.left: set[int] = set()
        self.returned: dict[int, ast.expr] = {}  # what each `return` in the body gives
        if node.finalbody:
            refuse(node, "`finally` cannot be accelerated", "write what it does after the `try`")
        self.classes = [self.caught_by(handler) for handler in node.handlers]

    def caught_by(self, handler: ast.ExceptHandler) -> ast.expr:
        """The expression of the classes a handler catches."""
        names = [inner for part in handler.body for inner in ast.walk(part) if isinstance(inner, ast.Name)]
        if any(name.id == handler.name for name in names):
            self.refuse(handler, "the exception that is caught cannot be looked at", "catch it by its class alone")
        kind = handler.type
        if kind is None:
            return ast.copy_location(ast.Name("BaseException", ast.Load()), handler)
        for part in kind.elts if isinstance(kind, ast.Tuple) else [kind]:
            if not _is_plain(part):
                self.refuse(part, "the classes of exceptions to catch must be names", "name them")
        return kind

    def statements(self, rewriter: _Rewriter) -> list[ast.stmt]:
        from parakeet_py.frontend.scopes import falls_through

        node = self.node
        body: list[ast.stmt] = [self.set_exit(0, node)]
        body.extend(self.guarded(node.body, None))
        tried = TryBody()
        tried.body = body
        ends: list[ast.stmt] = [inner for part in node.orelse for inner in _listed(rewriter.visit(part))]
        leaves: dict[int, ast.stmt] = {BREAKS: ast.Break(), CONTINUES: ast.Continue()}
        leaves |= {code: ast.Return(value) for code, value in self.returned.items()}
        codes = sorted(self.left)
        if codes and not falls_through(node.body):
            ends = [leaves[codes.pop()]]  # what is left if no handler runs
        for code in codes:
            ends = [ast.If(self.exit_is(ast.Eq(), code), [leaves[code]], ends)]
        for number in reversed(range(len(node.handlers))):
            handled = [inner for part in node.handlers[number].body for inner in _listed(rewriter.visit(part))]
            ends = [ast.If(self.exit_is(ast.Eq(), number + 1), handled, ends)]
        made = [tried, *ends]
        for statement in made:
            place(statement, node)
        return made

    # ---- the body ------------------------------------------------------------------------------------------------

    def guarded(self, statements: list[ast.stmt], loop: ast.stmt | None) -> list[ast.stmt]:
        """A block of the body, inside `loop` if that is a loop of the body too."""
        return [made for statement in statements for made in self.statement(statement, loop)]

    def statement(self, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return [node]
            case ast.FunctionDef(decorator_list=[]):
                return [node]
            case ast.Break() | ast.Continue() if loop is not None:
                return [node]
            case ast.Break():
                return self.leave(BREAKS, node, loop)
            case ast.Continue():
                return self.leave(CONTINUES, node, loop)
            case ast.Return(value=value):
                return self.return_(value or ast.copy_location(ast.Constant(None), node), node, loop)
            case ast.If(test=test, body=body, orelse=orelse):
                name = self.temporary()
                chosen = ast.If(ast.Name(name, ast.Load()), self.guarded(body, loop), self.guarded(orelse, loop))
                return [*self.assigned(name, negated(negated(test)), test, loop), place(chosen, node)]
            case ast.For():
                return self.for_loop(node, loop)
            case ast.While(orelse=[]):
                name = self.temporary()
                stop = ast.If(ast.Name(name, ast.Load()), [ast.Break()], [])
                inside = [*self.assigned(name, negated(node.test), node.test, node), place(stop, node.test)]
                endless = ast.While(ast.Constant(True), [*inside, *self.guarded(node.body, node)], [])
                return [place(endless, node), self.left_early(node, loop)]
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Raise() | ast.Assert():
                return self.guard(node, loop)
            case ast.Import() | ast.ImportFrom():
                return self.guard(node, loop)
        self.refuse(node, f"{type(node).__name__} inside `try` cannot be accelerated", "move it out of the `try`")
        return []

    def return_(self, value: ast.expr, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        """Names are returned as they are, when the body has been left; a list has no other name then (`own_lists`)."""
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        code = RETURNS - len(self.returned)
        if not all(isinstance(part, ast.Name | ast.Constant) for part in parts):
            self.returned[code] = ast.copy_location(ast.Name(f"{self.value_name}.{-code}", ast.Load()), value)
            return [*self.assigned(f"{self.value_name}.{-code}", value, node, loop), *self.leave(code, node, loop)]
        self.returned[code] = value
        looked_at = [part for part in parts if isinstance(part, ast.Name)]  # is it bound?
        tests = [ast.Compare(part, [ast.Is()], [ast.Constant(None)]) for part in looked_at]
        checks = [made for test in tests for made in self.guard(place(ast.Expr(test), value), loop)]
        return [*checks, *self.leave(code, node, loop)]

    def for_loop(self, node: ast.For, loop: ast.stmt | None) -> list[ast.stmt]:
        """A loop whose steps cannot raise by themselves."""
        iterable = node.iter
        called = iterable.func.id if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) else ""
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        simple = called in ("range", "enumerate", "zip") and not (
            called == "range" and isinstance(iterable, ast.Call) and len(iterable.args) > 2
        )
        if not (all(isinstance(name, ast.Name) for name in names) and (simple or isinstance(iterable, ast.Name))) or (
            isinstance(node.target, ast.Tuple) and called not in ("enumerate", "zip")
        ):
            self.refuse(node.iter, "this loop inside `try` cannot be accelerated", "move it out of the `try`")
        parts = iterable.args if isinstance(iterable, ast.Call) else []
        made: list[ast.stmt] = []
        given: list[ast.expr] = []
        for part in parts:
            name = self.temporary()
            made.extend(self.assigned(name, part, part, loop))
            given.append(ast.copy_location(ast.Name(name, ast.Load()), part))
        if isinstance(iterable, ast.Call):
            iterable = ast.copy_location(ast.Call(iterable.func, given, iterable.keywords), iterable)
        again = ast.For(node.target, iterable, self.guarded(node.body, node), self.guarded(node.orelse, loop))
        return [*made, place(again, node), self.left_early(node, loop)]

    def assigned(self, name: str, value: ast.expr, node: ast.AST, loop: ast.stmt | None) -> list[ast.stmt]:
        return self.guard(place(ast.Assign([ast.Name(name, ast.Store())], value), node), loop)

    def guard(self, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        if not _raises_before_it_binds(node):
            self.refuse(node, "a statement that binds several things one after another inside `try`", "split it")
        made = Guarded()
        made.body, made.exit, made.classes = [node], ast.Name(self.exit_name, ast.Store()), self.classes
        return [place(made, node), self.left_early(node, loop)]

    def leave(self, code: int, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        """Leave the body for another reason than an exception."""
        self.left.add(code)
        return [self.set_exit(code, node), place(ast.Break() if loop is not None else Leave(), node)]

    def left_early(self, node: ast.AST, loop: ast.stmt | None) -> ast.stmt:
        return place(ast.If(self.exit_is(ast.NotEq(), 0), [ast.Break() if loop is not None else Leave()], []), node)

    def set_exit(self, code: int, node: ast.AST) -> ast.stmt:
        return place(ast.Assign([ast.Name(self.exit_name, ast.Store())], ast.Constant(code)), node)

    def exit_is(self, operator: ast.cmpop, code: int) -> ast.expr:
        return ast.Compare(ast.Name(self.exit_name, ast.Load()), [operator], [ast.Constant(code)])

    def temporary(self) -> str:
        self.temporaries += 1
        return f"$part{self.number}.{self.temporaries}"


def _listed(made: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]  # type: ignore[list-item]


_S = TypeVar("_S", bound=ast.AST)


def place(node: _S, where: ast.AST) -> _S:
    """The node, with a position for all parts that have none."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt | ast.expr) and not hasattr(inner, "lineno"):
            ast.copy_location(inner, where)
    return node


def negated(node: ast.expr) -> ast.expr:
    """`not node`: a truth value, and asking for it may raise."""
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_plain(node.value))


def _raises_before_it_binds(node: ast.stmt) -> bool:
    """Whatever this statement raises, it does so before it has bound a name."""
    if any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
        return False
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for name in _targets(target)]
        return len(names) == 1 or all(isinstance(name, ast.Name) for name in names)
    return not isinstance(node, ast.Import | ast.ImportFrom) or len(node.names) == 1


def _targets(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        return [inner for part in node.elts for inner in _targets(part)]
    return [node]
