"""Joining two branches: the outs of an `If`.

A name that the branches bind differently becomes an out. On a branch that raises or returns the names of the program
do not matter any more: an out's result there is UNBOUND, or no out is needed at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend.build.bindings import CONTROL, NONE, NOTHING, Arm, Binding
from parakeet_py.frontend.ssa import Block, If, Let, Operand, Pos, Var, same

if TYPE_CHECKING:
    from parakeet_py.frontend.build.builder import Builder


class Join:
    """The outs of one `If`."""

    def __init__(self, builder: Builder, a: Arm, b: Arm, hint: str) -> None:
        self.builder = builder
        self.before = builder.arm
        self.a, self.b = a, b
        self.defined_in_a, self.defined_in_b = a.defined(), b.defined()
        self.outs: list[Var] = []
        self.results: tuple[list[Operand], list[Operand]] = ([], [])
        self.value: Operand = NONE
        if a.value is not None and b.value is not None:
            self.value = self.operand(hint, a.value, b.value, a.dead, b.dead)

    def write(self, condition: Operand, pos: Pos) -> None:
        a, b, before = self.a, self.b, self.before
        env = {name: self.binding(name, old, pos) for name, old in before.env.items()}
        op = If(condition, Block(tuple(a.out), tuple(self.results[0])), Block(tuple(b.out), tuple(self.results[1])))
        before.out.append(Let(tuple(self.outs), op, pos))
        before.env = env
        before.dead = a.dead and b.dead

    def operand(self, hint: str, x: Operand, y: Operand, x_free: bool, y_free: bool) -> Operand:
        """One operand for `x` of the first branch and `y` of the second; one that is free does not matter."""
        if x_free and y_free:
            return NOTHING
        if x_free:
            if y not in self.defined_in_b:
                return y
            x = NOTHING
        elif y_free:
            if x not in self.defined_in_a:
                return x
            y = NOTHING
        elif same(x, y):
            return x
        out = Var(hint.lstrip("$"))
        self.outs.append(out)
        self.results[0].append(x)
        self.results[1].append(y)
        self.builder.hold(out, x, y)
        return out

    def binding(self, name: str, old: Binding, pos: Pos) -> Binding:
        a, b = self.a.env[name], self.b.env[name]
        if a is b:
            return a
        is_control = name in CONTROL
        a_free = self.a.dead or (self.a.returned() and not is_control)
        b_free = self.b.dead or (self.b.returned() and not is_control)
        if a_free and b_free:
            return old
        cared = b if a_free else a
        if cared.definition and (a_free or b_free or a.definition is b.definition):
            flag = self.operand(name + ".bound", a.flag, b.flag, a_free, b_free)
            made = cared.operand if same(cared.operand, old.operand) else NOTHING
            return Binding(made, flag, cared.definition, cared.captured)
        if a.identity() == b.identity() == old.identity() and not (a_free or b_free):
            return a if same(a.flag, b.flag) else old  # they differ by a CheckBound in one branch only
        a, b = self.made(self.a, name, pos), self.made(self.b, name, pos)
        if refusal := (None if a_free else a.refusal) or (None if b_free else b.refusal):
            return Binding(NOTHING, refusal=refusal)
        value = self.operand(name, a.operand, b.operand, a_free, b_free)
        return Binding(value, self.operand(name + ".bound", a.flag, b.flag, a_free, b_free))

    def made(self, arm: Arm, name: str, pos: Pos) -> Binding:
        """The binding at the end of a branch, with a closure in place of a definition."""
        self.builder.arm = arm
        try:
            return made_binding(self.builder, name, pos)
        finally:
            self.builder.arm = self.before


def made_binding(builder: Builder, name: str, pos: Pos) -> Binding:
    """The binding of a name at the end of a block, with a closure in place of a definition (or why there is none)."""
    binding = builder.env[name]
    if binding.definition is not None:
        try:
            binding = Binding(builder.closure(name, pos), binding.flag)
        except UnsupportedError as refusal:
            binding = Binding(NOTHING, binding.flag, refusal=refusal)
        builder.env[name] = binding
    return binding
