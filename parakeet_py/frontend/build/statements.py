"""Statements to SSA, with break, continue and return turned into merges.

A statement that may leave its block decides about the statements after it (`rest`):

* `if c: ...leaves...` else falls through: the rest moves into the other branch, so no flag is needed;
* a branch that may do either: the rest is guarded by `$skip`;
* a loop that may return: the rest is guarded by its stop flag, or by `$returned` if it may also break.
"""

from __future__ import annotations

import ast
import sys

from parakeet_py.frontend.build.bindings import FALSE, NONE, NOTHING, RETURN, RETURNED, SKIP, TRUE, Binding, pos_of
from parakeet_py.frontend.build.expressions import BINARY, Expressions
from parakeet_py.frontend.build.loops import LoopWriter
from parakeet_py.frontend.desugar.managers import name_of
from parakeet_py.frontend.desugar.nodes import Caught, Guarded, Leave, TryBody, cell_of
from parakeet_py.frontend.ownership.changes import changed_by
from parakeet_py.frontend.source.scopes import BREAK, CONTINUE, FALLS, LEAVES, is_endless
from parakeet_py.frontend.source.scopes import RETURN as RETURNS
from parakeet_py.frontend.ssa import (
    Assert,
    Attribute,
    Block,
    Call,
    Const,
    DeleteItem,
    ErrorState,
    Import,
    Inplace,
    Let,
    Operand,
    Pos,
    Raise,
    SetAttribute,
    SetItem,
    Subscript,
    Unpack,
    Var,
    same,
)
from parakeet_py.frontend.ssa import Guarded as GuardedOp
from parakeet_py.frontend.syntax_walk import walk

_HINTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("exceptions cannot be caught in an accelerated function", "test for the condition beforehand"),
    ast.TryStar: ("exceptions cannot be caught in an accelerated function", "test for the condition beforehand"),
    ast.ClassDef: ("a class cannot be defined in an accelerated function", "define it at the top level of the module"),
    ast.AsyncFunctionDef: ("`async` cannot be accelerated", "await outside and pass the result in"),
    ast.AsyncFor: ("`async` cannot be accelerated", "await outside and pass the result in"),
    ast.AsyncWith: ("`async` cannot be accelerated", "await outside and pass the result in"),
}
_ERRSTATE_KINDS = ("all", "divide", "over", "under", "invalid")
_ERRSTATE_ALLOWED = ("ignore", "warn")


def _differs(made: Binding, before: Binding) -> bool:
    """Has a name been bound (and not just been found to be bound)?"""
    return made is not before and (made.definition is not before.definition or not same(made.operand, before.operand))


_ENTERED_OUTSIDE = "enter it around the call, or accelerate a function of the numeric part alone, called inside"


def _same_definition(made: Binding, before: Binding) -> bool:
    return made.definition is not None and made.definition is before.definition


class Statements(Expressions):
    """The part of the builder that converts statements."""

    def block(self, statements: list[ast.stmt]) -> None:
        for index, statement in enumerate(statements):
            if self.arm.dead or same(self.control(SKIP), TRUE):
                return
            if isinstance(statement, ast.While) and any(self.binds(part) for part in walk(statement.test)):
                statement = self.with_test_inside(statement)
            if self.scopes.flow(statement) & LEAVES and isinstance(statement, ast.If | ast.For | ast.While | ast.With):
                self.leaving(statement, statements[index + 1 :])
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """A statement that does not leave its block, or a plain break, continue or return."""
        match node:
            case ast.Assign(targets=targets, value=value):
                self.assignment(targets, value)
            case ast.AugAssign():
                self.augmented(node)
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Nonlocal() | ast.Global():
                self.check_declaration(node)
            case ast.Expr(value=value):
                self.expression(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.choose(self.truth(test), body, orelse, node)
            case ast.For() | ast.While():
                self.after_loop(self.loop(node), node, [])
            case ast.Return(value=value):
                operand = NONE if value is None else self.expression(value, "result")
                self.env[RETURN] = Binding(operand)
                self.set_control(skip=TRUE, stop=TRUE, returned=TRUE)
            case ast.Break():
                loop = self.loops[-1]
                bound = {name for name, binding in self.env.items() if same(binding.flag, TRUE)}
                loop.bound_at_breaks = bound if loop.bound_at_breaks is None else loop.bound_at_breaks & bound
                self.set_control(skip=TRUE, stop=TRUE)
            case ast.Continue():
                self.set_control(skip=TRUE)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assignment([target], value)
            case ast.FunctionDef():
                self.define(node)
            case ast.Import() | ast.ImportFrom():
                self.import_(node)
            case ast.Raise():
                self.raise_(node)
            case ast.Assert():
                self.assertion(node)
            case ast.With(body=body):
                self.check_context(node)
                self.block(body)
            case TryBody(body=body):
                self.trying += 1
                self.block(body)
                self.trying -= 1
                self.set_control(skip=FALSE)
            case Guarded():
                self.guard(node)
            case Leave():
                self.set_control(skip=TRUE)
            case ast.Delete(targets=targets):
                self.delete(targets)
            case _:
                message, hint = _HINTS.get(type(node), (f"{type(node).__name__} cannot be accelerated", ""))
                self.refuse(node, message, hint)

    # ---- leaving ----------------------------------------------------------------------------------------------------

    def leaving(self, node: ast.If | ast.For | ast.While | ast.With, rest: list[ast.stmt]) -> None:
        """A compound statement that may break, continue or return out of this block, and the rest of the block."""
        match node:
            case ast.With(body=body):
                self.check_context(node)
                self.block(body + rest)
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                if not self.scopes.flow_of(body) & FALLS:
                    self.choose(condition, body, orelse + rest, node)
                elif not self.scopes.flow_of(orelse) & FALLS:
                    self.choose(condition, body + rest, orelse, node)
                else:
                    self.choose(condition, body, orelse, node)
                    self.guarded(rest, node)
            case ast.For() | ast.While():
                stopped = self.loop(node)
                inside = self.scopes.flow_of(node.body)
                if not inside & RETURNS:
                    self.after_loop(stopped, node, rest)
                    return
                returned = self.control(RETURNED) if inside & BREAK else stopped
                if is_endless(node) and not inside & BREAK:
                    self.set_control(skip=TRUE, stop=TRUE, returned=TRUE)
                    return
                self.conditional(
                    returned,
                    lambda: self.set_control(skip=TRUE, stop=TRUE, returned=TRUE),
                    lambda: self.after_loop(stopped if inside & BREAK else FALSE, node, rest),
                    pos_of(node),
                )

    def choose(self, condition: Operand, then: list[ast.stmt], orelse: list[ast.stmt], node: ast.stmt) -> None:
        if isinstance(condition, Const) and condition is not NOTHING:
            self.block(then if condition.value else orelse)
        else:
            self.conditional(condition, lambda: self.block(then), lambda: self.block(orelse), pos_of(node))

    def guarded(self, rest: list[ast.stmt], node: ast.stmt) -> None:
        """The rest of a block, unless it is to be skipped."""
        skip = self.control(SKIP)
        if not rest or same(skip, TRUE) or self.arm.dead:
            return
        if same(skip, FALSE):
            self.block(rest)
            return

        def left() -> None:
            self.set_control(skip=TRUE)
            if not self.loops and not self.trying:
                self.set_control(returned=TRUE)

        def go_on() -> None:
            self.set_control(skip=FALSE, stop=FALSE, returned=FALSE)
            self.block(rest)

        self.conditional(skip, left, go_on, pos_of(node))

    # ---- exceptions -------------------------------------------------------------------------------------------------

    def guard(self, node: Guarded) -> None:
        """A statement whose exceptions are caught. Names stay what they are if there is one."""
        classes = tuple(self.expression(each) for each in node.classes)
        arm = self.branch(lambda: self.statement(node.body[0]))
        before = self.env
        changed = [] if arm.dead else [name for name, made in arm.env.items() if _differs(made, before[name])]
        # A closure that has been made inside is made again where it is needed next.
        bound = {name: arm.env[name] for name in changed if not _same_definition(arm.env[name], before[name])}
        if any(binding.definition or binding.refusal for binding in bound.values()):
            self.refuse(node, "a function bound inside `try` cannot be accelerated", "define it before")
        value = node.body[0].value if isinstance(node.body[0], ast.Expr | ast.Assign) else None
        if any(self.binds(part) and part is not value for part in walk(node.body[0])):
            self.refuse(node, "a list changed inside an expression inside `try`", "write it as a statement of its own")
        caught, outs = Var("exit"), {name: Var(name.lstrip("$")) for name in bound}
        error = Var("error") if node.error is not None else None
        block = Block(tuple(arm.out), tuple(binding.operand for binding in bound.values()))
        made = (caught, *([error] if error is not None else []), *outs.values())
        self.arm.out.append(Let(made, GuardedOp(block, classes, error is not None, tuple(node.handlers)), pos_of(node)))
        self.bind(node.exit.id, caught)
        if node.error is not None and error is not None:
            self.bind(node.error.id, error)

        def bind() -> None:
            for name, out in outs.items():
                self.hold(out, bound[name].operand)
                self.env[name] = Binding(out, bound[name].flag)

        if outs:
            self.conditional(caught, lambda: None, bind, pos_of(node))

    # ---- loops ------------------------------------------------------------------------------------------------------

    def after_loop(self, stopped: Operand, node: ast.For | ast.While, rest: list[ast.stmt]) -> None:
        """The else clause of a loop, then the rest of the block. `stopped` says whether the loop was broken."""
        self.set_control(skip=FALSE, stop=FALSE, returned=FALSE)
        orelse = [] if is_endless(node) else node.orelse
        if not orelse or same(stopped, TRUE):
            self.block(rest)
        elif same(stopped, FALSE):
            self.block(orelse + rest)
        elif not self.scopes.flow_of(orelse) & FALLS:
            self.conditional(stopped, lambda: self.block(rest), lambda: self.block(orelse), pos_of(node))
        else:
            self.conditional(stopped, lambda: None, lambda: self.block(orelse), pos_of(node))
            self.guarded(rest, node)

    def loop(self, node: ast.For | ast.While) -> Operand:
        """Write a loop, without its else clause. Gives whether it was stopped."""
        iterable = self.expression(node.iter) if isinstance(node, ast.For) else NONE
        target = node.target if isinstance(node, ast.For) else None
        item = Var(cell_of(target.id) if isinstance(target, ast.Name) else "item")

        def body() -> None:
            if isinstance(node, ast.For):
                self.hold(item, iterable)
                self.assign(node.target, item, node.target)
            self.block(node.body)

        return LoopWriter(self, node, iterable, item).write(body)

    def binds(self, node: ast.AST) -> bool:
        """Does an expression itself bind a name, or may it change what a name stands for?"""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return cell_of(node.value.id) in self.scopes.defaultdicts
        return isinstance(node, ast.NamedExpr) or changed_by(node) is not None

    def with_test_inside(self, node: ast.While) -> ast.While:
        """A `while` with a `:=` in its condition, which a condition block could not hand on to the body:
        `while True: if condition: body; else: orelse; break`."""
        if self.scopes.flow_of(node.orelse) & (BREAK | CONTINUE):
            self.refuse(node.test, "`:=` in the condition of a `while` whose `else` jumps", "assign inside the loop")
        orelse = [*node.orelse, ast.copy_location(ast.Break(), node.test)]
        body: list[ast.stmt] = [ast.copy_location(ast.If(node.test, node.body, orelse), node.test)]
        endless = ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), node.test), body, []), node)
        self.scopes.note_loop(endless, set(self.local_names if node.orelse else self.scopes.bound_by(node)))
        return endless

    # ---- assignment -------------------------------------------------------------------------------------------------

    def assignment(self, targets: list[ast.expr], value: ast.expr) -> None:
        target = targets[0]
        if len(targets) == 1 and isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            starred = any(isinstance(node, ast.Starred) for node in (*target.elts, *value.elts))
            if not starred and len(target.elts) == len(value.elts):  # no tuple is needed
                operands = [self.expression(node) for node in value.elts]
                for inner, operand in zip(target.elts, operands, strict=True):
                    self.assign(inner, operand, value)
                return
        named = isinstance(target, ast.Name) and cell_of(target.id) == target.id
        if isinstance(target, ast.Name) and named and len(targets) == 1 and isinstance(value, ast.Lambda):
            self.check_writable(target.id, target)
            definition = self.nested_function(value, target.id, self.defaults(value.args))
            self.env[target.id] = Binding(NOTHING, definition=definition)
            return
        operand = self.expression(value, cell_of(target.id) if isinstance(target, ast.Name) else "t")
        for each in targets:
            self.assign(each, operand, value)

    def assign(self, target: ast.expr, operand: Operand, node: ast.AST) -> None:
        match target:
            case ast.Name(id=name):
                self.check_writable(name, target)
                self.store(name, operand, target)
            case ast.Subscript(value=value, slice=index):
                container = self.expression(value)
                self.effect(SetItem(container, self.expression(index), operand), target)
                self.keep_in(container, operand, target)
            case ast.Attribute(value=value, attr=name):
                container = self.expression(value)
                self.effect(SetAttribute(container, name, operand), target)
                self.keep_in(container, operand, target)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                self.unpack(target, elts, operand)
            case ast.Starred(value=value):
                self.assign(value, operand, node)
            case _:
                self.refuse(target, f"cannot assign to {type(target).__name__}")

    def unpack(self, target: ast.expr, elts: list[ast.expr], operand: Operand) -> None:
        stars = [index for index, each in enumerate(elts) if isinstance(each, ast.Starred)]
        before = stars[0] if stars else len(elts)
        names = [each.value if isinstance(each, ast.Starred) else each for each in elts]
        outs = tuple(Var(cell_of(each.id) if isinstance(each, ast.Name) else "item") for each in names)
        op = Unpack(operand, before, bool(stars), len(elts) - before - 1 if stars else 0)
        self.arm.out.append(Let(outs, op, pos_of(target)))
        for each, out in zip(elts, outs, strict=True):
            self.hold(out, operand)
            self.assign(each, out, target)

    def augmented(self, node: ast.AugAssign) -> None:
        op = BINARY[type(node.op)]
        match node.target:
            case ast.Name(id=name):
                self.check_writable(name, node.target)
                left = self.read(name, node.target)
                right = self.expression(node.value)
                out = self.emit(Inplace(op, left, right), node, cell_of(name))
                self.hold(out, left, right)
                self.store(name, out, node)
            case ast.Subscript(value=value, slice=index):
                container, key = self.expression(value), self.expression(index)
                left = self.emit(Subscript(container, key), node.target)
                right = self.expression(node.value)
                self.effect(SetItem(container, key, self.emit(Inplace(op, left, right), node)), node)
                self.keep_in(container, right, node)
            case ast.Attribute(value=value, attr=name):
                container = self.expression(value)
                left = self.emit(Attribute(container, name), node.target)
                right = self.expression(node.value)
                self.effect(SetAttribute(container, name, self.emit(Inplace(op, left, right), node)), node)
                self.keep_in(container, right, node)

    def keep_in(self, container: Operand, operand: Operand, node: ast.AST) -> None:
        if isinstance(operand, Var) and operand in self.held:
            self.keep(container, self.held[operand], node)

    def check_writable(self, name: str, node: ast.AST) -> None:
        if cell_of(name) != name:
            return
        if name in self.declared_global:
            self.refuse(node, f"the global `{name}` cannot be bound in an accelerated function", "return the value")
        if name not in self.local_names:
            self.refuse(node, f"`{name}` of an enclosing function cannot be bound here", "return the value")

    def check_declaration(self, node: ast.stmt) -> None:
        """Global and nonlocal names may be read; `check_writable` refuses the rest."""

    def delete(self, targets: list[ast.expr]) -> None:
        for target in targets:
            match target:
                case ast.Name(id=name):
                    self.check_writable(name, target)
                    self.check_bound(name, target)
                    self.env[name] = Binding(NOTHING, FALSE)
                case ast.Tuple(elts=elts) | ast.List(elts=elts):
                    self.delete(elts)
                case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Tuple):
                    held = self.expression(value)
                    self.effect(DeleteItem(held, self.expression(index)), target)
                case _:
                    self.refuse(target, "`del` of an item cannot be accelerated", "make a new object without it")

    # ---- other statements -------------------------------------------------------------------------------------------

    def define(self, node: ast.FunctionDef) -> None:
        self.check_writable(node.name, node)
        decorators = [self.expression(decorator) for decorator in node.decorator_list]
        definition = self.nested_function(node, node.name, self.defaults(node.args), bool(decorators))
        if not decorators:
            self.env[node.name] = Binding(NOTHING, definition=definition)
            return
        value: Operand = self.make_closure(definition, node)
        for decorator in reversed(decorators):
            inner = value
            value = self.emit(Call(decorator, (inner,)), node, node.name)
            self.hold(value, inner)
        self.bind(node.name, value)

    def import_(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.check_writable(name, node)
            if isinstance(node, ast.ImportFrom):
                op = Import(node.module or "", alias.name, node.level)
            elif alias.asname or "." not in alias.name:
                op = Import(alias.name)
            else:  # `import a.b` loads a.b and binds a
                self.emit(Import(alias.name), node, "module")
                op = Import(name)
            self.bind(name, self.emit(op, node, name))

    def raise_(self, node: ast.Raise) -> None:
        if node.exc is None:
            self.refuse(node, "`raise` without an exception cannot be accelerated", "name the exception")
        exception, cause = self.expression(node.exc), None
        if node.cause is not None and not (isinstance(node.cause, ast.Constant) and node.cause.value is None):
            cause = self.expression(node.cause)
        self.effect(Raise(exception, cause, isinstance(node.exc, Caught)), node)
        self.arm.dead = True

    def assertion(self, node: ast.Assert) -> None:
        if not __debug__:
            return
        condition = self.truth(node.test)
        block = None
        if node.msg is not None:
            message = node.msg
            arm = self.branch(lambda: self.expression(message))
            block = Block(tuple(arm.out), (arm.value if arm.value is not None else NONE,))
        self.effect(Assert(condition, block), raising_part(node))

    def check_context(self, node: ast.With) -> None:
        """Only `np.errstate` with values that cannot change what is computed."""
        for item in node.items:
            call = item.context_expr
            name = name_of(item)
            if name != "errstate" or not isinstance(call, ast.Call) or item.optional_vars is not None:
                met = f"a `with` statement of `{name}`, which may change what the body shows"
                met = met if name != "errstate" else "a `with` statement of `np.errstate` that is no call, or with `as`"
                self.refuse(call, met, _ENTERED_OUTSIDE)
            actions = []
            for keyword in call.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if value not in _ERRSTATE_ALLOWED:
                    self.refuse(
                        keyword.value,
                        "`np.errstate` can only be given 'ignore' or 'warn'",
                        "test for the condition",
                    )
                if keyword.arg not in _ERRSTATE_KINDS:
                    self.refuse(keyword, f"`np.errstate` has no argument '{keyword.arg}'")
                actions.append((keyword.arg, value))
            if call.args:
                self.refuse(call, "`np.errstate` takes keyword arguments only")
            self.error_states[ErrorState(_hull(node.body), tuple(actions))] = None


def _hull(body: list[ast.stmt]) -> Pos:
    """From the beginning of the first part of a body to the end of its last."""
    places = [pos_of(one) for statement in body for one in ast.walk(statement) if hasattr(one, "lineno")]
    first = min((one.line, one.column) for one in places)
    return Pos(*first, *max((one.end_line, one.end_column) for one in places))


def raising_part(node: ast.Assert) -> ast.AST:
    """The part of an `assert` that CPython marks in the traceback of a failure.

    Before 3.12 it is the comparison whose code was made last (the code of a branch moved the place, and what followed
    had none of its own), if there is one; in 3.12 the statement, later the test.
    """
    if sys.version_info >= (3, 13):
        return node.test
    return node if sys.version_info >= (3, 12) else _last_comparison(node.test) or node


def _last_comparison(test: ast.expr) -> ast.Compare | None:
    """Of those that a test branches on."""
    match test:
        case ast.Compare():
            return test
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _last_comparison(operand)
        case ast.BoolOp(values=values):
            parts = values
        case ast.IfExp(body=body, orelse=orelse):
            parts = [test.test, body, orelse]
        case _:
            return None
    return next((found for one in reversed(parts) if (found := _last_comparison(one))), None)
