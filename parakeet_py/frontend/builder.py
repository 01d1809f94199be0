"""The state of a conversion: the name environment, the block being written, and the gate that joins two branches.

Names. `env` maps each name of the function to a `Binding`: its current operand, and a flag operand that says whether
it is bound at all (`TRUE` nearly always). Assignment replaces the binding and writes nothing. Control flow is kept in
the same environment under names no program can have, so that gates carry it as they carry any variable:

    $skip      the rest of this block must not run (after break, continue or return)
    $stop      the innermost loop must be left (after break or return)
    $returned  the function has returned, and ...
    $return    ... this is its value

Gates. `gate` converts two branches in copies of the environment and makes an `If` out for each name they bind
differently. On a branch that raises or returns the other names do not matter; their results there are UNBOUND.

Closures. Captures are by value where Python's are by reference. The two agree as long as no captured name is bound
again while the closure is in use, and that is checked rather than assumed: a `def` or a named lambda is a `Template`,
made into a closure anew when it is read after such a binding; any other value that may contain a closure is `held`
with the operands captured, and reading it when one has changed is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend.operands import operands, same
from parakeet_py.frontend.scopes import Scopes
from parakeet_py.frontend.source import Source
from parakeet_py.frontend.ssa import (
    UNBOUND,
    Block,
    CheckBound,
    Const,
    Free,
    Function,
    Global,
    If,
    Let,
    MakeClosure,
    Op,
    Operand,
    Pos,
    Var,
)
from parakeet_py.record import record

TRUE, FALSE, NONE, NOTHING = Const(True), Const(False), Const(None), Const(UNBOUND)
SKIP, STOP, RETURNED, RETURN = "$skip", "$stop", "$returned", "$return"
CONTROL = {SKIP: FALSE, STOP: FALSE, RETURNED: FALSE, RETURN: NOTHING}
CARRIED = "$carried"  # stands in `held` for what a loop parameter may hold from the iteration before

Held = frozenset[tuple[str, object]]  # captured names, each with the `Binding.identity` it had then


@record(eq=False)
class Converted:
    """A nested function in SSA. `returned` are the captured names that a function it returns uses in turn,
    `passed_on` the one it returns itself."""

    function: Function
    returned: frozenset[str]
    passed_on: frozenset[str]


@record(eq=False)
class Template:
    """A nested function that can be made into a closure wherever its captured `names` are known.

    It is converted when it is first needed, once for each set of names that may be unbound then: their flags are
    captured too.
    """

    name: str
    names: tuple[str, ...]
    defaults: tuple[Operand, ...]
    convert: Callable[[tuple[str, ...]], Converted]
    variants: dict[tuple[str, ...], Converted] = field(default_factory=dict)

    def variant(self, unbound: tuple[str, ...]) -> Converted:
        if unbound not in self.variants:
            self.variants[unbound] = self.convert(unbound)
        return self.variants[unbound]


@record
class Binding:
    """What a name stands for. With a `template`, `operand` is the closure made from it for `captured`, if any.
    `refusal` is why the name cannot be read any more."""

    operand: Operand
    flag: Operand = TRUE
    template: Template | None = None
    captured: Held = frozenset()
    refusal: UnsupportedError | None = None

    def identity(self) -> object:
        """Equal for two bindings exactly if they stand for the same value."""
        if self.template is not None:
            return self.template
        if isinstance(self.operand, Const):
            return (type(self.operand.value), repr(self.operand.value))
        return self.operand


@dataclass(slots=True)
class Loop:
    """An open loop: what it may bind, which of its parameters were read or called, and the names bound at every
    break."""

    names: frozenset[str]
    read: set[object] = field(default_factory=set)
    called: set[object] = field(default_factory=set)
    bound_at_breaks: set[str] | None = None


@dataclass(slots=True)
class Arm:
    """A block being written, or just written, with the state at its end."""

    out: list[Let]
    env: dict[str, Binding]
    globals_read: dict[str, Var]
    dead: bool = False  # it always raises
    value: Operand | None = None

    def returned(self) -> bool:
        return same(self.env[RETURNED].operand, TRUE)

    def defined(self) -> set[Operand]:
        return {out for let in self.out for out in let.outs}


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
        """The value of a name of any scope."""
        if name not in self.env:
            return self.read_outer(name, node)
        self.check_bound(name, node)
        return self.value(name, node)

    def value(self, name: str, node: ast.AST | Pos) -> Operand:
        """The value of a name of this function; unbound where the name is."""
        binding = self.env[name]
        if binding.refusal:
            raise binding.refusal
        if binding.template:
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

    def captured_by(self, template: Template, node: ast.AST | Pos) -> Held:
        """What each name a template captures stands for now, through other templates."""
        found: dict[str, object] = {}
        pending = [template]
        while pending:
            for name in pending.pop().names:
                binding = self.env[name]
                if binding.template is template:
                    self.refuse_recursion(template.name, node)
                if name not in found:
                    found[name] = binding.identity()
                    if binding.template:
                        pending.append(binding.template)
        return frozenset(found.items())

    def refuse_recursion(self, name: str, node: ast.AST | Pos) -> NoReturn:
        pos = node if isinstance(node, Pos) else pos_of(node)
        raise self.refusal(
            pos,
            f"the nested function `{name}` calls itself",
            "write the recursion as a loop, or move the function to the top level of the module",
        )

    def closure(self, name: str, node: ast.AST | Pos) -> Operand:
        """The closure a name with a template stands for, made anew if a captured name has been bound since."""
        binding = self.env[name]
        template = binding.template
        assert template is not None
        captured = self.captured_by(template, node)
        if binding.operand is NOTHING or binding.captured != captured:
            made = self.make_closure(template, node)
            self.env[name] = binding = replace(binding, operand=made, captured=captured)
        return binding.operand

    def make_closure(self, template: Template, node: ast.AST | Pos) -> Var:
        unbound = tuple(name for name in template.names if not same(self.env[name].flag, TRUE))
        converted = template.variant(unbound)
        flags = tuple(self.env[name].flag for name in unbound)
        captures = (*(self.value(name, node) for name in template.names), *flags)
        made = self.emit(MakeClosure(converted.function, captures, template.defaults), node, template.name)
        self.held[made] = self.captured_by(template, node)
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
            for operand in operands(op):
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

    # ---- gates ------------------------------------------------------------------------------------------------------

    def gate(
        self,
        condition: Operand,
        then: Callable[[], Operand | None],
        orelse: Callable[[], Operand | None],
        pos: Pos,
        hint: str = "t",
    ) -> Operand:
        """Write an `If`, joining what its branches bind. Gives the joined value of the branches, if they have one."""
        join = _Join(self, self.branch(then), self.branch(orelse), hint)
        join.write(condition, pos)
        return join.value


class _Join:
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
        if cared.template and (a_free or b_free or a.template is b.template):
            flag = self.operand(name + ".bound", a.flag, b.flag, a_free, b_free)
            made = cared.operand if same(cared.operand, old.operand) else NOTHING
            return Binding(made, flag, cared.template, cared.captured)
        if a.identity() == b.identity() == old.identity() and not (a_free or b_free):
            return a if same(a.flag, b.flag) else old  # they differ by a CheckBound in one branch only
        a, b = self.made(self.a, name, pos), self.made(self.b, name, pos)
        if refusal := (None if a_free else a.refusal) or (None if b_free else b.refusal):
            return Binding(NOTHING, refusal=refusal)
        value = self.operand(name, a.operand, b.operand, a_free, b_free)
        return Binding(value, self.operand(name + ".bound", a.flag, b.flag, a_free, b_free))

    def made(self, arm: Arm, name: str, pos: Pos) -> Binding:
        """The binding at the end of a branch, with a closure in place of a template."""
        self.builder.arm = arm
        try:
            return made_binding(self.builder, name, pos)
        finally:
            self.builder.arm = self.before


def made_binding(builder: Builder, name: str, pos: Pos) -> Binding:
    """The binding of a name at the end of a block, with a closure in place of a template (or why there is none)."""
    binding = builder.env[name]
    if binding.template is not None:
        try:
            binding = Binding(builder.closure(name, pos), binding.flag)
        except UnsupportedError as refusal:
            binding = Binding(NOTHING, binding.flag, refusal=refusal)
        builder.env[name] = binding
    return binding


def pos_of(node: ast.AST) -> Pos:
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    end_line, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
    return Pos(line, column, end_line, end_column)
