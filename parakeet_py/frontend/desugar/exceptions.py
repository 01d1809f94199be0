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

So the state of all names where an exception comes is what the merges make of it, as for any other branch. `return`,
`break` and `continue` inside a `try` leave it in the same way, by negative numbers.

In a `try` inside the body of another one, statements are guarded against what the handlers of both catch; a number
beyond the inner handlers is handed on, to the exit of the outer one. `finally` is a handler of everything that ends in
`raise`, and its statements again on every other way out. Where a handler looks at the exception, as `raise` alone does,
guarded statements also set `$error`, which `Caught` reads. The nodes of a handler say which one they are in: what is
called there may ask which exception is handled.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import TypeVar

from parakeet_py.base.positions import Handler
from parakeet_py.frontend.desugar.caught_names import bound_in, names_read_elsewhere, unbound
from parakeet_py.frontend.desugar.caught_steps import ITEM_OF, STEPS, iterator_names, may_be_iterator
from parakeet_py.frontend.desugar.nodes import Caught, Guarded, Leave, Managed, TryBody, listed, mark, place
from parakeet_py.frontend.desugar.signals import LOOK
from parakeet_py.frontend.source.scopes import falls_through
from parakeet_py.frontend.syntax_walk import walk

BREAKS, CONTINUES, RETURNS = -1, -2, -3  # the first `return`; others have smaller numbers
_WORDS = {  # of statements whose classes are named otherwise
    ast.Delete: "del", ast.ClassDef: "class", ast.AsyncFor: "async for", ast.AsyncWith: "async with",
    ast.AsyncFunctionDef: "async def", ast.TryStar: "except*",
}  # fmt: skip

_N = TypeVar("_N", bound=ast.AST)
_Refuse = Callable[[ast.AST, str, str], None]


def without_try(node: _N, refuse: _Refuse) -> _N:
    """The same function, or a copy of it in which there is no `try`. `refuse` raises."""
    if not any(isinstance(inner, ast.Try) for inner in walk(node)):
        return node
    rewritten: _N = _Rewriter(refuse, iterator_names(node), names_read_elsewhere(node)).visit(copy.deepcopy(node))
    return rewritten


class _Rewriter(ast.NodeTransformer):
    def __init__(self, refuse: _Refuse, iterators: frozenset[str], read_elsewhere: frozenset[str]) -> None:
        self.refuse = refuse
        self.iterators = iterators  # names that may be bound to such
        self.read_elsewhere = read_elsewhere  # than in handlers that bind them
        self.count = 0

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        return _Try(node, self).statements()

    def visit_Managed(self, node: Managed) -> list[ast.stmt]:
        return self.visit_Try(node)


class _Try:
    """One `try`, perhaps in the body of another one (there inside `loop`, if that is a loop of that body)."""

    def __init__(
        self, node: ast.Try, rewriter: _Rewriter, parent: _Try | None = None, loop: ast.stmt | None = None
    ) -> None:
        rewriter.count += 1
        self.node, self.rewriter, self.refuse = node, rewriter, rewriter.refuse
        self.parent, self.loop = parent, loop
        self.number = rewriter.count
        self.exit_name, self.value_name = f"$exit{self.number}", f"$value{self.number}"
        self.error_name = f"$error{self.number}"
        self.temporaries = 0
        self.left: set[int] = set()
        self.returned: dict[int, ast.expr] = {}  # what each `return` in the body gives
        self.body, self.handlers, self.orelse = node.body, node.handlers, node.orelse
        if node.finalbody:
            if node.handlers:
                inner = ast.Try(node.body, node.handlers, node.orelse, [])
                self.body, self.orelse = [ast.copy_location(inner, node)], []
            again = ast.ExceptHandler(None, None, [*self.finally_(), ast.Raise(None, None)])
            self.handlers = [place(ast.copy_location(again, node), node)]
        for handler in self.handlers:
            if not hasattr(handler, "lineno"):  # of a manager
                ast.copy_location(handler, node)
        self.classes = [self.caught_by(handler) for handler in self.handlers]
        self.keeps: bool = (parent is not None and parent.keeps) or any(map(_looks_at_it, self.handlers))

    def finally_(self) -> list[ast.stmt]:
        return copy.deepcopy(self.node.leaving if isinstance(self.node, Managed) else self.node.finalbody)

    def all_handlers(self) -> list[Handler]:
        """The handlers here and around."""
        own = [_place_of(handler) for handler in self.handlers]
        return own + (self.parent.all_handlers() if self.parent is not None else [])

    def all_classes(self) -> list[ast.expr]:
        """What is caught inside, by the handlers here and around."""
        return self.classes + (copy.deepcopy(self.parent.all_classes()) if self.parent is not None else [])

    def caught_by(self, handler: ast.ExceptHandler) -> ast.expr:
        """The expression of the classes a handler catches."""
        kind = handler.type
        if kind is None:
            return ast.copy_location(ast.Name("BaseException", ast.Load()), handler)
        if isinstance(self.node, Managed):
            return kind
        for part in kind.elts if isinstance(kind, ast.Tuple) else [kind]:
            if not _is_plain(part):
                self.refuse(part, "the classes of exceptions to catch must be names", "name them")
        return kind

    def statements(self) -> list[ast.stmt]:
        node = self.node
        body: list[ast.stmt] = [self.set_exit(0, node)]
        body.extend(self.guarded(self.body, None))
        tried = TryBody()
        tried.body = body
        ends = self.outside([*self.orelse, *self.finally_()])
        leaves: dict[int, ast.stmt] = {BREAKS: ast.Break(), CONTINUES: ast.Continue()}
        leaves |= {code: ast.Return(value) for code, value in self.returned.items()}
        codes = sorted(self.left)
        if codes and not falls_through(self.body):
            ends = self.outside([*self.finally_(), leaves[codes.pop()]])  # what is left if no handler runs
        for code in codes:
            ends = [ast.If(self.exit_is(ast.Eq(), code), self.outside([*self.finally_(), leaves[code]]), ends)]
        for number in reversed(range(len(self.handlers))):
            handled = self.outside(self.handling(self.handlers[number]))
            ends = [ast.If(self.exit_is(ast.Eq(), number + 1), handled, ends)]
        if self.parent is not None:
            ends = [ast.If(self.exit_is(ast.Gt(), len(self.handlers)), self.handed_on(self.parent), ends)]
        made = [tried, *ends]
        for statement in made:
            place(statement, node)
        return made

    def outside(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of handlers and the like, which belong to what is around this `try`."""
        placed = [place(statement, self.node) for statement in statements]
        if self.parent is not None:
            return self.parent.guarded(placed, self.loop)
        return [inner for part in placed for inner in listed(self.rewriter.visit(part))]

    def handling(self, handler: ast.ExceptHandler) -> list[ast.stmt]:
        """The body of a handler. The name of the exception is unbound at its end."""
        mark(handler.body, _place_of(handler))
        caught = Caught()
        caught.name = ast.Name(self.error_name, ast.Load())
        body = [_Reraising(caught).visit(part) for part in handler.body] if self.keeps else handler.body
        if handler.name is None:
            return body
        read = handler.name in self.rewriter.read_elsewhere
        if not self.keeps:  # the handler does not look at it
            return [*unbound(handler.name), *body] if read else body
        return bound_in(handler.name, caught, body, read=read, guarded=self.parent is not None)

    def handed_on(self, parent: _Try) -> list[ast.stmt]:
        """Leave for a handler of the `try` around this one."""
        number = ast.BinOp(ast.Name(self.exit_name, ast.Load()), ast.Sub(), ast.Constant(len(self.handlers)))
        made: list[ast.stmt] = [ast.Assign([ast.Name(parent.exit_name, ast.Store())], number)]
        if parent.keeps:
            caught = Caught()
            caught.name = ast.Name(self.error_name, ast.Load())
            made.append(ast.Assign([ast.Name(parent.error_name, ast.Store())], caught))
        return [*made, ast.Break() if self.loop is not None else Leave()]

    # ---- the body ------------------------------------------------------------------------------------------------

    def guarded(self, statements: list[ast.stmt], loop: ast.stmt | None) -> list[ast.stmt]:
        """A block of the body, inside `loop` if that is a loop of the body too."""
        return [made for statement in statements for made in self.statement(statement, loop)]

    def statement(self, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return [node]
            case ast.FunctionDef(decorator_list=[]):
                return self.function(node, loop)
            case ast.Try():
                return _Try(node, self.rewriter, self, loop).statements()
            case ast.With():  # about `np.errstate`
                return [ast.copy_location(ast.With(node.items, self.guarded(node.body, loop)), node)]
            case ast.Delete(targets=[ast.Name()]):
                return self.guard(node, loop)
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
            case ast.While(orelse=orelse) if not any(map(_jumps, orelse)):
                name = self.temporary()
                end = [*self.guarded(orelse, node), ast.Break()]
                stop = ast.If(ast.Name(name, ast.Load()), end, [])
                inside = [*self.assigned(name, negated(node.test), node.test, node), place(stop, node.test)]
                body = [*inside, *self.look(node), *self.guarded(node.body, node)]
                endless = ast.While(ast.Constant(True), body, [])
                return [place(endless, node), self.left_early(node, loop)]
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Raise() | ast.Assert():
                return self.guard(node, loop)
            case ast.Import() | ast.ImportFrom():
                return self.guard(node, loop)
        word = _WORDS.get(type(node), type(node).__name__.lower())
        self.refuse(node, f"a `{word}` inside `try` cannot be accelerated", "move it out of the `try`")
        return []

    def return_(self, value: ast.expr, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        """Names are returned as they are, when the body has been left; a list has no other owner then."""
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        code = RETURNS - len(self.returned)
        later = {name for part in self.node.finalbody for name in _bound(part)}
        if not all(isinstance(part, ast.Constant) or _is_other(part, later) for part in parts):
            self.returned[code] = ast.copy_location(ast.Name(f"{self.value_name}.{-code}", ast.Load()), value)
            return [*self.assigned(f"{self.value_name}.{-code}", value, node, loop), *self.leave(code, node, loop)]
        self.returned[code] = value
        looked_at = [part for part in parts if isinstance(part, ast.Name)]  # is it bound?
        tests = [ast.Compare(part, [ast.Is()], [ast.Constant(None)]) for part in looked_at]
        checks = [made for test in tests for made in self.guard(place(ast.Expr(test), value), loop)]
        return [*checks, *self.leave(code, node, loop)]

    def function(self, node: ast.FunctionDef, loop: ast.stmt | None) -> list[ast.stmt]:
        """A function is made of defaults that have been computed, which may raise."""
        made: list[ast.stmt] = []

        def computed(value: ast.expr) -> ast.expr:
            if isinstance(value, ast.Constant):
                return value
            name = self.temporary()
            made.extend(self.assigned(name, value, value, loop))
            return ast.copy_location(ast.Name(name, ast.Load()), value)

        again = copy.copy(node)
        again.args = copy.copy(node.args)
        again.args.defaults = [computed(value) for value in node.args.defaults]
        again.args.kw_defaults = [None if value is None else computed(value) for value in node.args.kw_defaults]
        return [*made, again]

    def for_loop(self, node: ast.For, loop: ast.stmt | None) -> list[ast.stmt]:
        """A loop whose steps cannot raise by themselves."""
        iterable = node.iter
        if may_be_iterator(iterable, self.rewriter.iterators):
            return self.loop_over_iterator(node, loop)
        called = iterable.func.id if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) else ""
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        strict = called == "zip" and isinstance(iterable, ast.Call) and bool(iterable.keywords)
        if (
            strict
            or not all(isinstance(name, ast.Name) for name in names)
            or (isinstance(node.target, ast.Tuple) and called not in ("enumerate", "zip"))
        ):
            self.refuse(node.iter, "this loop inside `try` cannot be accelerated", "move it out of the `try`")
        made: list[ast.stmt] = []
        simple = called in ("range", "enumerate", "zip") and not (
            called == "range" and isinstance(iterable, ast.Call) and len(iterable.args) > 2
        )
        if not simple and not isinstance(iterable, ast.Name):
            name = self.temporary()
            made.extend(self.assigned(name, iterable, iterable, loop))
            iterable = ast.copy_location(ast.Name(name, ast.Load()), iterable)
        parts = iterable.args if isinstance(iterable, ast.Call) else []
        given: list[ast.expr] = []
        for part in parts:
            name = self.temporary()
            made.extend(self.assigned(name, part, part, loop))
            given.append(ast.copy_location(ast.Name(name, ast.Load()), part))
        if isinstance(iterable, ast.Call):
            iterable = ast.copy_location(ast.Call(iterable.func, given, iterable.keywords), iterable)
            if called == "range" and not all(
                map(_is_int, parts)
            ):  # what is no int raises: the loop itself is not guarded
                made.extend(self.guard(place(ast.Expr(iterable), node.iter), loop))
        body = [*self.look(node), *self.guarded(node.body, node)]
        again = ast.For(node.target, iterable, body, self.guarded(node.orelse, loop))
        return [*made, place(again, node), self.left_early(node, loop)]

    def loop_over_iterator(self, node: ast.For, loop: ast.stmt | None) -> list[ast.stmt]:
        """A loop whose steps may raise, see `caught_steps`."""
        held, item = self.temporary(), self.temporary()
        given = ast.Call(ast.Constant(STEPS), [node.iter], [])
        taken = ast.Call(ast.Constant(ITEM_OF), [ast.Name(item, ast.Load())], [])
        bound = self.guard(place(ast.Assign([node.target], taken), node.target), node)
        body = [*bound, *self.look(node), *self.guarded(node.body, node)]
        again = ast.For(ast.Name(item, ast.Store()), ast.Name(held, ast.Load()), body, self.guarded(node.orelse, loop))
        return [*self.assigned(held, given, node.iter, loop), place(again, node), self.left_early(node, loop)]

    def look(self, loop: ast.stmt) -> list[ast.stmt]:
        """At the beginning of an iteration: look at signals."""
        return self.guard(place(ast.Expr(ast.Call(ast.Constant(LOOK), [], [])), loop), loop)

    def assigned(self, name: str, value: ast.expr, node: ast.AST, loop: ast.stmt | None) -> list[ast.stmt]:
        return self.guard(place(ast.Assign([ast.Name(name, ast.Store())], value), node), loop)

    def guard(self, node: ast.stmt, loop: ast.stmt | None) -> list[ast.stmt]:
        if not _raises_before_it_binds(node):
            self.refuse(node, "a statement that binds several things one after another inside `try`", "split it")
        made = Guarded()
        made.body, made.exit, made.classes = [node], ast.Name(self.exit_name, ast.Store()), self.all_classes()
        made.error = ast.Name(self.error_name, ast.Store()) if self.keeps else None
        made.handlers = self.all_handlers()
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


class _Reraising(ast.NodeTransformer):
    """`raise` alone names what it raises; in handlers of a `try` inside, that is another exception."""

    def __init__(self, caught: Caught) -> None:
        self.caught = caught

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        return ast.copy_location(ast.Raise(self.caught, None), node) if node.exc is None else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        return node


def _looks_at_it(handler: ast.ExceptHandler) -> bool:
    """Does a handler need the exception that it has caught?"""
    for part in handler.body:
        for inner in walk(part):
            if isinstance(inner, ast.Raise) and inner.exc is None:
                return True
            if isinstance(inner, ast.Name) and inner.id == handler.name:
                return True
    return False


def _place_of(handler: ast.ExceptHandler) -> Handler:
    return handler.lineno, handler.col_offset


def _jumps(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Break | ast.Continue) for inner in walk(node))


def _bound(node: ast.stmt) -> list[str]:
    return [name.id for name in walk(node) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)]


def _is_other(node: ast.expr, names: set[str]) -> bool:
    """Is this a name, and none of these?"""
    return isinstance(node, ast.Name) and node.id not in names


def negated(node: ast.expr) -> ast.expr:
    """`not node`: a truth value, and asking for it may raise."""
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_plain(node.value))


def _raises_before_it_binds(node: ast.stmt) -> bool:
    """Whatever this statement raises, it does so before it has bound a name."""
    if any(isinstance(inner, ast.NamedExpr) for inner in walk(node)):
        return False
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for name in _targets(target)]
        return len(names) == 1 or all(isinstance(name, ast.Name) for name in names)
    return not isinstance(node, ast.Import | ast.ImportFrom) or len(node.names) == 1


def _is_int(node: ast.expr) -> bool:
    """Does the form of an expression say that it is an int?"""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Call(func=ast.Name(id="len")) | ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Attribute(attr="size" | "ndim"):
            return True
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right):
            return _is_int(left) and _is_int(right)
    return False


def _targets(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        return [inner for part in node.elts for inner in _targets(part)]
    return [node]
