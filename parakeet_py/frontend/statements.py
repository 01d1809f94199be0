"""Statements to SSA, with break, continue and return turned into gates.

A statement that may leave its block decides about the statements after it (`rest`):

* `if c: ...leaves...` else falls through: the rest moves into the other branch, so no flag is needed;
* a branch that may do either: the rest is guarded by `$skip`;
* a loop that may return: the rest is guarded by its stop flag, or by `$returned` if it may also break.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from parakeet_py.frontend.builder import (
    FALSE,
    NONE,
    NOTHING,
    RETURN,
    RETURNED,
    SKIP,
    STOP,
    TRUE,
    Arm,
    Binding,
    Loop,
    made_binding,
    pos_of,
)
from parakeet_py.frontend.expressions import BINARY, Expressions
from parakeet_py.frontend.operands import same
from parakeet_py.frontend.scopes import BREAK, FALLS, LEAVES, is_endless
from parakeet_py.frontend.scopes import RETURN as RETURNS
from parakeet_py.frontend.ssa import (
    Assert,
    Attribute,
    Block,
    Call,
    Const,
    For,
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
    While,
)

_HINTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("exceptions cannot be caught in an accelerated function", "test for the condition beforehand"),
    ast.TryStar: ("exceptions cannot be caught in an accelerated function", "test for the condition beforehand"),
    ast.Match: ("`match` cannot be accelerated", "write it with `if` and `elif`"),
    ast.ClassDef: ("a class cannot be defined in an accelerated function", "define it at the top level of the module"),
    ast.AsyncFunctionDef: ("`async` cannot be accelerated", "await outside and pass the result in"),
    ast.AsyncFor: ("`async` cannot be accelerated", "await outside and pass the result in"),
    ast.AsyncWith: ("`async` cannot be accelerated", "await outside and pass the result in"),
}
_ERRSTATE_ALLOWED = ("ignore", "warn")


class Statements(Expressions):
    """The part of the builder that converts statements."""

    def block(self, statements: list[ast.stmt]) -> None:
        for index, statement in enumerate(statements):
            if self.arm.dead or same(self.control(SKIP), TRUE):
                return
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
                self.gate(
                    returned,
                    lambda: self.set_control(skip=TRUE, stop=TRUE, returned=TRUE),
                    lambda: self.after_loop(stopped if inside & BREAK else FALSE, node, rest),
                    pos_of(node),
                )

    def choose(self, condition: Operand, then: list[ast.stmt], orelse: list[ast.stmt], node: ast.stmt) -> None:
        if isinstance(condition, Const) and condition is not NOTHING:
            self.block(then if condition.value else orelse)
        else:
            self.gate(condition, lambda: self.block(then), lambda: self.block(orelse), pos_of(node))

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
            if not self.loops:
                self.set_control(returned=TRUE)

        def go_on() -> None:
            self.set_control(skip=FALSE, stop=FALSE, returned=FALSE)
            self.block(rest)

        self.gate(skip, left, go_on, pos_of(node))

    # ---- loops ------------------------------------------------------------------------------------------------------

    def after_loop(self, stopped: Operand, node: ast.For | ast.While, rest: list[ast.stmt]) -> None:
        """The else clause of a loop, then the rest of the block. `stopped` tells whether the loop was broken."""
        self.set_control(skip=FALSE, stop=FALSE, returned=FALSE)
        orelse = [] if is_endless(node) else node.orelse
        if not orelse or same(stopped, TRUE):
            self.block(rest)
        elif same(stopped, FALSE):
            self.block(orelse + rest)
        elif not self.scopes.flow_of(orelse) & FALLS:
            self.gate(stopped, lambda: self.block(rest), lambda: self.block(orelse), pos_of(node))
        else:
            self.gate(stopped, lambda: None, lambda: self.block(orelse), pos_of(node))
            self.guarded(rest, node)

    def loop(self, node: ast.For | ast.While) -> Operand:
        """Write a loop, without its else clause. Gives whether it was stopped."""
        if isinstance(node, ast.While) and any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node.test)):
            return self.loop_with_test_inside(node)
        iterable = self.expression(node.iter) if isinstance(node, ast.For) else NONE
        item = Var(node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else "item")

        def body() -> None:
            if isinstance(node, ast.For):
                self.hold(item, iterable)
                self.assign(node.target, item, node.target)
            self.block(node.body)

        return _LoopWriter(self, node, iterable, item).write(body)

    def loop_with_test_inside(self, node: ast.While) -> Operand:
        """`while` with a `:=` in its condition: `while True: if not condition: break; ...`."""
        if node.orelse:
            self.refuse(node.test, "`:=` in the condition of a `while` with an `else`", "assign inside the loop")
        stop = ast.copy_location(ast.Break(), node.test)
        body: list[ast.stmt] = [ast.copy_location(ast.If(node.test, node.body, [stop]), node.test)]
        endless = ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), node.test), body, []), node)
        self.scopes.note_loop(endless, set(self.scopes.bound_by(node)))
        return self.loop(endless)

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
        if isinstance(target, ast.Name) and len(targets) == 1 and isinstance(value, ast.Lambda):
            self.check_writable(target.id, target)
            template = self.nested_function(value, target.id, self.defaults(value.args))
            self.env[target.id] = Binding(NOTHING, template=template)
            return
        operand = self.expression(value, target.id if isinstance(target, ast.Name) else "t")
        for each in targets:
            self.assign(each, operand, value)

    def assign(self, target: ast.expr, operand: Operand, node: ast.AST) -> None:
        match target:
            case ast.Name(id=name):
                self.check_writable(name, target)
                self.bind(name, operand)
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
        outs = tuple(Var(each.id if isinstance(each, ast.Name) else "item") for each in names)
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
                out = self.emit(Inplace(op, left, right), node, name)
                self.hold(out, left, right)
                self.bind(name, out)
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
                case _:
                    self.refuse(target, "`del` of an item cannot be accelerated", "make a new object without it")

    # ---- other statements -------------------------------------------------------------------------------------------

    def define(self, node: ast.FunctionDef) -> None:
        self.check_writable(node.name, node)
        decorators = [self.expression(decorator) for decorator in node.decorator_list]
        template = self.nested_function(node, node.name, self.defaults(node.args))
        if not decorators:
            self.env[node.name] = Binding(NOTHING, template=template)
            return
        value: Operand = self.make_closure(template, node)
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
        if node.cause is not None and not (isinstance(node.cause, ast.Constant) and node.cause.value is None):
            self.refuse(node, "`raise ... from` cannot be accelerated", "raise the exception alone")
        self.effect(Raise(self.expression(node.exc)), node)
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
        self.effect(Assert(condition, block), node)

    def check_context(self, node: ast.With) -> None:
        """Only `np.errstate` with values that cannot change what is computed."""
        for item in node.items:
            call = item.context_expr
            function = call.func if isinstance(call, ast.Call) else call
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name != "errstate" or not isinstance(call, ast.Call) or item.optional_vars is not None:
                self.refuse(call, "only `np.errstate` can be used in a `with` statement", "enter the context outside")
            for keyword in call.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if value not in _ERRSTATE_ALLOWED:
                    self.refuse(
                        keyword.value,
                        "`np.errstate` can only be given 'ignore' or 'warn'",
                        "test for the condition",
                    )
            if call.args:
                self.refuse(call, "`np.errstate` takes keyword arguments only")


class _LoopWriter:
    """Writes one `For` or `While`: parameters for every name it may bind, their next values, and the outs."""

    def __init__(self, builder: Statements, node: ast.For | ast.While, iterable: Operand, item: Var) -> None:
        self.builder, self.node, self.iterable, self.item = builder, node, iterable, item
        self.pos: Pos = pos_of(node)
        self.flow = builder.scopes.flow_of(node.body)
        bound = builder.scopes.bound_by(node)
        self.names = [name for name in builder.env if name in bound]
        if self.flow & RETURNS:
            self.names.append(RETURN)
            if self.flow & BREAK:
                self.names.append(RETURNED)
        self.params: list[Var] = []
        self.inits: list[Operand] = []
        self.flagged: set[str] = set()
        self.start: dict[str, Binding] = {}

    def write(self, convert: Callable[[], None]) -> Operand:
        builder = self.builder
        stoppable = bool(self.flow & (BREAK | RETURNS))
        for name in self.names:
            self.open(name)
        loop = Loop(frozenset(self.names), set(self.params), set())
        builder.loops.append(loop)
        condition = builder.branch(self.test)
        ends: list[Operand] = []

        def body() -> None:
            self.enter()
            convert()
            ends.extend(self.ends(loop))

        arm = builder.branch(body)
        builder.loops.pop()
        stop = (arm.env[STOP].operand,) if stoppable and not arm.dead else (FALSE,) * stoppable
        block = Block(tuple(arm.out), (*stop, *ends))
        inits, params = tuple(self.inits), tuple(self.params)
        stopped: Operand = Var("stopped") if stoppable else FALSE
        outs = tuple(Var(param.name) for param in params)
        op: For | While
        if isinstance(self.node, ast.For):
            op = For(self.iterable, self.item, params, inits, block, stoppable)
        else:
            value = condition.value if condition.value is not None else TRUE
            op = While(params, inits, Block(tuple(condition.out), (value,)), block, stoppable)
        builder.arm.out.append(Let((stopped, *outs) if isinstance(stopped, Var) else outs, op, self.pos))
        self.close(arm, outs, ends, loop)
        return stopped

    def open(self, name: str) -> None:
        """The parameter of a name, and one for its flag if it may be unbound at the start of an iteration."""
        builder = self.builder
        binding = made_binding(builder, name, self.pos)
        param = self.param(name.lstrip("$"), binding.operand)
        builder.hold(param, binding.operand)
        flag: Operand = TRUE
        if name not in CONTROL_NAMES and (not same(binding.flag, TRUE) or name in builder.deleted_names):
            flag = self.param(name + ".bound", binding.flag)
            self.flagged.add(name)
        self.start[name] = Binding(param, flag, refusal=binding.refusal)

    def param(self, name: str, init: Operand) -> Var:
        param = Var(name)
        self.params.append(param)
        self.inits.append(init)
        return param

    def enter(self) -> None:
        builder = self.builder
        builder.env.update(self.start)
        builder.set_control(skip=FALSE, stop=FALSE)
        # Whoever starts an iteration has not returned: the parameters only carry the value out.
        builder.set_control(returned=FALSE)
        builder.env[RETURN] = Binding(NOTHING)

    def test(self) -> Operand:
        self.enter()
        return TRUE if isinstance(self.node, ast.For) else self.builder.truth(self.node.test)

    def ends(self, loop: Loop) -> list[Operand]:
        """The values the parameters take for the next iteration."""
        builder = self.builder
        # After a raise or return nothing is read any more, except what a return has set.
        over = builder.arm.dead or builder.arm.returned()
        ends: list[Operand] = []
        for name in self.names:
            if over and (builder.arm.dead or name not in CONTROL_NAMES):
                ends.extend([NOTHING] + [FALSE] * (name in self.flagged))
                continue
            binding = made_binding(builder, name, self.pos)
            param = self.start[name].operand
            if isinstance(param, Var) and param in loop.read:
                self.check_next(name, binding)
            ends.extend([binding.operand] + [binding.flag] * (name in self.flagged))
        return ends

    def check_next(self, name: str, binding: Binding) -> None:
        """A function carried into the next iteration must not use what that iteration changes."""
        if binding.refusal:
            raise binding.refusal
        if isinstance(binding.operand, Var):
            for captured, _ in self.builder.held.get(binding.operand, ()):
                if captured in self.names and binding.operand is not self.start[name].operand:
                    raise self.builder.refusal(
                        self.pos,
                        f"`{name}` carries a function that uses `{captured}` into the next iteration",
                        f"pass `{captured}` to the function as an argument",
                    )

    def close(self, arm: Arm, outs: tuple[Var, ...], ends: list[Operand], loop: Loop) -> None:
        """Bind the names to the outs of the loop."""
        builder = self.builder
        endless = is_endless(self.node)
        left = iter(zip(outs, ends, strict=True))
        for name in self.names:
            out, end = next(left)
            builder.hold(out, self.start[name].operand, end)
            refusal = arm.env[name].refusal or self.start[name].refusal
            flag: Operand = TRUE
            if name in self.flagged:
                flag, bound = next(left)
                if endless and (same(bound, TRUE) or (loop.bound_at_breaks and name in loop.bound_at_breaks)):
                    flag = TRUE
            builder.env[name] = Binding(out, flag, refusal=refusal)


CONTROL_NAMES = frozenset({SKIP, STOP, RETURNED, RETURN})
