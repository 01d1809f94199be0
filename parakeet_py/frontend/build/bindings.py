"""What a conversion keeps in mind: bindings, definitions of nested functions, open loops and blocks being written.

Control flow is kept in the name environment under names no program can have, so that merges carry it as they carry any
variable:

    $skip      the rest of this block must not run (after break, continue or return)
    $stop      the innermost loop must be left (after break or return)
    $returned  the function has returned, and ...
    $return    ... this is its value
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.desugar.nodes import HANDLERS
from parakeet_py.frontend.ssa import UNBOUND, Const, Function, InHandler, Let, Operand, Pos, Var, same

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
class Definition:
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
    """What a name stands for. With a `definition`, `operand` is the closure made from it for `captured`, if any.
    `refusal` is why the name cannot be read any more."""

    operand: Operand
    flag: Operand = TRUE
    definition: Definition | None = None
    captured: Held = frozenset()
    refusal: UnsupportedError | None = None

    def identity(self) -> object:
        """Equal for two bindings exactly if they stand for the same value."""
        if self.definition is not None:
            return self.definition
        if isinstance(self.operand, Const):
            return (type(self.operand.value), repr(self.operand.value))
        return self.operand


@record(frozen=False)
class Loop:
    """An open loop: what it may bind, which of its parameters were read or called, and the names bound at every
    break."""

    names: frozenset[str]
    read: set[object] = field(default_factory=set)
    called: set[object] = field(default_factory=set)
    bound_at_breaks: set[str] | None = None


@record(frozen=False)
class Arm:
    """A block being written, or just written, with the state at its end."""

    out: list[Let]
    env: dict[str, Binding]
    globals_read: dict[str, Var]  # names of outer scopes that nothing can have bound anew since they were read
    dead: bool = False  # it always raises
    value: Operand | None = None

    def returned(self) -> bool:
        return same(self.env[RETURNED].operand, TRUE)

    def defined(self) -> set[Operand]:
        return {out for let in self.out for out in let.outs}


def pos_of(node: ast.AST) -> Pos:
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    end_line, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
    handlers = getattr(node, HANDLERS, None)
    if handlers is not None:
        return InHandler(line, column, end_line, end_column, handlers)
    return Pos(line, column, end_line, end_column)
