"""The state of a conversion: the name environment, the block being written, and the closures that are about.

Names. `env` maps each name of the function to a `Binding`: its current operand, and a flag operand that says whether
it is bound at all (`TRUE` nearly always). Assignment replaces the binding and writes nothing. `conditional` converts
two branches in copies of the environment and joins them (merge.py).

Closures. Captures are by value where Python's are by reference. The two agree as long as no captured name is bound
again while the closure is in use, and that is checked rather than assumed: a `def` or a named lambda is a `Definition`,
made into a closure anew when it is read after such a binding; any other value that may contain a closure is `held`
with the operands captured, and reading it when one has changed is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend.build.bindings import (
    CARRIED,
    CONTROL,
    NOTHING,
    TRUE,
    Arm,
    Binding,
    Converted,
    Definition,
    Held,
    Loop,
    pos_of,
)
from parakeet_py.frontend.build.merge import Join
from parakeet_py.frontend.desugar.nodes import cell_of
from parakeet_py.frontend.source.function_source import Source
from parakeet_py.frontend.source.scopes import Scopes
from parakeet_py.frontend.ssa import (
    Attribute,
    Call,
    CheckBound,
    ErrorState,
    Free,
    Global,
    Let,
    MakeClosure,
    Op,
    Operand,
    Pos,
    Var,
    operands_of,
    same,
)


class Builder:
    """Writes the SSA of one function; the functions inside it have builders of their own."""

    local_names: frozenset[str]  # the names the function binds
    deleted_names: frozenset[str]  # those of them it deletes
    free_names: frozenset[str]  # the names it takes from the functions around it

    def __init__(self, source: Source, scopes: Scopes, declared_global: dict[str, None]) -> None:
        self.source = source
        self.scopes = scopes
        self.declared_global = declared_global
        self.arm = Arm([], {name: Binding(operand) for name, operand in CONTROL.items()}, {})
        self.loops: list[Loop] = []
        self.error_states: dict[ErrorState, None] = {}  # of `with` statements, in the order met
        self.trying = 0  # bodies of `try` that are open
        self.held: dict[Var, Held] = {}  # closures a value may contain, as (name captured, what it was)
        self.converted: dict[Var, frozenset[Converted]] = {}  # which nested functions a variable may be
        self.lazy: set[Operand] = set()  # iterators that hold the functions they will call
        self.held_by_call: dict[Var, Held] = {}  # closures that the call which gave this value was passed

    @property
    def env(self) -> dict[str, Binding]:
        return self.arm.env

    def refuse(self, node: ast.AST, message: str, hint: str = "") -> NoReturn:
        raise self.refusal(pos_of(node), message, hint)

    def refusal(self, pos: Pos, message: str, hint: str = "") -> UnsupportedError:
        source = self.source
        first = source.first_line
        return UnsupportedError(message, source.filename, pos, source.lines, hint, first_line=first)

    # ---- writing ----------------------------------------------------------------------------------------------------

    def emit(self, op: Op, node: ast.AST | Pos, hint: str = "t") -> Var:
        """Write an operator with one out."""
        self.check_operands(op, node)
        out = Var(hint)
        self.arm.out.append(Let((out,), op, node if isinstance(node, Pos) else pos_of(node)))
        if isinstance(op, Call):
            self.arm.globals_read.clear()  # a function may bind them anew
        return out

    def effect(self, op: Op, node: ast.AST | Pos) -> None:
        """Write an operator without outs."""
        self.check_operands(op, node)
        self.arm.out.append(Let((), op, node if isinstance(node, Pos) else pos_of(node)))

    def branch(self, convert: Callable[[], Operand | None]) -> Arm:
        """Run a conversion into a block of its own, in a copy of the environment."""
        outer = self.arm
        inner = self.arm = Arm([], dict(outer.env), dict(outer.globals_read))
        try:
            inner.value = convert()
        finally:
            self.arm = outer
        for name in [name for name, read in outer.globals_read.items() if inner.globals_read.get(name) is not read]:
            del outer.globals_read[name]
        return inner

    # ---- names ------------------------------------------------------------------------------------------------------

    def bind(self, name: str, operand: Operand) -> None:
        self.env[name] = Binding(operand)

    def set_control(self, **flags: Operand) -> None:
        for name, operand in flags.items():
            self.env["$" + name] = Binding(operand)

    def control(self, name: str) -> Operand:
        return self.env[name].operand

    def read(self, name: str, node: ast.AST | Pos) -> Operand:
        """The value of a name of any scope, or of what a cell holds."""
        if cell_of(name) != name:
            return self.emit(Attribute(self.read(cell_of(name), node), "cell_contents"), node, cell_of(name))
        if name not in self.env:
            return self.read_outer(name, node)
        self.check_bound(name, node)
        return self.value(name, node)

    def value(self, name: str, node: ast.AST | Pos) -> Operand:
        """The value of a name of this function; unbound where the name is."""
        binding = self.env[name]
        if binding.refusal:
            raise binding.refusal
        if binding.definition:
            return self.closure(name, node)
        operand = binding.operand
        if isinstance(operand, Var):
            self.check_current(operand, f"`{name}`", node)
        return operand

    def check_bound(self, name: str, node: ast.AST | Pos) -> None:
        binding = self.env[name]
        if not same(binding.flag, TRUE):
            self.effect(CheckBound(binding.flag, name, name in self.free_names), node)
            self.env[name] = replace(binding, flag=TRUE)

    def read_outer(self, name: str, node: ast.AST | Pos) -> Operand:
        found = self.arm.globals_read.get(name)
        if found is None:
            free = name in self.source.free_names and name not in self.declared_global
            found = self.arm.globals_read[name] = self.emit(Free(name) if free else Global(name), node, name)
        return found

    # ---- closures ---------------------------------------------------------------------------------------------------

    def captured_by(self, definition: Definition, node: ast.AST | Pos) -> Held:
        """What each name a definition captures stands for now, through other definitions."""
        found: dict[str, object] = {}
        pending = [definition]
        while pending:
            for name in pending.pop().names:
                binding = self.env[name]
                if binding.definition is definition:
                    self.refuse_recursion(definition.name, node)
                if name not in found:
                    found[name] = binding.identity()
                    if binding.definition:
                        pending.append(binding.definition)
        return frozenset(found.items())

    def refuse_recursion(self, name: str, node: ast.AST | Pos) -> NoReturn:
        pos = node if isinstance(node, Pos) else pos_of(node)
        raise self.refusal(
            pos,
            f"the nested function `{name}` calls itself",
            "write the recursion as a loop, or move the function to the top level of the module",
        )

    def closure(self, name: str, node: ast.AST | Pos) -> Operand:
        """The closure a name with a definition stands for, made anew if a captured name has been bound since."""
        binding = self.env[name]
        definition = binding.definition
        assert definition is not None
        captured = self.captured_by(definition, node)
        if binding.operand is NOTHING or binding.captured != captured:
            made = self.make_closure(definition, node)
            self.env[name] = binding = replace(binding, operand=made, captured=captured)
        return binding.operand

    def make_closure(self, definition: Definition, node: ast.AST | Pos) -> Var:
        unbound = tuple(name for name in definition.names if not same(self.env[name].flag, TRUE))
        converted = definition.variant(unbound)
        flags = tuple(self.env[name].flag for name in unbound)
        captures = (*(self.value(name, node) for name in definition.names), *flags)
        made = self.emit(MakeClosure(converted.function, captures, definition.defaults), node, definition.name)
        self.held[made] = self.captured_by(definition, node)
        self.converted[made] = frozenset({converted})
        return made

    def check_current(self, operand: Var, what: str, node: ast.AST | Pos) -> None:
        for captured, then in self.held.get(operand, ()):
            if captured == CARRIED:
                for loop in self.loops:
                    loop.read.add(then)
            elif not self.still(captured, then):
                raise self.refusal(
                    node if isinstance(node, Pos) else pos_of(node),
                    f"{what} holds a function that uses `{captured}`, which has been bound again since",
                    f"pass `{captured}` to the function as an argument, or give the new value another name",
                )

    def check_operands(self, op: Op, node: ast.AST | Pos) -> None:
        """Where `:=` may have bound a captured name since an operand was read, look at the operands again."""
        if self.scopes.binds_inside_expressions and self.scopes.has_nested:
            for operand in operands_of(op):
                if isinstance(operand, Var):
                    self.check_current(operand, "this", node)

    def still(self, name: str, then: object) -> bool:
        """Whether a captured name still stands for what it did."""
        binding = self.env.get(name)
        return binding is None or binding.identity() == then

    def hold(self, out: Operand, *parts: Operand) -> None:
        """Note that `out` contains whatever `parts` contain."""
        if isinstance(out, Var) and self.scopes.has_nested:
            for part in parts:
                if isinstance(part, Var):
                    if part in self.held:
                        self.held[out] = self.held.get(out, frozenset()) | self.held[part]
                    if part in self.held_by_call:
                        both = self.held_by_call.get(out, frozenset()) | self.held_by_call[part]
                        self.held_by_call[out] = both
                    if part in self.converted:
                        self.converted[out] = self.converted.get(out, frozenset()) | self.converted[part]

    # ---- conditionals ------------------------------------------------------------------------------------------------

    def conditional(
        self,
        condition: Operand,
        then: Callable[[], Operand | None],
        orelse: Callable[[], Operand | None],
        pos: Pos,
        hint: str = "t",
    ) -> Operand:
        """Write an `If`, joining what its branches bind. Gives the joined value of the branches, if they have one."""
        join = Join(self, self.branch(then), self.branch(orelse), hint)
        join.write(condition, pos)
        return join.value
