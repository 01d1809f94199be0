"""Writing a loop: the parameters, next values and outs of the names it may bind.

Every name that the loop may bind gets a parameter, and one more for its flag if it may be unbound when an iteration
starts; prune.py drops those that turn out not to be needed. `break` and `return` have left `$stop` true at the end of
the body, which makes the loop stoppable; a returned value travels in a parameter of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from parakeet_py.frontend.build.bindings import (
    CARRIED,
    CONTROL,
    FALSE,
    NOTHING,
    RETURN,
    RETURNED,
    STOP,
    TRUE,
    Arm,
    Binding,
    Held,
    Loop,
    pos_of,
)
from parakeet_py.frontend.build.merge import made_binding
from parakeet_py.frontend.source.scopes import BREAK, is_endless
from parakeet_py.frontend.source.scopes import RETURN as RETURNS
from parakeet_py.frontend.ssa import Block, For, Let, Operand, Pos, Var, While, same
from parakeet_py.frontend.syntax_walk import walk

if TYPE_CHECKING:
    from parakeet_py.frontend.build.statements import Statements


class LoopWriter:
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
        loop = Loop(frozenset(self.names))
        builder.loops.append(loop)
        if any(isinstance(inner, ast.Call) for inner in walk(self.node)):
            builder.arm.globals_read.clear()  # the iteration before may have bound them anew
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
        if builder.scopes.has_nested:
            builder.held[param] = builder.held.get(param, frozenset()) | {(CARRIED, param)}
        flag: Operand = TRUE
        if name not in CONTROL and (not same(binding.flag, TRUE) or name in builder.deleted_names):
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
        # A function that starts an iteration has not returned: the parameters only carry the value out.
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
            if over and (builder.arm.dead or name not in CONTROL):
                ends.extend([NOTHING] + [FALSE] * (name in self.flagged))
                continue
            binding = made_binding(builder, name, self.pos)
            param = self.start[name].operand
            if param in loop.read:
                self.check_next(name, binding, self.builder.held)
            if param in loop.called:
                self.check_next(name, binding, self.builder.held_by_call)
            ends.extend([binding.operand] + [binding.flag] * (name in self.flagged))
        return ends

    def check_next(self, name: str, binding: Binding, held: dict[Var, Held]) -> None:
        """A function carried into the next iteration must not use what that iteration changes."""
        if binding.refusal:
            raise binding.refusal
        if isinstance(binding.operand, Var):
            for captured, _ in held.get(binding.operand, ()):
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
